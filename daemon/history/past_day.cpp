// SPDX-License-Identifier: Apache-2.0
// What was the last day like, for all devices at once? Reads no more of a row than it reports.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "daemon/history/clock_steps.h"
#include "daemon/history/past_reader.h"

namespace ssdpulse::history {
namespace {

using model::PastDay;

constexpr std::int64_t kSlotMinutes = PastDay::kSlot.count();
constexpr std::int64_t kSlotMs = kSlotMinutes * 60'000;

PastDay::Device* device_of(PastDay& day, const std::string& name) {
  const auto found = std::find_if(day.devices.begin(), day.devices.end(),
                                  [&](const PastDay::Device& one) { return one.name == name; });
  return found == day.devices.end() ? nullptr : &*found;
}

/// Calls `each` with the slots that the time touches; none if it lies outside the day.
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

Outcome<std::vector<PastReader::Found>> PastReader::seen_since(model::PastTime since) {
  auto every = all();
  if (!every) {
    return tl::unexpected(every.error());
  }
  std::map<std::string, std::pair<std::pair<std::int64_t, model::PastTime>, Found>> newest;
  for (Found& found : *every) {
    const bool may_be = std::any_of(found.lanes.begin(), found.lanes.end(),
                                    [&](const Lane& lane) { return lane.last_minute >= number_of(since); });
    if (!may_be) {
      continue;
    }
    if (const auto known = first_and_last(found); !known) {
      return tl::unexpected(known.error());
    }
    if (found.device.last < since) {
      continue;
    }
    const std::pair last{last_measured(found), found.device.last};
    auto& known = newest[found.device.name];
    if (known.second.lanes.empty() || known.first < last) {
      known = {last, std::move(found)};
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
  const auto read = [&](const Lane& lane, const char* table, std::int64_t first, std::int64_t last,
                        std::int64_t length) {
    if (first > last) {
      return Outcome<void>();
    }
    const auto take = [&, length](const Statement& row) {
      const std::int64_t minute = minute_of_key(row.integer(0).value_or(0));
      for (std::int64_t at = std::max(minute, from); at < std::min(minute + length, to); ++at) {
        ++device.slots.at(static_cast<std::size_t>((at - from) / kSlotMinutes)).measured_minutes;
      }
      return true;
    };
    return slices().read("SELECT at FROM " + std::string(table) + " WHERE at BETWEEN ? AND ? AND NOT " +
                             row_ahead(table) + " ORDER BY at",
                         key_of(lane.id, std::max<std::int64_t>(first, 0)), key_of(lane.id, last), take);
  };
  for (const Lane& lane : found.lanes) {
    auto done = read(lane, "device_hour", hour_of(from), std::min(lane.minutes_from - kHour, to - 1), kHour)
                    .and_then([&] { return read(lane, "device_minute", std::max(from, lane.minutes_from), to - 1, 1); })
                    .and_then([&] {
                      return loads(found, lane, "device_minute", number_of(day.hour.from), number_of(day.hour.to) - 1,
                                   std::chrono::minutes(1), [&](model::MinuteOf&& one) {
                                     device.hour_measured_ms += one.load.measured_ms;
                                     model::add(device.hour_reads, one.load.latency(model::Latency::read_total));
                                     model::add(device.hour_writes, one.load.latency(model::Latency::write_total));
                                   });
                    });
    if (!done) {
      return done;
    }
  }
  day.devices.push_back(std::move(device));
  return {};
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
  const Minute to = minute_of((number_of(at) / kSlotMinutes + 1) * kSlotMinutes);
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
    for (const Found& one : *devices) {
      if (const auto read = add_day_of(one, day); !read) {
        return tl::unexpected(read.error());
      }
    }
    if (const auto marks = add_day_spikes(day).and_then([&] { return add_day_bursts(day); }); !marks) {
      return tl::unexpected(marks.error());
    }
    bool again = false;  // minutes became hours meanwhile
    for (const Found& one : *devices) {
      const auto other = changed(one, day.window, false);
      if (!other) {
        return tl::unexpected(other.error());
      }
      again = again || *other;
    }
    if (!again) {
      return day;
    }
  }
}

}  // namespace ssdpulse::history
