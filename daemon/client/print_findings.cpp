// SPDX-License-Identifier: Apache-2.0
#include "daemon/client/commands.h"

namespace ssdpulse::client {

void print(const findings::Findings& all, const FindingsOptions& options, std::ostream& out) {
  if (options.json) {
    out << findings::to_json(all).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else if (options.markdown) {
    findings::print_markdown(all, options.style, out);
  } else {
    findings::print_text(all, options.style, out);
  }
}

}  // namespace ssdpulse::client
