// SPDX-License-Identifier: Apache-2.0
// Turns tables of offsets into values: a page with a fixed layout is a table of Field. Everything is little-endian.
// Nothing here reads beyond the given bytes; what would lie beyond them is absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/sources/nvme/pages/page.h"

namespace ssdpulse::nvme {

using F = model::NvmeField;

/// value = count * numerator / denominator + offset
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

/// Drives report "not implemented" as two or more bytes that are all ones, whatever the page.
struct Field {
  std::uint16_t offset;
  std::uint8_t width;  // bytes, 1 to 16
  model::NvmeField field;
  Scale scale = kCount;
  std::string_view label = {};
  Zero zero = Zero::is_a_value;
};

/// The count at a place, or nothing where it is not reported or not within the bytes.
std::optional<model::Uint128> read_count(Bytes bytes, std::size_t offset, std::size_t width,
                                         Zero zero = Zero::is_a_value);

/// Like read_count, for numbers that are not counts: 0 where it is not within the bytes.
std::uint64_t read_number(Bytes bytes, std::size_t offset, std::size_t width);

/// Rounds once, to the nearest double, unless the product exceeds 128 bits.
double scaled(model::Uint128 count, const Scale& scale);

void add_fields(Bytes bytes, std::span<const Field> table, std::vector<model::NvmeValue>& values);

/// Each bit of a byte of warnings, as a value of 0 or 1; `of_groups`: only those that endurance groups have.
void add_warnings(std::uint8_t byte, bool of_groups, model::NvmeField field, std::vector<model::NvmeValue>& values);

/// A counter of bytes at a place, or nothing.
std::optional<model::ByteCounter> read_counter(Bytes bytes, std::size_t offset, std::size_t width,
                                               std::uint64_t unit_bytes, model::Rounding rounding,
                                               Zero zero = Zero::is_a_value);

/// Saturates at the largest number.
model::Uint128 saturating_sum(model::Uint128 one, model::Uint128 other);

/// Sums the counters of two cell types into one counter of the media.
std::optional<model::ByteCounter> sum_counters(const std::optional<model::ByteCounter>& one,
                                               const std::optional<model::ByteCounter>& other);

bool all_zero(Bytes bytes);

}  // namespace ssdpulse::nvme
