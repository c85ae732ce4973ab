// SPDX-License-Identifier: Apache-2.0
// UnseenIo: whether a device does I/O of which no request is seen, by the kernel's own count. Drivers may take bios
// themselves (pmem, old zvols, drivers of their own): then there are no requests, and nothing can be measured. Lost
// completions are no such case: of them, at most some per cent are missing.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/model/block_sample.h"
#include "daemon/model/device.h"

namespace ssdpulse::analysis {

class UnseenIo {
 public:
  /// One reading from both sides, taken in the order of the arguments.
  void observe(const model::DeviceSample& before, const model::DiskStats& kernel_before,
               const model::DiskStats& kernel_after, const model::DeviceSample& after);

  /// How many I/Os the kernel has counted since we last saw a request or, before that, since the first reading. Absent
  /// while that is not enough to be certain.
  [[nodiscard]] std::optional<std::uint64_t> ios() const;

  void restart() { *this = UnseenIo(); }

 private:
  struct Sides {
    std::uint64_t ours;
    std::uint64_t kernel;
  };
  std::optional<Sides> last_;
  std::uint64_t ios_ = 0;
  std::uint64_t windows_ = 0;  // between two readings, in which the kernel's count moved and ours did not
};

}  // namespace ssdpulse::analysis
