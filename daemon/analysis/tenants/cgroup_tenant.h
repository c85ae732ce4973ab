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

#include <string>
#include <string_view>

#include "daemon/model/tenants.h"

namespace ssdpulse::analysis {

inline constexpr std::size_t kLongestTenantName = 128;

/// `path`: from the root of the hierarchy; any bytes.
model::Tenant tenant_of_cgroup(std::string_view path);

/// Makes a name safe for labels, lines and lists: unprintable bytes, blanks, quotes and commas become `_`. A name that
/// had such bytes, or is longer than kLongestTenantName, ends in ~ and a checksum, so that different names remain
/// different.
std::string clean_tenant_name(std::string_view name);

}  // namespace ssdpulse::analysis
