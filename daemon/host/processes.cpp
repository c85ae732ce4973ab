// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/processes.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/sysfs.h"

namespace ssdpulse::host {
namespace {

constexpr std::size_t kMaxBytes = 4U << 20U;  // /proc/stat has a line for each CPU and a number for each interrupt

std::uint64_t number_in(std::string_view text) {
  const std::size_t start = std::min(text.find_first_of("0123456789"), text.size());
  std::uint64_t value = 0;
  std::from_chars(text.data() + start, text.data() + text.size(), value);
  return value;
}

/// Fields of self/stat, as proc(5) counts them.
constexpr std::size_t kUserTicks = 14;
constexpr std::size_t kSystemTicks = 15;
constexpr std::size_t kThreads = 20;
constexpr std::size_t kStartTicks = 22;
constexpr std::size_t kVirtualBytes = 23;
constexpr std::size_t kResidentPages = 24;

/// By the numbers above. The command, field 2, may itself hold blanks and parentheses, so that splitting begins after
/// it.
util::Result<std::vector<std::uint64_t>> read_stat_fields(const std::string& proc_root) {
  const std::string path = proc_root + "/self/stat";
  const auto text = util::read_file(path, kMaxBytes);
  if (!text) {
    return tl::unexpected<util::Error>(text.error());
  }
  const std::size_t command_end = text->rfind(')');
  std::vector<std::uint64_t> fields(3);
  for (const std::string& field : sysfs::words_in(text->substr(std::min(command_end, text->size() - 1) + 1))) {
    fields.push_back(number_in(field));
  }
  if (fields.size() <= kResidentPages) {
    return util::fail(path + " has too few fields");
  }
  return fields;
}

double seconds_of_ticks(std::uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

util::Result<std::uint64_t> count_open_fds(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) {
    return util::fail_errno("cannot list " + path);
  }
  const std::string own = std::to_string(::dirfd(directory.get()));
  std::uint64_t count = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && name != own) {
      ++count;
    }
  }
  return count;
}

std::vector<std::string> numbers_in(const std::string& directory) {
  auto names = sysfs::names_in(directory);
  std::erase_if(names, [](const std::string& name) { return !sysfs::parse_number(name); });
  return names;
}

}  // namespace

util::Result<double> read_process_start_time(const std::string& proc_root) {
  const auto fields = read_stat_fields(proc_root);
  const auto system = util::read_file(proc_root + "/stat", kMaxBytes);
  if (!fields || !system) {
    return tl::unexpected<util::Error>(fields ? system.error() : fields.error());
  }
  const auto boot = sysfs::rest_of_line(*system, "btime ");
  if (!boot) {
    return util::fail("no boot time in " + proc_root + "/stat");
  }
  return static_cast<double>(number_in(*boot)) + seconds_of_ticks((*fields)[kStartTicks]);
}

util::Result<model::ProcessStats> read_process_stats(double start_time_seconds, const std::string& proc_root) {
  const auto fields = read_stat_fields(proc_root);
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
  stats.cpu_seconds = seconds_of_ticks((*fields)[kUserTicks] + (*fields)[kSystemTicks]);
  stats.threads = (*fields)[kThreads];
  stats.virtual_bytes = (*fields)[kVirtualBytes];
  stats.resident_bytes = (*fields)[kResidentPages] * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  stats.open_fds = *open_fds;
  std::string_view soft_limit = sysfs::rest_of_line(*limits, "Max open files").value_or("");
  soft_limit.remove_prefix(std::min(soft_limit.find_first_not_of(' '), soft_limit.size()));
  stats.max_fds =
      soft_limit.starts_with("unlimited") ? std::numeric_limits<std::uint64_t>::max() : number_in(soft_limit);
  return stats;
}

model::CpuTimes read_cpu_times(const std::string& proc_root) {
  constexpr double kNsPerSecond = 1e9;
  model::CpuTimes times;
  timespec process{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &process);
  times.process_seconds = static_cast<double>(process.tv_sec) + static_cast<double>(process.tv_nsec) / kNsPerSecond;
  const std::string threads = proc_root + "/self/task";
  for (const std::string& thread : numbers_in(threads)) {
    const std::string directory = threads + "/" + thread;
    const auto times_of_thread = sysfs::words_in(sysfs::read_text(directory + "/schedstat"));
    if (!times_of_thread.empty()) {  // else it has just ended
      times.thread_seconds[sysfs::read_text(directory + "/comm")] +=
          static_cast<double>(number_in(times_of_thread.front())) / kNsPerSecond;
    }
  }
  return times;
}

std::vector<BlockedTask> blocked_tasks(const std::string& proc, std::size_t max_tasks) {
  std::vector<BlockedTask> found;
  for (const std::string& process : numbers_in(proc)) {
    const std::string threads = proc + "/" + process + "/task";
    for (const std::string& thread : numbers_in(threads)) {
      const std::string stat = sysfs::read_text(threads + "/" + thread + "/stat");
      const auto state = stat.rfind(") ");  // the name may itself hold any of this
      if (state == std::string::npos || state + 2 >= stat.size() || stat[state + 2] != 'D') {
        continue;
      }
      if (found.size() >= max_tasks) {
        return found;
      }
      const std::string wchan = sysfs::read_text(threads + "/" + thread + "/wchan");
      found.push_back({thread, sysfs::read_text(threads + "/" + thread + "/comm"), wchan == "0" ? "" : wchan});
    }
  }
  return found;
}

}  // namespace ssdpulse::host
