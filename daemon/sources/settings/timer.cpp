// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/settings/timer.h"

#include <sys/stat.h>

#include <array>
#include <map>
#include <sstream>

#include "daemon/sources/sysfs.h"
#include "daemon/util/read_file.h"

namespace ssdpulse::settings {

namespace sysfs = sources::sysfs;

namespace {

constexpr std::size_t kMaxUnitBytes = 1U << 16U;
// In the order in which one hides the next (systemd.unit(5)).
constexpr auto kPlaces =
    std::to_array<const char*>({"/etc/systemd/system/", "/run/systemd/system/", "/usr/local/lib/systemd/system/",
                                "/usr/lib/systemd/system/", "/lib/systemd/system/"});

/// An empty OnCalendar= cancels earlier ones.
void take_lines(const std::string& unit, model::TimerSettings& timer) {
  std::istringstream lines(unit);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view text = sysfs::trim(line);
    const std::size_t is = text.find('=');
    const std::string_view key = sysfs::trim(text.substr(0, is));
    const std::string value(is == std::string_view::npos ? "" : sysfs::trim(text.substr(is + 1)));
    if (key == "OnCalendar") {
      timer.calendar = value;
    } else if (key == "RandomizedDelaySec") {
      timer.delay = value;
    }
  }
}

bool is_there(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

}  // namespace

model::TimerSettings read_timer(const std::string& root, const std::string& name) {
  model::TimerSettings timer;
  if (!is_there(root + "/etc/systemd/system")) {
    return timer;
  }
  timer.enabled = false;
  for (const char* place : kPlaces) {
    timer.enabled = *timer.enabled || is_there(root + place + "timers.target.wants/" + name);
  }
  for (const char* place : kPlaces) {
    const std::string unit = root + place + name;
    if (sysfs::link_target(unit) == "/dev/null") {
      timer.enabled = false;  // masked
      return timer;
    }
    if (const auto text = util::read_file(unit, kMaxUnitBytes)) {
      take_lines(*text, timer);
      break;
    }
  }
  std::map<std::string, std::string> drop_ins;  // by file name, the order in which they apply, wherever they are
  for (const char* place : kPlaces) {
    const std::string directory = root + place + name + ".d";
    for (const std::string& file : sysfs::list_directory(directory).value_or(std::vector<std::string>{})) {
      if (file.ends_with(".conf")) {
        drop_ins.try_emplace(file, directory + "/" + file);
      }
    }
  }
  for (const auto& [file, path] : drop_ins) {
    take_lines(util::read_file(path, kMaxUnitBytes).value_or(""), timer);
  }
  return timer;
}

}  // namespace ssdpulse::settings
