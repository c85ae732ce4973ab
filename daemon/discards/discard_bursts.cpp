// SPDX-License-Identifier: Apache-2.0
#include "daemon/discards/discard_bursts.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace ssdpulse::discards {
namespace {

using model::DiscardTrigger;

/// A request in flight without a change for this long was missed by us or never ends: no burst is kept open for it.
constexpr std::uint64_t kStuckNs = 300'000'000'000;
/// No drive takes longer for a discard that an array passes down.
constexpr std::uint64_t kMaxPassDownNs = 60'000'000'000;
constexpr std::uint64_t kSectorBytes = 512;

constexpr std::size_t index(DiscardTrigger trigger) { return static_cast<std::size_t>(trigger); }

bool passes_down(std::size_t submitter, const DiscardVolume& volume) {
  return static_cast<model::DiscardSubmitter>(submitter) == model::DiscardSubmitter::kernel && volume.carries_array &&
         !volume.mounted_with_discard;
}

/// Splits `total` into multiples of `unit`, in proportion to `weights`, which are multiples of `unit` themselves; any
/// remainder goes to the last part. No part exceeds its weight unless the total exceeds their sum.
template <typename Array>
Array split(std::uint64_t total, const Array& weights, std::uint64_t unit) {
  Array parts{};
  const auto sum = std::accumulate(weights.begin(), weights.end(), static_cast<unsigned __int128>(0));
  unsigned __int128 so_far = 0;
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < weights.size() && sum > 0; ++i) {
    so_far += weights[i];
    const auto upto = static_cast<std::uint64_t>(total * so_far / sum);
    parts[i] = (so_far == sum ? total : upto / unit * unit) - given;
    given += parts[i];
  }
  return parts;
}

std::uint64_t sum_of(const std::array<std::uint64_t, model::kDiscardTriggers>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
}

std::uint64_t trimmed_bytes(const model::FilesystemDiscards& figures) {
  return figures.bytes[index(DiscardTrigger::fstrim)];
}

/// Of those with a journal, or a log: what was deleted must reach the disk before it is discarded, so a thread of the
/// kernel does that afterwards.
bool waits_for_a_thread(const model::Filesystem& filesystem) {
  const auto& options = filesystem.options;
  if (filesystem.fstype == "ext4" || filesystem.fstype == "ext3" || filesystem.fstype == "ext2") {
    return filesystem.unshown.journal != false && options.count("data=writeback") == 0;
  }
  if (filesystem.fstype == "btrfs") {
    return options.count("discard") == 0;  // discard=async; the other one is done by whoever commits
  }
  return filesystem.fstype == "xfs" || filesystem.fstype == "bcachefs";
}

}  // namespace

model::DiscardTrigger trigger_of(std::size_t submitter, bool mounted_with_discard, bool callers_discard) {
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
      return callers_discard ? DiscardTrigger::online : DiscardTrigger::other;
  }
  return DiscardTrigger::other;
}

std::array<SubmissionIncrement, model::kDiscardSubmitters> SubmissionCursor::advance(
    const model::DiscardSubmitters& now) {
  std::array<SubmissionIncrement, model::kDiscardSubmitters> increments;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i].bytes < counted_[i].bytes) {
      counted_[i] = {};  // another volume under the same name
    }
    increments[i] = {now[i].bytes - counted_[i].bytes, now[i].ranges - counted_[i].ranges};
    counted_[i] = {now[i].bytes, now[i].ranges};
  }
  return increments;
}

std::vector<DiscardBurst> DiscardBurstFinder::observe(const DiscardTick& tick) {
  const DiscardRequests& now = tick.requests;
  std::erase_if(cursors_, [&](const auto& known) { return tick.volumes.count(known.first) == 0; });
  for (const auto& [name, volume] : tick.volumes) {
    take(name, volume, tick);
  }
  if (now.issues != last_.issues || now.completions != last_.completions || now.bytes != last_.bytes) {
    moved_ns_ = tick.now_ns;
  }
  uncounted_requests_ += now.completions - last_.completions;
  const Bytes bytes = divide(now.bytes - last_.bytes, tick);
  const Bytes requests = divide_requests(bytes);
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    count(i, bytes[i], requests[i], tick);
  }
  last_ = now;
  std::vector<DiscardBurst> ended;
  settle(ended, tick);
  idle_ns_ = now.in_flight > 0 ? idle_ns_ : last_tick_ns_;
  last_tick_ns_ = tick.now_ns;
  return ended;
}

/// Some of what was submitted to arrays may still be in the device: a large discard keeps it busy for seconds.
bool DiscardBurstFinder::may_be_below(const Trigger& trigger, const DiscardTick& tick) const {
  return trigger.above > 0 && trigger.last_ns >= idle_ns_ && trigger.last_ns + kMaxPassDownNs > tick.now_ns;
}

/// Takes the submissions since the last tick. For a volume not seen before, submissions that are long past are not new.
void DiscardBurstFinder::take(const std::string& name, const DiscardVolume& volume, const DiscardTick& tick) {
  const auto [cursor, is_new] = cursors_.try_emplace(name);
  const auto increments = cursor->second.advance(*volume.submitters);
  for (std::size_t i = 0; i < increments.size(); ++i) {
    const model::DiscardSubmissions& now = (*volume.submitters)[i];
    const bool is_past = is_new && now.last_ns + tick.gap_ns < tick.now_ns;
    if (increments[i].bytes == 0 || is_past || passes_down(i, volume)) {
      continue;
    }
    Trigger& trigger = triggers_[index(trigger_of(i, volume.mounted_with_discard, volume.callers_discard))];
    (volume.is_array ? trigger.above : trigger.pending) += increments[i].bytes;
    trigger.ranges += volume.is_array ? 0 : increments[i].ranges;
    (volume.carries_array ? trigger.carriers : trigger.volumes).insert(name);
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

DiscardBurstFinder::Bytes DiscardBurstFinder::divide(std::uint64_t bytes, const DiscardTick& tick) {
  Bytes pending{};
  Bytes above{};
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    pending[i] = triggers_[i].pending;
    // A submitter that fell silent has no part in what completes now if another one has.
    const bool silent = triggers_[i].last_ns + tick.gap_ns < tick.now_ns && !may_be_below(triggers_[i], tick);
    above[i] = silent ? 0 : triggers_[i].above;
  }
  if (sum_of(above) == 0) {
    std::transform(triggers_.begin(), triggers_.end(), above.begin(),
                   [](const auto& trigger) { return trigger.above; });
  }
  const std::uint64_t direct = std::min(bytes, sum_of(pending));
  Bytes parts = split(direct, pending, kSectorBytes);
  Bytes from_above = split(bytes - direct, above, kSectorBytes);
  from_above[index(DiscardTrigger::other)] += bytes - direct - sum_of(from_above);
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    triggers_[i].pending -= std::min(parts[i], triggers_[i].pending);
    triggers_[i].passed_down = triggers_[i].passed_down || from_above[i] > 0;
    parts[i] += from_above[i];
  }
  return parts;
}

/// In proportion to bytes, but first one for each trigger that had any bytes, as far as the requests go.
DiscardBurstFinder::Bytes DiscardBurstFinder::divide_requests(const Bytes& bytes) {
  Bytes requests{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > 0 && uncounted_requests_ > 0) {
      requests[i] = 1;
      --uncounted_requests_;
    }
  }
  const Bytes more = split(uncounted_requests_, bytes, 1);
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
  // The end is the device's last one, whichever trigger it belongs to; it is never before this burst's beginning.
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
  burst.ranges = trigger.passed_down ? std::nullopt : std::optional(trigger.ranges);
  burst.submitter = trigger.submitter;
  burst.volumes = trigger.volumes.empty() ? trigger.carriers : trigger.volumes;
  figures_[number].bytes += bytes;
  if (bytes > 0) {
    burst.end_ns = std::max(burst.end_ns, last_end);
  }
}

void DiscardBurstFinder::settle(std::vector<DiscardBurst>& ended, const DiscardTick& tick) {
  const bool in_flight = tick.requests.in_flight > 0 && tick.now_ns - moved_ns_ < kStuckNs;
  const bool any_pending =
      std::any_of(triggers_.begin(), triggers_.end(), [](const auto& trigger) { return trigger.pending > 0; });
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    Trigger& trigger = triggers_[i];
    model::DiscardBursts& figures = figures_[i];
    const bool above = !any_pending && (trigger.burst || may_be_below(trigger, tick));
    const bool waits = in_flight && (trigger.pending > 0 || above);
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
    // Submissions that never became a request of the device (refused on the way, or merged away) are forgotten.
    if (over) {
      trigger.pending = trigger.above = trigger.first_ns = trigger.ranges = 0;
      trigger.passed_down = false;
      trigger.volumes.clear();
      trigger.carriers.clear();
    }
  }
}

bool callers_discard(const model::Filesystem& filesystem) {
  return filesystem.discard && !waits_for_a_thread(filesystem);
}

std::vector<model::FilesystemDiscards> FilesystemDiscardCounter::observe(
    const std::vector<model::Filesystem>& filesystems, const std::map<std::string, model::DiscardSubmitters>& submitted,
    std::chrono::system_clock::time_point now) {
  std::map<Key, Entry> before = std::exchange(entries_, {});
  std::vector<model::FilesystemDiscards> trimmed_twice;
  for (const model::Filesystem& filesystem : filesystems) {
    for (const std::string& volume : filesystem.volumes) {
      const auto sent = submitted.find(volume);
      const Key key{volume, filesystem.mountpoint, filesystem.discard};
      // A file system on an array is listed for each of the array's drives.
      if (sent == submitted.end() || entries_.count(key) != 0) {
        continue;
      }
      Entry& entry = entries_[key];
      if (const auto known = before.find(key); known != before.end()) {
        entry = std::move(known->second);
      } else {
        entry.figures = {volume, filesystem.mountpoint, filesystem.discard, {}, now};
        entry.cursor.advance(sent->second);
      }
      entry.callers_discard = callers_discard(filesystem);
      const bool was_trimmed = trimmed_bytes(entry.figures) > 0;
      const auto increments = entry.cursor.advance(sent->second);
      for (std::size_t i = 0; i < increments.size(); ++i) {
        entry.figures.bytes[index(trigger_of(i, filesystem.discard, entry.callers_discard))] += increments[i].bytes;
      }
      if (filesystem.discard && !was_trimmed && trimmed_bytes(entry.figures) > 0) {
        trimmed_twice.push_back(entry.figures);
      }
    }
  }
  return trimmed_twice;
}

std::vector<model::FilesystemDiscards> FilesystemDiscardCounter::figures() const {
  std::vector<model::FilesystemDiscards> figures;
  std::transform(entries_.begin(), entries_.end(), std::back_inserter(figures),
                 [](const auto& entry) { return entry.second.figures; });
  return figures;
}

}  // namespace ssdpulse::discards
