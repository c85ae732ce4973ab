// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr std::uint64_t kPageOfDatabases = 16384;  // bytes

Finding atomic_writes(const Facts&, const DiskSettings& disk) {
  const auto most = disk.files.number("queue/atomic_write_unit_max_bytes");
  if (!most || *most < kPageOfDatabases) {
    return not_applicable("it does not promise atomic writes of 16 KiB");
  }
  return info(
      fmt::format("writes of up to {} KiB are all or nothing", *most / 1024),
      "a database that asks for them (RWF_ATOMIC) needs no copy of each page; one that does not ask still does");
}

}  // namespace

const Rule kN15{.id = "N15",
                .title = "Atomic writes",
                .limit = "never: relying on them wrongly loses data",
                .source = "Documentation/ABI/stable/sysfs-block, atomic_write_unit_max_bytes",
                .of_disk = atomic_writes};

}  // namespace ssdpulse::audit
