// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kFasterThanAnyHead = 0.001;  // seconds
constexpr double kSlowAsAHead = 0.005;
constexpr double kReads = 10'000;  // fewer may all have come from a cache

struct Reads {
  std::optional<double> mean_seconds;
  std::optional<double> count;
};

Reads reads_of(const Facts& facts, const std::string& name) {
  using model::Latency;
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    const LatencyTotal all = latency_total(*past, {Latency::read_device_none, Latency::read_device_discard,
                                                   Latency::read_device_flush, Latency::read_device_both});
    return {all.mean(), all.ios};
  }
  const Distribution& seconds = facts.measured.device(name).operation(Operation::read).device_seconds;
  return {mean(seconds), seconds.count};
}

Finding rotational(const Facts& facts, const DiskSettings& disk) {
  if (!disk.files.number("queue/rotational")) {
    return unknown("whether it spins", "queue/rotational is not readable");
  }
  const auto [seconds, count] = reads_of(facts, disk.device.name);
  if (!disk.device.rotational) {
    if (seconds.value_or(0) < kSlowAsAHead || count.value_or(0) < kReads) {
      return ok("the kernel considers it an SSD");
    }
    Finding finding = info("the kernel considers it an SSD, yet its reads take as long as a spinning disk's",
                           "it is one behind a controller or hypervisor, or something slows it down: `ssdpulse why`");
    finding.evidence = {{"mean_read_seconds", *seconds}, {"reads", *count}};
    return finding;
  }
  if (seconds.value_or(1) >= kFasterThanAnyHead) {
    Finding finding =
        info("the kernel considers it a spinning disk", "it is as slow as one, or too little was read to tell");
    finding.evidence["reads"] = count.value_or(0);
    if (seconds) {
      finding.evidence["mean_read_seconds"] = *seconds;
    }
    return finding;
  }
  Finding bad = info("the kernel considers it a spinning disk",
                     "its reads are faster than any spinning disk's; writeback, swap and file "
                     "systems choose what suits spinning disks");
  change_file(bad, disk, "queue/rotational", "0");
  bad.risk = "none known";
  bad.evidence["mean_read_seconds"] = *seconds;
  return weigh(facts, std::move(bad), {{"reads", count, kReads}});
}

}  // namespace

const Rule kQ7{.id = "Q7",
               .title = "SSDs that the kernel considers spinning disks",
               .limit = "the mean of 10,000 reads is below 1 ms",
               .source = "Documentation/ABI/stable/sysfs-block, rotational",
               .by_history = true,
               .of_disk = rotational};

}  // namespace ssdpulse::audit
