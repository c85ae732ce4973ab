// SPDX-License-Identifier: Apache-2.0
// take_sockets(): the sockets that the service manager has opened for us; sd_listen_fds(3).
#pragma once

#include <string>
#include <vector>

#include "daemon/util/result.h"
#include "daemon/util/unique_fd.h"

namespace ssdpulse::service {

struct PassedSockets {
  std::vector<util::UniqueFd> wanted;
  std::vector<std::string> others;  // names of those that were passed for another use; they stay open
};

/// The sockets with FileDescriptorName=`name`. Works only once, so that no child process takes them for its own.
util::Result<PassedSockets> take_sockets(const std::string& name);

}  // namespace ssdpulse::service
