// SPDX-License-Identifier: Apache-2.0
// Field: where a page has a number, and what value it stands for; Family: which drives may have a page. What the
// decoders of this folder share: pages with a fixed layout are tables of Field, lists of keyed items are tables of
// ItemField. Everything is little-endian, and nothing here reads beyond the given bytes. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/nvme_pages/log_page.h"

namespace ssdpulse::nvme {

// PCI vendor identifiers.
inline constexpr std::uint16_t kToshiba = 0x1179;
inline constexpr std::uint16_t kMicron = 0x1344;
inline constexpr std::uint16_t kSamsung = 0x144d;
inline constexpr std::uint16_t kSandisk = 0x15b7;
inline constexpr std::uint16_t kWesternDigital = 0x1b96;
inline constexpr std::uint16_t kQemu = 0x1b36;
inline constexpr std::uint16_t kSeagate = 0x1bb1;
inline constexpr std::uint16_t kInspur = 0x1bd4;
inline constexpr std::uint16_t kHgst = 0x1c58;
inline constexpr std::uint16_t kMemblaze = 0x1c5f;
inline constexpr std::uint16_t kAmazon = 0x1d0f;
inline constexpr std::uint16_t kKioxia = 0x1e0f;
inline constexpr std::uint16_t kDapustor = 0x1e3b;
inline constexpr std::uint16_t kYmtc = 0x1e49;
inline constexpr std::uint16_t kSsstc = 0x1e95;
inline constexpr std::uint16_t kSolidigm = 0x025e;
inline constexpr std::uint16_t kIntel = 0x8086;
inline constexpr std::uint16_t kScaleflux = 0xcc53;

/// Controller attributes (CTRATT).
inline constexpr std::uint32_t kHasEnduranceGroups = 1U << 4;
inline constexpr std::uint32_t kHasDataPlacement = 1U << 19;

/// Drives of a vendor whose model begins like this; empty: all of them. The numbers of vendor pages collide, and a
/// drive counts every page that it refuses as an error.
struct Family {
  std::uint16_t vendor;
  std::string_view model_begins;
};

/// Micron's data center drives have two pages of their own.
inline constexpr Family kMicronDataCenter[] = {
    {kMicron, "Micron_7300_"}, {kMicron, "Micron_7400_"}, {kMicron, "Micron_7450_"}, {kMicron, "Micron_9300_"}};

bool is_of(const model::NvmeIdentity& identity, std::span<const Family> families);
bool lists(const model::NvmeIdentity& identity, const Uuid& uuid);

// For LogPage::offered.
template <const auto& kFamilies>
bool is_of(const model::NvmeIdentity& identity) {
  return is_of(identity, kFamilies);
}
template <std::uint16_t kVendor>
bool is_of_vendor(const model::NvmeIdentity& identity) {
  return identity.vendor_id == kVendor;
}
template <std::uint32_t kAttribute>
bool has_attribute(const model::NvmeIdentity& identity) {
  return (identity.controller_attributes & kAttribute) != 0;
}

/// Byte of the Identify Controller data structure, in its vendor specific part (3072 to 4095).
std::uint8_t identify_byte(const model::NvmeIdentity& identity, std::size_t offset);

using F = model::NvmeField;  // short, because each row of a page's table names a field

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
model::Uint128 saturating_sum(model::Uint128 a, model::Uint128 b);

/// The sum of two counters of the same unit and rounding, as of two types of flash cells; absent if either is.
std::optional<model::ByteCounter> sum_counters(const std::optional<model::ByteCounter>& a,
                                               const std::optional<model::ByteCounter>& b);

bool all_zero(Bytes bytes);

/// A list of keyed items. An item is identified by its key, never by its position; the list ends with key 0 or with the
/// page. If a key occurs twice, the first counts.
struct ItemLayout {
  std::size_t bytes;  // of an item; byte 0 is its key
  std::size_t raw;    // where its six bytes of raw value begin
};
inline constexpr ItemLayout kTwelveBytes{.bytes = 12, .raw = 5};
inline constexpr ItemLayout kTenBytes{.bytes = 10, .raw = 2};
inline constexpr std::size_t kRawBytes = 6;

/// Offsets of `field` count from the start of the raw value.
struct ItemField {
  std::uint8_t key;
  Field field;
};

/// The raw value of the first item with this key.
std::optional<Bytes> find_item(Bytes list, const ItemLayout& layout, std::uint8_t key);

void add_items(Bytes list, const ItemLayout& layout, std::span<const ItemField> table,
               std::vector<model::NvmeValue>& values);

/// The whole raw value of an item as a counter of bytes. Both are absent where neither has ever counted: 0 and 0.
model::WriteCounters read_item_counters(Bytes list, const ItemLayout& layout, std::uint8_t media_key,
                                        std::uint8_t host_key, std::uint64_t unit_bytes);

}  // namespace ssdpulse::nvme
