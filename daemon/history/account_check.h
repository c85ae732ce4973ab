// SPDX-License-Identifier: Apache-2.0
// AccountCheck: what a history file says of itself, compared with its rows. A wrong number there would delete, or hide,
// right rows. Reads every table once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/history/account.h"
#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

struct AccountCheck {
  std::map<std::string, std::uint64_t> rows;    // that are there, of all tables
  std::map<std::string, std::int64_t> missing;  // of tables with more or fewer than the account says; negative: more
  std::vector<std::string> wrong_values;        // NAME is N, but ...
  Account account;                              // as the rows say it is

  [[nodiscard]] bool agrees() const { return missing.empty() && wrong_values.empty(); }
  [[nodiscard]] std::string text() const;
};

/// Of a file without an account, which has no rows, all is right.
Outcome<AccountCheck> check_account(Connection& connection);

}  // namespace ssdpulse::history
