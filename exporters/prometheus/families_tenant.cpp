// SPDX-License-Identifier: Apache-2.0
// Whose I/O it is, and how it entered the kernel.
// A series begins with the first I/O that it counts: operations that never happened have none.
#include <set>
#include <string>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::AttributedTotals;
using model::DeviceTenants;
using model::Snapshot;
using model::TenantIo;
using model::TotalsByOperation;
using model::WallTime;

double ios(const AttributedTotals& totals) { return to_double(totals.ios); }
double bytes(const AttributedTotals& totals) { return to_double(totals.bytes); }
double seconds(const AttributedTotals& totals) { return to_seconds(totals.device_ns); }
using Value = double (*)(const AttributedTotals&);

constexpr const char* kOther = "other";

/// One sample for each operation with anything counted; `more`: labels after device and operation.
void add_operations(const std::string& device, const TotalsByOperation& totals, std::initializer_list<Label> more,
                    std::optional<WallTime> since, Value value, Samples& out) {
  for (const model::Operation operation : model::kAttributedOperations) {
    if (totals[operation].ios == 0) {
      continue;
    }
    out.add(with({{"device", device}, {"operation", std::string(name(operation))}}, more), value(totals[operation]),
            since);
  }
}

template <typename Visit>
void for_each_named_device(const Snapshot& snapshot, Visit visit) {
  for (const auto& entry : snapshot.devices) {
    if (entry.tenants && entry.tenants->named && entry.io) {
      visit(entry.device->name, *entry.tenants, entry.io->since);
    }
  }
}

template <Value value>
void by_tenant(const Snapshot& snapshot, Samples& out) {
  for_each_named_device(snapshot, [&](const std::string& device, const DeviceTenants& tenants, WallTime since) {
    for (const TenantIo& tenant : tenants.tenants) {
      add_operations(device, tenant.totals, {{"tenant", tenant.tenant.name}}, tenant.since, value, out);
    }
    add_operations(device, tenants.other, {{"tenant", kOther}}, since, value, out);
  });
}

template <Value value>
void departed(const Snapshot& snapshot, Samples& out) {
  for_each_named_device(snapshot, [&](const std::string& device, const DeviceTenants& tenants, WallTime) {
    add_operations(device, tenants.departed, {}, std::nullopt, value, out);
  });
}

template <Value value>
void by_path(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.devices) {
    for (std::size_t path = 0; entry.tenants && entry.io && path < model::kIoPaths; ++path) {
      for (std::size_t access = 0; access < model::kIoAccesses; ++access) {
        add_operations(
            entry.device->name, entry.tenants->paths[path][access],
            {{"path", std::string(model::kIoPathNames[path])}, {"access", std::string(model::kIoAccessNames[access])}},
            entry.io->since, value, out);
      }
    }
  }
}

void commits(const Snapshot& snapshot, Samples& out) {
  for_each_named_device(snapshot, [&](const std::string& device, const DeviceTenants& tenants, WallTime since) {
    for (const TenantIo& tenant : tenants.tenants) {
      if (tenant.commits > 0) {
        out.add({{"device", device}, {"tenant", tenant.tenant.name}}, to_double(tenant.commits), tenant.since);
      }
    }
    if (tenants.other_commits > 0) {
      out.add({{"device", device}, {"tenant", kOther}}, to_double(tenants.other_commits), since);
    }
  });
}

/// One sample per name, so that other metrics can be joined with it.
void info(const Snapshot& snapshot, Samples& out) {
  std::set<std::string> named;
  for_each_named_device(snapshot, [&](const std::string&, const DeviceTenants& tenants, WallTime) {
    for (const TenantIo& tenant : tenants.tenants) {
      if (named.insert(tenant.tenant.name).second) {
        out.add_info({{"tenant", tenant.tenant.name},
                      {"kind", label_of(tenant.tenant.kind, model::kTenantKindNames)},
                      {"cgroup", util::for_label(tenant.tenant.cgroup)}});
      }
    }
  });
}

constexpr LabelDescription kAttributedOperation{"operation", "what the request does", model::kAttributedOperationNames};
constexpr LabelDescription kTenant{
    "tenant",
    "a systemd unit, docker/ID, podman/ID, pod/UID/ID, lxc/NAME, vm/NAME, user/UID, job/ID, a name of "
    "attribution.patterns, or the path of a cgroup; /: the root, to which the kernel charges what it charges to no "
    "cgroup below; other: tenants that got no series, or whose name was not known yet; a hash if attribution.names "
    "says so"};
constexpr LabelDescription kTenantLabels[] = {kDevice, kAttributedOperation, kTenant};
constexpr LabelDescription kDepartedLabels[] = {kDevice, kAttributedOperation};
constexpr LabelDescription kCommitLabels[] = {kDevice, kTenant};
constexpr LabelDescription kPathLabels[] = {
    kDevice,
    kAttributedOperation,
    {"path",
     "how it entered the kernel: direct: with O_DIRECT, on kernels that do not show the engine; other: not known",
     model::kIoPathNames},
    {"access", "raw: of the block device itself; file: of a file system, or not known to be raw",
     model::kIoAccessNames},
};
constexpr LabelDescription kInfoLabels[] = {
    kTenant,
    {"kind", "what it is", model::kTenantKindNames},
    {"cgroup",
     "path of its directory, of one of them if it has several; absent if it has none, if a pattern names it, or if "
     "names are hashed"},
};

constexpr std::string_view kOff = "attribution.enabled is false, attribution.names is off, or nothing was counted";
constexpr std::string_view kNoPaths = "attribution.enabled is false, or nothing was counted";

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_tenant_ios_total",
     "Completed I/Os, by the tenant that sent them. Summed over all tenants, with ssdpulse_tenant_departed_ios, it "
     "equals ssdpulse_path_ios_total summed over all paths. A tenant's series ends some minutes after its last cgroup, "
     "or earlier if another tenant needs the place; if the tenant comes back, it counts from 0.",
     by_tenant<ios>, kTenantLabels, kOff},
    {"ssdpulse_tenant_bytes_total", "Bytes of those I/Os.", by_tenant<bytes>, kTenantLabels, kOff},
    {"ssdpulse_tenant_device_seconds_total",
     "Time from issue to completion of those I/Os, summed over I/Os, without those whose issue was not seen. Divided "
     "by the I/Os, it is how long the device takes for one I/O of this tenant.",
     by_tenant<seconds>, kTenantLabels, kOff, Modes::full_only},
    {"ssdpulse_tenant_commits_total", "Completed flush sequences and FUA writes, by the tenant that asked for them.",
     commits, kCommitLabels, kOff},
    {"ssdpulse_tenant_departed_ios",
     "I/Os of tenants whose series have ended. A gauge, because it grows by a tenant's whole total at once: do not "
     "take its rate.",
     departed<ios>, kDepartedLabels, kOff},
    {"ssdpulse_tenant_departed_bytes", "Bytes of those I/Os.", departed<bytes>, kDepartedLabels, kOff},
    {"ssdpulse_tenant_departed_device_seconds", "Device time of those I/Os.", departed<seconds>, kDepartedLabels, kOff,
     Modes::full_only},
    {"ssdpulse_tenant_info", "The tenants; always 1.", info, kInfoLabels, kOff},
    {"ssdpulse_path_ios_total",
     "Completed I/Os, by how they entered the kernel. Summed over all paths, it is the number of I/Os of the "
     "operation, strays included.",
     by_path<ios>, kPathLabels, kNoPaths},
    {"ssdpulse_path_bytes_total", "Bytes of those I/Os.", by_path<bytes>, kPathLabels, kNoPaths},
    {"ssdpulse_path_device_seconds_total",
     "Time from issue to completion of those I/Os, summed over I/Os, without those whose issue was not seen.",
     by_path<seconds>, kPathLabels, kNoPaths, Modes::full_only},
};

}  // namespace

std::span<const FamilyDescription> tenant_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
