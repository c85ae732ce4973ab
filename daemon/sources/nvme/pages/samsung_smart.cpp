// SPDX-License-Identifier: Apache-2.0
// CAh of Samsung's data center drives: Intel's items, then counters at fixed places. The unit of the two write counters
// is published nowhere, but it is the same for both.
#include "daemon/sources/nvme/pages/gates.h"
#include "daemon/sources/nvme/pages/items.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;
constexpr std::size_t kItems = 156;  // thirteen; fixed places begin at 256
constexpr std::size_t kPresence = 3092;

constexpr ItemField kItemFields[] = {
    {0xab, {0, 6, F::program_failures, kCount, "all"}},
    {0xac, {0, 6, F::erase_failures, kCount, "all"}},
    {0xad, {0, 2, F::block_erases_min, kCount, "all"}},
    {0xad, {2, 2, F::block_erases_max, kCount, "all"}},
    {0xad, {4, 2, F::block_erases_mean, kCount, "all"}},
    {0xb8, {0, 6, F::end_to_end_errors, kCount, "detected"}},
    {0xc7, {0, 6, F::pcie_crc_errors}},
    {0xea, {1, 4, F::thermal_throttle_events}},
};
constexpr Field kFields[] = {
    {312, 4, F::bad_blocks, kCount, "all"},
    {320, 4, F::reserved_blocks, kCount, "unused"},
    {324, 8, F::background_operations, kCount, "read_reclaim"},
    {332, 8, F::uncorrectable_reads, kCount, "all"},
    {340, 4, F::reserved_blocks, kCount, "used"},
};

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (page[0] != kItemFields[0].key) {
    return util::fail("not Samsung's page: it does not begin with key abh");
  }
  const auto read = [&](std::size_t offset) {
    return read_counter(page, offset, 16, 0, model::Rounding::unknown, Zero::not_reported);
  };
  PageContent content;
  add_items(page.first(kItems), kTwelveBytes, kItemFields, content.values);
  add_fields(page, kFields, content.values);
  content.writes = {.host = read(264), .media = read(280)};
  return content;
}

}  // namespace

extern const LogPage kSamsungSmart{
    .name = "samsung_smart",
    .source = "samsung",
    .lid = 0xca,
    .bytes = kBytes,
    // Drives that have the page say so in the Identify Controller data structure.
    .offered =
        [](const model::NvmeIdentity& identity) {
          return identity.vendor_id == kSamsung && identify_byte(identity, kPresence) == 1;
        },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
