// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kMinIos = 10'000;
constexpr double kAlike = 1.1;  // I/Os of the volume and of the disk below it differ at most by this factor

bool lies_on_flash(const Facts& facts, const DiskSettings& array) {
  return std::any_of(facts.settings.disks.begin(), facts.settings.disks.end(), [&](const DiskSettings& disk) {
    return !disk.device.rotational &&
           std::find(array.disks.begin(), array.disks.end(), disk.device.name) != array.disks.end();
  });
}

/// Reads and writes since the volume, or the disk below it, appeared.
struct Load {
  double ios = 0;
  double seconds = 0;
};

/// Documentation/block/stat.rst; nothing if the file has another format.
std::optional<Load> load_in(const std::string& stat) {
  std::istringstream text(stat);
  std::array<double, 8> fields{};
  for (double& field : fields) {
    if (!(text >> field)) {
      return std::nullopt;
    }
  }
  return Load{fields[0] + fields[4], (fields[3] + fields[7]) / 1000};
}

/// Seconds a day that I/Os take longer at the volume than below it: waiting for threads, and encryption. Nothing if the
/// two did not do the same I/Os: below, some are merged, or belong to others.
std::optional<double> excess_above(const Facts& facts, const DiskSettings& array) {
  const auto above = load_in(array.files.text("stat").raw());
  const auto below = load_in(array.files.text("slave/stat").raw());
  const auto& uptime = facts.settings.uptime_seconds;
  if (!above || !below || !uptime || *uptime <= 0 || above->ios < kMinIos || below->ios > kAlike * above->ios ||
      above->ios > kAlike * below->ios) {
    return std::nullopt;
  }
  return std::max(0.0, above->seconds - below->seconds) * kSecondsPerDay / *uptime;
}

Finding crypt_queues(const Facts& facts, const DiskSettings& array) {
  const CryptKind kind = kind_of_crypt(array);
  if (kind == CryptKind::none) {
    return not_applicable("it is not a dm-crypt volume whose flags cryptsetup can change");
  }
  if (!lies_on_flash(facts, array)) {
    return not_applicable("there is no SSD below it");
  }
  if (!array.crypt_flags) {
    return unknown("whether dm-crypt hands each I/O to a thread",
                   "its table was not read: only root may, and the daemon never does; run ssdpulse audit as root");
  }
  std::set<std::string> flags = *array.crypt_flags;
  const bool reads = flags.insert("no_read_workqueue").second;
  const bool writes = flags.insert("no_write_workqueue").second;
  if (!reads && !writes) {
    return ok("dm-crypt works where reads end and writes begin");
  }
  Finding finding = info(fmt::format("dm-crypt hands each {} to a thread", !writes  ? "read"
                                                                           : !reads ? "write"
                                                                                    : "read and write"),
                         "an I/O that an SSD does in microseconds also waits for that thread");
  // If somebody refreshes the volume twice, it keeps only the flags of the second time.
  if (array.files.number("queue/discard_max_bytes") == std::uint64_t{0} && flags.count("allow_discards") == 0 &&
      disk_below_takes_discards(facts, array)) {
    finding.why += "; no command is given as long as F5 has one, which also sets all flags";
    return finding;
  }
  refresh_crypt(finding, array, flags, "no-read-workqueue,no-write-workqueue");
  finding.risk = "encryption takes the CPU of whoever reads or writes; the flags need cryptsetup 2.3.4";
  if (finding.change.empty()) {
    return finding;
  }
  finding.observed_seconds = facts.settings.uptime_seconds;
  finding.observer = model::Observer::kernel;
  return weigh(facts, std::move(finding), {{"excess_seconds_per_day", excess_above(facts, array), kExcessLimit}});
}

}  // namespace

const Rule kF6{.id = "F6",
               .title = "Work queues of dm-crypt",
               .limit = "reads and writes take 60 s a day longer at the volume than at the disk below it",
               .source = "Linux commit 39d42fa96ba1; Documentation/block/stat.rst",
               .of_array = crypt_queues};

}  // namespace ssdpulse::audit
