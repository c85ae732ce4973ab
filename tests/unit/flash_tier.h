// SPDX-License-Identifier: Apache-2.0
// How much does a test of the flash model do? One seed; when tests/flash runs it, twenty seeds and the table of errors.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace ssdpulse::test {

inline int flash_setting(const char* name, int usual) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 ? std::atoi(text) : usual;
}

/// tests/flash sets 20.
inline int flash_seeds() { return flash_setting("SSDPULSE_FLASH_SEEDS", 1); }

/// Size in GiB of the drives in the table of errors: a power of two, at least 1.
inline std::uint64_t flash_table_gib() {
  return static_cast<std::uint64_t>(flash_setting("SSDPULSE_FLASH_TABLE_GIB", 8));
}

/// All jobs at once, as far as there are processors. Assertions in them are only EXPECTs: all of them run to the end.
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
