// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

bool lies_on_flash(const Facts& facts, const DiskSettings& array) {
  return std::any_of(facts.settings.disks.begin(), facts.settings.disks.end(), [&](const DiskSettings& disk) {
    return !disk.device.rotational &&
           std::find(array.disks.begin(), array.disks.end(), disk.device.name) != array.disks.end();
  });
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
  return finding;
}

}  // namespace

const Rule kF6{.id = "F6",
               .title = "Work queues of dm-crypt",
               .limit = "never: what the threads cost is not measured",
               .source = "Linux commit 39d42fa96ba1",
               .of_array = crypt_queues};

}  // namespace ssdpulse::audit
