// SPDX-License-Identifier: Apache-2.0
// Ten hosts that have nothing wrong: is nothing advised there without evidence, do no two rules demand opposite things,
// and would the kernel accept what they demand? And trees of these hosts with anything in them broken: is what cannot
// be read reported as unknown, and does nothing end the program?
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <regex>
#include <set>

#include "daemon/advice/audit.h"
#include "daemon/host/settings_reader.h"
#include "tests/fixtures/healthy_hosts.h"

namespace ssdpulse::advice {
namespace {

namespace files = std::filesystem;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == 0 ? otherwise : std::strtoull(text, nullptr, 10);
}

bool long_tier() { return number_of("SSDPULSE_TEST_LONG", 0) == 1; }

struct Looked {
  std::string name;
  const tests::SysfsHost* host;
  model::HostSettings settings;
};

/// Made once, in memory: creating and removing them costs more than all the tests.
const std::vector<tests::HealthyHost>& trees() {
  ::setenv("TMPDIR", "/dev/shm", 0);
  static const std::vector<tests::HealthyHost> all = tests::healthy_hosts();
  return all;
}

std::vector<Looked> hosts() {
  std::vector<Looked> all;
  for (const tests::HealthyHost& one : trees()) {
    all.push_back({one.name, one.host.get(), host::read({one.host->tree().path()}, tests::inventory_of(*one.host))});
  }
  return all;
}

/// How much of something was measured in two days: `healthy` of it, or whatever a test chooses.
using Amount = std::function<double(double healthy)>;

void measure_disk(const model::DiskSettings& disk, const Amount& amount, Measured& measured) {
  MeasuredDevice& device = measured.devices[disk.device.name];
  const double read_seconds = disk.device.rotational ? 600 : 10;
  const auto some = [&](double ios, double sum) { return Distribution{amount(ios), amount(sum)}; };
  for (const auto& [operation, ios, seconds, bytes] :
       std::vector<std::tuple<Operation, double, double, double>>{{Operation::read, 1e5, read_seconds, 1e9},
                                                                  {Operation::write, 1e5, 5, 2e9},
                                                                  {Operation::discard, 100, 1, 1e9}}) {
    device.operations[index(operation)] = {
        amount(bytes),     amount(bytes / 2), some(ios, bytes), some(ios, 0.02 * seconds), some(ios, 0.98 * seconds),
        some(ios, seconds)};
  }
  device.commit_seconds = some(1e4, 5);
  device.queue_full_seconds = amount(0);
  device.timeouts = amount(0);
  device.failovers = amount(0);
  device.unstamped_ios = amount(0);
  for (const auto operation : {model::Operation::read, model::Operation::write, model::Operation::flush}) {
    for (const SpikeCause cause :
         {SpikeCause::discard, SpikeCause::queue, SpikeCause::saturation, SpikeCause::thermal, SpikeCause::unknown}) {
      device.spikes[operation].excess_seconds[index(cause)] = amount(0.3);
    }
  }
  using model::WriteClass;
  for (const WriteClass by : {WriteClass::journal, WriteClass::metadata, WriteClass::writeback, WriteClass::direct}) {
    device.written_bytes[index(by)] = amount(5e8);
  }
  device.written_bytes[index(WriteClass::swap)] = amount(1e6);
  device.misaligned_bytes = amount(1e6);
  for (const auto trigger : {model::DiscardTrigger::fstrim, model::DiscardTrigger::online}) {
    device.discards[index(trigger)].burst_seconds = amount(2);
  }
  device.block_size_ranks = {{512, amount(0)}, {4096, amount(0)}};
  if (!disk.controller_name.empty()) {
    MeasuredDrive& drive = measured.drives[disk.controller_name];
    drive.write_amplification_lower_24h = amount(1.1);
    drive.composite_celsius = amount(40);
    drive.thermal_throttle_seconds = amount(0);
    drive.power_on_seconds = amount(1e7);
    drive.percentage_used_ratio = amount(0.1);
    drive.available_spare_ratio = amount(1);
    drive.available_spare_threshold_ratio = amount(0.1);
    drive.warnings[1] = amount(0);  // temperature
    drive.media_errors = amount(0);
    drive.host_memory_preferred_bytes = amount(0);
    drive.host_memory_minimum_bytes = amount(0);
    drive.log_read_latency_effect_ratio = amount(1);
  }
}

Facts measured(const model::HostSettings& settings, const Amount& amount) {
  Measured measured;
  measured.answered = true;
  measured.observed_seconds = 172800;
  for (const model::DiskSettings& disk : settings.disks) {
    measure_disk(disk, amount, measured);
  }
  for (const model::MountSettings& mount : settings.mounts) {
    const bool online = mount.options.count("discard") + mount.options.count("discard=async") > 0;
    auto& bytes = measured.mounts[util::for_label(mount.mountpoint)].discarded_bytes;
    bytes[index(model::DiscardTrigger::fstrim)] = amount(online ? 0 : 1e9);
    bytes[index(model::DiscardTrigger::online)] = amount(online ? 1e9 : 0);
  }
  return {settings, measured};
}

bool counts(const Finding& one) { return one.verdict == Verdict::advise || one.verdict == Verdict::danger; }

std::string described(const Finding& one) {
  return fmt::format("{} of '{}': {}: {}\n  change: {}\n  persistent: {}\n  undo: {}", one.id, one.device.raw(),
                     one.found, one.why, one.change, one.persistent, one.undo);
}

/// What a command changes, and to what: a file, a unit or a mount option, under the same name whichever way it changes.
struct Turn {
  std::string what;
  std::string to;
};

std::string unquoted(const std::string& word) {
  return word.size() > 1 && word.front() == '\'' ? word.substr(1, word.size() - 2) : word;
}

std::vector<Turn> turns_of(const std::string& text) {
  std::vector<Turn> turns;
  const auto each = [&](const char* word, const std::regex& pattern, const auto& turn) {
    if (text.find(word) == std::string::npos) {
      return;  // much faster than the pattern
    }
    for (auto found = std::sregex_iterator(text.begin(), text.end(), pattern); found != std::sregex_iterator();
         ++found) {
      turns.push_back(turn(*found));
    }
  };
  static const std::regex kEcho(R"(echo ('[^']*'|[^ ;]+) > ('[^']*'|[^ ;]+))");
  static const std::regex kTimer(R"(systemctl (enable|disable|edit|mask)( --now)? ([a-z.]+))");
  static const std::regex kMount(R"(mount -o (remount,)?([a-z]+) ([^ ;]+))");
  static const std::regex kTable(R"((remove|add) ([a-z=]+) (from|to) the options of ([^ ;,]+))");
  static const std::regex kSysctl(R"((vm\.[a-z_]+)=(\d+))");
  static const std::regex kCrypt(R"(cryptsetup refresh ((--(allow|perf)[a-z_-]+ )*)(--persistent )?([a-z0-9_]+))");
  each("echo ", kEcho, [](const std::smatch& m) { return Turn{unquoted(m[2]), unquoted(m[1])}; });
  each("systemctl ", kTimer, [](const std::smatch& m) {
    // Anyone who edits a timer wants it to run.
    return Turn{m[3], m[1] == "disable" || m[1] == "mask" ? "off" : "on"};
  });
  const auto option = [](std::string name, const std::string& place, bool on) {
    if (name.rfind("no", 0) == 0) {
      on = !on;
      name.erase(0, 2);
    }
    name = name == "relatime" || name == "strictatime" || name == "atime" ? "atime" : name;
    return Turn{place + " " + name, on ? "on" : "off"};
  };
  each("mount -o ", kMount, [&](const std::smatch& m) { return option(m[2], m[3], true); });
  each(" the options of ", kTable, [&](const std::smatch& m) { return option(m[2], m[4], m[1] == "add"); });
  each("vm.", kSysctl, [](const std::smatch& m) { return Turn{m[1], m[2]}; });
  each("cryptsetup ", kCrypt, [](const std::smatch& m) {
    return Turn{"dm " + m[5].str(), m[1]};  // all flags at once
  });
  return turns;
}

/// Whether, of any two findings, one changes what the other changes differently, or together they leave a file system
/// untrimmed. In words; empty if neither.
std::string contradiction(const std::vector<Finding>& all) {
  std::map<std::string, std::pair<std::string, const Finding*>> turned;
  for (const Finding& one : all) {
    if (one.verdict == Verdict::ok || one.verdict == Verdict::not_applicable) {
      continue;
    }
    for (const Turn& turn : turns_of(one.change + "; " + one.persistent)) {
      const auto [known, is_new] = turned.insert({turn.what, {turn.to, &one}});
      if (!is_new && known->second.first != turn.to) {
        return described(*known->second.second) + "\nagainst\n" + described(one);
      }
    }
  }
  const auto timer = turned.find("fstrim.timer");
  for (const auto& [what, how] : turned) {
    const bool dropped = what.size() > 8 && what.substr(what.size() - 8) == " discard" && how.first == "off";
    if (dropped && timer != turned.end() && timer->second.first == "off") {
      return described(*timer->second.second) + "\nagainst\n" + described(*how.second);
    }
  }
  return {};
}

const model::DiskSettings* disk_named(const model::HostSettings& settings, const std::string& name) {
  for (const auto* list : {&settings.disks, &settings.arrays}) {
    for (const model::DiskSettings& one : *list) {
      if (one.device.name == name) {
        return &one;
      }
    }
  }
  return nullptr;
}

/// How the kernel answers a write to a disk's file: block/blk-sysfs.c, drivers/scsi/scsi_sysfs.c, drivers/md/md.c.
bool takes(const model::DiskSettings& disk, const std::string& file, const std::string& value) {
  if (!disk.files.has(file)) {
    return false;
  }
  model::Attributes given;
  given.set("", value);
  const auto number = given.number("");
  const auto tags = disk.files.number("mq/0/nr_tags");
  if (file == "queue/scheduler") {
    const std::string offered =
        " " + std::regex_replace(disk.files.text(file).raw(), std::regex(R"([\[\]])"), "") + " ";
    return offered.find(" " + value + " ") != std::string::npos;
  }
  if (file == "queue/write_cache") {
    return value == "write back" || value == "write through";
  }
  if (file == "queue/wbt_lat_usec") {
    return value == "-1" || number;
  }
  if (file == "device/iopolicy") {
    return value == "numa" || value == "round-robin" || value == "queue-depth";  // all hosts have Linux 6.12
  }
  if (file == "md/sync_speed_max") {
    return value == "system" || number.value_or(0) > 0;
  }
  if (!number) {
    return false;
  }
  if (file == "queue/nr_requests") {
    return tags && *number <= (disk.device.scheduler == "none" ? *tags : 2048);
  }
  if (file == "queue/discard_max_bytes") {
    const auto granularity = disk.files.number("queue/discard_granularity").value_or(0);
    return granularity > 0 && *number % granularity == 0;
  }
  if (file == "queue/max_sectors_kb") {
    return *number >= 4 && *number <= disk.files.number("queue/max_hw_sectors_kb").value_or(0);
  }
  if (file == "device/queue_depth") {
    return *number >= 1 && *number <= tags.value_or(0);
  }
  if (file == "queue/nomerges" || file == "queue/rq_affinity") {
    return *number <= 2;
  }
  if (file == "queue/rotational" || file == "queue/iostats") {
    return *number <= 1;
  }
  return file == "queue/read_ahead_kb" || (file == "queue/io_timeout" && *number > 0);
}

bool passes_discards(const model::HostSettings& settings, const model::MountSettings& mount) {
  const bool stopped = std::any_of(mount.volumes.begin(), mount.volumes.end(), [&](const std::string& volume) {
    const model::DiskSettings* array = disk_named(settings, volume);
    return array != nullptr && array->files.number("queue/discard_max_bytes") == std::uint64_t{0};
  });
  return !stopped && std::any_of(mount.disks.begin(), mount.disks.end(), [&](const std::string& name) {
    const model::DiskSettings* disk = disk_named(settings, name);
    return disk != nullptr && disk->device.discard;
  });
}

/// What root would have read from the tables of dm-crypt, which are not in any tree.
void give_flags(model::HostSettings& settings, std::mt19937_64& chance) {
  for (model::DiskSettings& array : settings.arrays) {
    for (const char* flag : {"allow_discards", "no_read_workqueue", "no_write_workqueue", "same_cpu_crypt"}) {
      if (array.files.text("dm/uuid").starts_with("CRYPT-") && chance() % 3 == 0) {
        array.crypt_flags = array.crypt_flags.value_or(std::set<std::string>{});
        array.crypt_flags->insert(flag);
      }
    }
  }
}

/// Whether the kernel would refuse a finding's change, or the undo of it.
bool refused(const model::HostSettings& settings, const Finding& one) {
  static const std::regex kOfDisk(R"(/sys/block/([^/]+)/(.+))");
  static const std::regex kOfController(R"(/sys/class/nvme/([^/]+)/(.+))");
  static const std::regex kRemount(R"(mount -o (remount,)?(no)?discard ([^ ;]+))");
  for (const std::string& text : {one.change, one.undo}) {
    for (const Turn& turn : turns_of(text)) {
      std::smatch m;
      if (std::regex_match(turn.what, m, kOfDisk)) {
        const model::DiskSettings* disk = disk_named(settings, m[1]);
        if (disk == nullptr || !takes(*disk, m[2], turn.to)) {
          return true;
        }
      } else if (std::regex_match(turn.what, m, kOfController)) {
        const bool there =
            std::any_of(settings.disks.begin(), settings.disks.end(), [&](const model::DiskSettings& disk) {
              return disk.controller_name == m[1].str() && disk.controller.has(m[2]);
            });
        if (!there) {
          return true;
        }
      } else if (turn.what.rfind("/sys/", 0) == 0 && !settings.files.has(turn.what.substr(1))) {
        return true;
      }
    }
    const auto mounted = [&](const std::string& place) {
      return std::find_if(settings.mounts.begin(), settings.mounts.end(),
                          [&](const model::MountSettings& mount) { return mount.mountpoint == place; });
    };
    std::smatch m;
    if (text.find("mount -o ") != std::string::npos && std::regex_search(text, m, kRemount)) {
      const auto mount = mounted(m[3]);
      const std::set<util::OutsideText> know{"ext4", "btrfs", "f2fs", "xfs"};
      // XFS accepts it and does nothing.
      if (mount == settings.mounts.end() || know.count(mount->fstype) == 0 ||
          (mount->fstype == "xfs" && m[1].length() > 0)) {
        return true;
      }
    }
    if (text.rfind("fstrim -v ", 0) == 0) {
      const auto mount = mounted(text.substr(10));
      if (mount == settings.mounts.end() || !passes_discards(settings, *mount) || mount->options.count("ro") > 0) {
        return true;
      }
    }
    if (text.find("cryptsetup refresh") != std::string::npos) {
      const model::DiskSettings* volume = disk_named(settings, one.device.raw());
      const std::string uuid = volume == nullptr ? "" : volume->files.text("dm/uuid").raw();
      const bool flags = one.persistent.find("--persistent") != std::string::npos;
      if (uuid.rfind("CRYPT-LUKS", 0) != 0 || (flags && uuid.rfind("CRYPT-LUKS2-", 0) != 0)) {
        return true;
      }
    }
  }
  return false;
}

TEST(healthy_hosts, are_read_as_what_they_are) {
  std::map<std::string, std::string> found;
  for (const Looked& one : hosts()) {
    found[one.name] = fmt::format("{} disks, {} arrays, {} mounts", one.settings.disks.size(),
                                  one.settings.arrays.size(), one.settings.mounts.size());
  }
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"one NVMe drive", "1 disks, 0 arrays, 2 mounts"},
                                                       {"RAID-1 of SATA SSDs", "2 disks, 1 arrays, 2 mounts"},
                                                       {"LVM on NVMe", "2 disks, 3 arrays, 2 mounts"},
                                                       {"encrypted", "1 disks, 3 arrays, 3 mounts"},
                                                       {"multipath", "3 disks, 1 arrays, 2 mounts"},
                                                       {"virtual machine", "2 disks, 0 arrays, 2 mounts"},
                                                       {"cloud", "2 disks, 1 arrays, 2 mounts"},
                                                       {"spinning disk", "1 disks, 0 arrays, 1 mounts"},
                                                       {"flexible data placement", "1 disks, 0 arrays, 1 mounts"},
                                                       {"64 drives", "64 disks, 8 arrays, 8 mounts"}}));
}

TEST(healthy_hosts, get_no_advice) {
  for (const Looked& one : hosts()) {
    for (const bool daemon : {false, true}) {
      Facts facts{one.settings, {}};
      const auto all = judge(daemon ? measured(one.settings, [](double healthy) { return healthy; }) : facts);
      EXPECT_FALSE(all.empty());
      for (const Finding& finding : all) {
        EXPECT_FALSE(counts(finding)) << one.name << ": " << described(finding);
        EXPECT_FALSE(refused(one.settings, finding)) << one.name << ": " << described(finding);
      }
      EXPECT_EQ(contradiction(all), "") << one.name;
    }
  }
}

TEST(healthy_hosts, get_advice_for_evidence_alone_and_none_that_contradicts_or_is_refused) {
  std::mt19937_64 chance(number_of("SSDPULSE_TEST_SEED", 1));
  const std::vector<double> amounts{0, 1, 3, 1e3, 1e6, 1e11};
  std::uint64_t advised = 0;
  std::uint64_t pairs = 0;
  std::set<std::string> rules_seen;
  for (const Looked& one : hosts()) {
    const int loads = one.settings.disks.size() > 8 ? 2 : long_tier() ? 2000 : 40;
    for (int i = 0; i < loads; ++i) {
      Facts facts = measured(one.settings, [&](double healthy) {
        return chance() % 3 == 0 ? healthy : amounts[chance() % amounts.size()];
      });
      give_flags(facts.settings, chance);
      const auto all = judge(facts);
      std::uint64_t changes = 0;
      for (const Finding& finding : all) {
        changes += finding.change.empty() ? 0 : 1;
        if (counts(finding)) {
          ++advised;
          rules_seen.insert(finding.id);
          EXPECT_FALSE(finding.verdict == Verdict::advise && finding.evidence.empty()) << described(finding);
        }
        ASSERT_FALSE(refused(one.settings, finding)) << one.name << ": " << described(finding);
      }
      pairs += changes * (changes - 1) / 2;
      ASSERT_EQ(contradiction(all), "") << one.name;
    }
  }
  std::string names;
  for (const std::string& id : rules_seen) {
    names += " " + id;
  }
  std::printf("%llu pieces of advice, %llu pairs of changes; rules:%s\n", static_cast<unsigned long long>(advised),
              static_cast<unsigned long long>(pairs), names.c_str());
  EXPECT_GE(rules_seen.size(), 12U) << "else nothing was looked at";
}

/// Breaks one thing in a tree, and restores it when destroyed.
class Damage {
 public:
  /// `away`: where the original is kept meanwhile.
  Damage(const files::path& place, files::path away, std::mt19937_64& chance) : place_(place), away_(std::move(away)) {
    std::error_code none;
    if (!files::exists(files::symlink_status(place, none))) {
      return;  // in a directory that has been moved away
    }
    files::rename(place_, away_, none);
    moved_ = !none;
    if (!moved_) {
      return;
    }
    switch (chance() % 6) {
      case 0:
        break;  // left missing
      case 1:
        files::create_directory(place_, none);
        break;
      case 2:
        files::create_symlink(chance() % 2 == 0 ? place_.filename() : files::path("../../nowhere"), place_, none);
        break;
      default:
        std::ofstream(place_, std::ios::binary) << text(chance);
    }
  }
  Damage(const Damage&) = delete;
  Damage& operator=(const Damage&) = delete;
  ~Damage() {
    std::error_code none;
    if (moved_) {
      files::remove(place_, none);
      files::rename(away_, place_, none);
    }
  }

 private:
  static std::string text(std::mt19937_64& chance) {
    static const std::vector<std::string> kOdd{"",
                                               "\n",
                                               "-1",
                                               "0",
                                               "4294967296",
                                               "18446744073709551615",
                                               "99999999999999999999999",
                                               "1e9",
                                               "0x10",
                                               "[",
                                               "]",
                                               "[]",
                                               "none [",
                                               "[none",
                                               "] none [",
                                               " ",
                                               "write back",
                                               "CRYPT-",
                                               "raid6",
                                               "1:",
                                               ":",
                                               "259:0 x",
                                               "16.0 GT/s",
                                               "nan",
                                               "\xff\xfe"};
    if (chance() % 2 == 0) {
      return kOdd[chance() % kOdd.size()];
    }
    std::string bytes(chance() % (chance() % 50 == 0 ? 70'000U : 300U), ' ');
    for (char& one : bytes) {
      one = static_cast<char>(chance());
    }
    return bytes;
  }

  files::path place_;
  files::path away_;
  bool moved_ = false;
};

/// A rule, and the disk's file without which its verdict is unknown.
constexpr std::pair<const char*, const char*> kNeeds[] = {{"Q2", "queue/nr_requests"},       {"Q3", "queue/nomerges"},
                                                          {"Q5", "queue/read_ahead_kb"},     {"Q7", "queue/rotational"},
                                                          {"Q9", "queue/max_sectors_kb"},    {"Q10", "queue/iostats"},
                                                          {"Q13", "queue/discard_max_bytes"}};

/// How many findings are unknown because their file was not readable.
int unknown_where_unreadable(const Facts& facts, const std::vector<Finding>& all) {
  std::map<std::pair<std::string, util::OutsideText>, Verdict> verdicts;
  for (const Finding& one : all) {
    verdicts[{one.id, one.device}] = one.verdict;
  }
  int unreadable = 0;
  const auto expect = [&](const std::string& id, const std::string& device) {
    ++unreadable;
    EXPECT_EQ((verdicts[{id, device}]), Verdict::unknown) << id << " of " << device;
  };
  for (const model::DiskSettings& disk : facts.settings.disks) {
    for (const auto& [id, file] : kNeeds) {
      if (!disk.files.number(file)) {
        expect(id, disk.device.name);
      }
    }
    if (disk.device.scheduler.empty()) {
      expect("Q1", disk.device.name);
    }
    if (disk.files.text("queue/write_cache").empty()) {
      expect("Q8", disk.device.name);
    }
  }
  for (const model::DiskSettings& array : facts.settings.arrays) {
    if (!array.files.number("queue/discard_max_bytes")) {
      expect("F5", array.device.name);
    }
  }
  if (!facts.settings.fstrim.enabled) {
    expect("F3", "");
  }
  return unreadable;
}

TEST(healthy_hosts, with_anything_broken_end_nothing_and_are_unknown_where_unreadable) {
  const std::uint64_t count = number_of("SSDPULSE_AUDIT_TREES", long_tier() ? 100'000U : 300U);
  const std::uint64_t seed = number_of("SSDPULSE_TEST_SEED", 1);
  std::vector<std::vector<files::path>> places;
  std::vector<Measured> pages;
  for (const Looked& one : hosts()) {
    places.emplace_back();
    for (const auto& entry : files::recursive_directory_iterator(one.host->tree().path())) {
      places.back().push_back(entry.path());
    }
    std::sort(places.back().begin(), places.back().end());  // the order of directory entries differs from run to run
    pages.push_back(measured(one.settings, [](double healthy) { return 1000 * healthy; }).measured);
  }
  std::uint64_t unreadable = 0;
  std::uint64_t without_disks = 0;
  std::uint64_t findings = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    SCOPED_TRACE(fmt::format("seed {}, tree {}", seed, i));
    std::mt19937_64 chance(seed * 1'000'003 + i);
    // The large one takes fifty times as long as the others.
    const std::size_t which = chance() % 200 == 0 ? places.size() - 1 : chance() % (places.size() - 1);
    const tests::SysfsHost& host = *trees()[which].host;
    std::vector<std::unique_ptr<Damage>> damages;
    for (std::uint64_t n = 1 + chance() % 12; n > 0; --n) {
      damages.push_back(std::make_unique<Damage>(places[which][chance() % places[which].size()],
                                                 host.tree().path(fmt::format("away-{}", n)), chance));
    }
    const auto inventory = host::read_inventory(host.roots(), tests::kDefaultFilter);
    if (inventory) {
      Facts facts{host::read({host.tree().path()}, *inventory), {}};
      const bool daemon = chance() % 2 == 0;
      facts.measured = daemon ? pages[which] : Measured();
      const auto all = judge(facts);
      findings += all.size();
      unreadable += static_cast<std::uint64_t>(unknown_where_unreadable(facts, all));
      for (const Finding& one : all) {
        EXPECT_FALSE(one.found.empty()) << one.id;
        EXPECT_FALSE(one.verdict == Verdict::advise && (!daemon || one.evidence.empty())) << described(one);
      }
    } else {
      ++without_disks;
      EXPECT_FALSE(inventory.error().message.empty());
    }
    while (!damages.empty()) {
      damages.pop_back();  // the newest first: it may be inside one that has been moved away
    }
    ASSERT_FALSE(HasFailure());
  }
  std::printf("%llu trees, %llu findings, %llu unknown for a file that was not readable, %llu trees without disks\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(findings),
              static_cast<unsigned long long>(unreadable), static_cast<unsigned long long>(without_disks));
  EXPECT_GT(unreadable, count / 20);
}

}  // namespace
}  // namespace ssdpulse::advice
