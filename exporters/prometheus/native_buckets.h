// SPDX-License-Identifier: Apache-2.0
// Writes bucket counts as the spans and deltas of a Prometheus native histogram.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ssdpulse::exposition {

struct BucketSpan {
  std::int32_t offset;   // the first span: its first native index; later ones: empty buckets skipped before it
  std::uint32_t length;  // consecutive buckets that are not empty
  bool operator==(const BucketSpan&) const = default;
};

struct NativeBuckets {
  std::vector<BucketSpan> spans;
  std::vector<std::int64_t> deltas;  // first absolute, then the difference to the bucket listed before
};

/// counts[i] is the count of native index first_index + i. Empty buckets are not listed.
/// Counts of 2^63 and more cannot be written in this format.
NativeBuckets native_buckets(std::span<const std::uint64_t> counts, std::int32_t first_index);

}  // namespace ssdpulse::exposition
