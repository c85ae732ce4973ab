// SPDX-License-Identifier: Apache-2.0
// Histograms of latencies and sizes, in the kernel's own buckets: the daemon adds up and never re-buckets. Values only.
#pragma once

#include <linux/types.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "bpf/abi/latency_buckets.h"

namespace ssdpulse::model {

/// Cumulative latency histogram since `DeviceIo::since`. Layout of `words`: bpf/abi/latency_buckets.h.
/// Native Prometheus schema 3; in exposition, the zero word is the zero bucket (zero_threshold 2^-30 s),
/// the under word counts as native index LATENCY_FIRST_NATIVE_INDEX - 1 and the over word as
/// LATENCY_LAST_NATIVE_INDEX + 1 (classic: only in +Inf).
struct LatencyHistogram {
  std::vector<std::uint64_t> words;  // LATENCY_OVER_WORD + 1 of them, or none before the first sample
  std::uint64_t sum_ns = 0;          // exact

  [[nodiscard]] bool empty() const { return words.empty(); }
  [[nodiscard]] std::uint64_t count() const { return std::accumulate(words.begin(), words.end(), std::uint64_t{0}); }
};

/// Cumulative size histogram. Native Prometheus schema 0: word 0 counts zero bytes (the zero bucket),
/// word 1 + i is native index i, (2^(i-1), 2^i] bytes.
struct SizeHistogram {
  std::vector<std::uint64_t> words;  // SIZE_WORDS of them, or none before the first sample
  std::uint64_t sum_bytes = 0;       // exact

  [[nodiscard]] bool empty() const { return words.empty(); }
  [[nodiscard]] std::uint64_t count() const { return std::accumulate(words.begin(), words.end(), std::uint64_t{0}); }
};

/// Cumulative: how many I/Os were in flight at each sampling. The words are those of a SizeHistogram, of I/Os.
struct DepthHistogram {
  static constexpr std::size_t kWords = 18;  // up to 65536 I/Os; more count in the last
  std::vector<std::uint64_t> words;          // kWords of them, or none before the first sampling
  std::uint64_t sum_ios = 0;

  void add(std::uint64_t in_flight) {
    words.resize(kWords);
    ++words[std::min<std::size_t>(in_flight == 0 ? 0 : 1 + std::bit_width(in_flight - 1), kWords - 1)];
    sum_ios += in_flight;
  }
};

}  // namespace ssdpulse::model
