// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <iostream>

#include "daemon/client/commands.h"
#include "daemon/client/time_text.h"

namespace ssdpulse::client {

util::ExitCode why(const Where& where, const config::Web& web, const std::string& at, bool json) {
  std::string path = "why";
  if (!at.empty()) {
    const auto time = parse_time(at, std::chrono::system_clock::now());
    if (!time) {
      std::cerr << "--at: " << time.error().message << '\n';
      return util::ExitCode::usage;
    }
    path += "?at=" + std::to_string(std::chrono::system_clock::to_time_t(*time));
  }
  auto api = Api::open(where, web);
  const auto answer = api ? api->get(path) : tl::make_unexpected(api.error());
  if (!answer) {
    std::cerr << answer.error().message << '\n';
    return util::ExitCode::failure;
  }
  const auto& said = answer->value("why", nlohmann::json::object());
  const bool known = said.value("verdict", "") != "unknown";
  if (json) {
    std::cout << answer->dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return known ? util::ExitCode::success : util::ExitCode::no_data;
  }
  std::cout << said.value("sentence", "") << '\n';
  if (const std::string next = said.value("next", ""); !next.empty()) {
    std::cout << "Next: " << next << '\n';
  }
  return known ? util::ExitCode::success : util::ExitCode::no_data;
}

}  // namespace ssdpulse::client
