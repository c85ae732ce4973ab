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
  const Measurements::Labels writes{{"device", disk.device.name}, {"operation", "write"}};
  return weigh(facts, std::move(bad),
               {{"sequential_share_of_writes",
                 ratio(facts.measured.sum("ssdpulse_io_sequential_bytes_total", writes),
                       facts.measured.sum("ssdpulse_io_bytes_total", writes)),
                 kSequential},
                {"writes_per_day", facts.measured.per_day("ssdpulse_io_size_bytes_count", writes), kWritesPerDay}});
}

}  // namespace

const Rule kQ3{.id = "Q3",
               .title = "Merging of neighbouring I/Os",
               .limit = "half of the bytes written are sequential, in 100,000 writes a day",
               .source = "Documentation/ABI/stable/sysfs-block, nomerges",
               .of_disk = merges};

}  // namespace ssdpulse::audit
