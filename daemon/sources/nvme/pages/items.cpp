// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/pages/items.h"

namespace ssdpulse::nvme {

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
