// SPDX-License-Identifier: Apache-2.0
// EventRing: a ring buffer through which programs in the kernel send events of one type.
// Opening it maps it, which needs only the descriptor; fetching makes no system call. Not thread-safe.
#pragma once

#include <linux/types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "bpf/abi/block_abi.h"
#include "bpf/abi/freeze_abi.h"
#include "daemon/util/result.h"

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
