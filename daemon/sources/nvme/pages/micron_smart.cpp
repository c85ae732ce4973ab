// SPDX-License-Identifier: Apache-2.0
// Micron's D0h (data center drives: fixed places, media writes in bytes) and CAh (client drives: Intel's items under
// keys of Micron's own, media writes in GiB). FBh is in boot_ssd.cpp, C0h in ocp_smart.cpp.
#include "daemon/sources/nvme/pages/gates.h"
#include "daemon/sources/nvme/pages/items.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;
constexpr std::uint32_t kGibibyte = 1U << 30;
constexpr std::uint8_t kMediaKey = 0xf9;

constexpr Field kFields[] = {
    {12, 4, F::bad_blocks, kCount, "all"},
    {96, 8, F::erase_failures, kCount, "all"},
    {144, 16, F::program_failures, kCount, "all"},
};

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  PageContent content;
  content.writes.media = read_counter(page, 176, 8, 1, model::Rounding::exact, Zero::not_reported);
  if (!content.writes.media) {
    return util::fail("not Micron's page: no media writes");
  }
  add_fields(page, kFields, content.values);
  return content;
}

constexpr ItemField kClientItems[] = {
    {0xea, {1, 4, F::thermal_throttle_seconds, kMinutes}},  // after a byte that shows whether it throttles now
    {0xfa, {0, 6, F::media_read_bytes, {.numerator = kGibibyte}}},
};

util::Result<PageContent> decode_client(Bytes page, const model::NvmeIdentity& /*identity*/) {
  const auto raw = find_item(page, kTwelveBytes, kMediaKey);
  if (!raw) {
    return util::fail("not Micron's page: no item with key f9h");
  }
  PageContent content;
  add_items(page, kTwelveBytes, kClientItems, content.values);
  content.writes.media = read_counter(*raw, 0, kRawBytes, kGibibyte, model::Rounding::unknown, Zero::not_reported);
  return content;
}

constexpr Family kDrives[] = {
    {kMicron, "Micron_7300_"}, {kMicron, "Micron_7400_"}, {kMicron, "Micron_7450_"}, {kMicron, "Micron_9300_"}};
constexpr Family kClientDrives[] = {{kMicron, "Micron_2"}, {kMicron, "Micron_3"}, {kMicron, "MTFD"}};

}  // namespace

extern const LogPage kMicronSmart{
    .name = "micron_smart",
    .source = "micron",
    .lid = 0xd0,
    .bytes = kBytes,
    .offered = [](const model::NvmeIdentity& identity) { return is_of(identity, kDrives); },
    .decode_whole = decode,
};

extern const LogPage kMicronClientSmart{
    .name = "micron_client_smart",
    .source = "micron_client",
    .lid = 0xca,
    .bytes = kBytes,
    .offered = [](const model::NvmeIdentity& identity) { return is_of(identity, kClientDrives); },
    .decode_whole = decode_client,
};

}  // namespace ssdpulse::nvme
