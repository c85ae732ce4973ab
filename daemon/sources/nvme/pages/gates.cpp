// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/pages/gates.h"

#include <algorithm>

namespace ssdpulse::nvme {

bool is_of(const model::NvmeIdentity& identity, std::span<const Family> families) {
  return std::any_of(families.begin(), families.end(), [&](const Family& family) {
    return identity.vendor_id == family.vendor && identity.model.starts_with(family.model_begins);
  });
}

bool lists(const model::NvmeIdentity& identity, const Uuid& uuid) {
  return std::find(identity.uuids.begin(), identity.uuids.end(), uuid) != identity.uuids.end();
}

std::uint8_t identify_byte(const model::NvmeIdentity& identity, std::size_t offset) {
  return identity.vendor_specific.at(offset - 3072);
}

}  // namespace ssdpulse::nvme
