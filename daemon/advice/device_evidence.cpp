// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/device_evidence.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/advice/measured.h"

namespace ssdpulse::advice {
namespace {

using model::Latency;
using model::SparseHistogram;

constexpr std::uint64_t kMinOthers = 30;             // I/Os of a minute that show what is usual in it
constexpr std::uint64_t kMinForP99 = 3000;           // 30 of them are beyond it
constexpr double kTick = 1;                          // seconds between two readings by the recorder
constexpr double kMaxSeconds = 30 * kSecondsPerDay;  // of a burst, whatever the file contains

model::WallTime::duration wall_seconds(double seconds) {
  return std::chrono::duration_cast<model::WallTime::duration>(std::chrono::duration<double>(seconds));
}

double seconds_of(const SparseHistogram& histogram) { return static_cast<double>(histogram.sum_ns) / 1e9; }

SparseHistogram sum_of(const model::DeviceInterval& load, Latency a, Latency b) {
  SparseHistogram sum = load.latency(a);
  model::add(sum, load.latency(b));
  return sum;
}

/// I/Os that overlapped a discard, and the others.
struct ByDiscards {
  SparseHistogram during;
  SparseHistogram others;
};

ByDiscards by_discards(const model::DeviceInterval& load, bool reads) {
  return reads ? ByDiscards{sum_of(load, Latency::read_device_discard, Latency::read_device_both),
                            sum_of(load, Latency::read_device_none, Latency::read_device_flush)}
               : ByDiscards{sum_of(load, Latency::write_device_discard, Latency::write_device_both),
                            sum_of(load, Latency::write_device_none, Latency::write_device_flush)};
}

/// I/Os that took at least that long, and the others. The sum is exact for both together, and divided between them by
/// the bounds of their buckets.
std::pair<SparseHistogram, SparseHistogram> split(const SparseHistogram& all, double min_seconds) {
  SparseHistogram longer;
  SparseHistogram shorter;
  double seconds_of_longer = 0;
  double seconds_of_all = 0;
  for (const auto& [bucket, ios] : all.words) {
    const double bound = model::upper_bound_seconds(bucket);
    const double seconds = bound * static_cast<double>(ios);
    const bool is_longer = bound >= min_seconds;
    (is_longer ? longer : shorter).words.emplace_back(bucket, ios);
    seconds_of_longer += is_longer ? seconds : 0;
    seconds_of_all += seconds;
  }
  const double share = seconds_of_all > 0 ? seconds_of_longer / seconds_of_all : 0;
  const auto sum_ns = static_cast<std::uint64_t>(share * static_cast<double>(all.sum_ns));
  longer.sum_ns = shorter.empty() ? all.sum_ns : std::min(all.sum_ns, sum_ns);
  shorter.sum_ns = all.sum_ns - longer.sum_ns;
  return {std::move(longer), std::move(shorter)};
}

std::optional<double> p99(const SparseHistogram& histogram) {
  constexpr double kShare = 0.99;
  return histogram.count() < kMinForP99
             ? std::nullopt
             : std::optional(model::upper_bound_seconds(model::quantile_bucket(histogram.words, kShare)));
}

template <std::size_t kCount>
std::optional<std::size_t> index_in(const std::array<std::string_view, kCount>& names, const std::string& name) {
  const auto* found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - names.begin()));
}

std::optional<double> media_bytes_per_day(const std::vector<model::PastWear>& wear) {
  double bytes = 0;
  bool any = false;
  for (const model::PastWear& reading : wear) {
    bytes += reading.media_bytes.value_or(0);
    any = any || reading.media_bytes.has_value();
  }
  const double seconds = wear.empty() ? 0 : std::chrono::duration<double>(wear.back().at - wear.front().at).count();
  return any && seconds >= kSecondsPerDay / 2 ? std::optional(bytes * kSecondsPerDay / seconds) : std::nullopt;
}

bool changes_trimming(const model::SettingChange& change) {
  return change.before && (change.name == "fstrim.timer" || change.name.ends_with("discard_max_bytes") ||
                           (change.name.starts_with("mount ") &&
                            change.before->contains("discard") != change.value.contains("discard")));
}

}  // namespace

std::optional<double> DeviceEvidence::per_day(double amount) const {
  return observed_seconds() > 0 ? std::optional(amount * kSecondsPerDay / observed_seconds()) : std::nullopt;
}

std::optional<double> DeviceEvidence::excess_per_day(model::Operation operation, model::SpikeCause cause,
                                                     double pending) const {
  const double seconds = excess_seconds[operation][model::index(cause)] + pending;
  return spikes_observed_seconds > 0 ? std::optional(seconds * kSecondsPerDay / spikes_observed_seconds) : std::nullopt;
}

LatencyTotal latency_total(const DeviceEvidence& past, std::initializer_list<Latency> latencies) {
  LatencyTotal sum;
  for (const Latency latency : latencies) {
    sum.ios += static_cast<double>(past.load.latency(latency).count());
    sum.seconds += seconds_of(past.load.latency(latency));
  }
  return sum;
}

std::optional<double> read_p99_during_discards(const DeviceEvidence& past) {
  return p99(by_discards(past.load, true).during);
}

std::optional<double> read_p99_without_discards(const DeviceEvidence& past) {
  return p99(by_discards(past.load, true).others);
}

EvidenceSums::EvidenceSums(const model::Series& series, double time_scale) : time_scale_(time_scale) {
  // I/Os of the second in which a burst began are in the row of the previous minute if a minute also began in that
  // second. With a scaled clock, a burst is placed up to a tick late.
  const auto early = wall_seconds(kTick * (2 * time_scale - 1));
  for (const model::PastBurst& burst : series.bursts) {
    const bool fstrim = burst.trigger == "fstrim";
    if ((!fstrim && burst.trigger != "online") || burst.clock_ahead) {
      continue;
    }
    TrimEvidence& trim = fstrim ? past_.fstrim : past_.online;
    ++trim.bursts;
    trim.bytes += burst.bytes;
    trim.burst_seconds += burst.duration_seconds;
    trim.longest_burst_seconds = std::max(trim.longest_burst_seconds, burst.duration_seconds);
    if (fstrim) {
      const double seconds = std::min(std::max(0.0, burst.duration_seconds), kMaxSeconds) * time_scale;
      fstrims_.push_back({burst.begin - early, burst.begin + wall_seconds(seconds)});
    }
  }
  for (const model::PastSpike& spike : series.spikes) {
    if (spike.clock_ahead) {
      continue;  // its minutes are left out as well
    }
    const auto operation = model::operation_named(spike.operation.raw(), model::kSpikeOperations);
    const auto cause = index_in(model::kSpikeCauseNames, spike.cause.raw());
    if (operation && cause) {
      past_.excess_seconds[*operation].at(*cause) += spike.excess_seconds;
    }
  }
  if (series.spikes.size() >= kMaxSpikes) {
    spikes_from_ = series.spikes.front().begin;
  }
  past_.media_bytes_per_day = media_bytes_per_day(series.wear);
}

/// Until the first I/O of the minute. I/Os that took longer may have been sent while fstrim ran, and have waited for
/// it.
std::optional<double> EvidenceSums::seconds_since_fstrim(const model::MinuteOf& minute) const {
  std::optional<double> shortest;
  for (const Run& run : fstrims_) {
    if (run.begin < minute.start + minute.length) {
      const std::chrono::duration<double> since = minute.start - run.end;
      const double seconds = std::max(0.0, since.count() / time_scale_);
      shortest = std::min(shortest.value_or(seconds), seconds);
    }
  }
  return shortest;
}

void EvidenceSums::add(const model::MinuteOf& minute) {
  model::add(past_.load, minute.load);
  if (!spikes_from_ || minute.start >= *spikes_from_) {
    past_.spikes_observed_seconds += static_cast<double>(minute.load.measured_ms) / 1000;
  }
  const double since_fstrim = seconds_since_fstrim(minute).value_or(std::numeric_limits<double>::infinity());
  for (const bool reads : {true, false}) {
    const auto [during, others] = by_discards(minute.load, reads);
    const auto [of_fstrim, of_others] = split(during, since_fstrim);
    add_waiting(true, reads, of_fstrim, others);
    add_waiting(false, reads, of_others, others);
  }
}

void EvidenceSums::add_discards(const model::Series& series) {
  model::WallTime since{};
  for (const model::SettingChange& change : series.settings) {
    since = changes_trimming(change) ? std::max(since, change.at) : since;
  }
  for (const model::SeriesPoint& point : series.points) {
    if (point.start >= since) {
      past_.discards_observed_seconds += static_cast<double>(point.load.measured_ms) / 1000;
      past_.discarded_bytes +=
          static_cast<double>(point.load.operations.at(model::index(model::Operation::discard)).bytes);
    }
  }
}

void EvidenceSums::add_waiting(bool fstrim, bool reads, const SparseHistogram& during, const SparseHistogram& others) {
  TrimEvidence& trim = fstrim ? past_.fstrim : past_.online;
  const auto ios = static_cast<double>(during.count());
  trim.ios += during.count();
  if (others.count() >= kMinOthers) {
    trim.excess_seconds += seconds_of(during) - ios * seconds_of(others) / static_cast<double>(others.count());
  } else {
    Waiting& waiting = waiting_.at(fstrim ? 0 : 1).at(reads ? 0 : 1);
    waiting.ios += ios;
    waiting.seconds += seconds_of(during);
  }
}

DeviceEvidence EvidenceSums::take() {
  for (const bool fstrim : {true, false}) {
    TrimEvidence& trim = fstrim ? past_.fstrim : past_.online;
    for (const bool reads : {true, false}) {
      const auto others = by_discards(past_.load, reads).others;
      const Waiting& waiting = waiting_.at(fstrim ? 0 : 1).at(reads ? 0 : 1);
      if (others.count() >= kMinOthers) {  // else it is unknown what is usual
        trim.excess_seconds += waiting.seconds - waiting.ios * seconds_of(others) / static_cast<double>(others.count());
      }
    }
    trim.excess_seconds = std::max(0.0, trim.excess_seconds);
  }
  return std::move(past_);
}

}  // namespace ssdpulse::advice
