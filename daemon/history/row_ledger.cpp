// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/row_ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <utility>

#include "daemon/history/rows.h"

namespace ssdpulse::history {

std::uint64_t TableRows::all_removed() const {
  return std::accumulate(removed.begin(), removed.end(), std::uint64_t{0});
}

RowLedger::RowLedger() {
  for (const char* table : kTables) {
    tables_[table];
  }
}

RowLedger& RowLedger::operator+=(const RowLedger& other) {
  for (auto& [table, rows] : tables_) {
    const TableRows& more = other.at(table);
    rows.inserted += more.inserted;
    for (std::size_t why = 0; why < rows.removed.size(); ++why) {
      rows.removed.at(why) += more.removed.at(why);
    }
  }
  return *this;
}

RowLedger RowLedger::since(const RowLedger& earlier) const {
  RowLedger added = *this;
  for (auto& [table, rows] : added.tables_) {
    const TableRows& before = earlier.at(table);
    rows.inserted -= before.inserted;
    for (std::size_t why = 0; why < rows.removed.size(); ++why) {
      rows.removed.at(why) -= before.removed.at(why);
    }
  }
  return added;
}

std::string RowLedger::json() const {
  std::string text;
  for (const auto& [table, rows] : tables_) {
    text +=
        fmt::format(R"({}"{}":[{},{}])", text.empty() ? "" : ",", table, rows.inserted, fmt::join(rows.removed, ","));
  }
  return "{" + text + "}";
}

Outcome<RowLedger> RowLedger::load(Connection& connection) {
  // JSON in SQL: SQLite reads it, and has it for who queries the file. Not a number: -1, which no row can have.
  std::string columns = "SELECT entry.key";
  for (std::size_t i = 0; i <= kRemovalNames.size(); ++i) {
    columns += fmt::format(
        ", CASE coalesce(json_type(entry.value, '$[{0}]'), 'missing') WHEN 'integer' THEN json_extract(entry.value, "
        "'$[{0}]') WHEN 'missing' THEN {1} ELSE -1 END",
        i, i > static_cast<std::size_t>(Removal::unreadable) + 1 ? 0 : -1);  // a reason that its writer did not know
  }
  Statement rows(connection, (columns + " FROM account, json_each(CASE WHEN json_valid(account.rows) THEN account.rows "
                                        "ELSE '{\"\":[]}' END) AS entry")
                                 .c_str());
  RowLedger ledger;
  const auto take = [&]() -> Outcome<void> {
    const auto found = ledger.tables_.find(rows.name(0));
    constexpr std::int64_t kMaxRows = std::int64_t{1} << 53U;  // so that sums are far from 64 bits
    const auto number = [&](std::size_t column) {
      const std::int64_t value = rows.integer(static_cast<int>(column)).value_or(-1);
      return value <= kMaxRows ? value : -1;
    };
    bool right = found != ledger.tables_.end() && number(1) >= 0;
    for (std::size_t why = 0; right && why < kRemovalNames.size(); ++why) {
      right = number(why + 2) >= 0;
      found->second.removed.at(why) = static_cast<std::uint64_t>(number(why + 2));
    }
    if (!right) {
      return tl::unexpected(Failure{"its account of rows is not one", true});
    }
    found->second.inserted = static_cast<std::uint64_t>(number(1));
    return {};
  };
  return rows.each(take).map([&] { return std::move(ledger); });
}

Outcome<void> put(Connection& connection, RowLedger& ledger, std::string_view table, RowBefore before,
                  const std::function<Outcome<void>(const std::string& insert_into)>& insert) {
  // SQLite does not say whether it replaced a row.
  const auto inserted = insert("INSERT OR IGNORE INTO ");
  if (!inserted || connection.changed_rows() > 0) {
    ledger.insert(table, inserted ? 1 : 0);
    return inserted;
  }
  return insert("INSERT OR REPLACE INTO ").map([&] {
    if (before == RowBefore::lost) {
      ledger.insert(table);
      ledger.remove(table, Removal::repeated, 1);
    }
  });
}

}  // namespace ssdpulse::history
