// SPDX-License-Identifier: Apache-2.0
// Does a ledger's knowledge survive the daemon, the boot, and damage? And what is kept, and for how long?
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "tests/unit/write_ledger_rig.h"

namespace ssdpulse::wear {
namespace {

WriteLedger restored(const WriteLedger& ledger, const PaperDrive& now) {
  auto result = WriteLedger::restore(ledger.save(), kPollInterval, now.now, now.wall);
  EXPECT_TRUE(result) << result.error().message;
  return result ? std::move(*result) : WriteLedger(kPollInterval);
}

TEST(WriteLedgerState, GoesOnAcrossRestartAndReboot) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  std::vector<WriteSample> history;
  drive.write(100 * kGiB, 300 * kGiB);
  for (int i = 0; i < 200; ++i) {
    if (i == 20) {
      drive.host = drive.media = 0;  // an epoch: its old samples must not come back
    }
    drive.poll(ledger, kGiB, 3 * kGiB);
    if (i % 2 == 0) {
      history.push_back(drive.read());
    }
  }
  drive.poll(ledger, 0, kGiB);
  const auto before = ledger.amplification();
  ASSERT_EQ(before.epochs, 1U);
  ASSERT_GT(before.idle_media_written_bytes, 0);

  // A new boot: its clock began much later, and the daemon was away for 10 minutes.
  const auto old_now = drive.now;
  drive.pass(10min);
  const auto moved = 50s - drive.now;
  drive.now = 50s;
  drive.block = 0;
  WriteLedger again = restored(ledger, drive);
  for (WriteSample sample : history) {
    sample.at += moved;
    sample.block_before.reset();
    sample.block_after.reset();
    again.remember(sample);
  }
  drive.poll(again, kGiB, 3 * kGiB);
  const auto after = again.amplification();
  EXPECT_EQ(after.epochs, 1U);
  EXPECT_EQ(after.since, before.since);
  EXPECT_EQ(after.host_written_bytes, *before.host_written_bytes + kGiB);
  EXPECT_EQ(after.media_written_bytes, *before.media_written_bytes + 3.0 * kGiB);
  EXPECT_EQ(after.idle_media_written_bytes, before.idle_media_written_bytes);
  const auto day = find(again, "24h");
  ASSERT_TRUE(day) << "what was learned of the counters is known at once";
  const double since_epoch = std::chrono::duration<double>(old_now + 630s - 1630s).count();
  EXPECT_NEAR(day->covered_seconds, since_epoch, 60);
  EXPECT_NEAR(day->ratio, 3.0, 0.1);
  EXPECT_NEAR(find(again, "lifetime")->ratio, 3.0, 0.1);
}

TEST(WriteLedgerState, HistoryAloneIsObservedAsItIs) {
  PaperDrive drive;
  drive.block.reset();
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 120; ++i) {
    drive.poll(ledger, kGiB, 2 * kGiB, 60s);
  }
  const auto day = find(ledger, "24h");
  ASSERT_TRUE(day);
  EXPECT_NEAR(day->ratio, 2.0, 0.01);
  EXPECT_GT(day->age_seconds, 0) << "minutes do not tell whether a poll of 30 s would have seen more";
  drive.poll(ledger, kGiB, 2 * kGiB);
  drive.poll(ledger, kGiB, 2 * kGiB);
  EXPECT_EQ(find(ledger, "1h")->age_seconds, 0);
  EXPECT_EQ(find(ledger, "5m")->ratio, 2.0);
}

TEST(WriteLedgerState, ForeignHistoryIsNotMixedIn) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 10; ++i) {
    drive.poll(ledger, kGiB, 2 * kGiB);
  }
  WriteLedger again = restored(ledger, drive);
  WriteSample sample = drive.read();
  sample.at -= 60s;
  for (const bool other_firmware : {true, false}) {
    WriteSample foreign = sample;
    (other_firmware ? foreign.firmware : foreign.serial) += "x";
    again.remember(foreign);
  }
  WriteSample other_unit = sample;
  other_unit.media->unit_bytes = 512;
  again.remember(other_unit);
  drive.poll(again, kGiB, 2 * kGiB);
  EXPECT_FALSE(find(again, "1h"));
  EXPECT_TRUE(find(again, "lifetime"));
}

TEST(WriteLedgerState, DamageIsNoticedOrHarmless) {
  PaperDrive drive;
  drive.firmware = "";
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 10; ++i) {
    if (i == 3 || i == 6) {
      drive.media /= 2;
      drive.host = 0;
    }
    WriteSample sample = drive.read();
    sample.percentage_used = 0.01 * i;
    ledger.observe(sample);
    drive.pass(30s);
    drive.write(kGiB, 2 * kGiB);
  }
  const std::string text = ledger.save();
  EXPECT_FALSE(WriteLedger::restore("", kPollInterval, 0s, {}));
  EXPECT_FALSE(WriteLedger::restore(text + "1 ", kPollInterval, 0s, {}));
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(WriteLedger::restore(text.substr(0, length), kPollInterval, 0s, {})) << length;
  }
  std::mt19937_64 random(std::random_device{}());
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string damaged = text;
    for (auto edits = 1 + random() % 3; edits > 0; --edits) {
      damaged[random() % damaged.size()] = "0123456789abcdef x-f"[random() % 20];
    }
    auto other = WriteLedger::restore(damaged, kPollInterval, drive.now, drive.wall);
    if (other) {
      ++accepted;
      PaperDrive copy = drive;
      for (int poll = 0; poll < 3; ++poll) {
        copy.poll(*other, kGiB, 2 * kGiB);
        (void)other->amplification();
      }
    }
  }
  std::printf("%d of 100000 damaged texts are states, too\n", accepted);
  EXPECT_EQ(WriteLedger::restore(text, kPollInterval, drive.now, drive.wall)->save().size(), text.size());
}

TEST(WriteLedgerState, ADriveWithoutReadingsIsKeptTime) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  for (int start = 0; start < 4; ++start) {
    for (const int half : {0, 1}) {
      WriteSample sample = drive.read();
      sample.host_before.reset();
      sample.host_after.reset();
      sample.percentage_used = 0.01 * (10 + start);
      ledger.observe(sample);
      drive.pass(half == 0 ? 1h : 239h);
    }
    ledger = restored(ledger, drive);
  }
  WriteSample sample = drive.read();
  sample.percentage_used = 0.14;
  ledger.observe(sample);
  const auto life = ledger.amplification().life_remaining;
  ASSERT_EQ(life.size(), 1U);
  EXPECT_EQ(life[0].window_seconds, 960 * 3600.0) << "restarts do not move what was seen";
}

TEST(WriteLedgerState, AClockThatWasDecadesOffCostsNothing) {
  PaperDrive drive;
  drive.wall = std::chrono::system_clock::time_point(100s);
  WriteLedger ledger(kPollInterval);
  for (int i = 0; i < 5; ++i) {
    drive.poll(ledger, kGiB, 2 * kGiB);
  }
  const auto before = ledger.amplification();
  for (int start = 0; start < 3; ++start) {
    drive.wall += std::chrono::hours(24 * 365 * 55);
    ledger = restored(ledger, drive);
    drive.wall -= std::chrono::hours(24 * 365 * 55);
    ledger = restored(ledger, drive);
  }
  drive.poll(ledger, kGiB, 2 * kGiB);
  EXPECT_EQ(ledger.amplification().host_written_bytes, *before.host_written_bytes + kGiB);
  EXPECT_EQ(ledger.amplification().epochs, 0U);
}

TEST(WriteLedgerState, FewReadingsAreKeptAndWindowsReachBack) {
  RatioWindows windows;
  std::size_t most = 0;
  constexpr std::array<std::chrono::seconds, 4> kWidths{300s, 3600s, 86400s, 604800s};
  std::mt19937_64 random(7);
  std::chrono::nanoseconds at = -100h;
  for (int i = 0; i < 150'000; ++i) {
    at += std::chrono::milliseconds(9'000 + random() % 2'000);
    const auto count = static_cast<model::Uint128>(i);
    windows.add({at, {count, count}, count});
    most = std::max(most, windows.points().size());
    if (i > 70'000 && i % 100 == 0) {
      for (const auto width : kWidths) {
        const auto window = windows.window(width, {});
        ASSERT_TRUE(window);
        EXPECT_EQ(window->end.at, at);
        EXPECT_LE(window->end.at - window->begin.at, width);
        EXPECT_GE(window->end.at - window->begin.at, width - width / 15);
      }
    }
  }
  std::printf("at most %zu readings of %zu bytes\n", most, sizeof(WritePoint));
  EXPECT_LE(most, 500U);
  EXPECT_LE(sizeof(WritePoint), 100U);
}

TEST(WriteLedgerState, LifeByPercentageUsed) {
  PaperDrive drive;
  WriteLedger ledger(kPollInterval);
  const auto see = [&](double used) {
    WriteSample sample = drive.read();
    sample.percentage_used = used;
    ledger.observe(sample);
    drive.pass(240h);
  };
  see(0.10);
  see(0.10);
  see(0.11);
  EXPECT_TRUE(ledger.amplification().life_remaining.empty());
  ledger = restored(ledger, drive);
  see(0.12);
  auto life = ledger.amplification().life_remaining;
  ASSERT_EQ(life.size(), 1U);
  EXPECT_EQ(life[0].basis, "percentage_used");
  EXPECT_EQ(life[0].window_seconds, 720 * 3600.0);
  EXPECT_EQ(life[0].seconds, 44 * 720 * 3600.0);  // 2 % in 30 days
  see(1.30);
  EXPECT_EQ(ledger.amplification().life_remaining.at(0).seconds, 0);
  see(0.0);
  see(std::nan(""));
  see(-5);
  EXPECT_TRUE(ledger.amplification().life_remaining.empty()) << "a fall begins anew";
}

TEST(WriteLedgerState, LifeGrowsWhileAPercentLasts) {
  WearRate wear;
  for (const int percent : {10, 11, 12}) {
    wear.observe((percent - 10) * 240h, percent * 0.01);
  }
  const double as_before = 88 * 240 * 3600.0;
  EXPECT_EQ(wear.life_remaining()->seconds, as_before);
  wear.observe(2 * 240h + 239h, 0.12);
  EXPECT_EQ(wear.life_remaining()->seconds, as_before) << "not longer than those before";
  wear.observe(4 * 240h, 0.12);
  // Less than 3 % in 40 days.
  EXPECT_EQ(wear.life_remaining()->window_seconds, 960 * 3600.0);
  EXPECT_DOUBLE_EQ(wear.life_remaining()->seconds, 88 * 320 * 3600.0);
  wear.observe(30 * 240h, 0.12);
  EXPECT_DOUBLE_EQ(wear.life_remaining()->seconds, 88 * 2400 * 3600.0) << "wear has stopped";
}

TEST(WriteLedgerState, LifeByEnduranceEstimate) {
  PaperDrive drive;
  drive.write(10 * kGiB, 20 * kGiB);
  WriteLedger ledger(kPollInterval);
  const auto see = [&] {
    WriteSample sample = drive.read();
    sample.endurance_estimate = model::ByteCounter{100, kGiB, model::Rounding::up};
    ledger.observe(sample);
  };
  see();
  drive.pass(30min);
  drive.write(kGiB, 2 * kGiB);
  see();
  EXPECT_TRUE(ledger.amplification().life_remaining.empty()) << "less than an hour tells too little";
  drive.pass(30min);
  drive.write(kGiB, 2 * kGiB);
  see();
  const auto life = ledger.amplification().life_remaining;
  ASSERT_EQ(life.size(), 1U);
  EXPECT_EQ(life[0].basis, "endurance_estimate");
  EXPECT_EQ(life[0].window_seconds, 3600);
  EXPECT_EQ(life[0].seconds, 19 * 3600);  // 76 GiB left, 4 GiB an hour
}

}  // namespace
}  // namespace ssdpulse::wear
