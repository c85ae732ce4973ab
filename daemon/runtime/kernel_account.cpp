// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/kernel_account.h"

#include <utility>

#include "daemon/model/device_identity.h"

namespace ssdpulse::runtime {
namespace {

block::OurCounts counts_of(const model::DeviceSample& sample) {
  return block::compose_counts(*sample.io, sample.events);
}

/// Drivers without requests count their bios themselves, many whatever iostats is.
bool is_counted(const model::Device& device) { return device.iostats || !device.has_requests; }

}  // namespace

std::optional<KernelAccount> KernelAccount::open(const host::InventoryRoots& roots, const model::Device& device,
                                                 std::uint64_t number) {
  if (!is_counted(device)) {
    return std::nullopt;
  }
  KernelAccount account(device, number);
  for (const model::Path& path : device.paths) {
    auto file = host::DiskStatsFile::open(roots, path.disk_name);
    if (!file) {
      return std::nullopt;
    }
    account.files_.push_back(std::move(*file));
  }
  return account;
}

bool KernelAccount::is_of(const model::Device& now) const { return is_counted(now) && model::same_paths(device_, now); }

std::optional<model::AccountReading> KernelAccount::compare(
    const model::DeviceSample& ours, const std::function<std::optional<model::DeviceSample>()>& sample_again) {
  const auto kernel_before = read_stats();
  const auto kernel_after = read_stats();
  const auto after = sample_again();
  if (!ours.io || !kernel_before || !kernel_after || !after || !after->io) {
    return std::nullopt;
  }
  if (std::exchange(since_, ours.io->since) != ours.io->since) {
    drift_.restart();  // our counters have begun again, the kernel's have not
  }
  drift_.observe(counts_of(ours), *kernel_before, *kernel_after, counts_of(*after));
  compared_ = true;
  return model::AccountReading{ours, *kernel_before, *kernel_after, *after};
}

KernelAccount::InFlight KernelAccount::find_missed(const model::DeviceSample& ours) {
  InFlight result;
  if (!ours.io) {
    return result;
  }
  if (missed_.stands_still(*ours.io)) {
    const auto in_flight = read_in_flight();
    const auto ended = read_stats();
    if (in_flight && ended) {
      result.kernel = block::plausible(*in_flight, *ours.io, drift_.lead(counts_of(ours), *ended));
    }
  }
  result.ended = missed_.observe(*ours.io, result.kernel);
  return result;
}

util::Result<model::DiskStats> KernelAccount::read_stats() const {
  std::vector<model::DiskStats> stats;
  for (const host::DiskStatsFile& file : files_) {
    auto path = file.read();
    if (!path) {
      return path;
    }
    stats.push_back(*path);
  }
  return block::sum_of_paths(stats);
}

util::Result<model::KernelInFlight> KernelAccount::read_in_flight() const {
  model::KernelInFlight total;
  for (const host::DiskStatsFile& file : files_) {
    auto path = file.read_in_flight();
    if (!path) {
      return path;
    }
    total.reads += path->reads;
    total.writes += path->writes;
  }
  return total;
}

}  // namespace ssdpulse::runtime
