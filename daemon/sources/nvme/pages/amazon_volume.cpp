// SPDX-License-Identifier: Apache-2.0
// D0h of Amazon's volumes, EBS and instance store: what the host requested from the volume, which limits it reached,
// and how long it waited. Nothing about the media.
// Each bin of its histograms is a series of its own, not summed into those above it: bins have 32 bits and wrap around,
// which a counter of one bin survives as a reset, while a cumulative one would jump.
#include <string>

#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint32_t kBlockStore = 0x3c23b510;
constexpr std::uint32_t kInstanceStore = 0xec2c0d7e;

constexpr Field kFields[] = {
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

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  const auto magic = read_number(page, 0, 4);
  if (magic != kBlockStore && magic != kInstanceStore) {
    return util::fail("not Amazon's page: its magic number is different");
  }
  PageContent content;
  add_fields(page, kFields, content.values);
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
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
