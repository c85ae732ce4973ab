// SPDX-License-Identifier: Apache-2.0
// Splits lines into fields and sends them. A line is never lost because of its fields: what cannot be split stays text.
#include "daemon/util/journal.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

namespace ssdpulse::log {
namespace {

constexpr std::size_t kMostFields = 24;
constexpr std::size_t kMostKeyBytes = 40;  // the journal takes 64, of which 9 are our prefix

// A value with a line break comes with its length, 64 bits little-endian, instead of "=".
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

bool is_key_character(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

bool is_key(std::string_view text) {
  return !text.empty() && text.size() <= kMostKeyBytes && text[0] >= 'a' && text[0] <= 'z' &&
         std::all_of(text.begin(), text.end(), is_key_character);
}

std::string field_name(std::string_view key) {
  std::string name = "SSDPULSE_";
  for (const char c : key) {
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

// `rest` begins behind the "=": takes the value away. A quoted one ends at a quote that a blank or the end follows.
std::string_view take_value(std::string_view& rest) {
  std::size_t begin = 0;
  std::size_t end = 0;
  if (!rest.empty() && rest[0] == '"') {
    begin = 1;
    do {
      end = rest.find('"', end + 1);
    } while (end != std::string_view::npos && end + 1 < rest.size() && rest[end + 1] != ' ');
  } else {
    end = rest.find(' ');
  }
  end = std::min(end, rest.size());
  const auto value = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return value;
}

}  // namespace

std::string journal_entry(char priority, std::string_view message) {
  std::string entry;
  append_field(entry, "MESSAGE", message);
  append_field(entry, "PRIORITY", {&priority, 1});
  append_field(entry, "SYSLOG_IDENTIFIER", "ssdpulse");
  std::set<std::string_view> seen;
  for (auto rest = message; !rest.empty() && seen.size() < kMostFields;) {
    const auto word = rest.substr(0, rest.find(' '));
    const auto equals = word.find('=');
    if (equals == std::string_view::npos || !is_key(word.substr(0, equals))) {
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      continue;
    }
    rest.remove_prefix(equals + 1);
    const auto value = take_value(rest);
    if (seen.insert(word.substr(0, equals)).second) {
      append_field(entry, field_name(word.substr(0, equals)), value);
    }
  }
  return entry;
}

std::optional<Journal> Journal::open(std::string_view path) {
  util::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || path.size() >= sizeof(sockaddr_un::sun_path)) {
    return std::nullopt;
  }
  Journal journal(std::move(socket), std::string(path));
  return journal.send("") ? std::optional(std::move(journal)) : std::nullopt;  // the journal ignores what is empty
}

bool Journal::send(const std::string& entry) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  return ::sendto(socket_.get(), entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address), sizeof(address)) >= 0;
}

}  // namespace ssdpulse::log
