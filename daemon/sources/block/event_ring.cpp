// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/event_ring.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>

namespace ssdpulse::block {

template <typename Event>
void EventRing<Event>::Deleter::operator()(ring_buffer* ring) const {
  ring_buffer__free(ring);
}

template <typename Event>
util::Result<EventRing<Event>> EventRing<Event>::open(int map_fd, std::size_t limit) {
  EventRing result;
  result.batch_->limit = limit;
  result.ring_.reset(ring_buffer__new(map_fd, take, result.batch_.get(), nullptr));
  if (!result.ring_) {
    return util::fail_errno("cannot map a ring buffer of the kernel");
  }
  return result;
}

/// Returns a negative value when no more events are wanted now. This one counts as taken either way.
template <typename Event>
int EventRing<Event>::take(void* batch, void* data, std::size_t bytes) {
  auto& [limit, events] = *static_cast<Batch*>(batch);
  if (bytes == sizeof(Event)) {
    std::memcpy(&events.emplace_back(), data, sizeof(Event));
  }
  return events.size() < limit ? 0 : -EAGAIN;
}

template <typename Event>
const std::vector<Event>& EventRing<Event>::fetch() {
  batch_->events.clear();
  if (ring_) {
    ring_buffer__consume(ring_.get());
  }
  return batch_->events;
}

template class EventRing<sample_event>;
template class EventRing<freeze_event>;

}  // namespace ssdpulse::block
