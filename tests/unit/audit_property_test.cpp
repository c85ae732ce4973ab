// SPDX-License-Identifier: Apache-2.0
// Whatever a host is like: do two rules never advise against each other, is a change never advised again once it has
// been made, and can no bytes in sysfs end the program? Random facts and trees.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "daemon/host/inventory.h"
#include "daemon/host/settings_reader.h"
#include "tests/fixtures/sysfs_host.h"
#include "tests/unit/audit_facts.h"

namespace ssdpulse::advice {
namespace {

using model::DiscardTrigger;
using model::WriteClass;
using tests::MadeUpHost;

template <typename... Texts>
std::string one_of(Texts... texts) {
  return *rc::gen::element<std::string>(texts...);
}

/// Any of the values that the rules look for, in any combination.
MadeUpHost any_host() {
  MadeUpHost host;
  auto& disk = host.disk();
  auto& settings = host.facts.settings;
  disk.device.transport = one_of("nvme", "sata", "virtio", "loop");
  if (disk.device.transport != "nvme") {
    disk.controller_name.clear();
  }
  disk.device.scheduler = one_of("none", "mq-deadline", "bfq");
  const std::string others = *rc::gen::arbitrary<bool>() && disk.device.scheduler != "none" ? "none " : "";
  disk.files.set("queue/scheduler", others + "[" + disk.device.scheduler + "]");
  disk.device.rotational = *rc::gen::arbitrary<bool>();
  disk.files.set("queue/rotational", disk.device.rotational ? "1" : "0");
  disk.device.discard = *rc::gen::arbitrary<bool>();
  disk.device.write_back_cache = *rc::gen::arbitrary<bool>();
  disk.device.firmware = one_of("FW1.2", "3B2QGXA7");
  disk.device.model = one_of("Big SSD", "Samsung SSD 980 PRO 1TB", "Amazon Elastic Block Store");
  const std::vector<std::pair<const char*, std::vector<std::string>>> files{
      {"queue/nr_requests", {"4", "1023", "x"}},
      {"queue/nomerges", {"0", "1", "2"}},
      {"queue/rq_affinity", {"0", "1", "2"}},
      {"queue/read_ahead_kb", {"0", "16", "128", "4096"}},
      {"queue/wbt_lat_usec", {"0", "2000", "75000", "-1"}},
      {"queue/write_cache", {"write back", "write through"}},
      {"cache_type", {"write back", "write through"}},
      {"queue/max_sectors_kb", {"4", "1280", "4096"}},
      {"queue/iostats", {"0", "1"}},
      {"queue/io_timeout", {"30000", "4294967295"}},
      {"queue/discard_max_bytes", {"0", "134217728", "2199023255040"}},
      {"device/queue_depth", {"1", "31"}},
  };
  for (const auto& [file, texts] : files) {
    disk.files.set(file, *rc::gen::elementOf(texts));
  }
  disk.partitions[0].start_bytes = *rc::gen::element<std::uint64_t>(63 * 512, 1 << 20, 2048);
  host.array().files.set("queue/discard_max_bytes", one_of("0", "134217728"));
  host.array().files.set("md/level", one_of("raid0", "raid1", "raid5"));
  host.array().files.set("md/sync_action", one_of("idle", "check", "recover", "frozen"));
  host.array().files.set("dm/uuid", one_of("", "CRYPT-LUKS2-x"));
  host.array().files.set("dm/name", "data");
  host.array().crypt_flags = *rc::gen::element<std::optional<std::set<std::string>>>(
      std::nullopt, std::set<std::string>{}, std::set<std::string>{"allow_discards", "no_read_workqueue"});
  settings.fstrim.enabled = *rc::gen::element<std::optional<bool>>(true, false, std::nullopt);
  for (const char* option : {"discard", "nobarrier", "data=journal", "relatime"}) {
    if (*rc::gen::arbitrary<bool>()) {
      host.mount().options.insert(option);
    }
  }
  settings.memory_bytes = *rc::gen::element<std::uint64_t>(std::uint64_t{1} << 30U, std::uint64_t{1} << 40U);
  settings.swaps = {{"/dev/x", {one_of("nvme0n1", "zram0")}, true}};
  const auto amount = [] { return *rc::gen::element<double>(0, 1, 1e3, 1e6, 1e11); };
  for (const SpikeCause cause : {SpikeCause::discard, SpikeCause::queue, SpikeCause::saturation, SpikeCause::thermal}) {
    host.excess(cause, amount());
  }
  for (const Operation operation : {Operation::read, Operation::write, Operation::discard}) {
    host.io(operation, amount() + 1, amount(), amount(), amount());
    host.measured(operation).sequential_bytes = amount();
  }
  for (const WriteClass by : {WriteClass::journal, WriteClass::metadata, WriteClass::writeback, WriteClass::swap}) {
    host.written(by, amount());
  }
  for (const DiscardTrigger trigger : {DiscardTrigger::fstrim, DiscardTrigger::online}) {
    host.measured_mount().discarded_bytes[index(trigger)] = amount();
    host.burst_seconds(trigger, amount());
  }
  host.measured_disk().misaligned_bytes = amount();
  host.measured_disk().queue_full_seconds = amount();
  host.measured_disk().unstamped_ios = amount();
  host.amplification(*rc::gen::element<double>(1, 1.6, 5));
  return host;
}

bool counts(const Finding& one) { return one.verdict == Verdict::advise || one.verdict == Verdict::danger; }

/// "echo VALUE > PATH" -> PATH, VALUE.
std::optional<std::pair<std::string, std::string>> echoed(const std::string& change) {
  const auto to = change.find(" > ");
  if (change.rfind("echo ", 0) != 0 || to == std::string::npos) {
    return std::nullopt;
  }
  return std::pair(change.substr(to + 3), change.substr(5, to - 5));
}

RC_GTEST_PROP(audit_properties, no_two_rules_advise_against_each_other, ()) {
  const auto all = judge(any_host().facts);
  std::map<std::string, std::string> values;
  std::set<std::string> changes;
  for (const Finding& one : all) {
    if (!counts(one)) {
      continue;
    }
    if (const auto echo = echoed(one.change)) {
      const auto [known, is_new] = values.insert(*echo);
      RC_ASSERT(is_new || known->second == echo->second);
    }
    changes.insert(one.change.substr(0, one.change.find("  #")));
    changes.insert(one.persistent);
  }
  for (const Finding& one : all) {
    const std::string undo = one.undo.substr(0, one.undo.find("; rm -f "));
    const bool clash = counts(one) && !undo.empty() && changes.count(undo) != 0;
    if (clash) {
      RC_FAIL(one.id + ": " + one.undo);
    }
  }
  const auto has = [&](const std::string& words) {
    return std::any_of(changes.begin(), changes.end(),
                       [&](const std::string& change) { return change.find(words) != std::string::npos; });
  };
  RC_ASSERT(!(has("enable --now fstrim.timer") && has("disable --now fstrim.timer")));
  RC_ASSERT(!(has("nodiscard") && has("disable --now fstrim.timer")));
}

/// The timer is for the whole host, discard for each mount: made together, the changes leave nothing untrimmed.
RC_GTEST_PROP(audit_properties, all_that_was_trimmed_still_is, ()) {
  MadeUpHost host;
  auto& settings = host.facts.settings;
  for (int i = 1; i < 3; ++i) {
    settings.disks.push_back(settings.disks[0]);
    settings.disks.back().device.name = fmt::format("nvme{}n1", i);
  }
  for (auto& disk : settings.disks) {
    disk.device.discard = *rc::gen::weightedElement<bool>({{3, true}, {1, false}});
    for (const DiscardTrigger trigger : {DiscardTrigger::fstrim, DiscardTrigger::online}) {
      host.burst_seconds(trigger, *rc::gen::element<double>(0, 100, 1000), disk.device.name);
    }
  }
  settings.mounts.clear();
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
    settings.mounts.push_back({fmt::format("/m{}", i), "ext4", {"rw", "relatime"}, {}, {}, 0.5});
    auto& mount = settings.mounts.back();
    mount.disks = {settings.disks[*rc::gen::inRange<std::size_t>(0, 3)].device.name};
    if (*rc::gen::weightedElement<bool>({{3, true}, {1, false}})) {
      mount.options.insert("discard");
    }
    for (const DiscardTrigger trigger : {DiscardTrigger::fstrim, DiscardTrigger::online}) {
      host.measured_mount(mount.mountpoint).discarded_bytes[index(trigger)] = 1e9;
    }
  }
  bool timer = true;
  std::set<util::OutsideText> without;
  for (const Finding& one : judge(host.facts)) {
    timer = timer && one.change != "systemctl disable --now fstrim.timer";
    if (one.change.find("nodiscard") != std::string::npos) {
      without.insert(one.device);
    }
  }
  RC_CLASSIFY(!timer, "the timer goes");
  RC_CLASSIFY(!without.empty(), "discard goes");
  RC_ASSERT(timer || without.empty());
  for (const auto& mount : settings.mounts) {
    const auto takes = [&](const model::DiskSettings& disk) {
      return disk.device.name == mount.disks[0] && disk.device.discard;
    };
    const bool online = mount.options.count("discard") > 0 && without.count(mount.mountpoint) == 0;
    RC_ASSERT(online || timer || std::none_of(settings.disks.begin(), settings.disks.end(), takes));
  }
}

RC_GTEST_PROP(audit_properties, what_was_changed_is_not_advised_again, ()) {
  MadeUpHost host = any_host();
  for (const Finding& one : judge(host.facts)) {
    const auto echo = counts(one) ? echoed(one.change) : std::nullopt;
    const std::string directory = "/sys/block/nvme0n1/";
    if (!echo || echo->first.rfind(directory, 0) != 0) {
      continue;
    }
    MadeUpHost changed = host;
    const std::string file = echo->first.substr(directory.size());
    std::string value = echo->second;
    value = value.front() == '\'' ? value.substr(1, value.size() - 2) : value;
    changed.disk().files.set(file, value == "-1" ? "2000" : value);
    if (file == "queue/scheduler") {
      changed.disk().device.scheduler = value;
    } else if (file == "queue/rotational") {
      changed.disk().device.rotational = false;
    }
    for (const Finding& later : judge(changed.facts)) {
      RC_ASSERT(later.id != one.id || later.device != one.device || !counts(later));
    }
  }
}

RC_GTEST_PROP(audit_properties, refused_changes_are_not_advised, ()) {
  MadeUpHost host = any_host();
  const auto tags = host.disk().files.number("mq/0/nr_tags");
  for (const Finding& one : judge(host.facts)) {
    const auto echo = counts(one) ? echoed(one.change) : std::nullopt;
    if (echo && echo->first.find("nr_requests") != std::string::npos) {
      RC_ASSERT(tags && std::stoull(echo->second) <= *tags);
    }
    if (echo && echo->first.find("scheduler") != std::string::npos) {
      RC_ASSERT(host.disk().files.text("queue/scheduler").contains(echo->second));
    }
  }
}

/// Names with pieces that end a word in a shell, in any combination. `canary` is the command that must not run.
std::string hostile_name() {
  std::string name;
  for (const std::string& piece : *rc::gen::container<std::vector<std::string>>(
           rc::gen::element<std::string>("a", "canary", ";canary;", "$(canary)", "`canary`", "|canary", "&canary&", "'",
                                         "\"", "\\", " ", "*", "~", "#", "!", "{", "(", "<"))) {
    name += piece;
  }
  return name;
}

/// What a shell that finds no programs prints when it runs these lines.
std::string printed_by_shell(const std::string& lines) {
  const std::string script = "/dev/shm/ssdpulse-audit-" + std::to_string(::getpid());
  std::ofstream(script) << "canary() { printf INJECTED; }\n" << lines << "\nprintf END\n";
  std::FILE* shell = ::popen(("PATH=/nonexistent exec /bin/sh " + script + " 2>/dev/null").c_str(), "r");
  std::string text;
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) {
    text += static_cast<char>(c);
  }
  ::pclose(shell);
  ::unlink(script.c_str());
  return text;
}

RC_GTEST_PROP(audit_properties, a_word_is_its_name_to_a_shell, ()) {
  const std::string name = "/" + hostile_name();
  const auto word = util::for_shell(name);
  RC_ASSERT(word.has_value());
  RC_ASSERT(printed_by_shell("printf %s " + *word) == name + "END");
}

RC_GTEST_PROP(audit_properties, no_name_becomes_a_command, ()) {
  MadeUpHost host;
  auto& mount = host.mount();
  mount.mountpoint = "/" + hostile_name();
  mount.options = *rc::gen::element<std::set<util::OutsideText>>(
      std::set<util::OutsideText>{}, std::set<util::OutsideText>{"discard", "nobarrier", "data=journal"},
      std::set<util::OutsideText>{"discard", "data=writeback", "relatime"});
  mount.fstype = one_of("ext4", "xfs");
  host.facts.settings.fstrim.enabled = *rc::gen::arbitrary<bool>();
  auto& array = host.array();
  array.device.name = "md0";
  mount.volumes = {"md0"};
  array.files.set("dm/name", "a" + hostile_name());
  array.files.set("queue/discard_max_bytes", "0");
  if (mount.fstype == "xfs") {
    array.files.set("md/level", "raid5");
    array.files.set("md/chunk_size", "65536");
    array.files.set("queue/discard_max_bytes", "134217728");
  } else {
    array.files.set("dm/uuid", "CRYPT-LUKS2-x");
    // F5 or F6 has a command, or none.
    array.crypt_flags = *rc::gen::element<std::optional<std::set<std::string>>>(
        std::nullopt, std::set<std::string>{}, std::set<std::string>{"allow_discards"});
  }
  std::string lines;
  for (const Finding& one : judge(host.facts)) {
    if (one.device != mount.mountpoint && one.device != array.device.name) {
      continue;  // it does not contain a name, and nothing on this host may be written
    }
    lines += one.change + "\n" + one.persistent + "\n" + one.undo + "\n";
  }
  RC_ASSERT(printed_by_shell(lines) == "END");
}

TEST(audit, gives_no_command_for_names_that_cannot_be_shown) {
  for (const char* name : {"/a\nreboot", "/a\x1b[2J", "/\x7f", "/\xc2\x9b", ""}) {
    EXPECT_FALSE(util::for_shell(name)) << name;
  }
  EXPECT_FALSE(util::for_shell("-v"));
  EXPECT_EQ(util::for_shell("/srv/a-b_c.d@e:f%+="), "/srv/a-b_c.d@e:f%+=");
  EXPECT_EQ(util::for_shell("/it's"), "'/it'\\''s'");
  MadeUpHost host;
  host.mount().mountpoint = "/a\nreboot";
  host.mount().options = {"discard", "nobarrier", "data=journal"};
  for (const Finding& one : judge(host.facts)) {
    if (one.device == host.mount().mountpoint && one.verdict != Verdict::ok && one.verdict != Verdict::not_applicable) {
      EXPECT_EQ(one.change + one.persistent + one.undo, one.id == "F8" ? "add it again" : "") << one.id;
      EXPECT_NE(one.why.find("no command is given"), std::string::npos) << one.id;
    }
  }
}

/// Made once: creating and removing a tree costs more than all the tests.
const tests::SysfsHost& drive_in_array() {
  // In memory: on a disk that is busy, a hundred times forty files take half a minute.
  ::setenv("TMPDIR", "/dev/shm", 0);
  static const tests::SysfsHost host;
  tests::add_nvme(host, 0, "0");
  host.partition(tests::kNvme0, "nvme0n1", "nvme0n1p1", "259:1");
  host.array("md0", "9:0", {std::string(tests::kNvme0) + "/nvme0n1"});
  return host;
}

/// Every file that is read, with any bytes as its content.
RC_GTEST_PROP(audit_properties, any_bytes_in_sysfs_are_read, ()) {
  static const auto& host = drive_in_array();
  const std::string disk = "sys/devices/" + std::string(tests::kNvme0) + "/nvme0n1/";
  host.mounts("31 1 259:1 / /data rw,relatime - ext4 /dev/nvme0n1p1 rw,discard\n");
  const auto bytes = [] {
    const auto lead = one_of("", "[", "1", "none [", "16.0 GT/s");
    return lead + *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  };
  for (const char* file :
       {"queue/scheduler", "queue/nr_requests", "queue/nomerges", "queue/wbt_lat_usec", "queue/write_cache",
        "queue/discard_max_bytes", "queue/discard_granularity", "queue/minimum_io_size", "queue/zoned", "mq/0/nr_tags",
        "nvme0n1p1/start", "nvme0n1p1/size", "nvme0n1p1/partition"}) {
    host.tree().file(disk + file, bytes());
  }
  for (const char* file : {"md/level", "md/chunk_size", "md/sync_action", "md/sync_speed_max", "dm/uuid",
                           "md/dev-nvme0n1/offset", "queue/discard_max_bytes"}) {
    host.tree().file("sys/devices/virtual/block/md0/" + std::string(file), bytes());
  }
  for (const char* file :
       {"proc/swaps", "proc/meminfo", "proc/1/comm", "proc/1/cmdline", "proc/sys/vm/dirty_ratio", "proc/self/mountinfo",
        "sys/module/pcie_aspm/parameters/policy", "etc/systemd/system/fstrim.timer", "sys/fs/cgroup/a.slice/io.max",
        "etc/systemd/system/fstrim.timer.d/x.conf", "sys/devices/system/cpu/cpu0/cpuidle/state0/latency"}) {
    host.tree().file(file, bytes());
  }
  const auto inventory = host::read_inventory(host.roots(), tests::kDefaultFilter);
  RC_ASSERT(inventory.has_value());
  Facts facts;
  facts.settings = host::read({host.tree().path()}, *inventory);
  facts.measured.answered = *rc::gen::arbitrary<bool>();
  for (const Finding& one : judge(facts)) {
    RC_ASSERT(!one.found.empty());
    RC_ASSERT(one.verdict != Verdict::advise);
  }
}

}  // namespace
}  // namespace ssdpulse::advice
