// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/pages/fields.h"

#include <algorithm>
#include <limits>
#include <string>

#include "daemon/model/drive_warnings.h"

namespace ssdpulse::nvme {

using model::Uint128;

namespace {
constexpr Uint128 kLargest = ~Uint128{0};
}

std::optional<Uint128> read_count(Bytes bytes, std::size_t offset, std::size_t width, Zero zero) {
  if (width > bytes.size() || offset > bytes.size() - width) {
    return std::nullopt;
  }
  Uint128 count = 0;
  for (std::size_t byte = width; byte-- > 0;) {
    count = (count << 8) | bytes[offset + byte];
  }
  const Uint128 all_ones = kLargest >> (8 * (sizeof(Uint128) - width));
  if ((width >= 2 && count == all_ones) || (count == 0 && zero == Zero::not_reported)) {
    return std::nullopt;
  }
  return count;
}

std::uint64_t read_number(Bytes bytes, std::size_t offset, std::size_t width) {
  std::uint64_t number = 0;
  for (std::size_t byte = width; byte-- > 0;) {
    number = (number << 8) | (offset + byte < bytes.size() ? bytes[offset + byte] : 0U);
  }
  return number;
}

double scaled(Uint128 count, const Scale& scale) {
  const double product = count <= kLargest / scale.numerator ? static_cast<double>(count * scale.numerator)
                                                             : static_cast<double>(count) * scale.numerator;
  return product / scale.denominator + scale.offset;
}

void add_fields(Bytes bytes, std::span<const Field> table, std::vector<model::NvmeValue>& values) {
  for (const auto& field : table) {
    if (const auto count = read_count(bytes, field.offset, field.width, field.zero)) {
      values.push_back({field.field, std::string(field.label), scaled(*count, field.scale)});
    }
  }
}

void add_warnings(std::uint8_t byte, WarningsOf owner, model::NvmeField field, std::vector<model::NvmeValue>& values) {
  for (const model::DriveWarning& warning : model::kDriveWarnings) {
    if (warning.of_groups || owner == WarningsOf::drive) {
      values.push_back({field, std::string(warning.label), static_cast<double>((byte >> warning.bit) & 1)});
    }
  }
}

std::optional<model::ByteCounter> read_counter(Bytes bytes, std::size_t offset, std::size_t width,
                                               std::uint64_t unit_bytes, model::Rounding rounding, Zero zero) {
  const auto count = read_count(bytes, offset, width, zero);
  if (!count) {
    return std::nullopt;
  }
  return model::ByteCounter{*count, unit_bytes, rounding};
}

Uint128 saturating_sum(Uint128 one, Uint128 other) { return one > kLargest - other ? kLargest : one + other; }

std::optional<model::ByteCounter> sum_counters(const std::optional<model::ByteCounter>& one,
                                               const std::optional<model::ByteCounter>& other) {
  if (!one || !other) {
    return std::nullopt;
  }
  return model::ByteCounter{saturating_sum(one->count, other->count), one->unit_bytes, one->rounding};
}

bool all_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace ssdpulse::nvme
