// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme_pages/page_fields.h"

#include <algorithm>
#include <string>

#include "daemon/model/finding.h"

namespace ssdpulse::nvme {

using model::Uint128;

namespace {
constexpr Uint128 kLargest = ~Uint128{0};
constexpr std::size_t kVendorSpecific = 3072;  // where that part of the Identify Controller data structure begins
}  // namespace

bool is_of(const model::NvmeIdentity& identity, std::span<const Family> families) {
  return std::any_of(families.begin(), families.end(), [&](const Family& family) {
    return identity.vendor_id == family.vendor && identity.model.starts_with(family.model_begins);
  });
}

bool lists(const model::NvmeIdentity& identity, const Uuid& uuid) {
  return std::find(identity.uuids.begin(), identity.uuids.end(), uuid) != identity.uuids.end();
}

std::uint8_t identify_byte(const model::NvmeIdentity& identity, std::size_t offset) {
  return identity.vendor_specific.at(offset - kVendorSpecific);
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

Uint128 saturating_sum(Uint128 a, Uint128 b) { return a > kLargest - b ? kLargest : a + b; }

std::optional<model::ByteCounter> sum_counters(const std::optional<model::ByteCounter>& a,
                                               const std::optional<model::ByteCounter>& b) {
  if (!a || !b) {
    return std::nullopt;
  }
  return model::ByteCounter{saturating_sum(a->count, b->count), a->unit_bytes, a->rounding};
}

bool all_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

std::optional<Bytes> find_item(Bytes list, const ItemLayout& layout, std::uint8_t key) {
  for (; list.size() >= layout.bytes && list[0] != 0; list = list.subspan(layout.bytes)) {
    if (list[0] == key) {
      return list.subspan(layout.raw, kRawBytes);
    }
  }
  return std::nullopt;
}

void add_items(Bytes list, const ItemLayout& layout, std::span<const ItemField> table,
               std::vector<model::NvmeValue>& values) {
  for (const auto& item : table) {
    if (const auto raw = find_item(list, layout, item.key)) {
      add_fields(*raw, std::span(&item.field, 1), values);
    }
  }
}

model::WriteCounters read_item_counters(Bytes list, const ItemLayout& layout, std::uint8_t media_key,
                                        std::uint8_t host_key, std::uint64_t unit_bytes) {
  const auto read = [&](std::uint8_t key) -> std::optional<model::ByteCounter> {
    const auto raw = find_item(list, layout, key);
    return raw ? read_counter(*raw, 0, kRawBytes, unit_bytes, model::Rounding::unknown) : std::nullopt;
  };
  model::WriteCounters writes{.host = read(host_key), .media = read(media_key)};
  // Some drives have the items but never count: both stay 0 while the health page shows terabytes.
  if ((!writes.media || writes.media->count == 0) && (!writes.host || writes.host->count == 0)) {
    return {};
  }
  return writes;
}

}  // namespace ssdpulse::nvme
