// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/store.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "daemon/history/event_rows.h"
#include "daemon/model/history_answers.h"

namespace ssdpulse::history {
namespace {

constexpr std::int64_t kLastMeasured = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMinutesKept = std::int64_t{14} * 24 * kHour;  // then they become hours
constexpr std::int64_t kMinutesAlwaysKept = 2 * kHour;                // whatever the file's size

/// Three columns; `bytes` must live until the statement has run.
void bind(Statement& statement, const std::optional<model::ByteCounter>& counter, const CounterBytes& bytes) {
  if (!counter) {
    statement.with_null().with_null().with_null();
    return;
  }
  statement.with(std::span<const std::uint8_t>(bytes))
      .with(static_cast<std::int64_t>(counter->unit_bytes))
      .with(static_cast<std::int64_t>(counter->rounding));
}

/// One row of kSelectMinutes, column by column; `good` turns false at the first value that we cannot have written. Only
/// the types are trusted: the file may have been edited.
class RowReader {
 public:
  explicit RowReader(const Statement& statement) : statement_(statement) {}

  [[nodiscard]] bool good() const { return good_; }
  std::int64_t integer() { return expect(statement_.integer(column_++)); }
  std::string name() {
    std::string text = expect(statement_.text(column_++)).raw();
    good_ = good_ && text.size() <= model::kMaxNameBytes;
    return text;
  }
  std::optional<double> real() {
    const int column = column_++;
    return statement_.is_null(column) ? std::nullopt : std::optional(expect(statement_.real(column)));
  }
  std::optional<model::Uint128> count() {
    const int column = column_++;
    if (statement_.is_null(column)) {
      return std::nullopt;
    }
    return expect(decode_counter(expect(statement_.blob(column))));
  }
  std::optional<model::ByteCounter> counter() {
    const int column = std::exchange(column_, column_ + 3);
    if (statement_.is_null(column) && statement_.is_null(column + 1) && statement_.is_null(column + 2)) {
      return std::nullopt;
    }
    const model::Uint128 count = expect(decode_counter(expect(statement_.blob(column))));
    const std::int64_t unit = expect(statement_.integer(column + 1));
    const std::int64_t rounding = expect(statement_.integer(column + 2));
    good_ = good_ && rounding >= 0 && rounding <= static_cast<std::int64_t>(model::Rounding::unknown);
    return model::ByteCounter{count, static_cast<std::uint64_t>(unit), static_cast<model::Rounding>(rounding)};
  }

 private:
  template <typename T>
  T expect(std::optional<T> value) {
    good_ = good_ && value.has_value();
    return value ? std::move(*value) : T{};
  }

  const Statement& statement_;
  int column_ = 0;
  bool good_ = true;
};

const std::string kSelectMinutes =
    "SELECT minute, boottime_ns, firmware, source, host_count, host_unit_bytes, host_rounding, host_count_before, "
    "media_count, media_unit_bytes, media_rounding, percentage_used, available_spare, temperature_celsius, "
    "discard_bytes FROM drive_minute JOIN drive ON drive.id = drive_minute.drive "
    "WHERE serial = ? AND model = ? AND nqn = ? AND minute BETWEEN ? AND ? AND NOT " +
    stamped_ahead("drive_minute", "minute") + " ORDER BY minute DESC, drive.id DESC, measured DESC LIMIT ?";

std::optional<model::DriveMinute> read_minute(const Statement& statement, const model::DriveKey& drive) {
  RowReader reader(statement);
  model::DriveMinute row;
  row.drive = drive;
  row.minute = minute_of(reader.integer());  // within the range asked for
  row.boottime = std::chrono::nanoseconds(reader.integer());
  row.drive.firmware = reader.name();
  row.source = reader.name();
  row.writes.host = reader.counter();
  row.host_count_before = reader.count();
  row.writes.media = reader.counter();
  row.percentage_used = reader.real();
  row.available_spare = reader.real();
  row.temperature_celsius = reader.real();
  row.discard_bytes = static_cast<std::uint64_t>(reader.integer());
  return reader.good() ? std::optional(std::move(row)) : std::nullopt;
}

}  // namespace

Outcome<Store> Store::open(const std::string& path, const StoreLimits& limits, std::optional<FileIdentity>& checked,
                           const std::atomic<bool>& stop) {
  auto now_checked = checked;
  auto connection = open_database(path, std::max(limits.bytes, kMinSizeLimit), now_checked, stop);
  if (!connection) {
    return tl::unexpected(connection.error());
  }
  Store store(std::move(*connection), path, limits);
  if (checked == now_checked) {
    return store;
  }
  return check_account(store.connection_).map([&](AccountCheck check) {
    checked = now_checked;
    if (!check.agrees()) {
      store.disagreement_ = std::move(check);
    }
    return std::move(store);
  });
}

Outcome<Store::Written> Store::write(const model::Batch& batch, const ClockReading& now) {
  if (const auto begun = connection_.execute("BEGIN IMMEDIATE"); !begun) {
    return tl::unexpected(begun.error());
  }
  auto written = write_within_transaction(batch, now).and_then([&](Written done) {
    return connection_.execute("COMMIT").map([&] {
      disagreement_.reset();
      return done;
    });
  });
  if (!written && written.error().refused) {
    if (const auto undone = connection_.execute("ROLLBACK"); !undone) {
      return tl::unexpected(undone.error());
    }
  }
  return written;  // after any other failure, closing the connection rolls back
}

Outcome<Store::Written> Store::write_within_transaction(const model::Batch& batch, const ClockReading& now) {
  const auto before = load_account(connection_);
  if (!before) {
    return tl::unexpected(before.error());
  }
  const RowLedger rows_before = before->value_or(Account{}).rows;
  Account account = disagreement_ ? disagreement_->account : before->value_or(Account{});
  Written written;
  written.corrected = disagreement_ ? disagreement_->text() : "";
  const auto step_back = read_clocks(connection_, account, now);
  if (!step_back) {
    return tl::unexpected(step_back.error());
  }
  written.step_back = *step_back;
  if (const auto room = make_room(account); !room) {
    return tl::unexpected(room.error());
  }
  DeviceRows devices(connection_, account);
  const auto done =
      try_each(batch.minutes, [&](const model::DriveMinute& row) { return insert(row, account); })
          .and_then([&] { return try_each(batch.states, [&](const auto& row) { return save(row, account); }); })
          .and_then([&] { return try_each(batch.spikes, [&](const auto& row) { return insert(row, account); }); })
          .and_then([&] { return try_each(batch.device_minutes, [&](const auto& row) { return devices.add(row); }); })
          .and_then([&] { return insert_events(batch, account, written); })
          .and_then([&] { return devices.make_hours(now.wall, open_lanes_); })
          .and_then([&] {
            written.rows = account.rows.since(rows_before);
            for (const auto& [table, rows] : account.rows.tables()) {
              if (const auto lost = rows.removed.at(static_cast<std::size_t>(Removal::unreadable)); lost > 0) {
                written.unreadable[table] = lost;
              }
            }
            return update_reach(batch, account, written.rows);
          })
          .and_then([&] {
            written.reach = reach_of(account);
            return save_account(connection_, account);
          })
          .and_then([&] { return free_surplus_pages(); });
  return done.map([&] { return std::move(written); });
}

/// Between two upkeeps, only what came late can make it longer. An hour that is not over has only minutes.
Outcome<void> Store::update_reach(const model::Batch& batch, Account& account, const RowLedger& changes) {
  const auto removed = [&](const char* table) { return changes.at(table).all_removed() > 0; };
  if (!knows_reach_ || upkeep_at_ <= account.measured() || removed("device_minute") || removed("device_hour")) {
    DeviceRows rows(connection_, account);
    return rows.first("device_minute").and_then([&](std::optional<std::int64_t> minutes) {
      return rows.first("device_hour").map([&](std::optional<std::int64_t> hours) {
        account.minutes_reach = minutes.value_or(0);
        account.hours_reach = hours.value_or(account.minutes_reach);
        knows_reach_ = true;
      });
    });
  }
  for (const model::DeviceMinute& row : batch.device_minutes) {
    if (const std::int64_t minute = number_of(row.minute); minute >= kClockUnset) {
      account.minutes_reach = account.minutes_reach == 0 ? minute : std::min(account.minutes_reach, minute);
    }
  }
  account.hours_reach = account.hours_reach == 0 ? account.minutes_reach : account.hours_reach;
  return {};
}

Outcome<void> Store::insert_events(const model::Batch& batch, Account& account, Written& written) {
  const std::int64_t measured = account.measured();
  RowLedger& ledger = account.rows;
  const auto insert = [&](const auto& row) { return history::insert(connection_, row, measured, ledger); };
  return try_each(batch.bursts, insert)
      .and_then([&] { return try_each(batch.waits, insert); })
      .and_then([&] {
        return try_each(batch.spike_seconds, [&](const auto& row) {
          return history::insert(connection_, row, measured, limits_.bytes / 8, ledger);
        });
      })
      .and_then([&] {
        return try_each(batch.settings,
                        [&](const auto& row) { return history::insert(connection_, row, batch.at, measured, ledger); });
      })
      .and_then([&] {
        return try_each(batch.marks, [&](const model::Mark& mark) {
          return history::insert(connection_, mark, measured, ledger).map([&](model::WallTime at) {
            written.marks.push_back(at);
          });
        });
      });
}

/// Leaves room for what comes next: a sixteenth stays free.
Outcome<bool> Store::is_full() {
  const auto pages = connection_.number("PRAGMA page_count");
  const auto free_pages = connection_.number("PRAGMA freelist_count");
  if (!pages || !free_pages) {
    return tl::unexpected(pages ? free_pages.error() : pages.error());
  }
  return pages_of(connection_, std::max(limits_.bytes, kMinSizeLimit)).map([&](std::int64_t max_pages) {
    return *pages - *free_pages > max_pages - max_pages / 16;
  });
}

/// In the order in which room is made: tenants are held to a fifth, and old minutes become hours. If the file is full,
/// minutes go first, then the oldest of all.
Outcome<void> Store::make_room(Account& account) {
  const auto full = is_full();
  if (!full) {
    return tl::unexpected(full.error());
  }
  DeviceRows devices(connection_, account);
  if (account.tenant_bytes > static_cast<std::int64_t>(limits_.bytes / 5)) {
    if (auto gone = devices.forget_tenants(); !gone) {
      return tl::unexpected(gone.error());
    }
  }
  const bool all_lanes = *full || upkeep_at_ <= account.measured();
  const std::int64_t minutes_kept = std::min(kMinutesKept, limits_.retention.count());
  auto made = thin_drive_minutes(account)
                  .and_then([&] {
                    return all_lanes ? devices.thin_hour(account.measured() - minutes_kept) : Outcome<std::uint64_t>(0);
                  })
                  .and_then([&](std::uint64_t thinned) {
                    if (!*full || thinned > 0) {
                      return Outcome<bool>(true);
                    }
                    // Minutes whose hour is kept are not missed. The hour that has just ended is viewed most.
                    return devices.thin_hour(account.measured() - kMinutesAlwaysKept).map([](std::uint64_t rows) {
                      return rows > 0;
                    });
                  });
  if (!made) {
    return tl::unexpected(made.error());
  }
  return delete_old_rows(account, !*made, all_lanes, devices)
      .and_then([&] {
        return all_lanes ? devices.forget_names(account.measured() - limits_.retention.count()) : Outcome<void>();
      })
      .and_then([&] {
        return enforce_shares(connection_, std::max(limits_.bytes, kMinSizeLimit), account.measured(), account.rows);
      })
      .and_then([&] { return all_lanes ? plan_upkeep(account) : Outcome<void>(); });
}

/// The rows of devices that are gone age, too, but there is no hurry to remove them.
Outcome<void> Store::plan_upkeep(const Account& account) {
  constexpr std::int64_t kLanesEachMinute = 256;
  constexpr std::int64_t kLongestPause = kHour / 2;  // an hour of minutes goes each time: this also catches up
  return connection_.number("SELECT count(*) FROM device").map([&](std::int64_t lanes) {
    upkeep_at_ = account.measured() + std::min(lanes / kLanesEachMinute, kLongestPause);
  });
}

/// Keeps one row per drive and hour: counters lose only time resolution.
Outcome<void> Store::thin_drive_minutes(Account& account) {
  const auto first =
      connection_.number("SELECT coalesce(min(measured), " + std::to_string(kLastMeasured - kHour) +
                         ") FROM drive_minute WHERE measured >= " + std::to_string(account.drive_minutes_thinned_to));
  if (!first) {
    return tl::unexpected(first.error());
  }
  if (*first + kHour > account.measured() - kMinutesKept) {
    return {};
  }
  account.drive_minutes_thinned_to = *first + kHour;
  Statement rows(
      connection_,
      "DELETE FROM drive_minute WHERE measured BETWEEN ?1 AND ?2 AND (minute, drive, measured) NOT IN (SELECT "
      "max(minute), drive, measured FROM drive_minute WHERE measured BETWEEN ?1 AND ?2 GROUP BY drive, minute "
      "/ 60)");
  return rows.with(*first).with(*first + kHour - 1).run().map([&] {
    account.rows.remove("drive_minute", Removal::hour, connection_.changed_rows());
  });
}

/// At most a thousand, older than `end`.
Outcome<void> Store::delete_drive_minutes(std::int64_t end, Removal why, RowLedger& ledger) {
  Statement rows(connection_,
                 "DELETE FROM drive_minute WHERE (minute, drive, measured) IN (SELECT minute, drive, measured FROM "
                 "drive_minute WHERE measured < ? ORDER BY measured, minute, drive LIMIT 1000)");
  return rows.with(end).run().map([&] { ledger.remove("drive_minute", why, connection_.changed_rows()); });
}

/// The age of the oldest row that is removed when the file is full.
Outcome<std::optional<std::int64_t>> Store::oldest_row(DeviceRows& devices) {
  const auto drives = Statement(connection_, "SELECT min(measured) FROM drive_minute").step_to_number();
  const auto hours = devices.oldest("device_hour");
  const auto events = oldest_event(connection_);
  std::optional<std::int64_t> oldest;
  for (const auto* age : {&drives, &hours, &events}) {
    if (!*age) {
      return *age;
    }
    oldest = **age ? std::min((*age)->value(), oldest.value_or(kLastMeasured)) : oldest;
  }
  return oldest;
}

/// A step at a time. `too_much`: the oldest of what is young, too.
Outcome<void> Store::delete_old_rows(Account& account, bool too_much, bool all_lanes, DeviceRows& devices) {
  constexpr std::int64_t kStep = 10 * kHour;
  const std::int64_t last_kept = account.measured() - limits_.retention.count();
  auto deleted = delete_older(account, last_kept, Removal::age, all_lanes, devices)
                     .and_then([&] { return all_lanes ? forget_drives(last_kept, account.rows) : Outcome<void>(); })
                     .and_then([&] { return forget_steps(connection_, last_kept); });
  if (!deleted || !too_much) {
    return deleted;
  }
  return oldest_row(devices).and_then([&](std::optional<std::int64_t> oldest) {
    return oldest ? delete_older(account, std::max(last_kept, *oldest + kStep), Removal::size, all_lanes, devices)
                  : Outcome<void>();
  });
}

Outcome<void> Store::delete_older(Account& account, std::int64_t end, Removal why, bool all_lanes,
                                  DeviceRows& devices) {
  const std::int64_t last_kept = account.measured() - limits_.retention.count();
  const std::int64_t end_of_hours = std::max(last_kept, std::min(end, account.measured() - kMinutesAlwaysKept));
  return (all_lanes ? devices.forget_hours(end_of_hours, why) : Outcome<void>())
      .and_then([&] { return forget_events(connection_, end, why, account.rows); })
      .and_then([&] { return all_lanes ? forget_settings(connection_, end, why, account.rows) : Outcome<void>(); })
      .and_then([&] { return delete_drive_minutes(end, why, account.rows); });
}

/// A drive is removed after its last row; if it comes back, it starts over, with another number.
Outcome<void> Store::forget_drives(std::int64_t end, RowLedger& ledger) {
  Statement drives(connection_,
                   "DELETE FROM drive WHERE last_measured < ? AND last_measured < coalesce((SELECT min(measured) FROM "
                   "drive_minute), ?)");
  return drives.with(end).with(kLastMeasured).run().map([&] {
    ledger.remove("drive", Removal::age, connection_.changed_rows());
  });
}

Outcome<void> Store::insert(const model::LatencySpike& spike, Account& account) {
  return put(connection_, account.rows, "latency_spike", RowBefore::lost, [&](const std::string& insert_into) {
    Statement row(connection_, (insert_into + "latency_spike VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").c_str());
    return row.with(milliseconds_of(spike.begin))
        .with(spike.device)
        .with(std::string(name(spike.operation)))
        .with(account.measured())
        .with(std::optional(std::chrono::duration<double>(spike.duration).count()))
        .with(std::optional(spike.peak_seconds))
        .with(std::optional(spike.baseline_seconds))
        .with(std::optional(spike.excess_seconds))
        .with(static_cast<std::int64_t>(spike.ios))
        .with(std::string(name(spike.cause, model::kSpikeCauseNames)))
        .with(model::evidence_text(spike))
        .with(model::missing_text(spike))
        .run();
  });
}

/// Free pages are kept for what comes next; a large surplus, left by a shorter retention, is freed, a little at a time.
Outcome<void> Store::free_surplus_pages() {
  constexpr std::uint64_t kKeptFreeBytes = 1U << 20U;
  const auto kept = pages_of(connection_, kKeptFreeBytes);
  const auto free_pages = connection_.number("PRAGMA freelist_count");
  if (!kept || !free_pages) {
    return tl::unexpected(kept ? free_pages.error() : kept.error());
  }
  return *free_pages <= *kept ? Outcome<void>()
                              : connection_.execute("PRAGMA incremental_vacuum(" + std::to_string(*kept / 4) + ")");
}

Outcome<std::int64_t> Store::id_of(const model::DriveKey& drive, Account& account) {
  const auto id_after = [&](const char* sql) -> Outcome<std::optional<std::int64_t>> {
    Statement statement(connection_, sql);
    return statement.with(drive.nqn)
        .with(drive.serial)
        .with(drive.model)
        .with(drive.firmware)
        .with(account.measured())
        .step_to_number();
  };
  const auto known = id_after(
      "UPDATE drive SET last_measured = max(last_measured, ?5) WHERE nqn = ?1 AND serial = ?2 AND model = ?3 AND "
      "firmware = ?4 RETURNING id");
  if (!known || *known) {
    return known.map([](const auto& id) { return *id; });
  }
  return id_after("INSERT INTO drive (nqn, serial, model, firmware, last_measured) VALUES (?, ?, ?, ?, ?) RETURNING id")
      .and_then([&](std::optional<std::int64_t> id) -> Outcome<std::int64_t> {
        account.rows.insert("drive");
        return id ? Outcome<std::int64_t>(*id) : tl::unexpected(Failure{"a drive without an id", true});
      });
}

Outcome<void> Store::insert(const model::DriveMinute& row, Account& account) {
  const std::int64_t measured = account.measured();
  const auto id = id_of(row.drive, account);
  if (!id) {
    return tl::unexpected(id.error());
  }
  // The second row of a minute replaces the first, unless a clock that was set back by more comes to it again.
  const auto replace = [&](Removal why, std::chrono::nanoseconds read_before) {
    Statement first(connection_,
                    "DELETE FROM drive_minute WHERE minute = ? AND drive = ? AND measured >= ? AND boottime_ns <= ?");
    return first.with(number_of(row.minute))
        .with(*id)
        .with(measured - kSameClock)
        .with(read_before.count())
        .run()
        .map([&] { account.rows.remove("drive_minute", why, connection_.changed_rows()); });
  };
  // Two readings within one minute are at most a minute apart.
  const auto replaced = replace(Removal::clock, row.boottime - std::chrono::minutes(1)).and_then([&] {
    return replace(Removal::repeated, std::chrono::nanoseconds::max());
  });
  if (!replaced) {
    return replaced;
  }
  const CounterBytes host = encode_counter(row.writes.host ? row.writes.host->count : 0);
  const CounterBytes before = encode_counter(row.host_count_before.value_or(0));
  const CounterBytes media = encode_counter(row.writes.media ? row.writes.media->count : 0);
  Statement statement(connection_, "INSERT INTO drive_minute VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  statement.with(number_of(row.minute)).with(*id).with(measured).with(row.boottime.count()).with(row.source);
  bind(statement, row.writes.host, host);
  if (row.host_count_before) {
    statement.with(std::span<const std::uint8_t>(before));
  } else {
    statement.with_null();
  }
  bind(statement, row.writes.media, media);
  return statement.with(row.percentage_used)
      .with(row.available_spare)
      .with(row.temperature_celsius)
      .with(static_cast<std::int64_t>(row.discard_bytes))
      .run()
      .map([&] { account.rows.insert("drive_minute"); });
}

Outcome<void> Store::save(const model::DriveState& state, Account& account) {
  const auto id = id_of(state.drive, account);
  if (!id) {
    return tl::unexpected(id.error());
  }
  Statement saved(connection_, "UPDATE drive SET state = ? WHERE id = ?");
  return saved.with(std::span<const std::uint8_t>(state.bytes)).with(*id).run().and_then([&] {
    Statement others(connection_,
                     "UPDATE drive SET state = NULL WHERE serial = ? AND model = ? AND nqn = ? AND id <> ? AND "
                     "state NOT NULL");
    return others.with(state.drive.serial).with(state.drive.model).with(state.drive.nqn).with(*id).run();
  });
}

Outcome<model::Recalled> Store::recall(const model::DriveKey& drive, model::Minute since, model::Minute until) {
  model::Recalled recalled;
  auto state = saved_state(drive);
  if (!state) {
    return tl::unexpected(state.error());
  }
  recalled.state = std::move(*state);
  Statement rows(connection_, kSelectMinutes.c_str());
  rows.with(drive.serial).with(drive.model).with(drive.nqn).with(number_of(since)).with(number_of(until));
  rows.with(static_cast<std::int64_t>(model::kMaxRecalled));
  return rows
      .each([&] {
        if (auto minute = read_minute(rows, drive)) {
          recalled.minutes.push_back(std::move(*minute));
        } else {
          ++recalled.unreadable;
        }
      })
      .map([&] {
        std::reverse(recalled.minutes.begin(), recalled.minutes.end());
        return std::move(recalled);
      });
}

Outcome<std::optional<model::DriveState>> Store::saved_state(const model::DriveKey& drive) {
  Statement statement(connection_,
                      "SELECT firmware, state FROM drive WHERE serial = ? AND model = ? AND nqn = ? AND "
                      "state NOT NULL LIMIT 1");
  return statement.with(drive.serial)
      .with(drive.model)
      .with(drive.nqn)
      .step()
      .map([&](bool row) -> std::optional<model::DriveState> {
        auto firmware = row ? statement.text(0) : std::nullopt;
        auto bytes = row ? statement.blob(1) : std::nullopt;
        if (!firmware || firmware->raw().size() > model::kMaxNameBytes || !bytes ||
            bytes->size() > model::kMaxStateBytes) {
          return std::nullopt;
        }
        return model::DriveState{{drive.serial, drive.model, firmware->raw(), drive.nqn}, std::move(*bytes)};
      });
}

std::uint64_t Store::bytes_on_disk() const {
  std::uint64_t bytes = 0;
  for (const char* suffix : {"", "-journal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path_ + suffix, error);
    bytes += error ? 0 : size;
  }
  return bytes;
}

}  // namespace ssdpulse::history
