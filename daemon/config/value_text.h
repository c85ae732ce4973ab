// SPDX-License-Identifier: Apache-2.0
// Values of keys as text: durations and sizes, listen addresses, patterns of device names. Durations and sizes, such as
// "5s" and "4KiB", are a whole number directly followed by one unit. No sign, no fraction (1500ms, not 1.5s), no sum
// (90m, not 1h30m). Zero is a value; each key checks its own range.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/result.h"

namespace ssdpulse::config {

/// ns, us, ms, s, m, h or d, up to 2^63 - 1 ns.
util::Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024), up to 2^64 - 1 bytes.
util::Result<std::uint64_t> parse_size(std::string_view text);

/// An exact spelling, in the largest unit that leaves a whole number; `duration` must not be negative.
std::string format_duration(std::chrono::nanoseconds duration);
std::string format_size(std::uint64_t bytes);

/// Where the web server listens: HOST:PORT, [IPV6]:PORT or :PORT.
struct ListenAddress {
  std::string host;        // name or address in its canonical spelling, IPv6 without brackets; empty: every address
  std::uint16_t port = 0;  // 0: any free port
  bool operator==(const ListenAddress&) const = default;
};

/// Resolves no name and opens no socket.
util::Result<ListenAddress> parse_listen_address(std::string_view text);

/// The spelling that parse_listen_address reads back.
std::string to_string(const ListenAddress& address);

/// Why a shell glob can match no name of a block device, as the end of a sentence about it; nothing if it can.
std::optional<std::string> validate_device_pattern(std::string_view glob);

}  // namespace ssdpulse::config
