// SPDX-License-Identifier: Apache-2.0
// EventRing, TableMappings, LoadRefusal: what programs of the kernel and their maps need in user space, whichever
// programs they are. Opening and mapping need only descriptors, loading needs privileges. Not thread-safe.
#pragma once

#include <linux/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "bpf/abi/block_abi.h"
#include "bpf/abi/freeze_abi.h"
#include "daemon/base/result.h"
#include "daemon/model/kernel_programs.h"
#include "daemon/model/snapshot.h"

struct bpf_map;
struct bpf_object;
struct ring_buffer;

namespace ssdpulse::block {

template <typename Event>
class EventRing {
 public:
  /// Nothing is ever sent through this one.
  EventRing() = default;
  /// `limit`: how many events one fetch takes at most, so that it ends however many arrive meanwhile.
  static util::Result<EventRing> open(int map_fd, std::size_t limit);

  /// What was sent since the last call, in the order of sending. Valid until the next call.
  const std::vector<Event>& fetch();

 private:
  struct Deleter {
    void operator()(ring_buffer* ring) const;
  };
  /// What libbpf's callback writes to; it never moves.
  struct Batch {
    std::size_t limit = 0;
    std::vector<Event> events;
  };
  static int take(void* batch, void* data, std::size_t bytes);

  std::unique_ptr<Batch> batch_ = std::make_unique<Batch>();
  std::unique_ptr<ring_buffer, Deleter> ring_;
};

extern template class EventRing<sample_event>;
extern template class EventRing<freeze_event>;

/// Mappings of the kernel's tables. They end with this object.
class TableMappings {
 public:
  TableMappings() = default;
  ~TableMappings();
  TableMappings(const TableMappings&) = delete;
  TableMappings& operator=(const TableMappings&) = delete;

  /// Writable unless `Entry` is const.
  template <typename Entry>
  util::Result<void> map(const bpf_map* table, std::span<Entry>& entries) {
    const auto mapped = map_bytes(table, !std::is_const_v<Entry>);
    if (!mapped) {
      return tl::make_unexpected(mapped.error());
    }
    entries = std::span(static_cast<Entry*>(mapped->address), mapped->bytes / sizeof(Entry));
    return {};
  }

 private:
  struct Mapping {
    void* address;
    std::size_t bytes;
  };
  util::Result<Mapping> map_bytes(const bpf_map* table, bool writable);

  std::vector<Mapping> mappings_;
};

/// For the types that bpftool generates.
template <typename Skeleton>
struct SkeletonDeleter {
  void operator()(Skeleton* skeleton) const { Skeleton::destroy(skeleton); }
};

/// What the kernel accounts for the object's loaded programs. Needs no capability: their descriptors are open.
std::vector<model::ProgramStats> program_stats(const bpf_object* object, bool kernel_counts_skipped_runs);

/// What is known about a call that failed to load programs.
struct LoadRefusal {
  int error_number = 0;               // errno, or an error number of the kernel's own
  bool confidential = false;          // the kernel is locked down so tightly that its memory cannot be read
  bool verifier_spoke = false;        // `messages` says why
  std::string messages = {};          // the end of libbpf's own messages
  std::optional<bool> compiles = {};  // net.core.bpf_jit_enable is not 0; absent: not readable
};

/// Why the kernel refuses, and what can be done about it: for the log, and for the exit status.
util::Error explain(const LoadRefusal& refusal);

/// What a run of the block programs costs on this host, measured with programs that do the same kind and amount of work
/// (bpf/run_cost.bpf.c). Needs the privileges to load programs; takes about 20 ms. It is an error if the kernel refuses
/// to run programs for the caller.
util::Result<model::RunCost> measure_run_cost(bool completion_only);

}  // namespace ssdpulse::block
