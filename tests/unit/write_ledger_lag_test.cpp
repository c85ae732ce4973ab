// SPDX-License-Identifier: Apache-2.0
// What does the ledger make of counters that are updated only now and then, or never?
#include <gtest/gtest.h>

#include "tests/unit/write_ledger_rig.h"

namespace ssdpulse::wear {
namespace {

/// The media counter shows its value at the last full `period`.
struct LazyDrive {
  PaperDrive drive;
  model::Uint128 shown = 0;
  std::chrono::nanoseconds updated{0};

  void poll(WriteLedger& ledger, std::uint64_t host, std::uint64_t media, std::chrono::nanoseconds period) {
    drive.pass(kPollInterval);
    drive.write(host, media);
    if (drive.now - updated >= period) {
      updated = drive.now;
      shown = drive.media;
    }
    WriteSample sample = drive.read();
    sample.media->count = shown;
    ledger.observe(sample);
  }
};

TEST(WriteLedgerLag, AWindowEndsWhereTheCountersAreCertain) {
  LazyDrive lazy;
  WriteLedger ledger(kPollInterval);
  // 10 minutes are 20 polls. At first it writes 1:1, later 1:5: what is read then was written earlier.
  for (int i = 0; i < 39; ++i) {
    lazy.poll(ledger, kGiB, kGiB, 10min);
    EXPECT_TRUE(ledger.amplification().ratios.empty()) << "after poll " << i;
  }
  for (int i = 0; i < 80; ++i) {
    lazy.poll(ledger, kGiB, kGiB, 10min);
  }
  EXPECT_GE(ledger.media_staleness().lag, 10min);
  EXPECT_LE(ledger.media_staleness().lag, 12min);
  EXPECT_EQ(ledger.host_staleness().lag, 0s);
  for (int i = 0; i < 1500; ++i) {
    lazy.poll(ledger, kGiB, 5 * kGiB, 10min);
    EXPECT_FALSE(find(ledger, "5m")) << "no 5 minutes of which both ends are known";
    for (const auto& ratio : ledger.amplification().ratios) {
      EXPECT_GE(ratio.age_seconds, 600);
      EXPECT_LE(ratio.upper - ratio.lower, 0.2 * ratio.ratio);
    }
  }
  const auto hours = find(ledger, "24h");
  ASSERT_TRUE(hours);
  EXPECT_GT(hours->ratio, 1.0);
  EXPECT_LT(hours->ratio, 5.0);
}

TEST(WriteLedgerLag, OneLongStandstillIsRemembered) {
  LazyDrive lazy;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 10; ++i) {
    lazy.poll(ledger, kGiB, 2 * kGiB, 0s);
  }
  EXPECT_EQ(ledger.media_staleness().lag, 0s);
  ASSERT_TRUE(find(ledger, "5m"));
  for (int i = 0; i < 6; ++i) {
    lazy.poll(ledger, kGiB, 2 * kGiB, 24h);
    EXPECT_EQ(ledger.media_staleness().stands_still, kPollInterval * (i + 1));
    EXPECT_EQ(ledger.media_staleness().stuck, i > 1) << "two polls are what it took between two changes";
  }
  EXPECT_EQ(ledger.media_staleness().lag, 210s);
  for (int i = 0; i < 200; ++i) {
    lazy.poll(ledger, kGiB, 2 * kGiB, 0s);
  }
  EXPECT_EQ(ledger.media_staleness().stands_still, 0s);
  EXPECT_EQ(ledger.media_staleness().lag, 210s);
  ASSERT_TRUE(find(ledger, "1h"));
  EXPECT_EQ(find(ledger, "1h")->age_seconds, 210);
  EXPECT_NEAR(find(ledger, "1h")->ratio, 2.0, 0.02);
  lazy.drive.firmware = "F2";
  for (int i = 0; i < 4; ++i) {
    lazy.poll(ledger, kGiB, 2 * kGiB, 0s);
  }
  EXPECT_EQ(ledger.media_staleness().lag, 0s) << "another firmware may be another habit";
}

TEST(WriteLedgerLag, ACounterThatNeverMovesIsIgnored) {
  PaperDrive drive;
  drive.media = 1;
  drive.media_unit = 1;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 300; ++i) {
    drive.poll(ledger, kGiB, 0);
    EXPECT_TRUE(ledger.amplification().ratios.empty());
    EXPECT_EQ(ledger.media_staleness().stuck, i > 0);
    EXPECT_FALSE(ledger.host_staleness().stuck);
  }
  EXPECT_EQ(ledger.media_staleness().stands_still, kPollInterval * 299);
}

TEST(WriteLedgerLag, ACounterThatMovesNowAndThenIsNotStuck) {
  LazyDrive lazy;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 60; ++i) {
    lazy.poll(ledger, kGiB, kGiB, 10min);
  }
  for (int i = 0; i < 200; ++i) {
    lazy.poll(ledger, kGiB, kGiB, 10min);
    EXPECT_FALSE(ledger.media_staleness().stuck) << i;
  }
  for (int i = 0; i < 60; ++i) {
    lazy.poll(ledger, kGiB, kGiB, 24h);
  }
  EXPECT_TRUE(ledger.media_staleness().stuck);
}

TEST(WriteLedgerLag, TheBlockLayerRevealsAHostCounterThatNeverMoves) {
  PaperDrive drive;
  drive.host = drive.media = 1;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 300; ++i) {
    *drive.block += kGiB;
    drive.poll(ledger, 0, 0);
    EXPECT_TRUE(ledger.amplification().ratios.empty());
  }
  EXPECT_EQ(ledger.host_staleness().stands_still, kPollInterval * 299);
  EXPECT_EQ(ledger.media_staleness().stands_still, kPollInterval * 299);
  EXPECT_EQ(ledger.amplification().host_written_drift_bytes, -299.0 * kGiB);
}

TEST(WriteLedgerLag, WhatTheDriveStillHoldsInItsBufferIsNotLate) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 20; ++i) {
    drive.poll(ledger, 20 * kMiB, i % 3 == 0 || i < 4 ? 60 * kMiB : 0);
  }
  EXPECT_EQ(ledger.media_staleness().lag, 0s);
}

TEST(WriteLedgerLag, ARarelyWrittenDriveIsAcceptedAfterAnHour) {
  PaperDrive drive;
  drive.write(kGiB, 3 * kGiB);
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i <= 120; ++i) {
    drive.poll(ledger, 0, 0);
    EXPECT_FALSE(find(ledger, "lifetime"));
  }
  drive.poll(ledger, 0, 0);
  ASSERT_TRUE(find(ledger, "lifetime")) << "whatever was late must have come";
  EXPECT_DOUBLE_EQ(find(ledger, "lifetime")->ratio, 3.0);
}

TEST(WriteLedgerLag, LateMediaWritesAreNotIdleOnes) {
  LazyDrive lazy;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 60; ++i) {
    lazy.poll(ledger, kGiB, 2 * kGiB, 10min);
  }
  for (int i = 0; i < 22; ++i) {
    lazy.poll(ledger, 0, 0, 10min);
  }
  EXPECT_EQ(ledger.amplification().idle_media_written_bytes, 0);
  for (int i = 0; i < 40; ++i) {
    lazy.poll(ledger, 0, kMiB, 10min);
  }
  EXPECT_GT(ledger.amplification().idle_media_written_bytes, 20.0 * kMiB);
  EXPECT_LE(ledger.amplification().idle_media_written_bytes, 40.0 * kMiB);
}

TEST(WriteLedgerLag, WithoutTheBlockLayerNothingIsIdle) {
  PaperDrive drive;
  drive.block.reset();
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 4; ++i) {
    drive.poll(ledger, kMiB, kMiB);
  }
  for (int i = 0; i < 10; ++i) {
    drive.poll(ledger, 0, kMiB);
  }
  EXPECT_EQ(ledger.amplification().idle_media_written_bytes, 0);
}

TEST(WriteLedgerLag, AChangedPollIntervalIsNoticed) {
  LazyDrive lazy;
  WriteLedger ledger(2 * kPollInterval);
  for (int i = 0; i < 20; ++i) {
    lazy.poll(ledger, kMiB, kMiB, 2 * kPollInterval);
  }
  EXPECT_EQ(ledger.media_staleness().lag, 0s) << "it changes in every such interval";
  ledger.set_poll_interval(kPollInterval);
  EXPECT_GE(ledger.media_staleness().lag, 2 * kPollInterval) << "in every second one";
}

/// Both counters show their values at the last refresh, as most drives do that cache their log pages.
struct CachedPage {
  PaperDrive drive;
  PaperDrive shown;
  std::chrono::nanoseconds period = 25s;
  std::chrono::nanoseconds media_late{0};  // the media's counter is refreshed later by this much

  /// The bytes of each second, and a poll now and then.
  void run(WriteLedger& ledger, std::chrono::seconds seconds, std::chrono::seconds poll, std::uint64_t host,
           double ratio) {
    for (auto second = 0s; second < seconds; second += 1s) {
      drive.pass(1s);
      drive.write(host, static_cast<std::uint64_t>(static_cast<double>(host) * ratio));
      if (drive.now % period == 0s) {
        shown.host = drive.host;
      }
      if ((drive.now - media_late) % period == 0s) {
        shown.media = drive.media;
      }
      if (drive.now % poll == 0s) {
        WriteSample sample = drive.read();
        sample.host_before = sample.host_after = PaperDrive::counter(shown.host, drive.host_unit, drive.host_rounding);
        sample.media = PaperDrive::counter(shown.media, drive.media_unit, drive.media_rounding);
        ledger.observe(sample);
      }
    }
  }
};

TEST(WriteLedgerLag, AWindowEndsWhereBothCountersMoved) {
  for (const auto& [period, poll] : {std::pair(25s, 10s), std::pair(35s, 10s), std::pair(28s, 10s), std::pair(70s, 10s),
                                     std::pair(75s, 30s), std::pair(100s, 30s)}) {
    for (const auto start : {0s, 3s, 7s, 11s}) {
      CachedPage page;
      page.period = period;
      page.drive.now += start;
      page.drive.host_unit = 512'000;
      page.drive.host_rounding = model::Rounding::up;
      page.drive.write(1000 * kGiB, 3000 * kGiB);
      page.shown = page.drive;
      WriteLedger ledger(poll);
      page.run(ledger, 6 * period, poll, 100 * kMiB, 3);
      const auto said = find(ledger, "1h");
      ASSERT_TRUE(said) << period.count() << " " << poll.count() << " " << start.count();
      EXPECT_LE(said->lower, 3.0);
      EXPECT_GE(said->upper, 3.0);
      EXPECT_GT(said->upper - said->lower, 0.01) << "two refreshes may be apart by less than two polls show";
      EXPECT_GT(said->covered_seconds, 0);
    }
  }
}

TEST(WriteLedgerLag, AfterTwoMinutesARefreshOf25SecondsHasARatio) {
  CachedPage page;
  WriteLedger ledger(10s);
  page.run(ledger, 130s, 10s, 100 * kMiB, 1.7);
  ASSERT_TRUE(find(ledger, "5m"));
  EXPECT_NEAR(find(ledger, "5m")->ratio, 1.7, 0.1);
  page.run(ledger, 600s, 10s, 100 * kMiB, 2.5);
  ASSERT_TRUE(find(ledger, "5m"));
  EXPECT_NEAR(find(ledger, "5m")->ratio, 2.5, 0.1) << "of the last minutes alone";
  EXPECT_LE(find(ledger, "5m")->age_seconds, 30);
}

TEST(WriteLedgerLag, CountersThatAreRefreshedApartAreNotAPair) {
  for (const auto late : {10s, 12s, 20s}) {
    CachedPage page;
    page.media_late = late;
    WriteLedger ledger(10s);
    // In bursts of a period: a pair that is not one would be wrong by all of them.
    for (int burst = 0; burst < 24; ++burst) {
      page.run(ledger, 25s, 10s, burst % 2 == 0 ? 200 * kMiB : kMiB, burst % 2 == 0 ? 1 : 9);
      EXPECT_FALSE(find(ledger, "5m")) << late.count() << " " << burst;
    }
  }
  CachedPage idle;
  WriteLedger ledger(10s);
  idle.run(ledger, 200s, 10s, 100 * kMiB, 2);
  ASSERT_TRUE(find(ledger, "5m"));
  for (int minute = 0; minute < 10; ++minute) {
    idle.drive.media += 50 * kMiB;  // the drive's own work moves its counter alone
    idle.run(ledger, 60s, 10s, 0, 0);
  }
  for (const auto& ratio : ledger.amplification().ratios) {
    EXPECT_NE(ratio.window, "5m");
  }
}

}  // namespace
}  // namespace ssdpulse::wear
