// SPDX-License-Identifier: Apache-2.0
// RowLedger: what became of the rows of each table since the file was begun. The file keeps it, in the same transaction
// as the rows: so what was inserted less what was removed is what is there, whatever ended the daemon.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

/// Why a row has left its table. In the file by number: a new one goes last.
enum class Removal {
  age,         // older than history.retention
  size,        // beyond history.size, or its table's share of it
  hour,        // a minute that became part of an hour
  repeated,    // it said the same as another, or a later one of the same minute took its place
  unreadable,  // damaged, or deleted by somebody else
  clock,       // the wall clock went back a little, and the same minute came again
};
inline constexpr auto kRemovalNames =
    std::to_array<std::string_view>({"age", "size", "hour", "repeated", "unreadable", "clock"});

struct TableRows {
  std::uint64_t inserted = 0;
  std::array<std::uint64_t, kRemovalNames.size()> removed{};  // by Removal
  bool operator==(const TableRows&) const = default;

  [[nodiscard]] std::uint64_t all_removed() const;
  /// Negative: more were removed than there can have been.
  [[nodiscard]] std::int64_t present() const {
    return static_cast<std::int64_t>(inserted) - static_cast<std::int64_t>(all_removed());
  }
};

class RowLedger {
 public:
  using Tables = std::map<std::string, TableRows, std::less<>>;

  RowLedger();  // all tables are in it

  void insert(std::string_view table, std::uint64_t rows = 1) { of(table).inserted += rows; }
  void remove(std::string_view table, Removal why, std::uint64_t rows) {
    of(table).removed.at(static_cast<std::size_t>(why)) += rows;
  }

  [[nodiscard]] const Tables& tables() const { return tables_; }
  [[nodiscard]] const TableRows& at(std::string_view table) const { return tables_.find(table)->second; }
  bool operator==(const RowLedger&) const = default;

  RowLedger& operator+=(const RowLedger& other);
  /// What was added since `earlier`.
  [[nodiscard]] RowLedger since(const RowLedger& earlier) const;

  /// {"mark":[inserted,age,size,...],...}: a column of table account.
  [[nodiscard]] std::string json() const;
  /// From that column; what is no such text is a damaged file.
  static Outcome<RowLedger> load(Connection& connection);

 private:
  TableRows& of(std::string_view table) { return tables_.find(table)->second; }

  Tables tables_;
};

/// What a row with the same key held: it is part of the new one, or nobody will see it again.
enum class RowBefore { merged, lost };
/// Inserts a row, in the place of one with the same key. `insert` runs a statement that begins with these words.
Outcome<void> put(Connection& connection, RowLedger& ledger, std::string_view table, RowBefore before,
                  const std::function<Outcome<void>(const std::string& insert_into)>& insert);

}  // namespace ssdpulse::history
