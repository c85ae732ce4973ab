// SPDX-License-Identifier: Apache-2.0
// C0h of Inspur's drives: 2048 bytes of counters, each kept by four parts of the drive. Media writes are in GB.
#include <algorithm>

#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 2048;
constexpr std::size_t kParts = 4;
constexpr std::uint64_t kGigabyte = 1'000'000'000;
constexpr std::size_t kMaxErases = 1056;
constexpr std::size_t kWearPart = 44;

/// A counter of each part, `stride` bytes apart; their sum is reported.
struct PartField {
  std::size_t offset;
  std::size_t stride;
  F field;
  std::string_view label;
};
constexpr PartField kFields[] = {
    {512, 72, F::uncorrectable_reads, "all"},
    {528, 72, F::program_failures, "all"},
    {532, 72, F::erase_failures, "all"},
    {1048, kWearPart, F::background_operations, "forced_garbage_collection"},
};

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  model::Uint128 written = 0;
  std::uint64_t most_erases = 0;
  for (std::size_t part = 0; part < kParts; ++part) {
    written += read_number(page, 336 + 8 * part, 8);
    most_erases = std::max(most_erases, read_number(page, kMaxErases + kWearPart * part, 4));
  }
  if (written == 0) {
    return util::fail("not Inspur's page: no media writes");
  }
  PageContent content;
  for (const auto& field : kFields) {
    std::uint64_t sum = 0;
    for (std::size_t part = 0; part < kParts; ++part) {
      sum += read_number(page, field.offset + field.stride * part, 4);
    }
    content.values.push_back({field.field, std::string(field.label), static_cast<double>(sum)});
  }
  content.values.push_back({F::block_erases_max, "all", static_cast<double>(most_erases)});
  content.writes.media = model::ByteCounter{written, kGigabyte, model::Rounding::unknown};
  return content;
}

}  // namespace

extern const LogPage kInspurSmart{
    .name = "inspur_smart",
    .source = "inspur",
    .lid = 0xc0,
    .bytes = kBytes,
    .offered = [](const model::NvmeIdentity& identity) { return identity.vendor_id == kInspur; },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
