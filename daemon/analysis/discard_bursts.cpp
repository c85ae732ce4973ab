// SPDX-License-Identifier: Apache-2.0
// Submissions make a trigger's bytes pending; completions take them away. Whatever completes without a submission to
// the device goes to those who submit to the arrays above it, and else to `other`.
#include "daemon/analysis/discard_bursts.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::analysis {
namespace {

using model::DiscardTrigger;

constexpr std::size_t index(DiscardTrigger trigger) { return static_cast<std::size_t>(trigger); }

/// In flight without a change for so long was missed by us, or never ends: no burst is kept open for it.
constexpr std::uint64_t kStuckNs = 300'000'000'000;

DiscardTrigger trigger_of(std::size_t submitter, bool mounted_with_discard) {
  switch (static_cast<model::DiscardSubmitter>(submitter)) {
    case model::DiscardSubmitter::fstrim:
      return DiscardTrigger::fstrim;
    case model::DiscardSubmitter::kernel:
      return mounted_with_discard ? DiscardTrigger::online : DiscardTrigger::other;
    case model::DiscardSubmitter::blkdiscard:
      return DiscardTrigger::blkdiscard;
    case model::DiscardSubmitter::mkfs:
      return DiscardTrigger::mkfs;
    case model::DiscardSubmitter::other:
      break;
  }
  return DiscardTrigger::other;
}

/// Splits `total` in proportion to `weights`, to the last unit; no part exceeds its weight unless the total does.
template <typename Array>
Array split(std::uint64_t total, const Array& weights) {
  Array parts{};
  unsigned __int128 sum = 0;
  for (const std::uint64_t weight : weights) {
    sum += weight;
  }
  unsigned __int128 so_far = 0;
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < weights.size() && sum > 0; ++i) {
    so_far += weights[i];
    parts[i] = static_cast<std::uint64_t>(total * so_far / sum) - given;
    given += parts[i];
  }
  return parts;
}

std::uint64_t sum_of(const std::array<std::uint64_t, model::kDiscardTriggers>& parts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t part : parts) {
    sum += part;
  }
  return sum;
}

}  // namespace

std::uint64_t last_submission_ns(const model::DiscardSubmitters& submitters, DiscardTrigger trigger,
                                 bool mounted_with_discard) {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < submitters.size(); ++i) {
    if (submitters[i].bytes > 0 && trigger_of(i, mounted_with_discard) == trigger) {
      last = std::max(last, submitters[i].last_ns);
    }
  }
  return last;
}

std::vector<DiscardBurst> DiscardBurstFinder::observe(const DiscardTick& tick) {
  const DiscardRequests& now = tick.requests;
  if (tick.own != nullptr) {
    take(*tick.own, own_, true, tick);
  }
  std::map<std::string, std::optional<Counted>> arrays = std::exchange(arrays_, {});
  for (const auto& [name, submitters] : tick.arrays) {
    std::optional<Counted>& counted = arrays_[name];
    counted = arrays[name];
    take(*submitters, counted, false, tick);
  }
  if (now.issues != last_.issues || now.completions != last_.completions || now.bytes != last_.bytes) {
    moved_ns_ = tick.now_ns;
  }
  uncounted_requests_ += now.completions - last_.completions;
  const Bytes bytes = share_out(now.bytes - last_.bytes, tick);
  const Bytes requests = share_out_requests(bytes);
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    count(i, bytes[i], requests[i], tick);
  }
  last_ = now;
  std::vector<DiscardBurst> ended;
  settle(ended, tick);
  return ended;
}

/// What came since the last look. Of a disk not seen before, what is long over is not new.
void DiscardBurstFinder::take(const model::DiscardSubmitters& submitters, std::optional<Counted>& counted, bool is_own,
                              const DiscardTick& tick) {
  const bool is_new = !counted;
  if (is_new) {
    counted = Counted{};
  }
  for (std::size_t i = 0; i < submitters.size(); ++i) {
    const model::DiscardSubmissions& now = submitters[i];
    if (now.bytes < counted->bytes[i]) {
      counted->bytes[i] = counted->ranges[i] = 0;  // another disk under the same name
    }
    const std::uint64_t bytes = now.bytes - std::exchange(counted->bytes[i], now.bytes);
    const std::uint64_t ranges = now.ranges - std::exchange(counted->ranges[i], now.ranges);
    if (bytes == 0 || (is_new && now.last_ns + tick.gap_ns < tick.now_ns)) {
      continue;
    }
    Trigger& trigger = triggers_[index(trigger_of(i, tick.mounted_with_discard))];
    (is_own ? trigger.pending : trigger.above) += bytes;
    trigger.ranges += is_own ? ranges : 0;
    if (!trigger.burst) {
      const std::uint64_t first = std::max(now.first_ns, trigger.ended_ns);
      trigger.first_ns = trigger.first_ns == 0 ? first : std::min(trigger.first_ns, first);
    }
    if (now.last_ns >= trigger.last_ns) {
      trigger.last_ns = now.last_ns;
      trigger.submitter = now.submitter;
    }
  }
}

DiscardBurstFinder::Bytes DiscardBurstFinder::share_out(std::uint64_t bytes, const DiscardTick& tick) {
  Bytes pending{};
  Bytes above{};
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    pending[i] = triggers_[i].pending;
    // Who has fallen silent has no part in what comes now, as long as somebody else has.
    above[i] = triggers_[i].last_ns + tick.gap_ns < tick.now_ns ? 0 : triggers_[i].above;
  }
  if (sum_of(above) == 0) {
    for (std::size_t i = 0; i < triggers_.size(); ++i) {
      above[i] = triggers_[i].above;
    }
  }
  const std::uint64_t direct = std::min(bytes, sum_of(pending));
  Bytes parts = split(direct, pending);
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    triggers_[i].pending -= parts[i];
  }
  const Bytes from_above = split(bytes - direct, above);
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    parts[i] += from_above[i];
  }
  parts[index(DiscardTrigger::other)] += bytes - direct - sum_of(from_above);
  return parts;
}

/// By bytes, and one for everybody who had any, as far as they go.
DiscardBurstFinder::Bytes DiscardBurstFinder::share_out_requests(const Bytes& bytes) {
  Bytes requests{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > 0 && uncounted_requests_ > 0) {
      requests[i] = 1;
      --uncounted_requests_;
    }
  }
  const Bytes more = split(uncounted_requests_, bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    requests[i] += more[i];
  }
  uncounted_requests_ -= sum_of(more);
  return requests;
}

void DiscardBurstFinder::count(std::size_t number, std::uint64_t bytes, std::uint64_t requests,
                               const DiscardTick& tick) {
  Trigger& trigger = triggers_[number];
  const bool at_work = moved_ns_ == tick.now_ns && tick.requests.in_flight > 0 && trigger.pending > 0;
  if (bytes == 0 && !at_work) {
    return;
  }
  // The end is the device's, of whichever trigger; it never lies before this one's beginning.
  const std::uint64_t last_end = tick.requests.last_end_ns == 0 ? tick.now_ns : tick.requests.last_end_ns;
  if (!trigger.burst) {
    trigger.burst.emplace();
    trigger.is_new = true;
    trigger.burst->trigger = static_cast<DiscardTrigger>(number);
    trigger.burst->begin_ns = trigger.first_ns == 0 ? std::max(last_end, trigger.ended_ns) : trigger.first_ns;
    trigger.burst->end_ns = trigger.burst->begin_ns;
    ++figures_[number].bursts;
  }
  DiscardBurst& burst = *trigger.burst;
  burst.bytes += bytes;
  burst.requests += requests;
  burst.ranges = trigger.ranges;
  burst.submitter = trigger.submitter;
  figures_[number].bytes += bytes;
  if (bytes > 0) {
    burst.end_ns = std::max(burst.end_ns, last_end);
  }
}

void DiscardBurstFinder::settle(std::vector<DiscardBurst>& ended, const DiscardTick& tick) {
  const bool in_flight = tick.requests.in_flight > 0 && tick.now_ns - moved_ns_ < kStuckNs;
  std::uint64_t all_pending = 0;
  for (const Trigger& trigger : triggers_) {
    all_pending += trigger.pending;
  }
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    Trigger& trigger = triggers_[i];
    model::DiscardBursts& figures = figures_[i];
    const bool waits = in_flight && (trigger.pending > 0 || (all_pending == 0 && trigger.burst));
    const std::uint64_t last_ns = std::max(trigger.last_ns, trigger.burst ? trigger.burst->end_ns : 0);
    const bool is_new = std::exchange(trigger.is_new, false);
    const bool over = !waits && !is_new && last_ns + tick.gap_ns < tick.now_ns;
    if (trigger.burst) {
      const std::uint64_t until = waits ? tick.now_ns : trigger.burst->end_ns;
      const std::uint64_t busy = trigger.finished_ns + (until - trigger.burst->begin_ns);
      figures.duration_ns = std::max(figures.duration_ns, busy);
      if (over) {
        trigger.finished_ns = figures.duration_ns;
        trigger.ended_ns = trigger.burst->end_ns;
        ended.push_back(std::move(*trigger.burst));
        trigger.burst.reset();
      }
    }
    figures.active = trigger.burst.has_value();
    // What was submitted and never became a request of the device (refused on its way, or merged away) is forgotten.
    if (over) {
      trigger.pending = trigger.above = trigger.first_ns = trigger.ranges = 0;
    }
  }
}

}  // namespace ssdpulse::analysis
