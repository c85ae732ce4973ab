// SPDX-License-Identifier: Apache-2.0
// 22h, FDP Statistics (NVM Express Base 2.x, 5.1.12.1.30): host and media writes in bytes, read at the same instant.
// The best source there is. It saturates, and it is cleared when the placement feature is set.
#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 64;

constexpr Field kFields[] = {
    {0, 16, F::fdp_host_written_bytes},
    {16, 16, F::fdp_media_written_bytes},
    {32, 16, F::fdp_media_erased_bytes},
};

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  PageContent content;
  add_fields(page, kFields, content.values);
  content.writes = {.host = read_counter(page, 0, 16, 1, model::Rounding::exact),
                    .media = read_counter(page, 16, 16, 1, model::Rounding::exact)};
  return content;
}

}  // namespace

extern const LogPage kFdpStatistics{
    .name = "fdp_statistics",
    .source = "fdp",
    .lid = 0x22,
    .bytes = kBytes,
    .scope = Scope::no_namespace,
    .per_endurance_group = true,
    .offered =
        [](const model::NvmeIdentity& identity) { return (identity.controller_attributes & kHasDataPlacement) != 0; },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
