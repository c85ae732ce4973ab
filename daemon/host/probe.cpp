// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/probe.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/tcp_listeners.h"
#include "daemon/host/sysfs.h"

namespace ssdpulse::host {

namespace {

model::PathProbe probe_path(const std::string& root, const std::string& path) {
  model::PathProbe result;
  result.path = path;
  const std::string there = root + path;
  struct stat status {};
  if (::stat(there.c_str(), &status) != 0) {
    return result;
  }
  result.exists = true;
  result.directory = S_ISDIR(status.st_mode);
  result.socket = S_ISSOCK(status.st_mode);
  result.readable = ::access(there.c_str(), R_OK) == 0;
  result.writable = ::access(there.c_str(), W_OK) == 0;
  struct statvfs space {};
  if (::statvfs(there.c_str(), &space) == 0 && space.f_blocks > 0) {
    result.free_ratio = static_cast<double>(space.f_bavail) / static_cast<double>(space.f_blocks);
  }
  return result;
}

std::optional<std::int64_t> signed_number(const std::string& path) {
  const std::string text = sysfs::read_text(path);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                   : std::nullopt;
}

/// The rest of the line that begins with `name`.
std::optional<std::string> line_of(const std::string& text, std::string_view name) {
  std::size_t at = text.rfind(name, 0) == 0 ? 0 : text.find("\n" + std::string(name));
  if (at == std::string::npos) {
    return std::nullopt;
  }
  at += (at == 0 && text.rfind(name, 0) == 0 ? 0 : 1) + name.size();
  return std::string(sysfs::trim(std::string_view(text).substr(at, std::min(text.find('\n', at), text.size()) - at)));
}

std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> effective_capabilities(const std::string& proc) {
  const auto status = util::read_file(proc + "/self/status", 1U << 16U);
  const auto line = status ? line_of(*status, "CapEff:") : std::nullopt;
  return line ? hexadecimal(*line) : std::nullopt;
}

/// "Max locked memory  SOFT  HARD  bytes": the daemon raises its own limit up to the hard one.
std::optional<std::uint64_t> locked_memory(const std::string& proc) {
  const auto limits = util::read_file(proc + "/self/limits", 1U << 16U);
  const auto line = limits ? line_of(*limits, "Max locked memory") : std::nullopt;
  if (!line) {
    return std::nullopt;
  }
  const std::size_t second = line->find_first_not_of(' ', line->find(' '));
  return second == std::string::npos
             ? std::nullopt
             : sysfs::parse_number(std::string_view(*line).substr(second, line->find(' ', second) - second));
}

/// "none [integrity] confidentiality" -> "integrity"
std::string chosen(const std::string& line) {
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']', open == std::string::npos ? 0 : open);
  return open == std::string::npos || close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

std::optional<std::vector<std::uint16_t>> listening_ports(const std::string& proc) {
  const auto listeners = util::tcp_listeners(proc);
  if (!listeners) {
    return std::nullopt;
  }
  std::vector<std::uint16_t> ports;
  std::transform(listeners->begin(), listeners->end(), std::back_inserter(ports),
                 [](const util::TcpListener& one) { return one.port; });
  std::sort(ports.begin(), ports.end());
  return ports;
}

std::vector<std::string> names_in(const std::string& directory) {
  return sysfs::list_directory(directory).value_or(std::vector<std::string>{});
}

bool is_controller(std::string_view name) {
  return name.substr(0, 4) == "nvme" && sysfs::parse_number(name.substr(4)).has_value();
}

}  // namespace

model::HostProbe probe_host(const ProbeRoot& root, const ProbePaths& paths) {
  const std::string& top = root.directory;
  const std::string sys = top + "/sys";
  const std::string proc = top + "/proc";
  model::HostProbe probe;
  probe.kernel = sysfs::read_text(proc + "/sys/kernel/osrelease");
  struct stat status {};
  if (::stat((sys + "/kernel").c_str(), &status) == 0) {
    probe.kernel_types = ::stat((sys + "/kernel/btf/vmlinux").c_str(), &status) == 0;
  }
  probe.privileges = effective_capabilities(proc);
  probe.lockdown = chosen(sysfs::read_text(sys + "/kernel/security/lockdown"));
  probe.locked_memory_bytes = locked_memory(proc);
  probe.bpf_jit_enable = signed_number(proc + "/sys/net/core/bpf_jit_enable");
  probe.kptr_restrict = signed_number(proc + "/sys/kernel/kptr_restrict");
  probe.perf_event_paranoid = signed_number(proc + "/sys/kernel/perf_event_paranoid");
  for (const std::string& controller : names_in(sys + "/class/nvme")) {
    if (is_controller(controller)) {
      probe.drive_nodes.push_back(probe_path(top, "/dev/" + controller));
    }
  }
  probe.listening_ports = listening_ports(proc);
  if (!paths.history_directory.empty()) {
    probe.history_directory = probe_path(top, paths.history_directory);
  }
  if (!paths.reader_socket.empty()) {
    probe.reader_socket = probe_path(top, paths.reader_socket);
  }
  return probe;
}

}  // namespace ssdpulse::host
