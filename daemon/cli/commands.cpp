// SPDX-License-Identifier: Apache-2.0
#include "daemon/cli/commands.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace ssdpulse::cli {
namespace {

/// The Levenshtein distance, one row at a time.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::chrono::minutes> time_limit_of(const std::string& command, const std::vector<std::string>& options) {
  const auto has = [&](const std::string& option) {
    return std::any_of(options.begin(), options.end(),
                       [&](const std::string& one) { return one == option || one.starts_with(option + "="); });
  };
  if (command == "run" || command == "nvme-reader" || command == "top" || command == "simulate" || command == "mcp" ||
      (command == "report" && has("--"))) {
    return std::nullopt;
  }
  if (command == "devices" && has("--ladder")) {
    return std::chrono::minutes(62);  // it measures for an hour at most
  }
  const bool reads_much = command == "history" || command == "report" || command == "audit";
  return std::chrono::minutes(reads_much ? 10 : 1);
}

std::optional<std::string> nearest(const std::string& wrong, const std::vector<std::string>& words) {
  constexpr std::size_t kMaxLetters = 64;  // no known word is longer
  if (wrong.size() > kMaxLetters) {
    return std::nullopt;
  }
  std::optional<std::string> found;
  std::size_t fewest = std::min<std::size_t>(3, wrong.size() / 3) + 1;
  for (const std::string& word : words) {
    if (const std::size_t changes = distance(wrong, word); changes < fewest) {
      found = word;
      fewest = changes;
    }
  }
  return found;
}

}  // namespace ssdpulse::cli
