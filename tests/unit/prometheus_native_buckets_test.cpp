// SPDX-License-Identifier: Apache-2.0
// Do spans and deltas represent exactly the words?
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "exporters/prometheus/metric_formats.h"

namespace ssdpulse::exposition {
namespace {

using Populations = std::map<std::int64_t, std::int64_t>;

// As the format's specification reads them: a span's offset counts from the end of the previous span.
Populations reconstruct(const NativeBuckets& native) {
  Populations result;
  std::int64_t index = 0;
  std::int64_t count = 0;
  std::size_t next_delta = 0;
  for (const auto& span : native.spans) {
    index += span.offset;
    for (std::uint32_t i = 0; i < span.length; ++i) {
      count += native.deltas.at(next_delta++);
      result[index++] = count;
    }
  }
  EXPECT_EQ(next_delta, native.deltas.size());
  return result;
}

TEST(NativeBuckets, WorkedExampleOfTheSpecification) {
  // Populations -2:3, -1:5, 2:1, 4:3, 5:2.
  const std::vector<std::uint64_t> counts{3, 5, 0, 0, 1, 0, 3, 2};
  const auto native = native_buckets(counts, -2);
  EXPECT_EQ(native.spans, (std::vector<BucketSpan>{{-2, 2}, {2, 1}, {1, 2}}));
  EXPECT_EQ(native.deltas, (std::vector<std::int64_t>{3, 2, -4, 2, -1}));
}

TEST(NativeBuckets, LeadingEmptyBucketsMoveTheFirstOffset) {
  const std::vector<std::uint64_t> counts{0, 0, 0, 7};
  const auto native = native_buckets(counts, -160);
  EXPECT_EQ(native.spans, (std::vector<BucketSpan>{{-157, 1}}));
  EXPECT_EQ(native.deltas, (std::vector<std::int64_t>{7}));
}

TEST(NativeBuckets, NoSamplesNoBuckets) {
  EXPECT_TRUE(native_buckets({}, 0).spans.empty());
  const std::vector<std::uint64_t> counts(10);
  EXPECT_TRUE(native_buckets(counts, -5).spans.empty());
  EXPECT_TRUE(native_buckets(counts, -5).deltas.empty());
}

TEST(NativeBuckets, ReconstructExactly) {
  const bool held = rc::check("spans and deltas hold every count", [](std::int16_t first) {
    const auto counts = *rc::gen::container<std::vector<std::uint64_t>>(
        rc::gen::oneOf(rc::gen::just<std::uint64_t>(0), rc::gen::inRange<std::uint64_t>(0, (1ULL << 62))));
    Populations expected;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] != 0) {
        expected[first + static_cast<std::int64_t>(i)] = static_cast<std::int64_t>(counts[i]);
      }
    }
    RC_ASSERT(reconstruct(native_buckets(counts, first)) == expected);
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace ssdpulse::exposition
