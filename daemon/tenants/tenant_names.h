// SPDX-License-Identifier: Apache-2.0
// tenant_of_cgroup(): the tenant that a cgroup belongs to. Determined from its path alone, so that no runtime has to be
// asked, and a cgroup that is gone can still be named.
//
// Everything below a tenant belongs to it: a container that runs systemd is one tenant, not thirty. Names of different
// kinds cannot be the same: units end in .service, .scope and so on, paths begin with a slash, and all others with
// their kind or runtime and a slash, which no directory name has. So no user, container or guest can name its own
// directories to pass for another tenant.
//
//   nginx.service, session-3.scope, system.slice     units and slices of systemd
//   docker/0123456789ab, podman/..., container/...   containers, by the first 12 digits of their identity
//   pod/UID, pod/UID/0123456789ab                    pods of Kubernetes, and their containers
//   lxc/NAME, machine/NAME                           system containers
//   vm/NAME                                          virtual machines of libvirt and Proxmox
//   user/UID, user/UID/podman/0123456789ab           users, and their containers
//   job/NUMBER                                       jobs of Slurm
//   /PATH                                            none of these
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/keyed_hash.h"
#include "daemon/base/outside_text.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::tenants {

inline constexpr std::size_t kMaxTenantNameBytes = 128;

/// `path`: from the root of the hierarchy; any bytes.
model::Tenant tenant_of_cgroup(std::string_view path);

/// Makes a name plain (util::is_plain_name()), and fit for lists: unprintable bytes, blanks, quotes and commas become
/// `_`. A name that had such bytes, or is longer than kMaxTenantNameBytes, ends in ~ and a checksum of 32 bits: names
/// that would become the same remain different, unless somebody seeks two with the same checksum.
std::string clean_tenant_name(std::string_view name);

/// A shell glob on the path of a cgroup (* matches slashes, too), and the tenant it belongs to.
struct TenantPattern {
  std::string match;
  std::string tenant;
};

/// Hexadecimal: 64 bits, so that two tenants of a host practically never share a name.
inline constexpr std::size_t kTenantHashDigits = 16;

/// The tenant that each cgroup belongs to, and the name under which it may be shown. Patterns from the configuration
/// come first, then the path itself. If names are hashed, they are hashed here, before anything else sees them:
/// metrics, log lines and the history can neither disagree nor leak them. Not thread-safe.
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

}  // namespace ssdpulse::tenants
