// SPDX-License-Identifier: Apache-2.0
// Whose I/O it is, and how it entered the kernel.
// A series begins with the first I/O that it counts: what nobody did has none.
#include <set>
#include <string>

#include "exporters/prometheus/families.h"
#include "exporters/prometheus/labels.h"

namespace ssdpulse::exposition {
namespace {

using model::AttributedTotals;
using model::Snapshot;
using model::TotalsByOperation;

double ios(const AttributedTotals& totals) { return to_double(totals.ios); }
double bytes(const AttributedTotals& totals) { return to_double(totals.bytes); }
double seconds(const AttributedTotals& totals) { return to_seconds(totals.device_ns); }
using Value = double (*)(const AttributedTotals&);

constexpr const char* kOther = "other";

/// One sample for each operation of which anything was counted; `more`: labels behind device and operation.
void add_operations(const std::string& device, const TotalsByOperation& totals, const Labels& more,
                    std::optional<model::WallTime> since, Value value, Samples& out) {
  for (std::size_t operation = 0; operation < totals.size(); ++operation) {
    if (totals[operation].ios == 0) {
      continue;
    }
    Labels labels{{"device", device}, {"operation", std::string(model::kAttributedOperationNames[operation])}};
    labels.insert(labels.end(), more.begin(), more.end());
    out.add(std::move(labels), value(totals[operation]), since);
  }
}

template <typename Visit>
void each_named_device(const Snapshot& snapshot, Visit visit) {
  for (const auto& entry : snapshot.devices) {
    if (entry.tenants && entry.tenants->named && entry.io) {
      visit(entry.device->name, *entry.tenants, entry.io->since);
    }
  }
}

template <Value value>
void by_tenant(const Snapshot& snapshot, Samples& out) {
  each_named_device(snapshot,
                    [&](const std::string& device, const model::DeviceTenants& counted, model::WallTime since) {
                      for (const model::TenantIo& one : counted.tenants) {
                        add_operations(device, one.totals, {{"tenant", one.tenant.name}}, one.since, value, out);
                      }
                      add_operations(device, counted.other, {{"tenant", kOther}}, since, value, out);
                    });
}

template <Value value>
void departed(const Snapshot& snapshot, Samples& out) {
  each_named_device(snapshot, [&](const std::string& device, const model::DeviceTenants& counted, model::WallTime) {
    add_operations(device, counted.departed, {}, std::nullopt, value, out);
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
  each_named_device(snapshot,
                    [&](const std::string& device, const model::DeviceTenants& counted, model::WallTime since) {
                      for (const model::TenantIo& one : counted.tenants) {
                        if (one.commits > 0) {
                          out.add({{"device", device}, {"tenant", one.tenant.name}}, to_double(one.commits), one.since);
                        }
                      }
                      if (counted.other_commits > 0) {
                        out.add({{"device", device}, {"tenant", kOther}}, to_double(counted.other_commits), since);
                      }
                    });
}

/// One for each name, so that others can be joined with it.
void info(const Snapshot& snapshot, Samples& out) {
  std::set<std::string> named;
  each_named_device(snapshot, [&](const std::string&, const model::DeviceTenants& counted, model::WallTime) {
    for (const model::TenantIo& one : counted.tenants) {
      if (named.insert(one.tenant.name).second) {
        out.add_info({{"tenant", one.tenant.name},
                      {"kind", std::string(model::kTenantKindNames[static_cast<std::size_t>(one.tenant.kind)])},
                      {"cgroup", one.tenant.cgroup}});
      }
    }
  });
}

constexpr LabelDescription kAttributedOperation{"operation", "what the request does", model::kAttributedOperationNames};
constexpr LabelDescription kTenant{
    "tenant",
    "whose: a unit of systemd, docker/ID, podman/ID, pod/UID/ID, lxc/NAME, vm/NAME, user/UID, job/ID, a name of "
    "attribution.patterns, or the path of a cgroup; /: the root, as which the kernel counts what nobody below it is "
    "charged with; other: tenants for which there was no series, or whose name was not known yet; a hash where "
    "attribution.names says so"};
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
    {"cgroup", "path of the directory that stands for it; absent where several do, and where names are hashed"},
};

constexpr std::string_view kOff =
    "attribution.enabled is false or attribution.names is off, and where nothing was counted";
constexpr std::string_view kNoPaths = "attribution.enabled is false, and where nothing was counted";

constexpr FamilyDescription kFamilies[] = {

    {"ssdpulse_tenant_ios_total",
     "I/Os that ended, by who sent them. Over all tenants, with ssdpulse_tenant_departed_ios, it is what "
     "ssdpulse_path_ios_total is over all paths. A tenant's series ends some minutes after its last cgroup, or earlier "
     "where another one needs the place; should it come back, it counts from 0.",
     "ios", Type::counter, Modes::all, kTenantLabels, kOff, by_tenant<ios>},
    {"ssdpulse_tenant_bytes_total", "Bytes of those I/Os.", "bytes", Type::counter, Modes::all, kTenantLabels, kOff,
     by_tenant<bytes>},
    {"ssdpulse_tenant_device_seconds_total",
     "Time from the issue to the end of those I/Os, summed over I/Os, without those whose issue was not seen: divided "
     "by "
     "the I/Os, how long the device takes for one of this tenant's.",
     "seconds", Type::counter, Modes::full_only, kTenantLabels, kOff, by_tenant<seconds>},
    {"ssdpulse_tenant_commits_total", "Flush sequences and FUA writes that ended, by who asked for them.", "",
     Type::counter, Modes::all, kCommitLabels, kOff, commits},
    {"ssdpulse_tenant_departed_ios",
     "I/Os of tenants whose series have ended. A gauge, because it grows by a whole total at once: no rate can be "
     "taken "
     "of it.",
     "ios", Type::gauge, Modes::all, kDepartedLabels, kOff, departed<ios>},
    {"ssdpulse_tenant_departed_bytes", "Bytes of those I/Os.", "bytes", Type::gauge, Modes::all, kDepartedLabels, kOff,
     departed<bytes>},
    {"ssdpulse_tenant_departed_device_seconds", "Device time of those I/Os.", "seconds", Type::gauge, Modes::full_only,
     kDepartedLabels, kOff, departed<seconds>},
    {"ssdpulse_tenant_info", "Which tenants there are. One of several cgroups shows the first.", "", Type::gauge,
     Modes::all, kInfoLabels, kOff, info},
    {"ssdpulse_path_ios_total",
     "I/Os that ended, by the way that they came into the kernel. Over all paths it is the number of I/Os of the "
     "operation, strays included.",
     "ios", Type::counter, Modes::all, kPathLabels, kNoPaths, by_path<ios>},
    {"ssdpulse_path_bytes_total", "Bytes of those I/Os.", "bytes", Type::counter, Modes::all, kPathLabels, kNoPaths,
     by_path<bytes>},
    {"ssdpulse_path_device_seconds_total",
     "Time from the issue to the end of those I/Os, summed over I/Os, without those whose issue was not seen.",
     "seconds", Type::counter, Modes::full_only, kPathLabels, kNoPaths, by_path<seconds>},
};

}  // namespace

std::span<const FamilyDescription> tenant_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
