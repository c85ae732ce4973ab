// SPDX-License-Identifier: Apache-2.0
// Acceptance: a finding that somebody has decided to live with, as in /etc/ssdpulse/accepted.yaml.
#pragma once

#include <string>

namespace ssdpulse::model {

struct Acceptance {
  std::string id;      // shell glob on rules, like the next
  std::string device;  // on devices and mount points; the host is ""
  std::string reason;
  std::string expires;  // YYYY-MM-DD; from that day on it counts again
};

}  // namespace ssdpulse::model
