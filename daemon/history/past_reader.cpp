// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/past_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <utility>

#include "daemon/history/database_file.h"
#include "daemon/history/events.h"
#include "daemon/history/load_codec.h"
#include "daemon/history/reach.h"

namespace ssdpulse::history {
namespace {

using model::Window;

std::int64_t last_of(const Window& window) { return number_of(window.to) - 1; }

tl::unexpected<Failure> changed() {
  return tl::unexpected(Failure{"minutes became hours meanwhile: ask again", false});
}

}  // namespace

std::optional<double> excess_in(const std::string& evidence) {
  if (evidence.rfind(kExcess, 0) != 0) {
    return std::nullopt;
  }
  double seconds = 0;
  const char* end = evidence.data() + evidence.size();
  const auto parsed = std::from_chars(evidence.data() + kExcess.size(), end, seconds);
  const bool good = parsed.ec == std::errc() && (parsed.ptr == end || *parsed.ptr == ' ') && seconds >= 0;
  return good ? std::optional(seconds) : std::nullopt;
}

std::chrono::minutes step_of(const Window& window, std::size_t most) {
  constexpr std::array<std::int64_t, 17> kSteps{1,   2,   3,   5,   10,  15,   20,    30,   60,
                                                120, 180, 240, 360, 720, 1440, 10080, 43200};
  const auto length = (window.to - window.from).count();
  const auto points = static_cast<std::int64_t>(std::max<std::size_t>(most, 2)) - 1;  // one more if unaligned
  const auto* step = std::find_if(kSteps.begin(), kSteps.end(), [&](auto one) { return one * points >= length; });
  return std::chrono::minutes(step == kSteps.end() ? std::max(kSteps.back(), (length / points / kHour + 1) * kHour)
                                                   : *step);
}

Outcome<PastReader> PastReader::open(const std::string& path, std::chrono::milliseconds slice, Deadline deadline) {
  return Connection::open_to_read(path).and_then([&](Connection connection) -> Outcome<PastReader> {
    const auto version = connection.number("PRAGMA user_version");
    if (!version) {
      return tl::unexpected(version.error());
    }
    if (*version != kSchemaVersion) {
      const char* what_to_do = *version > kSchemaVersion ? "a newer ssdpulse wrote it: ask with that version"
                                                         : "the daemon of this version upgrades it when it starts";
      return tl::unexpected(Failure{path + " is of version " + std::to_string(*version) + ", not " +
                                        std::to_string(kSchemaVersion) + ": " + what_to_do,
                                    false});
    }
    return PastReader(std::move(connection), slice, deadline);
  });
}

Outcome<Account> PastReader::account() {
  return load_account(connection_).map([](const std::optional<Account>& account) {
    return account.value_or(Account{std::numeric_limits<std::int64_t>::max()});
  });
}

Outcome<void> PastReader::first_and_last(Found& found) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = 0;
  for (const char* table : {"device_hour", "device_minute"}) {
    for (const char* what : {"min(at)", "max(at)"}) {  // separately, each is one lookup in the tree
      Statement row(connection_,
                    ("SELECT " + std::string(what) + " FROM " + table + " WHERE at BETWEEN ? AND ?").c_str());
      if (const auto there = row.with(key_of(found.id, 0)).with(key_of(found.id, kMinutesOfADevice - 1)).step();
          !there) {
        return tl::unexpected(there.error());
      }
      if (const auto key = row.integer(0)) {
        first = std::min(first, minute_of_key(*key));
        last = std::max(last, minute_of_key(*key));
      }
    }
  }
  found.device.first = minute_of(std::min(first, last));
  found.device.last = minute_of(last);
  return {};
}

Outcome<std::vector<PastReader::Found>> PastReader::all() {
  std::vector<Found> all;
  return slices()
      .read("SELECT id, name, model, serial, identity FROM device WHERE id BETWEEN ? AND ? ORDER BY id", 1,
            kMinutesOfADevice / 2,
            [&](const Statement& row) {
              all.push_back({row.integer(0).value_or(0),
                             {row.text(1).value_or(""),
                              row.text(2).value_or(""),
                              row.text(3).value_or(""),
                              {},
                              {},
                              row.text(4).value_or("")}});
              return true;
            })
      .map([&] { return std::move(all); });
}

Outcome<std::vector<model::PastDevice>> PastReader::devices() {
  auto found = all();
  if (!found) {
    return tl::unexpected(found.error());
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

Outcome<PastReader::Found> PastReader::find(const Which& device) {
  Statement row(connection_,
                "SELECT id, identity, name, model, serial FROM device WHERE identity = ?1 OR (NOT ?2 AND (name = ?1 OR "
                "serial = ?1 OR instr(' | ' || identity || ' | ', ' | wwid ' || ?1 || ' | ') > 0)) "
                "ORDER BY last_minute DESC LIMIT 1");
  return row.with(device.words)
      .with(std::int64_t{device.by_identity ? 1 : 0})
      .step()
      .and_then([&](bool there) -> Outcome<Found> {
        const auto id = there ? row.integer(0) : std::nullopt;
        if (!id || *id <= 0 || *id >= kMinutesOfADevice / 2) {
          return tl::unexpected(Failure{kNoSuchDevice, false});
        }
        Found found{*id,
                    {row.text(2).value_or(""),
                     row.text(3).value_or(""),
                     row.text(4).value_or(""),
                     {},
                     {},
                     row.text(1).value_or("")}};
        return first_and_last(found).map([&] { return found; });
      });
}

Outcome<void> PastReader::loads(const Found& found, const char* table, std::int64_t from, std::int64_t to,
                                std::chrono::minutes length, const EachLoad& each) {
  if (from > to) {
    return {};
  }
  return slices().read(
      "SELECT at, load FROM " + std::string(table) + " WHERE at BETWEEN ? AND ? ORDER BY at",
      key_of(found.id, std::max<std::int64_t>(from, 0)), key_of(found.id, to), [&](const Statement& row) {
        auto load = decode(row.blob(1).value_or(Bytes{}));
        if (load) {  // else somebody edited it: that time is unknown
          each({found.device.name, minute_of(minute_of_key(row.integer(0).value_or(0))), length, std::move(*load)});
        }
        return true;
      });
}

Outcome<void> PastReader::minutes_of(const Found& found, const Window& window, bool hours_alone, const EachLoad& each,
                                     const std::function<void()>& restart) {
  while (true) {
    const auto before = account();
    if (!before) {
      return tl::unexpected(before.error());
    }
    const std::int64_t hours_to = hours_alone ? before->hours_made_to : before->minutes_from;
    const std::int64_t last_hour = std::min(hours_to, number_of(window.to)) - kHour;
    auto done =
        loads(found, "device_hour", number_of(window.from), last_hour, std::chrono::hours(1), each).and_then([&] {
          return loads(found, "device_minute", std::max(number_of(window.from), hours_to), last_of(window),
                       std::chrono::minutes(1), each);
        });
    if (!done) {
      return done;
    }
    const auto after = account();
    if (!after) {
      return tl::unexpected(after.error());
    }
    const std::int64_t hours_to_now = hours_alone ? after->hours_made_to : after->minutes_from;
    if (hours_to_now == hours_to || number_of(window.from) >= hours_to_now) {
      return {};
    }
    if (!restart) {
      return changed();
    }
    restart();
  }
}

Outcome<void> PastReader::minutes(const Which& device, const Window& window, const EachLoad& each) {
  return find(device).and_then([&](const Found& found) { return minutes_of(found, window, false, each, nullptr); });
}

Outcome<model::Series> PastReader::series(const Which& device, const Window& window, std::size_t points) {
  auto found = find(device);
  const auto kept = account();
  if (!found || !kept) {
    return tl::unexpected(found ? kept.error() : found.error());
  }
  auto account_now = *kept;
  auto reach = reach_of(connection_, account_now);
  if (!reach) {
    return tl::unexpected(reach.error());
  }
  model::Series series;
  series.device = found->device;
  series.reach = *reach;
  series.window = window;
  series.step = step_of(window, std::clamp<std::size_t>(points, 2, Reader::kMostPoints));
  if (number_of(window.from) < kept->minutes_from) {
    series.step = std::max<std::chrono::minutes>(series.step, std::chrono::hours(1));
  }
  return add_points(*found, series)
      .and_then([&] { return add_tenants(*found, series.step >= std::chrono::hours(1), series); })
      .and_then([&] { return add_spikes(series); })
      .and_then([&] { return add_bursts(series); })
      .and_then([&] { return add_waits(series); })
      .and_then([&] { return add_drive(*found, series); })
      .and_then([&] { return settings(series.window, found->device.identity, &series.cut); })
      .and_then([&](std::vector<model::SettingChange> changes) {
        series.settings = std::move(changes);
        return marks(series.window);
      })
      .map([&](std::vector<model::Mark> marks_of_it) {
        series.marks = std::move(marks_of_it);
        return std::move(series);
      });
}

Outcome<void> PastReader::add_points(const Found& found, model::Series& series) {
  const auto take = [&](model::MinuteOf&& one) {
    const auto step = series.step.count();
    const Minute start = minute_of(number_of(one.start) / step * step);
    if (series.points.empty() || series.points.back().start != start) {
      series.points.push_back({start, {}});
    }
    model::add(series.points.back().load, one.load);
  };
  return minutes_of(found, series.window, series.step >= std::chrono::hours(1), take, [&] { series.points.clear(); });
}

Outcome<void> PastReader::add_tenants(const Found& found, bool hours_alone, model::Series& series) {
  std::map<std::int64_t, std::vector<NumberedTenant>> by_start;
  const auto step = series.step.count();
  const auto take = [&](const Statement& row) {
    const auto tenants = decode_tenants(row.blob(1).value_or(Bytes{}));
    auto& sum = by_start[minute_of_key(row.integer(0).value_or(0)) / step * step];
    for (const NumberedTenant& one : tenants.value_or(std::vector<NumberedTenant>{})) {
      const auto known = std::find_if(sum.begin(), sum.end(), [&](const auto& other) { return other.id == one.id; });
      if (known == sum.end()) {
        sum.push_back(one);
        continue;
      }
      for (std::size_t i = 0; i < one.totals.size(); ++i) {
        known->totals.at(i) += one.totals.at(i);
      }
    }
    return true;
  };
  const auto kept = account();
  if (!kept) {
    return tl::unexpected(kept.error());
  }
  const std::int64_t hours_to = hours_alone ? kept->hours_made_to : kept->minutes_from;
  const auto read = [&](const char* table, std::int64_t from, std::int64_t to) {
    return from > to ? Outcome<void>()
                     : slices().read(
                           "SELECT at, tenants FROM " + std::string(table) + " WHERE at BETWEEN ? AND ? ORDER BY at",
                           key_of(found.id, std::max<std::int64_t>(from, 0)), key_of(found.id, to), take);
  };
  std::map<std::int64_t, std::string> names{{0, std::string(model::kOtherTenants)}};
  auto done =
      read("tenant_hour", number_of(series.window.from), std::min(hours_to, number_of(series.window.to)) - kHour)
          .and_then([&] {
            return read("tenant_minute", std::max(number_of(series.window.from), hours_to), last_of(series.window));
          })
          .and_then([&] {
            return by_start.empty()
                       ? Outcome<void>()
                       : slices().read("SELECT id, name FROM tenant WHERE id BETWEEN ? AND ? ORDER BY id", 1,
                                       std::numeric_limits<std::int64_t>::max(), [&](const Statement& row) {
                                         names[row.integer(0).value_or(0)] = row.text(1).value_or("");
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

Outcome<void> PastReader::spikes(std::int64_t from, std::int64_t to, const EachSpike& each) {
  return slices().read(
      "SELECT begin_ms, device, operation, duration_seconds, peak_seconds, baseline_seconds, ios, cause, evidence, "
      "missing, EXISTS (SELECT 1 FROM spike_seconds AS around WHERE around.device = latency_spike.device AND "
      "around.end_ms >= latency_spike.begin_ms AND around.begin_ms <= latency_spike.begin_ms) FROM latency_spike "
      "WHERE begin_ms BETWEEN ? AND ? ORDER BY begin_ms",
      from, to, [&](const Statement& row) {
        const std::string evidence = row.text(8).value_or("");
        each({time_of(row.integer(0).value_or(0)), row.text(1).value_or(""), row.text(2).value_or(""),
              row.real(3).value_or(0), row.real(4).value_or(0), row.real(5).value_or(0),
              static_cast<std::uint64_t>(row.integer(6).value_or(0)), row.text(7).value_or(""), evidence,
              row.text(9).value_or(""), row.integer(10) == 1, excess_in(evidence)});
        return true;
      });
}

Outcome<void> PastReader::waits(std::int64_t from, std::int64_t to,
                                const std::function<void(model::PastWait&&)>& each) {
  return slices().read(
      "SELECT begin_ms, cause, subject, device, tenant, duration_seconds, evidence, file FROM host_wait WHERE begin_ms "
      "BETWEEN ? AND ? ORDER BY begin_ms",
      from, to, [&](const Statement& row) {
        each({time_of(row.integer(0).value_or(0)), row.text(1).value_or(""), row.text(2).value_or(""),
              row.text(3).value_or(""), row.text(4).value_or(""), row.real(5).value_or(0), row.text(6).value_or(""),
              row.text(7).value_or("")});
        return true;
      });
}

Outcome<void> PastReader::bursts(std::int64_t from, std::int64_t to, const EachBurst& each) {
  return slices().read(
      "SELECT begin_ms, device, trigger, duration_seconds, bytes FROM discard_burst WHERE begin_ms BETWEEN ? AND ? "
      "ORDER BY begin_ms",
      from, to, [&](const Statement& row) {
        each({time_of(row.integer(0).value_or(0)), row.text(1).value_or(""), row.text(2).value_or(""),
              row.real(3).value_or(0), static_cast<std::uint64_t>(row.integer(4).value_or(0))});
        return true;
      });
}

namespace {

std::string kind_of(const model::PastSpike&) { return {}; }
std::string kind_of(const model::PastBurst& burst) { return burst.trigger; }
std::string kind_of(const model::PastWait& wait) { return wait.cause; }

bool is_of(const auto& mark, const std::string& device) { return mark.device == device; }
/// One without a device holds up the host, a volume or a file system: which disks that is on is not kept.
bool is_of(const model::PastWait& wait, const std::string& device) {
  return wait.device.empty() || wait.device == device;
}

/// The newest marks of the device that touch the window. For bursts, the newest of each trigger: otherwise those of a
/// file system mounted with discard would leave no room for the weekly fstrim.
template <typename Mark>
auto into(std::vector<Mark>& marks, model::Series& series) {
  return [&marks, &series, counts = std::map<std::string, std::size_t>()](Mark&& one) mutable {
    const auto end = one.begin + std::chrono::duration_cast<model::WallTime::duration>(
                                     std::chrono::duration<double>(one.duration_seconds));
    if (!is_of(one, series.device.name) || end < series.window.from) {
      return;
    }
    const std::string kind = kind_of(one);
    marks.push_back(std::move(one));
    if (++counts[kind] > Reader::kMostMarks) {
      marks.erase(std::find_if(marks.begin(), marks.end(), [&](const Mark& mark) { return kind_of(mark) == kind; }));
      --counts[kind];
      series.cut = true;
    }
  };
}

}  // namespace

Outcome<void> PastReader::add_waits(model::Series& series) {
  return waits(milliseconds_of(series.window.from - kLongestWait), milliseconds_of(series.window.to) - 1,
               into(series.waits, series));
}

Outcome<void> PastReader::add_spikes(model::Series& series) {
  return spikes(milliseconds_of(series.window.from - kLongestMark), milliseconds_of(series.window.to) - 1,
                into(series.spikes, series));
}

Outcome<void> PastReader::add_bursts(model::Series& series) {
  return bursts(milliseconds_of(series.window.from - kLongestMark), milliseconds_of(series.window.to) - 1,
                into(series.bursts, series));
}

Outcome<std::vector<model::Mark>> PastReader::marks(const Window& window) {
  std::vector<model::Mark> marks;
  return slices()
      .read("SELECT at_ms, text FROM mark WHERE at_ms BETWEEN ? AND ? ORDER BY at_ms", milliseconds_of(window.from),
            milliseconds_of(window.to) - 1,
            [&](const Statement& row) {
              marks.push_back({time_of(row.integer(0).value_or(0)), row.text(1).value_or("")});
              if (marks.size() > Reader::kMostMarks) {
                marks.erase(marks.begin());
              }
              return true;
            })
      .map([&] { return std::move(marks); });
}

/// Bounded by kMostSettings: few rows, so read in one go. Returns the newest; one more is read to know whether there
/// are more.
Outcome<std::vector<model::SettingChange>> PastReader::settings(const Window& window, const std::string& device,
                                                                bool* cut) {
  constexpr std::size_t kMost = Reader::kMostMarks;
  Statement rows(connection_,
                 "SELECT at_ms, coalesce(device.name, setting.device), setting.name, (SELECT value FROM setting AS old "
                 "WHERE old.device = setting.device AND old.name = setting.name AND old.at_ms < setting.at_ms ORDER BY "
                 "old.at_ms DESC LIMIT 1), value, setting.device FROM setting LEFT JOIN device ON device.identity = "
                 "setting.device "
                 "WHERE at_ms BETWEEN ?1 AND ?2 AND (?3 = '' OR setting.device IN ('', ?3)) ORDER BY at_ms "
                 "DESC, setting.device DESC, setting.name DESC LIMIT ?4");
  rows.with(milliseconds_of(window.from)).with(milliseconds_of(window.to) - 1).with(device);
  rows.with(static_cast<std::int64_t>(kMost + 1));
  std::vector<model::SettingChange> changes;
  while (true) {
    const auto row = rows.step();
    if (!row) {
      return tl::unexpected(row.error());
    }
    if (!*row) {
      break;
    }
    changes.push_back({time_of(rows.integer(0).value_or(0)), rows.text(1).value_or(""), rows.text(2).value_or(""),
                       rows.text(3), rows.text(4).value_or(""), rows.text(5).value_or("")});
  }
  if (changes.size() > kMost) {
    changes.pop_back();
    if (cut != nullptr) {
      *cut = true;
    }
  }
  std::reverse(changes.begin(), changes.end());
  return changes;
}

}  // namespace ssdpulse::history
