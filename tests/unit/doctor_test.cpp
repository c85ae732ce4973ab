// SPDX-License-Identifier: Apache-2.0
// Does the doctor name what is not measured, and the fix, and nothing once it is fixed? A table of single problems of
// an otherwise healthy daemon and host; and trees of random bytes.
#include "daemon/advice/doctor.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "daemon/advice/cost_parts.h"
#include "daemon/host/probe.h"
#include "daemon/model/sibling_latency.h"
#include "exporters/page/status_json.h"
#include "exporters/terminal/finding_text.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::advice {
namespace {

using namespace std::string_literals;
using model::KernelDecision;
using model::KernelFeature;
using model::Verdict;

/// The findings of one check that are not ok.
Findings troubles(const Findings& all, const std::string& id) {
  Findings found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [&](const model::Finding& one) { return one.id == id && one.verdict != Verdict::ok; });
  return found;
}

model::Snapshot well() {
  model::Snapshot snapshot;
  snapshot.number = 1000;
  snapshot.taken_at = model::WallTime(std::chrono::seconds(1'700'000'000));
  snapshot.latency_mode = "full";
  snapshot.sources = {{"block", true, "", {}}, {"nvme", true, "", {}}, {"nvme", true, "", {}, "nvme0"}};
  snapshot.kernel_features = {{KernelFeature::discard_submitters, KernelDecision::blkdev_issue_discard},
                              {KernelFeature::write_class, KernelDecision::end_functions}};
  snapshot.history = model::HistoryFigures{};
  model::Device device;
  device.name = "nvme0n1";
  device.transport = "nvme";
  model::DeviceSnapshot entry;
  entry.device = std::make_shared<const model::Device>(device);
  model::DeviceIo io;
  io.operations[0].completions = 1'000'000;
  entry.io = std::make_shared<const model::DeviceIo>(io);
  snapshot.devices.push_back(entry);
  model::NvmeDrive drive;
  model::NvmeIdentity identity;
  identity.controller = "nvme0";
  drive.identity = std::make_shared<const model::NvmeIdentity>(identity);
  drive.write_amplification.source = "ocp";
  drive.write_amplification.ratios.resize(1);
  snapshot.nvme_drives.push_back(drive);
  return snapshot;
}

void change_device(model::Snapshot& snapshot, const std::function<void(model::Device&, model::DeviceIo&)>& change) {
  model::Device device = *snapshot.devices[0].device;
  model::DeviceIo io = *snapshot.devices[0].io;
  change(device, io);
  snapshot.devices[0].device = std::make_shared<const model::Device>(device);
  snapshot.devices[0].io = std::make_shared<const model::DeviceIo>(io);
}

TEST(doctor, whoever_answers_may_measure) {
  const auto nobody = unanswered(std::nullopt, "no daemon answers");
  EXPECT_EQ(nobody.verdict, Verdict::danger);
  EXPECT_EQ(nobody.change, "systemctl enable --now ssdpulse");
  for (const auto& [status, words] : std::vector<std::pair<int, const char*>>{{401, ".netrc"},
                                                                              {403, "password"},
                                                                              {404, "web.page"},
                                                                              {421, "web.hosts"},
                                                                              {503, "again"},
                                                                              {500, ""},
                                                                              {0, ""}}) {
    const auto one = unanswered(status, "why");
    EXPECT_EQ(one.verdict, Verdict::unknown) << status;
    EXPECT_EQ(one.why, "why");
    EXPECT_NE(one.change.find(words), std::string::npos) << status;
    EXPECT_EQ(one.change.find("systemctl"), std::string::npos) << status;
  }
}

TEST(findings, markdown_of_hostile_names_stays_text) {
  model::Finding one;
  one.id = "F7";
  one.verdict = Verdict::danger;
  one.device = "/a\n# `b`<i>";
  one.found = "a [link](x)";
  one.change = "mount '/a``b'";
  std::ostringstream out;
  terminal::print_findings_markdown({one}, {}, out);
  EXPECT_EQ(out.str(),
            "### danger F7 on /a?# \\`b\\`\\<i\\>: a \\[link\\](x)\n\n- change: ``` mount '/a``b' ```\n\n1 danger\n");
}

TEST(doctor, a_daemon_that_is_well) {
  for (const model::Finding& one : examine(well())) {
    EXPECT_EQ(one.verdict, Verdict::ok) << one.id << ": " << one.found;
  }
}

struct DaemonTrouble {
  const char* id;
  Verdict verdict;
  const char* change;  // part of it
  std::function<void(model::Snapshot&)> make;
};

TEST(doctor, every_trouble_of_a_daemon) {
  const auto lose = [](std::uint64_t ios) {
    return [ios](model::Snapshot& s) {
      change_device(s, [ios](model::Device&, model::DeviceIo& io) { io.losses[0] = ios; });
    };
  };
  const std::vector<DaemonTrouble> table{
      {"devices", Verdict::danger, "devices", [](auto& s) { s.devices.clear(); }},
      {"sources", Verdict::advise, "ssdpulse-nvme.socket",
       [](auto& s) {
         s.sources[1] = {"nvme", false, "gone", {}};
       }},
      {"sources", Verdict::advise, "DriveNotAnswering", [](auto& s) { s.sources[2].up = false; }},
      {"sources", Verdict::advise, "make room",
       [](auto& s) {
         s.sources.push_back({"history", false, "disk full", {}, {}, "make room"});
       }},
      {"sources", Verdict::advise, "SsdpulseSourceDown",
       [](auto& s) {
         s.sources.push_back({"history", false, "nobody knows", {}});
       }},
      {"sources", Verdict::info, "",
       [](auto& s) {
         s.sources.push_back({"history", false, "being opened", {}, {}, {}, true});
       }},
      {"iostats", Verdict::advise, "echo 1 > /sys/block/nvme0n1/queue/iostats",
       [](auto& s) { change_device(s, [](model::Device& device, auto&) { device.iostats = false; }); }},
      {"devices", Verdict::info, "",
       [](auto& s) {
         s.devices.push_back(s.devices[0]);
         s.devices[1].unseen = model::Unseen{12'000, true};
         s.devices[1].io = nullptr;
       }},
      {"lost-ios", Verdict::info, "",
       [](auto& s) {
         s.devices.push_back(s.devices[0]);
         s.devices[1].unseen = model::Unseen{{}, false};
       }},
      {"latency-mode", Verdict::info, "full", [](auto& s) { s.latency_mode = "completion-only"; }},
      {"cpu-limit", Verdict::advise, "LimitingItself",
       [](auto& s) {
         s.own_cost = {0.03, 0.02, model::Effort::completions, 2, 0};
         s.latency_mode = "completion-only";
       }},
      {"lost-ios", Verdict::info, "LosingEvents", lose(1)},
      {"lost-ios", Verdict::advise, "LosingEvents", lose(20'000)},
      {"device-places", Verdict::advise, "restart", [](auto& s) { s.losses[0] = 1; }},
      {"device-places", Verdict::info, "", [](auto& s) { s.losses[1] = 1; }},
      {"device-places", Verdict::advise, "restart",
       [](auto& s) {
         s.devices_left_out = {"sdc", "sdd"};
       }},
      {"names", Verdict::info, "",
       [](auto& s) {
         s.unnamed_filesystems = {3, {{"nvme0n1", 3}}};
       }},
      {"names", Verdict::info, "", [](auto& s) { s.setting_changes_waiting = 7; }},
      {"history-rows", Verdict::advise, "journalctl -k",
       [](auto& s) {
         s.history.emplace().rows_lost = {{"mark", 2}};
       }},
      {"skipped-programs", Verdict::info, "",
       [](auto& s) {
         s.programs = {{"issue", 5, {}, {}}};
       }},
      {"skipped-programs", Verdict::info, "",
       [](auto& s) { s.kernel_features[KernelFeature::skipped_runs] = KernelDecision::not_reported; }},
      {"late-ticks", Verdict::info, "CPUWeight", [](auto& s) { s.missed_ticks = 100; }},
      {"io-accounting", Verdict::advise, "DefaultIOAccounting=yes",
       [](auto& s) { s.kernel_features[KernelFeature::io_accounting] = KernelDecision::root_only; }},
      {"pressure", Verdict::info, "psi=1", [](auto& s) { s.host.signals = std::make_shared<model::HostSignals>(); }},
      {"pressure", Verdict::info, "unified_cgroup_hierarchy",
       [](auto& s) {
         model::HostSignals signals;
         signals.pressure.emplace();
         signals.cgroups_unified = false;
         s.host.signals = std::make_shared<const model::HostSignals>(signals);
       }},
      {"discard-triggers", Verdict::info, "CONFIG_FUNCTION_TRACER",
       [](auto& s) { s.kernel_features[KernelFeature::discard_submitters] = KernelDecision::not_hooked; }},
      {"volumes", Verdict::info, "restart",
       [](auto& s) {
         s.memberships.push_back({"dm-0", "nvme0n1", "dm", {}});
         s.kernel_features[KernelFeature::volume_times] = KernelDecision::absent;
       }},
      {"volumes", Verdict::info, "",
       [](auto& s) {
         s.memberships.push_back({"dm-0", "nvme0n1", "dm", {}});
         s.kernel_features[KernelFeature::volume_times] = KernelDecision::not_hooked;
       }},
      {"volumes", Verdict::advise, "devices.exclude",
       [](auto& s) {
         s.memberships.push_back({"dm-0", "nvme0n1", "dm", {}});
         s.volumes_left_out = {"dm-700"};
       }},
      {"siblings", Verdict::info, "",
       [](auto& s) {
         model::SiblingFigures figures;
         figures.groups_left_out = 1;
         s.siblings = std::make_shared<const model::SiblingFigures>(figures);
       }},
      {"freezes", Verdict::info, "CONFIG_FUNCTION_TRACER",
       [](auto& s) { s.kernel_features[KernelFeature::freezes] = KernelDecision::not_hooked; }},
      {"write-classes", Verdict::advise, "kptr_restrict=1",
       [](auto& s) { s.kernel_features[KernelFeature::write_class] = KernelDecision::flags_and_pages; }},
      {"write-hints", Verdict::info, "",
       [](auto& s) {
         s.devices[0].hint_path = model::WriteHintPath{model::HintReach::dropped, {}};
       }},
      {"write-hints", Verdict::info, "",
       [](auto& s) {
         s.devices[0].hint_path = model::WriteHintPath{model::HintReach::block_layer, model::DriveSeparation::fdp};
         auto io = std::make_shared<model::DeviceIo>();
         io->writes.hint_bytes[2] = 1;
         s.devices[0].io = io;
       }},
      {"log-pages", Verdict::info, "", [](auto& s) { s.nvme_drives[0].polling.refused_pages["ocp"] = "refused"; }},
      {"write-amplification", Verdict::info, "", [](auto& s) { s.nvme_drives[0].write_amplification = {}; }},
      {"write-amplification", Verdict::info, "", [](auto& s) { s.nvme_drives[0].write_amplification.ratios.clear(); }},
      {"health", Verdict::info, "",
       [](auto& s) { change_device(s, [](model::Device& device, auto&) { device.transport = "sata"; }); }},
      {"log-reads", Verdict::info, "poll_interval", [](auto& s) { s.nvme_drives[0].polling.read_effect_ratio = 2; }},
      {"identities", Verdict::info, "",
       [](auto& s) {
         s.devices.push_back(s.devices[0]);
         for (std::size_t i = 0; i < 2; ++i) {
           model::Device device = *s.devices[i].device;
           device.name = "sd" + std::to_string(i);
           device.wwid = "naa.5";
           s.devices[i].device = std::make_shared<const model::Device>(device);
         }
       }},
      {"history", Verdict::info, "history.directory", [](auto& s) { s.history.reset(); }},
  };
  for (const DaemonTrouble& row : table) {
    model::Snapshot snapshot = well();
    row.make(snapshot);
    const Findings all = examine(snapshot);
    const Findings found = troubles(all, row.id);
    ASSERT_EQ(found.size(), 1U) << row.id;
    EXPECT_EQ(found[0].verdict, row.verdict) << row.id;
    EXPECT_NE(found[0].change.find(row.change), std::string::npos) << row.id << ": " << found[0].change;
    EXPECT_FALSE(found[0].found.empty() || found[0].why.empty()) << row.id;
    EXPECT_EQ(has_gaps(all), row.verdict != Verdict::info) << row.id;
  }
}

TEST(doctor, of_a_device_without_requests_nothing_is_claimed_and_nothing_advised_that_cannot_help) {
  for (const bool has_requests : {false, true}) {
    model::Snapshot snapshot = well();
    change_device(snapshot, [&](model::Device& device, auto&) {
      device.iostats = false;
      device.has_requests = has_requests;
    });
    snapshot.devices[0].unseen =
        model::Unseen{has_requests ? std::optional<std::uint64_t>(10'000) : std::nullopt, has_requests};
    snapshot.devices[0].io = nullptr;
    const Findings all = examine(snapshot);
    EXPECT_TRUE(troubles(all, "iostats").empty());
    EXPECT_EQ(troubles(all, "lost-ios").size(), 1U);
    ASSERT_EQ(troubles(all, "devices").size(), 1U);
    EXPECT_EQ(troubles(all, "devices")[0].verdict, Verdict::danger) << "it is the only one";
    EXPECT_EQ(troubles(all, "devices")[0].found,
              has_requests ? "none of its I/O is measured" : "it is not measured as a drive");
    EXPECT_EQ(troubles(all, "devices")[0].change, "") << "no pattern of the configuration helps";
  }
  Start start;
  start.devices.resize(1);
  start.devices[0].iostats = start.devices[0].has_requests = false;
  EXPECT_TRUE(troubles(examine(start), "iostats").empty());
}

TEST(doctor, stamps_of_requests_are_switched_on_and_off_again_by_the_same_file) {
  model::Snapshot snapshot = well();
  change_device(snapshot, [](model::Device& device, auto&) { device.iostats = false; });
  const Findings found = troubles(examine(snapshot), "iostats");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].change, "echo 1 > /sys/block/nvme0n1/queue/iostats");
  EXPECT_EQ(found[0].undo, "echo 0 > /sys/block/nvme0n1/queue/iostats");
}

TEST(doctor, without_a_reader_drives_are_not_named_one_by_one) {
  model::Snapshot snapshot = well();
  snapshot.sources[1].up = snapshot.sources[2].up = false;
  EXPECT_EQ(troubles(examine(snapshot), "sources").size(), 1U);
}

TEST(doctor, says_since_when_for_as_long_as_it_lasts) {
  FindingAges finding_ages;
  model::Snapshot snapshot = well();
  const auto at = [&](std::uint64_t number) {
    snapshot.number = number;
    snapshot.taken_at = model::WallTime(std::chrono::seconds(number));
    finding_ages.observe(snapshot);
  };
  const auto since = [&] { return troubles(finding_ages.examine(snapshot), "history").at(0).since; };
  at(1);
  snapshot.history.reset();
  at(11);
  at(21);
  EXPECT_EQ(since(), model::WallTime(std::chrono::seconds(11)));
  snapshot.history = model::HistoryFigures{};
  at(31);
  snapshot.history.reset();
  at(41);
  EXPECT_EQ(since(), model::WallTime(std::chrono::seconds(41)));
}

Start good_start() {
  Start start;
  start.host.kernel = "6.1.0-28-amd64";
  start.host.kernel_types = true;
  start.host.privileges = ~std::uint64_t{0};
  start.host.lockdown = "integrity";
  start.host.kptr_restrict = 1;
  start.host.perf_event_paranoid = 2;
  start.host.drive_nodes = {{"/dev/nvme0", true, false, false, true, true, {}}};
  start.host.listeners = {{std::string(4, '\0'), 22}, {"\x7f\0\0\1"s, 9100}, {"\x0a\0\0\1"s, 10936}};
  start.host.history_directory = model::PathProbe{"/var/lib/ssdpulse", true, true, false, true, true, 200 << 20};
  start.history_bytes = 512 << 20;
  start.host.history_directory->files_bytes = 400 << 20;
  start.host.reader_socket = model::PathProbe{"/run/ssdpulse/nvme.sock", true, false, true, true, true, {}};
  start.addresses = {{"127.0.0.1", 10936}};
  start.devices.resize(1);
  return start;
}

struct HostTrouble {
  const char* id;
  Verdict verdict;
  std::function<void(Start&)> make;
};

TEST(doctor, every_trouble_of_a_host) {
  for (const model::Finding& one : examine(good_start())) {
    EXPECT_EQ(one.verdict, Verdict::ok) << one.id << ": " << one.found;
  }
  const std::vector<HostTrouble> table{
      {"kernel-version", Verdict::danger, [](auto& s) { s.host.kernel = "5.4.0"; }},
      {"history-directory", Verdict::unknown, [](auto& s) { s.host.history_directory->answers = false; }},
      {"kernel-version", Verdict::unknown, [](auto& s) { s.host.kernel = ""; }},
      {"kernel-btf", Verdict::danger, [](auto& s) { s.host.kernel_types = false; }},
      {"kernel-btf", Verdict::unknown, [](auto& s) { s.host.kernel_types.reset(); }},
      {"capabilities", Verdict::unknown, [](auto& s) { s.host.privileges = 0; }},
      {"capabilities", Verdict::unknown, [](auto& s) { s.host.privileges.reset(); }},
      {"capabilities", Verdict::info, [](auto& s) { s.host.privileges = 3ULL << 38U; }},
      {"lockdown", Verdict::danger, [](auto& s) { s.host.lockdown = "confidentiality"; }},
      {"memlock", Verdict::advise,
       [](auto& s) {
         s.host.kernel = "5.10.0";
         s.host.locked_memory_bytes = 65536;
         s.host.privileges = 3ULL << 38U;
       }},
      {"bpf-jit", Verdict::advise, [](auto& s) { s.host.bpf_jit_enable = 0; }},
      {"kptr-restrict", Verdict::advise, [](auto& s) { s.host.kptr_restrict = 2; }},
      {"kptr-restrict", Verdict::unknown, [](auto& s) { s.host.kptr_restrict.reset(); }},
      {"perf-event-paranoid", Verdict::advise,
       [](auto& s) {
         s.host.perf_event_paranoid = 3;
         s.host.privileges = 0;
       }},
      {"perf-event-paranoid", Verdict::unknown,
       [](auto& s) {
         s.host.perf_event_paranoid.reset();
         s.host.privileges = 0;
       }},
      {"port", Verdict::advise,
       [](auto& s) {
         s.addresses = {{"127.0.0.1", 9100}};
       }},
      {"port", Verdict::advise,
       [](auto& s) {
         s.addresses = {{"192.0.2.1", 22}};
       }},
      {"port", Verdict::advise,
       [](auto& s) {
         s.addresses = {{"", 10936}};
       }},
      {"port", Verdict::advise,
       [](auto& s) {
         s.addresses = {{"localhost", 9100}};
       }},
      {"port", Verdict::unknown, [](auto& s) { s.host.listeners.reset(); }},
      {"drive-nodes", Verdict::advise, [](auto& s) { s.host.drive_nodes[0].exists = false; }},
      {"drive-nodes", Verdict::unknown, [](auto& s) { s.host.drive_nodes[0].readable = false; }},
      {"reader-socket", Verdict::advise, [](auto& s) { s.host.reader_socket->socket = false; }},
      {"history-directory", Verdict::info, [](auto& s) { s.host.history_directory.reset(); }},
      {"history-directory", Verdict::info, [](auto& s) { s.host.history_directory->exists = false; }},
      {"history-directory", Verdict::advise, [](auto& s) { s.host.history_directory->directory = false; }},
      {"history-directory", Verdict::unknown, [](auto& s) { s.host.history_directory->writable = false; }},
      {"history-directory", Verdict::advise, [](auto& s) { s.host.history_directory->free_bytes = 100 << 20; }},
      {"iostats", Verdict::advise, [](auto& s) { s.devices[0].iostats = false; }},
  };
  for (const HostTrouble& row : table) {
    Start start = good_start();
    row.make(start);
    const Findings found = troubles(examine(start), row.id);
    ASSERT_EQ(found.size(), 1U) << row.id;
    EXPECT_EQ(found[0].verdict, row.verdict) << row.id;
    EXPECT_FALSE(found[0].found.empty() || found[0].why.empty()) << row.id;
  }
}

TEST(doctor, whoever_may_raise_a_limit_is_not_held_by_it) {
  Start start = good_start();
  start.host.kernel = "5.10.0";
  start.host.locked_memory_bytes = 65536;
  EXPECT_TRUE(troubles(examine(start), "memlock").empty());
}

TEST(doctor, probes_a_host) {
  const tests::TemporaryTree tree;
  tree.add(".", R"(sys/kernel/btf/vmlinux = x
    sys/kernel/security/lockdown = none integrity [confidentiality]
    sys/class/nvme/nvme0/
    sys/class/nvme/nvme-fabrics/
    dev/nvme0 = x
    proc/sys/kernel/osrelease = 6.12.3
    proc/sys/kernel/kptr_restrict = 2
    proc/sys/net/core/bpf_jit_enable = 0
    proc/sys/kernel/perf_event_paranoid = -1
    var/lib/ssdpulse/ssdpulse.db = 12345)");
  tree.file("proc/self/status", "Name:\tx\nCapInh:\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n");
  tree.file("proc/self/limits",
            "Limit    Soft  Hard  Units\nMax locked memory         65536       8388608      bytes\n");
  tree.file("proc/self/net/tcp",
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
            "   0: 0100007F:2AB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 812 1 0 100\n"
            "   1: 0100007F:0016 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 813 1 0 100\n");
  tree.file("proc/self/net/tcp6",
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
            "   0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 "
            "00:00000000 00000000     0        0 814 1 0 100\n");
  const auto probe = host::probe_host({tree.path()}, {"/var/lib/ssdpulse", "/run/no.sock"});
  EXPECT_EQ(probe.kernel, "6.12.3");
  EXPECT_EQ(probe.kernel_types, true);
  EXPECT_EQ(probe.lockdown, "confidentiality");
  EXPECT_EQ(probe.privileges, 0x1ffffffffffU);
  EXPECT_EQ(probe.locked_memory_bytes, 8388608U);
  EXPECT_EQ(probe.kptr_restrict, 2);
  EXPECT_EQ(probe.bpf_jit_enable, 0);
  EXPECT_EQ(probe.perf_event_paranoid, -1);
  ASSERT_EQ(probe.drive_nodes.size(), 1U);
  EXPECT_TRUE(probe.drive_nodes[0].exists);
  ASSERT_TRUE(probe.listeners && probe.listeners->size() == 2);
  EXPECT_EQ(probe.listeners->at(0).address, "\x7f\0\0\1"s);
  EXPECT_EQ(probe.listeners->at(0).port, 10936);
  EXPECT_EQ(probe.listeners->at(1).port, 80);
  EXPECT_TRUE(probe.history_directory && probe.history_directory->directory);
  EXPECT_EQ(probe.history_directory->files_bytes, 6U);
  EXPECT_GT(probe.history_directory->free_bytes, 0U);
  EXPECT_TRUE(probe.reader_socket && !probe.reader_socket->exists);
}

TEST(doctor, knows_nothing_of_an_empty_tree) {
  const tests::TemporaryTree tree;
  const auto probe = host::probe_host({tree.path()}, {});
  EXPECT_FALSE(probe.kernel_types || probe.privileges || probe.kptr_restrict || probe.listeners);
  EXPECT_TRUE(has_gaps(examine(Start{probe, {{"", 10936}}, {}})));
}

/// A minute on four CPUs with 100,000 I/Os a second, of which a tenth are writes.
model::Snapshot busy() {
  model::Snapshot snapshot = well();
  model::RecentCost recent;
  recent.seconds = 60;
  recent.cpus = 4;
  recent.issues = recent.completions = 6'000'000;
  recent.writes = 600'000;
  recent.run_cost = model::RunCost{50, 150};
  recent.cpu = {0.6, {{"ssdpulse", 0.24}, {"http-scrape", 0.12}, {"http-page", 0.06}, {"unheard-of", 0.06}}};
  snapshot.own_cost.recent = std::make_shared<const model::RecentCost>(recent);
  snapshot.kernel_features[KernelFeature::io_path] = KernelDecision::exact;
  snapshot.kernel_features[KernelFeature::write_hint] = KernelDecision::bio_or_page;
  return snapshot;
}

void change_recent(model::Snapshot& snapshot, const std::function<void(model::RecentCost&)>& change) {
  model::RecentCost recent = *snapshot.own_cost.recent;
  change(recent);
  snapshot.own_cost.recent = std::make_shared<const model::RecentCost>(recent);
}

CostPart part_of(const CostReport& report, std::string_view name) {
  const auto found =
      std::find_if(report.parts.begin(), report.parts.end(), [&](const CostPart& part) { return part.name == name; });
  return found == report.parts.end() ? CostPart{} : *found;
}

TEST(cost, is_that_of_the_table_of_levels) {
  const CostReport report = cost_report(busy());
  const double all = 1e5 * 1e-9 / 4;  // of 1 ns for each I/O
  EXPECT_DOUBLE_EQ(part_of(report, "completions").cpu_ratio.value(), 0.7 * 150 * all);
  EXPECT_DOUBLE_EQ(part_of(report, "completions").ns_per_run.value(), 0.7 * 150);
  EXPECT_DOUBLE_EQ(part_of(report, "completions").runs_per_second.value(), 100'000);
  EXPECT_NEAR(part_of(report, "device_time").ns_per_run.value(), 0.87 * 50 + 0.24 * 150, 1e-9);
  EXPECT_NEAR(part_of(report, "attribution").ns_per_run.value(), 0.13 * 50 + 0.06 * 150, 1e-9);
  EXPECT_NEAR(report.programs.value().cpu_ratio, 200 * all, 1e-12) << "they are all of it";
  EXPECT_NEAR(report.programs->lower, 200 * all / 3, 1e-12);
  EXPECT_NEAR(report.programs->upper, 200 * all * 3, 1e-12);
  EXPECT_TRUE(part_of(report, "page_hints").at_most);
  EXPECT_EQ(part_of(report, "page_hints").of, "device_time");
  EXPECT_EQ(part_of(report, "flash_samples").off, "off: configured");
  EXPECT_FALSE(part_of(report, "freezes").cpu_ratio) << "nobody counts its runs";
  EXPECT_NEAR(report.daemon.value(), 0.01 / 4, 1e-12);
  EXPECT_NEAR(part_of(report, "viewers").cpu_ratio.value(), 0.001 / 4, 1e-12);
  EXPECT_NEAR(part_of(report, "rest").cpu_ratio.value(), 0.003 / 4, 1e-12) << "0.12 s of no thread, and one unknown";
  EXPECT_FALSE(part_of(report, "log_reader").cpu_ratio);
  EXPECT_NEAR(report.total.value().cpu_ratio, 200 * all + 0.0025, 1e-12);
}

TEST(cost, of_what_is_off_is_none) {
  auto snapshot = busy();
  snapshot.kernel_features.erase(KernelFeature::io_path);
  EXPECT_EQ(part_of(cost_report(snapshot), "attribution").off, "off: configured");
  EXPECT_FALSE(part_of(cost_report(snapshot), "attribution").cpu_ratio);
  snapshot = busy();
  snapshot.own_cost.effort = model::Effort::essentials;
  EXPECT_EQ(part_of(cost_report(snapshot), "attribution").off, "off: limits.cpu");
  EXPECT_NEAR(cost_report(snapshot).programs.value().cpu_ratio, (0.87 * 50 + 0.94 * 150) * 1e-4 / 4, 1e-12);
  snapshot.own_cost.effort = model::Effort::completions;
  snapshot.latency_mode = "completion-only";
  EXPECT_NEAR(part_of(cost_report(snapshot), "device_time").ns_per_run.value(), 0.3 * 50, 1e-9)
      << "its hook still runs";
  snapshot.own_cost.effort = model::Effort::nothing;
  EXPECT_EQ(cost_report(snapshot).programs.value().cpu_ratio, 0);
  EXPECT_EQ(part_of(cost_report(snapshot), "device_time").off, "off: limits.cpu");
  snapshot.kernel_features.erase(KernelFeature::write_class);  // latency.mode is completion-only
  EXPECT_EQ(part_of(cost_report(snapshot), "device_time").off, "off: configured") << "also while that is limited";
  snapshot.own_cost.effort = model::Effort::everything;
  change_recent(snapshot, [](auto& recent) { recent.issues = 0; });
  EXPECT_EQ(part_of(cost_report(snapshot), "device_time").off, "off: configured");
  EXPECT_NEAR(cost_report(snapshot).programs.value().cpu_ratio, 150 * 1e-4 / 4, 1e-12);
}

TEST(cost, page_hints_are_off_unless_they_are_looked_up) {
  auto snapshot = busy();
  const auto off = [&] { return part_of(cost_report(snapshot), "page_hints").off; };
  EXPECT_EQ(off(), "");
  snapshot.kernel_features[KernelFeature::page_hints] = KernelDecision::never;
  EXPECT_EQ(off(), "off: configured");
  EXPECT_FALSE(part_of(cost_report(snapshot), "page_hints").cpu_ratio);
  snapshot.kernel_features[KernelFeature::write_hint] = KernelDecision::bio;
  snapshot.kernel_features[KernelFeature::page_hints] = KernelDecision::always;
  EXPECT_EQ(off(), "");
  snapshot.kernel_features.erase(KernelFeature::page_hints);
  EXPECT_EQ(off(), "off: not needed by this kernel") << "nobody configured it";
  snapshot.kernel_features.erase(KernelFeature::write_class);  // latency.mode is completion-only
  EXPECT_EQ(off(), "off: configured");
}

TEST(cost, is_the_kernels_account_where_it_keeps_one) {
  auto snapshot = busy();
  snapshot.kernel_features[KernelFeature::discard_submitters] = KernelDecision::every_bio;
  EXPECT_EQ(part_of(cost_report(snapshot), "every_bio").source, CostSource::unknown);
  EXPECT_FALSE(part_of(cost_report(snapshot), "every_bio").runs_per_second);
  change_recent(snapshot, [](auto& recent) {
    recent.accounted = {{"on_issue", {6'000'000, 6'000'000 * 100.0}},
                        {"on_complete", {6'000'000, 6'000'000 * 200.0}},
                        {"on_bio_queue", {12'000'000, 12'000'000 * 30.0}}};
  });
  const CostReport report = cost_report(snapshot);
  EXPECT_NEAR(part_of(report, "attribution").ns_per_run.value(), 0.13 * 100 + 0.06 * 200, 1e-9);
  EXPECT_EQ(part_of(report, "attribution").source, CostSource::account_share);
  EXPECT_NEAR(part_of(report, "every_bio").ns_per_run.value(), 30, 1e-9);
  EXPECT_EQ(part_of(report, "every_bio").source, CostSource::account);
  EXPECT_NEAR(report.programs.value().cpu_ratio, (100 + 200 + 60) * 1e-4 / 4, 1e-12);
  EXPECT_EQ(report.programs->lower, report.programs->upper);
  // All of the account is of some part, also if one is off.
  snapshot.kernel_features.erase(KernelFeature::io_path);
  EXPECT_NEAR(cost_report(snapshot).programs.value().cpu_ratio, (100 + 200 + 60) * 1e-4 / 4, 1e-12);
}

TEST(cost, that_is_not_known_is_absent) {
  EXPECT_TRUE(cost_report(well()).parts.empty());
  auto snapshot = busy();
  change_recent(snapshot, [](auto& recent) { recent.run_cost.reset(); });
  const CostReport report = cost_report(snapshot);
  EXPECT_EQ(part_of(report, "completions").source, CostSource::unknown);
  EXPECT_FALSE(part_of(report, "completions").cpu_ratio);
  EXPECT_FALSE(report.programs);
  EXPECT_FALSE(report.total);
  EXPECT_TRUE(report.daemon);
  snapshot = busy();
  change_recent(snapshot, [](auto& recent) { recent.issues = recent.completions = recent.writes = 0; });
  EXPECT_EQ(part_of(cost_report(snapshot), "completions").cpu_ratio, 0.0) << "nothing is done: that is known";
  EXPECT_FALSE(part_of(cost_report(snapshot), "completions").ns_per_run);
}

RC_GTEST_PROP(doctor, survives_random_bytes, ()) {
  static const tests::TemporaryTree tree;
  for (const char* path : {"sys/kernel/security/lockdown", "proc/sys/kernel/osrelease", "proc/sys/kernel/kptr_restrict",
                           "proc/sys/net/core/bpf_jit_enable", "proc/sys/kernel/perf_event_paranoid",
                           "proc/self/status", "proc/self/limits", "proc/self/net/tcp"}) {
    const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    const auto lead = *rc::gen::element<std::string>("", "CapEff:\t", "Max locked memory ", "a\n 0: 1:", "[");
    tree.file(path, lead + bytes);
  }
  const Findings all = examine(Start{host::probe_host({tree.path()}, {}), {{"", 10936}}, {}});
  RC_ASSERT(std::all_of(all.begin(), all.end(), [](const model::Finding& one) { return !one.found.empty(); }));
}

TEST(findings, go_through_json_unchanged) {
  model::Snapshot snapshot = well();
  change_device(snapshot, [](model::Device& device, model::DeviceIo& io) {
    device.iostats = false;
    io.losses[0] = 7;
  });
  Findings all = examine(snapshot);
  all[0].wear_bytes_per_day = 1e9;
  const auto json = page::findings_json(all);
  const auto back = page::findings_from(nlohmann::json::parse(json.dump()));
  ASSERT_TRUE(back);
  EXPECT_EQ(page::findings_json(*back), json);
  EXPECT_FALSE(page::findings_from(nlohmann::json::parse("[1]")));
  EXPECT_TRUE(page::findings_from(nlohmann::json::parse(R"({"findings":[1,{"verdict":"fine"}]})"))->empty());
}

TEST(findings, equal_ones_are_one_line_and_hostile_bytes_are_shown) {
  model::Finding one;
  one.id = "X1";
  one.verdict = Verdict::advise;
  one.device = "sda";
  one.found = "red \x1b[31m";
  model::Finding other = one;
  other.device = "sdb";
  std::ostringstream out;
  terminal::print_findings({one, other}, {}, out);
  EXPECT_EQ(
      out.str(),
      "VERDICT  ID  DEVICE    FOUND\nadvise   X1  sda, sdb  red ?[31m\n2 advise; --all shows what is fine, too\n");
}

TEST(findings, name_what_is_on_a_device_before_its_name) {
  model::Snapshot snapshot = well();
  snapshot.filesystems = {{"nvme0n1", "/srv/pgwal", "ext4", false, {"nvme0n1p1"}}};
  change_device(snapshot, [](model::Device& device, model::DeviceIo&) { device.iostats = false; });
  std::ostringstream out;
  terminal::print_findings(examine(snapshot), {}, out);
  EXPECT_NE(out.str().find("  iostats  /srv/pgwal (nvme0n1)  "), std::string::npos) << out.str();
}

/// One fstrim made I/Os wait for 32 s in a quarter of an hour: nobody knows what a day brings.
TEST(findings, promise_a_day_only_if_a_day_was_observed) {
  model::Finding one;
  one.verdict = Verdict::info;
  one.excess_seconds_per_day = 32 * 96;
  one.wear_bytes_per_day = 96e9;
  one.evidence = {{"excess_seconds_per_day", 32 * 96}, {"commits_per_day", 960}, {"free_share", 0.00001}};
  one.observed_seconds = 900;
  EXPECT_EQ(terminal::evidence_sentence(one),
            "At most 32 s of waiting in the 15 min measured, all I/Os together, at most 1 GB of wear in the 15 min "
            "measured, measured over 15 min, since the daemon's start: commits 10 in the 15 min measured, excess 32 s "
            "in the 15 min measured, free 0.001 %");
  one.observed_seconds = 2 * 86400;
  one.evidence.erase("free_share");
  EXPECT_EQ(terminal::evidence_sentence(one),
            "At most 51 min 12 s of waiting a day, all I/Os together, at most 96 GB of wear a day, measured over 2 d, "
            "since the daemon's start: commits 960 a day, excess 51 min 12 s a day");
}

}  // namespace
}  // namespace ssdpulse::advice
