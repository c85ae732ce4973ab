// SPDX-License-Identifier: Apache-2.0
// disks_of_qemu(): how a QEMU reads and writes the disks of its guest, by its command line. Pure, for any bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/outside_text.h"

namespace ssdpulse::advice {

/// A file or block device of this host, through which a guest reads or writes. Not firmware, CD-ROMs and what QEMU
/// reaches over a network.
struct QemuDisk {
  util::OutsideText file;
  bool threads = false;  // QEMU's default; else io_uring or the kernel's native AIO
};

struct QemuDisks {
  std::vector<QemuDisk> disks;
  bool whole = true;  // false: some options could not be read, are too many, or are in a file of their own
};

/// `line`: arguments that end in NUL as in /proc/PID/cmdline, or else are separated by blanks outside of JSON.
QemuDisks disks_of_qemu(std::string_view line);

}  // namespace ssdpulse::advice
