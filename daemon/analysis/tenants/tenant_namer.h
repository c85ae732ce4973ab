// SPDX-License-Identifier: Apache-2.0
// TenantNamer: the tenant that each cgroup belongs to, and the name under which it may be shown. Patterns from the
// configuration come first, then the path itself. If names are hashed, they are hashed here, before anything else sees
// them: metrics, log lines and the history can neither disagree nor leak them. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
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

/// Hexadecimal: 64 bits, so that two tenants of a host practically never share a name.
inline constexpr std::size_t kTenantHashDigits = 16;

class TenantNamer {
 public:
  /// The first pattern that matches counts. `key`: names are hashed with it; absent: they are shown as they are.
  TenantNamer(std::vector<TenantPattern> patterns, std::optional<util::HashKey> key)
      : patterns_(std::move(patterns)), key_(key) {}

  /// The tenants of these cgroups, and that of I/O without a cgroup. Cheap if the paths are those of the last call.
  /// The reference stays valid; the next call changes what it refers to.
  const model::Tenants& tenants_of(const model::CgroupPaths& paths);

  /// The tenant of one cgroup, by its path from the root of its hierarchy.
  [[nodiscard]] model::Tenant tenant_of(const util::OutsideText& path) const;

 private:
  std::vector<TenantPattern> patterns_;
  std::optional<util::HashKey> key_;
  model::CgroupPaths paths_;  // of the last call of tenants_of(), as is its result
  model::Tenants tenants_;
};

}  // namespace ssdpulse::analysis
