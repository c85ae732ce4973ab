// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/reach.h"

#include "daemon/history/device_rows.h"

namespace ssdpulse::history {

Outcome<model::PastReach> find_reach(Connection& connection, Account& account) {
  DeviceRows rows(connection, account);
  model::PastReach reach;
  const auto put = [](std::optional<Minute>& where) {
    return [&where](std::optional<std::int64_t> minute) {
      where = minute ? std::optional(minute_of(*minute)) : std::nullopt;
    };
  };
  return rows.first("device_minute")
      .map(put(reach.minutes))
      .and_then([&] { return rows.first("device_hour"); })
      .map(put(reach.hours))
      .map([&] {
        // An hour that is not over has only minutes.
        reach.hours = reach.hours ? reach.hours : reach.minutes;
        return reach;
      });
}

}  // namespace ssdpulse::history
