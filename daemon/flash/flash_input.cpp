// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/flash_input.h"

#include <algorithm>
#include <bit>

#include "daemon/model/device_identity.h"

namespace ssdpulse::flash {
namespace {

constexpr auto kSilenceTexts = util::names<FlashSilence>({
    "it is not flash",
    "the host collects its zones, not the drive",
    "it is a virtual disk, or of a virtual machine and shows no wear: what is behind it is not known",
    "the drive compresses: what it writes depends on the data",
    "its size is 0",
    "it is too small to be sampled",
    "the memory for models is used up by other drives",
    "not all of its namespaces and paths are measured",
    "more than 2 % of what it counts as written came by passthrough or from another host",
    "too little was written since the start",
    "too little was written in this window",
    "too many events were lost",
    "its bounds are more than 25 % apart",
    "it is not known how much of the drive holds data: run fstrim to find out",
});

constexpr std::uint64_t kUsualPage = 4096;
constexpr std::uint64_t kLargestPage = 65536;  // the largest unit that drives map; a larger preference is a stripe

/// Drives that write less the better the data compresses.
bool compresses(const model::Device& device, const model::NvmeIdentity* identity) {
  return model::compresses(identity != nullptr ? identity->vendor_id : std::uint16_t{0}, device.model);
}

std::uint64_t page_of(std::uint64_t preferred_bytes) {
  return preferred_bytes > kUsualPage && preferred_bytes <= kLargestPage && std::has_single_bit(preferred_bytes)
             ? preferred_bytes
             : kUsualPage;
}

/// Without a serial number, a disk counts as the same disk until it is detached.
std::string short_key_of(const model::Device& device) {
  if (!device.serial.empty()) {
    return device.model.raw() + '\n' + device.serial.raw();
  }
  if (!device.wwid.empty()) {
    return device.wwid.raw();
  }
  return device.name + '\n' + std::to_string(device.paths.empty() ? 0 : device.paths.front().diskseq);
}

/// By name. Where several disks have the same short key, the key of each also has the rest of its identity.
std::map<std::string, std::string> keys_of(const std::vector<model::DeviceTick>& devices) {
  std::map<std::string, std::string> keys;
  std::map<std::string, int> of_key;
  std::vector<const model::Device*> present;
  for (const model::DeviceTick& entry : devices) {
    const model::Device& device = *entry.block.device;
    ++of_key[keys.emplace(device.name, short_key_of(device)).first->second];
    present.push_back(&device);
  }
  if (of_key.size() == keys.size()) {
    return keys;
  }
  const auto distinct = model::distinct_identities(present);
  for (auto& [name, key] : keys) {
    if (of_key.at(key) > 1) {
      key += '\n' + distinct.at(name).text;
    }
  }
  return keys;
}

void add(FlashDrive& drive, const model::DeviceTick& entry) {
  const model::Device& device = *entry.block.device;
  const model::NvmeIdentity* identity = entry.drive ? entry.drive->identity.get() : nullptr;
  drive.namespaces.push_back(
      {device.name, device.size_bytes, device.wwid.raw() + ' ' + std::to_string(device.logical_block_bytes)});
  drive.page_bytes = std::max(drive.page_bytes, page_of(device.write_granularity_bytes));
  drive.facts.size_bytes += device.size_bytes;
  drive.facts.rotational |= device.rotational;
  drive.facts.zoned |= device.zoned;
  // What flash there is behind software, and what else writes to it, cannot be known.
  drive.facts.virtual_device |= model::medium_of(device, entry.drive.get()) != model::Medium::drive;
  drive.facts.compresses |= compresses(device, identity);
  drive.facts.partly_measured |= !entry.block.io || !entry.block.whole;
}

/// A controller's number is soon reused: after a replacement, what is published is still that of the old drive.
const model::NvmeDrive* published(const model::Tick& tick, const model::NvmeIdentity& identity) {
  if (tick.before) {
    for (const model::NvmeDrive& drive : tick.before->nvme_drives) {
      if (model::same_drive(*drive.identity, identity)) {
        return &drive;
      }
    }
  }
  return nullptr;
}

/// The share over all namespaces; absent if one does not report it.
std::optional<double> used_share(const FlashDrive& drive, const model::NvmeIdentity& identity) {
  double used = 0;
  for (const FlashNamespace& name_space : drive.namespaces) {
    const auto reported =
        std::find_if(identity.namespaces.begin(), identity.namespaces.end(),
                     [&](const model::NvmeNamespace& entry) { return entry.device == name_space.device; });
    if (reported == identity.namespaces.end() || !reported->used_share) {
      return std::nullopt;
    }
    used += *reported->used_share * static_cast<double>(name_space.size_bytes);
  }
  return drive.facts.size_bytes > 0 ? std::optional(used / static_cast<double>(drive.facts.size_bytes)) : std::nullopt;
}

void add_counters(FlashDrive& drive, const model::WriteAmplification& reported) {
  drive.host_written_bytes = reported.host_written_bytes;
  drive.media_written_bytes = reported.media_written_bytes;
  drive.host_doubt_bytes = reported.host_doubt_bytes;
  drive.media_doubt_bytes = reported.media_doubt_bytes;
  if (reported.host_written_drift_lower_bytes) {
    drive.written_elsewhere_bytes = std::max(0.0, *reported.host_written_drift_lower_bytes);
  }
  for (const model::WriteAmplificationRatio& ratio : reported.ratios) {
    constexpr double kNearlyADay = 20 * 3600;
    if (ratio.window == "24h" && ratio.covered_seconds >= kNearlyADay) {
      drive.measured_day = model::Estimate{ratio.ratio, ratio.lower, ratio.upper};
    }
  }
}

}  // namespace

std::optional<FlashSilence> silence_of(const FlashDriveFacts& facts) {
  if (facts.virtual_device && !facts.wanted_though_virtual) {
    return FlashSilence::virtual_device;
  }
  // Hypervisors often present flash as rotational. Someone who asks for a model of a virtual disk knows what is behind
  // it.
  if (facts.rotational && !facts.virtual_device) {
    return FlashSilence::rotational;
  }
  if (facts.zoned) {
    return FlashSilence::zoned;
  }
  if (facts.compresses) {
    return FlashSilence::compression;
  }
  if (facts.size_bytes == 0) {
    return FlashSilence::no_size;
  }
  if (facts.partly_measured) {
    return FlashSilence::partly_measured;
  }
  if (facts.written_elsewhere > kMaxWrittenElsewhere) {
    return FlashSilence::written_elsewhere;
  }
  return std::nullopt;
}

std::string silence_text(FlashSilence silence) {
  return std::string(kSilenceTexts.at(static_cast<std::size_t>(silence)));
}

std::vector<FlashDrive> drives_of(const model::Tick& tick) {
  std::map<std::string, FlashDrive> drives;  // by name
  const auto keys = keys_of(tick.devices);
  for (const model::DeviceTick& entry : tick.devices) {
    const std::string name = entry.drive ? entry.drive->identity->controller : entry.block.device->name;
    add(drives[name], entry);
    if (!entry.drive) {
      drives[name].key = keys.at(name);
      drives[name].has_lasting_key = model::identity_of(*entry.block.device).lasts();
    }
  }
  for (const model::DriveTick& seen : tick.drives) {
    const auto found = drives.find(seen.drive->identity->controller);
    if (found == drives.end()) {
      continue;  // none of its namespaces is measured
    }
    FlashDrive& drive = found->second;
    drive.key = seen.key;
    drive.has_lasting_key = !seen.drive->identity->serial.empty();
    drive.controller = seen.drive->identity->controller;
    drive.settled = seen.identified;
    drive.used_share = used_share(drive, *seen.drive->identity);
    drive.facts.partly_measured |= drive.namespaces.size() != seen.drive->identity->namespaces.size();
    if (const model::NvmeDrive* before = published(tick, *seen.drive->identity)) {
      add_counters(drive, before->write_amplification);
    }
  }
  std::vector<FlashDrive> result;
  for (auto& [name, drive] : drives) {
    result.push_back(std::move(drive));
  }
  return result;
}

}  // namespace ssdpulse::flash
