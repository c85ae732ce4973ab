// SPDX-License-Identifier: Apache-2.0
// Is an absurd sample held, a strange truth told one sample later, and everything else let through?
#include "daemon/analysis/write_amplification/sample_gate.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/unit/write_ledger_rig.h"

namespace ssdpulse::analysis {
namespace {

TEST(Gate, HoldsWhatNoDriveCanDo) {
  SampleGate gate;
  PaperDrive drive;
  EXPECT_EQ(gate.admit(drive.read()).size(), 1U);
  drive.pass(30s);
  drive.write(30 * 60'000'000'000ULL, 0);
  EXPECT_EQ(gate.admit(drive.read()).size(), 1U) << "60 GB/s";
  drive.pass(30s);
  PaperDrive absurd = drive;
  absurd.write(0, 30 * 65'000'000'000ULL);
  EXPECT_EQ(gate.admit(absurd.read()).size(), 0U);
  EXPECT_TRUE(gate.holds());
  drive.pass(30s);
  EXPECT_EQ(gate.admit(drive.read()).size(), 1U) << "it never was";
  EXPECT_FALSE(gate.holds());
}

TEST(Gate, TellsBothOnceTheyAgree) {
  SampleGate gate;
  PaperDrive drive;
  drive.write(kGiB, kGiB);
  gate.admit(drive.read());
  drive.host = drive.media = 0;
  drive.pass(30s);
  EXPECT_EQ(gate.admit(drive.read()).size(), 0U);
  drive.pass(30s);
  drive.write(100, 100);
  const auto admitted = gate.admit(drive.read());
  ASSERT_EQ(admitted.size(), 2U);
  EXPECT_TRUE(admitted[0].media->count == 0 && admitted[1].media->count == 100);
}

TEST(Gate, AnotherDriveIsNotMeasuredByTheLast) {
  SampleGate gate;
  PaperDrive drive;
  drive.write(kGiB, kGiB);
  gate.admit(drive.read());
  PaperDrive other;
  other.serial = "S2";
  EXPECT_EQ(gate.admit(other.read()).size(), 1U);
}

TEST(Gate, CoarseUnitsAndUnknownOnesPass) {
  SampleGate gate;
  PaperDrive drive;
  drive.media_unit = 1'000'000'000;
  drive.media_rounding = model::Rounding::up;
  gate.admit(drive.read());
  drive.pass(1ms);
  drive.write(1, 1);
  EXPECT_EQ(gate.admit(drive.read()).size(), 1U) << "a unit begun";
  drive.media_unit = 0;
  gate.admit(drive.read());
  drive.pass(1s);
  drive.write(0, kGiB << 20);
  EXPECT_EQ(gate.admit(drive.read()).size(), 1U) << "nobody knows how much that is";
}

TEST(Gate, EverySampleOfASaneDrivePasses) {
  EXPECT_TRUE(rc::check([] {
    SampleGate gate;
    PaperDrive drive;
    for (int poll = 0; poll < 20; ++poll) {
      const auto seconds = *rc::gen::inRange<std::uint64_t>(0, 4000);
      drive.pass(std::chrono::seconds(seconds));
      const auto rate = *rc::gen::inRange<std::uint64_t>(0, 64'000'000'000);
      drive.write(rate / 4 * seconds, rate * seconds);
      RC_ASSERT(gate.admit(drive.read()).size() == 1U);
    }
  }));
}

}  // namespace
}  // namespace ssdpulse::analysis
