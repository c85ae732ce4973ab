// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/events.h"

#include <algorithm>
#include <string>

#include "daemon/history/account.h"

namespace ssdpulse::history {
namespace {

/// Removes the oldest rows beyond `most` from a table that is ordered by its key.
Outcome<void> keep_newest(Connection& connection, const char* table, const char* column, std::int64_t most) {
  const std::string name(table);
  const std::string key(column);
  return connection.execute("DELETE FROM " + name + " WHERE " + key + " < (SELECT " + key + " FROM " + name +
                            " ORDER BY " + key + " DESC LIMIT 1 OFFSET " + std::to_string(most - 1) + ")");
}

/// Removes former values first, then current ones, each by age.
Outcome<void> forget_settings(Connection& connection, std::int64_t rows) {
  return connection.execute(
      "DELETE FROM setting WHERE (device, name, at_ms) IN (SELECT device, name, at_ms FROM setting ORDER BY value <> "
      "'' "
      "AND at_ms = (SELECT max(at_ms) FROM setting AS last WHERE last.device = setting.device AND last.name = "
      "setting.name), at_ms LIMIT " +
      std::to_string(rows) + ")");
}

}  // namespace

Outcome<void> insert(Connection& connection, const model::PastBurst& burst) {
  Statement row(connection, "INSERT OR REPLACE INTO discard_burst VALUES (?, ?, ?, ?, ?)");
  return row.with(milliseconds_of(burst.begin))
      .with(burst.device)
      .with(burst.trigger)
      .with(std::optional(burst.duration_seconds))
      .with(static_cast<std::int64_t>(burst.bytes))
      .run();
}

Outcome<void> insert(Connection& connection, const model::PastWait& wait) {
  Statement row(connection, "INSERT OR REPLACE INTO host_wait VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  return row.with(milliseconds_of(wait.begin))
      .with(wait.cause)
      .with(wait.subject)
      .with(wait.device)
      .with(wait.tenant)
      .with(std::optional(wait.duration_seconds))
      .with(wait.evidence)
      .with(wait.file)
      .run();
}

Outcome<void> insert(Connection& connection, const SpikeSeconds& seconds, std::uint64_t most_bytes) {
  Statement row(connection,
                "INSERT INTO spike_seconds (begin_ms, end_ms, device, excess_seconds, seconds) VALUES (?, ?, ?, ?, ?)");
  auto inserted = row.with(milliseconds_of(seconds.begin))
                      .with(milliseconds_of(seconds.end))
                      .with(seconds.device)
                      .with(std::optional(seconds.excess_seconds))
                      .with(std::span<const std::uint8_t>(seconds.seconds))
                      .run();
  while (inserted) {
    const auto bytes = connection.number("SELECT coalesce(sum(length(seconds)), 0) FROM spike_seconds");
    if (!bytes) {
      return tl::unexpected(bytes.error());
    }
    if (static_cast<std::uint64_t>(*bytes) <= most_bytes) {
      return {};
    }
    auto gone = connection.execute(
        "DELETE FROM spike_seconds WHERE id = (SELECT id FROM spike_seconds ORDER BY excess_seconds, end_ms LIMIT 1)");
    if (!gone) {
      return gone;
    }
  }
  return inserted;
}

Outcome<void> insert(Connection& connection, const Setting& setting, std::chrono::system_clock::time_point at) {
  Statement row(connection,
                "INSERT OR REPLACE INTO setting SELECT ?1, ?2, ?3, ?4 WHERE ?4 IS NOT (SELECT value FROM setting WHERE "
                "device = ?2 AND name = ?3 ORDER BY at_ms DESC LIMIT 1)");
  return row.with(milliseconds_of(at)).with(setting.device).with(setting.name).with(setting.value).run();
}

Outcome<void> insert(Connection& connection, const model::Mark& mark) {
  Statement row(
      connection,
      "INSERT INTO mark SELECT CASE WHEN EXISTS (SELECT 1 FROM mark WHERE at_ms = ?1) THEN (SELECT at_ms + 1 "
      "FROM mark WHERE at_ms >= ?1 AND NOT EXISTS (SELECT 1 FROM mark AS next WHERE next.at_ms = mark.at_ms + "
      "1) ORDER BY at_ms LIMIT 1) ELSE ?1 END, ?2");
  return row.with(milliseconds_of(mark.at)).with(mark.text).run();
}

Outcome<void> forget_events(Connection& connection, Minute last_kept) {
  const std::string before = std::to_string(milliseconds_of(last_kept));
  return connection
      .execute("DELETE FROM discard_burst WHERE begin_ms < " + before + "; DELETE FROM spike_seconds WHERE end_ms < " +
               before + "; DELETE FROM mark WHERE at_ms < " + before + "; DELETE FROM host_wait WHERE begin_ms < " +
               before)
      .and_then([&] { return keep_newest(connection, "discard_burst", "begin_ms", kMostBursts); })
      .and_then([&] { return keep_newest(connection, "host_wait", "begin_ms", kMostWaits); })
      .and_then([&] { return keep_newest(connection, "mark", "at_ms", kMostMarks); })
      .and_then([&] {
        return connection.execute(
            "DELETE FROM setting WHERE at_ms < " + before +
            " AND (value = '' OR at_ms < (SELECT max(at_ms) FROM setting AS last WHERE last.device = setting.device "
            "AND last.name = setting.name))");
      })
      .and_then([&] { return connection.number("SELECT count(*) FROM setting"); })
      .and_then([&](std::int64_t settings) {
        return settings <= kMostSettings ? Outcome<void>() : forget_settings(connection, settings - kMostSettings);
      });
}

}  // namespace ssdpulse::history
