// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/probe.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/sysfs.h"

namespace ssdpulse::host {
namespace {

model::PathProbe probe_path(const std::string& root, const std::string& path) {
  model::PathProbe result;
  result.path = path;
  const std::string full_path = root + path;
  struct stat status {};
  if (::stat(full_path.c_str(), &status) != 0) {
    return result;
  }
  result.exists = true;
  result.directory = S_ISDIR(status.st_mode);
  result.socket = S_ISSOCK(status.st_mode);
  result.readable = ::access(full_path.c_str(), R_OK) == 0;
  result.writable = ::access(full_path.c_str(), W_OK) == 0;
  struct statvfs space {};
  if (::statvfs(full_path.c_str(), &space) == 0 && space.f_blocks > 0) {
    result.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  }
  for (const std::string& name : result.directory ? sysfs::names_in(full_path) : std::vector<std::string>{}) {
    const bool is_file = ::stat((full_path + "/" + name).c_str(), &status) == 0 && S_ISREG(status.st_mode);
    result.files_bytes += is_file ? static_cast<std::uint64_t>(status.st_size) : 0;
  }
  return result;
}

/// The whole text as a number.
template <typename Number>
std::optional<Number> number_in(std::string_view text, int base = 10) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> effective_capabilities(const std::string& proc) {
  const auto status = util::read_file(proc + "/self/status", 1U << 16U);
  const auto line = status ? sysfs::rest_of_line(*status, "CapEff:") : std::nullopt;
  return line ? number_in<std::uint64_t>(sysfs::trim(*line), 16) : std::nullopt;
}

/// "Max locked memory  SOFT  HARD  bytes": the daemon raises its own limit up to the hard one.
std::optional<std::uint64_t> locked_memory(const std::string& proc) {
  const auto limits = util::read_file(proc + "/self/limits", 1U << 16U);
  const auto rest = limits ? sysfs::rest_of_line(*limits, "Max locked memory") : std::nullopt;
  const auto words = sysfs::words_in(std::string(rest.value_or("")));
  return words.size() < 2 ? std::nullopt : sysfs::parse_number(words[1]);
}

bool is_controller(std::string_view name) {
  return name.starts_with("nvme") && sysfs::parse_number(name.substr(4)).has_value();
}

}  // namespace

model::HostProbe probe_host(const std::string& root, const ProbePaths& paths) {
  const std::string sys = root + "/sys";
  const std::string proc = root + "/proc";
  model::HostProbe probe;
  probe.kernel = sysfs::read_text(proc + "/sys/kernel/osrelease");
  struct stat status {};
  if (::stat((sys + "/kernel").c_str(), &status) == 0) {
    probe.kernel_types = ::stat((sys + "/kernel/btf/vmlinux").c_str(), &status) == 0;
  }
  probe.privileges = effective_capabilities(proc);
  probe.lockdown = sysfs::chosen_in(sysfs::read_text(sys + "/kernel/security/lockdown"));
  probe.locked_memory_bytes = locked_memory(proc);
  probe.bpf_jit_enable = number_in<std::int64_t>(sysfs::read_text(proc + "/sys/net/core/bpf_jit_enable"));
  probe.kptr_restrict = number_in<std::int64_t>(sysfs::read_text(proc + "/sys/kernel/kptr_restrict"));
  probe.perf_event_paranoid = number_in<std::int64_t>(sysfs::read_text(proc + "/sys/kernel/perf_event_paranoid"));
  for (const std::string& controller : sysfs::names_in(sys + "/class/nvme")) {
    if (is_controller(controller)) {
      probe.drive_nodes.push_back(probe_path(root, "/dev/" + controller));
    }
  }
  probe.listeners = util::tcp_listeners(proc);
  if (!paths.history_directory.empty()) {
    probe.history_directory = probe_path(root, paths.history_directory);
  }
  if (!paths.reader_socket.empty()) {
    probe.reader_socket = probe_path(root, paths.reader_socket);
  }
  return probe;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace ssdpulse::host
