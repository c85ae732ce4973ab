// SPDX-License-Identifier: Apache-2.0
// Is a spike attributed to garbage collection or heat if the drive's pages around it show that, and only then?
#include "daemon/spikes/drive_readings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ssdpulse::spikes {
namespace {

using F = model::NvmeField;

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;
constexpr double kDataUnit = 512'000;

SteadyTime at(double seconds) { return SteadyTime(nanoseconds_of(seconds + 1000)); }

/// A simulated drive, and what is kept of its pages.
struct Drive {
  void poll(double now, bool media) {
    said.polling.read_at = at(now);
    if (media) {
      said.write_amplification.read_at = at(now);
    }
    readings.observe(said, true);
  }
  void poll_writes(double now, double host, double media) {
    said.write_amplification.host_written_bytes = host;
    said.write_amplification.media_written_bytes = media;
    poll(now, true);
  }
  void say(F field, double value, const std::string& label = "") {
    for (model::NvmeValue& known : said.values) {
      if (known.field == field && known.label == label) {
        known.value = value;
        return;
      }
    }
    said.values.push_back({field, label, value, 0});
  }

  model::NvmeDrive said;
  DriveReadings readings;
};

TEST(DriveReadings, HeatOfLongAgoIsNotTheSpikes) {
  for (const bool counts_media : {true, false}) {
    Drive drive;
    drive.say(F::thermal_management_transitions, 7, "1");
    if (counts_media) {
      drive.poll_writes(0, 1e9, 1e9);
    }
    drive.poll(10, false);
    drive.say(F::thermal_management_transitions, 8, "1");  // long before the spike
    for (double now = 40; now < 1000; now += 30) {
      drive.poll(now, false);
    }
    drive.poll_writes(1020, 1e9, 1e9);
    const auto verdict = drive.readings.judge(at(1005), at(1015));
    EXPECT_TRUE(verdict.complete);
    EXPECT_FALSE(verdict.thermal) << counts_media;
    EXPECT_EQ(verdict.evidence.count(model::EvidenceKey::thermal_events), 0U);
  }
}

TEST(DriveReadings, HeatWithinTheSpikeIs) {
  Drive drive;
  drive.say(F::thermal_management_transitions, 7, "1");
  drive.say(F::thermal_management_seconds, 100, "1");
  drive.poll(0, false);
  drive.say(F::thermal_management_transitions, 8, "1");
  drive.say(F::thermal_management_seconds, 104, "1");
  drive.poll(30, false);
  const auto verdict = drive.readings.judge(at(10), at(20));
  EXPECT_TRUE(verdict.thermal);
  EXPECT_EQ(verdict.evidence.at(model::EvidenceKey::thermal_events), 5);
}

/// Readings every 10 s, of which those in `hot` show the temperature bit; a spike from 22 s to 48 s.
struct Heat {
  std::vector<int> hot;
  double throttled = 0;  // seconds of the drive's life, counted before
  double counts = 0;     // of them within the spike
  double warms = 0;      // degrees, while it shows the bit
  bool level = false;    // by its vendor's level of throttling, instead of the bit

  [[nodiscard]] DriveVerdict verdict(double until = 90) const {
    Drive drive;
    for (int at_seconds = 0; at_seconds <= until; at_seconds += 10) {
      const bool on = std::find(hot.begin(), hot.end(), at_seconds) != hot.end();
      drive.say(level ? F::thermal_throttle_level : F::critical_warning, on ? 1 : 0, level ? "" : "temperature");
      drive.say(F::temperature_celsius, 70 + (on ? warms : 0), "composite");
      drive.say(F::thermal_management_seconds, throttled + (at_seconds >= 40 ? counts : 0), "1");
      drive.poll(at_seconds, false);
    }
    return drive.readings.judge(at(22), at(48));
  }
};

TEST(DriveReadings, AFlickerOfTheTemperatureBitIsNotHeat) {
  for (const bool level : {false, true}) {
    for (const int flicker : {30, 40, 50}) {
      for (const double throttled : {0.0, 100.0}) {
        const auto verdict = Heat{{flicker}, throttled, 0, 0, level}.verdict();
        EXPECT_FALSE(verdict.thermal) << flicker << " " << throttled << level;
        EXPECT_FALSE(verdict.missing.empty()) << "and is said";
        EXPECT_TRUE(verdict.complete);
      }
    }
  }
}

TEST(DriveReadings, HeatThatCountersOfThrottlingDenyIsNotTheCause) {
  EXPECT_FALSE((Heat{{30, 40, 50, 60}, 100}.verdict().thermal));
  EXPECT_FALSE((Heat{{30, 40, 50, 60}, 100, 0, 20}.verdict().thermal)) << "hot, but as fast as ever";
  EXPECT_TRUE((Heat{{30, 40, 50, 60}, 100, 5}.verdict().thermal));
  EXPECT_TRUE((Heat{{30}, 100, 5}.verdict().thermal)) << "the counters' own word";
}

TEST(DriveReadings, HeatIsAcceptedOnceASecondReadingConfirmsIt) {
  EXPECT_TRUE((Heat{{30, 40}}.verdict().thermal));
  EXPECT_TRUE((Heat{{40, 50, 60}}.verdict().thermal));
  EXPECT_TRUE((Heat{{50, 60}, 0, 0, 0, true}.verdict().thermal));
  EXPECT_TRUE((Heat{{40}, 0, 0, 6}.verdict().thermal)) << "it became warmer";
  EXPECT_FALSE((Heat{{0, 10, 20, 30, 40, 50}}.verdict().thermal)) << "always on";
  const auto waits = Heat{{50}}.verdict(50);
  EXPECT_FALSE(waits.complete || waits.thermal) << "until the next reading";
}

TEST(DriveReadings, APageThatIsReadLaterCoversTheDrivesLife) {
  Drive drive;
  drive.say(F::thermal_management_transitions, 7, "1");
  drive.say(F::background_operations, 3, "forced_garbage_collection");
  drive.poll(0, true);
  drive.say(F::thermal_throttle_events, 900);
  drive.say(F::fdp_events, 900, "media_reallocated");
  drive.poll(30, true);
  const auto verdict = drive.readings.judge(at(10), at(20));
  EXPECT_FALSE(verdict.thermal);
  EXPECT_FALSE(verdict.gc);
  drive.say(F::thermal_throttle_events, 901);
  drive.say(F::fdp_events, 902, "media_reallocated");
  drive.poll(60, true);
  const auto next = drive.readings.judge(at(40), at(50));
  EXPECT_EQ(next.evidence.at(model::EvidenceKey::thermal_events), 1);
  EXPECT_EQ(next.evidence.at(model::EvidenceKey::gc_events), 2);
}

TEST(DriveReadings, CollectionOfLongAgoIsNotTheSpikes) {
  Drive drive;  // with a media counter in an unknown unit
  drive.say(F::fdp_events, 5, "media_reallocated");
  drive.poll(0, true);
  drive.say(F::fdp_events, 6, "media_reallocated");
  for (double now = 30; now < 200; now += 30) {
    drive.poll(now, true);
  }
  EXPECT_FALSE(drive.readings.judge(at(155), at(175)).gc);
}

TEST(DriveReadings, MediaWritesOfBeforeAPauseAreThoseBeforeTheSpike) {
  Drive drive;
  drive.poll_writes(0, 1e9, 1e9);
  for (double now = 30; now < 300; now += 30) {
    drive.poll(now, false);
  }
  drive.poll_writes(300, 1.1e9, 1.9e9);
  const auto verdict = drive.readings.judge(at(280), at(290));
  EXPECT_TRUE(verdict.gc);
  EXPECT_EQ(verdict.evidence.at(model::EvidenceKey::media_written_bytes), 0.9e9);
}

/// How far the differences of a drive's counters may be off: for counters that are rounded either way, by two units.
struct Units {
  double host_doubt;
  double media_doubt;
};
constexpr Units kIntel{2 * 32 * kMiB, 2 * 32 * kMiB};
constexpr Units kMicronClient{kDataUnit, 2 * kGiB};
constexpr Units kOcp{kDataUnit, 0};

/// Whether a spike between two readings is attributed to garbage collection, where one byte per host byte is usual.
bool is_collection(Units units, double host, double media) {
  Drive drive;
  drive.said.write_amplification.host_doubt_bytes = units.host_doubt;
  drive.said.write_amplification.media_doubt_bytes = units.media_doubt;
  drive.poll_writes(0, 1e13, 1e13);
  drive.poll_writes(30, 1e13 + host, 1e13 + media);
  return drive.readings.judge(at(10), at(20)).gc;
}

TEST(DriveReadings, AStepOfACoarseCounterIsNotCollection) {
  EXPECT_FALSE(is_collection(kIntel, 0, 32 * kMiB)) << "host and media step in different polls";
  EXPECT_FALSE(is_collection(kIntel, 64 * kMiB, 128 * kMiB));
  EXPECT_TRUE(is_collection(kIntel, 64 * kMiB, 512 * kMiB));
  EXPECT_FALSE(is_collection(kMicronClient, 0.1 * kGiB, kGiB));
  EXPECT_FALSE(is_collection(kMicronClient, 0.1 * kGiB, 2 * kGiB));
  EXPECT_TRUE(is_collection(kMicronClient, 0.1 * kGiB, 3 * kGiB));
  EXPECT_FALSE(is_collection(kOcp, 0, 0.9 * kDataUnit)) << "the host's own write, which SMART does not show yet";
  EXPECT_TRUE(is_collection(kOcp, 0, 4 * kDataUnit));
  EXPECT_TRUE(is_collection(kOcp, 1e9, 1.6e9));
}

TEST(DriveReadings, WhatIsNormalIsNotLearnedFromAFewUnits) {
  Drive drive;  // that always writes three bytes per host byte, counted in GiB
  drive.said.write_amplification.host_doubt_bytes = kMicronClient.host_doubt;
  drive.said.write_amplification.media_doubt_bytes = kMicronClient.media_doubt;
  const double host = 1000 * kGiB;
  drive.poll_writes(0, host, 3 * host);
  drive.poll_writes(30, host + 0.3 * kGiB, 3 * host);
  drive.poll_writes(60, host + 3 * kGiB, 3 * host + 9 * kGiB);
  const auto verdict = drive.readings.judge(at(40), at(50));
  EXPECT_FALSE(verdict.gc);
  EXPECT_NEAR(verdict.evidence.at(model::EvidenceKey::baseline_write_amplification), 3, 0.01);
}

/// Twenty readings, 10 s apart, of a host that writes `host` bytes per second, a fifth more in every other interval if
/// it `varies`, and of media that receive `ratio` times that plus `background` per second.
struct UsualDrive : Drive {
  UsualDrive(double host, double ratio, double background, bool varies = false) {
    poll_writes(0, host_bytes, media_bytes);
    for (int reading = 0; reading < 20; ++reading) {
      const double rate = varies && reading % 2 == 1 ? 1.2 * host : host;
      go_on(rate, ratio * rate + background);
    }
  }
  void go_on(double host, double media) {
    now += 10;
    poll_writes(now, host_bytes += 10 * host, media_bytes += 10 * media);
  }
  bool is_collection() const { return readings.judge(at(now - 8), at(now - 2)).gc; }
  double now = 0;
  double host_bytes = 1e12;
  double media_bytes = 1e12;
};

TEST(DriveReadings, AFreezeDuringSteadyBackgroundIsNotCollection) {
  for (const bool varies : {false, true}) {
    UsualDrive drive(73e3, 1, 1.7e6, varies);
    drive.go_on(30e3, 30e3 + 1.7e6);
    EXPECT_FALSE(drive.is_collection()) << varies;
    drive.go_on(0, 1.7e6);
    EXPECT_FALSE(drive.is_collection()) << "nothing is written in it";
    drive.go_on(30e3, 30e3 + 2 * 1.7e6);
    EXPECT_TRUE(drive.is_collection()) << "twice the background";
  }
}

TEST(DriveReadings, ACliffAtAConstantMediaRateIsCollection) {
  for (const bool varies : {false, true}) {
    for (const double ratio : {1.0, 1.2, 2.0}) {
      UsualDrive drive(100e6, ratio, 2e6, varies);
      drive.go_on(10e6, ratio * 100e6 + 2e6);
      EXPECT_TRUE(drive.is_collection()) << ratio;
    }
  }
  UsualDrive drive(100e6, 5, 2e6, true);
  drive.go_on(20e6, 502e6);
  EXPECT_TRUE(drive.is_collection()) << "what a byte costs is known where the load varies";
}

TEST(DriveReadings, AnHourThatWasNotUsualMovesNothing) {
  UsualDrive drive(10e6, 1.5, 1e6, true);
  for (int unseen = 0; unseen < 4; ++unseen) {
    drive.go_on(1e6, 80e6);
  }
  drive.go_on(10e6, 16e6);
  EXPECT_FALSE(drive.is_collection());
  const auto verdict = drive.readings.judge(at(drive.now - 8), at(drive.now - 2));
  EXPECT_NEAR(verdict.evidence.at(model::EvidenceKey::baseline_write_amplification), 1.5, 0.1);
}

TEST(DriveReadings, LossesOfResetCountersAreNotGarbageCollection) {
  for (const bool fell : {false, true}) {
    Drive drive;
    drive.poll_writes(0, kGiB, 2 * kGiB);
    drive.poll_writes(30, 2 * kGiB, 4 * kGiB);
    drive.said.write_amplification.epochs = fell ? 1 : 0;  // the host's counter, by most of what has been written since
    drive.poll_writes(60, 2.1 * kGiB, 6 * kGiB);
    EXPECT_EQ(drive.readings.judge(at(35), at(55)).gc, !fell);
  }
}

}  // namespace
}  // namespace ssdpulse::spikes
