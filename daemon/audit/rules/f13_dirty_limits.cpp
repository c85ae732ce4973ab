// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"
#include "daemon/util/number_text.h"

namespace ssdpulse::audit {
namespace {

// A drive that writes 1 GB/s needs more than four seconds for this, during which everything else waits.
constexpr double kLargeDirtyLimit = 4.0 * (1U << 30U);  // bytes
constexpr double kWriteback = 0.5;                      // of the bytes written
constexpr std::uint64_t kLimit = 1U << 30U;
constexpr std::uint64_t kBackground = 256U << 20U;

Finding dirty_limits(const Facts& facts) {
  const model::Attributes& files = facts.settings.files;
  const auto bytes = files.number("proc/sys/vm/dirty_bytes");
  const auto percent = files.number("proc/sys/vm/dirty_ratio");
  const auto background = files.number("proc/sys/vm/dirty_background_ratio");
  const auto background_bytes = files.number("proc/sys/vm/dirty_background_bytes");
  if (!bytes || !percent || !background || !background_bytes || !facts.settings.memory_bytes) {
    return unknown("how much may wait to be written", "vm.dirty_ratio is not readable");
  }
  const double limit = *bytes > 0
                           ? static_cast<double>(*bytes)
                           : static_cast<double>(*facts.settings.memory_bytes) * static_cast<double>(*percent) / 100;
  const std::string found = fmt::format("up to {} GiB may wait to be written", util::number_text(limit / (1U << 30U)));
  if (limit <= kLargeDirtyLimit) {
    return ok(found);
  }
  Finding bad = info(found, "when it is all written at once, at a sync or a checkpoint, everything else waits");
  bad.change = fmt::format("sysctl vm.dirty_background_bytes={} vm.dirty_bytes={}", kBackground, kLimit);
  bad.persistent = fmt::format(
      "printf 'vm.dirty_background_bytes=%s\\nvm.dirty_bytes=%s\\n' {} {} > /etc/sysctl.d/60-ssdpulse-dirty.conf",
      kBackground, kLimit);
  bad.undo = (*background_bytes > 0 ? fmt::format("sysctl vm.dirty_background_bytes={}", *background_bytes)
                                    : fmt::format("sysctl vm.dirty_background_ratio={}", *background)) +
             (*bytes > 0 ? fmt::format(" vm.dirty_bytes={}", *bytes) : fmt::format(" vm.dirty_ratio={}", *percent)) +
             "; rm -f /etc/sysctl.d/60-ssdpulse-dirty.conf";
  bad.risk = "large copies through the page cache become slower";
  std::optional<double> excess;
  std::optional<double> writeback;
  std::optional<double> all;
  for (const DiskSettings& disk : facts.settings.disks) {
    const std::string& name = disk.device.name;
    add_figure(excess, excess_per_day(facts, name, {SpikeCause::queue, SpikeCause::saturation}));
    add_figure(writeback, facts.measured.device(name).written_bytes_by(model::WriteClass::writeback));
    add_figure(all, facts.measured.device(name).all_written_bytes());
  }
  return weigh(
      facts, std::move(bad),
      {{"writeback_share", ratio(writeback, all), kWriteback}, {"excess_seconds_per_day", excess, kExcessLimit}});
}

}  // namespace

const Rule kF13{
    .id = "F13",
    .title = "Limits on data waiting to be written",
    .limit =
        "more than 4 GiB may wait, half of the writes are writeback, and queueing or saturation causes 60 s "
        "of waiting a day",
    .source = "tuned, profile postgresql; Documentation/admin-guide/sysctl/vm.rst",
    .by_history = true,
    .of_host = dirty_limits};

}  // namespace ssdpulse::audit
