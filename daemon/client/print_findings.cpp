// SPDX-License-Identifier: Apache-2.0
#include "daemon/client/commands.h"

#include "exporters/findings/findings_json.h"

namespace ssdpulse::client {

void print(const terminal::Findings& all, const FindingsOptions& options, std::ostream& out) {
  if (options.json) {
    out << page::findings_json(all).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else if (options.markdown) {
    terminal::print_findings_markdown(all, options.style, out);
  } else {
    terminal::print_findings(all, options.style, out);
  }
}

}  // namespace ssdpulse::client
