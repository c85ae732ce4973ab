// SPDX-License-Identifier: Apache-2.0
// CommitReader: the latencies of commits since the last read, from a device's commit cells.
#pragma once

#include <linux/types.h>

#include <span>

#include "bpf/abi/block_abi.h"
#include "daemon/model/histogram.h"

namespace ssdpulse::block {

class CommitReader {
 public:
  /// The cells of one device. What they hold now becomes the baseline.
  explicit CommitReader(std::span<const commit_cell> cells);

  /// Adds what was counted since the last call. Exact if fewer than 2^32 fall into one bucket between two calls.
  void read(model::LatencyHistogram& latency);

 private:
  std::span<const commit_cell> cells_;
  commit_cell last_{};
};

}  // namespace ssdpulse::block
