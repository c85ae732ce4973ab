// SPDX-License-Identifier: Apache-2.0
// What do falling counters and absurd pages cost? Readings on paper; write_ledger_property_test shows that bounds hold
// whatever falls, by any amount.
#include "daemon/wear/checked_ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/unit/write_ledger_rig.h"

namespace ssdpulse::wear {
namespace {

using model::Uint128;

/// A drive with 100 TB written and a ratio of 3, and what is known about it.
struct Rig {
  PaperDrive drive;
  CheckedLedger ledger{kPollInterval};

  Rig() {
    drive.write(100'000 * kGiB, 300'000 * kGiB);
    polls(6);
  }

  void poll(std::uint64_t host = 20 * kGiB, std::uint64_t media = 60 * kGiB) {
    drive.pass(kPollInterval);
    drive.write(host, media);
    ledger.observe(drive.read());
  }
  void polls(int times) {
    for (int i = 0; i < times; ++i) {
      poll();
    }
  }
  /// A poll whose pages are unrelated to the drive.
  void poll_absurd(Uint128 host, Uint128 media) {
    drive.pass(kPollInterval);
    drive.write(20 * kGiB, 60 * kGiB);
    PaperDrive absurd = drive;
    absurd.host = host;
    absurd.media = media;
    ledger.observe(absurd.read());
  }

  [[nodiscard]] model::WriteAmplification said() const { return ledger.ledger().amplification(); }
  [[nodiscard]] std::optional<model::WriteAmplificationRatio> ratio(const char* window) const {
    return find(ledger.ledger(), window);
  }
  [[nodiscard]] bool totals_are_the_counters() const {
    return said().host_written_bytes == static_cast<double>(drive.host) &&
           said().media_written_bytes == static_cast<double>(drive.media);
  }
};

/// Seconds covered by the last day's ratio.
double covered(const Rig& rig) { return rig.ratio("24h") ? rig.ratio("24h")->covered_seconds : 0; }

TEST(CheckedLedger, AFallThatTheNextReadingExceedsIsAnEpoch) {
  for (const Uint128 fall : {Uint128{1}, Uint128{20'000'000'000}, Uint128{59} * kGiB}) {
    Rig rig;
    ASSERT_EQ(covered(rig), 150);
    rig.drive.media -= fall;
    rig.poll(0, 0);
    EXPECT_EQ(rig.said().epochs, 0U) << "one reading alone is none";
    rig.poll();
    EXPECT_EQ(rig.said().epochs, 1U);
    EXPECT_EQ(rig.ledger.ledger().epoch()->cause, "a fall that the next reading did not confirm");
    EXPECT_EQ(covered(rig), 0) << "no window spans it";
    EXPECT_TRUE(rig.totals_are_the_counters());
    rig.polls(3);
    EXPECT_EQ(covered(rig), 90);
    EXPECT_DOUBLE_EQ(rig.ratio("24h")->ratio, 3.0);
    ASSERT_TRUE(rig.ratio("lifetime"));
    const double media = static_cast<double>(rig.drive.media) / static_cast<double>(rig.drive.host);
    const double more = static_cast<double>(rig.drive.media + fall) / static_cast<double>(rig.drive.host);
    EXPECT_LE(rig.ratio("lifetime")->lower, media);
    EXPECT_GE(rig.ratio("lifetime")->upper, more) << "it may have fallen";
    EXPECT_LT(rig.ratio("lifetime")->upper, more * 1.000001)
        << "it cannot have restarted: 300 TB are not written in 30 s";
  }
}

TEST(CheckedLedger, TheHostsCounterMayFallAloneToo) {
  Rig rig;
  rig.drive.host -= 10 * kGiB;
  rig.poll();
  EXPECT_EQ(rig.said().epochs, 0U) << "within what was written meanwhile, nobody sees it";
  rig.drive.host -= 21 * kGiB;
  rig.poll();
  rig.poll();
  EXPECT_EQ(rig.said().epochs, 1U);
  EXPECT_EQ(covered(rig), 0);
  EXPECT_TRUE(rig.totals_are_the_counters());
}

TEST(CheckedLedger, AFallThatIsConfirmedIsOneEpoch) {
  Rig rig;
  const Uint128 before = rig.drive.media;
  rig.drive.media -= 600 * kGiB;
  rig.drive.host -= 200 * kGiB;
  rig.poll(0, 0);
  rig.poll();
  EXPECT_EQ(rig.said().epochs, 1U);
  EXPECT_EQ(rig.ledger.ledger().epoch()->cause, "host counter rolled back, media counter rolled back");
  EXPECT_EQ(rig.said().media_written_bytes, static_cast<double>(before + 60 * kGiB));
  rig.polls(3);
  EXPECT_EQ(rig.said().epochs, 1U);
  EXPECT_EQ(covered(rig), 90) << "from the reading on that came after the fall";
  EXPECT_NEAR(rig.ratio("lifetime")->ratio, 3.0, 1e-9);
}

TEST(CheckedLedger, ARestartIsOneThatCanHaveBeen) {
  Rig rig;
  const Uint128 before = rig.drive.media;
  rig.drive.media /= 3;  // less than half, but nothing writes 100 TB in 30 s
  rig.poll(0, 0);
  rig.poll();
  EXPECT_EQ(rig.ledger.ledger().epoch()->cause, "media counter rolled back");
  EXPECT_EQ(rig.said().media_written_bytes, static_cast<double>(before + 60 * kGiB));
  rig.drive.media = kGiB;
  rig.poll(0, 0);
  rig.poll();
  EXPECT_EQ(rig.ledger.ledger().epoch()->cause, "media counter restarted");
  EXPECT_EQ(rig.said().media_written_bytes, static_cast<double>(before + 121 * kGiB));
}

TEST(CheckedLedger, APageThatNoDriveCanMeanCostsNothing) {
  for (const Uint128 count : {Uint128{0}, Uint128{4096}, Uint128{1} << 64, ~Uint128{0}}) {
    for (const bool both : {false, true}) {
      Rig rig;
      rig.poll_absurd(both ? count : rig.drive.host + 20 * kGiB, count);
      EXPECT_EQ(covered(rig), 150);
      rig.poll();
      EXPECT_EQ(rig.said().epochs, 0U);
      EXPECT_EQ(covered(rig), 210) << "the windows go on";
      EXPECT_TRUE(rig.totals_are_the_counters());
      EXPECT_TRUE(rig.ratio("lifetime"));
    }
  }
}

TEST(CheckedLedger, AnOldPageCostsWindowsAndNoTotals) {
  Rig rig;
  rig.poll_absurd(rig.drive.host - kGiB, rig.drive.media - 3 * kGiB);
  rig.poll();
  EXPECT_EQ(rig.said().epochs, 1U) << "a drive may have fallen back by as much";
  EXPECT_EQ(covered(rig), 0);
  EXPECT_TRUE(rig.totals_are_the_counters());
  rig.polls(3);
  EXPECT_EQ(covered(rig), 90);
  EXPECT_NEAR(rig.ratio("lifetime")->ratio, 3.0, 1e-9);
}

TEST(CheckedLedger, TheHostsPageMayBeTornFromOneReadToTheOther) {
  for (const Uint128 count : {Uint128{0}, Uint128{1} << 100}) {
    for (const bool first : {true, false}) {
      Rig rig;
      rig.drive.pass(kPollInterval);
      WriteSample torn = rig.drive.read();
      (first ? torn.host_before : torn.host_after)->count = count;
      rig.ledger.observe(torn);
      rig.poll();
      EXPECT_EQ(rig.said().epochs, 0U);
      EXPECT_EQ(covered(rig), 210);
      EXPECT_TRUE(rig.ratio("lifetime"));
    }
  }
}

TEST(CheckedLedger, AJumpAddsNoWrittenBytes) {
  // Zeroes for a minute, as from a drive that has not loaded its counters yet.
  Rig rig;
  rig.poll_absurd(rig.drive.host + 20 * kGiB, 0);
  rig.poll_absurd(rig.drive.host + 20 * kGiB, 0);
  EXPECT_EQ(rig.said().epochs, 1U);
  for (int i = 0; i < 6; ++i) {
    rig.poll();
    for (const auto& ratio : rig.said().ratios) {
      EXPECT_TRUE(ratio.window != "lifetime" && ratio.lower <= 3 && ratio.upper >= 3) << ratio.window;
    }
  }
  EXPECT_EQ(rig.said().epochs, 2U);
  EXPECT_GT(covered(rig), 0);
}

TEST(CheckedLedger, TheFirstReadingIsMeasuredByThePast) {
  Rig rig;
  const auto restored = [&] {
    auto ledger = CheckedLedger::restore(rig.ledger.save(), kPollInterval, rig.drive.now, rig.drive.wall);
    ASSERT_TRUE(ledger);
    rig.ledger = *ledger;
  };
  restored();
  rig.poll_absurd(Uint128{1} << 90, 0);
  EXPECT_TRUE(rig.ledger.in_doubt());
  rig.poll();
  EXPECT_EQ(rig.said().epochs, 0U);
  EXPECT_TRUE(rig.totals_are_the_counters());
  // A fall that the next process might not be able to see any more.
  rig.drive.media -= kGiB;
  rig.poll(0, 0);
  restored();
  EXPECT_EQ(rig.said().epochs, 1U);
  rig.poll();
  EXPECT_EQ(rig.said().epochs, 1U);
  EXPECT_EQ(covered(rig), 0);
  EXPECT_TRUE(rig.totals_are_the_counters());
}

/// 35 s of pages of which each shows something else, up to everything that 128 bits can; then the drive is well again.
TEST(CheckedLedger, PagesThatEachShowSomethingElseNeverReachATotal) {
  EXPECT_TRUE(rc::check([] {
    Rig rig;
    const auto pages = *rc::gen::inRange(1, 12);
    for (int page = 0; page < pages; ++page) {
      const auto any = [] {
        const auto high = *rc::gen::arbitrary<std::uint64_t>();
        return (Uint128{high} << 64 | *rc::gen::arbitrary<std::uint64_t>()) >> *rc::gen::inRange(0, 80);
      };
      rig.poll_absurd(*rc::gen::arbitrary<bool>() ? any() : rig.drive.host, any());
      RC_ASSERT(rig.said().media_written_bytes.value() <= static_cast<double>(rig.drive.media));
      RC_ASSERT(rig.said().host_written_bytes.value() <= static_cast<double>(rig.drive.host));
    }
    rig.polls(3);
    RC_ASSERT(rig.totals_are_the_counters());
  }));
}

/// The same absurd page again and again, as a drive shows it that insists on it.
TEST(CheckedLedger, NotEvenALeapThatIsConfirmedIsAWrittenByte) {
  for (const Uint128 leap : {Uint128{1} << 60, Uint128{1} << 66, Uint128{1} << 126}) {
    for (const int readings : {1, 2, 3, 10}) {
      Rig rig;
      const double before = static_cast<double>(rig.drive.media);
      for (int i = 0; i < readings; ++i) {
        rig.poll_absurd(rig.drive.host + leap, rig.drive.media + 3 * (leap / 4));
        EXPECT_LT(rig.said().media_written_bytes.value(), before + 2000.0 * kGiB);
      }
      rig.polls(3);
      EXPECT_TRUE(rig.totals_are_the_counters()) << readings;
      EXPECT_NEAR(rig.ratio("5m") ? rig.ratio("5m")->ratio : 3, 3, 1e-9);
    }
  }
}

TEST(CheckedLedger, ALeapOutlivesTheDaemonAndIsStillNoWrittenByte) {
  Rig rig;
  const double before = static_cast<double>(rig.drive.host);
  rig.drive.host += Uint128{1} << 66;  // and stays
  rig.polls(4);
  EXPECT_NEAR(rig.said().host_written_bytes.value(), before, 200.0 * kGiB);
  auto again = CheckedLedger::restore(rig.ledger.save(), kPollInterval, rig.drive.now, rig.drive.wall);
  ASSERT_TRUE(again);
  const auto told = rig.said().host_written_bytes;
  rig.ledger = *again;
  EXPECT_EQ(rig.said().host_written_bytes, told);
  rig.polls(4);
  EXPECT_EQ(rig.said().host_written_bytes, *told + 80.0 * kGiB);
}

TEST(CheckedLedger, ZeroesForAMinuteCostNoTotal) {
  Rig rig;
  for (const int readings : {2, 3}) {
    for (int i = 0; i < readings; ++i) {
      rig.poll_absurd(0, 0);
    }
    rig.polls(3);
    EXPECT_TRUE(rig.totals_are_the_counters()) << readings;
  }
}

TEST(CheckedLedger, AFirstReadingThatWasTooLowIsCorrected) {
  PaperDrive drive;
  CheckedLedger ledger(kPollInterval);
  drive.write(1, 1);
  ledger.observe(drive.read());
  drive.write(Uint128{1} << 66, Uint128{1} << 66);
  for (int i = 0; i < 3; ++i) {
    drive.pass(kPollInterval);
    ledger.observe(drive.read());
  }
  EXPECT_EQ(ledger.ledger().amplification().host_written_bytes, static_cast<double>(drive.host));
}

}  // namespace
}  // namespace ssdpulse::wear
