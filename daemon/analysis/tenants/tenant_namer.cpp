// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/tenants/tenant_namer.h"

#include <algorithm>
#include <utility>

#include "daemon/analysis/tenants/cgroup_tenant.h"
#include "daemon/util/glob.h"

namespace ssdpulse::analysis {

const model::Tenants& TenantNamer::tenants_of(const model::CgroupPaths& paths) {
  if (paths != paths_ || tenants_.empty()) {
    model::Tenants before = std::exchange(tenants_, {});
    tenants_.emplace(model::kNoCgroup, model::Tenant{"none", model::TenantKind::none, ""});
    for (const auto& [id, path] : paths) {
      const auto known = paths_.find(id);
      const bool same = known != paths_.end() && known->second == path;
      tenants_.insert_or_assign(id, same ? std::move(before.at(id)) : tenant_of(path));
    }
    paths_ = paths;
  }
  return tenants_;
}

model::Tenant TenantNamer::tenant_of(const util::OutsideText& path) const {
  const auto pattern = std::find_if(patterns_.begin(), patterns_.end(), [&](const TenantPattern& one) {
    return util::glob_matches(one.match, path.raw());
  });
  model::Tenant tenant = pattern == patterns_.end() ? tenant_of_cgroup(path.raw())
                                                    : model::Tenant{pattern->tenant, model::TenantKind::configured, ""};
  if (key_ && tenant.kind != model::TenantKind::root) {
    tenant.name = util::keyed_hash(*key_, tenant.name, kTenantHashDigits);
    tenant.cgroup.clear();
  }
  return tenant;
}

}  // namespace ssdpulse::analysis
