// SPDX-License-Identifier: Apache-2.0
// DeviceIdentity: by what a device is recognized when the kernel gives it another name; HistoryKeys: under what the
// history keeps it; Medium: whether it is a drive.
// No single field suffices: cheap adapters and whole batches share a WWID, some models share one serial number, and the
// kernel takes the identifiers of an NVMe namespace away if another one has them too. The size is no part of it,
// because volumes grow; nor the firmware.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/base/outside_text.h"
#include "daemon/model/device.h"
#include "daemon/model/nvme_drive.h"

namespace ssdpulse::model {

struct DeviceKey;  // history_rows.h
struct Tick;       // stage.h

struct DeviceIdentity {
  util::OutsideText model;
  util::OutsideText serial;
  std::string part;             // where a drive may have several block devices: the namespace, or boot0 of an eMMC
  util::OutsideText subsystem;  // the name of the NVM subsystem, where that says more than the serial number
  util::OutsideText wwid;       // empty: none, or the kernel made it up from the other fields

  /// False: it cannot be recognized again; only its name is known.
  [[nodiscard]] bool lasts() const { return !serial.empty() || !wwid.empty(); }
  /// All fields: "Example SSD | serial S1 | wwid naa.1". Of a device that cannot be recognized: empty.
  [[nodiscard]] std::string text() const;
  /// Without the WWID, which the kernel may give at one boot and not at the next. Empty without a serial number.
  [[nodiscard]] std::string text_without_wwid() const;
  bool operator==(const DeviceIdentity&) const = default;
};

DeviceIdentity identity_of(const Device& device);

/// Nothing that they report tells the two apart: two drives of one identity, or two paths to one drive.
bool indistinguishable(const DeviceIdentity& a, const DeviceIdentity& b);

/// The identity of a device among others.
struct DistinctIdentity {
  std::string text;      // differs from those of all others; its name if that is all that is known
  bool clashes = false;  // another device has the same identity: the text also says where it is attached, or its name
};
/// By the name of the device.
std::map<std::string, DistinctIdentity> distinct_identities(const std::vector<const Device*>& devices);

/// Gives each device the key of its history, for all stages: its identity. While several devices share one, that of
/// each also says where it is attached; a device keeps that until it disappears, because the history under the bare
/// identity may be that of any of them. Must see every tick; for one thread.
class HistoryKeys {
 public:
  /// Sets the history_key of each device.
  void set_history_keys(Tick& tick);

 private:
  struct KeyedDevice {
    std::shared_ptr<const Device> device;
    bool clashes = false;  // or did so
    std::shared_ptr<const DeviceKey> key;
  };
  void learn(const Tick& tick);

  std::map<std::string, KeyedDevice> devices_;  // by name
};

/// Devices of one identity that are not known to be paths to one drive.
struct IdentityClash {
  std::vector<std::string> devices;  // sorted
  DeviceIdentity identity;
  bool sizes_differ = false;  // then they are certainly different drives
  bool operator==(const IdentityClash&) const = default;
};

/// What is to be reported: `memberships` show which devices device-mapper multipath has joined.
std::vector<IdentityClash> reported_clashes(const std::vector<const Device*>& devices,
                                            const std::vector<Membership>& memberships);

/// "sda and sdb report one model, serial number and WWID (...)", and what follows from it.
std::string clash_text(const IdentityClash& clash);

// Whether a device is still the same. Names are reused: for the next disk in a slot, for the next loop device. One rule
// for all code that keeps state about a device.

/// The disk of one queue: the same name and, since Linux 5.15, the same diskseq. Before that the name has to suffice.
inline bool same_disk(const std::string& name, std::uint64_t diskseq, const Path& now) {
  return name == now.disk_name && diskseq == now.diskseq;
}
inline bool same_disk(const Path& before, const Path& now) { return same_disk(before.disk_name, before.diskseq, now); }

/// With the same paths in the same order.
inline bool same_paths(const Device& before, const Device& now) {
  return std::equal(before.paths.begin(), before.paths.end(), now.paths.begin(), now.paths.end(),
                    [](const Path& a, const Path& b) { return same_disk(a, b); });
}

/// The same piece of hardware under the same name: its counters continue, whichever paths appear or disappear.
/// Different hardware has its own counters, with its own DeviceIo::since, which distinguishes them later.
inline bool same_device(const Device& before, const Device& now) {
  if (before.paths.size() == 1 && now.paths.size() == 1) {
    return same_disk(before.paths[0], now.paths[0]) && before.major == now.major && before.minor == now.minor;
  }
  return identity_of(before) == identity_of(now);
}

/// The same drive behind the same controller: a controller's number is soon given to the next one.
inline bool same_drive(const NvmeIdentity& before, const NvmeIdentity& now) {
  return before.controller == now.controller && before.serial == now.serial && before.model == now.model &&
         before.subsystem_nqn == now.subsystem_nqn;
}

/// Whether a disk is a drive, with flash or platters of its own, or software that keeps its data elsewhere: the only
/// list of what virtual disks call themselves, and what counts where no list can be complete.
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
  constexpr std::array kMediaFields{NvmeField::percentage_used_ratio,
                                    NvmeField::media_erased_bytes,
                                    NvmeField::bad_blocks,
                                    NvmeField::block_erases_max,
                                    NvmeField::block_erases_mean,
                                    NvmeField::endurance_group_percentage_used_ratio};
  return std::any_of(drive.values.begin(), drive.values.end(), [&](const NvmeValue& value) {
    return value.value > 0 && std::find(kMediaFields.begin(), kMediaFields.end(), value.field) != kMediaFields.end();
  });
}

/// `drive`: what the disk is a namespace of; null: no NVMe drive, or not known yet.
inline Medium medium_of(const Device& device, const NvmeDrive* drive) {
  constexpr auto kHardwareTransports = std::to_array<std::string_view>({"nvme", "sata", "sas", "usb", "mmc"});
  const bool has_bus =
      std::find(kHardwareTransports.begin(), kHardwareTransports.end(), device.transport) != kHardwareTransports.end();
  const NvmeIdentity* identity = drive != nullptr ? drive->identity.get() : nullptr;
  const bool fabric = identity != nullptr && !identity->transport.empty() && identity->transport != "pcie";
  if (!has_bus || fabric || names_software(device.model) ||
      (identity != nullptr && (names_software(identity->model) || is_software_vendor(identity->vendor_id)))) {
    return Medium::software;
  }
  return !device.of_virtual_machine || (drive != nullptr && wears(*drive)) ? Medium::drive : Medium::unknown;
}

}  // namespace ssdpulse::model
