// SPDX-License-Identifier: Apache-2.0
// Slices: reads rows without holding up their writer. In a database without a write-ahead log a reader keeps the writer
// from committing, so no statement is open for longer than a slice, and nothing is locked between two slices. For one
// thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

using Deadline = std::chrono::steady_clock::time_point;

class Slices {
 public:
  /// `deadline`: a read not finished by then fails. The connection must outlive this object.
  Slices(Connection& connection, std::chrono::milliseconds slice, Deadline deadline)
      : connection_(connection), slice_(slice), deadline_(deadline) {}

  /// Rows of `sql`, whose parameters are from and to, and whose first column is an integer that ascends between them.
  /// Stops when `take` returns false.
  Outcome<void> read(const std::string& sql, std::int64_t from, std::int64_t to,
                     const std::function<bool(const Statement&)>& take);

  [[nodiscard]] Outcome<void> in_time() const;

 private:
  /// The key to continue from, or nothing at the end.
  Outcome<std::optional<std::int64_t>> one_slice(const std::string& sql, std::int64_t from, std::int64_t to,
                                                 const std::function<bool(const Statement&)>& take);

  Connection& connection_;
  std::chrono::milliseconds slice_;
  Deadline deadline_;
};

}  // namespace ssdpulse::history
