// SPDX-License-Identifier: Apache-2.0
// Medium: whether a disk is a drive, with flash or platters of its own, or software that keeps its data elsewhere: the
// only list of what virtual disks call themselves, and what counts where no list can be complete.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/model/device.h"
#include "daemon/model/nvme.h"
#include "daemon/model/nvme_fields.h"
#include "daemon/util/complete.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::model {

enum class Medium : std::uint8_t {
  drive,
  software,  // a virtual disk, a cloud's volume, a target on another host
  unknown,   // of a virtual machine, and nothing shows that it was passed through to it
};
inline constexpr auto kMediumNames = util::names<Medium>({"drive", "software", "unknown"});

/// Upper and lower case do not matter. A part of the model is enough.
inline bool names_software(const util::OutsideText& model) {
  constexpr auto kParts = std::to_array<std::string_view>({"qemu", "bhyve", "virtual", "vbox", "vmware", "parallels",
                                                           "amazon elastic", "alibaba cloud", "nvme_card-pd",
                                                           "persistentdisk", "msft nvme", "spdk", "vdisk", "scst"});
  std::string lower = model.raw();
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower == "linux" ||  // the kernel's own NVMe target
         std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return lower.find(part) != std::string::npos; });
}

/// PCI vendors that make no hardware: Red Hat, its virtio, bhyve, VMware, VirtualBox, Microsoft, Parallels, Xen.
inline bool is_software_vendor(std::uint16_t vendor_id) {
  constexpr auto kVendors =
      std::to_array<std::uint16_t>({0x1B36, 0x1AF4, 0xFB5D, 0x15AD, 0x80EE, 0x1414, 0x1AB8, 0x5853});
  return std::find(kVendors.begin(), kVendors.end(), vendor_id) != kVendors.end();
}

/// Emulators count bytes and hours, but none wears out.
inline bool wears(const NvmeDrive& drive) {
  constexpr std::array kOfMedia{NvmeField::percentage_used_ratio,
                                NvmeField::media_erased_bytes,
                                NvmeField::bad_blocks,
                                NvmeField::block_erases_max,
                                NvmeField::block_erases_mean,
                                NvmeField::endurance_group_percentage_used_ratio};
  return std::any_of(drive.values.begin(), drive.values.end(), [&](const NvmeValue& one) {
    return one.value > 0 && std::find(kOfMedia.begin(), kOfMedia.end(), one.field) != kOfMedia.end();
  });
}

/// `drive`: what the disk is a namespace of; null: no NVMe drive, or not known yet.
inline Medium medium_of(const Device& device, const NvmeDrive* drive) {
  constexpr auto kOfHardware = std::to_array<std::string_view>({"nvme", "sata", "sas", "usb", "mmc"});
  const bool has_bus = std::find(kOfHardware.begin(), kOfHardware.end(), device.transport) != kOfHardware.end();
  const NvmeIdentity* identity = drive != nullptr ? drive->identity.get() : nullptr;
  const bool fabric = identity != nullptr && !identity->transport.empty() && identity->transport != "pcie";
  if (!has_bus || fabric || names_software(device.model) ||
      (identity != nullptr && (names_software(identity->model) || is_software_vendor(identity->vendor_id)))) {
    return Medium::software;
  }
  return !device.of_virtual_machine || (drive != nullptr && wears(*drive)) ? Medium::drive : Medium::unknown;
}

}  // namespace ssdpulse::model
