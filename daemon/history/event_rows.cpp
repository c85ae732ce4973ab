// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/event_rows.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace ssdpulse::history {
namespace {

/// A table of events, and the columns that tell its rows apart.
struct Events {
  const char* table;
  const char* key;
  const char* when;           // orders rows of one age
  std::int64_t max_rows = 0;  // at the default size; 0: bounded elsewhere
};
constexpr std::array kEvents{
    Events{"latency_spike", "begin_ms, device, operation, measured", "begin_ms"},
    Events{"discard_burst", "begin_ms, device, trigger, measured", "begin_ms", kMaxBursts},
    Events{"host_wait", "begin_ms, cause, subject, device, measured", "begin_ms", kMaxWaits},
    Events{"spike_seconds", "id", "id"},
    Events{"mark", "at_ms", "at_ms", kMaxMarks},
};
constexpr Events kSettings{"setting", "id", "id", kMaxSettings};
constexpr const char* kRowsAtATime = "1000";

/// Whether a row of a setting holds its current value.
constexpr const char* kIsCurrent =
    "(value <> '' AND id = (SELECT max(id) FROM setting AS last WHERE last.device = setting.device AND last.name = "
    "setting.name))";

/// When the device of a setting was last present; the host always is.
constexpr const char* kLastSeen =
    "CASE device WHEN '' THEN 9223372036854775807 ELSE coalesce((SELECT max(last_measured) FROM device AS seen WHERE "
    "seen.identity = setting.device), measured) END";

/// `chosen`: the end of a SELECT of keys.
Outcome<void> erase(Connection& connection, const Events& events, const std::string& chosen, Removal why,
                    RowLedger& ledger) {
  const std::string table(events.table);
  const std::string key(events.key);
  return connection
      .execute("DELETE FROM " + table + " WHERE (" + key + ") IN (SELECT " + key + " FROM " + table + chosen + ")")
      .map([&] { ledger.remove(table, why, connection.changed_rows()); });
}

std::int64_t scaled(std::int64_t max_rows, std::uint64_t size_limit) {
  constexpr double kDefaultSize = std::uint64_t{512} << 20U;
  constexpr double kMinRows = 1000;
  return static_cast<std::int64_t>(
      std::max(kMinRows, static_cast<double>(max_rows) * static_cast<double>(size_limit) / kDefaultSize));
}

}  // namespace

Outcome<void> insert(Connection& connection, const model::PastBurst& burst, std::int64_t measured, RowLedger& ledger) {
  return put(connection, ledger, "discard_burst", RowBefore::lost, [&](const std::string& insert_into) {
    Statement row(connection, (insert_into + "discard_burst VALUES (?, ?, ?, ?, ?, ?)").c_str());
    return row.with(milliseconds_of(burst.begin))
        .with(burst.device)
        .with(util::for_history(burst.trigger))
        .with(measured)
        .with(std::optional(burst.duration_seconds))
        .with(static_cast<std::int64_t>(burst.bytes))
        .run();
  });
}

Outcome<void> insert(Connection& connection, const model::PastWait& wait, std::int64_t measured, RowLedger& ledger) {
  return put(connection, ledger, "host_wait", RowBefore::lost, [&](const std::string& insert_into) {
    Statement row(connection, (insert_into + "host_wait VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)").c_str());
    return row.with(milliseconds_of(wait.begin))
        .with(util::for_history(wait.cause))
        .with(util::for_history(wait.subject))
        .with(wait.device)
        .with(measured)
        .with(wait.tenant)
        .with(std::optional(wait.duration_seconds))
        .with(util::for_history(wait.evidence))
        .with(util::for_history(wait.file))
        .run();
  });
}

Outcome<void> insert(Connection& connection, const model::SpikeSeconds& seconds, std::int64_t measured,
                     std::uint64_t max_bytes, RowLedger& ledger) {
  Statement row(connection,
                "INSERT INTO spike_seconds (begin_ms, end_ms, device, excess_seconds, seconds, measured) VALUES (?, ?, "
                "?, ?, ?, ?)");
  auto inserted = row.with(milliseconds_of(seconds.begin))
                      .with(milliseconds_of(seconds.end))
                      .with(seconds.device)
                      .with(std::optional(seconds.excess_seconds))
                      .with(std::span<const std::uint8_t>(seconds.seconds))
                      .with(measured)
                      .run();
  ledger.insert("spike_seconds", inserted ? 1 : 0);
  while (inserted) {
    const auto bytes = connection.number("SELECT coalesce(sum(length(seconds)), 0) FROM spike_seconds");
    if (!bytes) {
      return tl::unexpected(bytes.error());
    }
    if (static_cast<std::uint64_t>(*bytes) <= max_bytes) {
      return {};
    }
    inserted = connection
                   .execute(
                       "DELETE FROM spike_seconds WHERE id = (SELECT id FROM spike_seconds ORDER BY excess_seconds, "
                       "measured, id LIMIT 1)")
                   .map([&] { ledger.remove("spike_seconds", Removal::size, connection.changed_rows()); });
  }
  return inserted;
}

Outcome<void> insert(Connection& connection, const model::Setting& setting, std::chrono::system_clock::time_point at,
                     std::int64_t measured, RowLedger& ledger) {
  Statement row(connection,
                "INSERT INTO setting (at_ms, device, name, value, measured) SELECT ?1, ?2, ?3, ?4, ?5 "
                "WHERE ?4 IS NOT (SELECT value FROM setting WHERE device = ?2 AND name = ?3 ORDER BY id DESC LIMIT 1)");
  return row.with(milliseconds_of(at))
      .with(setting.device)
      .with(setting.name)
      .with(setting.value)
      .with(measured)
      .run()
      .map([&] { ledger.insert("setting", connection.changed_rows()); });
}

Outcome<model::WallTime> insert(Connection& connection, const model::Mark& mark, std::int64_t measured,
                                RowLedger& ledger) {
  using OptionalTime = std::optional<std::int64_t>;
  Statement same(connection, "SELECT at_ms FROM mark WHERE id = ?");
  const auto sent_before = mark.id.empty() ? Outcome<OptionalTime>() : same.with(mark.id).step_to_number();
  if (!sent_before || *sent_before) {
    return sent_before.map([](const OptionalTime& at) { return time_of(*at); });
  }
  Statement free(connection,
                 "SELECT CASE WHEN EXISTS (SELECT 1 FROM mark WHERE at_ms = ?1) THEN (SELECT at_ms + 1 FROM mark WHERE "
                 "at_ms >= ?1 AND NOT EXISTS (SELECT 1 FROM mark AS next WHERE next.at_ms = mark.at_ms + 1) ORDER BY "
                 "at_ms LIMIT 1) ELSE ?1 END");
  const auto free_time = free.with(milliseconds_of(mark.at)).step_to_number();
  if (!free_time) {
    return tl::unexpected(free_time.error());
  }
  const std::int64_t at = free_time->value_or(milliseconds_of(mark.at));
  Statement row(connection, "INSERT INTO mark (at_ms, text, id, measured) VALUES (?, ?, nullif(?, ''), ?)");
  const std::string text = util::for_history(mark.text);
  return row.with(at).with(text).with(mark.id).with(measured).run().map([&] {
    ledger.insert("mark");
    return time_of(at);
  });
}

Outcome<std::optional<std::int64_t>> oldest_event(Connection& connection) {
  std::optional<std::int64_t> oldest;
  for (const Events& events : kEvents) {
    Statement row(connection, ("SELECT min(measured) FROM " + std::string(events.table)).c_str());
    const auto measured = row.step_to_number();
    if (!measured) {
      return measured;
    }
    if (*measured && events.table != std::string_view("mark")) {
      oldest = std::min(oldest.value_or(**measured), **measured);
    }
  }
  return oldest;
}

Outcome<void> forget_events(Connection& connection, std::int64_t end, Removal why, RowLedger& ledger) {
  const std::string older = " WHERE measured < " + std::to_string(end);
  return try_each(kEvents, [&](const Events& events) {
    return erase(connection, events, older + " ORDER BY measured, " + events.when + " LIMIT " + kRowsAtATime, why,
                 ledger);
  });
}

Outcome<void> forget_settings(Connection& connection, std::int64_t end, Removal why, RowLedger& ledger) {
  return erase(
      connection, kSettings,
      " WHERE measured < " + std::to_string(end) + " AND NOT " + kIsCurrent + " ORDER BY id LIMIT " + kRowsAtATime, why,
      ledger);
}

Outcome<void> enforce_shares(Connection& connection, std::uint64_t size_limit, std::int64_t measured,
                             RowLedger& ledger) {
  const auto erased = try_each(kEvents, [&](const Events& events) {
    const std::string surplus = std::string(" ORDER BY measured DESC, ") + events.when + " DESC LIMIT " + kRowsAtATime +
                                " OFFSET " + std::to_string(scaled(events.max_rows, size_limit));
    return events.max_rows == 0 ? Outcome<void>() : erase(connection, events, surplus, Removal::size, ledger);
  });
  const auto rows = erased.and_then([&] { return connection.number("SELECT count(*) FROM setting"); });
  const std::int64_t max_rows = scaled(kSettings.max_rows, size_limit);
  if (!rows || *rows <= max_rows) {
    return rows.map([](std::int64_t) {});
  }
  const auto erase_settings = [&](const std::string& condition, std::int64_t count) {
    return erase(connection, kSettings,
                 condition + " ORDER BY " + kIsCurrent + ", " + kLastSeen + ", id LIMIT " + std::to_string(count),
                 Removal::size, ledger);
  };
  const std::string not_needed =
      std::string(" WHERE NOT ") + kIsCurrent + " OR " + kLastSeen + " < " + std::to_string(measured - kHour);
  return erase_settings(not_needed, *rows - max_rows + max_rows / 20)
      .and_then([&] { return connection.number("SELECT count(*) FROM setting"); })
      .and_then(
          [&](std::int64_t left) { return left <= max_rows ? Outcome<void>() : erase_settings("", left - max_rows); });
}

}  // namespace ssdpulse::history
