// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/salvage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>
#include <unistd.h>

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
  return open_as_it_is(path).map([&](Connection connection) {
    auto kind = static_cast<std::uint8_t>(shown_as);
    sqlite3_file_control(connection.get(), nullptr, kShowMismatchedAs, &kind);
    return connection;
  });
}

/// One row, which may end in a damaged page; then it is not copied.
Outcome<void> copy_row(Connection& to, const std::string& table, const Statement& row) {
  std::string values;
  for (int column = 0; column < row.columns(); ++column) {
    values += column == 0 ? "?" : ", ?";
  }
  Statement insert(to, ("INSERT OR IGNORE INTO " + table + " VALUES (" + values + ")").c_str());
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
    auto rows_of = keys_of ? open_as_it_is(from_) : tl::unexpected(keys_of.error());
    const auto columns = rows_of ? key_columns(*rows_of, table) : tl::unexpected(rows_of.error());
    return columns ? copy(table, *columns, *keys_of, *rows_of) : tl::unexpected(columns.error());
  }

 private:
  static Outcome<std::vector<std::string>> key_columns(Connection& from, const std::string& table) {
    Statement names(from, ("SELECT name FROM pragma_table_info('" + table + "') WHERE pk > 0 ORDER BY pk").c_str());
    std::vector<std::string> columns;
    while (true) {
      const auto row = names.step();
      if (!row) {
        return tl::unexpected(row.error());
      }
      if (!*row) {
        return columns;
      }
      columns.push_back(names.name(0));
    }
  }

  Outcome<void> copy(const std::string& table, const std::vector<std::string>& columns, Connection& keys_of,
                     Connection& rows_of) {
    Statement keys(keys_of, fmt::format("SELECT {0} FROM {1} ORDER BY {0}", fmt::join(columns, ", "), table).c_str());
    Statement row(rows_of,
                  fmt::format("SELECT * FROM {} WHERE {} = ?", table, fmt::join(columns, " = ? AND ")).c_str());
    while (keys.step().value_or(false)) {
      row.again();
      for (int column = 0; column < keys.columns(); ++column) {
        row.with_value_of(keys, column);
      }
      const auto read = row.step();
      if (const auto copied = read.value_or(false) ? copy_row(to_, table, row) : Outcome<void>(); !copied) {
        return copied;
      }
      if (stop_) {
        return tl::unexpected(Failure{"the daemon is stopping", false});
      }
    }
    return {};
  }

  const std::string& from_;
  Connection& to_;
  const std::atomic<bool>& stop_;
};

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
  auto check = check_account(to);
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
  return save_account(to, check->account).and_then([&] { return to.execute("COMMIT"); }).map([&] {
    return std::move(salvaged);
  });
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
