// SPDX-License-Identifier: Apache-2.0
// TenantNamer: the tenant that each cgroup belongs to, and the name under which it may be shown. Patterns from the
// configuration come first, then the path itself. If names are hashed, they are hidden here, before anything else sees
// them: metrics, lines and the history cannot differ or leak them. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/model/tenants.h"
#include "daemon/util/keyed_hash.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::analysis {

/// A shell glob on the path of a cgroup (* matches slashes, too), and the tenant it belongs to.
struct TenantPattern {
  std::string match;
  std::string tenant;
};

inline constexpr std::size_t kTenantHashDigits = 16;

class TenantNamer {
 public:
  /// `key`: hides the names; absent: they are shown.
  TenantNamer(std::vector<TenantPattern> patterns, std::optional<util::HashKey> key)
      : patterns_(std::move(patterns)), key_(key) {}

  /// The tenants of these cgroups, and of I/O that has none.
  const model::Tenants& name(const model::CgroupPaths& paths);
  [[nodiscard]] model::Tenant tenant_of(const util::OutsideText& path) const;

 private:
  std::vector<TenantPattern> patterns_;
  std::optional<util::HashKey> key_;
  model::CgroupPaths known_;
  model::Tenants tenants_;
};

}  // namespace ssdpulse::analysis
