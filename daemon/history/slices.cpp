// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/slices.h"

#include <thread>

namespace ssdpulse::history {
namespace {

using Clock = std::chrono::steady_clock;

/// For a waiting writer, which tries again every few milliseconds.
constexpr std::chrono::milliseconds kPause{2};

}  // namespace

Outcome<void> Slices::in_time() const {
  return Clock::now() < deadline_ ? Outcome<void>()
                                  : tl::unexpected(Failure{"took too long: ask for less at once, or later", false});
}

Outcome<void> Slices::read(const std::string& sql, std::int64_t from, std::int64_t to,
                           const std::function<bool(const Statement&)>& take) {
  while (true) {
    if (auto in_time_yet = in_time(); !in_time_yet) {
      return in_time_yet;
    }
    const auto next = one_slice(sql, from, to, take);
    if (!next) {
      return tl::unexpected(next.error());
    }
    if (!*next) {
      return {};
    }
    from = **next;
    std::this_thread::sleep_for(kPause);
  }
}

Outcome<std::optional<std::int64_t>> Slices::one_slice(const std::string& sql, std::int64_t from, std::int64_t to,
                                                       const std::function<bool(const Statement&)>& take) {
  const auto end = Clock::now() + slice_;
  Statement rows(connection_, sql.c_str());
  rows.with(from).with(to);
  std::optional<std::int64_t> last;
  while (true) {
    const auto row = rows.step();
    if (!row) {
      return tl::unexpected(row.error());
    }
    if (!*row) {
      return std::nullopt;
    }
    // Rows of one key stay together.
    const std::int64_t key = rows.integer(0).value_or(to);
    if (last && key != *last && Clock::now() >= end) {
      return key;
    }
    last = key;
    if (!take(rows)) {
      return std::nullopt;
    }
  }
}

}  // namespace ssdpulse::history
