// SPDX-License-Identifier: Apache-2.0
// What holds up I/O above the drives: when it is claimed, when it is gone, and when nothing is. And how the kernel's
// texts are read.
#include "daemon/spikes/host_waits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <thread>

#include "daemon/block/utilisation.h"
#include "daemon/host/host_reader.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::spikes {
namespace {

using model::HostWait;
using model::HostWaitCause;
using namespace std::chrono_literals;

/// A host, second by second.
class Host {
 public:
  model::HostSignals signals;
  double pressure = 0.05;   // share of each second in which tasks wait
  double in_flight = 0.05;  // and in which I/O is in flight on measured drives
  std::set<std::string> slow;
  std::vector<HostWaits::SlowLayer> slow_layers;

  Host() {
    signals.pressure.emplace();
    seconds(90);
  }

  /// What goes on after so many seconds; `claimed` counts every second with a claim.
  std::vector<HostWait> seconds(int number) {
    std::vector<HostWait> waits;
    for (int i = 0; i < number; ++i) {
      at_ += 1s;
      wall_ += 1s;
      if (signals.pressure) {
        signals.pressure->some_seconds += pressure;
      }
      for (model::IoLimit& limit : signals.limits) {
        *limit.done += done_per_second;
        if (limit.pressure) {
          limit.pressure->some_seconds += cgroup_pressure;
        }
      }
      waits = subject_.observe({at_, wall_, &signals, in_flight, slow, slow_layers});
      claimed += std::any_of(waits.begin(), waits.end(), [](const HostWait& one) { return !one.over; }) ? 1 : 0;
    }
    return waits;
  }
  double cgroup_pressure = 0;
  std::uint64_t done_per_second = 0;
  int claimed = 0;

  void limit(std::uint64_t per_second) {
    signals.cgroups = {{"/db.slice/pg.service", "pg.service", {}}};
    signals.limits = {
        {"/db.slice", "db.slice", "sda", model::IoLimitKind::wiops, per_second, 0, model::IoPressure{}, "io.max"}};
  }

 private:
  HostWaits subject_;
  model::SteadyTime at_{};
  std::chrono::system_clock::time_point wall_{std::chrono::seconds(1'700'000'000)};
};

TEST(HostWaits, AVolumeInUseThatIsSuspendedIsNamedAndGoneSoonAfter) {
  Host host;
  host.signals.volumes = {{"dm-3", true, {}}};
  host.seconds(20);
  EXPECT_EQ(host.claimed, 0) << "it has always been suspended, and nobody waits";
  host.signals.volumes[0].suspended = false;
  host.seconds(5);
  host.signals.volumes[0].suspended = true;
  host.seconds(1);
  EXPECT_EQ(host.claimed, 0) << "a snapshot takes a moment";
  const auto waits = host.seconds(3);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].cause, HostWaitCause::suspended);
  EXPECT_EQ(waits[0].subject, "dm-3");
  host.signals.volumes[0].suspended = false;
  host.pressure = 0.05;
  host.seconds(10);
  host.claimed = 0;
  host.seconds(60);
  EXPECT_EQ(host.claimed, 0);
}

TEST(HostWaits, AFrozenFileSystemIsNamedWithWhoeverFrozeItUnlessItsVolumeIsSuspended) {
  Host host;
  host.signals.frozen = {{"/srv/pg", "fsfreeze", {"dm-3"}}};
  const auto waits = host.seconds(3);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].cause, HostWaitCause::frozen);
  EXPECT_EQ(waits[0].subject, "/srv/pg");
  EXPECT_EQ(waits[0].command, "fsfreeze");
  host.signals.frozen.clear();
  host.seconds(10);
  EXPECT_TRUE(host.seconds(1).empty());
  host.signals.volumes = {{"dm-3", false, {}}};
  host.seconds(3);
  host.signals.volumes[0].suspended = true;
  host.signals.frozen = {{"/srv/pg", "dmsetup", {"dm-3"}}};
  for (const HostWait& wait : host.seconds(5)) {
    EXPECT_EQ(wait.cause, HostWaitCause::suspended);
  }
}

TEST(HostWaits, AnEndIsReportedOnceWithItsTime) {
  Host host;
  host.signals.volumes = {{"dm-3", true, {}}};
  host.pressure = 0.9;
  const auto begin = host.seconds(10).at(0).begin;
  host.signals.volumes[0].suspended = false;
  host.pressure = 0.05;
  int ends = 0;
  for (int i = 0; i < 30; ++i) {
    for (const HostWait& wait : host.seconds(1)) {
      ends += wait.over ? 1 : 0;
      if (wait.over) {
        EXPECT_EQ(wait.begin, begin);
        EXPECT_NEAR(std::chrono::duration<double>(wait.duration).count(), 9, 2);
      }
    }
  }
  EXPECT_EQ(ends, 1);
}

TEST(HostWaits, ALimitIsClaimedOnlyWhereItsRateIsReachedAndSomebodyBelowItWaits) {
  Host host;
  host.limit(40);
  host.done_per_second = 30;
  host.cgroup_pressure = 0.9;
  host.seconds(60);
  EXPECT_EQ(host.claimed, 0) << "the limit is not reached";
  host.done_per_second = 40;
  host.cgroup_pressure = 0.1;
  host.seconds(60);
  EXPECT_EQ(host.claimed, 0) << "nobody waits";
  host.cgroup_pressure = 0.9;
  const auto waits = host.seconds(5);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].cause, HostWaitCause::cgroup_limit);
  EXPECT_EQ(waits[0].subject, "db.slice");
  EXPECT_EQ(waits[0].tenant, "pg.service");
  EXPECT_EQ(waits[0].device, "sda");
  EXPECT_NEAR(waits[0].evidence.at("rate_per_second"), 40, 1);
}

TEST(HostWaits, OfSeveralBelowALimitNobodyIsSaidToBeHeldUp) {
  Host host;
  host.limit(40);
  host.signals.cgroups.push_back({"/db.slice/backup.service", "backup.service", {}});
  host.done_per_second = 40;
  host.cgroup_pressure = 0.9;
  EXPECT_EQ(host.seconds(6).at(0).tenant, "db.slice");
}

TEST(HostWaits, WithoutPressureOfCgroupsTheHostsIsNotSaidToBeTheirs) {
  Host host;
  host.limit(40);
  host.signals.limits[0].pressure.reset();
  host.done_per_second = 40;
  host.pressure = 0.9;
  const auto waits = host.seconds(6);
  EXPECT_FALSE(waits.at(0).evidence.contains("pressure_ratio"));
  EXPECT_TRUE(waits.at(0).evidence.contains("host_unexplained_ratio"));
}

TEST(HostWaits, ACounterJumpIsNotARate) {
  Host host;
  host.limit(40);
  host.cgroup_pressure = 0.9;
  host.done_per_second = 1;
  host.seconds(5);
  host.signals.limits[0].done = 1'000'000'000;
  host.seconds(10);
  EXPECT_EQ(host.claimed, 0);
}

TEST(HostWaits, ASingleSampleIsNotAShareOfTime) {
  Host host;
  host.signals.pressure.reset();
  host.in_flight = 0.2;
  for (int i = 0; i < 1800; ++i) {
    host.signals.blocked_tasks = i % 5 == 0 || i % 50 < 2 ? 1 : 0;
    host.seconds(1);
  }
  EXPECT_EQ(host.claimed, 0);
}

TEST(HostWaits, ALongStallStaysOne) {
  Host host;
  host.pressure = 0.9;
  int ends = 0;
  for (int i = 0; i < 1200; ++i) {
    for (const HostWait& wait : host.seconds(1)) {
      ends += wait.over ? 1 : 0;
    }
  }
  EXPECT_EQ(ends, 0);
  EXPECT_GE(host.claimed, 1190);
}

TEST(HostWaits, ADifferentFileSystemAtTheSameMountPoint) {
  Host host;
  host.signals.rooms = {{"/backup", 100 << 20, 50 << 20, 1000, 500}};
  host.seconds(5);
  host.signals.rooms = {{"/backup", 200 << 20, 0, 1000, 500}};
  host.seconds(60);
  EXPECT_EQ(host.claimed, 0) << "it was full before it was mounted";
}

TEST(HostWaits, ALimitIsNotBlamedForADriveThatIsSlow) {
  Host host;
  host.limit(40);
  host.done_per_second = 40;
  host.cgroup_pressure = 0.9;
  host.slow = {"sda"};
  host.seconds(60);
  EXPECT_EQ(host.claimed, 0);
}

TEST(HostWaits, AFileSystemThatHasLongBeenFullIsNotReported) {
  Host host;
  host.signals.rooms = {{"/srv", 100 << 20, 0, 1000, 500}};
  host.seconds(60);
  EXPECT_EQ(host.claimed, 0);
  host.signals.rooms[0].available_bytes = 50 << 20;
  host.seconds(3);
  host.signals.rooms[0].available_bytes = 4096;
  EXPECT_EQ(host.seconds(1).at(0).subject, "/srv");
  host.signals.rooms[0].available_bytes = 50 << 20;
  host.seconds(10);
  host.signals.rooms[0].available_inodes = 0;
  EXPECT_EQ(host.seconds(1).at(0).evidence.at("inodes_full"), 1);
}

/// I/Os of 40 ms, of which most are the layer's own; usually 0.2 ms are.
model::SlowFloor slow_floor(double own_seconds = 0.039, model::Operation operation = model::Operation::write) {
  return {{{"dm-0"}, {"sda1"}, operation, 1000, 0.04, own_seconds, true, "dm-0"}, 0.0002, 10s};
}
const model::Layer kLuks{"dm-0", "luks", model::LayerKind::crypt, {"sda1"}};

TEST(HostWaits, ALayerThatIsSlowByItselfIsNamedSinceWhenItHasBeenSo) {
  Host host;
  host.slow_layers = {{slow_floor(0.03, model::Operation::read), kLuks}, {slow_floor(), kLuks}};
  const auto waits = host.seconds(5);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].cause, HostWaitCause::layer);
  EXPECT_EQ(waits[0].subject, "luks");
  EXPECT_EQ(waits[0].device, "dm-0");
  EXPECT_EQ(waits[0].duration, 14s);
  EXPECT_EQ(waits[0].begin, std::chrono::system_clock::time_point(1'700'000'000s) + 91s - 10s);
  EXPECT_DOUBLE_EQ(waits[0].evidence.at("own_seconds"), 0.039) << "of reads and writes, the slower";
  EXPECT_EQ(waits[0].evidence.at("operation"), static_cast<double>(index(model::Operation::write)));
  EXPECT_FALSE(waits[0].evidence.contains("cpu_pressure_ratio")) << "this kernel does not tell";
  host.slow_layers.clear();
  EXPECT_TRUE(host.seconds(4).at(0).over);
}

TEST(HostWaits, OfASlowLayerItIsSaidThatTasksWaitForACpu) {
  Host host;
  host.signals.cpu_wait_seconds = 0;
  host.slow_layers = {{slow_floor(), kLuks}};
  for (int second = 0; second < 4; ++second) {
    *host.signals.cpu_wait_seconds += 0.8;
    host.seconds(1);
  }
  EXPECT_NEAR(host.seconds(1).at(0).evidence.at("cpu_pressure_ratio"), 0.8, 0.3);
}

TEST(HostWaits, DirtyPagesHoldUpWritersFromHalfwayBetweenBothThresholds) {
  Host host;
  host.pressure = host.in_flight = 0.9;
  host.signals.dirty = {{14 << 20, 20 << 20, 10 << 20}};
  host.seconds(30);
  EXPECT_EQ(host.claimed, 0);
  host.signals.dirty->bytes = 15 << 20;
  EXPECT_EQ(host.seconds(3).at(0).cause, HostWaitCause::dirty_throttling);
}

TEST(HostWaits, WaitingExplainedByDrivesIsNotAFinding) {
  Host host;
  host.pressure = host.in_flight = 0.95;  // a database that reads one page at a time
  host.seconds(1800);
  EXPECT_EQ(host.claimed, 0);
}

TEST(HostWaits, WaitingThatNothingExplainsIsAFindingUnlessItIsUsualHere) {
  Host host;
  host.pressure = 0.81;
  ASSERT_EQ(host.seconds(5).size(), 1U);
  EXPECT_EQ(host.seconds(1)[0].cause, HostWaitCause::pressure);
  Host network;  // on which a job waits for a network file system all day
  network.pressure = 0.81;
  network.seconds(3600 + 900);  // an hour of it, and as long as it takes to learn
  network.claimed = 0;
  network.seconds(600);
  EXPECT_EQ(network.claimed, 0);
}

TEST(HostWaits, AnotherWaitThatExplainsItTakesThePressure) {
  Host host;
  host.signals.volumes = {{"dm-3", true, {}}};
  host.pressure = 0.9;
  for (const HostWait& wait : host.seconds(30)) {
    EXPECT_EQ(wait.cause, HostWaitCause::suspended);
  }
}

TEST(HostReader, ReadsPressureAndDirtyPages) {
  const auto pressure = host::parse_pressure(
      "some avg10=15.68 avg60=20.60 avg300=21.37 total=2838617474\nfull avg10=13.96 avg60=1 avg300=1 "
      "total=655431304\n");
  ASSERT_TRUE(pressure);
  EXPECT_NEAR(pressure->some_seconds, 2838.617474, 1e-6);
  EXPECT_NEAR(pressure->full_seconds, 655.431304, 1e-6);
  for (const char* text :
       {"", "some", "some total=", "some total=x", "full avg10=0 total=1", "\n\n", "some total=-1"}) {
    EXPECT_FALSE(host::parse_pressure(text)) << text;
  }
  const auto dirty = host::parse_vmstat(
      "nr_dirty 10\nnr_writeback 5\nnr_dirty_threshold 100\nnr_dirty_background_threshold 50\nother\n", 4096);
  ASSERT_TRUE(dirty);
  EXPECT_EQ(dirty->bytes, 15U * 4096);
  EXPECT_FALSE(host::parse_vmstat("nr_dirty 10\n", 4096));
  EXPECT_EQ(host::vmstat_bytes("nr_dirty 10\nnr_dirtied 3\n", "nr_dirtied", 4096), 12288U);
  EXPECT_FALSE(host::vmstat_bytes("nr_dirty 10\n", "nr_dirtied", 4096));
}

host::HostRoots roots(const tests::TemporaryTree& tree, bool unified) {
  return {tree.path("sys"), tree.path("proc"), tree.path("cgroup"), unified};
}

model::Inventory inventory() {
  model::Inventory made;
  model::Device disk;
  disk.name = "sda";
  disk.major = 8;
  made.devices = {disk};
  made.memberships = {{"md0", "sda", "md", ""}, {"dm-0", "sda", "dm", "vg-a"}};
  made.layers = {{"dm-0", "vg-a", model::LayerKind::lvm}, {"md0", "", model::LayerKind::raid1}};
  return made;
}

std::string same(const std::string& cgroup) { return cgroup; }

TEST(HostReader, FindsLimitsOnTheCgroupAndAboveItAndWhatIsCountedAgainstThem) {
  const tests::TemporaryTree tree;
  tree.file("cgroup/db.slice/io.max",
            "8:0 rbps=max wbps=1048576 riops=max wiops=40\n9:9 rbps=5 wbps=max riops=max wiops=max\n");
  tree.file("cgroup/db.slice/io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n");
  tree.file("cgroup/db.slice/pg.service/io.max", "");
  tree.file("proc/pressure/io", "some avg10=0 avg60=0 avg300=0 total=7000000\n");
  tree.file("cgroup/db.slice/pg.service/io.pressure", "some avg10=0 avg60=0 avg300=0 total=5000000\n");
  host::HostReader reader(roots(tree, true));
  const auto signals = reader.read(inventory(), {"/db.slice/pg.service"}, same);
  ASSERT_EQ(signals.limits.size(), 3U);
  EXPECT_EQ(signals.limits[0].device, "sda");
  EXPECT_EQ(signals.limits[0].kind, model::IoLimitKind::wbps);
  EXPECT_EQ(signals.limits[0].done, 2U);
  EXPECT_EQ(signals.limits[1].per_second, 40U);
  EXPECT_EQ(signals.limits[1].done, 4U);
  EXPECT_EQ(signals.limits[2].device, "9:9");
  EXPECT_EQ(signals.limits[2].done, 0U) << "no I/O there yet";
  ASSERT_EQ(signals.cgroups.size(), 1U);
  EXPECT_EQ(signals.cgroups[0].pressure.some_seconds, 5);
  EXPECT_EQ(signals.pressure->some_seconds, 7);
}

TEST(HostReader, FindsLimitsOfTheFirstVersion) {
  const tests::TemporaryTree tree;
  tree.file("cgroup/pg/blkio.throttle.write_iops_device", "8:0 40\n");
  tree.file("cgroup/pg/blkio.throttle.io_serviced", "8:0 Read 7\n8:0 Write 9\n8:0 Total 16\nTotal 16\n");
  host::HostReader reader(roots(tree, false));
  const auto signals = reader.read(inventory(), {"/pg"}, same);
  ASSERT_EQ(signals.limits.size(), 1U);
  EXPECT_EQ(signals.limits[0].kind, model::IoLimitKind::wiops);
  EXPECT_EQ(signals.limits[0].done, 9U);
}

TEST(HostReader, ReadsVolumes) {
  const tests::TemporaryTree tree;
  tree.file("sys/block/dm-0/dm/suspended", "1\n");
  tree.file("sys/block/md0/md/sync_action", "check\n");
  tree.file("sys/block/md0/md/sync_completed", "250 / 1000\n");
  tree.file("sys/block/md0/md/sync_speed", "2048\n");
  tree.file("sys/block/md0/md/degraded", "1\n");
  host::HostReader reader(roots(tree, true));
  auto volumes = reader.read(inventory(), {}, same).volumes;
  ASSERT_EQ(volumes.size(), 2U);
  EXPECT_TRUE(volumes[0].suspended);
  EXPECT_EQ(volumes[1].resync->action, "check");
  EXPECT_EQ(volumes[1].resync->progress_ratio, 0.25);
  EXPECT_EQ(volumes[1].resync->bytes_per_second, 2048U * 1024);
  EXPECT_EQ(volumes[1].missing_members, 1U);
  tree.file("sys/block/dm-0/dm/suspended", "0\n");
  tree.file("sys/block/md0/md/sync_action", "idle\n");
  tree.file("sys/block/md0/md/degraded", "0\n");
  volumes = reader.read(inventory(), {}, same).volumes;
  EXPECT_FALSE(volumes[0].suspended);
  EXPECT_FALSE(volumes[1].resync);
  for (std::size_t i = 0; i < host::HostReader::kTurnsOfHealth; ++i) {
    volumes = reader.read(inventory(), {}, same).volumes;
  }
  EXPECT_EQ(volumes[1].missing_members, 0U) << "its turn has come";
}

TEST(HostReader, OfManyVolumesThoseThatWaitAreReadAtOnceAndTheOthersInTurn) {
  const tests::TemporaryTree tree;
  model::Inventory many;
  for (std::size_t i = 0; i < 2 * host::HostReader::kVolumesAtOnce; ++i) {
    many.layers.push_back({fmt::format("dm-{:03}", i), {}, model::LayerKind::dm});
    tree.file("sys/block/" + many.layers.back().name + "/dm/suspended", "0\n");
  }
  host::HostReader reader(roots(tree, true));
  reader.read(many, {}, same);
  const auto suspend = [&](const char* volume, const char* now) {
    tree.file(fmt::format("sys/block/{}/dm/suspended", volume), now);
  };
  const auto suspended = [&](const std::set<std::string>& waiting) {
    const auto volumes = reader.read(many, {}, same, waiting).volumes;
    EXPECT_EQ(volumes.size(), many.layers.size());
    return std::count_if(volumes.begin(), volumes.end(), [](const auto& one) { return one.suspended; });
  };
  for (const char* volume : {"dm-005", "dm-006", "dm-007"}) {
    suspend(volume, "1\n");
  }
  EXPECT_EQ(suspended({"dm-005", "dm-006", "dm-007"}), 3) << "nothing on them ends";
  for (const char* volume : {"dm-005", "dm-006", "dm-007"}) {
    suspend(volume, "0\n");
  }
  EXPECT_EQ(suspended({}), 0) << "those that were suspended are read each time";
  for (const char* volume : {"dm-005", "dm-006", "dm-007"}) {
    suspend(volume, "1\n");
  }
  EXPECT_EQ(suspended({}), 1) << "a third of them has its turn";
  EXPECT_EQ(suspended({}), 2);
  EXPECT_EQ(suspended({}), 3);
}

TEST(HostReader, OfManyVolumesOneThatIsMadeAgainIsReadAtOnce) {
  const tests::TemporaryTree tree;
  model::Inventory many;
  for (std::size_t i = 0; i < 2 * host::HostReader::kVolumesAtOnce; ++i) {
    many.layers.push_back({fmt::format("md{:03}", i), {}, model::LayerKind::raid1, {"sda", "sdb"}, i + 1});
    tree.file("sys/block/" + many.layers.back().name + "/md/degraded", "1\n");
  }
  host::HostReader reader(roots(tree, true));
  reader.read(many, {}, same);
  for (std::size_t i = 0; i < 9; ++i) {
    tree.file("sys/block/" + many.layers[i].name + "/md/degraded", "0\n");
    if (i < 3) {
      many.layers[i].diskseq = 1000 + i;
    } else if (i < 6) {
      many.layers[i].members = {"sdc", "sdd"};  // without such numbers
    }
  }
  const auto volumes = reader.read(many, {}, same).volumes;
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(volumes[i].missing_members, 0U) << volumes[i].volume << " is another array of this name";
  }
  EXPECT_EQ(std::count_if(volumes.begin() + 6, volumes.begin() + 9,
                          [](const auto& one) { return one.missing_members == 1U; }),
            3)
      << "those that are as they were have not had their turn";
}

TEST(HostReader, AddsUpHowLongDisksWereBusyAndThoseThatHang) {
  const tests::TemporaryTree tree;
  const auto stats = [&](int reads, int in_flight, int busy_ms) {
    tree.file("proc/diskstats",
              fmt::format("   8       0 sda {} 0 8 1 0 0 0 0 {} {} 1 0 0 0 0 0 0\n   9       0 md0 1 0 8 1 0 0 0 "
                          "0 0 {} 1 0 0 0 0 0 0\n",
                          reads, in_flight, busy_ms, busy_ms));
  };
  model::Inventory with_array = inventory();
  with_array.devices.push_back(with_array.devices[0]);
  with_array.devices[1].name = "md0";
  with_array.devices[1].coverage = model::Coverage::stacked;
  host::HostReader reader(roots(tree, true));
  stats(1, 0, 500);
  EXPECT_EQ(reader.read(with_array, {}, same).disks_busy_seconds, 0);
  stats(2, 1, 2500);
  EXPECT_EQ(reader.read(with_array, {}, same).disks_busy_seconds, 2) << "the array's is that of its disks";
  std::this_thread::sleep_for(30ms);
  EXPECT_GE(reader.read(with_array, {}, same).disks_busy_seconds, 2.03) << "in flight, and nothing has ended";
}

TEST(HostReader, CountsThatCannotBeReadAreNotZero) {
  const tests::TemporaryTree tree;
  tree.file("cgroup/a/io.max", "8:0 rbps=max wbps=max riops=max wiops=40\n");
  EXPECT_FALSE(host::HostReader(roots(tree, true)).read(inventory(), {"/a"}, same).limits.at(0).done);
}

TEST(HostReader, EveryCgroupHasItsTurnAndTheirNumberIsBounded) {
  const tests::TemporaryTree tree;
  tree.file("proc/pressure/io", "some avg10=0 avg60=0 avg300=0 total=1\n");
  std::set<std::string> cgroups;
  for (int i = 0; i < 400; ++i) {
    cgroups.insert(fmt::format("/c{:03}", i));
    tree.file(fmt::format("cgroup/c{:03}/io.pressure", i), "some total=1\n");
  }
  tree.file("cgroup/c200/io.max", "8:0 wiops=40\n");
  host::HostReader reader(roots(tree, true));
  std::size_t seen = 0;
  for (int i = 0; i < 16; ++i) {
    const auto signals = reader.read(inventory(), cgroups, same);
    seen += signals.limits.size();
    EXPECT_EQ(signals.cgroups.size(), host::HostReader::kMaxCgroups);
  }
  EXPECT_GE(seen, 2U) << "once found, it is read each time";
}

TEST(HostReader, AHostWithoutAnyOfThisHasNoSignals) {
  const tests::TemporaryTree tree;
  const auto signals = host::HostReader(roots(tree, true)).read({}, {"/gone"}, same);
  EXPECT_FALSE(signals.pressure || signals.dirty || signals.blocked_tasks);
  EXPECT_TRUE(signals.limits.empty() && signals.cgroups.empty() && signals.volumes.empty());
}

std::optional<model::FilesystemRoom> answer(const std::string& mountpoint) {
  while (mountpoint == "/hangs") {
    std::this_thread::sleep_for(1s);
  }
  return model::FilesystemRoom{mountpoint, 100, 50, 10, 5};
}

TEST(RoomWatch, AFileSystemThatHangsHidesNoOther) {
  host::RoomWatch rooms(answer);
  const std::vector<std::string> mounts{"/a", "/hangs", "/z"};
  const auto start = model::SteadyTime{};
  std::size_t answers = 0;
  for (int i = 0; i < 200 && answers < 2; ++i) {
    answers = rooms.latest(mounts, start + i * 1s).size();
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(answers, 2U);
}

TEST(RoomWatch, AsksTheKernelOnlyAboutMounts) {
  EXPECT_FALSE(host::room_of("/proc/self/no/such"));
  EXPECT_FALSE(host::room_of("/proc")) << "it has no size";
  EXPECT_FALSE(host::room_of("/proc/self")) << "nothing is mounted there";
}

/// The whole stage: its counters never fall, whatever the wall clock does.
TEST(HostWaitsStage, CountersNeverFallAndDurationsAreMeasuredTime) {
  HostWaitStage stage;
  model::HostSignals signals;
  signals.pressure.emplace();
  signals.cgroups = {{"/a/1", "a", {5000, 0}}, {"/a/2", "a", {10, 0}}};
  signals.volumes = {{"dm-3", false, {}}};
  model::Tick tick;
  tick.wall = model::WallTime(std::chrono::seconds(1'700'000'000));
  double before = 0, tenant_before = 0;
  model::Batch rows;
  for (int second = 0; second < 200; ++second) {
    tick.at += 1s;
    tick.wall += second == 105 ? -3600s : 1s;  // somebody sets the clock back
    signals.pressure->some_seconds += 0.1;
    signals.cgroups.back().pressure.some_seconds += 0.5;
    if (second == 50) {
      signals.cgroups.erase(signals.cgroups.begin());  // the one that had waited longest is gone
    }
    signals.volumes[0].suspended = second >= 100 && second < 120;
    tick.host = std::make_shared<const model::HostSignals>(signals);
    model::Findings findings = stage.observe(tick);
    model::append(rows, std::move(findings.effects.rows));
    model::Snapshot snapshot;
    findings.values(snapshot);
    const double seconds = snapshot.host.seconds[0];
    EXPECT_GE(seconds, before) << second;
    before = seconds;
    const double tenant = snapshot.host.tenant_pressure_seconds["a"];
    EXPECT_GE(tenant, tenant_before) << second;
    EXPECT_LE(tenant - tenant_before, 0.51) << second;
    tenant_before = tenant;
  }
  ASSERT_EQ(rows.waits.size(), 1U);
  EXPECT_NEAR(rows.waits[0].duration_seconds, 19, 1);
  EXPECT_NEAR(before, 19, 1);
}

TEST(UtilisationStage, CountsHowMuchIsInFlightAtEachTick) {
  block::Utilisation stage;
  model::Tick tick;
  auto disk = std::make_shared<model::Device>();
  disk->name = "sda";
  model::Snapshot snapshot;
  snapshot.devices.resize(1);
  for (const std::int64_t in_flight : {0, 1, 2, 3, 4, 5, 100'000, -1}) {
    auto io = std::make_shared<model::DeviceIo>();
    io->operations[0].in_flight = in_flight;
    model::DeviceTick device;
    device.block.device = disk;
    device.block.io = io;
    tick.devices = {device};
    tick.at += 1s;
    stage.observe(tick).values(snapshot);
  }
  const std::vector<std::uint64_t>& words = snapshot.devices[0].depth.words;
  EXPECT_EQ((std::vector<std::uint64_t>{words.begin(), words.begin() + 5}), (std::vector<std::uint64_t>{2, 1, 1, 2, 1}))
      << "none, one, two, up to four, up to eight";
  EXPECT_EQ(words.back(), 1U);
  EXPECT_EQ(snapshot.devices[0].depth.sum_ios, 100'015U);
}

TEST(RoomTrend, IsHowFastAFileSystemFillsIfItDoesSteadily) {
  spikes::RoomTrend trend;
  model::SteadyTime at{};
  std::map<util::OutsideText, double> rates;
  std::uint64_t available = 6'000'000'000;
  const auto minutes = [&](int number, std::uint64_t less) {
    for (int minute = 0; minute < number; ++minute, at += 1min, available -= less) {
      rates = trend.observe({{"/srv/pg", 1ULL << 40, available, 0, 0}}, at);
    }
  };
  minutes(60, 6'000'000);
  EXPECT_TRUE(rates.empty()) << "59 minutes are no trend";
  minutes(60, 6'000'000);
  EXPECT_NEAR(rates.at("/srv/pg"), 100'000, 1);
  trend.observe({}, at);
  minutes(1, 6'000'000);
  EXPECT_NEAR(rates.at("/srv/pg"), 100'000, 1) << "it was only slow to answer";
  minutes(125, 0);
  EXPECT_TRUE(rates.empty()) << "it does not fill any more";
  for (int minute = 0; minute < 400; ++minute, at += 1min) {
    rates = trend.observe({{"/srv/pg", 1ULL << 40, minute % 30 < 15 ? 100'000'000U : 200'000'000U, 0, 0}}, at);
  }
  trend.observe({{"/srv/pg", 1ULL << 40, 200'000'000U, 0, 0}}, at);
  EXPECT_TRUE(trend.observe({{"/srv/pg", 1ULL << 40, 200'000'000U, 0, 0}}, at).empty()) << "files that come and go";
}

TEST(UtilisationStage, IsTheKernelsTimeBetweenTwoReadings) {
  block::Utilisation stage;
  model::Tick tick;
  auto disk = std::make_shared<model::Device>();
  disk->name = "sda";
  const auto after = [&](std::chrono::seconds elapsed, std::optional<std::uint64_t> busy_ms, std::uint64_t account) {
    tick.at += elapsed;
    model::DeviceTick device;
    device.block.device = disk;
    device.kernel_account = account;
    if (busy_ms) {
      device.account.emplace();
      device.account->kernel_after.busy_ms = *busy_ms;
    }
    tick.devices = {device};
    model::Snapshot snapshot;
    snapshot.devices.resize(1);
    stage.observe(tick).values(snapshot);
    return snapshot.devices[0].utilisation;
  };
  EXPECT_FALSE(after(1s, std::nullopt, 1)) << "the kernel keeps no account";
  EXPECT_FALSE(after(1s, 1000, 1)->busy_ratio) << "there is nothing to compare with";
  EXPECT_EQ(after(4s, 3000, 1)->busy_ratio, 0.5);
  EXPECT_EQ(after(1s, std::nullopt, 1)->busy_ratio, 0.5) << "it is read every few seconds";
  EXPECT_EQ(after(1s, 9000, 1)->busy_ratio, 1.0) << "a jiffy may be counted twice";
  EXPECT_FALSE(after(1s, 9100, 2)->busy_ratio) << "another account";
  EXPECT_EQ(after(2s, 9300, 2)->busy_seconds, 9.3);
  model::HostSignals signals;
  double ratio = 0;
  for (std::uint64_t second = 1; second <= 5; ++second) {
    signals.disks_busy_ms["sda"] = 20'000 + 950 * second;
    tick.host = std::make_shared<const model::HostSignals>(signals);
    ratio = after(1s, 9300, 2)->busy_ratio.value_or(0);
  }
  EXPECT_NEAR(ratio, 0.95, 1e-9) << "by the disk's own line, each second, if it has one";
}

TEST(HostWaitsStage, OfAFloorOnlyTheLayerThatTakesNearlyAllOfTheTimeIsNamed) {
  const auto waits = [&](const std::string& heaviest) {
    model::VolumeFigures figures;
    figures.slow = {slow_floor()};
    figures.slow[0].time.heaviest = heaviest;
    model::Snapshot before;
    before.volume_figures = std::make_shared<const model::VolumeFigures>(figures);
    HostWaitStage stage;
    model::Tick tick;
    auto inventory = std::make_shared<model::Inventory>();
    inventory->layers = {kLuks};
    tick.inventory = inventory;
    tick.host = std::make_shared<const model::HostSignals>();
    tick.before = std::make_shared<const model::Snapshot>(before);
    model::Snapshot snapshot;
    stage.observe(tick).values(snapshot);
    return snapshot.host.waits;
  };
  ASSERT_EQ(waits("dm-0").size(), 1U);
  EXPECT_EQ(waits("dm-0")[0].evidence.at("layer_kind"), static_cast<double>(model::LayerKind::crypt));
  EXPECT_TRUE(waits("").empty());
}

/// A drive that the daemon does not measure, or of which one operation hangs, explains waiting.
TEST(HostWaitsStage, DrivesThatHangOrAreNotMeasuredExplainWaiting) {
  for (const bool measured : {false, true}) {
    HostWaitStage stage;
    model::HostSignals signals;
    signals.pressure.emplace();
    model::Tick tick;
    tick.wall = model::WallTime(std::chrono::seconds(1'700'000'000));
    auto disk = std::make_shared<model::Device>();
    disk->name = "sda";
    auto io = std::make_shared<model::DeviceIo>();
    for (int second = 0; second < 300; ++second) {
      tick.at += 1s;
      tick.wall += 1s;
      signals.pressure->some_seconds += second > 100 ? 1 : 0.01;
      tick.host = std::make_shared<const model::HostSignals>(signals);
      if (second > 100) {  // reads go on, a flush does not end
        io->operations[index(model::Operation::read)].completions += 1;
        io->operations[index(model::Operation::flush)].in_flight = 1;
      }
      model::DeviceTick device;
      device.block.device = disk;
      if (measured) {
        device.block.io = std::make_shared<const model::DeviceIo>(*io);
      }
      tick.devices = {device};
      model::Snapshot snapshot;
      stage.observe(tick).values(snapshot);
      EXPECT_TRUE(snapshot.host.waits.empty()) << measured << ' ' << second;
    }
  }
}

}  // namespace
}  // namespace ssdpulse::spikes
