// SPDX-License-Identifier: Apache-2.0
// Reads pages that are lists of keyed items. An item is identified by its key, never by its place; the list ends with
// key 0 or with the page. If a key occurs twice, the first counts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/sources/nvme/pages/fields.h"

namespace ssdpulse::nvme {

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
