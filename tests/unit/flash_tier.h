// SPDX-License-Identifier: Apache-2.0
// How much does a test of the flash model do? One seed; where the level `flash` runs it, twenty.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace ssdpulse::test {

/// SSDPULSE_FLASH_SEEDS; tests/flash sets 20.
inline int flash_seeds() {
  const char* text = std::getenv("SSDPULSE_FLASH_SEEDS");
  return text != nullptr && *text != 0 ? std::atoi(text) : 1;
}

/// All at once, as far as there are processors. What is asserted in them is only expected: they end.
inline void in_parallel(const std::vector<std::function<void()>>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  const std::size_t count = std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), work.size());
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      for (std::size_t job = next++; job < work.size(); job = next++) {
        work[job]();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace ssdpulse::test
