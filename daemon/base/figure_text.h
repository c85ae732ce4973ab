// SPDX-License-Identifier: Apache-2.0
// Numbers and times as text for people, in the unit that fits, rounded to the digits that mean something.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace ssdpulse::util {

std::string format_latency(double seconds);   // 850 us, 2.4 ms, 1.2 s
std::string format_duration(double seconds);  // 8 s, 3 min, 2 h
std::string format_factor(double factor);     // 1.4 times, 12 times
std::string format_count(std::uint64_t number, std::string_view singular,
                         std::string_view plural);                     // 1 I/O, 1,234 I/Os
std::string format_size(double bytes);                                 // 512 B, 1.8 MB, 2 GB: powers of ten
std::string format_clock(std::chrono::system_clock::time_point time);  // 14:03:12 UTC
/// With its date if that differs from the date of `now`: 2026-11-24 03:12:41 UTC.
std::string format_clock(std::chrono::system_clock::time_point time, std::chrono::system_clock::time_point now);
/// The minute that begins at `time`: "between 03:12 and 03:13 UTC", with its date likewise.
std::string format_minute(std::chrono::system_clock::time_point time, std::chrono::system_clock::time_point now);

}  // namespace ssdpulse::util
