// SPDX-License-Identifier: Apache-2.0
// NvmeSubsystem: an NVMe drive of the host as sysfs has it, and which of its controllers to read. A drive is an NVM
// subsystem: all its controllers report the same. Also what a drive says about itself in the Identify data structures
// (NVM Express Base 2.x, 5.1.13). Remembers nothing and opens no drive.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/base/result.h"
#include "daemon/model/nvme_drive.h"
#include "daemon/nvme_pages/log_page.h"

namespace ssdpulse::nvme {

struct NvmeSubsystem {
  std::uint32_t controller = 0;  // 3 is nvme3: the lowest live controller, or the lowest of all if none is live
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

/// What Identify Controller (CNS 01h) contains. Fields that only sysfs and the other structures provide stay empty.
util::Result<model::NvmeIdentity> parse_identify_controller(Bytes bytes);

/// Adds what Identify Namespace (CNS 00h) contains: the endurance group, the preferred write granularity and alignment,
/// how much is in use, and how the drive ranks the block sizes that it can be formatted with.
util::Result<void> parse_identify_namespace(Bytes bytes, model::NvmeNamespace& name_space);

/// CNS 17h, up to its end mark. An entry's position is its UUID index, so none is left out.
util::Result<std::vector<Uuid>> parse_uuid_list(Bytes bytes);

/// CNS 19h.
util::Result<std::vector<std::uint16_t>> parse_endurance_group_list(Bytes bytes);

/// Whether the drive reports that it has the structure: it is never asked for one that it does not have.
bool has_uuid_list(const model::NvmeIdentity& identity);
bool has_endurance_group_list(const model::NvmeIdentity& identity);

/// What sysfs has: used until the drive itself has reported more.
std::shared_ptr<const model::NvmeIdentity> identity_from_sysfs(const NvmeSubsystem& subsystem);

/// With the namespaces that sysfs has now: they appear and disappear between two identifications of their drive.
std::shared_ptr<const model::NvmeIdentity> with_namespaces(std::shared_ptr<const model::NvmeIdentity> identity,
                                                           const NvmeSubsystem& subsystem);

}  // namespace ssdpulse::nvme
