// SPDX-License-Identifier: Apache-2.0
// The SQL. Of what is read back, only the types are trusted: the file may have been edited.
#include "daemon/history/store.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>

#include "daemon/history/events.h"
#include "daemon/history/reach.h"

namespace ssdpulse::history {
namespace {

constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
constexpr std::chrono::minutes kMinutesKept = std::chrono::days(14);        // then they become hours
constexpr std::chrono::minutes kMinutesAlwaysKept = std::chrono::hours(2);  // whatever the file's size

template <typename Row, typename Insert>
Outcome<void> insert_all(const std::vector<Row>& rows, Insert insert_one) {
  for (const Row& row : rows) {
    if (Outcome<void> inserted = insert_one(row); !inserted) {
      return inserted;
    }
  }
  return {};
}

/// The evidence, preceded by the cost of the spike: excess_seconds=1.5 gc_score=0.5.
std::string evidence_with_excess(const model::LatencySpike& spike) {
  std::ostringstream text;
  const std::string evidence = model::evidence_text(spike);
  text << kExcess << spike.excess_seconds << (evidence.empty() ? "" : " ") << evidence;
  return text.str();
}

using CountBytes = std::array<std::uint8_t, 16>;

CountBytes big_endian(model::Uint128 count) {
  CountBytes bytes{};
  for (std::size_t i = bytes.size(); i-- > 0; count >>= 8U) {
    bytes[i] = static_cast<std::uint8_t>(count);
  }
  return bytes;
}

model::Uint128 from_big_endian(const Bytes& bytes) {
  model::Uint128 count = 0;
  for (const std::uint8_t byte : bytes) {
    count = count << 8U | byte;
  }
  return count;
}

/// Three columns; `bytes` must live until the statement has run.
void bind(Statement& statement, const std::optional<model::ByteCounter>& counter, const CountBytes& bytes) {
  if (!counter) {
    statement.with_null().with_null().with_null();
    return;
  }
  statement.with(std::span<const std::uint8_t>(bytes))
      .with(static_cast<std::int64_t>(counter->unit_bytes))
      .with(static_cast<std::int64_t>(counter->rounding));
}

/// One row of kSelectMinutes, column by column; `good` turns false at the first one that we cannot have written.
class RowReader {
 public:
  explicit RowReader(const Statement& statement) : statement_(statement) {}

  [[nodiscard]] bool good() const { return good_; }
  std::int64_t integer() { return expect(statement_.integer(column_++)); }
  std::string name() {
    std::string text = expect(statement_.text(column_++));
    good_ = good_ && text.size() <= kMostNameBytes;
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
    const Bytes bytes = expect(statement_.blob(column));
    good_ = good_ && bytes.size() == CountBytes{}.size();
    return good_ ? std::optional(from_big_endian(bytes)) : std::nullopt;
  }
  std::optional<model::ByteCounter> counter() {
    const int column = std::exchange(column_, column_ + 3);
    if (statement_.is_null(column) && statement_.is_null(column + 1) && statement_.is_null(column + 2)) {
      return std::nullopt;
    }
    const Bytes count = expect(statement_.blob(column));
    const std::int64_t unit = expect(statement_.integer(column + 1));
    const std::int64_t rounding = expect(statement_.integer(column + 2));
    good_ = good_ && count.size() == CountBytes{}.size() && rounding >= 0 &&
            rounding <= static_cast<std::int64_t>(model::Rounding::unknown);
    if (!good_) {
      return std::nullopt;
    }
    return model::ByteCounter{from_big_endian(count), static_cast<std::uint64_t>(unit),
                              static_cast<model::Rounding>(rounding)};
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

constexpr const char* kSelectMinutes =
    "SELECT minute, boottime_ns, firmware, source, host_count, host_unit_bytes, host_rounding, host_count_before, "
    "media_count, media_unit_bytes, media_rounding, percentage_used, available_spare, temperature_celsius, "
    "read_p50_seconds, read_p99_seconds, write_p50_seconds, write_p99_seconds, discard_bytes "
    "FROM drive_minute JOIN drive ON drive.id = drive_minute.drive "
    "WHERE serial = ? AND model = ? AND nqn IN ('', ?) AND minute BETWEEN ? AND ? "  // '': from before it was kept
    "ORDER BY minute DESC, drive.id DESC LIMIT ?";

std::optional<DriveMinute> read_minute(const Statement& statement, const DriveKey& drive) {
  RowReader reader(statement);
  DriveMinute row;
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
  row.read_p50_seconds = reader.real();
  row.read_p99_seconds = reader.real();
  row.write_p50_seconds = reader.real();
  row.write_p99_seconds = reader.real();
  row.discard_bytes = static_cast<std::uint64_t>(reader.integer());
  return reader.good() ? std::optional(std::move(row)) : std::nullopt;
}

}  // namespace

Outcome<Store> Store::open(const std::string& path, const StoreLimits& limits, std::optional<FileIdentity>& checked,
                           const std::atomic<bool>& stop) {
  return open_database(path, std::max(limits.bytes, kLeastSizeLimit), checked, stop).map([&](Connection connection) {
    return Store(std::move(connection), path, limits);
  });
}

Outcome<Store::Written> Store::write(const Batch& batch, Minute now) {
  if (const auto begun = connection_.execute("BEGIN IMMEDIATE"); !begun) {
    return tl::unexpected(begun.error());
  }
  auto written = write_within_transaction(batch, now).and_then([&](Written done) {
    return connection_.execute("COMMIT").map([&] { return done; });
  });
  if (!written && written.error().refused) {
    if (const auto undone = connection_.execute("ROLLBACK"); !undone) {
      return tl::unexpected(undone.error());
    }
  }
  return written;  // after any other failure, closing the connection rolls back
}

Outcome<Store::Written> Store::write_within_transaction(const Batch& batch, Minute now) {
  const auto before = load_account(connection_);
  if (!before) {
    return tl::unexpected(before.error());
  }
  Account account = before->value_or(Account{hour_of(number_of(now))});
  const auto deleted = make_room(now, account);
  if (!deleted) {
    return tl::unexpected(deleted.error());
  }
  DeviceRows devices(connection_, account);
  const auto done =
      insert_all(batch.minutes, [&](const DriveMinute& row) { return insert(row); })
          .and_then([&] { return insert_all(batch.states, [&](const auto& row) { return save(row, now); }); })
          .and_then([&] { return insert_all(batch.spikes, [&](const auto& row) { return insert(row); }); })
          .and_then([&] { return insert_all(batch.device_minutes, [&](const auto& row) { return devices.add(row); }); })
          .and_then([&] { return insert_events(batch); })
          .and_then([&] { return devices.make_hour(now); })
          .and_then([&](bool) { return *before == account ? Outcome<void>() : save_account(connection_, account); })
          .and_then([&] { return give_space_back(); });
  if (!done) {
    return tl::unexpected(done.error());
  }
  return reach_of(connection_, account).map([&](model::PastReach reach) { return Written{*deleted, reach}; });
}

Outcome<void> Store::insert_events(const Batch& batch) {
  const std::uint64_t most_seconds = std::min(kMostSpikeSecondsBytes, limits_.bytes / 8);
  const auto insert = [&](const auto& row) { return history::insert(connection_, row); };
  return insert_all(batch.bursts, insert)
      .and_then([&] { return insert_all(batch.waits, insert); })
      .and_then([&] {
        return insert_all(batch.spike_seconds,
                          [&](const auto& row) { return history::insert(connection_, row, most_seconds); });
      })
      .and_then([&] {
        return insert_all(batch.settings, [&](const auto& row) { return history::insert(connection_, row, batch.at); });
      })
      .and_then([&] { return insert_all(batch.marks, insert); });
}

/// Leaves room for what comes next: a sixteenth stays free.
Outcome<bool> Store::is_full() {
  const auto pages = connection_.number("PRAGMA page_count");
  const auto free_pages = connection_.number("PRAGMA freelist_count");
  if (!pages || !free_pages) {
    return tl::unexpected(pages ? free_pages.error() : pages.error());
  }
  return pages_of(connection_, std::max(limits_.bytes, kLeastSizeLimit)).map([&](std::int64_t most) {
    return *pages - *free_pages > most - most / 16;
  });
}

/// In the order in which room is made: tenants are held to a fifth, and old minutes become hours. If the file is full,
/// rows of older versions go first, then minutes, then hours.
Outcome<std::uint64_t> Store::make_room(Minute now, Account& account) {
  const auto full = is_full();
  if (!full) {
    return tl::unexpected(full.error());
  }
  DeviceRows devices(connection_, account);
  if (account.tenant_bytes > static_cast<std::int64_t>(limits_.bytes / 5)) {
    if (auto gone = devices.forget_tenants(); !gone) {
      return gone;
    }
  }
  const std::int64_t last_kept = number_of(now - limits_.retention);
  const std::int64_t thin_to = std::max(number_of(now - kMinutesKept), last_kept);
  auto thinned =
      thin_drive_minutes(number_of(now - kMinutesKept), account).and_then([&] { return devices.thin_hour(thin_to); });
  if (!thinned) {
    return thinned;
  }
  std::uint64_t room_made = *thinned;
  if (*full && room_made == 0) {
    auto old = delete_drive_minutes(std::min(account.begun, number_of(now - kMinutesKept)));
    if (!old) {
      return old;
    }
    // The hour that has just ended is viewed most.
    auto minutes = *old > 0 ? old : devices.thin_hour(number_of(now - kMinutesAlwaysKept));
    if (!minutes) {
      return minutes;
    }
    room_made += *minutes;
  }
  return delete_old_rows(now, *full && room_made == 0, devices).and_then([&](std::uint64_t deleted) {
    return devices.forget_names(last_kept).map([&] { return deleted; });
  });
}

/// Keeps one row per drive and hour: counters lose only time resolution. Leaves rows of older versions alone.
Outcome<void> Store::thin_drive_minutes(std::int64_t end, Account& account) {
  const auto first = connection_.number("SELECT coalesce(min(minute), " + std::to_string(kLast) +
                                        ") FROM drive_minute WHERE minute >= " +
                                        std::to_string(std::max(account.begun, account.drive_minutes_thinned_to)));
  if (!first) {
    return tl::unexpected(first.error());
  }
  if (*first >= end || hour_of(*first) + 60 > end) {
    return {};
  }
  account.drive_minutes_thinned_to = hour_of(*first) + 60;
  const std::int64_t begin = std::max(hour_of(*first), account.begun);
  Statement rows(connection_,
                 "DELETE FROM drive_minute WHERE minute BETWEEN ?1 AND ?2 AND (minute, drive) NOT IN (SELECT "
                 "max(minute), drive FROM drive_minute WHERE minute BETWEEN ?1 AND ?2 GROUP BY drive)");
  return rows.with(begin).with(hour_of(*first) + 59).run();
}

/// At most a thousand, older than `end`.
Outcome<std::uint64_t> Store::delete_drive_minutes(std::int64_t end) {
  Statement rows(
      connection_,
      "DELETE FROM drive_minute WHERE minute < ?1 AND minute <= (SELECT max(minute) FROM (SELECT minute FROM "
      "drive_minute ORDER BY minute LIMIT 1000))");
  return rows.with(end).run().map([&] { return connection_.changed_rows(); });
}

/// A step at a time: a clock that is years ahead until it is set costs hours of history, not all of it.
Outcome<std::uint64_t> Store::delete_old_rows(Minute now, bool too_much, DeviceRows& devices) {
  constexpr int kRowsOfOneStep = 1000;
  const auto step_end = connection_.number(
      "SELECT coalesce((SELECT minute FROM drive_minute ORDER BY minute LIMIT 1 "
      "OFFSET " +
      std::to_string(kRowsOfOneStep) + "), " + std::to_string(kLast) + ")");
  if (!step_end) {
    return tl::unexpected(step_end.error());
  }
  const std::int64_t last_kept = number_of(now - limits_.retention);
  const std::int64_t end = too_much ? *step_end : std::min(*step_end, last_kept - 1);
  auto hours = devices.forget_hours(too_much ? std::min(end, number_of(now - kMinutesAlwaysKept)) : last_kept);
  if (!hours) {
    return hours;
  }
  if (const auto gone = delete_old_spikes(now - limits_.retention, too_much).and_then([&] {
        return forget_events(connection_, now - limits_.retention);
      });
      !gone) {
    return tl::unexpected(gone.error());
  }
  Statement rows(connection_, "DELETE FROM drive_minute WHERE minute <= ?");
  return rows.with(end).run().and_then([&] {
    const std::uint64_t deleted = connection_.changed_rows() + *hours;
    // A drive is removed after its last row; if it comes back, it starts over.
    Statement drives(connection_,
                     "DELETE FROM drive WHERE last_minute < ? AND last_minute < "
                     "coalesce((SELECT min(minute) FROM drive_minute), ?)");
    return drives.with(last_kept).with(kLast).run().map([&] { return deleted; });
  });
}

/// In steps, like minutes.
Outcome<void> Store::delete_old_spikes(Minute last_kept, bool too_much) {
  const auto begin = std::chrono::duration_cast<std::chrono::milliseconds>(last_kept.time_since_epoch()).count();
  Statement rows(connection_,
                 "DELETE FROM latency_spike WHERE begin_ms <= (SELECT max(begin_ms) FROM (SELECT begin_ms FROM "
                 "latency_spike ORDER BY begin_ms LIMIT 1000)) AND (begin_ms < ? OR ?)");
  return rows.with(begin).with(std::int64_t{too_much ? 1 : 0}).run();
}

Outcome<void> Store::insert(const model::LatencySpike& spike) {
  using namespace std::chrono;
  Statement statement(connection_, "INSERT OR REPLACE INTO latency_spike VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  return statement.with(duration_cast<milliseconds>(spike.begin.time_since_epoch()).count())
      .with(spike.device)
      .with(std::string(name(spike.operation, model::kSpikeOperationNames)))
      .with(std::optional(duration<double>(spike.duration).count()))
      .with(std::optional(spike.peak_seconds))
      .with(std::optional(spike.baseline_seconds))
      .with(static_cast<std::int64_t>(spike.ios))
      .with(std::string(name(spike.cause, model::kSpikeCauseNames)))
      .with(evidence_with_excess(spike))
      .with(model::missing_text(spike))
      .run();
}

/// Free pages are kept for what comes next; a large surplus, left by a shorter retention, is freed, a little at a time.
Outcome<void> Store::give_space_back() {
  constexpr std::uint64_t kKeptFree = 1U << 20U;  // bytes
  const auto most = pages_of(connection_, kKeptFree);
  const auto free_pages = connection_.number("PRAGMA freelist_count");
  if (!most || !free_pages) {
    return tl::unexpected(most ? free_pages.error() : most.error());
  }
  return *free_pages <= *most ? Outcome<void>()
                              : connection_.execute("PRAGMA incremental_vacuum(" + std::to_string(*most / 4) + ")");
}

Outcome<std::int64_t> Store::id_of(const DriveKey& drive, Minute minute) {
  Statement upsert(connection_,
                   "INSERT INTO drive (nqn, serial, model, firmware, last_minute) VALUES (?, ?, ?, ?, ?) "
                   "ON CONFLICT (nqn, serial, model, firmware) DO UPDATE SET last_minute = max(last_minute, "
                   "excluded.last_minute) RETURNING id");
  return upsert.with(drive.nqn)
      .with(drive.serial)
      .with(drive.model)
      .with(drive.firmware)
      .with(number_of(minute))
      .step()
      .and_then([&](bool row) -> Outcome<std::int64_t> {
        const auto id = row ? upsert.integer(0) : std::nullopt;
        return id ? Outcome<std::int64_t>(*id) : tl::unexpected(Failure{"a drive without an id", true});
      });
}

Outcome<void> Store::insert(const DriveMinute& row) {
  const auto id = id_of(row.drive, row.minute);
  if (!id) {
    return tl::unexpected(id.error());
  }
  const CountBytes host = big_endian(row.writes.host ? row.writes.host->count : 0);
  const CountBytes before = big_endian(row.host_count_before.value_or(0));
  const CountBytes media = big_endian(row.writes.media ? row.writes.media->count : 0);
  Statement statement(
      connection_,
      "INSERT OR REPLACE INTO drive_minute VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  statement.with(number_of(row.minute)).with(*id).with(row.boottime.count()).with(row.source);
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
      .with(row.read_p50_seconds)
      .with(row.read_p99_seconds)
      .with(row.write_p50_seconds)
      .with(row.write_p99_seconds)
      .with(static_cast<std::int64_t>(row.discard_bytes))
      .run();
}

Outcome<void> Store::save(const DriveState& state, Minute now) {
  const auto id = id_of(state.drive, now);
  if (!id) {
    return tl::unexpected(id.error());
  }
  Statement saved(connection_, "UPDATE drive SET state = ? WHERE id = ?");
  return saved.with(std::span<const std::uint8_t>(state.bytes)).with(*id).run().and_then([&] {
    Statement others(connection_,
                     "UPDATE drive SET state = NULL WHERE serial = ? AND model = ? AND nqn IN ('', ?) AND id <> ? AND "
                     "state NOT NULL");
    return others.with(state.drive.serial).with(state.drive.model).with(state.drive.nqn).with(*id).run();
  });
}

Outcome<Recalled> Store::recall(const DriveKey& drive, Minute since, Minute until) {
  Recalled recalled;
  auto state = saved_state(drive);
  if (!state) {
    return tl::unexpected(state.error());
  }
  recalled.state = std::move(*state);
  Statement rows(connection_, kSelectMinutes);
  rows.with(drive.serial).with(drive.model).with(drive.nqn).with(number_of(since)).with(number_of(until));
  rows.with(static_cast<std::int64_t>(kMostRecalled));
  while (true) {
    const auto row = rows.step();
    if (!row) {
      return tl::unexpected(row.error());
    }
    if (!*row) {
      std::reverse(recalled.minutes.begin(), recalled.minutes.end());
      return recalled;
    }
    if (auto minute = read_minute(rows, drive)) {
      recalled.minutes.push_back(std::move(*minute));
    } else {
      ++recalled.unreadable;
    }
  }
}

Outcome<std::optional<DriveState>> Store::saved_state(const DriveKey& drive) {
  Statement statement(connection_,
                      "SELECT firmware, state FROM drive WHERE serial = ? AND model = ? AND nqn IN ('', ?) AND "
                      "state NOT NULL ORDER BY nqn DESC LIMIT 1");
  return statement.with(drive.serial)
      .with(drive.model)
      .with(drive.nqn)
      .step()
      .map([&](bool row) -> std::optional<DriveState> {
        auto firmware = row ? statement.text(0) : std::nullopt;
        auto bytes = row ? statement.blob(1) : std::nullopt;
        if (!firmware || firmware->size() > kMostNameBytes || !bytes || bytes->size() > kMostStateBytes) {
          return std::nullopt;
        }
        return DriveState{{drive.serial, drive.model, std::move(*firmware), drive.nqn}, std::move(*bytes)};
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
