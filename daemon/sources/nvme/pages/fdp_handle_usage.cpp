// SPDX-License-Identifier: Apache-2.0
// 21h, Reclaim Unit Handle Usage (NVM Express Base 2.x, 5.1.12.1.29): who uses each handle of an endurance group.
#include <algorithm>
#include <string>

#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::size_t kHeader = 8;
constexpr std::size_t kDescriptor = 8;
constexpr std::size_t kMaxHandles = (kMaxPageBytes - kHeader) / kDescriptor;

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  PageContent content;
  const auto handles = std::min<std::size_t>(read_number(page, 0, 2), kMaxHandles);
  for (std::size_t handle = 0; handle < handles; ++handle) {
    const auto use = read_number(page, kHeader + kDescriptor * handle, 1);
    content.values.push_back({F::fdp_handle_use, std::to_string(handle), static_cast<double>(use)});
  }
  return content;
}

}  // namespace

extern const LogPage kFdpHandleUsage{
    .name = "fdp_handle_usage",
    .lid = 0x21,
    .bytes = kMaxPageBytes,
    .scope = Scope::no_namespace,
    .per_endurance_group = true,
    .offered =
        [](const model::NvmeIdentity& identity) { return (identity.controller_attributes & kHasDataPlacement) != 0; },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
