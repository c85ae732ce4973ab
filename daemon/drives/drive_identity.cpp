// SPDX-License-Identifier: Apache-2.0
#include "daemon/drives/drive_identity.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::drives {

std::shared_ptr<const model::NvmeIdentity> identity_from_sysfs(const nvme::NvmeSubsystem& subsystem) {
  model::NvmeIdentity identity;
  identity.controller = "nvme" + std::to_string(subsystem.controller);
  identity.subsystem_nqn = subsystem.nqn;
  identity.transport = subsystem.transport;
  identity.serial = subsystem.serial;
  identity.model = subsystem.model;
  identity.firmware = subsystem.firmware;
  identity.namespaces = subsystem.namespaces;
  return std::make_shared<const model::NvmeIdentity>(std::move(identity));
}

std::shared_ptr<const model::NvmeIdentity> with_namespaces(std::shared_ptr<const model::NvmeIdentity> identity,
                                                           const nvme::NvmeSubsystem& subsystem) {
  const auto same = [](const model::NvmeNamespace& a, const model::NvmeNamespace& b) {
    return a.device == b.device && a.nsid == b.nsid;
  };
  const auto& known = identity->namespaces;
  const auto& now = subsystem.namespaces;
  if (std::equal(known.begin(), known.end(), now.begin(), now.end(), same)) {
    return identity;
  }
  auto changed = std::make_shared<model::NvmeIdentity>(*identity);
  changed->namespaces = now;
  for (model::NvmeNamespace& entry : changed->namespaces) {
    for (const model::NvmeNamespace& old : known) {
      if (same(entry, old)) {
        entry = old;
      }
    }
  }
  return changed;
}

}  // namespace ssdpulse::drives
