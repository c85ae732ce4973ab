// SPDX-License-Identifier: Apache-2.0
// One reader and one writer for both kinds; they differ in their table of units.
#include "daemon/config/units.h"

#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>

#include "daemon/config/problem.h"

namespace ssdpulse::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Each table by descending factor: the writer takes the first that divides; an error names the units in this order.
constexpr Unit kDurationUnits[] = {{"d", 86'400'000'000'000},
                                   {"h", 3'600'000'000'000},
                                   {"m", 60'000'000'000},
                                   {"s", 1'000'000'000},
                                   {"ms", 1'000'000},
                                   {"us", 1'000},
                                   {"ns", 1}};
constexpr Unit kSizeUnits[] = {{"TiB", std::uint64_t{1} << 40U},
                               {"TB", 1'000'000'000'000},
                               {"GiB", std::uint64_t{1} << 30U},
                               {"GB", 1'000'000'000},
                               {"MiB", std::uint64_t{1} << 20U},
                               {"MB", 1'000'000},
                               {"KiB", std::uint64_t{1} << 10U},
                               {"kB", 1'000},
                               {"B", 1}};

template <std::size_t N>
std::string names_of(const Unit (&units)[N]) {
  std::string names;
  for (const Unit& unit : units) {
    names += (names.empty() ? "" : ", ") + std::string(unit.name);
  }
  return names;
}

template <std::size_t N>
util::Result<std::uint64_t> parse_quantity(std::string_view text, const Unit (&units)[N], std::uint64_t most,
                                           std::string_view example) {
  const auto wrong = [&](const std::string& why) {
    return util::fail(in_quotes(text) + " " + why + "; expected a whole number and a unit (" + names_of(units) +
                      "), for example " + std::string(example));
  };
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) {
    return wrong("is too large");
  }
  if (error != std::errc{}) {
    return wrong(!text.empty() && text.front() == '-' ? "is negative" : "does not begin with a number");
  }
  const std::string_view name = text.substr(static_cast<std::size_t>(rest - text.data()));
  if (name.empty()) {
    return wrong("has no unit");
  }
  if (name.front() == '.' || name.front() == ',') {
    return wrong("has a fraction");
  }
  for (const Unit& unit : units) {
    if (unit.name == name) {
      return number <= most / unit.factor ? util::Result<std::uint64_t>(number * unit.factor) : wrong("is too large");
    }
  }
  return wrong("has the unknown unit " + in_quotes(name));
}

template <std::size_t N>
std::string format_quantity(std::uint64_t amount, const Unit (&units)[N], std::string_view zero) {
  if (amount == 0) {
    return std::string(zero);
  }
  for (const Unit& unit : units) {
    if (amount % unit.factor == 0) {
      return std::to_string(amount / unit.factor) + std::string(unit.name);
    }
  }
  return {};  // not reached: every table ends with factor 1
}

}  // namespace

util::Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  constexpr std::uint64_t kMaxNanoseconds = std::numeric_limits<std::int64_t>::max();
  return parse_quantity(text, kDurationUnits, kMaxNanoseconds, "30s").map([](std::uint64_t ns) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
  });
}

util::Result<std::uint64_t> parse_size(std::string_view text) {
  return parse_quantity(text, kSizeUnits, std::numeric_limits<std::uint64_t>::max(), "64MiB");
}

std::string format_duration(std::chrono::nanoseconds duration) {
  return format_quantity(static_cast<std::uint64_t>(duration.count()), kDurationUnits, "0s");
}

std::string format_size(std::uint64_t bytes) { return format_quantity(bytes, kSizeUnits, "0B"); }

}  // namespace ssdpulse::config
