// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/sample_ring.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>

namespace ssdpulse::block {

void SampleRing::Deleter::operator()(ring_buffer* ring) const { ring_buffer__free(ring); }

util::Result<SampleRing> SampleRing::open(int map_fd, std::size_t most) {
  SampleRing result;
  result.batch_->most = most;
  result.ring_.reset(ring_buffer__new(map_fd, take, result.batch_.get(), nullptr));
  if (!result.ring_) {
    return util::fail_errno("cannot map the kernel's ring buffer of sampled writes");
  }
  return result;
}

/// Returns a negative value when no more events are wanted now. This one counts as taken either way.
int SampleRing::take(void* batch, void* data, std::size_t bytes) {
  auto& [most, events] = *static_cast<Batch*>(batch);
  if (bytes == sizeof(sample_event)) {
    std::memcpy(&events.emplace_back(), data, sizeof(sample_event));
  }
  return events.size() < most ? 0 : -EAGAIN;
}

const std::vector<sample_event>& SampleRing::fetch() {
  batch_->events.clear();
  if (ring_) {
    ring_buffer__consume(ring_.get());
  }
  return batch_->events;
}

}  // namespace ssdpulse::block
