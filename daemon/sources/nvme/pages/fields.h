// SPDX-License-Identifier: Apache-2.0
// Field: where a page has a number, and what value it stands for. A page with a fixed layout is a table of Field.
// Everything is little-endian. Nothing here reads beyond the given bytes. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/sources/nvme/pages/page.h"

namespace ssdpulse::nvme {

using F = model::NvmeField;  // short: each row of a page's table names one

/// value = count * numerator / denominator + offset. The constants are named after the unit that the drive counts in;
/// values are in seconds, bytes, ratios, degrees Celsius, or plain numbers.
struct Scale {
  std::uint32_t numerator = 1;
  std::uint32_t denominator = 1;
  std::int32_t offset = 0;
};
inline constexpr Scale kCount{};
inline constexpr Scale kPercent{.denominator = 100};
inline constexpr Scale kKelvin{.offset = -273};  // drives add 273 to whole degrees
inline constexpr Scale kMicroseconds{.denominator = 1'000'000};
inline constexpr Scale kMinutes{.numerator = 60};
inline constexpr Scale kHours{.numerator = 3600};
inline constexpr Scale kDataUnits{.numerator = 512'000};
inline constexpr Scale kBillions{.numerator = 1'000'000'000};

/// What a count of 0 means.
enum class Zero : std::uint8_t { is_a_value, not_reported };

/// One number of a page. Without a value where two or more bytes are all ones: that is how drives report "not
/// implemented", whatever the page.
struct Field {
  std::uint16_t offset;  // bytes from the start of the page
  std::uint8_t width;    // bytes, 1 to 16
  model::NvmeField field;
  Scale scale = kCount;
  std::string_view label = {};  // distinguishes values of the same field, as model::NvmeValue does
  Zero zero = Zero::is_a_value;
};

/// The count of `width` (1 to 16) bytes; absent where it is not reported or not wholly within the bytes.
std::optional<model::Uint128> read_count(Bytes bytes, std::size_t offset, std::size_t width,
                                         Zero zero = Zero::is_a_value);

/// A number that is not a count (a version, a length), so that all ones are a number, too. `width`: 1 to 8 bytes; bytes
/// that would lie beyond the end are 0.
std::uint64_t read_number(Bytes bytes, std::size_t offset, std::size_t width);

/// Exact up to the rounding of doubles: the product is one of integers unless it exceeds 128 bits.
double scaled(model::Uint128 count, const Scale& scale);

/// Appends the values of all fields that the page reports.
void add_fields(Bytes bytes, std::span<const Field> table, std::vector<model::NvmeValue>& values);

/// Whose warnings a byte has: an endurance group has fewer.
enum class WarningsOf : std::uint8_t { drive, endurance_group };

/// Appends each assigned bit of a byte of warnings, as a value of 0 or 1.
void add_warnings(std::uint8_t byte, WarningsOf owner, model::NvmeField field, std::vector<model::NvmeValue>& values);

/// A counter in units of `unit_bytes`; absent as with read_count().
std::optional<model::ByteCounter> read_counter(Bytes bytes, std::size_t offset, std::size_t width,
                                               std::uint64_t unit_bytes, model::Rounding rounding,
                                               Zero zero = Zero::is_a_value);

/// Stays at the largest 128-bit number instead of wrapping around.
model::Uint128 saturating_sum(model::Uint128 one, model::Uint128 other);

/// The sum of two counters of the same unit and rounding, as of two types of flash cells; absent if either is.
std::optional<model::ByteCounter> sum_counters(const std::optional<model::ByteCounter>& one,
                                               const std::optional<model::ByteCounter>& other);

bool all_zero(Bytes bytes);

}  // namespace ssdpulse::nvme
