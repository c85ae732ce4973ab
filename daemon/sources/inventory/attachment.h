// SPDX-License-Identifier: Apache-2.0
// Where a disk is attached: the nearest PCI function and, behind it, the port, the SCSI address, the USB port, the
// target. The same after a reboot, like ID_PATH of udev: numbers that the kernel gives in the order of probing (host3,
// ata5, nvme1) are replaced by what they stand for, or left out.
#pragma once

#include <string>

#include "daemon/util/outside_text.h"

namespace ssdpulse::inventory {

/// `directory`: of the disk or, for a multipath head, of one of its hidden paths. "pci-0000:00:1f.2 ata-3 scsi-0:0:0";
/// empty if it is attached to nothing.
util::OutsideText attachment_of(const std::string& sys_root, const std::string& directory);

}  // namespace ssdpulse::inventory
