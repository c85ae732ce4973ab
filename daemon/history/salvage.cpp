// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/salvage.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cstdint>
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

/// Of its own, as what SQLite has in its cache depends on how damaged pages are shown.
Outcome<Connection> open_damaged(const std::string& path, EmptyPage shown_as) {
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

  Outcome<void> copy(const std::string& table) {
    auto from = open_damaged(from_, EmptyPage::of_table);
    if (!from) {
      return tl::unexpected(from.error());
    }
    if (Statement(*from, ("SELECT rowid FROM " + table + " LIMIT 0").c_str()).step()) {
      return copy_by_number(*from, table);
    }
    from = open_damaged(from_, EmptyPage::of_index);
    return from ? copy_in_order(*from, table) : tl::unexpected(from.error());
  }

 private:
  /// Each row by itself: one whose end is in a damaged page does not keep those behind it.
  Outcome<void> copy_by_number(Connection& from, const std::string& table) {
    Statement numbers(from, ("SELECT rowid FROM " + table + " ORDER BY rowid").c_str());
    Statement row(from, ("SELECT * FROM " + table + " WHERE rowid = ?").c_str());
    while (numbers.step().value_or(false)) {
      const auto read = row.again().with(numbers.integer(0).value_or(0)).step();
      if (const auto copied = !read || !*read ? Outcome<void>() : copy_row(to_, table, row); !copied) {
        return copied;
      }
      if (stop_) {
        return tl::unexpected(Failure{"the daemon is stopping", false});
      }
    }
    return {};
  }

  Outcome<void> copy_in_order(Connection& from, const std::string& table) {
    Statement row(from, ("SELECT * FROM " + table).c_str());
    while (row.step().value_or(false)) {
      if (const auto copied = copy_row(to_, table, row); !copied) {
        return copied;
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
  if (const auto ours = open_damaged(from, EmptyPage::of_table); !ours) {
    return tl::unexpected(ours.error());
  }
  auto salvaged = [&]() -> Outcome<Salvaged> {
    std::optional<FileIdentity> none;
    auto target = open_database(to, kMaxBytes, none, stop);
    return target ? copy_all(from, *target, stop) : tl::unexpected(target.error());
  }();
  ::unlink((to + "-journal").c_str());
  if (!salvaged) {
    ::unlink(to.c_str());
  }
  return salvaged;
}

}  // namespace ssdpulse::history
