// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/kernel_account.h"

#include <algorithm>
#include <initializer_list>
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

bool untouched(const model::BioIo& io) {
  return std::none_of(io.operations.begin(), io.operations.end(),
                      [](const model::BioOperation& one) { return one.active(); });
}

}  // namespace

void VolumeAccounts::update(const model::Inventory& inventory) {
  uncounted_.clear();
  for (const model::Device& device : inventory.devices) {
    if (!device.iostats) {
      uncounted_.insert(device.name);
    }
  }
  std::map<std::string, std::uint64_t> layers;
  for (const model::Layer& layer : inventory.layers) {
    layers.emplace(layer.name, layer.diskseq);
    const auto known = layers_.find(layer.name);
    if (updated_ && (known == layers_.end() || known->second != layer.diskseq)) {
      created_.insert(layer.name);
    }
  }
  layers_ = std::move(layers);
  // What it did before it is counted again is no drift.
  std::erase_if(created_, [&](const auto& name) { return uncounted_.contains(name) || !layers_.contains(name); });
  updated_ = true;
}

void VolumeAccounts::compare(const Bios& bios, const host::AllDiskStats& kernel,
                             const std::function<Bios()>& read_again) {
  auto before = std::exchange(accounts_, {});
  std::set<const model::BioIo*> resting;
  for (const auto& io : bios) {
    if (!io->is_volume || uncounted_.contains(io->device)) {
      continue;
    }
    auto known = before.extract(io->device);
    if (known.empty() || known.mapped().since != io->since) {
      // The kernel counts a new volume from its first I/O on, so what was done before it had a row is in its drift.
      const bool created = created_.erase(io->device) != 0;
      accounts_.emplace(io->device,
                        Account{io->since, {}, created ? std::optional(model::VolumeDrift()) : std::nullopt});
      drift_.erase(io->device);
    } else {
      accounts_.insert(std::move(known));
    }
    if (at_rest(*io)) {
      resting.insert(io.get());
    }
  }
  std::erase_if(drift_, [&](const auto& known) { return !accounts_.contains(known.first); });
  if (resting.empty()) {
    return;
  }
  for (const auto& io : read_again()) {
    if (const auto stats = kernel.find(io->device); stats != kernel.end() && resting.contains(io.get())) {
      observe(*io, stats->second, accounts_.at(io->device));
    }
  }
}

std::set<std::string> VolumeAccounts::standing_still(const Bios& bios) {
  const auto before = std::exchange(ended_, {});
  std::set<std::string> still;
  for (const auto& io : bios) {
    std::int64_t in_flight = 0;
    std::uint64_t submitted = 0;
    for (const model::BioOperation& operation : io->operations) {
      in_flight += operation.in_flight;
      submitted += operation.submitted;
    }
    const std::uint64_t ended = submitted - static_cast<std::uint64_t>(in_flight);
    const auto was = before.find(io->device);
    if (io->is_volume && in_flight > 0 && was != before.end() && was->second == ended) {
      still.insert(io->device);
    }
    ended_.emplace(io->device, ended);
  }
  return still;
}

void VolumeAccounts::observe(const model::BioIo& ours, const model::DiskStats& kernel, Account& account) {
  if (kernel.reads + kernel.writes == 0 && bytes_of(ours, {model::Operation::read, model::Operation::write}) > 0) {
    return;  // its driver counts nothing (brd)
  }
  const model::VolumeDrift now = difference(ours, kernel);
  // Some kernels add a bio's sectors a moment after it has ended: the baseline is what was seen twice, or before our
  // first one.
  if (!account.baseline && (account.before == now || (untouched(ours) && kernel.in_flight == 0))) {
    account.baseline = now;
  }
  account.before = now;
  if (account.baseline) {
    drift_[ours.device] = now - *account.baseline;
  }
}

}  // namespace ssdpulse::runtime
