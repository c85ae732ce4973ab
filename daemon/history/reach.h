// SPDX-License-Identifier: Apache-2.0
// How far back does a file go?
#pragma once

#include "daemon/history/account.h"
#include "daemon/history/sqlite.h"
#include "daemon/model/past.h"

namespace ssdpulse::history {

Outcome<model::PastReach> reach_of(Connection& connection, Account& account);

}  // namespace ssdpulse::history
