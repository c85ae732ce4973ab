// SPDX-License-Identifier: Apache-2.0
// find_reach(): how far back a history file goes, by its rows.
#pragma once

#include "daemon/history/account.h"
#include "daemon/history/sqlite.h"
#include "daemon/model/past.h"

namespace ssdpulse::history {

/// A look-up for each device that is kept. Does not change `account`.
Outcome<model::PastReach> find_reach(Connection& connection, Account& account);

}  // namespace ssdpulse::history
