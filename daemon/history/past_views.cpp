// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "daemon/history/load_codec.h"
#include "daemon/history/past_reader.h"

namespace ssdpulse::history {
namespace {

using model::PastDay;

constexpr std::int64_t kSlotMinutes = PastDay::kSlot.count();
constexpr std::int64_t kSlotMs = kSlotMinutes * 60'000;

std::optional<double> bytes_in(const std::optional<model::Bytes>& counter, const std::optional<std::int64_t>& unit) {
  const auto count = counter && unit && *unit > 0 ? decode_counter(*counter) : std::nullopt;
  return count ? std::optional(static_cast<double>(*count * static_cast<model::Uint128>(*unit))) : std::nullopt;
}

/// What was counted between two readings of one counter.
std::optional<double> between(const std::optional<double>& before, const std::optional<double>& after) {
  return before && after && *after >= *before ? std::optional(*after - *before) : std::nullopt;
}

void keep_larger(std::optional<double>& value, const std::optional<double>& more) {
  if (more && (!value || *value < *more)) {
    value = more;
  }
}

/// Of a drive's write counters, in bytes.
struct Reading {
  std::optional<double> host;
  std::optional<double> media;
  util::OutsideText source;
};

std::uint64_t ios_of(const model::DeviceInterval& load) {
  return std::accumulate(load.operations.begin(), load.operations.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const model::OperationInterval& one) { return sum + one.ios; });
}

PastDay::Device* device_of(PastDay& day, const std::string& name) {
  const auto found = std::find_if(day.devices.begin(), day.devices.end(),
                                  [&](const PastDay::Device& one) { return one.name == name; });
  return found == day.devices.end() ? nullptr : &*found;
}

/// Calls `each` with the slots that the time touches; false if it lies outside the day.
template <typename Each>
bool each_slot(PastDay& day, PastDay::Device& device, std::int64_t begin_ms, double seconds, Each each) {
  constexpr double kMaxSeconds = 7 * 86'400.0;  // we never write a longer one
  const auto length = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, kMaxSeconds) * 1000));
  const std::int64_t begin = begin_ms - milliseconds_of(day.window.from);
  const std::int64_t last = begin + std::max<std::int64_t>(length - 1, 0);
  constexpr std::int64_t kEnd = kSlotMs * static_cast<std::int64_t>(PastDay::kSlots);
  if (last < 0 || begin >= kEnd) {
    return false;
  }
  for (std::int64_t slot = std::max<std::int64_t>(begin, 0) / kSlotMs; slot <= std::min(last, kEnd - 1) / kSlotMs;
       ++slot) {
    each(device.slots.at(static_cast<std::size_t>(slot)));
  }
  return true;
}

bool is_worse(const PastDay::Worst& one, const PastDay::Worst& other) {
  return std::pair(one.excess_seconds, one.peak_seconds) > std::pair(other.excess_seconds, other.peak_seconds);
}

}  // namespace

/// What the drive reported, at the end of each point of the series.
Outcome<void> PastReader::add_drive(const Found& found, model::Series& series) {
  std::string drives;  // ids, one for each firmware
  // Of several subsystems with one serial number, the identity has the right one, if the subsystem's name does not.
  Statement ids(connection_,
                "SELECT id FROM drive WHERE serial = ?1 AND model = ?2 AND (nqn = '' OR instr(nqn, ?1) > 0 OR "
                "instr(?3, nqn) > 0 OR instr(?3, ' | subsystem ') = 0)");
  ids.with(found.device.serial.raw()).with(found.device.model.raw()).with(found.device.identity.raw());
  const auto read =
      ids.each([&] { drives += (drives.empty() ? "" : ",") + std::to_string(ids.integer(0).value_or(0)); });
  if (!read || drives.empty()) {
    return read;
  }
  const auto step = series.step.count();
  std::optional<Reading> before;
  const auto take = [&](const Statement& row) {
    const std::int64_t minute = row.integer(0).value_or(0);
    const model::Minute start = minute_of(minute / step * step);
    if (series.wear.empty() || series.wear.back().at != start) {
      series.wear.emplace_back().at = start;
    }
    model::PastWear& wear = series.wear.back();
    wear.percentage_used = row.real(1);
    wear.available_spare = row.real(2);
    keep_larger(wear.temperature_celsius, row.real(3));
    wear.host_unit_bytes = static_cast<double>(row.integer(5).value_or(0));
    wear.media_unit_bytes = static_cast<double>(row.integer(7).value_or(0));
    Reading now{bytes_in(row.blob(4), row.integer(5)), bytes_in(row.blob(6), row.integer(7)), row.text(8).value_or("")};
    if (before && before->source == now.source) {
      const auto host = between(before->host, now.host);
      const auto media = between(before->media, now.media);
      if (host && media) {
        wear.host_bytes = wear.host_bytes.value_or(0) + *host;
        wear.media_bytes = wear.media_bytes.value_or(0) + *media;
        wear.source = now.source;
      }
    }
    before = std::move(now);
    return true;
  };
  return slices().read(
      "SELECT minute, percentage_used, available_spare, temperature_celsius, host_count, host_unit_bytes, media_count, "
      "media_unit_bytes, source FROM drive_minute WHERE minute BETWEEN ? AND ? AND drive IN (" +
          drives + ") AND NOT " + stamped_ahead("drive_minute", "minute") + " ORDER BY minute, measured",
      number_of(series.window.from), number_of(series.window.to) - 1, take);
}

Outcome<void> PastReader::add_measured(const std::vector<Found>& devices, model::PastTime at,
                                       model::PastMoment& moment) {
  const auto kept_by_minute = [&](const Lane& lane) { return number_of(at) >= lane.minutes_from; };
  const bool minute = std::all_of(devices.begin(), devices.end(), [&](const Found& one) {
    return std::all_of(one.lanes.begin(), one.lanes.end(), kept_by_minute);
  });
  const auto length = minute ? std::chrono::minutes(1) : std::chrono::minutes(kHour);
  const model::Minute start = minute ? at : minute_of(hour_of(number_of(at)));
  moment.window = {start, start + length};
  for (const Found& one : devices) {
    std::optional<model::PastMoment::Measured> sum;
    for (const Lane& lane : one.lanes) {
      if (lane.last_minute < number_of(start)) {
        continue;
      }
      const bool by_minute = kept_by_minute(lane);
      auto read = loads(one, lane, by_minute ? "device_minute" : "device_hour", number_of(start),
                        number_of(by_minute ? start + length : start + std::chrono::minutes(1)) - 1, length,
                        [&](model::MinuteOf&& load) {
                          sum = sum.value_or(model::PastMoment::Measured{load.device, 0, 0});
                          sum->measured_ms += load.load.measured_ms;
                          sum->ios += ios_of(load.load);
                        });
      if (!read) {
        return read;
      }
    }
    if (sum) {
      moment.devices.push_back(std::move(*sum));
    }
  }
  return {};
}

/// The lanes that go on for longest come first: the others' neighbours are then mostly known to be farther away.
Outcome<void> PastReader::add_neighbours(const std::vector<Found>& devices, model::PastMoment& moment) {
  std::vector<Lane> lanes;
  for (const Found& one : devices) {
    lanes.insert(lanes.end(), one.lanes.begin(), one.lanes.end());
  }
  std::sort(lanes.begin(), lanes.end(), [](const Lane& a, const Lane& b) { return a.last_minute > b.last_minute; });
  for (const Lane& lane : lanes) {
    const bool has_later = lane.last_minute >= number_of(moment.window.to);
    if (!has_later && moment.recorded_until && minute_of(hour_of(lane.last_minute) + kHour) <= *moment.recorded_until) {
      continue;
    }
    for (const auto& [table, length] : {std::pair{"device_hour", kHour}, std::pair{"device_minute", std::int64_t{1}}}) {
      const auto before = nearest(lane, table, "DESC", 0, number_of(moment.window.from) - length);
      const auto after = nearest(lane, table, "ASC", number_of(moment.window.to), kMinutesOfADevice - 1);
      if (!before || !after) {
        return tl::unexpected(!before ? before.error() : after.error());
      }
      if (*before) {
        const model::Minute until = minute_of(**before + length);
        moment.recorded_until = std::max(moment.recorded_until.value_or(until), until);
      }
      if (*after) {
        const model::Minute from = minute_of(**after);
        moment.recorded_from = std::min(moment.recorded_from.value_or(from), from);
      }
    }
  }
  return {};
}

/// Without what a clock stamped that was ahead: that happened at another time.
Outcome<void> PastReader::add_events(model::PastTime at, model::PastMoment& moment) {
  const model::WallTime begin = at;
  const model::WallTime end = begin + std::chrono::minutes(1);
  const auto from = milliseconds_of(begin - kLongestMark);
  return spikes(from, milliseconds_of(end) - 1,
                [&](model::PastSpike&& one) {
                  if (!one.clock_ahead && end_of(one.begin, one.duration_seconds) >= begin) {
                    moment.spikes.push_back(std::move(one));
                  }
                })
      .and_then([&] {
        return bursts(from, milliseconds_of(end + std::chrono::hours(1)), [&](model::PastBurst&& one) {
          const bool touches =
              !one.clock_ahead && std::any_of(moment.spikes.begin(), moment.spikes.end(), [&](const auto& spike) {
                constexpr std::chrono::seconds kTimeTolerance{2};
                return spike.device == one.device &&
                       one.begin <= end_of(spike.begin, spike.duration_seconds) + kTimeTolerance &&
                       end_of(one.begin, one.duration_seconds) >= spike.begin - kTimeTolerance;
              });
          if (touches) {
            moment.bursts.push_back(std::move(one));
          }
        });
      })
      .and_then([&] {
        return waits(milliseconds_of(begin - kLongestWait), milliseconds_of(end) - 1, [&](model::PastWait&& one) {
          if (!one.clock_ahead && end_of(one.begin, one.duration_seconds) >= begin) {
            moment.waits.push_back(std::move(one));
          }
        });
      });
}

Outcome<model::PastMoment> PastReader::moment(model::PastTime at) {
  while (true) {
    model::PastMoment moment;
    const auto devices = all();
    auto kept = account();
    if (!devices || !kept) {
      return tl::unexpected(devices ? kept.error() : devices.error());
    }
    moment.reach = reach_of(*kept);
    const auto done =
        add_measured(*devices, at, moment)
            .and_then([&] { return moment.devices.empty() ? add_neighbours(*devices, moment) : Outcome<void>(); })
            .and_then([&] { return add_events(at, moment); });
    if (!done) {
      return tl::unexpected(done.error());
    }
    if (const auto again = any_changed(*devices, {at, at + std::chrono::minutes(1)}); !again) {
      return tl::unexpected(again.error());
    } else if (!*again) {
      return moment;
    }
  }
}

Outcome<std::vector<model::Bytes>> PastReader::seconds(const Which& device, const model::Window& window) {
  constexpr std::chrono::minutes kLongestSpan{15};  // of one row: as much as memory held
  const auto found = find(device);
  if (!found) {
    return tl::unexpected(found.error());
  }
  std::vector<model::Bytes> all;
  return slices()
      .read("SELECT end_ms, begin_ms, device, seconds FROM spike_seconds WHERE end_ms BETWEEN ? AND ? ORDER BY end_ms",
            milliseconds_of(window.from), milliseconds_of(window.to + kLongestSpan),
            [&](const Statement& row) {
              if (row.name(2) == found->device.name && row.integer(1).value_or(0) < milliseconds_of(window.to)) {
                all.push_back(row.blob(3).value_or(model::Bytes{}));
              }
              return all.size() < Reader::kMaxSeconds;
            })
      .map([&] { return std::move(all); });
}

Outcome<std::vector<PastReader::Found>> PastReader::seen_since(model::PastTime since) {
  auto every = all();
  if (!every) {
    return tl::unexpected(every.error());
  }
  std::map<std::string, std::pair<std::pair<std::int64_t, model::PastTime>, Found>> newest;
  for (Found& found : *every) {
    const bool may_be = std::any_of(found.lanes.begin(), found.lanes.end(),
                                    [&](const Lane& lane) { return lane.last_minute >= number_of(since); });
    if (const auto done = may_be ? first_and_last(found) : Outcome<void>(); !done) {
      return tl::unexpected(done.error());
    }
    if (may_be && found.device.last >= since) {
      const std::pair last{last_measured(found), found.device.last};
      auto& known = newest[found.device.name];
      if (known.second.lanes.empty() || known.first < last) {
        known = {last, std::move(found)};
      }
    }
  }
  std::vector<Found> seen;
  for (auto& [name, one] : newest) {
    seen.push_back(std::move(one.second));
  }
  return seen;
}

Outcome<void> PastReader::add_day_of(const Found& found, model::PastDay& day) {
  const std::int64_t from = number_of(day.window.from);
  const std::int64_t to = number_of(day.window.to);
  PastDay::Device device;
  device.name = found.device.name;
  const auto read = [&](const Lane& lane, const std::string& table, std::int64_t first, std::int64_t last,
                        std::int64_t length) {
    return read_lane(lane, "SELECT at FROM " + table, "NOT " + row_ahead(table), first, last,
                     [&, length](std::int64_t minute, const Statement&) {
                       for (std::int64_t at = std::max(minute, from); at < std::min(minute + length, to); ++at) {
                         ++device.slots.at(static_cast<std::size_t>((at - from) / kSlotMinutes)).measured_minutes;
                       }
                     });
  };
  const EachLoad add_to_hour = [&](model::MinuteOf&& one) {
    device.hour_measured_ms += one.load.measured_ms;
    model::add(device.hour_reads, one.load.latency(model::Latency::read_total));
    model::add(device.hour_writes, one.load.latency(model::Latency::write_total));
  };
  return try_each(
             found.lanes,
             [&](const Lane& lane) {
               const std::int64_t last_hour = std::min(lane.minutes_from - kHour, to - 1);
               return read(lane, "device_hour", hour_of(from), last_hour, kHour)
                   .and_then([&] { return read(lane, "device_minute", std::max(from, lane.minutes_from), to - 1, 1); })
                   .and_then([&] {
                     return loads(found, lane, "device_minute", number_of(day.hour.from), number_of(day.hour.to) - 1,
                                  std::chrono::minutes(1), add_to_hour);
                   });
             })
      .map([&] { day.devices.push_back(std::move(device)); });
}

Outcome<void> PastReader::add_day_spikes(model::PastDay& day) {
  return slices().read(
      "SELECT begin_ms, device, operation, cause, duration_seconds, peak_seconds, excess_seconds FROM "
      "latency_spike WHERE begin_ms BETWEEN ? AND ? AND NOT " +
          stamped_ahead("latency_spike", "begin_ms / 60000") + " ORDER BY begin_ms",
      milliseconds_of(day.window.from - kLongestMark), milliseconds_of(day.window.to) - 1, [&](const Statement& row) {
        const std::int64_t begin = row.integer(0).value_or(0);
        auto* device = device_of(day, row.name(1));
        if (device == nullptr) {
          return true;
        }
        const PastDay::Worst spike{time_of(begin),          row.text(2).value_or(""), row.text(3).value_or(""),
                                   row.real(4).value_or(0), row.real(5).value_or(0),  row.real(6).value_or(0)};
        const bool there = each_slot(day, *device, begin, spike.duration_seconds, [&](PastDay::Slot& slot) {
          ++slot.spikes;
          if (!slot.worst || is_worse(spike, *slot.worst)) {
            slot.worst = spike;
          }
        });
        device->spikes += there ? 1 : 0;
        return true;
      });
}

Outcome<void> PastReader::add_day_bursts(model::PastDay& day) {
  return slices().read(
      "SELECT begin_ms, device, duration_seconds FROM discard_burst WHERE begin_ms BETWEEN ? AND ? AND NOT " +
          stamped_ahead("discard_burst", "begin_ms / 60000") + " ORDER BY begin_ms",
      milliseconds_of(day.window.from - kLongestMark), milliseconds_of(day.window.to) - 1, [&](const Statement& row) {
        if (auto* device = device_of(day, row.name(1)); device != nullptr) {
          const bool there = each_slot(day, *device, row.integer(0).value_or(0), row.real(2).value_or(0),
                                       [](PastDay::Slot& slot) { ++slot.bursts; });
          device->bursts += there ? 1 : 0;
        }
        return true;
      });
}

Outcome<model::PastDay> PastReader::day(model::PastTime at) {
  const model::Minute to = minute_of((number_of(at) / kSlotMinutes + 1) * kSlotMinutes);
  while (true) {
    auto before = account();
    if (!before) {
      return tl::unexpected(before.error());
    }
    PastDay day;
    day.window = {to - PastDay::kSlot * PastDay::kSlots, to};
    day.hour = {at - std::chrono::hours(1), at};
    const auto devices = seen_since(day.window.from);
    if (!devices) {
      return tl::unexpected(devices.error());
    }
    day.reach = reach_of(*before);
    const auto again = try_each(*devices, [&](const Found& found) { return add_day_of(found, day); })
                           .and_then([&] { return add_day_spikes(day); })
                           .and_then([&] { return add_day_bursts(day); })
                           .and_then([&] { return any_changed(*devices, day.window); });
    if (!again) {
      return tl::unexpected(again.error());
    }
    if (!*again) {
      return day;
    }
  }
}

}  // namespace ssdpulse::history
