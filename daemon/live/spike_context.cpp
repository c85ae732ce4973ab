// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/spike_context.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::live {
namespace {

void put_number(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) {
    out.push_back(static_cast<char>(value | 0x80U));
  }
  out.push_back(static_cast<char>(value));
}

std::string bytes_between(const Ring& ring, const std::string& device, model::WallTime begin, model::WallTime end) {
  std::string out;
  for (const Second& second : ring.after(0, device)) {
    if (second.end < begin || second.end > end || out.size() > SpikeContext::kMostBytes - (64U << 10)) {
      continue;
    }
    const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(second.end.time_since_epoch());
    put_number(out, second.number);
    put_number(out, static_cast<std::uint64_t>(at.count()));
    put_number(out, static_cast<std::uint64_t>(second.length.count()));
    put_number(out, second.bytes ? second.bytes->size() : 0);
    out += second.bytes.value_or("");
  }
  return out;
}

}  // namespace

void SpikeContext::take(const model::LatencySpike& spike) {
  const auto duration = std::chrono::duration_cast<model::WallTime::duration>(spike.duration);
  Waiting next{spike.device, spike.begin - kAround, spike.begin + duration + kAround, spike.excess_seconds};
  const auto known = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.device == next.device && one.begin <= next.end && next.begin <= one.end;
  });
  if (known == waiting_.end()) {
    waiting_.push_back(std::move(next));
    return;
  }
  known->begin = std::min(known->begin, next.begin);
  known->end = std::max(known->end, next.end);
  known->excess_seconds = std::max(known->excess_seconds, next.excess_seconds);
}

std::vector<SpikeSeconds> SpikeContext::due(const model::Snapshot& snapshot, const Ring& ring) {
  // Memory reaches a quarter of an hour back: what goes on and on is kept in parts.
  constexpr std::chrono::minutes kLongest{12};
  for (const model::LatencySpike& spike : snapshot.spikes_ended) {
    take(spike);
  }
  std::vector<SpikeSeconds> done;
  std::erase_if(waiting_, [&](const Waiting& one) {
    const bool over = one.end <= snapshot.taken_at || snapshot.taken_at - one.begin > kLongest;
    if (over) {
      done.push_back({one.device, one.begin, std::min(one.end, snapshot.taken_at), one.excess_seconds,
                      bytes_between(ring, one.device, one.begin, one.end)});
    }
    return over;
  });
  return done;
}

}  // namespace ssdpulse::live
