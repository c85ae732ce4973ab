// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/flash_input.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string_view>

#include "daemon/model/device_identity.h"

namespace ssdpulse::flash {

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

std::string in_words(FlashSilence silence) {
  switch (silence) {
    case FlashSilence::rotational:
      return "it is not flash";
    case FlashSilence::zoned:
      return "the host collects its zones, not the drive";
    case FlashSilence::virtual_device:
      return "it is a virtual disk, or of a virtual machine and shows no wear: what is behind it is not known";
    case FlashSilence::compression:
      return "the drive compresses: what it writes depends on the data";
    case FlashSilence::no_size:
      return "its size is 0";
    case FlashSilence::too_small:
      return "it is too small to be sampled";
    case FlashSilence::no_memory:
      return "the memory for models is used up by other drives";
    case FlashSilence::partly_measured:
      return "not all of its namespaces and paths are measured";
    case FlashSilence::written_elsewhere:
      return "more than 2 % of what it counts as written came by passthrough or from another host";
    case FlashSilence::warming_up:
      return "too little was written since the start";
    case FlashSilence::few_writes:
      return "too little was written in this window";
    case FlashSilence::events_lost:
      return "too many events were lost";
    case FlashSilence::wide_bounds:
      return "its bounds are more than 25 % apart";
    case FlashSilence::unknown_pages:
      return "it is not known how much of the drive holds data: an fstrim would tell";
  }
  return "";
}

namespace {

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

/// Without a serial number, a disk is the same one until it is detached. Where several disks have one key, which is
/// that of kept states, that of each also has the rest of its identity.
std::string short_key_of(const model::Device& device) {
  if (!device.serial.empty()) {
    return device.model.raw() + '\n' + device.serial.raw();
  }
  if (!device.wwid.empty()) {
    return device.wwid.raw();
  }
  return device.name + '\n' + std::to_string(device.paths.empty() ? 0 : device.paths.front().diskseq);
}

/// By name.
std::map<std::string, std::string> keys_of(const std::vector<model::DeviceTick>& devices) {
  std::map<std::string, std::string> keys;
  std::map<std::string, int> having;  // a key
  std::vector<const model::Device*> present;
  for (const model::DeviceTick& entry : devices) {
    const model::Device& device = *entry.block.device;
    ++having[keys.emplace(device.name, short_key_of(device)).first->second];
    present.push_back(&device);
  }
  const auto alone = [](const auto& entry) { return entry.second == 1; };
  if (std::all_of(having.begin(), having.end(), alone)) {
    return keys;
  }
  const auto distinct = model::distinct_identities(present);
  for (auto& [name, key] : keys) {
    if (having.at(key) > 1) {
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
  for (const FlashNamespace& one : drive.namespaces) {
    const auto said = std::find_if(identity.namespaces.begin(), identity.namespaces.end(),
                                   [&](const model::NvmeNamespace& entry) { return entry.device == one.device; });
    if (said == identity.namespaces.end() || !said->used_share) {
      return std::nullopt;
    }
    used += *said->used_share * static_cast<double>(one.size_bytes);
  }
  return drive.facts.size_bytes > 0 ? std::optional(used / static_cast<double>(drive.facts.size_bytes)) : std::nullopt;
}

void add_counters(FlashDrive& drive, const model::WriteAmplification& said) {
  drive.host_written_bytes = said.host_written_bytes;
  drive.media_written_bytes = said.media_written_bytes;
  drive.host_doubt_bytes = said.host_doubt_bytes;
  drive.media_doubt_bytes = said.media_doubt_bytes;
  if (said.host_written_drift_lower_bytes) {
    drive.written_elsewhere_bytes = std::max(0.0, *said.host_written_drift_lower_bytes);
  }
  for (const model::WriteAmplificationRatio& ratio : said.ratios) {
    constexpr double kNearlyADay = 20 * 3600;
    if (ratio.window == "24h" && ratio.covered_seconds >= kNearlyADay) {
      drive.measured_day = model::Estimate{ratio.ratio, ratio.lower, ratio.upper};
    }
  }
}

}  // namespace

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
