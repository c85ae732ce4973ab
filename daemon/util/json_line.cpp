// SPDX-License-Identifier: Apache-2.0
#include "daemon/util/json_line.h"

#include <fmt/chrono.h>

#include <nlohmann/json.hpp>

namespace ssdpulse::log {

std::string json_line(std::chrono::system_clock::time_point time, std::string_view level, std::string_view message,
                      const std::vector<Field>& fields) {
  using namespace std::chrono;
  const auto seconds = floor<std::chrono::seconds>(time);
  const auto milliseconds = duration_cast<std::chrono::milliseconds>(time - seconds).count();
  nlohmann::ordered_json line{
      {"time", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(system_clock::to_time_t(seconds)), milliseconds)},
      {"level", level},
      {"message", message}};
  for (const Field& field : fields) {
    line["fields"][std::string(field.name)] = field.value;
  }
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace ssdpulse::log
