// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/log_output.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/base/number_text.h"

namespace ssdpulse::log {
namespace {

/// A value with a line break is preceded by its length, 64 bits little-endian, instead of "=".
void append_field(std::string& entry, std::string_view name, std::string_view value) {
  entry += name;
  if (value.find('\n') == std::string_view::npos) {
    entry += '=';
  } else {
    entry += '\n';
    for (unsigned shift = 0; shift < 64; shift += 8) {
      entry += static_cast<char>(static_cast<std::uint64_t>(value.size()) >> shift & 0xffU);
    }
  }
  entry += value;
  entry += '\n';
}

std::string field_name(std::string_view key) {
  std::string name = "SSDPULSE_";
  for (const char c : key) {
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

}  // namespace

std::string journal_entry(char priority, std::string_view message, const std::vector<Field>& fields) {
  std::string entry;
  append_field(entry, "MESSAGE", message);
  append_field(entry, "PRIORITY", {&priority, 1});
  append_field(entry, "SYSLOG_IDENTIFIER", "ssdpulse");
  for (const Field& field : fields) {
    append_field(entry, field_name(field.name), field.value);
  }
  return entry;
}

std::optional<Journal> Journal::open(std::string_view path) {
  util::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || path.size() >= sizeof(sockaddr_un::sun_path)) {
    return std::nullopt;
  }
  Journal journal(std::move(socket), std::string(path));
  return journal.send("") ? std::optional(std::move(journal)) : std::nullopt;  // the journal ignores an empty entry
}

bool Journal::send(const std::string& entry) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  return ::sendto(socket_.get(), entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address), sizeof(address)) >= 0;
}

std::string json_line(std::chrono::system_clock::time_point time, std::string_view level, std::string_view message,
                      const std::vector<Field>& fields) {
  nlohmann::ordered_json line{{"time", util::utc_text(time)}, {"level", level}, {"message", message}};
  for (const Field& field : fields) {
    line["fields"][std::string(field.name)] = field.value;
  }
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace ssdpulse::log
