// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "daemon/nvme_pages/page_fields.h"

namespace ssdpulse::nvme {

// C4h of Seagate's data center drives: a version, then 42 attributes of twelve bytes, identified by number. Version 1
// has 32 bits of value, version 2 has 64; the counters of writes take two attributes, low and high. Both are in the
// same unit, probably data units of 512000 bytes.

namespace {

constexpr std::size_t kHeader = 2;
constexpr std::size_t kAttribute = 12;
constexpr std::size_t kAttributes = 42;

struct AttributeField {
  std::uint8_t number;
  F field;
  std::string_view label = {};
};
constexpr AttributeField kSeagateFields[] = {
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

util::Result<PageContent> decode_seagate(Bytes bytes, const model::NvmeIdentity& /*identity*/) {
  const Page page{bytes, read_number(bytes, 0, 2)};
  if ((page.version != 1 && page.version != 2) || !page.find(kMediaLow) || !page.find(kHostLow)) {
    return util::fail("not Seagate's page: no known version, or no attributes 233 and 241");
  }
  const auto read = [&](std::uint8_t low_number) {
    const auto count = page.find_wide(low_number);
    return count ? std::optional(model::ByteCounter{*count, 0, model::Rounding::unknown}) : std::nullopt;
  };
  PageContent content;
  for (const auto& field : kSeagateFields) {
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
    .offered =
        [](const model::NvmeIdentity& identity) {
          return identity.vendor_id == kSeagate && !identity.model.starts_with("Seagate ");  // client drives
        },
    .decode_whole = decode_seagate,
};

// C0h of Inspur's drives: 2048 bytes of counters, each kept by four parts of the drive. Media writes are in GB.

namespace {

constexpr std::size_t kParts = 4;
constexpr std::size_t kMaxErases = 1056;
constexpr std::size_t kWearPart = 44;

/// A counter of each part, `stride` bytes apart; their sum is reported.
struct PartField {
  std::size_t offset;
  std::size_t stride;
  F field;
  std::string_view label;
};
constexpr PartField kInspurFields[] = {
    {512, 72, F::uncorrectable_reads, "all"},
    {528, 72, F::program_failures, "all"},
    {532, 72, F::erase_failures, "all"},
    {1048, kWearPart, F::background_operations, "forced_garbage_collection"},
};

util::Result<PageContent> decode_inspur(Bytes page, const model::NvmeIdentity& /*identity*/) {
  model::Uint128 written = 0;
  std::uint64_t max_erases = 0;
  for (std::size_t part = 0; part < kParts; ++part) {
    written += read_number(page, 336 + 8 * part, 8);
    max_erases = std::max(max_erases, read_number(page, kMaxErases + kWearPart * part, 4));
  }
  if (written == 0) {
    return util::fail("not Inspur's page: no media writes");
  }
  PageContent content;
  for (const auto& field : kInspurFields) {
    std::uint64_t sum = 0;
    for (std::size_t part = 0; part < kParts; ++part) {
      sum += read_number(page, field.offset + field.stride * part, 4);
    }
    content.values.push_back({field.field, std::string(field.label), static_cast<double>(sum)});
  }
  content.values.push_back({F::block_erases_max, "all", static_cast<double>(max_erases)});
  content.writes.media = model::ByteCounter{written, kBillions.numerator, model::Rounding::unknown};
  return content;
}

}  // namespace

extern const LogPage kInspurSmart{
    .name = "inspur_smart",
    .source = "inspur",
    .lid = 0xc0,
    .bytes = 2048,
    .offered = is_of_vendor<kInspur>,
    .decode_whole = decode_inspur,
};

// D0h of Amazon's volumes, EBS and instance store: what the host requested from the volume, which limits it reached,
// and how long it waited. Nothing about the media.
// Each bin of its histograms is a series of its own, not summed into those above it: bins have 32 bits and wrap around,
// which a counter of one bin survives as a reset, while a cumulative counter would jump.

namespace {

constexpr std::uint32_t kBlockStore = 0x3c23b510;
constexpr std::uint32_t kInstanceStore = 0xec2c0d7e;

constexpr Field kAmazonFields[] = {
    {8, 8, F::volume_operations, kCount, "read"},
    {16, 8, F::volume_operations, kCount, "write"},
    {24, 8, F::volume_bytes, kCount, "read"},
    {32, 8, F::volume_bytes, kCount, "write"},
    {40, 8, F::volume_io_seconds, kMicroseconds, "read"},
    {48, 8, F::volume_io_seconds, kMicroseconds, "write"},
    {72, 8, F::volume_limit_exceeded_seconds, kMicroseconds, "instance_iops"},
    {80, 8, F::volume_limit_exceeded_seconds, kMicroseconds, "instance_throughput"},
    {88, 8, F::volume_queue_length},
};
// An instance store has no limits other than those of the instance.
constexpr Field kBlockStoreFields[] = {
    {56, 8, F::volume_limit_exceeded_seconds, kMicroseconds, "volume_iops"},
    {64, 8, F::volume_limit_exceeded_seconds, kMicroseconds, "volume_throughput"},
};

constexpr std::size_t kReads = 512;
constexpr std::size_t kWrites = 2056;
constexpr std::size_t kHistogramHeader = 8;
constexpr std::size_t kBin = 24;
constexpr std::uint64_t kMaxBins = 64;
constexpr std::uint64_t kUnbounded = ~std::uint64_t{0};

/// Converts microseconds to seconds, without the rounding of a double.
std::string seconds(std::uint64_t microseconds) {
  if (microseconds == kUnbounded) {
    return "+Inf";
  }
  constexpr std::uint64_t kMicrosecondsPerSecond = 1'000'000;
  std::string text = std::to_string(microseconds / kMicrosecondsPerSecond) + "." +
                     std::to_string(kMicrosecondsPerSecond + microseconds % kMicrosecondsPerSecond).substr(1);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') {
    text.pop_back();
  }
  return text;
}

/// Returns whether it is a histogram: bounds that do not increase would give two series of the same name.
bool add_histogram(Bytes histogram, F field, std::vector<model::NvmeValue>& values) {
  const auto bins = read_number(histogram, 0, 8);
  if (bins > kMaxBins) {
    return false;
  }
  std::uint64_t last_bound = 0;
  for (std::size_t index = 0; index < bins; ++index) {
    const auto bin = histogram.subspan(kHistogramHeader + kBin * index, kBin);
    const auto bound = read_number(bin, 8, 8);
    if (bound <= last_bound) {
      return false;
    }
    last_bound = bound;
    values.push_back({field, seconds(bound), static_cast<double>(read_number(bin, 16, 4))});
  }
  return true;
}

util::Result<PageContent> decode_amazon(Bytes page, const model::NvmeIdentity& /*identity*/) {
  const auto magic = read_number(page, 0, 4);
  if (magic != kBlockStore && magic != kInstanceStore) {
    return util::fail("not Amazon's page: its magic number is different");
  }
  PageContent content;
  add_fields(page, kAmazonFields, content.values);
  if (magic == kBlockStore) {
    add_fields(page, kBlockStoreFields, content.values);
  }
  if (!add_histogram(page.subspan(kReads), F::volume_reads_by_latency, content.values) ||
      !add_histogram(page.subspan(kWrites), F::volume_writes_by_latency, content.values)) {
    return util::fail("a histogram with too many bins, or with bounds that do not grow");
  }
  return content;
}

}  // namespace

extern const LogPage kAmazonVolume{
    .name = "amazon_volume",
    .lid = 0xd0,
    .bytes = kMaxPageBytes,
    .scope = Scope::first_namespace,
    .offered =
        [](const model::NvmeIdentity& identity) {
          return identity.vendor_id == kAmazon && identity.model.starts_with("Amazon ");
        },
    .decode_whole = decode_amazon,
};

}  // namespace ssdpulse::nvme
