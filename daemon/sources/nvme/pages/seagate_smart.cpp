// SPDX-License-Identifier: Apache-2.0
// C4h of Seagate's data center drives: a version, then 42 attributes of twelve bytes, identified by number. Version 1
// has 32 bits of value, version 2 has 64; the counters of writes take two attributes, low and high. Both are in the
// same unit, probably data units of 512000 bytes.
#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;
constexpr std::size_t kHeader = 2;
constexpr std::size_t kAttribute = 12;
constexpr std::size_t kAttributes = 42;

struct AttributeField {
  std::uint8_t number;
  F field;
  std::string_view label = {};
};
constexpr AttributeField kFields[] = {
    {41, F::end_to_end_errors, "corrected"},
    {43, F::refreshes},
    {44, F::bad_blocks, "user"},
    {45, F::bad_blocks, "system"},
    {47, F::pcie_correctable_errors},
    {49, F::incomplete_shutdowns},
    {171, F::program_failures, "all"},
    {172, F::erase_failures, "all"},
    {173, F::block_erases_mean, "all"},
    {188, F::uncorrectable_reads, "all"},
};
constexpr std::uint8_t kErasedLow = 100;
constexpr std::uint8_t kMediaLow = 233;
constexpr std::uint8_t kHostLow = 241;  // the high half has the next number

struct Page {
  Bytes bytes;
  std::uint64_t version;

  [[nodiscard]] std::optional<std::uint64_t> find(std::uint8_t number) const {
    for (std::size_t index = 0; index < kAttributes; ++index) {
      const auto attribute = bytes.subspan(kHeader + kAttribute * index, kAttribute);
      if (attribute[0] == number) {
        return version == 1 ? read_number(attribute, 5, 4) : read_number(attribute, 4, 8);
      }
    }
    return std::nullopt;
  }

  /// In version 1, only while the high half is 0: it is not certain how many bits the low half has.
  [[nodiscard]] std::optional<model::Uint128> find_wide(std::uint8_t low_number) const {
    const auto low = find(low_number);
    const auto high = find(static_cast<std::uint8_t>(low_number + 1)).value_or(0);
    if (!low || (version == 1 && high != 0)) {
      return std::nullopt;
    }
    return (model::Uint128{high} << 64) | *low;
  }
};

util::Result<PageContent> decode(Bytes bytes, const model::NvmeIdentity& /*identity*/) {
  const Page page{bytes, read_number(bytes, 0, 2)};
  if ((page.version != 1 && page.version != 2) || !page.find(kMediaLow) || !page.find(kHostLow)) {
    return util::fail("not Seagate's page: no known version, or no attributes 233 and 241");
  }
  const auto read = [&](std::uint8_t low_number) -> std::optional<model::ByteCounter> {
    const auto count = page.find_wide(low_number);
    if (!count) {
      return std::nullopt;
    }
    return model::ByteCounter{*count, 0, model::Rounding::unknown};
  };
  PageContent content;
  for (const auto& field : kFields) {
    if (const auto value = page.find(field.number)) {
      content.values.push_back({field.field, std::string(field.label), static_cast<double>(*value)});
    }
  }
  if (const auto erased = page.find_wide(kErasedLow)) {
    content.values.push_back({F::media_erased_bytes, {}, scaled(*erased, kBillions)});
  }
  content.writes = {.host = read(kHostLow), .media = read(kMediaLow)};
  return content;
}

}  // namespace

extern const LogPage kSeagateSmart{
    .name = "seagate_smart",
    .source = "seagate",
    .lid = 0xc4,
    .bytes = kBytes,
    .offered =
        [](const model::NvmeIdentity& identity) {
          return identity.vendor_id == kSeagate && !identity.model.starts_with("Seagate ");  // client drives
        },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
