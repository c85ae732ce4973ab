// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/past_reader.h"

#include <array>
#include <limits>
#include <map>
#include <utility>

#include "daemon/history/database_file.h"
#include "daemon/history/event_rows.h"
#include "daemon/history/ladder_minutes.h"
#include "daemon/history/load_codec.h"

namespace ssdpulse::history {
namespace {

using model::Window;

std::int64_t last_of(const Window& window) { return number_of(window.to) - 1; }

/// The length of each of at most `max_points` points of a window: round, and whole hours if it is an hour or more.
std::chrono::minutes step_of(const Window& window, std::size_t max_points) {
  constexpr auto kSteps =
      std::to_array<std::int64_t>({1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440, 10080, 43200});
  const auto length = (window.to - window.from).count();
  const auto points = static_cast<std::int64_t>(max_points) - 1;  // one more if unaligned
  const auto* step = std::find_if(kSteps.begin(), kSteps.end(), [&](auto one) { return one * points >= length; });
  return std::chrono::minutes(step == kSteps.end() ? std::max(kSteps.back(), (length / points / kHour + 1) * kHour)
                                                   : *step);
}

std::string kind_of(const model::PastSpike&) { return {}; }
std::string kind_of(const model::PastBurst& burst) { return burst.trigger.raw(); }
std::string kind_of(const model::PastWait& wait) { return wait.cause.raw(); }

bool is_of(const auto& event, const std::string& device) { return event.device == device; }
/// A wait without a device holds up the host, a volume or a file system; which disks that is on is not kept.
bool is_of(const model::PastWait& wait, const std::string& device) {
  return wait.device.empty() || wait.device == device;
}

/// Keeps the newest events of the series' device that touch its window; where there are too many, those of a clock that
/// was ahead go first. For bursts, the newest of each trigger: otherwise those of a file system mounted with discard
/// would leave no room for the weekly fstrim.
template <typename Event>
auto into(std::vector<Event>& events, model::Series& series) {
  return [&events, &series, counts = std::map<std::string, std::size_t>()](Event&& event) mutable {
    if (!is_of(event, series.device.name) || end_of(event.begin, event.duration_seconds) < series.window.from) {
      return;
    }
    const std::string kind = kind_of(event);
    events.push_back(std::move(event));
    if (++counts[kind] > Reader::kMaxMarks) {
      const auto oldest = [&](bool ahead) {
        return std::find_if(events.begin(), events.end(), [&](const Event& other) {
          return kind_of(other) == kind && (other.clock_ahead || !ahead);
        });
      };
      events.erase(oldest(true) == events.end() ? oldest(false) : oldest(true));
      --counts[kind];
      series.cut = true;
    }
  };
}

}  // namespace

Outcome<PastReader> PastReader::open(const std::string& path, std::chrono::milliseconds slice, Deadline deadline) {
  return Connection::open_to_read(path).and_then([&](Connection connection) -> Outcome<PastReader> {
    const auto application = connection.number("PRAGMA application_id");
    const auto version = connection.number("PRAGMA user_version");
    if (!application || !version) {
      Failure failure = application ? version.error() : application.error();
      failure.message += failure.damaged ? ": the daemon sets the file aside when it starts" : "";
      return tl::unexpected(failure);
    }
    if (*application != kApplicationId || *version != kSchemaVersion) {
      const bool newer = *application == kApplicationId && *version > kSchemaVersion;
      return tl::unexpected(Failure{newer
                                        ? "was written by a newer version of ssdpulse: ask with that version"
                                        : "is not a history of this version: the daemon sets it aside when it starts"});
    }
    return PastReader(std::move(connection), slice, deadline);
  });
}

Outcome<Account> PastReader::account() {
  return load_account(connection_).map([](const std::optional<Account>& account) {
    return account.value_or(Account{});
  });
}

std::int64_t PastReader::last_measured(const Found& found) {
  std::int64_t last = 0;
  for (const Lane& lane : found.lanes) {
    last = std::max(last, lane.last_measured);
  }
  return last;
}

Outcome<void> PastReader::read_lane(const Lane& lane, const std::string& select, const std::string& condition,
                                    std::int64_t from, std::int64_t to,
                                    const std::function<void(std::int64_t minute, const Statement&)>& take) {
  if (from > to) {
    return {};
  }
  return slices().read(select + " WHERE at BETWEEN ? AND ? AND " + condition + " ORDER BY at",
                       key_of(lane.id, std::max<std::int64_t>(from, 0)), key_of(lane.id, to),
                       [&](const Statement& row) {
                         take(minute_of_key(row.integer(0).value_or(0)), row);
                         return true;
                       });
}

/// A lookup in the tree.
Outcome<std::optional<std::int64_t>> PastReader::nearest(const Lane& lane, const char* table, const char* order,
                                                         std::int64_t from, std::int64_t to) {
  Statement row(connection_,
                ("SELECT at % " + std::to_string(kMinutesOfADevice) + " FROM " + table +
                 " WHERE at BETWEEN ? AND ? AND NOT " + row_ahead(table) + " ORDER BY at " + order + " LIMIT 1")
                    .c_str());
  return row.with(key_of(lane.id, std::max<std::int64_t>(from, 0))).with(key_of(lane.id, to)).step_to_number();
}

Outcome<void> PastReader::first_and_last(Found& found) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = 0;
  for (const Lane& lane : found.lanes) {
    for (const char* table : {"device_hour", "device_minute"}) {
      for (const char* order : {"ASC", "DESC"}) {
        const auto minute = nearest(lane, table, order, 0, kMinutesOfADevice - 1);
        if (!minute) {
          return tl::unexpected(minute.error());
        }
        if (*minute) {
          first = **minute < kClockUnset ? first : std::min(first, **minute);
          last = std::max(last, **minute);
        }
      }
    }
  }
  found.device.first = minute_of(std::min(first, last));
  found.device.last = minute_of(last);
  return {};
}

/// As it was called last, with all of its lanes.
Outcome<std::vector<PastReader::Found>> PastReader::all() {
  std::map<std::string, Found> by_identity;
  return slices()
      .read(
          "SELECT id, name, model, serial, identity, minutes_from, hours_made_to, last_measured, last_minute FROM "
          "device WHERE id BETWEEN ? AND ? ORDER BY id",
          1, kMinutesOfADevice / 2,
          [&](const Statement& row) {
            const std::string identity = row.text(4).value_or("").raw();
            if (is_ladder_lane(identity)) {
              return true;
            }
            const Lane lane{row.integer(0).value_or(0), row.integer(5).value_or(0), row.integer(6).value_or(0),
                            row.integer(7).value_or(0), row.integer(8).value_or(0)};
            Found& found = by_identity[identity];
            const bool last = std::all_of(found.lanes.begin(), found.lanes.end(),
                                          [&](const Lane& other) { return other.last_measured <= lane.last_measured; });
            if (last) {
              found.device = {row.name(1), row.text(2).value_or(""), row.text(3).value_or(""), {}, {}, identity};
            }
            found.lanes.push_back(lane);
            return true;
          })
      .map([&] {
        std::vector<Found> all;
        for (auto& [identity, found] : by_identity) {
          all.push_back(std::move(found));
        }
        return all;
      });
}

Outcome<std::vector<model::PastDevice>> PastReader::devices(std::uint64_t* left_out) {
  auto found = all();
  if (!found) {
    return tl::unexpected(found.error());
  }
  if (const std::size_t count = found->size(); count > Reader::kMaxDevices) {
    std::sort(found->begin(), found->end(),
              [](const Found& a, const Found& b) { return last_measured(a) > last_measured(b); });
    found->resize(Reader::kMaxDevices);
    if (left_out != nullptr) {
      *left_out = count - Reader::kMaxDevices;
    }
  }
  std::vector<model::PastDevice> devices;
  for (Found& one : *found) {
    if (const auto known = first_and_last(one); !known) {
      return tl::unexpected(known.error());
    }
    devices.push_back(std::move(one.device));
  }
  std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return devices;
}

Outcome<std::vector<model::PastDevice>> PastReader::devices_called(const std::set<std::string>& names) {
  auto found = all();
  if (!found) {
    return tl::unexpected(found.error());
  }
  std::map<std::string, std::pair<std::int64_t, Found*>> newest;
  for (Found& one : *found) {
    const std::int64_t measured = last_measured(one);
    if (names.contains(one.device.name)) {
      const auto known = newest.try_emplace(one.device.name, measured, &one).first;
      known->second = std::max(known->second, std::pair(measured, &one));
    }
  }
  std::vector<model::PastDevice> devices;
  for (auto& [name, one] : newest) {
    if (const auto known = first_and_last(*one.second); !known) {
      return tl::unexpected(known.error());
    }
    devices.push_back(std::move(one.second->device));
  }
  return devices;
}

Outcome<std::vector<PastReader::Lane>> PastReader::lanes_of(const std::string& identity) {
  Statement rows(
      connection_,
      "SELECT id, minutes_from, hours_made_to, last_measured, last_minute FROM device WHERE identity = ? ORDER "
      "BY id");
  rows.with(identity);
  std::vector<Lane> lanes;
  return rows
      .each([&] {
        const std::int64_t id = rows.integer(0).value_or(0);
        if (id > 0 && id < kMinutesOfADevice / 2) {
          lanes.push_back({id, rows.integer(1).value_or(0), rows.integer(2).value_or(0), rows.integer(3).value_or(0),
                           rows.integer(4).value_or(0)});
        }
      })
      .map([&] { return std::move(lanes); });
}

Outcome<PastReader::Found> PastReader::find(const Which& device) {
  const std::string by_other_names =
      " OR name = ?1 OR serial = ?1 OR instr(' | ' || identity || ' | ', ' | wwid ' || ?1 || ' | ') > 0";
  Statement row(connection_, ("SELECT identity, name, model, serial FROM device WHERE identity = ?1" +
                              (device.by_identity ? std::string() : by_other_names) +
                              " ORDER BY last_measured DESC, last_minute DESC LIMIT 1")
                                 .c_str());
  return row.with(device.text).step().and_then([&](bool there) -> Outcome<Found> {
    if (!there) {
      return tl::unexpected(Failure{kNoSuchDevice});
    }
    const std::string identity = row.text(0).value_or("").raw();
    Found found{{row.name(1), row.text(2).value_or(""), row.text(3).value_or(""), {}, {}, identity}, {}};
    return lanes_of(identity).and_then([&](std::vector<Lane> lanes) -> Outcome<Found> {
      if (lanes.empty()) {
        return tl::unexpected(Failure{kNoSuchDevice});
      }
      found.lanes = std::move(lanes);
      return first_and_last(found).map([&] { return found; });
    });
  });
}

Outcome<void> PastReader::loads(const Found& found, const Lane& lane, const char* table, std::int64_t from,
                                std::int64_t to, std::chrono::minutes length, const EachLoad& each) {
  return read_lane(lane, "SELECT at, load FROM " + std::string(table), "NOT " + row_ahead(table), from, to,
                   [&](std::int64_t minute, const Statement& row) {
                     if (auto load = decode(row.blob(1).value_or(model::Bytes{}))) {  // else somebody edited it
                       each({found.device.name, minute_of(minute), length, std::move(*load)});
                     }
                   });
}

Outcome<void> PastReader::minutes_of(const Found& found, const Lane& lane, const Window& window, bool hours_only,
                                     const EachLoad& each) {
  const std::int64_t hours_to = hours_only ? lane.hours_made_to : lane.minutes_from;
  const std::int64_t last_hour = std::min(hours_to, number_of(window.to)) - kHour;
  return loads(found, lane, "device_hour", number_of(window.from), last_hour, std::chrono::hours(1), each)
      .and_then([&] {
        return loads(found, lane, "device_minute", std::max(number_of(window.from), hours_to), last_of(window),
                     std::chrono::minutes(1), each);
      });
}

Outcome<std::optional<std::int64_t>> PastReader::first_in(const Lane& lane, std::int64_t from, std::int64_t to) {
  const auto hour = nearest(lane, "device_hour", "ASC", from, to);
  const auto minute = nearest(lane, "device_minute", "ASC", from, to);
  if (!hour || !minute) {
    return hour ? minute : hour;
  }
  return *hour && *minute ? std::min(*hour, *minute) : *hour ? *hour : *minute;
}

Outcome<bool> PastReader::changed(const Found& found, const Window& window, bool hours_only) {
  return lanes_of(found.device.identity.raw()).map([&](const std::vector<Lane>& now) {
    return std::any_of(now.begin(), now.end(), [&](const Lane& lane) {
      const auto before =
          std::find_if(found.lanes.begin(), found.lanes.end(), [&](const Lane& other) { return other.id == lane.id; });
      if (before == found.lanes.end()) {
        return false;
      }
      const std::int64_t to = hours_only ? lane.hours_made_to : lane.minutes_from;
      return to != (hours_only ? before->hours_made_to : before->minutes_from) && number_of(window.from) < to;
    });
  });
}

Outcome<bool> PastReader::any_changed(const std::vector<Found>& devices, const Window& window) {
  bool any = false;
  return try_each(
             devices,
             [&](const Found& found) { return changed(found, window, false).map([&](bool one) { any = any || one; }); })
      .map([&] { return any; });
}

Outcome<void> PastReader::minutes_of(const Found& found, const Window& window, bool hours_only, const EachLoad& each,
                                     const std::function<void()>& restart) {
  constexpr std::int64_t kSortedTogether = 6 * kHour;  // in memory, where several lanes have rows
  Found now = found;
  while (true) {
    std::int64_t from = number_of(window.from);
    while (from < number_of(window.to)) {
      std::vector<std::pair<std::int64_t, const Lane*>> here;
      for (const Lane& lane : now.lanes) {
        const auto first = first_in(lane, from, last_of(window));
        if (!first) {
          return tl::unexpected(first.error());
        }
        if (*first) {
          here.emplace_back(**first, &lane);
        }
      }
      if (here.empty()) {
        break;
      }
      std::sort(here.begin(), here.end());
      from = std::max(from, hour_of(here.front().first));
      const bool alone = here.size() == 1 || here[1].first >= hour_of(here[0].first) + kSortedTogether;
      const std::int64_t to = here.size() == 1 ? number_of(window.to)
                              : alone          ? hour_of(here[1].first)
                                               : std::min(hour_of(from) + kSortedTogether, number_of(window.to));
      const Window part{minute_of(from), minute_of(to)};
      std::vector<model::MinuteOf> sorted;
      const EachLoad keep = [&](model::MinuteOf&& one) { sorted.push_back(std::move(one)); };
      for (const auto& [first, lane] : here) {
        if (first < to) {
          if (auto read = minutes_of(now, *lane, part, hours_only, alone ? each : keep); !read) {
            return read;
          }
        }
      }
      std::stable_sort(sorted.begin(), sorted.end(),
                       [](const auto& one, const auto& other) { return one.start < other.start; });
      std::for_each(sorted.begin(), sorted.end(), [&](model::MinuteOf& one) { each(std::move(one)); });
      from = to;
    }
    const auto other = changed(now, window, hours_only);
    if (!other) {
      return tl::unexpected(other.error());
    }
    if (!*other) {
      return {};
    }
    if (!restart) {
      return tl::unexpected(Failure{"minutes were merged into hours meanwhile: try again"});
    }
    auto lanes = lanes_of(now.device.identity.raw());
    if (!lanes) {
      return tl::unexpected(lanes.error());
    }
    now.lanes = std::move(*lanes);
    restart();
  }
}

Outcome<void> PastReader::minutes(const Which& device, const Window& window, const EachLoad& each) {
  return find(device).and_then([&](const Found& found) { return minutes_of(found, window, false, each, nullptr); });
}

Outcome<model::PastLadder> PastReader::ladder(const Window& window) {
  Statement rows(connection_, "SELECT DISTINCT identity FROM device WHERE identity >= ?1 AND identity < ?1 || 'z'");
  rows.with(std::string(kLadderLane));
  std::vector<std::string> lanes;
  model::PastLadder ladder;
  return rows
      .each([&] {
        if (const std::string identity = rows.text(0).value_or("").raw(); is_ladder_lane(identity)) {
          lanes.push_back(identity);
        }
      })
      .and_then([&] {
        return try_each(lanes, [&](const std::string& lane) {
          return lanes_of(lane).and_then([&](std::vector<Lane> numbered) {
            const Found found{{lane, {}, {}, {}, {}, lane}, std::move(numbered)};
            return minutes_of(
                found, window, false, [&](model::MinuteOf&& minute) { add(ladder, lane, minute.load); }, nullptr);
          });
        });
      })
      .map([&] { return std::move(ladder); });
}

Outcome<model::Series> PastReader::series(const Which& device, const Window& window, std::size_t points) {
  auto found = find(device);
  const auto kept = account();
  if (!found || !kept) {
    return tl::unexpected(found ? kept.error() : found.error());
  }
  model::Series series;
  series.device = found->device;
  series.reach = reach_of(*kept);
  series.window = window;
  series.step = step_of(window, std::clamp<std::size_t>(points, 2, Reader::kMaxPoints));
  if (std::any_of(found->lanes.begin(), found->lanes.end(),
                  [&](const Lane& lane) { return number_of(window.from) < lane.minutes_from; })) {
    series.step = std::max<std::chrono::minutes>(series.step, std::chrono::hours(1));
  }
  return add_points(*found, series)
      .and_then([&] { return add_tenants(*found, series.step >= std::chrono::hours(1), series); })
      .and_then([&] { return add_events(series); })
      .and_then([&] { return add_drive(*found, series); })
      .and_then([&] { return add_clock_ahead(*found, series); })
      .and_then([&] { return settings(series.window, found->device.identity.raw(), &series.cut); })
      .and_then([&](std::vector<model::SettingChange> changes) {
        series.settings = std::move(changes);
        return marks(series.window);
      })
      .map([&](std::vector<model::Mark> marks_in_window) {
        series.marks = std::move(marks_in_window);
        return std::move(series);
      });
}

Outcome<void> PastReader::add_points(const Found& found, model::Series& series) {
  const auto take = [&](model::MinuteOf&& one) {
    const auto step = series.step.count();
    const model::Minute start = minute_of(number_of(one.start) / step * step);
    if (series.points.empty() || series.points.back().start != start) {
      series.points.push_back({start, {}});
    }
    model::add(series.points.back().load, one.load);
  };
  return minutes_of(found, series.window, series.step >= std::chrono::hours(1), take, [&] { series.points.clear(); });
}

Outcome<void> PastReader::add_clock_ahead(const Found& found, model::Series& series) {
  const std::int64_t begin = number_of(series.window.from);
  const auto read = [&](const Lane& lane, const std::string& table, std::int64_t length, std::int64_t from,
                        std::int64_t to) {
    return read_lane(lane, "SELECT at FROM " + table, row_ahead(table), from, to,
                     [&, length](std::int64_t minute, const Statement&) {
                       if (!series.clock_ahead.empty() && series.clock_ahead.back().to == minute_of(minute)) {
                         series.clock_ahead.back().to = minute_of(minute + length);
                       } else if (series.clock_ahead.size() < Reader::kMaxMarks) {
                         series.clock_ahead.push_back({minute_of(minute), minute_of(minute + length)});
                       }
                     });
  };
  return try_each(found.lanes, [&](const Lane& lane) {
    const std::int64_t last_hour = std::min(lane.minutes_from, number_of(series.window.to)) - kHour;
    return read(lane, "device_hour", kHour, begin, last_hour).and_then([&] {
      return read(lane, "device_minute", 1, std::max(begin, lane.minutes_from), last_of(series.window));
    });
  });
}

Outcome<void> PastReader::add_tenants(const Found& found, bool hours_only, model::Series& series) {
  std::map<std::int64_t, std::vector<NumberedTenant>> by_start;
  const std::int64_t begin = number_of(series.window.from);
  const auto step = series.step.count();
  const auto read = [&](const Lane& lane, const std::string& kind, std::int64_t from, std::int64_t to) {
    // The age of tenant rows is that of their oldest name; what a clock stamped is known from the device's.
    const std::string condition = "NOT EXISTS (SELECT 1 FROM device_" + kind + " AS of WHERE of.at = tenant_" + kind +
                                  ".at AND " + row_ahead("of") + ")";
    return read_lane(lane, "SELECT at, tenants FROM tenant_" + kind, condition, from, to,
                     [&](std::int64_t minute, const Statement& row) {
                       const auto tenants = decode_tenants(row.blob(1).value_or(model::Bytes{}));
                       add(by_start[minute / step * step], tenants.value_or(std::vector<NumberedTenant>{}));
                     });
  };
  std::map<std::int64_t, std::string> names{{0, std::string(model::kOtherTenants)}};
  const auto done =
      try_each(found.lanes, [&](const Lane& lane) {
        const std::int64_t hours_to = hours_only ? lane.hours_made_to : lane.minutes_from;
        return read(lane, "hour", begin, std::min(hours_to, number_of(series.window.to)) - kHour).and_then([&] {
          return read(lane, "minute", std::max(begin, hours_to), last_of(series.window));
        });
      }).and_then([&] {
        return by_start.empty() ? Outcome<void>()
                                : slices().read("SELECT id, name FROM tenant WHERE id BETWEEN ? AND ? ORDER BY id", 1,
                                                std::numeric_limits<std::int64_t>::max(), [&](const Statement& row) {
                                                  names[row.integer(0).value_or(0)] = row.name(1);
                                                  return true;
                                                });
      });
  if (!done || by_start.empty()) {
    return done;
  }
  for (const model::SeriesPoint& point : series.points) {
    std::vector<model::TenantLoad> tenants;
    for (const NumberedTenant& one : by_start[number_of(point.start)]) {
      const auto name = names.find(one.id);
      tenants.push_back({name == names.end() ? std::string(model::kOtherTenants) : name->second, one.totals});
    }
    series.tenants.push_back(model::heaviest(std::move(tenants)));
  }
  return {};
}

Outcome<void> PastReader::spikes(std::int64_t from, std::int64_t to,
                                 const std::function<void(model::PastSpike&&)>& each) {
  return slices().read(
      "SELECT begin_ms, device, operation, duration_seconds, peak_seconds, baseline_seconds, ios, cause, evidence, "
      "missing, EXISTS (SELECT 1 FROM spike_seconds AS around WHERE around.device = latency_spike.device AND "
      "around.end_ms >= latency_spike.begin_ms AND around.begin_ms <= latency_spike.begin_ms), " +
          stamped_ahead("latency_spike", "begin_ms / 60000") +
          ", excess_seconds FROM latency_spike WHERE begin_ms BETWEEN ? AND ? ORDER BY begin_ms",
      from, to, [&](const Statement& row) {
        each({time_of(row.integer(0).value_or(0)), row.name(1), row.text(2).value_or(""), row.real(3).value_or(0),
              row.real(4).value_or(0), row.real(5).value_or(0), static_cast<std::uint64_t>(row.integer(6).value_or(0)),
              row.text(7).value_or(""), row.text(8).value_or(""), row.text(9).value_or(""), row.integer(10) == 1,
              row.real(12).value_or(0), row.integer(11) == 1});
        return true;
      });
}

Outcome<void> PastReader::waits(std::int64_t from, std::int64_t to,
                                const std::function<void(model::PastWait&&)>& each) {
  return slices().read("SELECT begin_ms, cause, subject, device, tenant, duration_seconds, evidence, file, " +
                           stamped_ahead("host_wait", "begin_ms / 60000") +
                           " FROM host_wait WHERE begin_ms BETWEEN ? AND ? ORDER BY begin_ms",
                       from, to, [&](const Statement& row) {
                         each({time_of(row.integer(0).value_or(0)), row.text(1).value_or(""), row.text(2).value_or(""),
                               row.name(3), row.name(4), row.real(5).value_or(0), row.text(6).value_or(""),
                               row.text(7).value_or(""), row.integer(8) == 1});
                         return true;
                       });
}

Outcome<void> PastReader::bursts(std::int64_t from, std::int64_t to,
                                 const std::function<void(model::PastBurst&&)>& each) {
  return slices().read(
      "SELECT begin_ms, device, trigger, duration_seconds, bytes, " +
          stamped_ahead("discard_burst", "begin_ms / 60000") +
          " FROM discard_burst WHERE begin_ms BETWEEN ? AND ? ORDER BY begin_ms",
      from, to, [&](const Statement& row) {
        each({time_of(row.integer(0).value_or(0)), row.name(1), row.text(2).value_or(""), row.real(3).value_or(0),
              static_cast<std::uint64_t>(row.integer(4).value_or(0)), row.integer(5) == 1});
        return true;
      });
}

Outcome<void> PastReader::add_events(model::Series& series) {
  const std::int64_t from = milliseconds_of(series.window.from - kLongestMark);
  const std::int64_t to = milliseconds_of(series.window.to) - 1;
  return spikes(from, to, into(series.spikes, series))
      .and_then([&] { return bursts(from, to, into(series.bursts, series)); })
      .and_then(
          [&] { return waits(milliseconds_of(series.window.from - kLongestWait), to, into(series.waits, series)); });
}

Outcome<std::vector<model::Mark>> PastReader::marks(const Window& window) {
  std::vector<model::Mark> marks;
  return slices()
      .read("SELECT at_ms, text, " + stamped_ahead("mark", "at_ms / 60000") +
                " FROM mark WHERE at_ms BETWEEN ? AND ? ORDER BY at_ms",
            milliseconds_of(window.from), milliseconds_of(window.to) - 1,
            [&](const Statement& row) {
              marks.push_back({time_of(row.integer(0).value_or(0)), row.text(1).value_or(""), row.integer(2) == 1});
              if (marks.size() > Reader::kMaxMarks) {
                marks.erase(marks.begin());
              }
              return true;
            })
      .map([&] { return std::move(marks); });
}

/// Bounded by kMaxSettings: few rows, so read in one go. Returns the newest; one more is read to know whether there
/// are more.
Outcome<std::vector<model::SettingChange>> PastReader::settings(const Window& window, const std::string& device,
                                                                bool* cut) {
  constexpr std::size_t kMaxChanges = Reader::kMaxMarks;
  const std::string sql =
      "SELECT at_ms, coalesce((SELECT device.name FROM device WHERE device.identity = setting.device ORDER BY "
      "last_measured DESC, device.id DESC LIMIT 1), setting.device), name, (SELECT value FROM setting AS old WHERE "
      "old.device = setting.device AND old.name = setting.name AND old.id < setting.id ORDER BY old.id DESC LIMIT 1), "
      "value, device, " +
      stamped_ahead("setting", "at_ms / 60000") +
      " FROM setting WHERE at_ms BETWEEN ?1 AND ?2 AND (?3 = '' OR device IN ('', ?3)) ORDER BY at_ms DESC, device "
      "DESC, name DESC, id DESC LIMIT ?4";
  Statement rows(connection_, sql.c_str());
  rows.with(milliseconds_of(window.from)).with(milliseconds_of(window.to) - 1).with(device);
  rows.with(static_cast<std::int64_t>(kMaxChanges + 1));
  std::vector<model::SettingChange> changes;
  const auto read = rows.each([&] {
    changes.push_back({time_of(rows.integer(0).value_or(0)), rows.text(1).value_or(""), rows.text(2).value_or(""),
                       rows.text(3), rows.text(4).value_or(""), rows.text(5).value_or(""), rows.integer(6) == 1});
  });
  if (!read) {
    return tl::unexpected(read.error());
  }
  if (changes.size() > kMaxChanges) {
    changes.pop_back();
    if (cut != nullptr) {
      *cut = true;
    }
  }
  std::reverse(changes.begin(), changes.end());
  return changes;
}

}  // namespace ssdpulse::history
