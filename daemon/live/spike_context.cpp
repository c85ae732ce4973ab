// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/spike_context.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ssdpulse::live {
namespace {

void put_number(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) {
    out.push_back(static_cast<char>(value | 0x80U));
  }
  out.push_back(static_cast<char>(value));
}

std::optional<std::uint64_t> take_number(std::string_view& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; !in.empty() && shift < 63; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(in.front());
    in.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  return std::nullopt;
}

/// Buckets are ascending and exist.
bool is_sound(const Buckets& buckets) {
  const auto falls = [](const auto& a, const auto& b) { return a.first >= b.first; };
  return std::adjacent_find(buckets.begin(), buckets.end(), falls) == buckets.end() &&
         (buckets.empty() || buckets.back().first <= LATENCY_OVER_WORD);
}

bool is_sound(const Column& column) {
  return is_sound(column.reads_during_discard) && is_sound(column.reads_during_flush) &&
         std::all_of(column.kinds.begin(), column.kinds.end(),
                     [](const KindColumn& kind) { return is_sound(kind.buckets); });
}

std::string bytes_between(const Ring& ring, const std::string& device, model::WallTime begin, model::WallTime end) {
  std::string out;
  for (const Second& second : ring.after(0, device)) {
    if (second.end < begin || second.end > end || out.size() > SpikeContext::kMaxBytes - (64U << 10)) {
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

std::vector<Second> seconds_in(std::string_view bytes) {
  constexpr std::uint64_t kMaxTime = 4'000'000'000'000;  // ms since the epoch
  std::vector<Second> seconds;
  while (!bytes.empty()) {
    const auto number = take_number(bytes);
    const auto end = take_number(bytes);
    const auto length = take_number(bytes);
    const auto size = take_number(bytes);
    if (!number || !end || !length || !size || *size > bytes.size() || *end > kMaxTime || *length > kMaxTime) {
      break;
    }
    Second second{*number, model::WallTime(std::chrono::milliseconds(*end)), std::chrono::milliseconds(*length), {}};
    if (const auto column = bytes.substr(0, *size); !column.empty() && is_sound(decode(column, Depth::buckets))) {
      second.bytes = std::string(column);
    }
    bytes.remove_prefix(*size);
    seconds.push_back(std::move(second));
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
