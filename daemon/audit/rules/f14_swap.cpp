// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kSwapBytesPerDay = 1e9;

Finding swap(const Facts& facts, const DiskSettings& disk) {
  const auto& swaps = facts.settings.swaps;
  if (std::none_of(swaps.begin(), swaps.end(),
                   [&](const auto& one) { return one.disks.count(disk.device.name) > 0; })) {
    const auto lost = std::find_if(swaps.begin(), swaps.end(), [](const auto& one) { return !one.known; });
    return lost == swaps.end()
               ? not_applicable("it is not used for swap")
               : unknown("whether it is used for swap", "what " + util::for_json(lost->name) + " lies on is not known");
  }
  const auto swappiness = facts.settings.files.number("proc/sys/vm/swappiness");
  Finding bad = info("the host swaps to it", "reads from swap wait behind everything else");
  if (swappiness && *swappiness > 1) {
    bad.change = "sysctl vm.swappiness=1";
    bad.persistent = "echo vm.swappiness=1 > /etc/sysctl.d/60-ssdpulse-swap.conf";
    bad.undo = fmt::format("sysctl vm.swappiness={}; rm -f /etc/sysctl.d/60-ssdpulse-swap.conf", *swappiness);
    bad.risk = "programs are killed earlier when memory runs out";
  } else {
    bad.change = "add memory, or swap to zram";
    bad.risk = "zram takes memory itself";
  }
  return weigh(
      facts, std::move(bad),
      {{"swap_bytes_per_day",
        facts.measured.per_day(facts.measured.device(disk.device.name).written_bytes_by(model::WriteClass::swap)),
        kSwapBytesPerDay}});
}

}  // namespace

const Rule kF14{.id = "F14",
                .title = "Swap on a measured disk",
                .limit = "1 GB a day is written to it",
                .source = "MongoDB production notes, swappiness",
                .of_disk = swap};

}  // namespace ssdpulse::audit
