// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/tcp_listeners.h"

#include <netinet/in.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace ssdpulse::util {
namespace {

constexpr std::string_view kListening = "0A";
constexpr std::size_t kWordDigits = 8;
constexpr std::size_t kIpv4Bytes = sizeof(in_addr);
constexpr std::size_t kIpv6Bytes = sizeof(in6_addr);

template <typename Number>
std::optional<Number> number_in(std::string_view text, int base) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(number)
                                                                                   : std::nullopt;
}

/// The kernel writes each 32 bits of an address as a number of this host.
std::optional<std::string> address_in(std::string_view digits) {
  std::string bytes;
  if (digits.size() != 2 * kIpv4Bytes && digits.size() != 2 * kIpv6Bytes) {
    return std::nullopt;
  }
  for (std::size_t at = 0; at < digits.size(); at += kWordDigits) {
    const auto word = number_in<std::uint32_t>(digits.substr(at, kWordDigits), 16);
    if (!word) {
      return std::nullopt;
    }
    std::array<char, sizeof *word> four{};
    std::memcpy(four.data(), &*word, four.size());
    bytes.append(four.data(), four.size());
  }
  return bytes;
}

/// "sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode ..."; those that listen
/// come first, and a busy host has many thousands of others.
void add_listeners(const std::string& file, std::vector<TcpListener>& all) {
  std::ifstream table(file);
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string unused;
    std::string local;
    std::string state;
    TcpListener listener;
    fields >> unused >> local >> unused >> state;                                       // sl ... st
    fields >> unused >> unused >> unused >> listener.user >> unused >> listener.inode;  // tx_queue:rx_queue ... inode
    if (!fields || state != kListening) {
      return;
    }
    const std::size_t colon = std::min(local.find(':'), local.size() - 1);
    const auto address = address_in(std::string_view(local).substr(0, colon));
    const auto port = number_in<std::uint16_t>(std::string_view(local).substr(colon + 1), 16);
    if (address && port) {
      listener.address = *address;
      listener.port = *port;
      all.push_back(std::move(listener));
    }
  }
}

/// The addresses of listeners that would get its connections, the most specific first.
std::vector<std::string> addresses_for(const sockaddr& address, std::uint16_t& port) {
  const std::string any4(kIpv4Bytes, '\0');
  const std::string any6(kIpv6Bytes, '\0');
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    port = ntohs(v4.sin_port);
    const std::string bytes(reinterpret_cast<const char*>(&v4.sin_addr), kIpv4Bytes);
    std::string mapped(10, '\0');
    mapped.append("\xff\xff").append(bytes);
    return {bytes, mapped, any4, any6};
  }
  if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    port = ntohs(v6.sin6_port);
    return {std::string(reinterpret_cast<const char*>(&v6.sin6_addr), kIpv6Bytes), any6};
  }
  return {};
}

}  // namespace

std::optional<std::vector<TcpListener>> tcp_listeners(const std::string& proc) {
  if (!std::ifstream(proc + "/self/net/tcp")) {
    return std::nullopt;
  }
  std::vector<TcpListener> all;
  add_listeners(proc + "/self/net/tcp", all);
  add_listeners(proc + "/self/net/tcp6", all);
  return all;
}

std::vector<TcpListener> listeners_at(const std::vector<TcpListener>& all, const sockaddr& address) {
  std::uint16_t port = 0;
  std::vector<TcpListener> found;
  for (const std::string& bytes : addresses_for(address, port)) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(found),
                 [&](const TcpListener& listener) { return listener.port == port && listener.address == bytes; });
    if (!found.empty()) {
      break;
    }
  }
  return found;
}

std::string user_text(std::uint32_t user) {
  std::array<char, 4096> text{};
  passwd entry{};
  passwd* found = nullptr;
  return ::getpwuid_r(user, &entry, text.data(), text.size(), &found) == 0 && found != nullptr
             ? std::string(found->pw_name) + " (" + std::to_string(user) + ")"
             : std::to_string(user);
}

bool is_held_by_our_program(std::uint64_t inode) {
  namespace fs = std::filesystem;
  std::error_code none;
  const std::string wanted = "socket:[" + std::to_string(inode) + "]";
  const std::string own = fs::read_symlink("/proc/self/exe", none).filename();
  const std::string self = fs::read_symlink("/proc/self", none);
  for (const auto& process : fs::directory_iterator("/proc", none)) {
    const std::string program = fs::read_symlink(process.path() / "exe", none).filename();
    // After an upgrade, the running one is "ssdpulse (deleted)".
    if (own.empty() || !program.starts_with(own) || process.path().filename() == self) {
      continue;
    }
    for (const auto& descriptor : fs::directory_iterator(process.path() / "fd", none)) {
      if (fs::read_symlink(descriptor.path(), none) == wanted) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace ssdpulse::util
