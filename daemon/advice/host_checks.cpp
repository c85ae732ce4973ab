// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "daemon/advice/doctor_check.h"
#include "daemon/base/figure_text.h"

#ifndef CAP_PERFMON  // older headers
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif

namespace ssdpulse::advice {
namespace {

// Of a host without a daemon: could one measure here?

using KernelVersion = std::pair<int, int>;

std::optional<KernelVersion> version_of(const model::HostProbe& host) {
  KernelVersion version;
  const int read = std::sscanf(host.kernel.c_str(), "%4d.%4d", &version.first, &version.second);
  return read == 2 ? std::optional(version) : std::nullopt;
}

bool has_capability(const model::HostProbe& host, unsigned capability) {
  return ((host.privileges.value_or(0) >> capability) & 1U) != 0;
}

Findings kernel_version(const Start& start) {
  constexpr KernelVersion kOldest{5, 10};
  const auto version = version_of(start.host);
  if (!version) {
    return {
        finding(Verdict::unknown, "", "which version the kernel has", "/proc/sys/kernel/osrelease is not readable")};
  }
  if (*version >= kOldest) {
    return {};
  }
  return {finding(Verdict::danger, "", fmt::format("Linux {} is too old: nothing can be measured", start.host.kernel),
                  "the block programs need Linux 5.10", "boot Linux 5.10 or newer")};
}

Findings kernel_types(const Start& start) {
  if (!start.host.kernel_types) {
    return {finding(Verdict::unknown, "", "whether the kernel describes its types", "sysfs is not mounted here")};
  }
  if (*start.host.kernel_types) {
    return {};
  }
  auto one = finding(Verdict::danger, "", "the kernel has no type information: nothing can be measured",
                     "/sys/kernel/btf/vmlinux is missing", "boot a kernel with CONFIG_DEBUG_INFO_BTF=y");
  one.risk = "about 5 MB of memory";
  return {one};
}

Findings privileges(const Start& start) {
  if (!start.host.privileges) {
    return {finding(Verdict::unknown, "", "which capabilities this user has", "/proc/self/status is not readable")};
  }
  if (has_capability(start.host, CAP_SYS_ADMIN)) {
    return {};
  }
  std::string missing;
  for (const auto& [capability, name] :
       {std::pair(unsigned{CAP_BPF}, "CAP_BPF"), std::pair(unsigned{CAP_PERFMON}, "CAP_PERFMON")}) {
    missing += has_capability(start.host, capability) ? "" : (missing.empty() ? "" : " and ") + std::string(name);
  }
  if (!missing.empty()) {
    return {finding(Verdict::unknown, "", "whether the block programs can be loaded",
                    "this user lacks " + missing + ", as a daemon started like this would",
                    "run ssdpulse doctor as root, or start ssdpulse.service, which has them")};
  }
  return {finding(Verdict::info, "", "log pages cannot be read by this user", "CAP_SYS_ADMIN is missing",
                  "ssdpulse-nvme.service reads them for the daemon")};
}

Findings lockdown(const Start& start) {
  if (start.host.lockdown != "confidentiality") {
    return {};
  }
  auto one = finding(Verdict::danger, "", "the kernel is locked down: nothing can be measured",
                     "with lockdown=confidentiality no program may read the kernel's memory",
                     "boot with lockdown=integrity, or without");
  one.risk = "root's programs can then read the kernel's memory";
  one.source = "kernel_lockdown(7)";
  return {one};
}

/// If the setting cannot be read (a container has none), a daemon that fails because of it reports that itself.
Findings bpf_compiler(const Start& start) {
  if (start.host.bpf_jit_enable.value_or(1) != 0) {
    return {};
  }
  auto one = finding(Verdict::advise, "", "the kernel does not compile BPF programs",
                     "interpreted, they take several times as long, and newer kernels refuse them",
                     "sysctl -w net.core.bpf_jit_enable=1");
  one.persistent = "echo net.core.bpf_jit_enable=1 > /etc/sysctl.d/60-ssdpulse-jit.conf";
  one.undo = "sysctl -w net.core.bpf_jit_enable=0; rm -f /etc/sysctl.d/60-ssdpulse-jit.conf";
  one.risk = "root's BPF programs become machine code in the kernel, which is the default";
  one.source = "Documentation/admin-guide/sysctl/net.rst, bpf_jit_enable";
  return {one};
}

constexpr std::uint64_t kSufficientBytes = std::uint64_t{64} << 20U;  // for the tables of a large host

Findings locked_memory(const Start& start) {
  constexpr KernelVersion kChargesCgroups{5, 11};  // instead of counting locked memory
  const bool counted = version_of(start.host).value_or(kChargesCgroups) < kChargesCgroups;
  if (!counted || has_capability(start.host, CAP_SYS_RESOURCE) || !start.host.locked_memory_bytes ||
      *start.host.locked_memory_bytes >= kSufficientBytes) {
    return {};
  }
  auto one = finding(Verdict::advise, "", "tables of the block programs may not fit",
                     "this kernel counts them as locked memory, whose limit is low",
                     "start the daemon with LimitMEMLOCK=infinity, as ssdpulse.service does, or with CAP_SYS_RESOURCE");
  one.evidence = {{"limit_bytes", static_cast<double>(*start.host.locked_memory_bytes)}};
  return {one};
}

Findings kernel_symbols(const Start& start) {
  if (!start.host.kptr_restrict) {
    return {finding(Verdict::unknown, "", "whether the kernel's symbols can be read",
                    "kernel.kptr_restrict is not readable")};
  }
  if (*start.host.kptr_restrict < 2) {
    return {};
  }
  return {no_kernel_symbols("classes of writes would be guessed from flags and pages alone",
                            "kernel.kptr_restrict is 2: the kernel hides where its functions are",
                            "sysctl kernel.kptr_restrict=1")};
}

/// BPF programs are attached to raw tracepoints. With one of these capabilities, this setting does not matter.
Findings perf_events(const Start& start) {
  if (has_capability(start.host, CAP_PERFMON) || has_capability(start.host, CAP_SYS_ADMIN)) {
    return {};
  }
  if (!start.host.perf_event_paranoid || !start.host.privileges) {
    return {finding(Verdict::unknown, "", "whether programs may be attached",
                    "kernel.perf_event_paranoid or /proc/self/status is not readable")};
  }
  if (*start.host.perf_event_paranoid < 3) {
    return {};
  }
  return {finding(Verdict::advise, "", "programs cannot be attached by this user",
                  "kernel.perf_event_paranoid is above 2 and CAP_PERFMON is missing",
                  "start ssdpulse.service, which has it")};
}

/// Whether somebody listens there, or on all addresses. No name is resolved: any address may be meant.
bool is_taken(const std::vector<util::TcpListener>& listeners, const config::ListenAddress& wanted) {
  sockaddr_in v4{AF_INET, htons(wanted.port), {}, {}};
  sockaddr_in6 v6{AF_INET6, v4.sin_port, 0, {}, 0};
  const bool every = wanted.host == "0.0.0.0" || wanted.host == "::";
  if (!every && ::inet_pton(AF_INET, wanted.host.c_str(), &v4.sin_addr) == 1) {
    return !util::listeners_at(listeners, reinterpret_cast<const sockaddr&>(v4)).empty();
  }
  if (!every && ::inet_pton(AF_INET6, wanted.host.c_str(), &v6.sin6_addr) == 1) {
    return !util::listeners_at(listeners, reinterpret_cast<const sockaddr&>(v6)).empty();
  }
  return std::any_of(listeners.begin(), listeners.end(), [&](const auto& one) { return one.port == wanted.port; });
}

Findings port(const Start& start) {
  Findings found;
  if (!start.host.listeners) {
    return {finding(Verdict::unknown, "", "whether the address is free", "/proc/self/net/tcp is not readable")};
  }
  for (const config::ListenAddress& wanted : start.addresses) {
    if (is_taken(*start.host.listeners, wanted)) {
      found.push_back(finding(
          Verdict::advise, "", fmt::format("{} is taken", config::to_string(wanted)),
          "another program listens there, so that the daemon cannot serve what it measures",
          fmt::format("ss -ltnp sport = :{}  # shows who; or set web.listen_address to another port", wanted.port)));
    }
  }
  return found;
}

Findings drive_nodes(const Start& start) {
  Findings found;
  for (const model::PathProbe& node : start.host.drive_nodes) {
    const std::string controller = node.path.substr(node.path.rfind('/') + 1);
    if (!node.exists) {
      found.push_back(finding(Verdict::advise, controller, "log pages cannot be read: its device node is missing",
                              node.path + " is not there",
                              "give the container the drive's device nodes, or run udevadm trigger"));
    } else if (!node.readable) {
      found.push_back(finding(Verdict::unknown, controller, "whether log pages can be read",
                              "this user may not open " + node.path, "run ssdpulse doctor as root"));
    }
  }
  return found;
}

Findings reader_socket(const Start& start) {
  const auto& reader = start.host.reader_socket;
  if (!reader || reader->socket) {
    return {};
  }
  return {finding(Verdict::advise, "", "no log page could be read: the reader does not listen",
                  reader->path + (reader->exists ? " is not a socket" : " is not there"),
                  "systemctl enable --now ssdpulse-nvme.socket  # or set nvme.reader_socket to ''")};
}

Findings history_directory(const Start& start) {
  const auto& directory = start.host.history_directory;
  if (!directory) {
    return {finding(Verdict::info, "", "no history would be kept", "history.directory is empty")};
  }
  if (!directory->answers) {
    return {finding(Verdict::unknown, "", "whether a history can be kept",
                    "the file system of " + directory->path + " does not answer", "check its server or its disk")};
  }
  if (!directory->exists) {
    return {finding(Verdict::info, "", "there is no history yet", directory->path + " is not there",
                    "started by systemd or by root, the daemon makes it")};
  }
  if (!directory->directory) {
    return {finding(Verdict::advise, "", "no history could be kept", directory->path + " is not a directory",
                    "name a directory in history.directory")};
  }
  if (!directory->writable) {
    return {finding(Verdict::unknown, "", "whether a history can be kept",
                    "this user may not write to " + directory->path, "run ssdpulse doctor as root")};
  }
  const std::uint64_t needed = start.history_bytes - std::min(start.history_bytes, directory->files_bytes);
  if (directory->free_bytes.value_or(needed) < needed) {
    const auto free = static_cast<double>(*directory->free_bytes);
    const auto missing = static_cast<double>(needed) - free;
    auto one = finding(Verdict::advise, "", "the history has too little room",
                       fmt::format("the file system of {} has {} free, {} less than history.size lets it grow by",
                                   directory->path, util::format_size(free), util::format_size(missing)),
                       "make room there, or lower history.size");
    one.evidence = {{"free_bytes", free}, {"missing_bytes", missing}};
    return {one};
  }
  return {};
}

Findings statistics_of_disks(const Start& start) {
  Findings found;
  for (const model::Device& device : start.devices) {
    if (!device.iostats && device.has_requests) {
      found.push_back(not_stamped(device.name));
    }
  }
  return found;
}

constexpr HostCheck kHostChecks[] = {
    {"kernel-version", "the kernel is new enough", kernel_version},
    {"kernel-btf", "the kernel describes its types", kernel_types},
    {"capabilities", "this user may load programs and read log pages", privileges},
    {"lockdown", "the kernel is not locked down", lockdown},
    {"bpf-jit", "the kernel compiles BPF programs", bpf_compiler},
    {"memlock", "locked memory is not limited too much", locked_memory},
    {"kptr-restrict", "the kernel's symbols can be read", kernel_symbols},
    {"perf-event-paranoid", "programs may be attached", perf_events},
    {"port", "the address is free", port},
    {"drive-nodes", "the nodes of all NVMe drives are there", drive_nodes},
    {"reader-socket", "the reader of NVMe logs listens, or the daemon starts its own", reader_socket},
    {"history-directory", "the history can be kept", history_directory},
    {"iostats", "the kernel stamps the requests of every disk", statistics_of_disks},
};

}  // namespace

std::span<const HostCheck> host_checks() { return kHostChecks; }

}  // namespace ssdpulse::advice
