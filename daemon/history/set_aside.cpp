// SPDX-License-Identifier: Apache-2.0
// Renames files, so it works on a full disk.
#include "daemon/history/set_aside.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "daemon/util/unique_fd.h"

namespace ssdpulse::history {
namespace {

// The files of a database, the main one last: if we die in between, the others are not considered stale and lost.
constexpr std::array kSuffixes{"-journal", "-wal", "-shm", ""};
constexpr std::size_t kStampLetters = 16;  // YYYYmmddTHHMMSSZ

std::string stamp_of(std::chrono::sys_seconds now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const std::size_t letters = std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return {text.data(), letters};
}

/// Stamps of files set aside before, oldest first.
std::vector<std::string> stamps_in(const std::string& directory, const std::string& prefix) {
  std::vector<std::string> stamps;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.size() != prefix.size() + kStampLetters || name.compare(0, prefix.size(), prefix) != 0) {
      continue;
    }
    const std::string stamp = name.substr(prefix.size());
    if (stamp.find_first_not_of("0123456789TZ") == std::string::npos && stamp[8] == 'T' && stamp.back() == 'Z') {
      stamps.push_back(stamp);
    }
  }
  std::sort(stamps.begin(), stamps.end());
  return stamps;
}

struct Plan {
  std::string stamp;
  std::vector<std::string> removed;  // stamps of files that make room for it
};

util::Result<Plan> plan_for(const std::string& directory, const std::string& prefix, std::chrono::sys_seconds now) {
  std::vector<std::string> stamps = stamps_in(directory, prefix);
  std::string stamp = stamp_of(now);
  while (std::count(stamps.begin(), stamps.end(), stamp) > 0) {
    now += std::chrono::seconds(1);
    stamp = stamp_of(now);
  }
  const std::size_t surplus = stamps.size() + 1 > kMaxSetAside ? stamps.size() + 1 - kMaxSetAside : 0;
  if (surplus > 0 && stamps[surplus - 1] > stamp_of(now - std::chrono::hours(24)) && stamps[surplus - 1] <= stamp) {
    return util::fail(std::to_string(stamps.size()) + " files were set aside within a day");
  }
  stamps.resize(surplus);
  return Plan{stamp, stamps};
}

std::string prefix_of(const std::string& file) { return file + ".set-aside-"; }

}  // namespace

std::optional<std::chrono::sys_seconds> last_set_aside(const std::string& directory, const std::string& file) {
  const auto stamps = stamps_in(directory, prefix_of(file));
  std::tm parts{};
  if (stamps.empty() || ::strptime(stamps.back().c_str(), "%Y%m%dT%H%M%SZ", &parts) == nullptr) {
    return std::nullopt;
  }
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

util::Result<void> may_set_aside(const std::string& directory, const std::string& file, std::chrono::sys_seconds now) {
  return plan_for(directory, prefix_of(file), now).map([](const Plan&) {});
}

util::Result<SetAside> set_aside(const std::string& directory, const std::string& file, std::chrono::sys_seconds now) {
  const std::string from = directory + "/" + file;
  const std::string prefix = prefix_of(file);
  const auto plan = plan_for(directory, prefix, now);
  if (!plan) {
    return tl::make_unexpected(plan.error());
  }
  SetAside result{directory + "/" + prefix + plan->stamp, {}};
  std::error_code error;
  for (const char* suffix : kSuffixes) {
    std::filesystem::rename(from + suffix, result.path + suffix, error);
    if (error && error != std::errc::no_such_file_or_directory) {
      return util::fail_errno("cannot set " + from + suffix + " aside", error.value());
    }
  }
  for (const std::string& stamp : plan->removed) {
    for (const char* suffix : kSuffixes) {
      const std::string old = directory + "/" + prefix + stamp + suffix;
      if (std::filesystem::remove(old, error)) {
        result.removed.push_back(old);
      }
    }
  }
  if (const util::UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); opened.valid()) {
    ::fsync(opened.get());  // best effort: the names are not worth failing for
  }
  return result;
}

}  // namespace ssdpulse::history
