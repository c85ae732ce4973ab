// SPDX-License-Identifier: Apache-2.0
// Is an absurd sample held back, a strange but true one reported one sample later, a fall never dropped silently, and
// everything else let through?
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "daemon/wear/checked_ledger.h"
#include "tests/unit/write_ledger_rig.h"

namespace ssdpulse::wear {
namespace {

/// The gate in front of a ledger that believes it.
struct Entrance {
  SampleGate gate;
  std::optional<WriteLedger::Newest> newest;

  SampleGate::Verdict admit(const PaperDrive& drive) {
    auto verdict = gate.judge(newest, drive.read());
    if (!verdict.accepted.empty()) {
      newest = WriteLedger::Newest{verdict.accepted.back(), true, behind};
    }
    return verdict;
  }
  RatioWindows::Lags behind;

  std::size_t accepted(const PaperDrive& drive) { return admit(drive).accepted.size(); }
};

TEST(Gate, HoldsWhatNoDriveCanDo) {
  Entrance entrance;
  PaperDrive drive;
  EXPECT_EQ(entrance.accepted(drive), 1U);
  drive.pass(30s);
  drive.write(30 * 60'000'000'000ULL, 0);
  EXPECT_EQ(entrance.accepted(drive), 1U) << "60 GB/s";
  drive.pass(30s);
  PaperDrive absurd = drive;
  absurd.write(0, 30 * 65'000'000'000ULL);
  EXPECT_EQ(entrance.accepted(absurd), 0U);
  EXPECT_TRUE(entrance.gate.held());
  drive.pass(30s);
  const auto verdict = entrance.admit(drive);
  EXPECT_EQ(verdict.accepted.size(), 1U);
  EXPECT_FALSE(verdict.doubted) << "it never was";
  EXPECT_FALSE(entrance.gate.held());
}

TEST(Gate, AcceptsBothOnceTheyAgree) {
  Entrance entrance;
  PaperDrive drive;
  drive.write(kGiB, kGiB);
  entrance.admit(drive);
  drive.host = drive.media = 0;
  drive.pass(30s);
  EXPECT_EQ(entrance.accepted(drive), 0U);
  drive.pass(30s);
  drive.write(100, 100);
  const auto verdict = entrance.admit(drive);
  ASSERT_EQ(verdict.accepted.size(), 2U);
  EXPECT_TRUE(verdict.accepted[0].media->count == 0 && verdict.accepted[1].media->count == 100);
  EXPECT_FALSE(verdict.doubted || verdict.leapt);
}

TEST(Gate, DoubtsAFallThatIsMadeUpFor) {
  for (const bool host_fell : {false, true}) {
    Entrance entrance;
    PaperDrive drive;
    drive.write(4096 * kGiB, 4096 * kGiB);
    entrance.admit(drive);
    drive.pass(30s);
    (host_fell ? drive.host : drive.media) -= 1;
    EXPECT_EQ(entrance.accepted(drive), 0U);
    drive.pass(30s);
    drive.write(1, 1);
    const auto verdict = entrance.admit(drive);
    EXPECT_EQ(verdict.accepted.size(), 1U);
    EXPECT_TRUE(verdict.doubted);
    EXPECT_FALSE(verdict.fell_further);
  }
}

TEST(Gate, KnowsAPageByTheLeapThatItTakes) {
  Entrance entrance;
  PaperDrive drive;
  drive.write(4096 * kGiB, 4096 * kGiB);
  entrance.admit(drive);
  drive.pass(30s);
  PaperDrive zeros = drive;
  zeros.host = zeros.media = 0;
  EXPECT_EQ(entrance.accepted(zeros), 0U);
  drive.pass(30s);
  const auto verdict = entrance.admit(drive);
  EXPECT_EQ(verdict.accepted.size(), 1U);
  EXPECT_FALSE(verdict.doubted) << "nothing writes 4 TiB in 30 s";
  drive.pass(30s);
  PaperDrive ones = drive;
  ones.media = ~model::Uint128{0};
  EXPECT_EQ(entrance.accepted(ones), 0U);
  drive.pass(30s);
  EXPECT_FALSE(entrance.admit(drive).doubted);
}

TEST(Gate, AnAbsurdPageHidesNoFall) {
  Entrance entrance;
  PaperDrive drive;
  drive.write(4096 * kGiB, 4096 * kGiB);
  entrance.admit(drive);
  drive.pass(30s);
  drive.media -= kGiB;
  EXPECT_EQ(entrance.accepted(drive), 0U);
  drive.pass(30s);
  PaperDrive absurd = drive;
  absurd.media <<= 20;
  const auto neither = entrance.admit(absurd);
  EXPECT_TRUE(neither.doubted && neither.accepted.empty()) << "it goes on from neither";
  drive.pass(30s);
  drive.write(2 * kGiB, 2 * kGiB);
  const auto verdict = entrance.admit(drive);
  EXPECT_EQ(verdict.accepted.size(), 1U);
  EXPECT_FALSE(verdict.doubted);
}

TEST(Gate, AConfirmedJumpIsReported) {
  Entrance entrance;
  PaperDrive drive;
  entrance.admit(drive);
  drive.pass(30s);
  drive.write(0, kGiB << 20);
  EXPECT_EQ(entrance.accepted(drive), 0U);
  drive.pass(30s);
  const auto verdict = entrance.admit(drive);
  EXPECT_TRUE(verdict.leapt && verdict.accepted.size() == 2U);
}

TEST(Gate, ALateCounterLeapsNot) {
  // A counter that is updated every hour.
  Entrance entrance;
  entrance.behind.media = 1h;
  PaperDrive drive;
  entrance.admit(drive);
  drive.pass(30s);
  drive.write(0, 10'000 * kGiB);
  EXPECT_EQ(entrance.accepted(drive), 0U);
  drive.pass(30s);
  drive.media -= 1;
  const auto verdict = entrance.admit(drive);
  EXPECT_TRUE(verdict.doubted && verdict.accepted.empty()) << "what was held may be true, and then it fell";
  drive.pass(30s);
  EXPECT_FALSE(entrance.admit(drive).leapt);
}

TEST(Gate, ADifferentDriveStartsOver) {
  Entrance entrance;
  PaperDrive drive;
  drive.write(kGiB, kGiB);
  entrance.admit(drive);
  PaperDrive other;
  other.serial = "S2";
  EXPECT_EQ(entrance.accepted(other), 1U);
}

TEST(Gate, CoarseUnitsAndUnknownOnesPass) {
  Entrance entrance;
  PaperDrive drive;
  drive.media_unit = 1'000'000'000;
  drive.media_rounding = model::Rounding::up;
  entrance.admit(drive);
  drive.pass(1ms);
  drive.write(1, 1);
  EXPECT_EQ(entrance.accepted(drive), 1U) << "a unit begun";
  drive.media_unit = 0;
  entrance.admit(drive);
  drive.pass(1s);
  drive.write(0, kGiB << 20);
  EXPECT_EQ(entrance.accepted(drive), 1U) << "nobody knows how much that is";
  drive.media -= 1;
  EXPECT_EQ(entrance.accepted(drive), 0U) << "but less it is";
}

TEST(Gate, HalfASampleDecidesNothing) {
  Entrance entrance;
  PaperDrive drive;
  drive.write(kGiB, kGiB);
  entrance.admit(drive);
  drive.pass(30s);
  drive.media -= 1;
  entrance.admit(drive);
  WriteSample half = drive.read();
  half.media.reset();
  EXPECT_EQ(entrance.gate.judge(entrance.newest, half).accepted.size(), 1U);
  EXPECT_TRUE(entrance.gate.held());
}

TEST(Gate, EverySampleOfASaneDrivePasses) {
  EXPECT_TRUE(rc::check([] {
    Entrance entrance;
    PaperDrive drive;
    for (int poll = 0; poll < 20; ++poll) {
      const auto seconds = *rc::gen::inRange<std::uint64_t>(0, 4000);
      drive.pass(std::chrono::seconds(seconds));
      const auto rate = *rc::gen::inRange<std::uint64_t>(0, 64'000'000'000);
      drive.write(rate / 4 * seconds, rate * seconds);
      RC_ASSERT(entrance.accepted(drive) == 1U);
    }
  }));
}

}  // namespace
}  // namespace ssdpulse::wear
