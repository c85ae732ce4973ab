// SPDX-License-Identifier: Apache-2.0
// AttributionReader, AttributionAccount: the I/O that the kernel side counts by cgroup and path. Make no system call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bpf/abi/block_abi.h"
#include "daemon/block/block_programs.h"
#include "daemon/block/kernel_memory.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::block {

struct AttributedIncrement {
  std::uint32_t device;                  // index in the kernel's tables
  std::uint32_t operation;               // ATTRIBUTED_*
  std::uint32_t path;                    // PATH_*, with PATH_RAW
  std::optional<model::CgroupId> owner;  // none: there was no room for its cgroup
  model::AttributedTotals totals;
};

/// What was counted since the last read, on all devices. Also frees the cells of cgroups that are gone, the only
/// writing that user space does there.
class AttributionReader {
 public:
  AttributionReader(const Tables& tables, const MemoryPlan& plan);

  /// Call it after the devices' own cells were read: it then includes all that they count. Valid until the next call.
  const std::vector<AttributedIncrement>& read();

  /// See BlockSource::release_cgroups.
  void release_cgroups(const std::vector<model::CgroupId>& gone);
  /// One step of freeing their cells, at least a tick after the last one, and after read(). Returns the cgroups that
  /// have departed with it; what they counted has been read.
  std::vector<model::CgroupId> depart();

  [[nodiscard]] const std::shared_ptr<const model::SeenCgroups>& cgroups() const { return published_; }
  [[nodiscard]] std::size_t cells_in_use() const;

 private:
  /// A cell that is taken. There are hundreds of thousands on a large host, so this is small.
  struct View {
    std::uint32_t index;
    std::uint32_t counted;  // index in counted_
  };
  /// What all cells with one key, on different CPUs, count together. Sums over them are modulo 2^64, as the words are.
  struct Counted {
    std::uint64_t key = ATTRIBUTION_FREE;
    std::uint32_t cells = 0;         // 0: unused
    bool was_unknown = false;        // at an earlier reading: its announcement may still come
    model::AttributedTotals last{};  // at the last reading at which it was reported
  };
  struct Cpu {
    std::uint64_t taken = 0;
    std::vector<View> views;  // by index
  };
  using Serials = std::unordered_map<std::uint64_t, model::CgroupId>;  // with the cgroup of each
  enum class Leave : std::uint8_t { rests, moved, closed };
  using OtherTotals = std::array<std::array<model::AttributedTotals, PATH_CODES>, ATTRIBUTED_OPERATIONS>;

  [[nodiscard]] attributed& cell(std::size_t index) const;
  std::uint32_t take_counted(std::uint64_t key);
  void find_new(std::size_t number, Cpu& cpu);
  void read_announcements(std::size_t cpu);
  void report(Counted& counted, const model::AttributedTotals& now);
  bool read_other(std::size_t index, OtherTotals& sum);
  void read_others();
  [[nodiscard]] Serials serials_of(const std::unordered_set<model::CgroupId>& cgroups) const;
  /// For each of counted_, whether it belongs to one of these.
  [[nodiscard]] std::vector<bool> belongs_to(const Serials& serials) const;
  void close(const std::unordered_set<model::CgroupId>& cgroups);
  void release(const std::unordered_set<model::CgroupId>& cgroups);

  Tables tables_;
  std::size_t cells_of_cpu_;
  std::size_t announcements_;
  std::size_t others_of_device_;
  std::vector<Cpu> cpus_;
  std::vector<Counted> counted_;
  std::vector<model::AttributedTotals> now_;                 // of each of counted_; apart, to stay in the caches
  std::vector<std::uint32_t> unused_;                        // of counted_
  std::unordered_map<std::uint64_t, std::uint32_t> by_key_;  // index in counted_
  Serials owners_;
  model::SeenCgroups seen_;
  std::shared_ptr<const model::SeenCgroups> published_;
  std::map<model::CgroupId, Leave> leaving_;
  std::map<std::size_t, std::pair<std::uint64_t, OtherTotals>> others_;  // by cell, with its events
  std::vector<AttributedIncrement> increments_;
};

/// The I/O of one device by cgroup and path, as much of it as the device's own counts show.
///
/// A device's own cells are read first, then the attributed ones, which therefore include what ended in between. That
/// must not be in only one of the sums, so what exceeds the device's own count waits for the next reading. If there is
/// still more then, although the device's count stood still, it is published anyway: a true difference stays visible.
class AttributionAccount {
 public:
  void add(const AttributedIncrement& increment);

  /// The device's own counts of an operation since the start: timed and untimed ends, strays, bytes. Once per reading.
  void settle(model::Operation operation, std::uint64_t ios, std::uint64_t bytes);

  /// The same while nothing is attributed: what the device counts meanwhile belongs to nobody, then and later.
  void leave_out(model::Operation operation, std::uint64_t ios, std::uint64_t bytes);

  /// Moves what was counted for the cgroup to the departed ones.
  void depart(model::CgroupId cgroup);

  /// Returns the same object while nothing changes.
  std::shared_ptr<const model::DeviceAttribution> published();

 private:
  /// No cgroup: there was no room for it. kDeparted: any that departed.
  using Owner = std::optional<model::CgroupId>;
  using Path = std::uint32_t;  // PATH_*, with PATH_RAW
  struct Waiting {
    Owner owner;
    Path path;
    model::AttributedTotals totals;
  };
  struct Operation {
    std::vector<Waiting> waiting;         // in any order, and some more than once
    model::AttributedTotals target{};     // the device's own counts, at the last reading
    model::AttributedTotals published{};  // of all owners
    model::AttributedTotals left_out{};   // of the device's own counts
    bool waited = false;                  // some of it has waited since the last reading
  };

  void publish_all(std::size_t operation, model::AttributedTotals room);
  model::TotalsByOperation& totals_of(const Owner& owner);

  model::DeviceAttribution totals_;
  model::ByOperation<Operation, model::kAttributedOperations> operations_;
  std::shared_ptr<const model::DeviceAttribution> published_;
};

}  // namespace ssdpulse::block
