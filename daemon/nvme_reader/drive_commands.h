// SPDX-License-Identifier: Apache-2.0
// Command: one of the admin commands that may reach a drive; DriveCommands: how they are sent; CommandBudget: how many
// of them. Identify and the listed log pages, nothing else: a request names one of these, it does not describe a
// command. All of them only read. No command has a timeout other than the kernel's own: when an admin command times
// out, the kernel resets the controller under everyone's I/O.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"
#include "daemon/nvme_pages/log_page.h"
#include "daemon/nvme_reader/reader_protocol.h"

namespace ssdpulse::nvme_reader {

/// So many at once, and so many a second in the long run.
struct CommandRate {
  std::uint64_t burst = 0;
  std::uint64_t per_second = 0;
};

/// How many admin commands the reader sends, whatever is asked of it. The daemon's own schedule needs far fewer; a
/// daemon that somebody has taken over could otherwise keep the admin queues of all drives busy. Thread-safe, also
/// between processes that share its memory: without locks, which a worker could die with.
class CommandBudget {
 public:
  /// A poll has 68 commands at most, and 103 where the drive is identified, too; polls are ten seconds apart or more
  /// (nvme_reader_test counts them).
  static constexpr CommandRate kOfDrive{240, 10};
  /// Of 64 such drives, whose first polls come together, or of more usual ones.
  static constexpr CommandRate kOfAll{8192, 512};

  explicit CommandBudget(CommandRate of_drive = kOfDrive, CommandRate of_all = kOfAll)
      : of_drive_(of_drive), of_all_(of_all) {}

  /// For successive workers: a new worker does not begin with a new budget. Never freed; null if there is no
  /// memory. To be called before they are forked.
  static CommandBudget* shared();

  /// Whether the command may be sent now, by CLOCK_MONOTONIC. What one drive is refused takes nothing from the others.
  bool take(std::uint32_t controller, std::uint64_t now_ns);

 private:
  /// When the budget will be whole again, in nanoseconds.
  using Account = std::atomic<std::uint64_t>;
  static_assert(Account::is_always_lock_free);

  static bool take(Account& account, CommandRate rate, std::uint64_t now_ns);

  CommandRate of_drive_;
  CommandRate of_all_;
  std::array<Account, 1024> drives_{};  // by number; controllers beyond share those of others
  Account all_ = 0;
};

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
