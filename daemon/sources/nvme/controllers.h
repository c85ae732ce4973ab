// SPDX-License-Identifier: Apache-2.0
// The host's NVMe drives, and which controller of each to read. One pass over sysfs: opens no drive and remembers
// nothing. A drive is an NVM subsystem: all its controllers report the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/nvme.h"
#include "daemon/util/outside_text.h"
#include "daemon/util/result.h"

namespace ssdpulse::nvme {

struct NvmeSubsystem {
  std::uint32_t controller = 0;  // 3 is nvme3: the lowest live one, or the lowest of all if none is live
  std::string state;             // live, or why it cannot be asked: the kernel's word for it, or ours
  util::OutsideText nqn;
  std::string transport;
  std::string address;
  util::OutsideText model;
  util::OutsideText serial;
  util::OutsideText firmware;
  std::vector<model::NvmeNamespace> namespaces;  // by nsid; their endurance groups are not in sysfs

  [[nodiscard]] bool live() const { return state == "live"; }
};

struct NvmeHost {
  std::vector<NvmeSubsystem> subsystems;  // by controller
  std::vector<std::string> warnings;      // what had to be left out, and why
};

/// Fails only if the kernel's list of controllers is there but cannot be read. Discovery controllers are not drives.
/// `sys_root`: where sysfs is mounted; tests put a tree of their own there.
util::Result<NvmeHost> read_nvme_host(const std::string& sys_root = "/sys");

/// The serial number of the drive that is, for example, nvme3 at this moment; empty if there is none.
util::OutsideText controller_serial(std::uint32_t controller, const std::string& sys_root = "/sys");

}  // namespace ssdpulse::nvme
