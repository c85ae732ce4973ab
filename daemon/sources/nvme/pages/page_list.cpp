// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/pages/page.h"

namespace ssdpulse::nvme {

std::span<const LogPage> log_pages() { return {}; }

}  // namespace ssdpulse::nvme
