// SPDX-License-Identifier: Apache-2.0
// 20h, FDP Configurations (NVM Express Base 2.x, 5.1.12.1.28): what each configuration of an endurance group offers. A
// list of descriptors that contain their own length. It does not show which one is on: that is a feature, not a log.
#include <string>

#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::size_t kHeader = 16;
constexpr std::size_t kDescriptor = 64;  // without the handles at its end
constexpr std::uint8_t kValid = 0x80;

void add(F field, std::size_t configuration, std::uint64_t value, PageContent& content) {
  content.values.push_back({field, std::to_string(configuration), static_cast<double>(value)});
}

void add_configuration(Bytes descriptor, std::size_t index, PageContent& content) {
  add(F::fdp_reclaim_groups, index, read_number(descriptor, 4, 4), content);
  add(F::fdp_reclaim_unit_handles, index, read_number(descriptor, 8, 2), content);
  add(F::fdp_placement_identifiers, index, read_number(descriptor, 10, 2) + 1, content);
  add(F::fdp_reclaim_unit_bytes, index, read_number(descriptor, 16, 8), content);
  if (const auto limit = read_number(descriptor, 24, 4); limit != 0) {
    add(F::fdp_reclaim_unit_time_limit_seconds, index, limit, content);
  }
}

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  const auto size = read_number(page, 4, 4);
  if (size < kHeader) {
    return util::fail("the page says that it is " + std::to_string(size) + " bytes long");
  }
  // Of a longer page, only what was asked for is read.
  Bytes rest = page.first(std::min<std::size_t>(size, page.size())).subspan(kHeader);
  PageContent content;
  const auto configurations = read_number(page, 0, 2) + 1;
  for (std::size_t index = 0; index < configurations && rest.size() >= kDescriptor; ++index) {
    const auto length = static_cast<std::size_t>(read_number(rest, 0, 2));
    if (length < kDescriptor) {
      return util::fail("a configuration says that it is " + std::to_string(length) + " bytes long");
    }
    if ((rest[2] & kValid) != 0) {
      add_configuration(rest, index, content);
    }
    rest = rest.subspan(std::min(length, rest.size()));
  }
  return content;
}

}  // namespace

extern const LogPage kFdpConfigurations{
    .name = "fdp_configurations",
    .lid = 0x20,
    .bytes = kMaxPageBytes,
    .scope = Scope::no_namespace,
    .per_endurance_group = true,
    .offered =
        [](const model::NvmeIdentity& identity) { return (identity.controller_attributes & kHasDataPlacement) != 0; },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
