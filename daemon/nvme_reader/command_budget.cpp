// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme_reader/command_budget.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace ssdpulse::nvme_reader {

CommandBudget* CommandBudget::shared() {
  void* memory = ::mmap(nullptr, sizeof(CommandBudget), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) CommandBudget;
}

bool CommandBudget::take(std::uint32_t controller, std::uint64_t now_ns) {
  return take(drives_.at(controller % drives_.size()), of_drive_, now_ns) && take(all_, of_all_, now_ns);
}

bool CommandBudget::take(Account& account, CommandRate rate, std::uint64_t now_ns) {
  const std::uint64_t cost_ns = 1'000'000'000 / std::max<std::uint64_t>(rate.per_second, 1);
  std::uint64_t whole_at = account.load();
  while (true) {
    const std::uint64_t after = std::max(whole_at, now_ns) + cost_ns;
    if (after - now_ns > rate.burst * cost_ns) {
      return false;
    }
    if (account.compare_exchange_weak(whole_at, after)) {
      return true;
    }
  }
}

}  // namespace ssdpulse::nvme_reader
