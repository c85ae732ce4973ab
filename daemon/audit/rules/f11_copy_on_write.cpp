// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding copy_on_write(const Facts& facts, const MountSettings& mount) {
  if (mount.fstype != "btrfs" || mount.options.count("nodatacow") > 0) {
    return not_applicable("it does not copy on write");
  }
  for (const char* database : {"postgres", "mysqld", "mariadbd", "mongod", "scylla", "ceph-osd"}) {
    if (facts.settings.programs.count(database) > 0) {
      Finding finding = info(fmt::format("it copies on write, and {} runs on this host", database),
                             "small writes of a database become larger ones, if its files are here");
      finding.change = "chattr +C on an empty directory for its files, then copy them";
      finding.undo = "copy them back";
      finding.risk = "no checksums and no compression of these files";
      return finding;
    }
  }
  return ok("it copies on write, and no database is known to run");
}

}  // namespace

const Rule kF11{.id = "F11",
                .title = "Copy on write under databases",
                .limit = "never: where databases keep their files is not read",
                .source = "btrfs(5), nodatacow",
                .of_mount = copy_on_write};

}  // namespace ssdpulse::audit
