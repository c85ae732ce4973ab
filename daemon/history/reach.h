// SPDX-License-Identifier: Apache-2.0
// reach_of(): how far back a history file goes.
#pragma once

#include "daemon/history/account.h"
#include "daemon/history/sqlite.h"
#include "daemon/model/past.h"

namespace ssdpulse::history {

/// Does not change `account`.
Outcome<model::PastReach> reach_of(Connection& connection, Account& account);

}  // namespace ssdpulse::history
