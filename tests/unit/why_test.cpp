// SPDX-License-Identifier: Apache-2.0
// Is the first line true, whatever the situation? A table of situations and the sentences that they must produce.
#include "daemon/spikes/why.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <iostream>
#include <tuple>

#include "daemon/base/figure_text.h"
#include "daemon/model/sibling_latency.h"
#include "daemon/spikes/host_wait_words.h"
#include "daemon/spikes/past_spikes.h"
#include "daemon/spikes/sibling_words.h"
#include "daemon/spikes/spike_words.h"
#include "tests/unit/cause_words.h"

namespace ssdpulse::spikes {
namespace {

using model::EvidenceKey;
using model::LatencySpike;
using model::Operation;
using model::SpikeCause;
using namespace std::chrono_literals;

constexpr const char* kStopFstrim =
    "It can be stopped (systemctl stop fstrim.service) and run again later: in quiet hours, or in smaller pieces "
    "(discard_max_bytes).";
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
  std::vector<model::Burst> bursts;
  std::optional<model::WallTime> since = kNow - 1h;
};

TEST(why, says_that_all_is_as_usual) {
  const Why answer = Host().ask();
  EXPECT_EQ(answer.verdict, Verdict::ok);
  EXPECT_EQ(answer.sentence, "No drive is slower than usual.");
  EXPECT_EQ(answer.next, "");
}

TEST(why, has_its_sentence_in_parts) {
  const auto is_their_sum = [](const Why& answer) {
    const auto& [summary, remarks, past] = answer.parts;
    EXPECT_EQ(answer.sentence, summary + (remarks.empty() ? "" : " ") + remarks + (past.empty() ? "" : " ") + past);
    return answer.parts;
  };
  Host host;
  host.ended = {spike("sda", SpikeCause::flush, 200s, 60s)};
  model::HostSignals signals;
  signals.volumes = {{"md0", false, model::Resync{"check", 0.34, 1000}}};
  host.snapshot.host.signals = std::make_shared<const model::HostSignals>(signals);
  const auto calm = is_their_sum(host.ask());
  EXPECT_EQ(calm.summary, "No drive is slower than usual.");
  EXPECT_EQ(calm.remarks, "md0 is being checked (34 %).");
  EXPECT_EQ(calm.past.find("Earlier, at 22:10:00 UTC: sda: reads took"), 0U) << calm.past;
  LatencySpike slow = spike("sda", SpikeCause::saturation, 42s, 42s);
  slow.heaviest = {{"backup.service", 1'200'000'000}};
  host.snapshot.spikes_going_on = {slow};
  const auto ill = is_their_sum(host.ask());
  EXPECT_EQ(ill.summary.find("sda: reads take up to 24 ms"), 0U) << ill.summary;
  EXPECT_NE(ill.summary.find(", because "), std::string::npos) << ill.summary;
  EXPECT_EQ(ill.remarks.find("backup.service read"), 0U) << ill.remarks;
  EXPECT_EQ(ill.past, "") << "what is over is of no interest now";
}

TEST(why, limits_nobody_where_flushes_are_slow_and_not_more_is_written) {
  Host host;
  LatencySpike one = spike("sda", SpikeCause::flush, 42s, 42s);
  one.operation = Operation::commit;
  one.evidence = {{EvidenceKey::load_to_baseline, 0.5}, {EvidenceKey::flushes_to_baseline, 0.3}};
  host.snapshot.spikes_going_on = {one};
  EXPECT_EQ(host.ask().next.find("Check the drive: temperature"), 0U) << host.ask().next;
  one.evidence[EvidenceKey::load_to_baseline] = 2;
  host.snapshot.spikes_going_on = {one};
  EXPECT_EQ(host.ask().next.find("If much is written at the same time"), 0U) << host.ask().next;
}

TEST(why, says_whether_the_culprit_read_or_wrote) {
  Host host;
  LatencySpike one = spike("sda", SpikeCause::saturation, 42s, 42s);
  one.heaviest = {{"backup.service", 31'000'000}};
  one.slowed = {{"db.service", 3'000'000, 0, 3.1}};
  one.active_tenants = 2;
  const std::pair<double, const char*> cases[] = {
      {0, "read 31"}, {0.05, "read 31"}, {0.5, "read and wrote 31"}, {0.95, "wrote 31"}, {1, "wrote 31"}};
  for (const auto& [share, words] : cases) {
    one.evidence = {{EvidenceKey::load_to_baseline, 3}, {EvidenceKey::heaviest_written_share, share}};
    host.snapshot.spikes_going_on = {one};
    EXPECT_NE(host.ask().sentence.find(std::string("backup.service ") + words), std::string::npos) << share;
  }
}

TEST(why, a_slow_flush_is_not_supported_by_what_speaks_against_it) {
  LatencySpike one = spike("sda", SpikeCause::flush, 42s, 42s);
  one.operation = Operation::commit;
  one.evidence = {{EvidenceKey::flushes_to_baseline, 0.03},
                  {EvidenceKey::flush_to_commit, 0.15},
                  {EvidenceKey::during_flushes_share, 0.8}};
  const EvidenceWords words = evidence_words(one);
  const auto says = [](const std::vector<std::string>& lines, const std::string& part) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  EXPECT_FALSE(says(words.decided, "hardly any flushes"));
  EXPECT_FALSE(says(words.decided, "15 %"));
  EXPECT_TRUE(says(words.decided, "80 %"));
  EXPECT_TRUE(says(words.other, "hardly any flushes"));
}

TEST(why, names_who_moved_most_and_who_was_slowed) {
  Host host;
  LatencySpike one = spike("sda", SpikeCause::saturation, 42s, 42s);
  one.heaviest = {{"backup.service", 1'200'000'000}, {"db.service", 3'000'000}};
  one.slowed = {{"db.service", 3'000'000, 0, 3.1}};
  one.evidence = {{EvidenceKey::load_to_baseline, 3}};
  one.active_tenants = 2;
  host.snapshot.spikes_going_on = {one};
  const Why answer = host.ask();
  EXPECT_NE(answer.sentence.find(
                "too much load for the drive. backup.service read and wrote 1.2 GB, more than usual; db.service was "
                "slowed most (extra wait over all I/Os: reads 3.1 s)."),
            std::string::npos)
      << answer.sentence;
  EXPECT_EQ(answer.culprit, "backup.service");
  EXPECT_EQ(answer.victim, "db.service");
  EXPECT_EQ(answer.next.find(
                "Limit backup.service (systemctl set-property --runtime backup.service 'IOReadBandwidthMax=/dev/"),
            0U)
      << answer.next;
  EXPECT_EQ(next_for_culprit("Find out who calls fsync so often, and have it commit in groups.", "/db"),
            "Have /db commit in groups.");
  EXPECT_EQ(next_for_culprit("It can be stopped (systemctl stop fstrim.service).", "fstrim.service"),
            "It can be stopped (systemctl stop fstrim.service).");
  EXPECT_EQ(next_for_culprit("It can be stopped (systemctl stop fstrim.service).", "cron.service"),
            "It can be stopped (it runs in cron.service).");
  EXPECT_EQ(next_for_culprit("Limit what sends most (systemctl set-property UNIT X).", "user 1000"),
            "Limit user 1000 (systemctl set-property UNIT X).");
  const auto sentences = evidence_words(one).decided;
  EXPECT_EQ(sentences.at(1), "Read and wrote most, compared with their usual: backup.service (1.2 GB).");
  EXPECT_EQ(sentences.at(2), "Slowed most (extra wait over all their I/Os): db.service (3.1 s).");
}

TEST(why, names_no_sender_where_the_cause_has_none) {
  for (const SpikeCause cause : {SpikeCause::gc, SpikeCause::thermal, SpikeCause::error, SpikeCause::unknown}) {
    Host host;
    LatencySpike one = spike("sda", cause, 42s, 42s);
    one.heaviest = {{"innocent.service", 1'200'000'000}};
    one.slowed = {{"db.service", 3'000'000, 0, 3.1}};
    one.active_tenants = 2;
    host.snapshot.spikes_going_on = {one};
    EXPECT_EQ(host.ask().sentence.find("innocent"), std::string::npos) << host.ask().sentence;
    EXPECT_EQ(host.ask().culprit, "");
    EXPECT_EQ(host.ask().victim, "db.service");
  }
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
  EXPECT_EQ(answer.next, kStopFstrim);
  EXPECT_EQ(answer.runbook, "SsdpulseTailLiftedByDiscard");
  EXPECT_EQ(answer.device, "sda");
}

model::HostWait wait(model::HostWaitCause cause, std::chrono::seconds ago,
                     std::optional<std::chrono::seconds> ended = {}) {
  model::HostWait made{cause, "", "", "", kNow - ago};
  made.duration = ago - ended.value_or(0s);
  made.over = ended.has_value();
  made.evidence = {{"pressure_ratio", 0.81},       {"limit_per_second", 40},       {"limit_kind", 3},
                   {"dirty_bytes", 120'000'000.0}, {"dirty_threshold_bytes", 2e8}, {"available_bytes", 4096}};
  if (cause == model::HostWaitCause::cgroup_limit) {
    made.subject = "db.slice";
    made.tenant = "pg.service";
    made.device = "sda";
    made.file = "io.max";
  } else if (cause == model::HostWaitCause::suspended) {
    made.subject = "dm-3";
  } else if (cause == model::HostWaitCause::layer) {
    made.subject = "vg0-wal";
    made.device = "dm-3";
    made.evidence = {{"mean_seconds", 0.04},
                     {"own_seconds", 0.039},
                     {"baseline_own_seconds", 0.0002},
                     {"operation", static_cast<double>(index(model::Operation::write))},
                     {"layer_kind", static_cast<double>(model::LayerKind::crypt)}};
  } else if (cause == model::HostWaitCause::full || cause == model::HostWaitCause::frozen) {
    made.subject = "/srv/pg";
    made.command = cause == model::HostWaitCause::frozen ? "fsfreeze" : "";
  }
  return made;
}

TEST(why_above_the_drives, each_cause_has_its_sentence_and_something_to_do) {
  Host host;
  host.snapshot.memberships = {{"dm-3", "sda", "dm", "vg0-wal"}};
  host.snapshot.filesystems = {{"sda", "/srv/wal", "ext4", false, {"dm-3"}}};
  host.snapshot.layers = {{"dm-3", "vg0-wal", model::LayerKind::crypt, {"sda"}}};
  const std::map<model::HostWaitCause, std::string> sentences{
      {model::HostWaitCause::suspended,
       "/srv/wal (vg0-wal, dm-3) is suspended, and all I/O to it waits, since 22:13:08 UTC (12 s)."},
      {model::HostWaitCause::frozen,
       "/srv/pg is frozen by fsfreeze, and whoever writes to it waits, since 22:13:08 UTC (12 s)."},
      {model::HostWaitCause::full,
       "/srv/pg is full: 4.1 kB are left, and larger writes fail, since 22:13:08 UTC (12 s)."},
      {model::HostWaitCause::cgroup_limit,
       "pg.service is held at its limit of 40 writes a second on /srv/wal (vg0-wal on sda) (io.max of db.slice); it "
       "waits "
       "for I/O 81 % of the time, since 22:13:08 UTC (12 s). No drive is slow."},
      {model::HostWaitCause::layer,
       "Of 40 ms that writes on /srv/wal (vg0-wal, dm-3) take, at least 39 ms are spent in the crypt layer itself, not "
       "in what "
       "is "
       "below (usually 200 us), since 22:13:08 UTC (12 s). No drive is slow."},
      {model::HostWaitCause::dirty_throttling,
       "The kernel holds up whoever writes to files, until the drives have caught up: 120 MB are dirty or being "
       "written "
       "back, of 200 MB allowed, since 22:13:08 UTC (12 s). No drive is slow."},
      {model::HostWaitCause::pressure,
       "Tasks wait for I/O 81 % of the time, and no disk of this host explains it, since 22:13:08 UTC (12 s). "
       "No "
       "drive is slow."}};
  ASSERT_EQ(sentences.size(), model::kHostWaitCauses);
  for (const auto& [cause, sentence] : sentences) {
    host.snapshot.host.waits = {wait(cause, 12s)};
    const Why answer = host.ask();
    EXPECT_EQ(answer.sentence, sentence);
    EXPECT_EQ(answer.verdict, Verdict::slow);
    EXPECT_EQ(answer.when, When::now);
    EXPECT_FALSE(answer.next.empty());
    EXPECT_EQ(answer.runbook, "SsdpulseIoHeldUp");
  }
}

TEST(why_above_the_drives, what_stops_all_io_comes_before_a_slow_drive_and_what_only_holds_back_behind_it) {
  Host host;
  host.snapshot.spikes_going_on = {spike("sdb", SpikeCause::gc, 9s, 9s)};
  host.snapshot.host.waits = {wait(model::HostWaitCause::cgroup_limit, 12s)};
  EXPECT_EQ(host.ask().device, "sdb");
  EXPECT_FALSE(host.ask().wait);
  host.snapshot.host.waits.push_back(wait(model::HostWaitCause::suspended, 12s));
  EXPECT_EQ(host.ask().wait->subject, "dm-3");
  EXPECT_NE(host.ask().sentence.find(" A drive is slow too: sdb."), std::string::npos) << host.ask().sentence;
}

TEST(why_above_the_drives, a_layer_comes_before_drives_that_do_not_explain_how_slow_it_is) {
  using Times = std::vector<std::optional<model::WallTime>>;
  Host host;
  model::HostWait layer = wait(model::HostWaitCause::layer, 12s);  // 39 ms of its own
  layer.evidence["operation"] = static_cast<double>(index(model::Operation::read));
  layer.evidence["layer_kind"] = static_cast<double>(model::LayerKind::crypt);
  host.snapshot.host.waits = {wait(model::HostWaitCause::cgroup_limit, 12s), layer};
  const auto named_beside = [&](std::vector<LatencySpike> spikes, const std::optional<model::WallTime>& at) {
    host.snapshot.spikes_going_on = std::move(spikes);
    return host.ask(at).device;
  };
  LatencySpike slow = spike("sdb", SpikeCause::gc, 9s, 9s), slower = spike("sda", SpikeCause::gc, 9s, 9s);
  slow.peak_seconds = 0.012;
  slower.peak_seconds = 0.014;
  LatencySpike still = slow, failing = slow;
  still.evidence[EvidenceKey::longest_device_standstill_seconds] = 4;
  failing.evidence[EvidenceKey::requeues] = 1;
  for (const auto& at : Times{{}, kNow - 5s}) {
    EXPECT_EQ(named_beside({slow}, at), "dm-3");
    EXPECT_EQ(named_beside({slow, slower}, at).substr(0, 2), "sd");
    EXPECT_EQ(named_beside({still}, at), "sdb");
    EXPECT_EQ(named_beside({failing}, at), "sdb");
  }
  named_beside({slow}, {});
  EXPECT_NE(host.ask().sentence.find(" A drive is slow too: sdb."), std::string::npos) << host.ask().sentence;
  EXPECT_NE(host.ask(kNow - 5s).sentence.find(" A drive was slow too: sdb."), std::string::npos);
  for (const auto& [key, value] :
       std::map<const char*, double>{{"operation", static_cast<double>(index(model::Operation::write))},
                                     {"layer_kind", static_cast<double>(model::LayerKind::raid1)}}) {
    host.snapshot.host.waits = {layer};
    host.snapshot.host.waits[0].evidence[key] = value;
    EXPECT_EQ(named_beside({slow}, {}), "sdb") << "that is from before the drive was slow";
  }
}

TEST(why_above_the_drives, a_file_system_that_will_soon_be_full_is_mentioned) {
  Host host;
  model::HostSignals signals;
  signals.rooms = {{"/srv/pg", 1ULL << 40, 3'600'000'000, 0, 0}};
  host.snapshot.host.signals = std::make_shared<const model::HostSignals>(signals);
  EXPECT_EQ(host.ask().sentence, "No drive is slower than usual.");
  host.snapshot.host.filling_bytes_per_second = {{"/srv/pg", 1e6}};
  EXPECT_EQ(host.ask().sentence, "No drive is slower than usual. /srv/pg will be full in 60 min at this rate.");
  host.snapshot.host.filling_bytes_per_second = {{"/srv/pg", 1e5}};
  EXPECT_EQ(host.ask().sentence, "No drive is slower than usual.") << "in ten hours";
}

TEST(why_above_the_drives, what_the_history_keeps_of_a_wait_is_the_same_wait) {
  const model::PastWait past{kNow,          "frozen", "/srv/pg", "", "", 12.5, "available_bytes=4096 command=qemu-ga",
                             "freeze_super"};
  const auto wait = wait_of(past);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->cause, model::HostWaitCause::frozen);
  EXPECT_EQ(wait->command, "qemu-ga");
  EXPECT_EQ(wait->evidence, (std::map<std::string, double>{{"available_bytes", 4096}}));
  EXPECT_EQ(host_wait_words(*wait, {}, Tense::past).what,
            "/srv/pg was frozen by qemu-ga, and whoever wrote to it waited");
  model::PastWait other = past;
  other.cause = "of a later version";
  EXPECT_FALSE(wait_of(other));
}

TEST(why_above_the_drives, a_wait_concerns_the_disks_below_it) {
  model::Snapshot now;
  now.memberships = {{"dm-3", "sda", "dm", "vg0-wal"}};
  now.filesystems = {{"sda", "/srv/wal", "ext4", false, {"dm-3"}}};
  for (const auto& [cause, subject, device] : std::vector<std::tuple<model::HostWaitCause, const char*, const char*>>{
           {model::HostWaitCause::suspended, "dm-3", ""},
           {model::HostWaitCause::layer, "vg0-wal", "dm-3"},
           {model::HostWaitCause::frozen, "/srv/wal", ""},
           {model::HostWaitCause::full, "/srv/wal", ""},
           {model::HostWaitCause::cgroup_limit, "db.slice", "sda"},
           {model::HostWaitCause::cgroup_limit, "db.slice", "dm-3"}}) {
    const model::HostWait one{cause, subject, device, "", kNow};
    EXPECT_TRUE(concerns(one, "sda", now)) << subject;
    EXPECT_FALSE(concerns(one, "sdb", now)) << subject;
  }
  EXPECT_TRUE(concerns({model::HostWaitCause::pressure, "", "", "", kNow}, "sdb", now));
}

TEST(why_above_the_drives, what_ended_last_is_spoken_of) {
  Host host;
  Situation situation{&host.snapshot, {spike("sda", SpikeCause::flush, 200s, 60s)}, {}, host.since};
  situation.ended_waits = {wait(model::HostWaitCause::suspended, 50s, 30s)};
  EXPECT_EQ(why(situation).sentence,
            "No drive is slower than usual. From 22:12:30 UTC until 30 s ago: dm-3 was suspended, and all I/O to it "
            "waited, for 20 s.");
  situation.ended_waits = {wait(model::HostWaitCause::suspended, 400s, 300s)};
  EXPECT_NE(why(situation).sentence.find("Earlier, at 22:10:00 UTC: sda"), std::string::npos)
      << why(situation).sentence;
  situation.ended.clear();
  EXPECT_EQ(
      why(situation).sentence,
      "No drive is slower than usual. Earlier, at 22:06:40 UTC: dm-3 was suspended, and all I/O to it waited, for "
      "100 s.");
  EXPECT_EQ(why(situation, kNow - 350s).sentence,
            "dm-3 was suspended, and all I/O to it waited, from 22:06:40 UTC for 100 s.");
}

TEST(why_above_the_drives, a_rebuild_and_a_busy_drive_are_said_before_anything_is_slow) {
  Host host;
  model::HostSignals signals;
  signals.volumes = {{"md0", false, model::Resync{"check", 0.34, 1000}}};
  host.snapshot.host.signals = std::make_shared<const model::HostSignals>(signals);
  host.snapshot.memberships = {{"md0", "sda", "md", ""}};
  host.snapshot.devices[1].utilisation = {100, 0.954};
  EXPECT_EQ(host.ask().sentence,
            "No drive is slower than usual. sdb is busy 95 % of the time. md0 is being checked (34 %).");
  host.snapshot.spikes_going_on = {spike("sda", SpikeCause::saturation, 9s, 9s)};
  EXPECT_NE(host.ask().sentence.find(" md0, which it is part of, is being checked (34 %)."), std::string::npos);
}

TEST(why_above_the_drives, a_slow_member_is_named_with_its_array) {
  Host host;
  host.snapshot.spikes_going_on = {spike("sda", SpikeCause::unknown, 9s, 9s)};
  const auto says = [&] { return host.ask().sentence.find("It is one of the 2 drives of md0.") != std::string::npos; };
  host.snapshot.memberships = {{"md0", "sda", "md", ""}};
  EXPECT_FALSE(says()) << "it is alone";
  host.snapshot.memberships = {
      {"dm-0", "sda", "dm", "vg0"}, {"dm-0", "sdb", "dm", "vg0"}, {"md0", "sda", "md", ""}, {"md0", "sdb", "md", ""}};
  EXPECT_TRUE(says());
  host.snapshot.memberships = {{"md0", "sdb", "md", ""}, {"md0", "sdc", "md", ""}};
  EXPECT_FALSE(says()) << "it is no member";
}

TEST(why_above_the_drives, the_layer_that_adds_the_time_is_named_if_that_is_much) {
  Host host;
  host.snapshot.layers = {{"dm-3", "vg0-data", model::LayerKind::crypt, {"sda1"}}};
  host.snapshot.volumes = {{"sda1", 8, 1, "sda", true}};
  const auto ask = [&](double mean, double own, bool exact) {
    model::VolumeFigures figures;
    figures.floors = {{{"dm-3"}, {"sda1"}, Operation::write, 1000, mean, own, exact}};
    host.snapshot.volume_figures = std::make_shared<const model::VolumeFigures>(figures);
    return host.ask().sentence;
  };
  EXPECT_EQ(ask(0.0024, 0.0021, true),
            "No drive is slower than usual. Of 2.4 ms that writes on vg0-data (dm-3) take, 2.1 ms are spent in the "
            "crypt layer "
            "itself, not in what is below.");
  EXPECT_NE(ask(0.0024, 0.0021, false).find(" take, at least 2.1 ms are spent in the crypt layer"), std::string::npos);
  EXPECT_EQ(ask(0.0024, 0.0011, true), "No drive is slower than usual.") << "most of it is spent below";
  EXPECT_EQ(ask(0.0009, 0.0008, true), "No drive is slower than usual.") << "little time";
}

/// sda, sdb, sdc and sdd are alike, and some are slow.
struct Siblings : Host {
  Siblings() {
    snapshot.devices.clear();
    for (const char* name : {"sda", "sdb", "sdc", "sdd"}) {
      drive(name, "F1", 40, 0.1, 0);
    }
  }
  void drive(const std::string& name, const char* firmware, double celsius, double used, double media_errors) {
    const std::string controller = "nvme-" + name;
    std::erase_if(snapshot.nvme_drives, [&](const auto& one) { return one.identity->controller == controller; });
    std::erase_if(snapshot.devices, [&](const auto& one) { return one.device->name == name; });
    model::Device device;
    device.name = name;
    device.firmware = firmware;
    snapshot.devices.emplace_back().device = std::make_shared<const model::Device>(device);
    model::NvmeIdentity identity;
    identity.controller = controller;
    identity.namespaces = {{name, 1}};
    model::NvmeDrive& made = snapshot.nvme_drives.emplace_back();
    made.identity = std::make_shared<const model::NvmeIdentity>(identity);
    made.values = {{model::NvmeField::temperature_celsius, "composite", celsius},
                   {model::NvmeField::percentage_used_ratio, "", used},
                   {model::NvmeField::media_errors, "", media_errors}};
  }
  std::string says(std::vector<model::SiblingRatio> ratios) {
    model::SiblingFigures figures;
    figures.ratios = std::move(ratios);
    snapshot.siblings = std::make_shared<const model::SiblingFigures>(figures);
    return ask().sentence;
  }
};

model::SiblingRatio sibling(const char* device, double ratio, std::vector<std::string> others, bool slow = true) {
  return {device,         Operation::read, "md0", model::SiblingKind::array, ratio, ratio - 0.2, ratio + 0.2,
          0.0001 * ratio, 0.0001,          slow,  std::move(others)};
}

TEST(why_siblings, names_the_slow_one_and_what_is_the_same) {
  Siblings host;
  EXPECT_EQ(
      host.says({sibling("sdd", 4, {"sda", "sdb", "sdc"})}),
      "No drive is slower than usual. sdd is 4.0 times slower than its 3 siblings in md0 at equal load (reads take "
      "400 us, theirs 100 us); firmware, temperature and wear are the same.");
  EXPECT_EQ(host.ask().next, kSiblingNext);
  EXPECT_EQ(host.ask().runbook, kSiblingRunbook);
  EXPECT_EQ(host.says({sibling("sdd", 4, {}, false)}), "No drive is slower than usual.") << "no claim";
}

TEST(why_siblings, says_with_how_many_it_was_compared) {
  Siblings host;
  model::SiblingFigures figures{.groups = {{"md0", model::SiblingKind::array, {"sda", "sdb", "sdc", "sdd"}}},
                                .ratios = {sibling("sdd", 4, {"sda", "sdb"})}};
  host.snapshot.siblings = std::make_shared<const model::SiblingFigures>(figures);
  EXPECT_NE(host.ask().sentence.find(" sdd is 4.0 times slower than 2 of its siblings in md0 at"), std::string::npos);
  figures.ratios[0].siblings.emplace_back("sdc");
  host.snapshot.siblings = std::make_shared<const model::SiblingFigures>(figures);
  EXPECT_NE(host.ask().sentence.find(" sdd is 4.0 times slower than its 3 siblings in md0 at"), std::string::npos);
}

TEST(why_siblings, come_next_once_an_incident_is_over) {
  Siblings host;
  host.says({sibling("sdd", 4, {"sda", "sdb", "sdc"})});
  Situation situation{&host.snapshot, {}, {}, host.since};
  situation.ended = {spike("sda", SpikeCause::unknown, 5min, 42s)};
  EXPECT_EQ(why(situation).runbook, kSiblingRunbook);
  EXPECT_NE(why(situation).sentence.find("Earlier, at "), std::string::npos);
  situation.ended.clear();
  situation.ended_waits = {wait(model::HostWaitCause::layer, 50s, 30s)};
  EXPECT_EQ(why(situation).next, kSiblingNext);
  host.says({});
  EXPECT_NE(why(situation).next, kSiblingNext);
}

TEST(why_siblings, says_what_differs_and_nothing_of_what_is_not_known) {
  Siblings host;
  const std::vector<model::SiblingRatio> slow{sibling("sdd", 4, {"sda", "sdb", "sdc"})};
  const auto rest = [&] {
    const std::string sentence = host.says(slow);
    return sentence.substr(sentence.find(')') + 1);
  };
  host.drive("sdd", "F0", 54, 0.6, 12);
  EXPECT_EQ(rest(),
            "; its firmware is F0, theirs F1, it is 14 °C warmer, 60 % of its life is used up, 10 % of theirs, "
            "it has 12 media errors.");
  host.drive("sdd", "F1", 54, 0.15, 0);
  EXPECT_EQ(rest(), "; firmware and wear are the same, but it is 14 °C warmer.");
  host.drive("sdb", "F2", 40, 0.1, 0);
  EXPECT_EQ(rest(), "; wear is the same, but it is 14 °C warmer.") << "the others' firmware differs among them";
  host.snapshot.nvme_drives.clear();
  EXPECT_EQ(rest(), ".");
}

TEST(why_siblings, names_all_of_a_group_and_prefers_arrays) {
  Siblings host;
  host.snapshot.nvme_drives.clear();
  auto of_model = sibling("sdc", 9, {"sda", "sdb"});
  of_model.kind = model::SiblingKind::model;
  of_model.group = "model";
  const std::string sentence =
      host.says({of_model, sibling("sdc", 2, {"sda", "sdb"}), sibling("sdd", 3, {"sda", "sdb"})});
  EXPECT_NE(sentence.find(" sdd is 3.0 times slower than its 2 siblings in md0"), std::string::npos) << sentence;
  EXPECT_TRUE(sentence.ends_with(" So is sdc (2.0 times).")) << sentence;
  EXPECT_NE(host.says({of_model}).find(" sdc is 9.0 times slower than 2 others of its model"), std::string::npos);
}

TEST(why_siblings, belong_to_the_slow_time_of_their_drive) {
  Siblings host;
  host.says({sibling("sdd", 4, {"sda", "sdb", "sdc"})});
  host.snapshot.spikes_going_on = {spike("sda", SpikeCause::unknown, 42s, 42s)};
  EXPECT_EQ(host.ask().sentence.find("siblings"), std::string::npos) << "another drive's";
  host.snapshot.spikes_going_on = {spike("sdd", SpikeCause::unknown, 42s, 42s)};
  EXPECT_NE(host.ask().sentence.find(" sdd is 4.0 times slower than its 3 siblings"), std::string::npos);
}

TEST(why_above_the_drives, a_layer_that_was_slow_is_said_once_and_by_the_name_it_had) {
  Host host;
  host.snapshot.layers = {{"dm-3", "vg0-other", model::LayerKind::lvm, {"sda"}}};
  model::VolumeFigures figures;
  figures.floors = {{{"dm-3"}, {"sda"}, Operation::write, 1000, 0.04, 0.039, true}};
  host.snapshot.volume_figures = std::make_shared<const model::VolumeFigures>(figures);
  Situation situation{&host.snapshot, {}, {}, host.since};
  situation.ended_waits = {wait(model::HostWaitCause::layer, 50s, 30s)};
  EXPECT_EQ(why(situation).sentence,
            "No drive is slower than usual. From 22:12:30 UTC until 30 s ago: of 40 ms that writes on vg0-wal took, at "
            "least 39 ms were spent in the crypt layer itself, not in what is below (usually 200 us), for 20 s.");
}

/// The whole table: what is said of each operation with each cause and each load says what it must.
TEST(explanations, are_one_for_each_operation_cause_and_load) {
  std::string printed;
  for (const Operation operation : model::kSpikeOperations) {
    for (std::size_t cause = 0; cause < model::kSpikeCauses; ++cause) {
      for (std::size_t load = 0; load < model::kLoads; ++load) {
        LatencySpike one = spike("sda", static_cast<SpikeCause>(cause), 5s, 5s);
        one.operation = operation;
        one.evidence = {{EvidenceKey::device_share, load == 0 ? 1.0 : 0.5},
                        {EvidenceKey::load_to_baseline, load == 0 ? 1.0 : 3.0},
                        {EvidenceKey::flushes_to_baseline, load == 0 ? 1.0 : 3.0},
                        {load == 0 ? EvidenceKey::requeues : EvidenceKey::errors, 3}};
        ASSERT_EQ(static_cast<std::size_t>(load_of(one)), load);
        const Explanation now = explain(one, {}, Tense::present);
        const Explanation then = explain(one, {}, Tense::past);
        const test::CauseWords& words = test::kCauseWords.at(cause);
        const std::string_view wanted = load == 0 ? words.usual : words.more;
        EXPECT_NE(now.because.find(wanted), std::string::npos) << now.because;
        for (const std::string& text : {now.because, then.because}) {
          EXPECT_EQ(text.find_first_of("[]|"), std::string::npos) << text;
        }
        EXPECT_FALSE(now.next.empty());
        EXPECT_FALSE(now.runbook.empty());
        // A commit is a flush: it is never told that flushes are in flight beside it.
        const bool of_flushes = operation == Operation::flush || operation == Operation::commit;
        EXPECT_FALSE(of_flushes && now.because.find("in flight") != std::string::npos && cause != 0) << now.because;
        EXPECT_FALSE(of_flushes && one.cause == SpikeCause::flush && now.runbook != "SsdpulseCommitsSlow");
        // Who sends too many fsyncs is only asked where there are more.
        const bool asks = now.next.find("who calls fsync") != std::string::npos;
        EXPECT_EQ(asks, one.cause == SpikeCause::flush && load == 1) << now.next;
        // Nor is more load or an error claimed where there is none.
        EXPECT_FALSE(load == 0 && now.because.find("too much load") != std::string::npos);
        EXPECT_FALSE(load == 0 && now.because.find("fail") != std::string::npos);
        printed += fmt::format("{:6} {:10} {:5} | {} | {} | {}\n", name(operation), model::kSpikeCauseNames[cause],
                               load == 0 ? "usual" : "more", now.because, now.next, now.runbook);
      }
    }
  }
  if (const char* print = std::getenv("SSDPULSE_TEST_PRINT"); print != nullptr) {
    std::cout << printed;
  }
}

TEST(explanations, one_error_is_a_failure_and_one_repetition_is_not) {
  LatencySpike one = spike("sda", SpikeCause::error, 5s, 5s);
  for (const auto& [key, fails] :
       {std::pair(EvidenceKey::errors, true), {EvidenceKey::other_errors, true}, {EvidenceKey::requeues, false}}) {
    one.evidence = {{key, 1}};
    const std::string because = explain(one, {}, Tense::present).because;
    EXPECT_EQ(because.find("I/Os fail") != std::string::npos, fails) << because;
  }
}

TEST(explanations, of_an_unknown_cause_say_what_could_not_be_known) {
  LatencySpike one = spike("sda", SpikeCause::unknown, 5s, 5s);
  one.missing = {"no log page was read", "the queue is not known"};
  std::string because = explain(one, {}, Tense::present).because;
  EXPECT_TRUE(because.ends_with(" (no log page was read; the queue is not known)")) << because;
  one.cause = SpikeCause::gc;
  because = explain(one, {}, Tense::present).because;
  EXPECT_EQ(because.find("the queue is not known"), std::string::npos) << because;
}

TEST(why, slow_commits_are_said_rather_than_their_flushes) {
  Host host;
  LatencySpike flushes = spike("sda", SpikeCause::flush, 30s, 30s);
  flushes.operation = Operation::flush;
  flushes.excess_seconds = 4;
  LatencySpike commits = spike("sda", SpikeCause::flush, 30s, 30s);
  commits.operation = Operation::commit;
  host.snapshot.spikes_going_on = {flushes, commits};
  EXPECT_EQ(host.ask().sentence.rfind("sda: commits (fsync) take up to 24 ms", 0), 0U) << host.ask().sentence;
  host.snapshot.spikes_going_on[1].device = "sdb";
  EXPECT_EQ(host.ask().sentence.rfind("sda: flushes take up to 24 ms", 0), 0U) << "those of another drive";
  host.snapshot.spikes_going_on[1] = commits;
}

TEST(why, does_not_blame_a_burst_of_another_drive_or_time) {
  Host host;
  host.snapshot.spikes_going_on = {spike("sda", SpikeCause::discard, 5s, 5s)};
  host.bursts = {{"sdb", model::DiscardTrigger::mkfs, kNow - 5s, std::nullopt, 0},
                 {"sda", model::DiscardTrigger::blkdiscard, kNow - 60s, kNow - 50s, 0}};
  EXPECT_NE(host.ask().sentence.find("because discards (trim) are in flight"), std::string::npos);
}

TEST(why, describes_the_worst_and_names_the_others) {
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

TEST(why, says_what_ended_just_now_and_what_was_earlier) {
  Host host;
  host.ended = {spike("sda", SpikeCause::flush, 90s, 60s), spike("sdb", SpikeCause::gc, 3000s, 60s)};
  Why answer = host.ask();
  EXPECT_EQ(answer.verdict, Verdict::ok);
  EXPECT_EQ(answer.when, When::ended);
  EXPECT_EQ(
      answer.sentence,
      "No drive is slower than usual. sda was slow from 22:11:50 UTC until 30 s ago: reads took up to 24 ms, 12 times "
      "longer than "
      "usual (2 ms), for 60 s, because flushes of the drive's cache (fsync) took up more of the time than usual, and "
      "held up other I/O.");
  EXPECT_NE(answer.next, "");
  host.ended[0] = spike("sda", SpikeCause::flush, 300s, 60s);
  answer = host.ask();
  EXPECT_EQ(answer.when, When::earlier);
  EXPECT_EQ(answer.sentence.rfind("No drive is slower than usual. Earlier, at 22:08:20 UTC: sda: reads took up to", 0),
            0U)
      << answer.sentence;
  EXPECT_EQ(answer.next, "") << "nothing is to be done about it now";
}

TEST(why, the_last_incident_is_named_however_much_an_earlier_one_cost) {
  Host host;
  LatencySpike batch = spike("sda", SpikeCause::saturation, 140s, 41s);
  batch.excess_seconds = 1300;
  LatencySpike trim = spike("sda", SpikeCause::discard, 39s, 33s);
  host.ended = {batch, trim};
  EXPECT_NE(host.ask().sentence.find("sda was slow from 22:12:41 UTC until 6 s ago"), std::string::npos)
      << host.ask().sentence;
  EXPECT_EQ(host.ask().incident->headline().cause, SpikeCause::discard);
  host.snapshot.spikes_going_on = {spike("sdb", SpikeCause::unknown, 5s, 5s)};
  EXPECT_EQ(host.ask().device, "sdb") << "what goes on comes first";
}

TEST(why, a_senders_own_backlog_is_not_an_incident) {
  Host host;
  LatencySpike batch = spike("sda", SpikeCause::saturation, 41s, 41s);
  batch.operation = Operation::write;
  batch.heaviest = {{"etl-batch.service", 1'200'000'000}};
  batch.slowed = {{"etl-batch.service", 1'200'000'000, 0, 1300}};
  batch.active_tenants = 2;
  host.snapshot.spikes_going_on = {batch};
  EXPECT_EQ(host.ask().verdict, Verdict::ok);
  EXPECT_EQ(host.ask().sentence,
            "No drive is slower than usual. etl-batch.service keeps sda busy, and slows nobody else.");
  batch.slowed.push_back({"db.service", 0, 0, 40});
  host.snapshot.spikes_going_on = {batch};
  EXPECT_EQ(host.ask().verdict, Verdict::slow) << "it slows somebody else";
  EXPECT_EQ(host.ask().victim, "db.service");
  batch.slowed.pop_back();
  batch.active_tenants = 1;
  host.snapshot.spikes_going_on = {batch};
  EXPECT_EQ(host.ask().verdict, Verdict::ok) << "write-back of one tenant alone";
  batch.operation = Operation::commit;
  host.snapshot.spikes_going_on = {batch};
  EXPECT_EQ(host.ask().verdict, Verdict::slow) << "its own commits";
}

TEST(why, the_headline_is_the_operation_in_which_somebody_else_waited) {
  Host host;
  LatencySpike flood = spike("sda", SpikeCause::saturation, 30s, 30s);
  flood.operation = Operation::write;
  flood.excess_seconds = 900;
  flood.active_tenants = 2;
  flood.heaviest = {{"flood.service", 1'000'000'000}};
  flood.slowed = {{"flood.service", 0, 0, 800}, {"db.service", 0, 0, 24}};
  LatencySpike reads = flood;
  reads.operation = Operation::read;
  reads.excess_seconds = 224;
  reads.slowed = {{"db.service", 0, 0, 224}};
  host.snapshot.spikes_going_on = {flood, reads};
  const Why answer = host.ask();
  EXPECT_EQ(answer.sentence.rfind("sda: reads take up to", 0), 0U) << answer.sentence;
  EXPECT_NE(answer.sentence.find("db.service was slowed most (extra wait over all I/Os: reads 224 s, writes 24 s)"),
            std::string::npos)
      << answer.sentence;
  EXPECT_EQ(answer.incident->spikes.size(), 2U);
}

TEST(why, the_systems_own_load_is_nobodys_else) {
  Host host;
  LatencySpike one = spike("sda", SpikeCause::saturation, 42s, 42s);
  one.heaviest = {{"/", 10'000'000'000}, {"db.service", 3'000'000}};
  one.slowed = {{"db.service", 3'000'000, 0, 3.1}};
  one.active_tenants = 2;
  host.snapshot.spikes_going_on = {one};
  EXPECT_EQ(host.ask().verdict, Verdict::slow) << "db.service waits";
  EXPECT_EQ(host.ask().culprit, "") << "for the root, which stands for nobody";
  EXPECT_EQ(host.ask().victim, "db.service");
}

TEST(why, a_hang_comes_before_what_is_somewhat_slower) {
  Host host;
  LatencySpike hang = spike("sdb", SpikeCause::unknown, 11s, 11s);
  hang.excess_seconds = 0;
  hang.evidence = {{EvidenceKey::standstill_seconds, 11},
                   {EvidenceKey::standstill_waited_seconds, 110},
                   {EvidenceKey::device_standstill_seconds, 11}};
  host.snapshot.spikes_going_on = {spike("sda", SpikeCause::gc, 30s, 30s), hang};
  EXPECT_EQ(host.ask().device, "sdb") << host.ask().sentence;
}

TEST(why, members_of_an_array_and_operations_of_a_drive_are_one_incident) {
  Host host;
  host.snapshot.memberships = {{"md0", "sda", "md", ""}, {"md0", "sdb", "md", ""}};
  LatencySpike reads = spike("sda", SpikeCause::discard, 33s, 20s);
  LatencySpike commits = spike("sdb", SpikeCause::discard, 14s, 8s);
  commits.operation = Operation::commit;
  host.ended = {reads, commits};
  const Why answer = host.ask();
  EXPECT_EQ(answer.incident->spikes.size(), 2U);
  EXPECT_EQ(answer.incident->begin, reads.begin);
  EXPECT_EQ(answer.incident->end, commits.begin + 8s);
  host.snapshot.memberships.clear();
  EXPECT_EQ(host.ask().incident->spikes.size(), 1U) << "drives that have nothing in common";
}

TEST(why, says_that_nothing_completes) {
  Host host;
  LatencySpike reads = spike("sda", SpikeCause::unknown, 11s, 11s);
  reads.evidence = {{EvidenceKey::standstill_seconds, 11},
                    {EvidenceKey::longest_standstill_seconds, 11},
                    {EvidenceKey::device_standstill_seconds, 11}};
  LatencySpike commits = reads;
  EXPECT_EQ(short_words(reads), "nothing completes");
  LatencySpike trimmed = reads;
  trimmed.cause = SpikeCause::discard;
  trimmed.heaviest = {{"fstrim.service", 31'000'000}};
  EXPECT_EQ(short_words(trimmed), "trim by fstrim.service, nothing completes");
  commits.operation = Operation::commit;
  commits.evidence.clear();
  host.snapshot.spikes_going_on = {reads, commits};
  EXPECT_EQ(
      host.ask().sentence.rfind("sda: nothing has completed for 11 s (reads and commits wait), since 22:13:09 UTC", 0),
      0U)
      << host.ask().sentence;
  reads.evidence.erase(EvidenceKey::device_standstill_seconds);
  host.snapshot.spikes_going_on = {reads, commits};
  EXPECT_EQ(host.ask().sentence.rfind("sda: no reads have completed for 11 s, since", 0), 0U) << host.ask().sentence;
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
            "sda: reads took up to 24 ms, 12 times longer than usual (2 ms), from 22:08:20 UTC for 60 s, because "
            "flushes of the drive's cache (fsync) took up more of the time than usual, and held up other I/O.");
  EXPECT_EQ(host.ask(kNow - 321s).verdict, Verdict::ok);
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
  EXPECT_NE(host.ask().sentence.find("sda was slow from 22:12:40 UTC until 10 s ago: reads took up to 24 ms"),
            std::string::npos)
      << host.ask().sentence;
  EXPECT_EQ(host.ask(kNow - 20s).verdict, Verdict::slow);
}

/// 19 hours ago, as in the history: a minute of both drives.
struct LastNight : Host {
  LastNight() {
    past = model::PastMoment{};
    past->window = {minute, minute + 1min};
    past->devices = {{"sda", 60'000, 500}, {"sdb", 60'000, 0}};
    past->reach = {minute - 30h, minute - 1000h};
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
  one.evidence = {{EvidenceKey::device_share, 0.97}};
  one.heaviest = {{"backup.service", 1'200'000'000}, {"vm/guest:7", 3}};
  one.committers = {{"db.service", 0, 12}};
  one.slowed = {{"db.service", 0, 0, 3.1}};
  one.active_tenants = 2;
  one.missing = {"no log page was read after the spike", "the queue is not known"};
  host.past->spikes = {{host.at + 5s, "sda", "read", 42, 0.024, 0.002, 100, "discard",
                        "unheard_of=1 " + model::evidence_text(one), model::missing_text(one)}};
  host.past->spikes[0].excess_seconds = 7.5;
  host.past->bursts = {{host.at + 4s, "sda", "fstrim", 40, 1'000'000}};
  const Why answer = host.answer();
  EXPECT_EQ(answer.verdict, Verdict::slow);
  EXPECT_EQ(answer.sentence,
            "sda: reads took up to 24 ms, 12 times longer than usual (2 ms), from 03:13:25 UTC for 42 s, because "
            "fstrim was trimming a file system on it. backup.service discarded 1.2 GB; db.service was slowed most "
            "(extra wait over all I/Os: reads 3.1 s).");
  EXPECT_EQ(answer.next, next_for_culprit(kStopFstrim, "backup.service"));
  EXPECT_EQ(answer.device, "sda");
  const LatencySpike read = spike_of(host.past->spikes[0]);
  EXPECT_EQ(read.excess_seconds, 7.5);
  EXPECT_EQ(read.evidence, (model::SpikeEvidence{{EvidenceKey::device_share, 0.97}}));
  EXPECT_EQ(read.heaviest, one.heaviest);
  EXPECT_EQ(read.slowed, one.slowed);
  EXPECT_EQ(read.committers, one.committers);
  EXPECT_EQ(read.active_tenants, 2U);
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

  host.past->reach = {host.minute + 1h, host.minute + 1min};
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

TEST(evidence, is_what_decided_what_was_ruled_out_and_the_rest) {
  auto one = spike("sda", SpikeCause::discard, 5s, 5s);
  one.evidence = {{EvidenceKey::device_share, 0.97},
                  {EvidenceKey::queue_share, 0.03},
                  {EvidenceKey::load_to_baseline, 1.1},
                  {EvidenceKey::during_discards_share, 0.9},
                  {EvidenceKey::during_flushes_share, 0}};
  const EvidenceWords words = evidence_words(one);
  EXPECT_EQ(words.decided,
            (std::vector<std::string>{"100 I/Os were slow; together they waited 3 s beyond what is usual.",
                                      "90 % of the slow time in the device overlapped discards."}));
  EXPECT_EQ(words.ruled_out, (std::vector<std::string>{"0 % of the slow time in the device overlapped flushes.",
                                                       "3 % of the slow time was spent waiting on the host.",
                                                       "The load was as usual.", "No I/O failed."}));
  EXPECT_EQ(words.other, (std::vector<std::string>{"97 % of the slow time was spent in the device."}));
}

TEST(words, have_the_unit_that_fits) {
  EXPECT_EQ(util::format_latency(0.00085), "850 us");
  EXPECT_EQ(util::format_latency(0.0024), "2.4 ms");
  EXPECT_EQ(util::format_latency(1.25), "1.2 s");
  EXPECT_EQ(util::format_latency(0.00996), "10 ms");
  EXPECT_EQ(util::format_latency(0.00204), "2.0 ms");
  EXPECT_EQ(util::format_latency(0.002), "2 ms");
  EXPECT_EQ(util::format_latency(0.9996), "1.0 s");
  EXPECT_EQ(util::format_duration(0.2), "1 s");
  EXPECT_EQ(util::format_duration(119), "119 s");
  EXPECT_EQ(util::format_duration(600), "10 min");
  EXPECT_EQ(util::format_duration(9000), "2 h");
  EXPECT_EQ(util::format_factor(1.44), "1.4 times");
  EXPECT_EQ(util::format_size(1.8e6), "1.8 MB");
  EXPECT_EQ(util::format_size(12), "12 B");
  EXPECT_EQ(util::format_size(999.4e3), "999 kB");
  EXPECT_EQ(util::format_size(999.6e3), "1.0 MB");
  EXPECT_EQ(util::format_size(1e6), "1 MB");
  EXPECT_EQ(util::format_factor(9.96), "10 times");
}

}  // namespace
}  // namespace ssdpulse::spikes
