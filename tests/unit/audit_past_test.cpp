// SPDX-License-Identifier: Apache-2.0
// Is the evidence of a finding what the history contains, over the time it covers? The oracle adds I/Os one by one.
#include <gtest/gtest.h>

#include <random>

#include "daemon/advice/audit.h"
#include "daemon/advice/history_evidence.h"
#include "tests/unit/audit_facts.h"

namespace ssdpulse::advice {
namespace {

using namespace std::chrono_literals;
using model::Latency;
using model::PastTime;

const PastTime kBegin{29'000'040min};

std::uint8_t word_of(double seconds) {
  std::uint8_t word = 1;
  while (model::upper_bound_seconds(word) < seconds) {
    ++word;
  }
  return word;
}

void put(model::DeviceInterval& load, Latency where, double seconds, std::uint64_t ios) {
  if (ios > 0) {
    model::add(load.latency(where), {{{word_of(seconds), ios}}, static_cast<std::uint64_t>(seconds * 1e9) * ios});
  }
}

/// A minute of reads of 1 ms, some of which overlapped a discard and took longer.
model::MinuteOf minute(std::int64_t number, double beside_seconds, std::uint64_t beside, std::uint64_t alone = 1000) {
  model::MinuteOf one{"nvme0n1", kBegin + std::chrono::minutes(number), 1min, {}};
  one.load.measured_ms = 60'000;
  put(one.load, Latency::read_device_discard, beside_seconds, beside);
  put(one.load, Latency::read_device_none, 0.001, alone);
  put(one.load, Latency::read_total, 0.001, alone);
  put(one.load, Latency::read_queue, 0.0001, alone);
  one.load.operations.at(model::index(model::Operation::discard)) = {10, 10U << 20U, 0, 0, 0};
  return one;
}

model::PastBurst burst(std::int64_t number, const char* trigger, double seconds) {
  return {kBegin + std::chrono::minutes(number), "nvme0n1", trigger, seconds, 1U << 30U};
}

model::PastSpike spike(const char* operation, const char* cause, double excess) {
  model::PastSpike one{kBegin, "nvme0n1", operation, 1, 1, 0.001, 10, cause, "", ""};
  one.excess_seconds = excess;
  return one;
}

/// 8 days: in ten minutes of each day, fstrim delays 50 reads by `fstrim_ms` each; in all other minutes the discard
/// option does the same to 2 reads, by `online_ms`.
DeviceEvidence past_of_trims(double fstrim_ms, double online_ms) {
  model::Series series;
  EvidenceSums* sums = nullptr;
  for (int day = 0; day < 8; ++day) {
    series.bursts.push_back(burst(1440 * day + 100, "fstrim", 598));
    series.bursts.back().begin += 1s;
  }
  series.bursts.push_back(burst(0, "online", 5));
  EvidenceSums all(series, 1);
  sums = &all;
  for (int i = 0; i < 8 * 1440; ++i) {
    const bool fstrim = i % 1440 >= 100 && i % 1440 < 110;
    sums->add(minute(i, 0.001 * (1 + (fstrim ? fstrim_ms : online_ms)), fstrim ? 50 : 2));
  }
  return sums->take();
}

Finding of(const std::vector<Finding>& all, const std::string& id) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Finding& one) { return one.id == id; });
  EXPECT_NE(found, all.end()) << id;
  return found == all.end() ? Finding{} : *found;
}

TEST(device_evidence, excess_during_discards_is_what_they_took_longer) {
  const DeviceEvidence past = past_of_trims(40, 3);
  EXPECT_NEAR(past.fstrim.excess_seconds, 8 * 10 * 50 * 0.040, 0.01);
  EXPECT_NEAR(past.online.excess_seconds, (8 * 1440 - 80) * 2 * 0.003, 0.01);
  EXPECT_EQ(past.fstrim.ios, 8U * 10 * 50);
  EXPECT_EQ(past.fstrim.bursts, 8U);
  EXPECT_DOUBLE_EQ(past.fstrim.longest_burst_seconds, 598);
  EXPECT_DOUBLE_EQ(past.observed_seconds(), 8 * 86400);
  ASSERT_TRUE(read_p99_during_discards(past) && read_p99_without_discards(past));
  EXPECT_NEAR(*read_p99_during_discards(past), 0.041, 0.041 * 0.1);
  EXPECT_NEAR(*read_p99_without_discards(past), 0.001, 0.001 * 0.1);
}

TEST(device_evidence, compares_within_the_minute) {
  EvidenceSums sums(model::Series{}, 1);
  model::MinuteOf busy{"nvme0n1", kBegin, 1min, {}};  // all of it is slow, with or without discards
  put(busy.load, Latency::read_device_discard, 0.1, 100);
  put(busy.load, Latency::read_device_none, 0.1, 100);
  sums.add(busy);
  sums.add(minute(1, 0.001, 0, 1'000'000));
  EXPECT_NEAR(sums.take().online.excess_seconds, 0, 1e-6);
}

TEST(device_evidence, minutes_in_which_everything_met_a_discard_are_compared_with_the_others) {
  EvidenceSums sums(model::Series{}, 1);
  sums.add(minute(0, 0.101, 100, 0));
  sums.add(minute(1, 0, 0, 1000));
  EXPECT_NEAR(sums.take().online.excess_seconds, 100 * 0.1, 0.01);
}

TEST(device_evidence, faster_during_discards_is_not_a_gain) {
  EvidenceSums sums(model::Series{}, 1);
  sums.add(minute(0, 0.0001, 500));
  EXPECT_EQ(sums.take().online.excess_seconds, 0);
}

TEST(device_evidence, what_waited_for_fstrim_and_ended_in_the_next_minute_is_charged_to_fstrim) {
  model::Series series;
  series.bursts = {burst(1, "fstrim", 59.5)};
  EvidenceSums sums(series, 1);
  sums.add(minute(1, 0, 0));
  model::MinuteOf next = minute(2, 2.001, 50);
  put(next.load, Latency::read_device_discard, 0.101, 100);  // sent after fstrim had ended
  sums.add(next);
  sums.add(minute(3, 2.001, 10));
  const DeviceEvidence past = sums.take();
  EXPECT_NEAR(past.fstrim.excess_seconds, 50 * 2, 2);
  EXPECT_EQ(past.fstrim.ios, 50U);
  EXPECT_NEAR(past.online.excess_seconds, 100 * 0.1 + 10 * 2, 2);
  EXPECT_NEAR(past.fstrim.excess_seconds + past.online.excess_seconds, 50 * 2 + 100 * 0.1 + 10 * 2, 0.01);
}

TEST(device_evidence, what_met_fstrim_in_its_first_second_may_be_in_the_minute_before) {
  model::Series series;
  series.bursts = {burst(1, "fstrim", 0.9)};
  EvidenceSums sums(series, 1);
  sums.add(minute(-1, 0.101, 5));
  sums.add(minute(0, 0.101, 50));
  sums.add(minute(1, 0.101, 1));
  const DeviceEvidence past = sums.take();
  EXPECT_EQ(past.fstrim.ios, 51U);
  EXPECT_EQ(past.online.ios, 5U);
}

TEST(device_evidence, what_spikes_cost_is_added_up_by_cause) {
  model::Series series;
  series.spikes = {spike("read", "discard", 30), spike("write", "discard", 10), spike("read", "gc", 5)};
  EvidenceSums sums(series, 1);
  sums.add(minute(0, 0, 0));
  const DeviceEvidence past = sums.take();
  EXPECT_DOUBLE_EQ(past.excess_per_day(model::Operation::read, model::SpikeCause::discard).value_or(0), 30 * 1440);
  EXPECT_DOUBLE_EQ(past.excess_per_day(model::Operation::read, model::SpikeCause::queue).value_or(1), 0);
}

TEST(device_evidence, a_scaled_clock_makes_bursts_as_long_as_it_runs_fast) {
  model::Series series;
  series.bursts = {burst(0, "fstrim", 5)};
  EvidenceSums sums(series, 60);
  for (int i = 0; i < 10; ++i) {
    sums.add(minute(i, 0.101, 10));
  }
  const DeviceEvidence past = sums.take();
  EXPECT_NEAR(past.fstrim.excess_seconds, 6 * 10 * 0.1, 0.01) << "seconds 0 to 5 are minutes";
}

TEST(device_evidence, discards_are_counted_since_the_last_change_of_what_trims) {
  model::Series series;
  for (int hour = 0; hour < 100; ++hour) {
    series.points.push_back({model::PastTime{std::chrono::hours(hour)}, {}});
    series.points.back().load.measured_ms = 3'600'000;
    series.points.back().load.operations.at(model::index(model::Operation::discard)).bytes = hour < 40 ? 1 : 0;
  }
  const auto seen = [&] {
    EvidenceSums sums(model::Series{}, 1);
    sums.add_discards(series);
    const DeviceEvidence past = sums.take();
    return std::pair(past.discards_observed_seconds / 3600, past.discarded_bytes);
  };
  const auto change = [&](int hour, const char* name, std::optional<std::string> before, const char* value) {
    series.settings.push_back({model::WallTime{std::chrono::hours(hour)}, "", name, std::move(before), value});
  };
  EXPECT_EQ(seen(), std::pair(100.0, 40.0));
  change(10, "scheduler", "none", "bfq");
  change(20, "fstrim.timer", std::nullopt, "disabled");
  change(30, "mount /data", "rw,discard", "rw,noatime,discard");
  EXPECT_EQ(seen(), std::pair(100.0, 40.0)) << "none of these changes it";
  change(30, "mount /data", "rw", "rw,discard");
  EXPECT_EQ(seen(), std::pair(70.0, 10.0));
  change(50, "fstrim.timer", "disabled", "enabled OnCalendar=weekly");
  EXPECT_EQ(seen(), std::pair(50.0, 0.0));
  change(60, "md0 discard_max_bytes", "0", "4096");
  EXPECT_EQ(seen(), std::pair(40.0, 0.0));
}

tests::MadeUpHost trimmed_twice() {
  tests::MadeUpHost host;
  host.mount().options.insert("discard");
  return host;
}

TEST(audit_past, names_both_ways_of_trimming_with_their_costs_and_drops_the_dearer) {
  for (const bool fstrim_is_dearer : {true, false}) {
    auto host = trimmed_twice();
    host.facts.evidence.emplace("nvme0n1", fstrim_is_dearer ? past_of_trims(2000, 1) : past_of_trims(10, 100));
    const Finding one = of(judge(host.facts), "F1");
    ASSERT_EQ(one.verdict, Verdict::advise) << one.why;
    EXPECT_EQ(one.change.find("fstrim.timer") != std::string::npos, fstrim_is_dearer) << one.change;
    EXPECT_NEAR(one.evidence.at("fstrim_excess_seconds_per_day"), fstrim_is_dearer ? 1000 : 5, 1);
    EXPECT_NEAR(one.evidence.at("online_excess_seconds_per_day"), fstrim_is_dearer ? 2.86 : 286, 1);
    EXPECT_NEAR(one.excess_seconds_per_day.value_or(0), fstrim_is_dearer ? 1000 : 286, 1) << "what goes";
    EXPECT_EQ(one.observer, model::Observer::history);
    EXPECT_DOUBLE_EQ(one.observed_seconds.value_or(0), 8 * 86400);
  }
}

TEST(audit_past, what_happens_once_a_week_is_weighed_after_a_week) {
  auto host = trimmed_twice();
  host.facts.enough = 24h;
  model::Series series;
  series.bursts = {burst(100, "fstrim", 600), burst(0, "online", 5)};
  EvidenceSums sums(series, 1);
  for (int i = 0; i < 2 * 1440; ++i) {
    sums.add(minute(i, 0.2, 20));
  }
  host.facts.evidence.emplace("nvme0n1", sums.take());
  const Finding one = of(judge(host.facts), "F1");
  EXPECT_EQ(one.verdict, Verdict::info);
  EXPECT_NE(one.why.find("observed for 2 d of 7 d"), std::string::npos) << one.why;
  EXPECT_TRUE(one.proof.empty());
}

TEST(audit_past, a_daemon_that_has_just_started_is_no_reason_to_wait) {
  tests::MadeUpHost host;
  host.disk().device.scheduler = "mq-deadline";
  host.disk().files.set("queue/scheduler", "none [mq-deadline]");
  host.measured_for(60);
  const auto verdict = [&] { return of(judge(host.facts), "Q1"); };
  EXPECT_EQ(verdict().verdict, Verdict::info);
  DeviceEvidence past;
  past.load.measured_ms = 2 * 86'400'000;
  put(past.load, Latency::read_total, 0.001, 1'000'000);
  put(past.load, Latency::read_queue, 0.0003, 1'000'000);
  host.facts.evidence.emplace("nvme0n1", past);
  EXPECT_EQ(verdict().verdict, Verdict::advise) << verdict().why;
  EXPECT_NEAR(verdict().evidence.at("excess_seconds_per_day"), 150, 0.1);
  EXPECT_NEAR(verdict().evidence.at("queue_time_share"), 0.3, 0.01);
  host.measured_for({});
  EXPECT_EQ(verdict().verdict, Verdict::advise) << "nor is one that does not answer";
}

TEST(audit_past, of_what_the_history_has_not_a_young_daemon_says_nothing) {
  tests::MadeUpHost host;
  host.disk().partitions[0].start_bytes = 63 * 512;
  host.measured_for(60);
  host.measured_disk().misaligned_bytes = 1e9;
  host.measured(Operation::write).bytes = 1e9;
  DeviceEvidence past;
  past.load.measured_ms = 2 * 86'400'000;
  host.facts.evidence.emplace("nvme0n1", past);
  EXPECT_EQ(of(judge(host.facts), "N2").verdict, Verdict::info) << "misaligned bytes are counted by the daemon";
}

TEST(audit_past, a_short_history_does_not_hide_what_a_daemon_has_measured_for_long) {
  tests::MadeUpHost host;
  host.disk().files.set("queue/wbt_lat_usec", "75000");
  host.excess(SpikeCause::saturation, 1000);
  DeviceEvidence past;
  past.load.measured_ms = 600'000;
  past.spikes_observed_seconds = 600;
  host.facts.evidence.emplace("nvme0n1", past);
  const Finding one = of(judge(host.facts), "Q6");
  EXPECT_EQ(one.verdict, Verdict::advise) << one.why;
  EXPECT_EQ(one.observer, model::Observer::daemon);
}

TEST(audit_past, is_read_again_after_an_hour_and_when_a_spike_has_ended) {
  EvidenceRefresh age(60min);
  const EvidenceRefresh::Time begin{100h};
  EXPECT_TRUE(age.is_due(begin, 0));
  age.was_read(begin, 7);
  EXPECT_FALSE(age.is_due(begin + 59min, 7));
  EXPECT_TRUE(age.is_due(begin + 5min, 8));
  EXPECT_TRUE(age.is_due(begin + 60min, 7));
}

TEST(audit_past, a_spike_that_goes_on_is_charged_over_the_same_time) {
  tests::MadeUpHost host;
  host.array().files.set("md/sync_action", "check");
  DeviceEvidence past;
  past.load.measured_ms = 172'800'000;
  past.spikes_observed_seconds = 172'800;
  past.excess_seconds[model::Operation::read][model::index(model::SpikeCause::saturation)] = 200;
  host.facts.evidence.emplace("nvme0n1", past);
  EXPECT_DOUBLE_EQ(of(judge(host.facts), "F17").excess_seconds_per_day.value_or(0), 100);
  host.spike_that_goes_on(SpikeCause::saturation, 60);
  EXPECT_DOUBLE_EQ(of(judge(host.facts), "F17").excess_seconds_per_day.value_or(0), 130);
}

}  // namespace
}  // namespace ssdpulse::advice
