// SPDX-License-Identifier: Apache-2.0
// Is the first line true, whatever the situation? A table of situations and the sentences that they must produce.
#include "daemon/live/why.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "daemon/live/past_spikes.h"
#include "daemon/live/words.h"

namespace ssdpulse::live {
namespace {

using model::LatencySpike;
using model::SpikeCause;
using model::SpikeOperation;
using namespace std::chrono_literals;

const model::WallTime kNow = model::WallTime(std::chrono::seconds(1'700'000'000));  // 22:13:20 UTC

LatencySpike spike(const std::string& device, SpikeCause cause, std::chrono::seconds ago,
                   std::chrono::seconds duration) {
  LatencySpike result;
  result.device = device;
  result.cause = cause;
  result.begin = kNow - ago;
  result.duration = duration;
  result.peak_seconds = 0.024;
  result.baseline_seconds = 0.002;
  result.excess_seconds = 3;
  result.ios = 100;
  return result;
}

/// A host with sda and sdb that has been measured for an hour.
struct Host {
  Host() {
    for (const char* name : {"sda", "sdb"}) {
      device(name, true);
    }
    snapshot.taken_at = kNow;
  }
  void device(const char* name, bool iostats) {
    model::Device made;
    made.name = name;
    made.iostats = iostats;
    model::DeviceSnapshot entry;
    entry.device = std::make_shared<const model::Device>(made);
    snapshot.devices.push_back(entry);
  }
  [[nodiscard]] Why ask(std::optional<model::WallTime> when = std::nullopt) const {
    return why({&snapshot, ended, bursts, since}, when);
  }

  model::Snapshot snapshot;
  std::vector<LatencySpike> ended;
  std::vector<Burst> bursts;
  std::optional<model::WallTime> since = kNow - 1h;
};

TEST(why, says_that_all_is_as_usual) {
  const Why answer = Host().ask();
  EXPECT_EQ(answer.verdict, Verdict::usual);
  EXPECT_EQ(answer.sentence, "No drive is slower than usual.");
  EXPECT_EQ(answer.next, "");
}

TEST(why, names_who_moved_most_and_who_was_slowed) {
  Host host;
  LatencySpike one = spike("sda", SpikeCause::saturation, 42s, 42s);
  one.heaviest = {{"backup.service", 1'200'000'000, 0}, {"db.service", 3'000'000, 0}};
  one.slowed = {{"db.service", 3'000'000, 3.1}};
  host.snapshot.spikes_going_on = {one};
  EXPECT_NE(host.ask().sentence.find(
                "than it can handle. backup.service moved most (1.2 GB), db.service was slowed most (by 3.1 s)."),
            std::string::npos)
      << host.ask().sentence;
  const auto sentences = evidence_sentences(one);
  EXPECT_EQ(sentences.at(1), "Most was read and written by backup.service (1.2 GB), db.service (3 MB).");
  EXPECT_EQ(sentences.at(2), "Slowed most beyond their own usual: db.service (3.1 s).");
}

TEST(why, names_drive_factor_time_cause_and_what_to_do) {
  Host host;
  host.snapshot.spikes_going_on = {spike("sda", SpikeCause::discard, 42s, 42s)};
  host.bursts = {{"sda", model::DiscardTrigger::fstrim, kNow - 43s, std::nullopt, 0}};
  const Why answer = host.ask();
  EXPECT_EQ(answer.verdict, Verdict::slow);
  EXPECT_EQ(answer.sentence,
            "sda: reads take up to 24 ms, 12 times longer than usual (2 ms), since 22:12:38 UTC (42 s), because fstrim "
            "is trimming a file system on it.");
  EXPECT_EQ(answer.next, "Let trims run in quiet hours, or in smaller pieces (discard_max_bytes).");
  EXPECT_EQ(answer.runbook, "SsdpulseTailLiftedByDiscard");
  EXPECT_EQ(answer.device, "sda");
}

TEST(why, says_of_each_cause_what_it_is) {
  const std::vector<std::pair<SpikeCause, std::string>> cases{
      {SpikeCause::discard, "because discards (trim) are in flight at the same time."},
      {SpikeCause::flush, "because flushes of its cache (fsync) are in flight at the same time."},
      {SpikeCause::gc, "because the drive is collecting garbage."},
      {SpikeCause::queue, "because requests wait on the host before they reach the drive."},
      {SpikeCause::saturation, "because the drive is given more work than it can handle."},
      {SpikeCause::thermal, "because the drive is throttling to cool down."},
      {SpikeCause::error, "because I/Os fail and are retried."},
      {SpikeCause::unknown, "for a reason that this host does not show."},
  };
  ASSERT_EQ(cases.size(), model::kSpikeCauses);
  for (const auto& [cause, words] : cases) {
    Host host;
    host.snapshot.spikes_going_on = {spike("sda", cause, 5s, 5s)};
    const Why answer = host.ask();
    EXPECT_NE(answer.sentence.find(words), std::string::npos) << answer.sentence;
    EXPECT_NE(answer.next, "");
    EXPECT_NE(answer.runbook, "");
  }
}

TEST(why, slow_commits_are_said_rather_than_their_flushes) {
  Host host;
  LatencySpike flushes = spike("sda", SpikeCause::unknown, 30s, 30s);
  flushes.operation = SpikeOperation::flush;
  flushes.excess_seconds = 4;
  LatencySpike commits = spike("sda", SpikeCause::flush, 30s, 30s);
  commits.operation = SpikeOperation::commit;
  host.snapshot.spikes_going_on = {flushes, commits};
  EXPECT_EQ(host.ask().sentence.rfind("sda: commits (fsync) take up to 24 ms", 0), 0U) << host.ask().sentence;
  host.snapshot.spikes_going_on[1].device = "sdb";
  EXPECT_EQ(host.ask().sentence.rfind("sda: flushes take up to 24 ms", 0), 0U) << "those of another drive";
  host.snapshot.spikes_going_on[1] = commits;
  host.snapshot.spikes_going_on[1].begin = kNow - 300s;
  EXPECT_EQ(host.ask().sentence.rfind("sda: flushes take up to 24 ms", 0), 0U) << "those of another time";
}

TEST(why, does_not_blame_a_burst_of_another_drive_or_time) {
  Host host;
  host.snapshot.spikes_going_on = {spike("sda", SpikeCause::discard, 5s, 5s)};
  host.bursts = {{"sdb", model::DiscardTrigger::mkfs, kNow - 5s, std::nullopt, 0},
                 {"sda", model::DiscardTrigger::blkdiscard, kNow - 60s, kNow - 50s, 0}};
  EXPECT_NE(host.ask().sentence.find("because discards (trim) are in flight"), std::string::npos);
}

TEST(why, tells_of_the_worst_and_names_the_others) {
  Host host;
  host.snapshot.spikes_going_on = {spike("sda", SpikeCause::gc, 5s, 5s), spike("sdb", SpikeCause::queue, 9s, 9s),
                                   spike("sdc", SpikeCause::gc, 9s, 9s)};
  host.snapshot.spikes_going_on[1].excess_seconds = 30;
  const Why answer = host.ask();
  EXPECT_EQ(answer.device, "sdb");
  EXPECT_NE(answer.sentence.find(" 2 other drives are slow too: sda, sdc."), std::string::npos) << answer.sentence;
  for (const char* name : {"sdd", "sde", "sdf"}) {
    host.snapshot.spikes_going_on.push_back(spike(name, SpikeCause::gc, 9s, 9s));
  }
  EXPECT_NE(host.ask().sentence.find(" 5 other drives are slow too: sda, sdc, sdd and 2 more."), std::string::npos);
  host.snapshot.spikes_going_on.resize(2);
  EXPECT_NE(host.ask().sentence.find(" Another drive is slow too: sda."), std::string::npos);
}

TEST(why, remembers_what_was_a_few_minutes_ago) {
  Host host;
  host.ended = {spike("sda", SpikeCause::flush, 300s, 60s), spike("sdb", SpikeCause::gc, 3000s, 60s)};
  const Why answer = host.ask();
  EXPECT_EQ(answer.verdict, Verdict::usual);
  EXPECT_EQ(answer.sentence,
            "No drive is slower than usual. sda was, until 4 min ago: reads took 24 ms, 12 times longer than usual "
            "(2 ms) at worst, for 60 s, because flushes of its cache (fsync) are in flight at the same time.");
}

TEST(why, does_not_say_usual_of_what_it_cannot_know) {
  Host nobody;
  nobody.snapshot.devices.clear();
  EXPECT_EQ(nobody.ask().verdict, Verdict::unknown);
  EXPECT_EQ(nobody.ask().sentence, "No drive is measured.");

  Host young;
  young.since = kNow - 4s;
  EXPECT_EQ(young.ask().sentence, "Measuring began 4 s ago: too early to say what is usual.");

  Host deaf;
  deaf.snapshot.sources = {{"block", false, "the kernel took the programs away", {}}};
  EXPECT_EQ(deaf.ask().sentence, "Nothing can be measured: the kernel took the programs away.");

  Host half;
  half.device("sdz", false);
  EXPECT_EQ(half.ask().sentence,
            "No drive is slower than usual. Nothing is known about sdz: the kernel records no times (iostats is 0).");
}

TEST(why, knows_no_factor_without_a_usual_time) {
  Host host;
  host.snapshot.spikes_going_on = {spike("sda", SpikeCause::gc, 5s, 5s)};
  host.snapshot.spikes_going_on[0].baseline_seconds = 0;
  EXPECT_EQ(host.ask().sentence.find("times longer"), std::string::npos);
}

TEST(why, answers_for_a_time_past) {
  Host host;
  host.ended = {spike("sda", SpikeCause::flush, 300s, 60s)};
  EXPECT_EQ(host.ask(kNow - 270s).verdict, Verdict::slow);
  EXPECT_EQ(host.ask(kNow - 270s).sentence,
            "sda: reads took 24 ms, 12 times longer than usual (2 ms) at worst, from 22:08:20 UTC on for 60 s, because "
            "flushes of its cache (fsync) are in flight at the same time.");
  EXPECT_EQ(host.ask(kNow - 321s).verdict, Verdict::usual);
  EXPECT_EQ(host.ask(kNow - 319s).verdict, Verdict::slow) << "it began later in that minute";
  EXPECT_EQ(host.ask(kNow - 240s).verdict, Verdict::slow) << "it ended earlier in that minute";
  EXPECT_EQ(host.ask(kNow - 200s).sentence, "No drive was slower than usual between 22:10 and 22:11 UTC.");
  EXPECT_EQ(host.ask(kNow - 200s).moment->begin, kNow - 200s);
  EXPECT_EQ(host.ask(kNow - 2h).verdict, Verdict::unknown);
  EXPECT_EQ(host.ask(kNow - 2h).moment->coverage, Coverage::out_of_range);
  EXPECT_EQ(host.ask(kNow - 2h).sentence, "Out of range: memory reaches back to 21:13:20 UTC, and no history is kept.");
  EXPECT_EQ(host.ask(kNow + 1min).sentence, "22:14:20 UTC is in the future.");
  EXPECT_EQ(host.ask(kNow + 1min).moment->coverage, Coverage::to_come);
}

TEST(why, a_spike_that_is_over_but_not_judged_is_known) {
  Host host;
  host.snapshot.spikes_unjudged = {spike("sda", SpikeCause::gc, 40s, 30s)};
  EXPECT_NE(host.ask().sentence.find("sda was, until 10 s ago: reads took 24 ms"), std::string::npos)
      << host.ask().sentence;
  EXPECT_EQ(host.ask(kNow - 20s).verdict, Verdict::slow);
}

/// 19 hours ago, as in the history: a minute of both drives.
struct LastNight : Host {
  LastNight() {
    past = model::PastMoment{};
    past->window = {minute, minute + 1min};
    past->devices = {{"sda", 60'000, 500}, {"sdb", 60'000, 0}};
    past->reach = {minute - 30h, minute - 1000h, std::nullopt};
  }
  [[nodiscard]] Why answer() const {
    Situation situation{&snapshot, ended, bursts, since};
    situation.past = past;
    return why(situation, at);
  }
  [[nodiscard]] Coverage coverage() const { return answer().moment->coverage; }

  const model::WallTime at = kNow - 19h;  // 2023-11-14 03:13:20
  const model::PastTime minute = std::chrono::floor<std::chrono::minutes>(at);
  std::optional<model::PastMoment> past;
};

TEST(why_of_the_history, says_what_the_live_line_would_have_said) {
  LastNight host;
  LatencySpike one = spike("sda", SpikeCause::discard, 0s, 42s);
  one.evidence = {{"device_share", 0.97}};
  one.heaviest = {{"backup.service", 1'200'000'000, 0}, {"vm/guest:7", 3, 0}};
  one.slowed = {{"db.service", 0, 3.1}};
  one.missing = {"no log page was read after the spike", "the queue is not known"};
  host.past->spikes = {{host.at + 5s, "sda", "read", 42, 0.024, 0.002, 100, "discard",
                        "excess_seconds=7.5 " + model::evidence_text(one), model::missing_text(one)}};
  host.past->spikes[0].excess_seconds = 7.5;
  host.past->bursts = {{host.at + 4s, "sda", "fstrim", 40, 1'000'000}};
  const Why answer = host.answer();
  EXPECT_EQ(answer.verdict, Verdict::slow);
  EXPECT_EQ(answer.sentence,
            "sda: reads took 24 ms, 12 times longer than usual (2 ms) at worst, from 03:13:25 UTC on for 42 s, because "
            "fstrim is trimming a file system on it. backup.service discarded most (1.2 GB), db.service was slowed "
            "most (by 3.1 s).");
  EXPECT_EQ(answer.next, "Let trims run in quiet hours, or in smaller pieces (discard_max_bytes).");
  EXPECT_EQ(answer.device, "sda");
  const LatencySpike read = spike_of(host.past->spikes[0]);
  EXPECT_EQ(read.excess_seconds, 7.5);
  EXPECT_EQ(read.evidence, (std::map<std::string, double>{{"device_share", 0.97}}));
  EXPECT_EQ(read.heaviest, one.heaviest);
  EXPECT_EQ(read.slowed, one.slowed);
  EXPECT_EQ(read.missing, one.missing);
}

TEST(why_of_the_history, has_the_date_of_another_day) {
  LastNight host;
  const model::WallTime before = kNow - 25h;
  Situation situation{&host.snapshot, {}, {}, host.since};
  situation.past = host.past;
  EXPECT_EQ(why(situation, before).sentence, "No drive was slower than usual between 2023-11-13 21:13 and 21:14 UTC.");
}

TEST(why_of_the_history, zero_no_data_and_out_of_range_are_three_answers) {
  LastNight host;
  EXPECT_EQ(host.answer().sentence, "No drive was slower than usual between 03:13 and 03:14 UTC.");
  EXPECT_EQ(host.coverage(), Coverage::recorded);
  host.past->devices[0].ios = 0;
  EXPECT_EQ(host.answer().sentence, "No drive had any I/O between 03:13 and 03:14 UTC.");
  EXPECT_EQ(host.coverage(), Coverage::recorded);

  host.past->devices.clear();
  host.past->recorded_until = host.minute - 5min;
  host.past->recorded_from = host.minute + 40min;
  EXPECT_EQ(host.answer().sentence,
            "No data: nothing was recorded between 03:13 and 03:14 UTC, only until 03:08:00 UTC and from 03:53:00 UTC "
            "on. The daemon was not running, or its history could not be written.");
  EXPECT_EQ(host.answer().verdict, Verdict::unknown);
  EXPECT_EQ(host.coverage(), Coverage::no_data);

  host.past->reach = {host.minute + 1h, host.minute + 1min, std::nullopt};
  EXPECT_EQ(host.answer().sentence, "Out of range: the history reaches back to 03:14:00 UTC; nothing older is kept.");
  EXPECT_EQ(host.coverage(), Coverage::out_of_range);
  host.past->reach = {};
  EXPECT_EQ(host.answer().sentence,
            "Out of range: memory reaches back to 21:13:20 UTC, and the history has nothing yet.");
}

TEST(why_of_the_history, says_which_drives_and_how_much_of_the_minute_it_does_not_have) {
  LastNight host;
  host.past->devices = {{"sda", 12'000, 500}};
  EXPECT_EQ(
      host.answer().sentence,
      "No drive was slower than usual between 03:13 and 03:14 UTC. There is no data for sdb from then. Only 12 s of "
      "that minute were measured.");
  host.past->window = {host.minute - 13min, host.minute + 47min};
  EXPECT_EQ(host.answer().moment->step, 1h);
}

TEST(why_of_the_history, memory_that_has_forgotten_spikes_does_not_say_usual) {
  LastNight host;
  Situation situation{&host.snapshot, {}, {}, kNow - 30h, kNow - 1h};
  EXPECT_EQ(why(situation, host.at).moment->coverage, Coverage::out_of_range);
}

TEST(why, evidence_is_said_in_sentences) {
  auto one = spike("sda", SpikeCause::discard, 5s, 5s);
  one.evidence = {{"device_share", 0.97}, {"load_to_usual", 1.3}, {"unheard_of", 1}};
  EXPECT_EQ(evidence_sentences(one),
            (std::vector<std::string>{"100 I/Os were slow; together they waited 3 s beyond what is usual.",
                                      "97 % of the slow time was spent in the device.",
                                      "The load was 1.3 times the usual."}));
}

TEST(words, have_the_unit_that_fits) {
  EXPECT_EQ(latency_words(0.00085), "850 us");
  EXPECT_EQ(latency_words(0.0024), "2.4 ms");
  EXPECT_EQ(latency_words(1.25), "1.2 s");
  EXPECT_EQ(duration_words(0.2), "1 s");
  EXPECT_EQ(duration_words(119), "119 s");
  EXPECT_EQ(duration_words(600), "10 min");
  EXPECT_EQ(duration_words(9000), "2 h");
  EXPECT_EQ(factor_words(1.44), "1.4 times");
  EXPECT_EQ(size_words(1.8e6), "1.8 MB");
  EXPECT_EQ(size_words(12), "12 B");
}

}  // namespace
}  // namespace ssdpulse::live
