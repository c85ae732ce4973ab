// SPDX-License-Identifier: Apache-2.0
// Which spikes are one incident, what it is named by, and when it has a line in the log.
#include <gtest/gtest.h>

#include "daemon/model/incident.h"
#include "daemon/spikes/spike_stage.h"

namespace ssdpulse::model {
namespace {

using namespace std::chrono_literals;
using spikes::IncidentLog;

const auto kStart = std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));

LatencySpike spike(const std::string& device, Operation operation, std::chrono::seconds begin,
                   std::chrono::seconds duration, SpikeCause cause = SpikeCause::unknown) {
  LatencySpike made;
  made.device = device;
  made.operation = operation;
  made.begin = kStart + begin;
  made.duration = duration;
  made.cause = cause;
  made.peak_seconds = 0.1;
  made.excess_seconds = 5;
  return made;
}

TEST(Incidents, SpikesThatOverlapOrFollowWithinSecondsAreOne) {
  const auto incidents = incidents_of({spike("sda", Operation::read, 0s, 20s), spike("sda", Operation::write, 12s, 10s),
                                       spike("sda", Operation::commit, 30s, 5s), spike("sda", Operation::read, 60s, 5s),
                                       spike("sdb", Operation::read, 1s, 5s)},
                                      {});
  ASSERT_EQ(incidents.size(), 3U);
  EXPECT_EQ(incidents[0].begin, kStart + 60s) << "the last one first";
  EXPECT_EQ(incidents[1].begin, kStart);
  EXPECT_EQ(incidents[1].end, kStart + 35s);
  EXPECT_EQ(incidents[1].spikes.size(), 3U);
  EXPECT_EQ(incidents[2].headline().device, "sdb");
}

TEST(Incidents, RareOutliersDoNotJoinWhatComesBeforeAndAfterThem) {
  auto rare = spike("sda", Operation::read, 0s, 600s);
  rare.evidence[model::EvidenceKey::outliers] = 5;
  const auto incidents =
      incidents_of({rare, spike("sda", Operation::write, 100s, 5s), spike("sda", Operation::write, 400s, 5s)}, {});
  EXPECT_EQ(incidents.size(), 3U);
}

TEST(Incidents, WhatGoesOnComesFirstByItsHarm) {
  auto small = spike("sdb", Operation::read, 0s, 9s);
  auto large = spike("sdc", Operation::read, 4s, 5s);
  large.excess_seconds = 50;
  const auto incidents = incidents_of({spike("sda", Operation::read, 0s, 60s)}, {small, large});
  ASSERT_EQ(incidents.size(), 3U);
  EXPECT_EQ(incidents[0].headline().device, "sdc");
  EXPECT_EQ(incidents[1].headline().device, "sdb");
  EXPECT_FALSE(incidents[2].going_on);
}

TEST(Incidents, MembersOfOneArrayAreOneGroup) {
  const DeviceGroups groups({{"md0", "sda", "md", ""},
                             {"md1", "sdc", "md", ""},
                             {"md0", "sdb", "md", ""},
                             {"dm-0", "sdb", "dm", "vg-a"},
                             {"dm-0", "sdc", "dm", "vg-a"}});
  EXPECT_EQ(groups.of("sda"), groups.of("sdb"));
  EXPECT_EQ(groups.of("sda"), groups.of("sdc")) << "by the volume over both arrays' members";
  EXPECT_NE(groups.of("sda"), groups.of("sdd"));
}

TEST(Incidents, TheCulpritIsWhoDidMoreThanUsualAndNeverForACauseWithoutSender) {
  auto storm = spike("sda", Operation::commit, 0s, 9s, SpikeCause::flush);
  storm.committers = {{"storm.service", 100, 800}};
  EXPECT_EQ(culprit_of(storm), nullptr) << "no more flushes than usual, as far as is known";
  storm.evidence[model::EvidenceKey::flushes_to_baseline] = 12;
  EXPECT_EQ(culprit_of(storm)->name, "storm.service");
  storm.committers = {{"/", 100, 800}, {"storm.service", 900, 3}};
  EXPECT_EQ(culprit_of(storm), nullptr) << "the journal's commits are nobody's";
  storm.committers.erase(storm.committers.begin());
  storm.cause = SpikeCause::gc;
  EXPECT_EQ(culprit_of(storm), nullptr);
}

class Log : public testing::Test {
 protected:
  std::vector<IncidentLog::Line> second(std::vector<LatencySpike> over, std::vector<LatencySpike> unjudged = {},
                                        std::vector<LatencySpike> going_on = {}) {
    now_ += 1s;
    return log_.observe(now_, over, unjudged, going_on, {});
  }
  IncidentLog log_;
  IncidentLog::Time now_{1h};
};

TEST_F(Log, HasOneLineForAnIncidentOnceNothingFollows) {
  second({spike("sda", Operation::read, 0s, 20s)}, {}, {spike("sda", Operation::commit, 12s, 8s)});
  for (int i = 0; i < 15; ++i) {
    const auto lines = second({}, {}, {spike("sda", Operation::commit, 12s, std::chrono::seconds(8 + i))});
    for (const auto& line : lines) {
      EXPECT_TRUE(line.goes_on);
    }
  }
  EXPECT_TRUE(second({}, {spike("sda", Operation::commit, 12s, 22s)}).empty()) << "its cause is not final";
  std::vector<IncidentLog::Line> lines;
  for (int i = 0; i < 30; ++i) {
    for (auto& line :
         second(i == 0 ? std::vector{spike("sda", Operation::commit, 12s, 22s)} : std::vector<LatencySpike>{})) {
      lines.push_back(line);
    }
  }
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_FALSE(lines[0].goes_on);
  EXPECT_EQ(lines[0].incident.spikes.size(), 2U);
}

TEST_F(Log, ReportsALongOneWhileItLasts) {
  std::vector<int> lines;
  for (int i = 1; i < 150; ++i) {
    if (!second({}, {}, {spike("sda", Operation::read, 0s, std::chrono::seconds(i))}).empty()) {
      lines.push_back(i);
    }
  }
  EXPECT_EQ(lines, (std::vector{10, 70, 130}));
}

TEST_F(Log, LeavesOutASendersOwnBacklog) {
  auto backlog = spike("sda", Operation::write, 0s, 20s, SpikeCause::queue);
  backlog.active_tenants = 2;
  backlog.heaviest = {{"batch.service", 1000}};
  backlog.slowed = {{"batch.service", 1000, 0, 5}};
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(second(i == 0 ? std::vector{backlog} : std::vector<LatencySpike>{}).empty());
  }
}

}  // namespace
}  // namespace ssdpulse::model
