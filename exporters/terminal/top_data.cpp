// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "daemon/base/number_text.h"
#include "exporters/terminal/top_answers.h"
#include "exporters/terminal/top_view.h"
#include "exporters/words/shared.h"
#include "exporters/words/terminal.h"

namespace ssdpulse::terminal {
namespace {

Tails tails_from(const Json& device, const char* kind) {
  const Json& now = at(at(device, "now"), kind);
  const double seconds = number(at(at(device, "now"), "seconds")).value_or(0);
  Tails tails;
  if (seconds > 0) {
    tails.ios_per_second = number(at(now, "ios")).value_or(0) / seconds;
    tails.bytes_per_second = number(at(now, "bytes")).value_or(0) / seconds;
  }
  tails.p50 = number(at(now, "p50"));
  tails.p99 = number(at(now, "p99"));
  tails.p999 = number(at(now, "p999"));
  tails.baseline_p99 = number(at(at(device, "baseline_p99"), kind));
  tails.standstill_seconds = number(at(now, "standstill_seconds"));
  return tails;
}

std::optional<ReadsDuring> reads_during_from(const Json& reads) {
  return reads.is_object() ? std::optional(ReadsDuring{number(at(reads, "p99"))}) : std::nullopt;
}

/// Without what its title has already.
std::string where_of(const Json& device, const std::string& title) {
  std::string where = text(at(device, "model"));
  const auto add = [&](const std::string& more) {
    if (!more.empty() && title.find(more) == std::string::npos) {
      where += (where.empty() ? "" : " ") + more;
    }
  };
  for (const Json& mount : at(device, "mounts")) {
    add(text(at(mount, "mountpoint")));
  }
  for (const std::string& array : texts(at(device, "arrays"))) {
    add(array);
  }
  return where;
}

/// Only its names.
Drive named(const Json& device) {
  Drive drive;
  drive.name = text(at(device, "name"));
  drive.use = text(at(device, "use"));
  drive.title = text(at(device, "title"));
  drive.title = drive.title.empty() ? drive.name : drive.title;
  drive.where = where_of(device, drive.title);
  return drive;
}

Drive drive_from(const Json& device) {
  Drive drive = named(device);
  drive.state = text(at(device, "state"));
  if (const Json& spikes = at(device, "spikes"); spikes.is_array() && !spikes.empty()) {
    drive.cause = util::plural_text(text(at(spikes[0], "operation"))) + ": " + text(at(spikes[0], "short_words"));
  }
  if (drive.state == "high") {
    const Json& above = at(device, "above_baseline");
    drive.cause =
        fmt::format(words::terminal::kTimesUsual, text(at(above, "operation")), number(at(above, "times")).value_or(0));
  }
  if (drive.state == "unseen") {
    drive.cause = fmt::format(words::terminal::kNotMeasuredAs, words::shared::kNoRequestSeen);
  }
  drive.spike_seconds = number(at(device, "spike_seconds")).value_or(0);
  drive.measured = at(device, "now").is_object();
  drive.read = tails_from(device, "read");
  drive.write = tails_from(device, "write");
  drive.commit = tails_from(device, "commit");
  const Json& now = at(device, "now");
  drive.during_discard = reads_during_from(at(now, "reads_during_discard"));
  drive.during_flush = reads_during_from(at(now, "reads_during_flush"));
  drive.queue_share = number(at(now, "queue_share"));
  drive.in_flight = number(at(now, "in_flight"));
  drive.busy_ratio = number(at(now, "busy_ratio"));
  const Json& nvme = at(device, "nvme");
  drive.write_amplification = number(at(at(nvme, "write_amplification"), "ratio"));
  drive.used_ratio = number(at(nvme, "used_ratio"));
  drive.temperature = number(at(nvme, "temperature_celsius"));
  return drive;
}

Tails past_tails(const Json& points, std::size_t i, const char* kind, double seconds) {
  const Json& of = at(points, kind);
  Tails tails;
  tails.ios_per_second = number(element(at(of, "ios"), i)).value_or(0) / seconds;
  tails.bytes_per_second = number(element(at(of, "bytes"), i)).value_or(0) / seconds;
  tails.p50 = number(element(at(of, "p50"), i));
  tails.p99 = number(element(at(of, "p99"), i));
  tails.p999 = number(element(at(of, "p999"), i));
  return tails;
}

/// `evidence`: the name of its sentences.
Spike spike_from(const Json& json, const char* evidence) {
  return {.begin = number(at(json, "begin")).value_or(0),
          .end = number(at(json, "end")),
          .operation = text(at(json, "operation")),
          .words = text(at(json, "words")),
          .peak_seconds = number(at(json, "peak_seconds")).value_or(0),
          .evidence = texts(at(json, evidence))};
}

/// The spikes of a history that overlap the time from `from` to `to`.
std::vector<Spike> past_spikes(const Json& history, double from, double to) {
  std::vector<Spike> spikes;
  for (const Json& json : at(history, "spikes")) {
    Spike spike = spike_from(json, "sentences");
    const double end = spike.begin + number(at(json, "seconds")).value_or(0);
    spike.end = end;
    if (spike.begin < to && end > from) {
      spikes.push_back(std::move(spike));
    }
  }
  return spikes;
}

Drive drive_at(double at_time, const Json& device, const Json& history) {
  Drive drive = named(device);
  drive.state = "unknown";
  const Json& points = at(history, "points");
  if (const auto i = point_at(history, at_time)) {
    if (const double seconds = number(element(at(points, "measured_seconds"), *i)).value_or(0); seconds > 0) {
      drive.measured = true;
      drive.read = past_tails(points, *i, "read", seconds);
      drive.write = past_tails(points, *i, "write", seconds);
      drive.commit = past_tails(points, *i, "commit", seconds);
      drive.state = drive.read.ios_per_second + drive.write.ios_per_second > 0 ? "ok" : "idle";
    }
  }
  const double minute = at_time - static_cast<double>(static_cast<std::int64_t>(at_time) % 60);
  double worst = -1;
  for (const Spike& spike : past_spikes(history, minute, minute + 60)) {
    drive.state = "slow";
    if (spike.peak_seconds > worst) {
      worst = spike.peak_seconds;
      drive.cause = util::plural_text(spike.operation) + ": " + spike.words;
    }
  }
  return drive;
}

/// As in a live answer: 1 for one I/O, 2 for two or three, and so on.
std::vector<unsigned> levels_of_minute(const Json& minute, const std::string& heat, std::size_t buckets) {
  std::vector<unsigned> levels(buckets);
  const std::string name = heat == "read" || heat == "write" ? heat + "_total" : heat;
  for (const Json& pair : at(at(at(minute, "latencies"), name.c_str()), "words")) {
    const Json& bucket = element(pair, 0);
    const Json& ios = element(pair, 1);
    if (bucket.is_number_unsigned() && ios.is_number_unsigned() && bucket.get<std::size_t>() < buckets) {
      levels[bucket.get<std::size_t>()] = static_cast<unsigned>(std::bit_width(ios.get<std::uint64_t>()));
    }
  }
  return levels;
}

std::optional<std::vector<unsigned>> levels_from(const Json& column, std::size_t buckets) {
  if (!column.is_string()) {
    return std::nullopt;
  }
  std::vector<unsigned> levels(buckets);
  const std::string packed = column.get<std::string>();
  const auto colon = packed.find(':');
  if (colon < 4) {
    std::size_t bucket = 0;
    for (const char c : packed.substr(0, colon)) {
      bucket = bucket * 10 + static_cast<std::size_t>(c >= '0' && c <= '9' ? c - '0' : 0);
    }
    for (std::size_t i = colon + 1; i < packed.size() && bucket < buckets; ++i, ++bucket) {
      levels[bucket] = packed[i] > '0' ? static_cast<unsigned>(packed[i] - '0') : 0;
    }
  }
  return levels;
}

/// Without drives yet.
Overview overview_of(double taken_at, const Json& why) {
  return {.taken_at = taken_at,
          .verdict = text(at(why, "verdict")),
          .sentence = text(at(why, "summary")),
          .remarks = text(at(why, "remarks")),
          .over = text(at(why, "past")),
          .next = text(at(why, "next"))};
}

std::vector<double> bounds_from(const Json& live) {
  std::vector<double> bounds;
  for (const Json& bound : at(live, "bounds_seconds")) {
    bounds.push_back(number(bound).value_or(0));
  }
  return bounds;
}

}  // namespace

std::optional<std::size_t> point_at(const Json& history, double at_time) {
  const Json& starts = at(at(history, "points"), "start");
  const double step = number(at(history, "step_seconds")).value_or(60);
  std::optional<std::size_t> found;
  for (std::size_t i = 0; starts.is_array() && i < starts.size(); ++i) {
    const double start = number(starts[i]).value_or(at_time + 1);
    if (start <= at_time && at_time < start + step) {
      found = i;
    }
  }
  return found;
}

Overview overview_from(const Json& devices) {
  Overview overview = overview_of(number(at(devices, "taken_at")).value_or(0), at(devices, "why"));
  for (const Json& device : at(devices, "devices")) {
    overview.drives.push_back(drive_from(device));
  }
  return overview;
}

Seconds seconds_from(const Json& live) {
  Seconds seconds;
  seconds.device = text(at(live, "device"));
  seconds.heat = text(at(at(live, "heat"), "operation"));
  seconds.bounds = bounds_from(live);
  for (const Json& column : at(at(live, "heat"), "levels")) {
    seconds.levels.push_back(levels_from(column, seconds.bounds.size()));
  }
  for (const Json& spike : at(at(live, "marks"), "spikes")) {
    seconds.spikes.push_back(spike_from(spike, "evidence"));
  }
  return seconds;
}

Overview overview_at(double at_time, const Json& devices, const Json& why,
                     const std::map<std::string, Json>& histories) {
  Overview overview = overview_of(at_time, at(why, "why"));
  overview.past = true;
  overview.step_seconds = number(at(at(at(why, "why"), "moment"), "step_seconds")).value_or(60);
  for (const Json& device : at(devices, "devices")) {
    const auto found = histories.find(text(at(device, "name")));
    overview.drives.push_back(drive_at(at_time, device, found == histories.end() ? Json() : found->second));
  }
  std::stable_partition(overview.drives.begin(), overview.drives.end(),
                        [](const Drive& drive) { return drive.state == "slow"; });
  return overview;
}

Seconds minutes_at(double at_time, const std::string& heat, std::size_t count, const Json& live, const Json& history,
                   const Json& minutes) {
  Seconds seconds;
  seconds.device = text(at(live, "device"));
  seconds.heat = heat;
  seconds.column_seconds = 60;
  seconds.bounds = bounds_from(live);
  const auto last = static_cast<std::int64_t>(at_time) / 60;
  seconds.until = static_cast<double>((last + 1) * 60);
  seconds.levels.resize(count);
  for (const Json& minute : at(minutes, "minutes")) {
    const double start = number(at(minute, "start")).value_or(-1);
    const auto back = last - static_cast<std::int64_t>(start) / 60;
    if (start >= 0 && back >= 0 && back < static_cast<std::int64_t>(count)) {
      seconds.levels[count - 1 - static_cast<std::size_t>(back)] =
          levels_of_minute(minute, heat, seconds.bounds.size());
    }
  }
  seconds.spikes = past_spikes(history, *seconds.until - 60 * static_cast<double>(count), *seconds.until);
  return seconds;
}

std::vector<Gap> gaps_from(const Json& status) {
  std::vector<Gap> gaps;
  for (const Json& gap : at(status, "not_measured")) {
    gaps.push_back({text(at(gap, "what")), text(at(gap, "why"))});
  }
  return gaps;
}

std::string host_from(const Json& status) { return text(at(status, "host")); }

}  // namespace ssdpulse::terminal
