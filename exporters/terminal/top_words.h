// SPDX-License-Identifier: Apache-2.0
// latency_text() and others: numbers as text for a column of a few characters. "-": there is none, "?": not known.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace ssdpulse::terminal {

std::string latency_text(std::optional<double> seconds);  // 850us 2.4ms 1.2s
std::string count_text(std::optional<double> count);      // 950 12.4k 3.1M
std::string bytes_text(std::optional<double> bytes);      // 512B 1.8M 2.1G
std::string duration_text(double seconds);                // 8s 3m 2h
std::string clock_text(double seconds);                   // since the epoch, by the local clock
std::string zone_text(double seconds);                    // of that time: CET
std::string date_text(double seconds);                    // the same with its date, to the minute
/// "/srv/pgwal (nvme0n1)" in `width` characters: `use` is cut, `name` only if it alone is too long.
std::string drive_text(const std::string& use, const std::string& name, std::size_t width);

}  // namespace ssdpulse::terminal
