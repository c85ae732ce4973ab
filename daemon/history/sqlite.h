// SPDX-License-Identifier: Apache-2.0
// Owners for SQLite's handles, its errors in words, and whether an error means that the file is damaged. For one
// thread. Knows nothing of what is stored.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "daemon/history/obstacle.h"
#include "daemon/util/outside_text.h"
#include "daemon/util/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace ssdpulse::history {

struct Failure {
  std::string message;
  bool damaged = false;  // the file is not what it should be; otherwise the environment is
  bool refused = false;  // neither: a row violates the schema, and would do so again
  Obstacle obstacle = Obstacle::unknown;
  bool unfinished = false;  // whoever wrote to it was killed within a transaction, which a reader cannot undo
};

template <typename T>
using Outcome = tl::expected<T, Failure>;

class Connection {
 public:
  /// Creates the file if there is none; SQLite itself touches it only later.
  static Outcome<Connection> open(const std::string& path);
  /// Opens an existing file for a caller that may not change it.
  static Outcome<Connection> open_to_read(const std::string& path);

  /// One statement or several, without parameters; rows are ignored.
  Outcome<void> execute(const std::string& sql);
  /// The first column of the first row.
  Outcome<std::int64_t> number(const std::string& sql);
  [[nodiscard]] std::uint64_t changed_rows() const;  // by the last statement that changed any
  [[nodiscard]] Failure failure(int code) const;
  /// That a page does not match its checksum, in words, if one did not when it was last read.
  [[nodiscard]] std::optional<std::string> mismatched_page() const;
  [[nodiscard]] sqlite3* get() const { return handle_.get(); }

 private:
  static Outcome<Connection> open(const std::string& path, int flags);
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A statement and its parameters, in order. An error on the way shows at the next step().
class Statement {
 public:
  Statement(Connection& connection, const char* sql);

  Statement& with(std::int64_t value);
  Statement& with(const std::optional<double>& value);
  Statement& with(const std::string& text);  // must outlive the steps, like the blob
  Statement& with(std::span<const std::uint8_t> blob);
  Statement& with_null();
  Statement& with_value_of(const Statement& row, int column);

  /// For other parameters: as it was when it was made.
  Statement& again();

  /// Whether there is a row.
  Outcome<bool> step();
  /// Calls `take()` at each row, to the end or to its first failure: it returns nothing, or an Outcome<void>.
  template <typename Take>
  Outcome<void> each(const Take& take);
  /// To the end.
  Outcome<void> run() {
    return each([] {});
  }

  /// Of the row, columns from 0; nothing if the column holds another type.
  [[nodiscard]] std::optional<std::int64_t> integer(int column) const;
  [[nodiscard]] std::optional<double> real(int column) const;             // finite
  [[nodiscard]] std::optional<util::OutsideText> text(int column) const;  // whoever wrote the file chose it
  [[nodiscard]] std::string name(int column) const;                       // of a disk or a tenant; "?": it is not plain
  [[nodiscard]] std::optional<std::vector<std::uint8_t>> blob(int column) const;
  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] int columns() const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void note(int code) { code_ = code_ == 0 ? code : code_; }

  Connection* connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int code_ = 0;  // the first error
  int bound_ = 0;
};

template <typename Take>
Outcome<void> Statement::each(const Take& take) {
  while (true) {
    const auto row = step();
    if (!row) {
      return tl::unexpected(row.error());
    }
    if (!*row) {
      return {};
    }
    if constexpr (std::is_void_v<decltype(take())>) {
      take();
    } else if (const Outcome<void> taken = take(); !taken) {
      return taken;
    }
  }
}

}  // namespace ssdpulse::history
