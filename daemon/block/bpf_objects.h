// SPDX-License-Identifier: Apache-2.0
// EventRing: a ring buffer through which programs in the kernel send events of one type.
// Opening it maps it, which needs only the descriptor; fetching makes no system call. Not thread-safe.
#pragma once

#include <linux/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bpf/abi/block_abi.h"
#include "bpf/abi/freeze_abi.h"
#include "daemon/base/result.h"
#include "daemon/model/kernel_programs.h"
#include "daemon/model/snapshot.h"

struct ring_buffer;

namespace ssdpulse::block {

template <typename Event>
class EventRing {
 public:
  /// Nothing is ever sent through this one.
  EventRing() = default;
  /// `limit`: how many events that one fetch takes, so that it ends however many arrive meanwhile.
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

}  // namespace ssdpulse::block

struct bpf_object;

namespace ssdpulse::block {

// What the kernel accounts for our programs, read through descriptors that are already open: no capability is needed.

/// Adds the statistics of the object's loaded programs.
void add_program_stats(const bpf_object* object, bool kernel_counts_skipped_runs,
                       std::vector<model::ProgramStats>& all);

// LoadRefusal: why the kernel refuses to load our BPF programs; explain() also says what can be done about it. Pure.

/// What is known about a call that failed.
struct LoadRefusal {
  int error_number = 0;               // errno, or an error number of the kernel's own
  bool confidential = false;          // the kernel is locked down so tightly that its memory cannot be read
  bool verifier_spoke = false;        // `messages` says why
  std::string messages = {};          // the end of libbpf's own messages
  std::optional<bool> compiles = {};  // net.core.bpf_jit_enable is not 0; absent: not readable
};

/// For the log, and for the exit status.
util::Error explain(const LoadRefusal& refusal);

// measure_run_cost(): what a run of the block programs costs on this host. Needs the privileges to load programs; takes
// about 20 ms.

/// Measured with programs that do the same kind and amount of work (bpf/run_cost.bpf.c). It is an error if the kernel
/// refuses to run programs for the caller.
util::Result<model::RunCost> measure_run_cost(bool completion_only);

}  // namespace ssdpulse::block
