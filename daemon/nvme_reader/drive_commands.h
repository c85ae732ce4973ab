// SPDX-License-Identifier: Apache-2.0
// The commands that may reach a drive, and how they are sent. Identify and the listed log pages, nothing else: a
// request names one of these, it does not describe a command. All of them only read. No command has a timeout other
// than the kernel's own: when an admin command times out, the kernel resets the controller under everyone's I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "daemon/nvme_reader/protocol.h"
#include "daemon/sources/nvme/pages/page.h"
#include "daemon/util/result.h"
#include "daemon/util/unique_fd.h"

namespace ssdpulse::nvme_reader {

enum class Opcode : std::uint8_t { identify, get_log_page };

struct Command {
  Opcode opcode = Opcode::identify;
  std::uint8_t selector = 0;  // CNS or LID
  std::uint8_t lsp = 0;
  std::uint8_t uuid_index = 0;
  std::uint16_t lsi = 0;
  std::uint16_t bytes = 0;
  std::uint32_t nsid = 0;
};

/// Returns nothing if such a request is not allowed.
std::optional<Command> command_of(const Request& request, std::span<const nvme::LogPage> pages);

/// Called by several threads at once, but by only one for each controller.
class DriveCommands {
 public:
  DriveCommands() = default;
  DriveCommands(const DriveCommands&) = delete;
  DriveCommands& operator=(const DriveCommands&) = delete;
  virtual ~DriveCommands() = default;

  /// Opens a controller that can take a command now; the error always has a number (EAGAIN: it is not live).
  virtual util::Result<util::UniqueFd> open(std::uint32_t controller) = 0;

  /// Waits for as long as the drive takes. Returns 0, the drive's status or -errno; `data` has command.bytes bytes.
  virtual int execute(int fd, const Command& command, std::span<std::uint8_t> data) = 0;
};

/// Sends commands through libnvme, to /dev/nvmeN of controllers that are live according to sysfs.
class LibnvmeCommands final : public DriveCommands {
 public:
  explicit LibnvmeCommands(std::string sys_root = "/sys", std::string dev_root = "/dev");

  util::Result<util::UniqueFd> open(std::uint32_t controller) override;
  int execute(int fd, const Command& command, std::span<std::uint8_t> data) override;

 private:
  std::string sys_root_;
  std::string dev_root_;
};

}  // namespace ssdpulse::nvme_reader
