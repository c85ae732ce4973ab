// SPDX-License-Identifier: Apache-2.0
// UeventMonitor: reports when the kernel announces that disks appeared, disappeared or changed. It only reports that
// sysfs must be read again, and takes nothing else from the message, so a lost one costs time but never correctness.
#pragma once

#include <string_view>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"

namespace ssdpulse::host {

class UeventMonitor {
 public:
  /// Listens to the kernel's own uevents (not udev's).
  static util::Result<UeventMonitor> open();

  /// Non-blocking, for poll(): readable when there is something to drain.
  [[nodiscard]] int fd() const { return fd_.get(); }

  /// Takes what is waiting, a bounded number of messages. True if any concerned disks, or if some may have been lost.
  [[nodiscard]] bool drain() const;

 private:
  explicit UeventMonitor(util::UniqueFd fd);

  util::UniqueFd fd_;
};

/// A uevent ("ACTION@PATH", then KEY=VALUE, each ended by a NUL) of the block subsystem; or of nvme, because only its
/// controller announces that a hidden multipath path has appeared.
bool concerns_disks(std::string_view message);

}  // namespace ssdpulse::host
