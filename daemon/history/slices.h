// SPDX-License-Identifier: Apache-2.0
// Slices: reads rows without holding up whoever writes them. A reader of a database without a write-ahead log keeps the
// writer from its commit, so no statement is open for longer than a slice, and between two of them nothing is locked.
// For one thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

using Deadline = std::chrono::steady_clock::time_point;

class Slices {
 public:
  /// `deadline`: what is not read by then fails. The connection must live as long.
  Slices(Connection& connection, std::chrono::milliseconds slice, Deadline deadline)
      : connection_(connection), slice_(slice), deadline_(deadline) {}

  /// Rows of `sql`, whose parameters are from and to and whose first column, an integer, rises between them. Stops
  /// where `take` returns false.
  Outcome<void> read(const std::string& sql, std::int64_t from, std::int64_t to,
                     const std::function<bool(const Statement&)>& take);

  [[nodiscard]] Outcome<void> in_time() const;

 private:
  /// How far it came: the key to go on from, or nothing at the end.
  Outcome<std::optional<std::int64_t>> one_slice(const std::string& sql, std::int64_t from, std::int64_t to,
                                                 const std::function<bool(const Statement&)>& take);

  Connection& connection_;
  std::chrono::milliseconds slice_;
  Deadline deadline_;
};

}  // namespace ssdpulse::history
