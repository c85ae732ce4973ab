// SPDX-License-Identifier: Apache-2.0
// D0h of Western Digital's data center drives: wear at fixed places. Not a source of write amplification: it counts
// media writes in pages whose size it does not report, and host writes in a unit that need not be the same.
#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;
constexpr std::size_t kUsed = 104;  // all bytes from here are reserved

constexpr Field kFields[] = {
    {12, 4, F::uncorrectable_reads, kCount, "all"},
    {24, 4, F::reserved_blocks, kCount, "unused"},
    {28, 4, F::program_failures, kCount, "all"},
    {32, 4, F::erase_failures, kCount, "all"},
    {36, 4, F::die_failures},
    {48, 4, F::incomplete_shutdowns},
    {60, 4, F::bad_blocks, kCount, "all"},
    {64, 4, F::background_operations, kCount, "read_disturb"},
    {96, 4, F::thermal_throttle_events},
    {100, 4, F::erase_cycles_remaining_ratio, kPercent},
};

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (all_zero(page.first(kUsed)) || !all_zero(page.subspan(kUsed)) || read_number(page, 100, 4) > 100) {
    return util::fail("not Western Digital's page: its reserved bytes are in use, or it is empty");
  }
  PageContent content;
  add_fields(page, kFields, content.values);
  return content;
}

constexpr Family kDrives[] = {{kHgst, "WUS"}, {kWesternDigital, "WUS"}};

}  // namespace

extern const LogPage kWdcSmart{
    .name = "wdc_smart",
    .lid = 0xd0,
    .bytes = kBytes,
    .offered = [](const model::NvmeIdentity& identity) { return is_of(identity, kDrives); },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
