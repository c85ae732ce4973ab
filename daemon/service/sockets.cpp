// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/sockets.h"

#include <systemd/sd-daemon.h>

#include <cstdlib>
#include <utility>

namespace ssdpulse::service {

util::Result<PassedSockets> take_sockets(const std::string& name) {
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  if (count < 0) {
    return util::fail_errno("cannot take sockets from systemd", -count);
  }
  PassedSockets passed;
  for (int i = 0; i < count; ++i) {
    if (names[i] == name) {
      passed.wanted.emplace_back(SD_LISTEN_FDS_START + i);
    } else {
      passed.others.emplace_back(names[i]);
    }
    std::free(names[i]);
  }
  std::free(names);
  return passed;
}

}  // namespace ssdpulse::service
