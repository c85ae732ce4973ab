// SPDX-License-Identifier: Apache-2.0
// CommandBudget: how many admin commands the reader sends, whatever is asked of it. The daemon's own schedule needs far
// fewer; a daemon that somebody has taken over could otherwise keep the admin queues of all drives busy.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ssdpulse::nvme_reader {

/// So many at once, and so many a second in the long run.
struct CommandRate {
  std::uint64_t burst = 0;
  std::uint64_t per_second = 0;
};

/// Thread-safe, also between processes that share its memory: without locks, which a worker could die with.
class CommandBudget {
 public:
  /// A poll has 68 commands at most, and 103 where the drive is identified, too; polls are ten seconds apart or more
  /// (nvme_reader_test counts them).
  static constexpr CommandRate kOfDrive{240, 10};
  /// Of 64 such drives, whose first polls come together, or of more usual ones.
  static constexpr CommandRate kOfAll{8192, 512};

  explicit CommandBudget(CommandRate of_drive = kOfDrive, CommandRate of_all = kOfAll)
      : of_drive_(of_drive), of_all_(of_all) {}

  /// For workers that follow each other: a new one does not begin with a new budget. Never freed; null if there is no
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

}  // namespace ssdpulse::nvme_reader
