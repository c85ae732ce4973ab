// SPDX-License-Identifier: Apache-2.0
// Compares our I/O counts with diskstats, the kernel's own, independent account, whenever both are at rest. A
// difference that no counted loss explains is drift, and is exported.
//
// The identity, by the kernel's rules (blk_account_io_done, op_stat_group):
//   read = reads + flushes outside of sequences; write = writes + write_zeroes + secure_erase + zone management +
//   flush-sequence parents; discard = discards; flush = other flush requests; passthrough is not counted.
// Each counts every request that ended, whether or not it was issued (a failover also ends a request). A multipath head
// is compared with the sum over its paths. No verdict where iostats=0: observe() is not called then.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/model/block_sample.h"
#include "daemon/model/device.h"
#include "daemon/model/operation.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::analysis {

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

}  // namespace ssdpulse::analysis
