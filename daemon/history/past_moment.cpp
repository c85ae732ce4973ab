// SPDX-License-Identifier: Apache-2.0
// What is known about one minute, for all devices? And about the seconds around the spikes of one device?
#include <algorithm>
#include <numeric>

#include "daemon/history/clock_steps.h"
#include "daemon/history/past_reader.h"

namespace ssdpulse::history {
namespace {

model::WallTime end_of(model::WallTime begin, double seconds) {
  return begin + std::chrono::duration_cast<model::WallTime::duration>(std::chrono::duration<double>(seconds));
}

std::uint64_t ios_of(const model::DeviceInterval& load) {
  return std::accumulate(load.operations.begin(), load.operations.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const model::OperationInterval& one) { return sum + one.ios; });
}

}  // namespace

Outcome<void> PastReader::add_measured(const std::vector<Found>& devices, model::PastTime at,
                                       model::PastMoment& moment) {
  const auto kept_by_minute = [&](const Lane& lane) { return number_of(at) >= lane.minutes_from; };
  const bool minute = std::all_of(devices.begin(), devices.end(), [&](const Found& one) {
    return std::all_of(one.lanes.begin(), one.lanes.end(), kept_by_minute);
  });
  const auto length = minute ? std::chrono::minutes(1) : std::chrono::minutes(kHour);
  const Minute start = minute ? at : minute_of(hour_of(number_of(at)));
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

/// The lanes that go on for longest come first: what the others have is mostly known to be farther away.
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
      const auto nearest = [&, table = table](const char* order, std::int64_t from, std::int64_t to) {
        Statement row(connection_, ("SELECT at FROM " + std::string(table) + " WHERE at BETWEEN ? AND ? AND NOT " +
                                    row_ahead(table) + " ORDER BY at " + order + " LIMIT 1")
                                       .c_str());
        return row.with(key_of(lane.id, std::max<std::int64_t>(from, 0)))
            .with(key_of(lane.id, to))
            .step()
            .map([&](bool) { return row.integer(0); });
      };
      const auto before = nearest("DESC", 0, number_of(moment.window.from) - length);
      const auto after = nearest("ASC", number_of(moment.window.to), kMinutesOfADevice - 1);
      if (!before || !after) {
        return tl::unexpected(!before ? before.error() : after.error());
      }
      if (*before) {
        const Minute until = minute_of(minute_of_key(**before) + length);
        moment.recorded_until = std::max(moment.recorded_until.value_or(until), until);
      }
      if (*after) {
        const Minute from = minute_of(minute_of_key(**after));
        moment.recorded_from = std::min(moment.recorded_from.value_or(from), from);
      }
    }
  }
  return {};
}

/// What a clock stamped that was ahead happened at another time.
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
    bool again = false;  // minutes became hours meanwhile
    for (const Found& one : *devices) {
      const auto other = changed(one, {at, at + std::chrono::minutes(1)}, false);
      if (!other) {
        return tl::unexpected(other.error());
      }
      again = again || *other;
    }
    if (!again) {
      return moment;
    }
  }
}

Outcome<std::vector<Bytes>> PastReader::seconds(const Which& device, const model::Window& window) {
  constexpr std::chrono::minutes kLongestSeconds{15};  // as many as memory held when they were kept
  const auto found = find(device);
  if (!found) {
    return tl::unexpected(found.error());
  }
  std::vector<Bytes> all;
  return slices()
      .read("SELECT end_ms, begin_ms, device, seconds FROM spike_seconds WHERE end_ms BETWEEN ? AND ? ORDER BY end_ms",
            milliseconds_of(window.from), milliseconds_of(window.to + kLongestSeconds),
            [&](const Statement& row) {
              if (row.name(2) == found->device.name && row.integer(1).value_or(0) < milliseconds_of(window.to)) {
                all.push_back(row.blob(3).value_or(Bytes{}));
              }
              return all.size() < Reader::kMaxSeconds;
            })
      .map([&] { return std::move(all); });
}

}  // namespace ssdpulse::history
