// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr std::uint64_t kLargeDiscard = 256U << 20U;  // bytes
constexpr std::uint64_t kModestDiscard = 128U << 20U;

struct Discard {
  std::optional<double> seconds;
  std::optional<double> bytes;
};

Discard mean_discard(const Facts& facts, const std::string& name) {
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    const model::OperationInterval& all = past->load.operations.at(model::index(model::Operation::discard));
    return {latency_total(*past, {model::Latency::discard}).mean(),
            ratio(static_cast<double>(all.bytes), static_cast<double>(all.ios))};
  }
  const MeasuredOperation& discards = facts.measured.device(name).operation(Operation::discard);
  return {mean(discards.device_seconds), mean(discards.size_bytes)};
}

Finding discard_size(const Facts& facts, const DiskSettings& disk) {
  const auto most = disk.files.number("queue/discard_max_bytes");
  if (!most) {
    return unknown("the largest discard", "queue/discard_max_bytes is not readable");
  }
  if (*most == 0) {
    return not_applicable("the disk accepts no discards");
  }
  const std::string found = fmt::format("a discard may be {} MiB", *most >> 20U);
  if (*most <= kLargeDiscard) {
    return ok(found);
  }
  const auto granularity = disk.files.number("queue/discard_granularity").value_or(0);
  if (granularity > 0 && kModestDiscard % granularity != 0) {
    return not_applicable("the disk discards in larger pieces");
  }
  Finding bad = info(found, "a drive that takes long for one makes reads wait");
  // The kernel refuses anything but a multiple (EINVAL), yet its own default may not be one.
  const std::uint64_t before = granularity > 0 ? *most / granularity * granularity : *most;
  change_file(bad, disk, "queue/discard_max_bytes", std::to_string(kModestDiscard), std::to_string(before));
  bad.risk = "more commands, and longer bursts";
  const auto [seconds, size] = mean_discard(facts, disk.device.name);
  if (seconds) {
    bad.evidence["mean_discard_seconds"] = *seconds;
  }
  return weigh(
      facts, std::move(bad),
      {{"excess_seconds_per_day", excess_per_day(facts, disk.device.name, {SpikeCause::discard}), kExcessLimit},
       {"mean_discard_bytes", size, static_cast<double>(kModestDiscard) / 8}});
}

}  // namespace

const Rule kQ13{.id = "Q13",
                .title = "Largest discard",
                .limit = "discards of 16 MiB and more on average cause 60 s of waiting a day",
                .source = "Documentation/ABI/stable/sysfs-block, discard_max_bytes",
                .by_history = true,
                .of_disk = discard_size};

}  // namespace ssdpulse::audit
