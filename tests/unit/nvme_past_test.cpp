// SPDX-License-Identifier: Apache-2.0
// Is what was known about a drive's writes never lost: not because of a slow history, a page that fails for a while, a
// drive that starts badly, or one absurd page?
#include <initializer_list>

#include "tests/unit/nvme_drive_rig.h"

namespace ssdpulse::nvme {
namespace {

/// What an earlier process kept about the drive, whose OCP page had shown these bytes.
model::Recalled kept_of(std::initializer_list<std::uint64_t> shown) {
  wear::CheckedLedger ledger(kInterval);
  wear::WriteSample sample;
  sample.serial = "S1";
  sample.firmware = "F1";
  for (const std::uint64_t bytes : shown) {
    sample.at += 30s;
    sample.wall = std::chrono::system_clock::now();
    sample.host_before = sample.host_after = model::ByteCounter{bytes / 512'000, 512'000, model::Rounding::up};
    sample.media = model::ByteCounter{bytes, 1, model::Rounding::exact};
    ledger.observe(sample);
  }
  model::Recalled recalled;
  recalled.state = model::DriveState{{"S1", "", "F1"}, {}};
  wear::add_kept_ledger(recalled.state->bytes, "ocp", ledger);
  return recalled;
}

/// It once showed `before`, and then started from 0.
model::Recalled past(std::uint64_t before) { return kept_of({before, 0, 0}); }

constexpr std::uint64_t kBefore = 4'000'000'000;

struct OcpRig : Rig {
  OcpRig() {
    fake.pages["ocp_smart"] = [this](auto& response) {
      if (fails) {
        response.result = 0x0006;  // and may be retried
        response.bytes = 0;
      } else {
        fill_ocp(response, media);
      }
    };
  }
  [[nodiscard]] std::optional<double> total() { return told().write_amplification.media_written_bytes; }

  std::uint64_t media = 1'000'000;
  bool fails = false;
};

TEST(Past, IsGoneOnFrom) {
  OcpRig rig;
  rig.poll();
  ASSERT_TRUE(rig.asks());
  EXPECT_FALSE(rig.asks()) << "once";
  EXPECT_FALSE(rig.total()) << "nothing is told before the past is known";
  rig.remember(past(kBefore));
  EXPECT_EQ(rig.total(), kBefore + 1e6);
  rig.now += 1h;
  EXPECT_FALSE(rig.asks());
}

TEST(Past, ThatNobodyKeepsIsNotWaitedFor) {
  OcpRig rig;
  rig.keeps_history = false;
  rig.poll();
  EXPECT_FALSE(rig.asks());
  EXPECT_EQ(rig.total(), 1e6) << "as soon as the drive was read";
}

TEST(Past, ThatComesLateIsNotLost) {
  OcpRig rig;
  rig.poll();
  ASSERT_TRUE(rig.asks());
  EXPECT_TRUE(rig.minute().states.empty()) << "would overwrite what is there";
  rig.remember(util::fail("the disk is slow"));
  EXPECT_EQ(rig.total(), 1e6) << "measuring goes on";
  EXPECT_EQ(rig.minute().minutes.size(), 1U);
  EXPECT_TRUE(rig.minute().states.empty());
  rig.now += 1s;
  EXPECT_FALSE(rig.asks());
  for (int poll = 0; poll < 2000; ++poll) {
    const bool fallen = poll == 300 || poll == 401;  // for as long as one reading lasts
    rig.media += 1000;
    rig.media -= fallen ? 5000 : 0;
    rig.write(512'000);
    rig.poll();
    rig.media += fallen ? 5000 : 0;
    if (rig.asks()) {
      rig.remember(util::fail("still"));
    }
  }
  rig.pass(1min);
  ASSERT_TRUE(rig.asks());
  rig.remember(past(kBefore));
  EXPECT_EQ(rig.total(), kBefore + 1e6 + 2000 * 1000);
  EXPECT_EQ(rig.told().write_amplification.epochs, 3U) << "that of the past, and two";
  EXPECT_FALSE(rig.minute().states.empty());
}

TEST(Past, WaitsForItsSource) {
  OcpRig rig;
  rig.fails = true;
  rig.poll();
  EXPECT_EQ(rig.told().write_amplification.source, "");
  rig.remember(past(kBefore));
  const model::Batch batch = rig.minute();
  ASSERT_EQ(batch.states.size(), 1U);
  const std::string kept(batch.states[0].bytes.begin(), batch.states[0].bytes.end());
  EXPECT_NE(kept.find("ocp\n"), std::string::npos) << "what is kept still has it";
  rig.fails = false;
  rig.write(512'000);
  rig.poll();
  EXPECT_EQ(rig.told().write_amplification.source, "ocp");
  EXPECT_EQ(rig.total(), kBefore + 1e6);
}

TEST(Past, OutlivesASourceThatFailsForAWhile) {
  OcpRig rig;
  rig.poll();
  rig.remember(past(kBefore));
  rig.fails = true;
  for (int poll = 0; poll < 5; ++poll) {
    rig.write(512'000);
    rig.poll();
  }
  EXPECT_EQ(rig.told().write_amplification.source, "");
  rig.fails = false;
  rig.media += 5;
  rig.write(512'000);
  rig.poll();
  EXPECT_EQ(rig.told().write_amplification.source, "ocp");
  EXPECT_EQ(rig.total(), kBefore + 1e6 + 5);
}

TEST(Past, IsKeptBySource) {
  OcpRig rig;
  rig.fake.attributes = tests::kGroups | tests::kFdp;
  rig.fake.pages["fdp_statistics"] = [](auto& response) { fill_fdp(response, 1000, 3000); };
  rig.poll();
  rig.remember(past(kBefore));
  EXPECT_EQ(rig.told().write_amplification.source, "fdp");
  EXPECT_EQ(rig.total(), 3000);
}

TEST(Past, KnowsEverySourceThatTheDriveHad) {
  model::Recalled recalled = past(kBefore);
  model::Bytes kept;
  wear::add_kept_ledger(kept, "fdp", wear::CheckedLedger(kInterval));
  kept.insert(kept.end(), recalled.state->bytes.begin(), recalled.state->bytes.end());
  recalled.state->bytes = kept;
  OcpRig rig;
  rig.poll();
  rig.remember(recalled);
  EXPECT_EQ(rig.total(), kBefore + 1e6);
}

TEST(Past, OfTheFirstLayoutIsUnderstood) {
  model::Recalled recalled = past(kBefore);
  recalled.state->bytes.pop_back();  // one ledger, without an end of line
  OcpRig rig;
  rig.poll();
  rig.remember(recalled);
  EXPECT_EQ(rig.total(), kBefore + 1e6);
}

TEST(Ledgers, OneAbsurdPagePoisonsNothing) {
  OcpRig rig;
  rig.poll();
  rig.remember(model::Recalled{});
  rig.write(512'000);
  rig.media = std::uint64_t{1} << 60;
  rig.poll();
  EXPECT_EQ(rig.total(), 1e6);
  rig.media = 1'500'000;
  EXPECT_EQ(rig.poll().size(), 3U) << "asked at once, though nothing was written since";
  EXPECT_EQ(rig.total(), 1.5e6);
  EXPECT_EQ(rig.told().write_amplification.epochs, 0U);
  rig.write(512'000);
  rig.media = 0;
  rig.poll();
  rig.media = 2'000'000;
  rig.poll();
  EXPECT_EQ(rig.total(), 2e6);
  EXPECT_EQ(rig.told().write_amplification.epochs, 1U) << "so few bytes may have been written since zero";
}

TEST(Ledgers, ConfirmedReadingsAreAccepted) {
  OcpRig rig;
  rig.poll();
  rig.remember(model::Recalled{});
  rig.write(512'000);
  rig.media = 1000;
  rig.poll();
  EXPECT_EQ(rig.told().write_amplification.epochs, 0U);
  rig.poll();
  EXPECT_EQ(rig.told().write_amplification.epochs, 1U);
  EXPECT_EQ(rig.total(), 1e6 + 1000);
}

TEST(Ledgers, AnEpochIsOneLineOfTheLog) {
  OcpRig rig;
  const auto poll_at = [&](std::uint64_t media) {
    rig.write(512'000);
    rig.media = media;
    rig.poll();
  };
  rig.poll();
  for (const unsigned media : {1'100'000U, 600'000U, 700'000U, 500'000U, 800'000U}) {
    poll_at(media);
  }
  rig.remember(kept_of({2'000'000}));  // it has fallen since then, too
  EXPECT_EQ(rig.told().write_amplification.epochs, 3U);
  const std::string& log = rig.lines;
  const std::string line = "controller=nvme3 the drive's write counters fell, a new epoch begins source=ocp cause=";
  EXPECT_EQ(times(log, line), 3U) << log;
  for (const char* epoch :
       {"\"media counter rolled back\" host_before=1001 host=1002 media_before=1100000 media=600000",
        "\"a fall that the next reading did not confirm\" host_before=1003 host=1004 "
        "media_before=700000 media=500000",
        "\"media counter rolled back\" host_before=3 host=1000 media_before=2000000 media=1000000"}) {
    EXPECT_EQ(times(log, line + epoch), 1U) << epoch << '\n' << log;
  }
}

TEST(Ledgers, IoInFlightIsNotDrift) {
  OcpRig rig;
  rig.poll();
  rig.remember(model::Recalled{});
  rig.write(512'000 * 100);
  rig.poll();
  const auto drift = [&] { return rig.told().write_amplification; };
  rig.fake.data_units += 10;  // already counted by the drive
  rig.block.operation(Operation::write).in_flight = 10;
  rig.block.operation(Operation::write).bytes += 512;
  rig.poll();
  EXPECT_LE(drift().host_written_drift_lower_bytes, 0);
  const auto before = drift().host_written_drift_bytes;
  rig.fake.data_units += 10'000;
  rig.block.operation(Operation::write_zeroes).bytes += 512;
  rig.block.operation(Operation::write_zeroes).in_flight = 1;
  rig.poll();
  EXPECT_EQ(drift().host_written_drift_bytes, before) << "nobody knows how much of the zeroes is counted";
}

TEST(Ledgers, SkippedRunsWidenTheDrift) {
  OcpRig rig;
  rig.block.largest = 1 << 20;
  rig.poll();
  rig.remember(model::Recalled{});
  rig.write(512'000 * 100);
  rig.poll();
  const auto drift = [&] { return rig.told().write_amplification; };
  const double lower = drift().host_written_drift_lower_bytes.value();
  const double upper = drift().host_written_drift_upper_bytes.value();
  EXPECT_LE(lower, 0);
  EXPECT_GE(upper, 0);
  rig.fake.data_units += 2;  // not seen by the block layer
  rig.block.skipped += 1;
  rig.block.devices["nvme3n1"].losses[model::index(model::Loss::stray)] += 1;
  rig.poll();
  EXPECT_EQ(drift().host_written_drift_bytes, 2 * 512'000);
  EXPECT_EQ(drift().host_written_drift_lower_bytes, lower + 2 * 512'000 - 2 * (1 << 20));
  EXPECT_EQ(drift().host_written_drift_upper_bytes, upper + 2 * 512'000);
  rig.block.largest.reset();
  rig.block.skipped += 1;
  rig.poll();
  EXPECT_FALSE(drift().host_written_drift_bytes) << "nobody knows how large what was lost may be";
}

}  // namespace
}  // namespace ssdpulse::nvme
