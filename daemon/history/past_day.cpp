// SPDX-License-Identifier: Apache-2.0
// What was the last day like, for all devices at once? Reads no more of a row than it reports.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "daemon/history/past_reader.h"
#include "daemon/history/reach.h"

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
  constexpr double kMostSeconds = 7 * 86'400.0;  // we never write a longer one
  const auto length = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, kMostSeconds) * 1000));
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
  return std::pair(one.excess_seconds.value_or(0), one.peak_seconds) >
         std::pair(other.excess_seconds.value_or(0), other.peak_seconds);
}

}  // namespace

Outcome<std::vector<PastReader::Found>> PastReader::seen_since(model::PastTime since) {
  std::map<std::string, std::pair<std::int64_t, Found>> newest;
  return slices()
      .read("SELECT id, name, last_minute FROM device WHERE id BETWEEN ? AND ? ORDER BY id", 1, kMinutesOfADevice / 2,
            [&](const Statement& row) {
              Found found;
              found.id = row.integer(0).value_or(0);
              found.device.name = row.text(1).value_or("");
              const std::int64_t last = row.integer(2).value_or(0);
              if (last >= number_of(since)) {
                auto& known = newest[found.device.name];
                if (known.second.id == 0 || known.first < last) {
                  known = {last, std::move(found)};
                }
              }
              return true;
            })
      .map([&] {
        std::vector<Found> all;
        for (auto& [name, one] : newest) {
          all.push_back(std::move(one.second));
        }
        return all;
      });
}

Outcome<void> PastReader::add_day_of(const Found& found, std::int64_t minutes_from, model::PastDay& day) {
  const std::int64_t from = number_of(day.window.from);
  const std::int64_t to = number_of(day.window.to);
  PastDay::Device device;
  device.name = found.device.name;
  const auto read = [&](const char* table, std::int64_t first, std::int64_t last, std::int64_t length) {
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
    return slices().read("SELECT at FROM " + std::string(table) + " WHERE at BETWEEN ? AND ? ORDER BY at",
                         key_of(found.id, std::max<std::int64_t>(first, 0)), key_of(found.id, last), take);
  };
  return read("device_hour", hour_of(from), std::min(minutes_from - kHour, to - 1), kHour)
      .and_then([&] { return read("device_minute", std::max(from, minutes_from), to - 1, 1); })
      .and_then([&] {
        return loads(found, "device_minute", number_of(day.hour.from), number_of(day.hour.to) - 1,
                     std::chrono::minutes(1), [&](model::MinuteOf&& one) {
                       device.hour_measured_ms += one.load.measured_ms;
                       model::add(device.hour_reads, one.load.latency(model::Latency::read_total));
                       model::add(device.hour_writes, one.load.latency(model::Latency::write_total));
                     });
      })
      .map([&] { day.devices.push_back(std::move(device)); });
}

Outcome<void> PastReader::add_day_spikes(model::PastDay& day) {
  return slices().read(
      "SELECT begin_ms, device, operation, cause, duration_seconds, peak_seconds, substr(evidence, 1, 48) FROM "
      "latency_spike WHERE begin_ms BETWEEN ? AND ? ORDER BY begin_ms",
      milliseconds_of(day.window.from - kLongestMark), milliseconds_of(day.window.to) - 1, [&](const Statement& row) {
        const std::int64_t begin = row.integer(0).value_or(0);
        auto* device = device_of(day, row.text(1).value_or(""));
        if (device == nullptr) {
          return true;
        }
        const PastDay::Worst spike{time_of(begin),           row.text(2).value_or(""),
                                   row.text(3).value_or(""), row.real(4).value_or(0),
                                   row.real(5).value_or(0),  excess_in(row.text(6).value_or(""))};
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
      "SELECT begin_ms, device, duration_seconds FROM discard_burst WHERE begin_ms BETWEEN ? AND ? ORDER BY begin_ms",
      milliseconds_of(day.window.from - kLongestMark), milliseconds_of(day.window.to) - 1, [&](const Statement& row) {
        if (auto* device = device_of(day, row.text(1).value_or("")); device != nullptr) {
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
    const auto reach = reach_of(connection_, *before);
    const auto devices = reach ? seen_since(day.window.from) : tl::unexpected(reach.error());
    if (!devices) {
      return tl::unexpected(devices.error());
    }
    day.reach = *reach;
    for (const Found& one : *devices) {
      if (const auto read = add_day_of(one, before->minutes_from, day); !read) {
        return tl::unexpected(read.error());
      }
    }
    const auto marks = add_day_spikes(day).and_then([&] { return add_day_bursts(day); });
    const auto after = account();
    if (!marks || !after) {
      return tl::unexpected(marks ? after.error() : marks.error());
    }
    if (after->minutes_from == before->minutes_from || number_of(day.window.from) >= after->minutes_from) {
      return day;
    }
    // The minutes became hours meanwhile: try again.
  }
}

}  // namespace ssdpulse::history
