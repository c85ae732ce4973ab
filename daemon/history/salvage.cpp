// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/salvage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/history/account_check.h"
#include "daemon/history/database_file.h"
#include "daemon/history/page_checksums.h"
#include "daemon/history/rows.h"

namespace ssdpulse::history {
namespace {

/// All of it, in an order in which nothing refers to what comes later.
std::vector<std::string> tables() {
  std::vector<std::string> tables(kTables.begin(), kTables.end());
  tables.insert(tables.end(), {"clock_step", "account"});
  return tables;
}

/// A connection of its own, as what SQLite has in its cache depends on how damaged pages are shown.
Outcome<Connection> open_damaged(const std::string& path, BlankPage shown_as) {
  return open_as_it_is(path, Shorter::allowed).map([&](Connection connection) {
    auto kind = static_cast<std::uint8_t>(shown_as);
    sqlite3_file_control(connection.get(), nullptr, kShowMismatchedAs, &kind);
    return connection;
  });
}

Outcome<void> copy_row(const Statement& row, Statement& insert) {
  insert.again();
  for (int column = 0; column < row.columns(); ++column) {
    insert.with_value_of(row, column);
  }
  const auto inserted = insert.run();
  return !inserted && inserted.error().refused ? Outcome<void>() : inserted;
}

class Copier {
 public:
  Copier(const std::string& from, Connection& to, const std::atomic<bool>& stop) : from_(from), to_(to), stop_(stop) {}

  /// The keys are those of whole pages, and of no row for each other. Each row is then read where a damaged page is an
  /// error: one that goes on in such a page is lost, and keeps none of those behind it.
  Outcome<void> copy(const std::string& table) {
    auto keys_of = open_damaged(from_, BlankPage::of_table);
    if (keys_of && !Statement(*keys_of, ("SELECT rowid FROM " + table + " LIMIT 0").c_str()).step()) {
      keys_of = open_damaged(from_, BlankPage::of_index);
    }
    auto rows_of = keys_of ? open_as_it_is(from_, Shorter::allowed) : tl::unexpected(keys_of.error());
    const auto columns = rows_of ? key_columns(*rows_of, table) : tl::unexpected(rows_of.error());
    return columns ? copy(table, *columns, *keys_of, *rows_of) : tl::unexpected(columns.error());
  }

 private:
  static Outcome<std::vector<std::string>> key_columns(Connection& from, const std::string& table) {
    Statement names(from, ("SELECT name FROM pragma_table_info('" + table + "') WHERE pk > 0 ORDER BY pk").c_str());
    std::vector<std::string> columns;
    return names.each([&] { columns.push_back(names.name(0)); }).map([&] { return std::move(columns); });
  }

  Outcome<void> copy(const std::string& table, const std::vector<std::string>& columns, Connection& keys_of,
                     Connection& rows_of) {
    Statement keys(keys_of, fmt::format("SELECT {0} FROM {1} ORDER BY {0}", fmt::join(columns, ", "), table).c_str());
    Statement row(rows_of,
                  fmt::format("SELECT * FROM {} WHERE {} = ?", table, fmt::join(columns, " = ? AND ")).c_str());
    Statement insert(
        to_, fmt::format("INSERT OR IGNORE INTO {} VALUES (?{})", table,
                         fmt::join(std::vector<std::string>(static_cast<std::size_t>(row.columns()) - 1, ", ?"), ""))
                 .c_str());
    while (true) {
      const auto key = keys.step();
      if (!key && !key.error().damaged) {
        return tl::unexpected(key.error());
      }
      if (!key.value_or(false)) {  // also where the tree is broken: what lies behind is counted as lost
        return {};
      }
      row.again();
      for (int column = 0; column < keys.columns(); ++column) {
        row.with_value_of(keys, column);
      }
      const auto read = row.step();
      if (!read && !read.error().damaged && read.error().obstacle != Obstacle::io_error) {
        return tl::unexpected(read.error());
      }
      if (const auto copied = read.value_or(false) ? copy_row(row, insert) : Outcome<void>(); !copied) {
        return copied;
      }
      if (stop_) {
        return tl::unexpected(Failure{"the daemon is stopping", false});
      }
    }
  }

  const std::string& from_;
  Connection& to_;
  const std::atomic<bool>& stop_;
};

/// Rows of devices whose own row is lost: nobody knows any longer whose they are, but they are shown, and they age. The
/// hours that are made are not made again, and the minutes begin where they do.
Outcome<void> add_unknown_devices(Connection& to, Account& account) {
  constexpr const char* kAt =
      "(SELECT at, measured FROM device_minute UNION ALL SELECT at, measured FROM device_hour UNION ALL SELECT at, "
      "measured FROM tenant_minute UNION ALL SELECT at, measured FROM tenant_hour)";
  const std::string lane = std::to_string(kMinutesOfADevice);
  const std::string of_lane = " WHERE at / " + lane + " = id";
  Statement added(
      to,
      ("INSERT INTO device (id, identity, name, model, serial, last_minute, last_measured, minutes_from, "
       "hours_made_to) SELECT id, 'lost ' || id, 'lost-' || id, '', '', last, measured, coalesce((SELECT min(at % " +
       lane + ") / 60 * 60 FROM device_minute" + of_lane + "), last + 1), coalesce((SELECT max(at % " + lane +
       ") + 60 FROM device_hour" + of_lane + "), 0) FROM (SELECT at / " + lane + " AS id, max(at % " + lane +
       ") AS last, max(measured) AS measured FROM " + kAt +
       " GROUP BY 1) WHERE id > 0 AND id NOT IN (SELECT id FROM "
       "device)")
          .c_str());
  return added.run().map([&] { account.rows.insert("device", to.changed_rows()); });
}

/// No number is given out again, not even those of rows that are lost: others refer to them. SQLite's own record of
/// them may be lost, too.
Outcome<void> keep_numbers(Connection& to, const std::string& from) {
  constexpr std::int64_t kGap = 1'000'000;  // more tenants than a file can have forgotten
  auto source = open_damaged(from, BlankPage::of_table);
  for (const char* table : {"device", "tenant", "drive", "setting"}) {
    const auto known = source
                           ? source->number("SELECT seq FROM sqlite_sequence WHERE name = '" + std::string(table) + "'")
                           : tl::unexpected(source.error());
    const auto used = to.number("SELECT max(coalesce((SELECT max(id) FROM " + std::string(table) +
                                "), 0), coalesce((SELECT max(drive) FROM drive_minute), 0))");
    if (!used) {
      return tl::unexpected(used.error());
    }
    Statement gone(to, "DELETE FROM sqlite_sequence WHERE name = ?");
    Statement set(to, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)");
    const std::string name = table;
    const auto kept = gone.with(name).run().and_then(
        [&] { return set.with(name).with(known ? std::max(*known, *used) : *used + kGap).run(); });
    if (!kept) {
      return kept;
    }
  }
  return {};
}

/// A ledger that cannot be read is begun again: it is no reason to lose the rows.
Outcome<AccountCheck> check_copy(Connection& to) {
  auto check = check_account(to);
  if (check || !check.error().damaged) {
    return check;
  }
  return to.execute("UPDATE account SET rows = '{}'")
      .and_then([&] { return check_account(to); })
      .or_else([&](const Failure& failure) {
        return failure.damaged ? to.execute("DELETE FROM account").and_then([&] { return check_account(to); })
                               : Outcome<AccountCheck>(tl::unexpected(failure));
      });
}

/// With what the new file says of itself put right.
Outcome<Salvaged> copy_all(const std::string& from, Connection& to, const std::atomic<bool>& stop) {
  Copier copier(from, to, stop);
  if (const auto begun = to.execute("PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE"); !begun) {
    return tl::unexpected(begun.error());
  }
  for (const std::string& table : tables()) {
    if (const auto copied = copier.copy(table); !copied) {
      return tl::unexpected(copied.error());
    }
  }
  auto check = check_copy(to);
  if (!check) {
    return tl::unexpected(check.error());
  }
  Salvaged salvaged;
  salvaged.rows = check->rows;
  for (const auto& [table, lost] : check->missing) {
    if (lost > 0) {
      salvaged.lost[table] = static_cast<std::uint64_t>(lost);
    }
  }
  return add_unknown_devices(to, check->account)
      .and_then([&] { return keep_numbers(to, from); })
      .and_then([&] { return save_account(to, check->account); })
      .and_then([&] { return to.execute("COMMIT"); })
      .map([&] { return std::move(salvaged); });
}

}  // namespace

std::string Salvaged::lost_text() const {
  std::string text;
  for (const auto& [table, count] : lost) {
    text += (text.empty() ? "" : ", ") + table + " " + std::to_string(count);
  }
  return text.empty() ? "none" : text;
}

Outcome<Salvaged> salvage(const std::string& from, const std::string& to, const std::atomic<bool>& stop) {
  constexpr auto kMaxBytes = std::uint64_t{1} << 40U;  // of any file that the limit of its own time allowed
  if (const auto ours = open_damaged(from, BlankPage::of_table); !ours) {
    return tl::unexpected(ours.error());
  }
  const std::string unfinished = to + ".unfinished";
  ::unlink(unfinished.c_str());
  auto salvaged = [&]() -> Outcome<Salvaged> {
    std::optional<FileIdentity> none;
    auto target = open_database(unfinished, kMaxBytes, none, stop);
    return target ? copy_all(from, *target, stop) : tl::unexpected(target.error());
  }();
  ::unlink((unfinished + "-journal").c_str());
  if (salvaged && ::rename(unfinished.c_str(), to.c_str()) != 0) {
    salvaged = tl::unexpected(Failure{std::string("cannot rename it: ") + std::strerror(errno), false});
  }
  if (!salvaged) {
    ::unlink(unfinished.c_str());
  }
  return salvaged;
}

}  // namespace ssdpulse::history
