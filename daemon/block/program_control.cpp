// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/program_control.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "daemon/block/io_cells.h"

namespace ssdpulse::block {
namespace {

bool same(const known_disk& left, const known_disk& right) {
  return std::equal(std::begin(left.name), std::end(left.name), std::begin(right.name)) &&
         left.identity == right.identity && left.device == right.device;
}

/// The table as it should be, built next to the live one.
std::vector<known_disk> lay_out(const std::vector<DiskDecision>& decisions, std::size_t& unplaced) {
  std::vector<known_disk> table(KNOWN_DISKS);
  for (const DiskDecision& decision : decisions) {
    if (decision.retiring) {
      continue;
    }
    known_disk entry{};
    std::memcpy(entry.name, decision.disk_name.data(), std::min(decision.disk_name.size(), sizeof(entry.name) - 1));
    entry.identity = decision.identity;
    entry.device = decision.device;
    const std::uint32_t hash = known_disk_hash(entry.name);
    std::uint32_t probe = 0;
    while (probe < KNOWN_DISK_PROBES && table[(hash + probe) & (KNOWN_DISKS - 1)].device != 0) {
      ++probe;
    }
    if (probe == KNOWN_DISK_PROBES) {
      ++unplaced;
    } else {
      table[(hash + probe) & (KNOWN_DISKS - 1)] = entry;
    }
  }
  return table;
}

/// Where disks have no number of their own (before Linux 5.15), a disk that took the name of a retiring one mostly has
/// its queue id, too, and none of the old requests are left. One that is excluded from now on is still the same.
bool is_succeeded(const DiskDecision& retiring, const std::vector<DiskDecision>& decisions) {
  return retiring.retiring && std::any_of(decisions.begin(), decisions.end(), [&](const DiskDecision& other) {
           return !other.retiring && other.device < DEVICE_WITHOUT_ROW && other.disk_name == retiring.disk_name;
         });
}

}  // namespace

void forget_queues_of(__u32 device, std::span<queue_entry> queue_entries) {
  for (queue_entry& entry : queue_entries) {
    if ((entry.disk & 0xffff) == device) {
      store(entry.disk, 0);
    }
  }
}

void close_entries_of(__u32 device, std::span<known_disk> table) {
  for (known_disk& entry : table) {
    if (entry.device == device) {
      store(entry.device, 0);
    }
  }
}

std::size_t publish_decisions(const std::vector<DiskDecision>& decisions, std::span<known_disk> table,
                              std::span<queue_entry> queue_entries) {
  std::size_t unplaced = 0;
  const std::vector<known_disk> wanted = lay_out(decisions, unplaced);
  for (std::size_t i = 0; i < table.size() && i < wanted.size(); ++i) {
    if (same(table[i], wanted[i])) {
      continue;
    }
    // The entry is closed while it changes; a disk that is looked up meanwhile is pending for that one I/O.
    store(table[i].device, 0);
    // Each store keeps the earlier ones, including the closing one, ahead of itself.
    for (std::size_t word = 0; word < std::size(table[i].name); ++word) {
      store(table[i].name[word], wanted[i].name[word]);
    }
    store(table[i].identity, wanted[i].identity);
    store(table[i].device, wanted[i].device);
  }
  for (queue_entry& entry : queue_entries) {
    const __u64 cached = entry.disk;
    if (cached == 0) {
      continue;
    }
    const __u32 device = cached & 0xffff;
    const __u64 identity = cached >> QUEUE_ENTRY_DEVICE_BITS;
    const bool still_true = std::any_of(decisions.begin(), decisions.end(), [&](const DiskDecision& decision) {
      // Any disk may be excluded, so the identity must match then; an index belongs to one disk.
      return decision.device == device &&
             ((decision.identity & QUEUE_ENTRY_IDENTITY_MASK) == identity ||
              (decision.identity == 0 && device < DEVICE_WITHOUT_ROW && !is_succeeded(decision, decisions)));
    });
    if (!still_true) {
      store(entry.disk, 0);
    }
  }
  return unplaced;
}

std::uint64_t monotonic_ns() {
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(now.count());
}

void switch_effort(model::Effort effort, device_state& state, std::uint64_t (*now_ns)()) {
  __u32& flags = state.geometry.flags;
  const bool timed = effort < model::Effort::completions;
  const bool begins = timed && (flags & DEVICE_UNTIMED) != 0;
  if (begins) {
    // Until that time is known, any request that no slot holds may have been issued before it.
    __atomic_store_n(&state.timed_since_ns, std::numeric_limits<__u64>::max(), __ATOMIC_SEQ_CST);
  }
  __u32 wanted = flags & ~static_cast<__u32>(DEVICE_UNATTRIBUTED | DEVICE_UNTIMED);
  wanted |= effort == model::Effort::everything ? 0U : static_cast<__u32>(DEVICE_UNATTRIBUTED);
  wanted |= timed ? 0U : static_cast<__u32>(DEVICE_UNTIMED);
  __atomic_store_n(&flags, wanted, __ATOMIC_SEQ_CST);
  if (begins) {
    // Read after the switch: a program that still saw it untimed has a request that was allocated before this time.
    __atomic_store_n(&state.timed_since_ns, __u64{now_ns()}, __ATOMIC_SEQ_CST);
  }
}

}  // namespace ssdpulse::block
