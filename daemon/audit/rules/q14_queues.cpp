// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"
#include "daemon/util/number_text.h"

namespace ssdpulse::audit {
namespace {

Finding queues(const Facts& facts, const DiskSettings& disk) {
  if (!facts.settings.cpus || disk.device.paths.empty()) {
    return unknown("hardware queues", "the CPUs of the host cannot be counted");
  }
  const std::uint32_t count = disk.device.paths.front().hardware_queues;
  const std::string& transport = disk.device.transport;
  if (transport != "nvme" && transport != "virtio") {
    return not_applicable("it has a single queue by design");
  }
  const std::string found = fmt::format("{} for {}", util::count_text(count, "hardware queue"),
                                        util::count_text(*facts.settings.cpus, "CPU"));
  if (count >= *facts.settings.cpus) {
    return ok(found);
  }
  Finding bad = info(found, "CPUs that share a queue wait for its lock");
  bad.change = transport == "virtio" ? "set num-queues= of the virtual disk to the number of CPUs, and restart it" : "";
  bad.risk = transport == "virtio" ? "memory of the virtual machine" : "";
  if (bad.change.empty()) {
    bad.why += "; the drive has no more";
    return bad;
  }
  return weigh(
      facts, std::move(bad),
      {{"excess_seconds_per_day", excess_per_day(facts, disk.device.name, {SpikeCause::queue}), kExcessLimit}});
}

}  // namespace

const Rule kQ14{.id = "Q14",
                .title = "Hardware queues against CPUs",
                .limit = "queueing causes 60 s of waiting a day in a virtual machine",
                .source = "QEMU, virtio-blk num-queues",
                .by_history = true,
                .of_disk = queues};

}  // namespace ssdpulse::audit
