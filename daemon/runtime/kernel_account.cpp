// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/kernel_account.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
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

namespace {

constexpr std::int64_t kSectorBytes = 512;

std::int64_t bytes_of(const model::BioIo& io, std::initializer_list<model::Operation> operations) {
  std::int64_t sum = 0;
  for (const model::Operation operation : operations) {
    sum += static_cast<std::int64_t>(io.operations[model::index(operation)].bytes);
  }
  return sum;
}

model::VolumeDrift difference(const model::BioIo& ours, const model::DiskStats& kernel) {
  const auto bytes = [](std::uint64_t sectors) { return static_cast<std::int64_t>(sectors) * kSectorBytes; };
  model::VolumeDrift drift{
      bytes_of(ours, {model::Operation::read}) - bytes(kernel.read_sectors),
      bytes_of(ours, {model::Operation::write, model::Operation::write_zeroes}) - bytes(kernel.written_sectors),
      {}};
  if (kernel.discarded_sectors) {
    drift.discarded_bytes =
        bytes_of(ours, {model::Operation::discard, model::Operation::secure_erase}) - bytes(*kernel.discarded_sectors);
  }
  return drift;
}

model::VolumeDrift operator-(model::VolumeDrift now, const model::VolumeDrift& before) {
  now.read_bytes -= before.read_bytes;
  now.written_bytes -= before.written_bytes;
  if (now.discarded_bytes) {
    *now.discarded_bytes -= before.discarded_bytes.value_or(0);
  }
  return now;
}

bool at_rest(const model::BioIo& io) {
  return std::all_of(io.operations.begin(), io.operations.end(),
                     [](const model::BioOperation& one) { return one.in_flight == 0; });
}

}  // namespace

void VolumeAccounts::compare(const host::InventoryRoots& roots, const model::Inventory& inventory, const Bios& bios,
                             const std::function<Bios()>& read_again, std::uint64_t turn, std::uint64_t turns) {
  std::set<std::string_view> uncounted;
  for (const model::Device& device : inventory.devices) {
    if (!device.iostats) {
      uncounted.insert(device.name);
    }
  }
  std::map<std::string, Account> kept;
  std::map<std::string, std::pair<std::shared_ptr<const model::BioIo>, model::DiskStats>> read;
  for (const auto& io : bios) {
    if (!io->is_volume || uncounted.contains(io->device)) {
      continue;
    }
    auto known = accounts_.extract(io->device);
    if (known.empty() || known.mapped().since != io->since) {
      auto file = host::DiskStatsFile::open(roots, io->device);
      if (!file) {
        continue;
      }
      kept.emplace(io->device, Account{std::move(*file), io->since, {}, {}});
    } else {
      kept.insert(std::move(known));
    }
    const Account& account = kept.at(io->device);
    if (at_rest(*io) && (++turn % turns == 0 || !account.baseline)) {
      if (auto stats = account.file.read()) {
        read.emplace(io->device, std::pair(io, *stats));
      }
    }
  }
  accounts_ = std::move(kept);
  std::erase_if(drift_, [&](const auto& known) { return accounts_.count(known.first) == 0; });
  if (read.empty()) {
    return;
  }
  for (const auto& io : read_again()) {
    const auto found = read.find(io->device);
    if (found == read.end() || found->second.first != io) {
      continue;
    }
    const model::DiskStats& kernel = found->second.second;
    if (kernel.reads + kernel.writes == 0 && bytes_of(*io, {model::Operation::read, model::Operation::write}) > 0) {
      continue;  // its driver counts nothing (brd)
    }
    const model::VolumeDrift now = difference(*io, kernel);
    Account& account = accounts_.at(io->device);
    // Some kernels add a bio's sectors a moment after it has ended: the baseline is what was seen twice.
    if (!account.baseline && account.before == now) {
      account.baseline = now;
    }
    account.before = now;
    if (account.baseline) {
      drift_[io->device] = now - *account.baseline;
    }
  }
}

}  // namespace ssdpulse::runtime
