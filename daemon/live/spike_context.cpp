// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/spike_context.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "daemon/util/varints.h"

namespace ssdpulse::live {
namespace {

std::string bytes_between(const Ring& ring, const std::string& device, model::WallTime begin, model::WallTime end) {
  util::VarintWriter out;
  for (const Second& second : ring.after(0, device)) {
    if (second.end < begin || second.end > end || out.size() > SpikeContext::kMaxBytes - (64U << 10)) {
      continue;
    }
    const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(second.end.time_since_epoch());
    const std::string_view column = second.bytes ? std::string_view(*second.bytes) : "";
    out.put(second.number).put(static_cast<std::uint64_t>(at.count()));
    out.put(static_cast<std::uint64_t>(second.length.count())).put(column.size()).append(column);
  }
  return out.take();
}

}  // namespace

std::vector<Second> seconds_in(std::string_view bytes) {
  constexpr std::uint64_t kMaxTime = 4'000'000'000'000;  // ms since the epoch
  std::vector<Second> seconds;
  util::VarintReader in(bytes);
  while (!in.whole()) {
    const std::uint64_t number = in.take();
    const model::WallTime end{std::chrono::milliseconds(in.take(kMaxTime))};
    const std::chrono::milliseconds length(in.take(kMaxTime));
    const std::string_view column = in.take_bytes(in.take());
    if (!in.good()) {
      break;
    }
    const bool measured = !column.empty() && decode(column);
    seconds.push_back({number, end, length, measured ? std::optional(std::string(column)) : std::nullopt});
  }
  return seconds;
}

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
  // Memory reaches a quarter of an hour back: what lasts longer is kept in parts.
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
