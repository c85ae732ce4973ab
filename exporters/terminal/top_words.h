// SPDX-License-Identifier: Apache-2.0
// latency_text() and others: figures as the page writes them (exporters/page/assets/words.js), for a column of a few
// characters. kNotKnown: not known; "none": there is none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace ssdpulse::terminal {

inline constexpr const char* kNotKnown = "–";

std::string latency_text(std::optional<double> seconds);       // 850 µs, 2.4 ms, 1.2 s
std::string milliseconds_text(std::optional<double> seconds);  // 0.85, 2.4, 300; what takes ten seconds says so: 11 s
std::string rate_text(std::optional<double> per_second);       // 0.5, 12,500
std::string megabytes_text(std::optional<double> bytes);       // <0.01, 1.84, 512
std::string percent_text(std::optional<double> ratio);         // 96
std::string bytes_text(std::optional<double> bytes);           // 512B 1.8M 2.1G
std::string duration_text(double seconds);                     // 8 s, 3 min, 2 h
std::string clock_text(double seconds);                        // since the epoch, by the local clock
std::string zone_text(double seconds);                         // of that time: CET
std::string date_text(double seconds);                         // the same with its date, to the minute
std::string shortened(const std::string& text, std::size_t width);  // "backup-of-the-fi~"
/// "/srv/pgwal (nvme0n1)" in `width` characters: `use` is cut, `name` only if it alone is too long.
std::string drive_text(const std::string& use, const std::string& name, std::size_t width);

}  // namespace ssdpulse::terminal
