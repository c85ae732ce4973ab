// SPDX-License-Identifier: Apache-2.0
// DeviceIdentity: by what a device is known again when the kernel gives it another name. No single field suffices:
// cheap adapters and whole batches share a WWID, some models share one serial number, and the kernel takes the
// identifiers of an NVMe namespace away if another one has them too. The size is no part of it, because volumes grow;
// nor the firmware.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/model/device.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::model {

struct DeviceIdentity {
  util::OutsideText model;
  util::OutsideText serial;
  std::string part;             // of a drive with several block devices: the namespace's number, boot0 of an eMMC
  util::OutsideText subsystem;  // the name of the NVM subsystem, where that says more than the serial number
  util::OutsideText wwid;       // empty: none, or the kernel made it up from the other fields

  /// False: it could not be recognised again; only its name is known.
  [[nodiscard]] bool lasts() const { return !serial.empty() || !wwid.empty(); }
  /// All fields: "Example SSD | serial S1 | wwid naa.1". Of a device that is not to be recognised: empty.
  [[nodiscard]] std::string text() const;
  /// Without the WWID, which the kernel may give at one boot and not at the next. Empty without a serial number.
  [[nodiscard]] std::string text_without_wwid() const;
  bool operator==(const DeviceIdentity&) const = default;
};

DeviceIdentity identity_of(const Device& device);

/// Nothing that they report tells the two apart: two drives of one identity, or two paths to one drive.
bool indistinguishable(const DeviceIdentity& a, const DeviceIdentity& b);

/// Of one device among others.
struct DistinctIdentity {
  std::string text;      // differs from those of all others; its name if that is all that is known
  bool clashes = false;  // another one has its identity: the text also says where it is attached, or its name
};
/// By name.
std::map<std::string, DistinctIdentity> distinct_identities(const std::vector<const Device*>& devices);

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

}  // namespace ssdpulse::model
