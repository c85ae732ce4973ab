// SPDX-License-Identifier: Apache-2.0
// Problem: what is wrong with a configuration, and where.
// Every reading step adds to one Report and continues, so that one run names every mistake.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ssdpulse::config {

/// Counted from 1, columns in bytes as compilers do; line 0: the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
};

struct Problem {
  std::string file;
  int line = 0;
  int column = 0;
  std::string message;
  bool operator==(const Problem&) const = default;
};

/// "file:line:col: message", or "file: message" for the file as a whole.
std::string to_string(const Problem& problem);

/// One line each, in the order given.
std::string to_string(const std::vector<Problem>& problems);

/// The text between single quotes, fit for one log line: at most 60 bytes of it, and "..." if there are more;
/// everything but printable ASCII as \xHH.
std::string in_quotes(std::string_view text);

class Report {
 public:
  explicit Report(std::string_view file) : file_(file) {}

  void add(Position at, std::string message) { problems_.push_back({file_, at.line, at.column, std::move(message)}); }
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  [[nodiscard]] std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::string file_;
  std::vector<Problem> problems_;
};

}  // namespace ssdpulse::config
