// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kSequential = 0.5;      // of the bytes written
constexpr double kWritesPerDay = 100e3;  // fewer have no visible cost

Finding merges(const Facts& facts, const DiskSettings& disk) {
  const auto nomerges = disk.files.number("queue/nomerges");
  if (!nomerges) {
    return unknown("nomerges", "queue/nomerges is not readable");
  }
  if (*nomerges == 0) {
    return ok("neighbouring I/Os are merged");
  }
  Finding bad = info(*nomerges == 1 ? "only simple merges are tried" : "neighbouring I/Os are not merged",
                     "each small sequential write becomes a command of its own");
  change_file(bad, disk, "queue/nomerges", "0");
  bad.risk = "a little CPU for each I/O";
  const MeasuredOperation& writes = facts.measured.device(disk.device.name).operation(Operation::write);
  return weigh(facts, std::move(bad),
               {{"sequential_share_of_writes", ratio(writes.sequential_bytes, writes.bytes), kSequential},
                {"writes_per_day", facts.measured.per_day(writes.size_bytes.count), kWritesPerDay}});
}

}  // namespace

const Rule kQ3{.id = "Q3",
               .title = "Merging of neighbouring I/Os",
               .limit = "half of the bytes written are sequential, in 100,000 writes a day",
               .source = "Documentation/ABI/stable/sysfs-block, nomerges",
               .of_disk = merges};

}  // namespace ssdpulse::audit
