// SPDX-License-Identifier: Apache-2.0
// What does this kernel tell: who does I/O, who waits for it, and what is written?
#include <fmt/format.h>

#include "daemon/doctor/check.h"
#include "daemon/model/tenant_title.h"
#include "daemon/model/tenants.h"

namespace ssdpulse::doctor {
namespace {

Findings io_accounting(const model::Snapshot& snapshot) {
  if (!decided(snapshot.kernel_features, model::KernelFeature::io_accounting, model::KernelDecision::root_only)) {
    return {};
  }
  auto one = finding(
      model::Verdict::advise, "", "which unit does the I/O is not known",
      "this host accounts all I/O to the root of its cgroups: it is that of " + model::tenant_title(model::kRootTenant),
      "mkdir -p /etc/systemd/system.conf.d && printf '[Manager]\\nDefaultIOAccounting=yes\\n' "
      ">/etc/systemd/system.conf.d/io-accounting.conf && systemctl daemon-reexec");
  one.undo = "rm /etc/systemd/system.conf.d/io-accounting.conf && systemctl daemon-reexec";
  one.risk = "a few counters more for the kernel to keep, by unit";
  one.source = "systemd-system.conf(5)";
  return {one};
}

Findings pressure(const model::Snapshot& snapshot) {
  Findings found;
  const auto& signals = snapshot.host.signals;
  if (!signals) {
    return found;
  }
  if (!signals->pressure) {
    auto one =
        finding(model::Verdict::info, "", "how long tasks wait for I/O is not known",
                "the kernel keeps no pressure stall information, or it is off: what holds up I/O above the drives "
                "(a limit, a suspended volume) is seen late or not at all",
                "boot with psi=1 on the kernel's command line");
    one.source = "Documentation/accounting/psi.rst";
    found.push_back(std::move(one));
  }
  if (signals->cgroups_unified == false) {
    auto one =
        finding(model::Verdict::info, "", "which tenant waits for I/O is not known",
                "this host has cgroup v1, which keeps pressure for the whole host alone, and limits of io.max and "
                "io.latency do not exist",
                "boot with systemd.unified_cgroup_hierarchy=1");
    one.source = "Documentation/admin-guide/cgroup-v2.rst";
    found.push_back(std::move(one));
  }
  return found;
}

/// `consequence`: of not seeing what the kernel feature stands for.
Findings unless_hooked(const model::Snapshot& snapshot, model::KernelFeature feature, const char* consequence) {
  if (!decided(snapshot.kernel_features, feature, model::KernelDecision::not_hooked)) {
    return {};
  }
  return {finding(model::Verdict::info, "", consequence,
                  "the kernel's functions could not be hooked; the log of the daemon's start says why",
                  "a kernel with CONFIG_FUNCTION_TRACER and BTF")};
}

Findings discard_submitters(const model::Snapshot& snapshot) {
  return unless_hooked(snapshot, model::KernelFeature::discard_submitters,
                       "who submits discards is not known: all have trigger=other");
}

Findings freezes(const model::Snapshot& snapshot) {
  return unless_hooked(snapshot, model::KernelFeature::freezes, "a frozen file system is not noticed");
}

Findings write_classes(const model::Snapshot& snapshot) {
  if (!decided(snapshot.kernel_features, model::KernelFeature::write_class, model::KernelDecision::flags_and_pages)) {
    return {};
  }
  return {no_kernel_symbols(
      "classes of writes are guessed from flags and pages alone",
      "the kernel showed no addresses in /proc/kallsyms: kernel.kptr_restrict is 2, or CAP_SYSLOG is missing",
      "sysctl kernel.kptr_restrict=1 && systemctl restart ssdpulse")};
}

std::uint64_t hinted_bytes(const model::DeviceSnapshot& entry) {
  std::uint64_t sum = 0;
  if (entry.io) {
    for (std::size_t i = 0; i < model::kWriteHints; ++i) {
      const std::string_view hint = model::kWriteHintNames[i];
      const bool declares = hint != "not_set" && hint != "none" && hint != "unknown";
      sum += declares ? entry.io->writes.hint_bytes[i] : 0;
    }
  }
  return sum;
}

Findings write_hints(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (entry.hint_path && entry.hint_path->kernel == model::HintReach::dropped) {
      found.push_back(finding(model::Verdict::info, entry.device->name, "write lifetime hints do not reach the drive",
                              "this kernel drops them on the way"));
    } else if (entry.hint_path && hinted_bytes(entry) > 0 &&
               (entry.hint_path->kernel != model::HintReach::drive ||
                entry.hint_path->drive == model::DriveSeparation::none)) {
      found.push_back(
          finding(model::Verdict::info, entry.device->name,
                  fmt::format("programs send write lifetime hints: they {}, and the drive {}",
                              model::name(entry.hint_path->kernel, model::kHintReachWords),
                              model::name(entry.hint_path->drive, model::kDriveSeparationWords)),
                  fmt::format("data of different lifetimes is not separated: {} MB were written with a hint",
                              hinted_bytes(entry) / 1'000'000)));
    }
  }
  return found;
}

constexpr RunningCheck kKernelChecks[] = {
    {"io-accounting", "I/O is accounted to units", io_accounting},
    {"pressure", "waiting for I/O above the drives is seen", pressure},
    {"discard-triggers", "who submits discards is seen", discard_submitters},
    {"freezes", "freezes of file systems are seen", freezes},
    {"write-classes", "journal, metadata and data are separate", write_classes},
    {"write-hints", "the kernel passes write hints on", write_hints},
};

}  // namespace

std::span<const RunningCheck> kernel_checks() { return kKernelChecks; }

}  // namespace ssdpulse::doctor
