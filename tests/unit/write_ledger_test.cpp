// SPDX-License-Identifier: Apache-2.0
// Does the ledger report what it must, and nothing before it can? Drives on paper, with numbers for mental arithmetic;
// write_ledger_property_test shows that bounds hold for all drives.
#include "daemon/wear/write_ledger.h"

#include <gtest/gtest.h>

#include "tests/unit/write_ledger_rig.h"

namespace ssdpulse::wear {
namespace {

using model::Rounding;
using model::Uint128;

TEST(WriteLedger, ExactCountersGiveExactRatios) {
  PaperDrive drive;
  drive.since_birth = false;
  drive.host = drive.media = 7;
  WriteLedger ledger(kPollInterval);
  ledger.observe(drive.read());
  EXPECT_TRUE(ledger.amplification().ratios.empty());
  drive.poll(ledger, 256 << 10, kMiB);
  EXPECT_TRUE(ledger.amplification().ratios.empty()) << "one change does not tell how often counters change";
  drive.poll(ledger, 256 << 10, kMiB);
  drive.poll(ledger, 256 << 10, kMiB);
  const auto said = ledger.amplification();
  ASSERT_EQ(said.ratios.size(), 4U);
  for (const auto& ratio : said.ratios) {
    EXPECT_DOUBLE_EQ(ratio.ratio, 4.0);
    EXPECT_LE(ratio.lower, 4.0);
    EXPECT_GE(ratio.upper, 4.0);
    EXPECT_LT(ratio.upper - ratio.lower, 1e-12);
    EXPECT_EQ(ratio.covered_seconds, 90);
    EXPECT_EQ(ratio.age_seconds, 0);
  }
  EXPECT_EQ(said.host_written_bytes, 7 + 3 * 256.0 * 1024);
  EXPECT_EQ(said.media_written_bytes, 7 + 3 * 1024.0 * 1024);
  EXPECT_FALSE(find(ledger, "lifetime")) << "these counters do not count since birth";
}

TEST(WriteLedger, UnitsBoundTheRatio) {
  // Data units of 512000 bytes, rounded up, against exact bytes: what a drive without amplification shows.
  PaperDrive drive;
  drive.host_unit = 512000;
  drive.host_rounding = Rounding::up;
  WriteLedger ledger(kPollInterval);
  drive.write(512, 512);
  ledger.observe(drive.read());
  for (int i = 0; i < 3; ++i) {
    drive.poll(ledger, 600'000, 600'000);
  }
  EXPECT_TRUE(ledger.amplification().ratios.empty()) << "a few units bound nothing";
  for (int i = 0; i < 3; ++i) {
    drive.poll(ledger, 5'000'000, 5'000'000);
  }
  for (const char* window : {"5m", "lifetime"}) {
    const auto ratio = find(ledger, window);
    ASSERT_TRUE(ratio) << window;
    EXPECT_LT(ratio->lower, 1.0);
    EXPECT_GT(ratio->upper, 1.0);
    EXPECT_NEAR(ratio->ratio, 1.0, 0.05);
    EXPECT_LE(ratio->upper - ratio->lower, 0.2 * ratio->ratio);
  }
}

TEST(WriteLedger, NothingIsReportedWithoutCertainty) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 20; ++i) {
    drive.poll(ledger, kMiB, 2 * kMiB);
  }
  ASSERT_TRUE(find(ledger, "5m"));
  for (int i = 0; i < 10; ++i) {
    drive.poll(ledger, 0, kMiB);
  }
  EXPECT_FALSE(find(ledger, "5m")) << "the host has written nothing for 5 minutes";
  EXPECT_TRUE(find(ledger, "1h"));
  EXPECT_DOUBLE_EQ(ledger.amplification().idle_media_written_bytes, 10.0 * kMiB);
}

TEST(WriteLedger, AllBitsCount) {
  PaperDrive drive;
  drive.host = (Uint128{1} << 64) - kMiB;
  drive.media = (Uint128{1} << 127) + 5;
  drive.block.reset();
  WriteLedger ledger(kPollInterval);
  ledger.observe(drive.read());
  const Uint128 much = (Uint128{1} << 64) + 3;
  for (int i = 0; i < 3; ++i) {
    drive.poll(ledger, much, 3 * much);
  }
  ASSERT_TRUE(find(ledger, "5m"));
  EXPECT_DOUBLE_EQ(find(ledger, "5m")->ratio, 3.0);
  EXPECT_EQ(ledger.amplification().host_written_bytes, 0x1p66 - 0x1p20);
  EXPECT_EQ(ledger.amplification().media_written_bytes, 0x1p127 + 9 * 0x1p64);
}

TEST(WriteLedger, ASaturatedCounterIsIgnored) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 4; ++i) {
    drive.poll(ledger, kMiB, 2 * kMiB);
  }
  ASSERT_EQ(ledger.amplification().ratios.size(), 5U);
  const double total = *ledger.amplification().media_written_bytes;
  drive.media = ~Uint128{0};
  drive.poll(ledger, kMiB, 0);
  drive.poll(ledger, kMiB, 0);
  EXPECT_TRUE(ledger.amplification().ratios.empty());
  EXPECT_EQ(ledger.amplification().media_written_bytes, total);
  drive.media = 0;
  for (int i = 0; i < 4; ++i) {
    drive.poll(ledger, kMiB, 2 * kMiB);
  }
  EXPECT_TRUE(find(ledger, "5m"));
  EXPECT_FALSE(find(ledger, "lifetime")) << "nobody knows how much it was when it could not count on";
  EXPECT_EQ(ledger.amplification().epochs, 1U);
}

TEST(WriteLedger, AnUnknownUnitStillGivesRatios) {
  PaperDrive drive;
  drive.host_unit = drive.media_unit = 32 * kMiB;
  drive.host_rounding = drive.media_rounding = Rounding::unknown;
  WriteLedger ledger(kPollInterval);
  const auto poll = [&](bool told) {
    drive.pass(kPollInterval);
    drive.write(20 * kGiB, 50 * kGiB);
    WriteSample sample = drive.read();
    if (!told) {
      sample.host_before->unit_bytes = sample.host_after->unit_bytes = sample.media->unit_bytes = 0;
    }
    ledger.observe(sample);
  };
  for (int i = 0; i < 4; ++i) {
    poll(false);
  }
  const auto ratio = find(ledger, "5m");
  ASSERT_TRUE(ratio);
  EXPECT_DOUBLE_EQ(ratio->ratio, 2.5);
  // 1920 and 4800 counts, 2 of which are in doubt on either side
  EXPECT_NEAR(ratio->lower, 4798.0 / 1922, 1e-12);
  EXPECT_NEAR(ratio->upper, 4802.0 / 1918, 1e-12);
  EXPECT_FALSE(ledger.amplification().host_written_bytes);
  EXPECT_FALSE(ledger.amplification().media_written_bytes);
  EXPECT_FALSE(ledger.amplification().host_written_drift_bytes);
  poll(true);
  EXPECT_EQ(ledger.amplification().host_written_bytes, 100.0 * kGiB);
  EXPECT_EQ(ledger.amplification().epochs, 0U);
  EXPECT_EQ(find(ledger, "5m")->covered_seconds, 120) << "what was counted before counts";
  poll(false);
  EXPECT_EQ(ledger.amplification().media_written_bytes, 300.0 * kGiB) << "a unit once known stays known";
}

TEST(WriteLedger, ARestartFromZeroAddsWhatIsCountedSince) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  drive.write(100 * kGiB, 300 * kGiB);
  for (int i = 0; i < 4; ++i) {
    drive.poll(ledger, kGiB, 3 * kGiB);
  }
  EXPECT_EQ(ledger.amplification().host_written_bytes, 104.0 * kGiB);
  drive.host = drive.media = 0;
  drive.poll(ledger, kGiB, 3 * kGiB);
  EXPECT_EQ(ledger.amplification().epochs, 1U);
  EXPECT_EQ(ledger.amplification().host_written_bytes, 105.0 * kGiB);
  EXPECT_EQ(ledger.amplification().media_written_bytes, 315.0 * kGiB);
  EXPECT_FALSE(find(ledger, "7d")) << "no window spans two epochs";
  for (int i = 0; i < 3; ++i) {
    drive.poll(ledger, kGiB, 3 * kGiB);
  }
  EXPECT_EQ(find(ledger, "7d")->covered_seconds, 60) << "the counters may have fallen in the midst of a reading";
  EXPECT_DOUBLE_EQ(find(ledger, "7d")->ratio, 3.0);
  EXPECT_DOUBLE_EQ(find(ledger, "lifetime")->ratio, 3.0);
}

TEST(WriteLedger, ARollBackAddsNothingUntilItIsMadeUpFor) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  drive.write(100 * kGiB, 300 * kGiB);
  for (int i = 0; i < 4; ++i) {
    drive.poll(ledger, kGiB, 3 * kGiB);
  }
  drive.host -= 5 * kGiB;
  drive.media -= 15 * kGiB;
  drive.poll(ledger, kGiB, 3 * kGiB);
  EXPECT_EQ(ledger.amplification().epochs, 1U);
  EXPECT_EQ(ledger.amplification().host_written_bytes, 104.0 * kGiB);
  EXPECT_EQ(ledger.amplification().media_written_bytes, 312.0 * kGiB);
  for (int i = 0; i < 3; ++i) {
    drive.poll(ledger, kGiB, 3 * kGiB);
  }
  EXPECT_EQ(ledger.amplification().host_written_bytes, 107.0 * kGiB);
  ASSERT_TRUE(find(ledger, "lifetime")) << "either reading gives the same ratio";
  EXPECT_DOUBLE_EQ(find(ledger, "lifetime")->ratio, 3.0);
  drive.media -= kGiB;
  for (int i = 0; i < 4; ++i) {
    drive.poll(ledger, kMiB, kMiB);
  }
  EXPECT_FALSE(find(ledger, "lifetime")) << "the media's counter alone: twice as much, or nothing";
  EXPECT_TRUE(find(ledger, "5m"));
}

TEST(WriteLedger, NewFirmwareIsANewEpochAndANewSerialADifferentDrive) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 4; ++i) {
    drive.poll(ledger, kGiB, 3 * kGiB);
  }
  drive.firmware = "F2";
  drive.poll(ledger, kGiB, 3 * kGiB);
  EXPECT_EQ(ledger.amplification().epochs, 1U);
  EXPECT_EQ(ledger.amplification().host_written_bytes, 5.0 * kGiB);
  EXPECT_TRUE(ledger.amplification().ratios.empty());
  for (int i = 0; i < 3; ++i) {
    drive.poll(ledger, kGiB, 3 * kGiB);
  }
  EXPECT_EQ(find(ledger, "1h")->covered_seconds, 60);
  EXPECT_DOUBLE_EQ(find(ledger, "lifetime")->ratio, 3.0);
  drive.serial = "S2";
  drive.poll(ledger, kGiB, 5 * kGiB);
  EXPECT_EQ(ledger.amplification().epochs, 0U);
  EXPECT_EQ(ledger.amplification().host_written_bytes, 9.0 * kGiB) << "what the new drive's counters say";
  EXPECT_TRUE(ledger.amplification().ratios.empty());
  EXPECT_EQ(ledger.amplification().since, drive.wall);
}

TEST(WriteLedger, AHostCounterThatFallsBetweenItsReadsIsOneEpoch) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 4; ++i) {
    drive.poll(ledger, kGiB, 3 * kGiB);
  }
  WriteSample torn = drive.read();
  torn.at += 30s;
  torn.host_after->count = 0;
  ledger.observe(torn);
  EXPECT_TRUE(find(ledger, "lifetime") == std::nullopt || find(ledger, "5m") == std::nullopt);
  drive.host = drive.media = 0;
  drive.poll(ledger, kGiB, 3 * kGiB, 60s);
  drive.poll(ledger, kGiB, 3 * kGiB);
  EXPECT_EQ(ledger.amplification().epochs, 1U);
  EXPECT_EQ(ledger.amplification().host_written_bytes, 6.0 * kGiB);
}

TEST(WriteLedger, AHostCounterThatFallsInTheFirstSampleGivesNoLifetime) {
  PaperDrive drive;
  drive.write(100 * kMiB, 400 * kMiB);
  WriteLedger ledger(kPollInterval);
  WriteSample first = drive.read();
  drive.host = kMiB;
  first.host_after = drive.read().host_after;
  ledger.observe(first);
  for (int i = 0; i < 6; ++i) {
    drive.poll(ledger, kMiB, 4 * kMiB);
  }
  EXPECT_TRUE(find(ledger, "5m"));
  EXPECT_FALSE(find(ledger, "lifetime")) << "the host's 100 MiB are in no counter any more, the media's 400 are";
}

TEST(WriteLedger, HalfASampleIsIgnored) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  WriteSample host_only = drive.read();
  host_only.media.reset();
  ledger.observe(host_only);
  EXPECT_EQ(ledger.amplification().host_written_bytes, 0.0);
  EXPECT_EQ(ledger.amplification().host_written_drift_bytes, 0.0) << "a drive without media counter can lie as well";
  EXPECT_FALSE(ledger.amplification().media_written_bytes);
  for (int i = 0; i < 4; ++i) {
    drive.poll(ledger, kGiB, 2 * kGiB);
  }
  const double total = *ledger.amplification().host_written_bytes;
  drive.pass(30s);
  drive.write(kGiB, 2 * kGiB);
  host_only = drive.read();
  host_only.media.reset();
  ledger.observe(host_only);
  host_only.host_before.reset();
  host_only.host_after.reset();
  ledger.observe(host_only);
  EXPECT_EQ(ledger.amplification().host_written_bytes, total);
  drive.poll(ledger, kGiB, 2 * kGiB);
  EXPECT_DOUBLE_EQ(find(ledger, "5m")->ratio, 2.0);
  EXPECT_EQ(find(ledger, "5m")->covered_seconds, 150) << "a missed poll only leaves one out";
}

TEST(WriteLedger, DriftIsReportedWithItsBounds) {
  PaperDrive drive;
  drive.host_unit = 512000;
  drive.host_rounding = Rounding::up;
  WriteLedger ledger(kPollInterval);
  ledger.observe(drive.read());
  for (int i = 0; i < 3; ++i) {
    drive.poll(ledger, 700'000, kMiB);
  }
  auto said = ledger.amplification();
  EXPECT_EQ(said.host_written_drift_bytes, 5 * 512000.0 - 2'100'000);
  EXPECT_EQ(said.host_written_drift_lower_bytes, 4 * 512000.0 + 1 - 2'100'000);
  EXPECT_EQ(said.host_written_drift_upper_bytes, 6 * 512000.0 - 1 - 2'100'000);
  *drive.block += kGiB;  // which the drive does not report
  drive.poll(ledger, 0, kMiB);
  EXPECT_LT(ledger.amplification().host_written_drift_upper_bytes, -1.0 * kGiB + 1e6);
  drive.block.reset();
  drive.poll(ledger, 0, kMiB);
  EXPECT_FALSE(ledger.amplification().host_written_drift_bytes);
}

TEST(WriteLedger, DriftBeginsAgainWithAnyCounterOfTheBlockLayer) {
  for (const auto counter : {&model::BlockWrites::zeroed_bytes, &model::BlockWrites::discarded_bytes}) {
    PaperDrive drive;
    WriteLedger ledger(kPollInterval);
    const auto poll = [&](std::uint64_t counted) {
      drive.pass(kPollInterval);
      WriteSample sample = drive.read();
      (*sample.block_before).*counter = (*sample.block_after).*counter = counted;
      ledger.observe(sample);
    };
    for (std::uint64_t counted = 0; counted < 5 * kGiB; counted += kGiB) {
      poll(counted);
      drive.host += kGiB;  // the drive counts them as writes
      drive.media += kGiB;
    }
    poll(5 * kGiB);
    poll(0);  // nothing was written, so no other counter shows that they began again
    EXPECT_EQ(ledger.amplification().host_written_drift_bytes, 0.0);
  }
}

TEST(WriteLedger, OnlyTheClockThatRunsOnMatters) {
  PaperDrive drive;
  PaperDrive jumping;
  WriteLedger ledger(kPollInterval);
  WriteLedger other(kPollInterval);
  for (int i = 0; i < 50; ++i) {
    drive.poll(ledger, kMiB + static_cast<unsigned>(i), 2 * kMiB);
    jumping.wall += i % 3 == 0 ? -100h : 90h;
    jumping.poll(other, kMiB + static_cast<unsigned>(i), 2 * kMiB);
  }
  const auto said = ledger.amplification().ratios;
  const auto same = other.amplification().ratios;
  ASSERT_EQ(said.size(), 5U);
  ASSERT_EQ(same.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(said[i].ratio, same[i].ratio);
    EXPECT_EQ(said[i].covered_seconds, same[i].covered_seconds);
  }
  // A clock that goes back can only be a different one: windows start again, totals do not.
  const double total = *ledger.amplification().host_written_bytes;
  drive.now = 5s;
  drive.poll(ledger, kMiB, 2 * kMiB);
  EXPECT_FALSE(find(ledger, "7d"));
  EXPECT_EQ(ledger.amplification().host_written_bytes, total + kMiB);
  EXPECT_EQ(ledger.amplification().epochs, 0U);
}

TEST(WriteLedger, WhatWasNotCountedWidensTheDrift) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  WriteSample sample = drive.read();
  sample.block_before->losses = sample.block_after->losses = 7;
  sample.block_largest_request_bytes = 1000;
  ledger.observe(sample);
  drive.pass(kPollInterval);
  drive.host += 1500;  // unseen by the block layer
  sample = drive.read();
  sample.block_before->losses = 8;
  sample.block_after->losses = 9;
  sample.block_largest_request_bytes = 1000;
  ledger.observe(sample);
  const auto said = ledger.amplification();
  EXPECT_EQ(said.host_written_drift_bytes, 1500);
  EXPECT_EQ(said.host_written_drift_lower_bytes, -500);
  EXPECT_EQ(said.host_written_drift_upper_bytes, 1500);
}

TEST(WriteLedger, IdleIsOnlyWhatIsKnownToBe) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  std::uint64_t losses = 0;
  const auto poll = [&](std::uint64_t more) {
    drive.pass(kPollInterval);
    drive.write(0, kMiB);
    WriteSample sample = drive.read();
    sample.block_before->losses = losses;
    sample.block_after->losses = losses += more;
    ledger.observe(sample);
  };
  for (int i = 0; i < 10; ++i) {
    poll(1);
  }
  EXPECT_EQ(ledger.amplification().idle_media_written_bytes, 0);
}

/// Polls of 1 GiB from the host and so much for the media; whether the last hour has a ratio.
struct BelowOne {
  PaperDrive drive;
  WriteLedger ledger{kPollInterval};
  void polls(int times, double ratio, std::uint64_t host = kGiB, bool compresses = false) {
    for (int poll = 0; poll < times; ++poll) {
      drive.pass(kPollInterval);
      drive.write(host, static_cast<std::uint64_t>(static_cast<double>(host) * ratio));
      WriteSample sample = drive.read();
      sample.compresses = compresses;
      ledger.observe(sample);
    }
  }
  [[nodiscard]] bool has(const char* window) const { return find(ledger, window).has_value(); }
  [[nodiscard]] bool withheld() const { return !ledger.amplification().withheld.empty(); }
};

TEST(WriteLedger, LessThanTheHostWroteIsWithheldUnlessTheDriveCompresses) {
  for (const double ratio : {0.8908, 0.5, 0.99, 0.01}) {
    for (const bool compresses : {false, true}) {
      BelowOne one;
      one.polls(20, ratio, 10 * kGiB, compresses);
      for (const char* window : {"5m", "1h", "lifetime"}) {
        EXPECT_EQ(one.has(window), compresses) << ratio << window;
      }
      EXPECT_EQ(one.withheld(), !compresses) << ratio;
    }
  }
}

TEST(WriteLedger, LessThanTheHostWroteMayBeInTheBuffer) {
  BelowOne one;
  one.polls(6, 0.5, 16 * kMiB);
  EXPECT_TRUE(one.has("5m"));
  EXPECT_FALSE(one.withheld());
  one.polls(6, 0.5, 64 * kMiB);
  EXPECT_FALSE(one.has("5m"));
  EXPECT_TRUE(one.withheld());
  one.polls(20, 1.5);
  EXPECT_TRUE(one.has("5m") && one.has("1h"));
  EXPECT_FALSE(one.withheld()) << "each window by its own figures";
}

TEST(WriteLedger, OfAMediaCounterThatBeganLateTheLifetimeAloneIsWithheld) {
  BelowOne one;
  one.drive.host = 10'000 * kGiB;
  one.polls(20, 1.5);
  EXPECT_TRUE(one.has("5m") && one.has("1h"));
  EXPECT_FALSE(one.has("lifetime"));
  EXPECT_TRUE(one.withheld());
}

}  // namespace
}  // namespace ssdpulse::wear
