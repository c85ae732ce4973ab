// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/commit_reader.h"

#include <cstddef>

#include "daemon/sources/block/kernel_words.h"

namespace ssdpulse::block {
CommitReader::CommitReader(std::span<const commit_cell> cells) : cells_(cells) {
  model::LatencyHistogram of_an_earlier_device;
  read(of_an_earlier_device);
}

void CommitReader::read(model::LatencyHistogram& latency) {
  commit_cell now{};
  for (const commit_cell& cell : cells_) {
    now.commits += load(cell.commits);
  }
  if (now.commits == last_.commits) {
    return;
  }
  for (const commit_cell& cell : cells_) {
    now.sum_ns += load(cell.sum_ns);
    for (std::size_t word = 0; word <= LATENCY_OVER_WORD; ++word) {
      now.latency[word] += load(cell.latency[word]);
    }
  }
  latency.sum_ns += now.sum_ns - last_.sum_ns;
  latency.words.resize(LATENCY_OVER_WORD + 1);
  for (std::size_t word = 0; word <= LATENCY_OVER_WORD; ++word) {
    latency.words[word] += now.latency[word] - last_.latency[word];  // modulo 2^32, as the kernel counts
  }
  last_ = now;
}

}  // namespace ssdpulse::block
