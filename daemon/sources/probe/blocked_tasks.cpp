// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/probe/blocked_tasks.h"

#include "daemon/sources/sysfs.h"

namespace ssdpulse::probe {
namespace {

std::vector<std::string> numbers_in(const std::string& directory) {
  auto names = sources::sysfs::list_directory(directory).value_or(std::vector<std::string>{});
  std::erase_if(names, [](const std::string& name) { return !sources::sysfs::parse_number(name); });
  return names;
}

}  // namespace

std::vector<BlockedTask> blocked_tasks(const std::string& proc, std::size_t most) {
  std::vector<BlockedTask> found;
  for (const std::string& process : numbers_in(proc)) {
    const std::string threads = proc + "/" + process + "/task";
    for (const std::string& thread : numbers_in(threads)) {
      const std::string stat = sources::sysfs::read_text(threads + "/" + thread + "/stat");
      const auto state = stat.rfind(") ");  // the name may itself hold any of this
      if (state == std::string::npos || state + 2 >= stat.size() || stat[state + 2] != 'D') {
        continue;
      }
      if (found.size() >= most) {
        return found;
      }
      const std::string wchan = sources::sysfs::read_text(threads + "/" + thread + "/wchan");
      found.push_back({thread, sources::sysfs::read_text(threads + "/" + thread + "/comm"), wchan == "0" ? "" : wchan});
    }
  }
  return found;
}

}  // namespace ssdpulse::probe
