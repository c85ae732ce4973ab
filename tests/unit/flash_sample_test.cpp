// SPDX-License-Identifier: Apache-2.0
// Are exactly those pages followed that the definition selects, one in each group?
#include <gtest/gtest.h>

#include "daemon/flash/flash_events.h"
#include "tests/unit/flash_loads.h"

namespace ssdpulse::flash {
namespace {

using test::FlashDice;

/// By the definition, page by page.
PageRange followed_by_definition(const PageSample& sample, PageRange range) {
  PageRange result;
  for (std::uint64_t page = range.first; page < range.first + range.count; ++page) {
    const std::uint64_t index = page >> sample.rate_bits();
    if (index < sample.pages() && sample.page_of(index) == page) {
      result.first = result.count == 0 ? index : result.first;
      ++result.count;
    }
  }
  return result;
}

TEST(FlashSample, AgreesWithTheDefinition) {
  FlashDice dice(13);
  std::uint64_t followed = 0;
  for (const unsigned bits : {0U, 1U, 3U, 6U, 9U}) {
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t pages = 1 + dice.below(40'000);
      const PageSample sample(pages, bits, static_cast<std::uint32_t>(dice.next()));
      const std::uint64_t first = dice.below(pages + 100);
      const PageRange range{first, dice.below(3) == 0 ? dice.below(3000) : dice.below(12)};
      const PageRange found = sample.followed(range);
      ASSERT_EQ(found, followed_by_definition(sample, range))
          << bits << ' ' << pages << ' ' << first << ' ' << range.count;
      followed += found.count;
    }
  }
  EXPECT_GT(followed, 1'000'000U);
}

TEST(FlashSample, AllOfADriveIsEveryGroupOnce) {
  for (const std::uint64_t pages : {1ULL << 20, (1ULL << 20) + 12'345, 999'999ULL}) {
    for (const unsigned bits : {0U, 3U, 9U}) {
      const PageSample sample(pages, bits, 7);
      EXPECT_EQ(sample.pages(), (pages >> bits) & ~3ULL);
      std::uint64_t in_pieces = 0;
      for (std::uint64_t at = 0; at < pages; at += 77) {
        in_pieces += sample.followed({at, std::min<std::uint64_t>(77, pages - at)}).count;
      }
      EXPECT_EQ(in_pieces, sample.pages());
      EXPECT_EQ(sample.followed({0, pages}), (PageRange{0, sample.pages()}));
    }
  }
}

TEST(FlashSample, DrivesOfAnySize) {
  for (const std::uint64_t bytes : {0ULL, 512ULL, 4096ULL, 1ULL << 30, 256ULL << 40, 1ULL << 58}) {
    const std::uint64_t pages = bytes / 4096;
    const unsigned bits = PageSample::rate_bits_for(pages, PageSample::kUsualPages);
    const PageSample sample(pages, bits, 1);
    EXPECT_LT(sample.pages(), PageSample::kUsualPages * 3 / 2);
    EXPECT_GE(sample.pages(), std::min<std::uint64_t>(pages & ~3ULL, PageSample::kUsualPages * 3 / 4));
    EXPECT_EQ(sample.followed({0, pages}).count, sample.pages());
    EXPECT_EQ(sample.followed({pages, 1000}).count, 0U);
    EXPECT_EQ(sample.followed({0, 0}).count, 0U);
  }
}

TEST(FlashSample, WritesCountWhatTheyTouchAndDiscardsWhatTheyCover) {
  EXPECT_EQ(pages_touched(512, 512, 4096), (PageRange{0, 1}));
  EXPECT_EQ(pages_touched(4095, 2, 4096), (PageRange{0, 2}));
  EXPECT_EQ(pages_touched(8192, 0, 4096).count, 0U);
  EXPECT_EQ(pages_covered(512, 8192, 4096), (PageRange{1, 1}));
  EXPECT_EQ(pages_covered(512, 4096, 4096).count, 0U);
  EXPECT_EQ(pages_covered(4096, 8192, 4096), (PageRange{1, 2}));
  EXPECT_EQ(pages_touched(0, 4096, 512).count, 8U);
  EXPECT_EQ(pages_touched(4096, 4096, 65536), (PageRange{0, 1}));
  EXPECT_EQ(pages_covered(0, 65536 + 4096, 65536), (PageRange{0, 1}));
}

}  // namespace
}  // namespace ssdpulse::flash
