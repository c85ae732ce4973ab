// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/processes.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "daemon/base/file_descriptor.h"
#include "daemon/host/sysfs.h"

namespace ssdpulse::host {

// Parses proc(5): self/stat, self/limits, self/fd, and the boot time in stat.

namespace {

constexpr std::size_t kMaxBytes = 4U << 20U;  // /proc/stat has a line for each CPU and a number for each interrupt

std::uint64_t number_in(std::string_view text) {
  const std::size_t start = std::min(text.find_first_of("0123456789"), text.size());
  std::uint64_t value = 0;
  std::from_chars(text.data() + start, text.data() + text.size(), value);
  return value;
}

std::optional<std::string_view> line_after(std::string_view text, std::string_view label) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (text.substr(0, label.size()) == label) {
      return text.substr(label.size(), end - label.size());
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::nullopt;
}

/// The numbered fields of self/stat, as proc(5) counts them. The command may itself hold blanks and parentheses, so
/// counting begins after it: the state is field 3.
class StatFields {
 public:
  static constexpr std::size_t kUserTicks = 14;
  static constexpr std::size_t kSystemTicks = 15;
  static constexpr std::size_t kThreads = 20;
  static constexpr std::size_t kStartTicks = 22;
  static constexpr std::size_t kVirtualBytes = 23;
  static constexpr std::size_t kResidentPages = 24;

  static util::Result<StatFields> read(const std::string& proc_root) {
    const std::string path = proc_root + "/self/stat";
    const auto text = util::read_file(path, kMaxBytes);
    if (!text) {
      return tl::unexpected<util::Error>(text.error());
    }
    const std::size_t command_end = text->rfind(')');
    std::istringstream rest(command_end == std::string::npos ? std::string() : text->substr(command_end + 1));
    StatFields fields;
    for (std::string field; rest >> field;) {
      fields.values_.push_back(number_in(field));
    }
    if (fields.values_.size() <= kResidentPages - kFirst) {
      return util::fail(path + " has too few fields");
    }
    return fields;
  }

  [[nodiscard]] std::uint64_t operator[](std::size_t number) const { return values_[number - kFirst]; }

 private:
  static constexpr std::size_t kFirst = 3;
  std::vector<std::uint64_t> values_;
};

double seconds_of_ticks(std::uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

util::Result<std::uint64_t> count_open_fds(const std::string& path) {
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) {
    return util::fail_errno("cannot list " + path);
  }
  const std::string own = std::to_string(::dirfd(directory));
  std::uint64_t count = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && name != own) {
      ++count;
    }
  }
  ::closedir(directory);
  return count;
}

}  // namespace

util::Result<double> read_process_start_time(const std::string& proc_root) {
  const auto fields = StatFields::read(proc_root);
  const auto system = util::read_file(proc_root + "/stat", kMaxBytes);
  if (!fields || !system) {
    return tl::unexpected<util::Error>(fields ? system.error() : fields.error());
  }
  const auto boot = line_after(*system, "btime ");
  if (!boot) {
    return util::fail("no boot time in " + proc_root + "/stat");
  }
  return static_cast<double>(number_in(*boot)) + seconds_of_ticks((*fields)[StatFields::kStartTicks]);
}

util::Result<model::ProcessStats> read_process_stats(double start_time_seconds, const std::string& proc_root) {
  const auto fields = StatFields::read(proc_root);
  if (!fields) {
    return tl::unexpected<util::Error>(fields.error());
  }
  const auto limits = util::read_file(proc_root + "/self/limits", kMaxBytes);
  if (!limits) {
    return tl::unexpected<util::Error>(limits.error());
  }
  const auto open_fds = count_open_fds(proc_root + "/self/fd");
  if (!open_fds) {
    return tl::unexpected<util::Error>(open_fds.error());
  }
  model::ProcessStats stats;
  stats.start_time_seconds = start_time_seconds;
  stats.cpu_seconds = seconds_of_ticks((*fields)[StatFields::kUserTicks] + (*fields)[StatFields::kSystemTicks]);
  stats.threads = (*fields)[StatFields::kThreads];
  stats.virtual_bytes = (*fields)[StatFields::kVirtualBytes];
  stats.resident_bytes = (*fields)[StatFields::kResidentPages] * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  stats.open_fds = *open_fds;
  std::string_view soft_limit = line_after(*limits, "Max open files").value_or("");
  soft_limit.remove_prefix(std::min(soft_limit.find_first_not_of(' '), soft_limit.size()));
  constexpr std::string_view kUnlimited = "unlimited";
  stats.max_fds = soft_limit.substr(0, kUnlimited.size()) == kUnlimited ? std::numeric_limits<std::uint64_t>::max()
                                                                        : number_in(soft_limit);
  return stats;
}

namespace {

std::vector<std::string> numbers_in(const std::string& directory) {
  auto names = host::sysfs::list_directory(directory).value_or(std::vector<std::string>{});
  std::erase_if(names, [](const std::string& name) { return !host::sysfs::parse_number(name); });
  return names;
}

}  // namespace

std::vector<BlockedTask> blocked_tasks(const std::string& proc, std::size_t most) {
  std::vector<BlockedTask> found;
  for (const std::string& process : numbers_in(proc)) {
    const std::string threads = proc + "/" + process + "/task";
    for (const std::string& thread : numbers_in(threads)) {
      const std::string stat = host::sysfs::read_text(threads + "/" + thread + "/stat");
      const auto state = stat.rfind(") ");  // the name may itself hold any of this
      if (state == std::string::npos || state + 2 >= stat.size() || stat[state + 2] != 'D') {
        continue;
      }
      if (found.size() >= most) {
        return found;
      }
      const std::string wchan = host::sysfs::read_text(threads + "/" + thread + "/wchan");
      found.push_back({thread, host::sysfs::read_text(threads + "/" + thread + "/comm"), wchan == "0" ? "" : wchan});
    }
  }
  return found;
}

}  // namespace ssdpulse::host
