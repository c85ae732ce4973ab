// SPDX-License-Identifier: Apache-2.0
// AccountingDrift, MissedCompletions, UnseenIo: what the kernel's own, independent account of a device (diskstats and
// its count of I/O in flight) shows about our counts. Where iostats=0 the kernel keeps none, and nothing is concluded.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/model/block_io.h"
#include "daemon/model/device.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/source_samples.h"
#include "daemon/model/stage.h"

namespace ssdpulse::block {

/// Our side of the comparison, in diskstats' terms.
struct OurCounts {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t discards = 0;
  std::uint64_t flushes = 0;
  std::int64_t in_flight = 0;
  bool operator==(const OurCounts&) const = default;
};

/// An explained loss was still an I/O: missed and stray ones count. A request with data that is one stage of a flush
/// sequence ends twice in our counts (the data stage; its parent, among unissued_completions) and once in diskstats. A
/// flush that is not a stage of a sequence, such as those that request-based dm sends to its paths, is counted there by
/// its direction, as a read.
OurCounts compose_counts(const model::DeviceIo& io, const model::OperationEvents& unseen);

/// The kernel's side for a multipath head; a count that one path lacks is absent from the sum.
model::DiskStats sum_of_paths(const std::vector<model::DiskStats>& paths);

/// How many more I/Os the kernel has ended than we have since both were last at rest or, before that, since the first
/// reading. At least that many of ours in flight have ended unseen. `writes` covers everything that the kernel counts
/// in that direction, including discards.
struct KernelLead {
  std::int64_t reads = 0;
  std::int64_t writes = 0;
};

/// Compares our I/O counts with diskstats whenever both are at rest. A difference that no counted loss explains is
/// drift, and is exported.
///
/// The identity, by the kernel's rules (blk_account_io_done, op_stat_group):
///   read = reads + flushes outside of sequences; write = writes + write_zeroes + secure_erase + zone management +
///   flush-sequence parents; discard = discards; flush = other flush requests; passthrough is not counted.
/// Each counts every request that ended, whether or not it was issued (a failover also ends a request). A multipath
/// head is compared with the sum over its paths.
class AccountingDrift {
 public:
  /// One reading from both sides, taken in the order of the arguments. It counts only if nothing moved in between and
  /// nothing was in flight. The first one that counts is the baseline. If a counter runs backwards (replaced disk,
  /// 32-bit wrap), everything starts over.
  void observe(const OurCounts& before, const model::DiskStats& kernel_before, const model::DiskStats& kernel_after,
               const OurCounts& after);

  /// Our counts minus the kernel's since the baseline, as of the last reading that counted. Absent before the baseline,
  /// and for operations that this kernel does not report.
  [[nodiscard]] const model::AccountingDrift& value() const { return value_; }

  /// Valid at any moment at which nothing ends. Absent before the first reading, and after a counter ran backwards.
  [[nodiscard]] std::optional<KernelLead> lead(const OurCounts& ours, const model::DiskStats& kernel) const;

  void restart();

 private:
  struct Sides {
    OurCounts ours;
    model::DiskStats kernel;
  };

  [[nodiscard]] model::AccountingDrift since_baseline(const Sides& now) const;

  std::optional<Sides> baseline_;
  std::optional<Sides> last_;       // whether it counted or not: to notice counters that run backwards
  std::optional<Sides> lead_from_;  // the first reading, then the last that counted
  model::AccountingDrift value_;
};

/// What the kernel counts as reads and as writes in flight.
inline constexpr std::array kReading{model::Operation::read};
inline constexpr std::array kWriting{model::Operation::write, model::Operation::discard, model::Operation::write_zeroes,
                                     model::Operation::secure_erase};

/// Returns `kernel`, unless it has none in flight where we have some and diskstats do not show that those have ended.
/// `lead` comes from AccountingDrift; without it, diskstats show nothing.
std::optional<model::KernelInFlight> plausible(const model::KernelInFlight& kernel, const model::DeviceIo& ours,
                                               const std::optional<KernelLead>& lead);

/// Finds requests that are in flight only in our count, because no program saw them end. For one device; one call per
/// tick.
///
/// A kernel may end a request without calling any program (on some virtual machines while an interrupt hits certain
/// tasks, for milliseconds at a time). We keep such a request in flight until another one takes its slot, which on an
/// idle disk looks like a stall. The kernel's own count tells the two apart: if it has nothing in flight at two reads,
/// and nothing happened in between, our requests have ended.
///
/// The kernel's count has gaps of its own. It leaves out flushes and passthrough, and counts zone management under
/// either direction, depending on its version: nothing is concluded about these. It also leaves out a request that the
/// driver requeued and that waits to be issued again; but diskstats show that such a request has not ended.
class MissedCompletions {
 public:
  /// Whether to ask the kernel: something is in flight, and nothing has ended since the last call.
  [[nodiscard]] bool stands_still(const model::DeviceIo& ours) const;

  /// The directions in which everything that we have in flight has ended unseen.
  struct Ended {
    bool reads = false;
    bool writes = false;
  };
  /// `kernel`: absent if it was not asked or is not plausible.
  Ended observe(const model::DeviceIo& ours, const std::optional<model::KernelInFlight>& kernel);

 private:
  /// What was counted in one direction: equal at two readings iff nothing happened between them.
  struct Counts {
    std::int64_t in_flight = 0;
    std::uint64_t issues = 0;
    std::uint64_t ends = 0;
    bool operator==(const Counts&) const = default;
  };
  struct Direction {
    Counts last;
    std::optional<Counts> gone;  // at the last call, the kernel had none of these in flight
    bool observe(const Counts& ours, std::optional<std::int64_t> kernel);
  };
  static Counts counts(const model::DeviceIo& io, std::span<const model::Operation> operations);

  Direction reads_;
  Direction writes_;
};

/// Whether a device does I/O of which no request is seen, by the kernel's own count. Drivers may take bios themselves
/// (pmem, old zvols, drivers of their own): then there are no requests, and nothing can be measured. Lost completions
/// are another case: at most a few per cent of them are missing.
class UnseenIo {
 public:
  /// One reading from both sides, taken in the order of the arguments.
  void observe(const model::DeviceSample& before, const model::DiskStats& kernel_before,
               const model::DiskStats& kernel_after, const model::DeviceSample& after);

  /// How many I/Os the kernel has counted since we last saw a request or, before that, since the first reading. Absent
  /// while that is not enough to be certain.
  [[nodiscard]] std::optional<std::uint64_t> ios() const;

  void restart() { *this = UnseenIo(); }

 private:
  struct Sides {
    std::uint64_t ours;
    std::uint64_t kernel;
  };
  std::optional<Sides> last_;
  std::uint64_t ios_ = 0;
  std::uint64_t windows_ = 0;  // between two readings, in which the kernel's count moved and ours did not
};

/// The stage that reports how far our I/O counts are from the kernel's, and finds devices of which no request is seen.
/// Those get no drift and no counts, which would look like those of an idle device.
class Drift final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  struct Device {
    std::uint64_t kernel_account = 0;
    UnseenIo unseen;
    bool logged = false;  // that it is unseen
  };
  model::PerDevice<Device> devices_;
};

}  // namespace ssdpulse::block
