// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/drive_readings.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace ssdpulse::spikes {
namespace {

using model::NvmeField;
using model::NvmeValue;

double quantile(std::vector<double> values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double min_bytes(double doubt_bytes) {
  return std::max(UsualMedia::kMinBytes, UsualMedia::kMinUncertainties * doubt_bytes);
}

/// Counters and levels with which a drive reports that it is slowing itself down because of heat.
bool is_heat_event(const NvmeValue& value) {
  return value.field == NvmeField::thermal_management_transitions ||
         value.field == NvmeField::thermal_management_seconds || value.field == NvmeField::thermal_throttle_events ||
         value.field == NvmeField::thermal_throttle_seconds;
}
bool is_heat_flag(const NvmeValue& value) {
  return value.field == NvmeField::thermal_throttle_level ||
         (value.field == NvmeField::critical_warning && value.label == "temperature");
}
/// A drive that has ever counted its throttling would count it now. (Whole minutes may come later.)
bool counts_throttling(const std::vector<NvmeValue>& events) {
  return std::any_of(events.begin(), events.end(), [](const NvmeValue& value) {
    return value.value > 0 && value.field != NvmeField::thermal_throttle_seconds;
  });
}
bool is_gc_event(const NvmeValue& value) {
  return (value.field == NvmeField::fdp_events && value.label == "media_reallocated") ||
         (value.field == NvmeField::background_operations && value.label == "forced_garbage_collection");
}

/// How much the counters that both readings have rose: one that was unknown before covers the drive's life.
double risen(const std::vector<NvmeValue>& before, const std::vector<NvmeValue>& after) {
  double sum = 0;
  for (const NvmeValue& now : after) {
    const auto was = std::find_if(before.begin(), before.end(),
                                  [&](const NvmeValue& value) { return model::same_series(value, now); });
    sum += was != before.end() ? std::max(0.0, now.value - was->value) : 0;
  }
  return sum;
}

}  // namespace

void UsualMedia::learn(double host_bytes, double media_bytes, double seconds, double doubt_bytes) {
  begun_.host += std::max(0.0, host_bytes);
  begun_.media += std::max(0.0, media_bytes);
  begun_.seconds += seconds;
  if (begun_.seconds <= 0 || std::max(begun_.host, begun_.media) < min_bytes(doubt_bytes)) {
    return;
  }
  intervals_.push_back({begun_.host / begun_.seconds, begun_.media / begun_.seconds, begun_.seconds});
  begun_ = {};
  if (intervals_.size() > kMaxIntervals) {
    intervals_.pop_front();
  }
  estimate();
}

void UsualMedia::learn_life(double host_bytes, double media_bytes, double doubt_bytes) {
  if (intervals_.empty() && host_bytes >= min_bytes(doubt_bytes)) {
    ratio_ = std::max(1.0, media_bytes / host_bytes);
  }
}

/// What a byte costs according to each interval: the median of the slopes between it and the intervals of a different
/// load (Siegel). The ratio is the lower quartile of these costs; the background is the median of what is left.
void UsualMedia::estimate() {
  std::vector<double> costs;
  for (const Interval& own : intervals_) {
    std::vector<double> slopes;
    for (const Interval& other : intervals_) {
      const double more = own.host - other.host;
      if (std::abs(more) > kDifferentLoad * std::max(own.host, other.host)) {
        slopes.push_back((own.media - other.media) / more);
      }
    }
    if (!slopes.empty()) {
      costs.push_back(quantile(std::move(slopes), 0.5));
    }
  }
  ratio_ = costs.empty() ? 1 : std::max(1.0, quantile(std::move(costs), kLowerQuartile));
  std::vector<double> rest;
  for (const Interval& interval : intervals_) {
    rest.push_back(interval.media - ratio_ * interval.host);
  }
  background_ = std::max(0.0, quantile(std::move(rest), 0.5));
}

DriveReadings::Reading DriveReadings::read(const model::NvmeDrive& drive) {
  Reading reading;
  for (const NvmeValue& value : drive.values) {
    if (is_heat_event(value)) {
      reading.heat_events.push_back(value);
    } else if (is_heat_flag(value)) {
      reading.hot = reading.hot || value.value > 0;
    } else if (value.field == NvmeField::temperature_celsius && value.label == "composite") {
      reading.celsius = value.value;
    } else if (is_gc_event(value)) {
      reading.gc_events.push_back(value);
    } else if (value.field == NvmeField::free_blocks_ratio && value.label == "user") {
      reading.free_blocks = value.value;
    }
  }
  return reading;
}

void DriveReadings::observe(const model::NvmeDrive& drive, bool healthy) {
  const auto& read_at = drive.polling.read_at;
  spoiled_ = spoiled_ || !healthy;
  const bool known = !readings_.empty() && readings_.back().at == read_at;
  // The meaning of a reading's counters may become known a moment later than their values.
  if (known && !readings_.back().media_bytes && drive.write_amplification.media_written_bytes &&
      media_at_ == drive.write_amplification.read_at) {
    media_at_.reset();
    readings_.pop_back();
  } else if (!read_at || known) {
    return;
  }
  Reading reading = read(drive);
  reading.at = *read_at;
  const auto& writes = drive.write_amplification;
  if (writes.read_at && writes.read_at != media_at_) {
    media_at_ = writes.read_at;
    if (std::exchange(epochs_, writes.epochs) != writes.epochs) {
      for (Reading& earlier : readings_) {  // no difference shows what was lost when the counters fell
        earlier.host_bytes = earlier.media_bytes = std::nullopt;
      }
    }
    reading.host_bytes = writes.host_written_bytes;
    reading.media_bytes = writes.media_written_bytes;
    reading.host_doubt_bytes = writes.host_doubt_bytes;
    reading.media_doubt_bytes = writes.media_doubt_bytes;
    const auto before = std::find_if(readings_.rbegin(), readings_.rend(),
                                     [](const Reading& earlier) { return earlier.media_bytes.has_value(); });
    learn_usual(before != readings_.rend() ? *before : Reading{}, reading);
    spoiled_ = !healthy;
  }
  reading.usual_ratio = usual_.ratio();
  reading.usual_background = usual_.background();
  readings_.push_back(reading);
  if (readings_.size() > kMaxReadings) {
    readings_.pop_front();
  }
}

/// From intervals between readings without a spike; until there are enough, from the drive's whole life.
void DriveReadings::learn_usual(const Reading& before, const Reading& now) {
  if (spoiled_ || !now.host_bytes || !now.media_bytes) {
    return;
  }
  const double doubt = now.host_doubt_bytes + now.media_doubt_bytes;
  usual_.learn_life(*now.host_bytes, *now.media_bytes, doubt);
  if (before.host_bytes && before.media_bytes) {
    usual_.learn(*now.host_bytes - *before.host_bytes, *now.media_bytes - *before.media_bytes,
                 seconds_between(before.at, now.at), doubt);
  }
}

DriveVerdict DriveReadings::judge(SteadyTime began, SteadyTime ended) const {
  DriveVerdict verdict;
  // From the last reading before the spike to the first after it.
  auto first = std::find_if(readings_.begin(), readings_.end(), [&](const Reading& r) { return r.at > began; });
  const bool has_before = first != readings_.begin();
  if (has_before) {
    --first;
  }
  auto end = std::find_if(first, readings_.end(), [&](const Reading& r) { return r.at >= ended; });
  verdict.complete = end != readings_.end();
  if (verdict.complete) {
    ++end;
  }
  if (!has_before) {
    verdict.missing.emplace_back("no log page was read before the spike");
  } else if (end - first < 2) {
    verdict.missing.emplace_back("no log page was read since the spike began");
  }
  if (first != end) {
    judge_media(first, end, verdict);
    judge_collection(*first, *std::prev(end), verdict);
    judge_heat(began, first, end, verdict);
  }
  return verdict;
}

/// Judges the whole interval around the spike, and the parts of it that begin at a reading within the spike, if there
/// are any: a short spike is only a small part of a long interval.
void DriveReadings::judge_media(Position first, const Position& end, DriveVerdict& verdict) const {
  const bool read_since = end - first >= 2;
  // While nothing is written, media writes are not read: an old value then still holds just before the spike.
  while (first != readings_.begin() && !first->media_bytes) {
    --first;
  }
  const Reading& before = *first;
  std::vector<const Reading*> counted;
  for (; first != end; ++first) {
    if (first->host_bytes && first->media_bytes) {
      counted.push_back(&*first);
    }
  }
  for (std::size_t from = 0; from + 1 < counted.size(); ++from) {
    const Reading& last = *counted.back();
    const double host = *last.host_bytes - *counted[from]->host_bytes;
    const double media = *last.media_bytes - *counted[from]->media_bytes;
    const double seconds = seconds_between(counted[from]->at, last.at);
    // Two counters with large units seldom step in the same poll: only a difference that the units cannot hide counts.
    const double max_host = host + last.host_doubt_bytes;
    const double min_media = media - last.media_doubt_bytes;
    const double usual = before.usual_ratio * max_host + before.usual_background * seconds;
    const bool outrun = min_media >= kOutrun * usual && min_media - usual >= kMinExcessBytes;
    if (outrun || from == 0) {
      verdict.evidence[model::EvidenceKey::host_written_bytes] = host;
      verdict.evidence[model::EvidenceKey::media_written_bytes] = media;
      verdict.evidence[model::EvidenceKey::baseline_write_amplification] = before.usual_ratio;
    }
    if (outrun) {
      verdict.gc = true;
      break;
    }
  }
  if (counted.empty()) {
    verdict.missing.emplace_back("the drive does not count media writes");
  } else if (counted.size() < 2 && read_since) {
    verdict.missing.emplace_back("media writes were not read around the spike");
  }
}

void DriveReadings::judge_collection(const Reading& before, const Reading& after, DriveVerdict& verdict) {
  if (const double events = risen(before.gc_events, after.gc_events); events > 0) {
    verdict.gc = true;
    verdict.evidence[model::EvidenceKey::gc_events] = events;
  }
  // A share that never moves says nothing: the low value must be new.
  if (before.free_blocks && after.free_blocks && *after.free_blocks <= kFewFreeBlocks &&
      *after.free_blocks < *before.free_blocks) {
    verdict.gc = true;
    verdict.evidence[model::EvidenceKey::free_blocks] = *after.free_blocks;
  }
}

/// Drives show a flag for a single reading by mistake. The next reading shows it too, or the drive has become warmer.
bool DriveReadings::confirmed(Position hot) const {
  const auto next = std::next(hot);
  if ((next != readings_.end() && next->hot) || (hot != readings_.begin() && std::prev(hot)->hot)) {
    return true;
  }
  const auto cool = std::find_if(std::make_reverse_iterator(hot), readings_.rend(),
                                 [](const Reading& reading) { return !reading.hot && reading.celsius; });
  return cool != readings_.rend() && hot->celsius && *hot->celsius >= *cool->celsius + kWarmerCelsius;
}

void DriveReadings::judge_heat(SteadyTime began, const Position& first, const Position& end,
                               DriveVerdict& verdict) const {
  const Reading& last = *std::prev(end);
  const double events = risen(first->heat_events, last.heat_events);
  const auto hot = std::find_if(first, end, [&](const Reading& reading) { return reading.at >= began && reading.hot; });
  const bool was_cool = std::any_of(readings_.begin(), readings_.end(), [&](const Reading& reading) {
    return reading.at <= began && seconds_between(reading.at, began) <= kHeatSeconds && !reading.hot;
  });
  verdict.thermal = events > 0;
  if (events > 0) {
    verdict.evidence[model::EvidenceKey::thermal_events] = events;
  }
  if (hot == end) {
    return;
  }
  verdict.evidence[model::EvidenceKey::thermal_warning] = 1;
  if (events > 0 || !was_cool) {
    return;
  }
  if (end - first >= 2 && counts_throttling(first->heat_events) && counts_throttling(last.heat_events)) {
    verdict.missing.emplace_back("the drive warns of its temperature, but its counters of throttling stand still");
  } else if (confirmed(hot)) {
    verdict.thermal = true;
  } else {
    verdict.complete = verdict.complete && std::next(hot) != readings_.end();
    verdict.missing.emplace_back("a single reading warns of the drive's temperature");
  }
}

}  // namespace ssdpulse::spikes
