// SPDX-License-Identifier: Apache-2.0
// What holds up I/O above the drives: when it is claimed, when it is gone, and when nothing is. And how the kernel's
// texts are read.
#include "daemon/analysis/host_waits.h"

#include <gtest/gtest.h>

#include <thread>

#include "daemon/sources/host/host_reader.h"
#include "daemon/sources/host/room_watch.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::analysis {
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
      signals.pressure->some_seconds += pressure;
      for (model::CgroupPressure& one : signals.cgroups) {
        one.pressure.some_seconds += cgroup_pressure;
      }
      for (model::IoLimit& limit : signals.limits) {
        *limit.done += done_per_second;
      }
      waits = subject_.observe({at_, wall_, &signals, in_flight, slow});
      claimed += std::any_of(waits.begin(), waits.end(), [](const HostWait& one) { return !one.end; }) ? 1 : 0;
    }
    return waits;
  }
  double cgroup_pressure = 0;
  std::uint64_t done_per_second = 0;
  int claimed = 0;

  void limit(std::uint64_t per_second) {
    signals.cgroups = {{"/db.slice/pg.service", "pg.service", {}}};
    signals.limits = {{"/db.slice", "db.slice", "sda", model::IoLimitKind::wiops, per_second, 0, "io.max"}};
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
      ends += wait.end ? 1 : 0;
      if (wait.end) {
        EXPECT_NEAR(std::chrono::duration<double>(*wait.end - begin).count(), 9, 2);
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

TEST(HostWaits, ALimitIsNotBlamedForADriveThatIsSlow) {
  Host host;
  host.limit(40);
  host.done_per_second = 40;
  host.cgroup_pressure = 0.9;
  host.slow = {"sda"};
  host.seconds(60);
  EXPECT_EQ(host.claimed, 0);
}

TEST(HostWaits, WhatHasBeenFullForLongIsNoNews) {
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

TEST(HostWaits, DirtyPagesHoldUpWritersFromHalfwayBetweenBothThresholds) {
  Host host;
  host.pressure = host.in_flight = 0.9;
  host.signals.dirty = {{14 << 20, 20 << 20, 10 << 20}};
  host.seconds(30);
  EXPECT_EQ(host.claimed, 0);
  host.signals.dirty->bytes = 15 << 20;
  EXPECT_EQ(host.seconds(3).at(0).cause, HostWaitCause::dirty_throttling);
}

TEST(HostWaits, WaitingThatDrivesExplainIsNoFinding) {
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
  network.seconds(3600);
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
  return made;
}

std::string same(const std::string& cgroup) { return cgroup; }

TEST(HostReader, FindsLimitsOnTheCgroupAndAboveItAndWhatIsCountedAgainstThem) {
  const tests::TemporaryTree tree;
  tree.file("cgroup/db.slice/io.max",
            "8:0 rbps=max wbps=1048576 riops=max wiops=40\n9:9 rbps=5 wbps=max riops=max wiops=max\n");
  tree.file("cgroup/db.slice/io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n");
  tree.file("cgroup/db.slice/pg.service/io.max", "");
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
  EXPECT_FALSE(signals.pressure);
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
  host::HostReader reader(roots(tree, true));
  const auto volumes = reader.read(inventory(), {}, same).volumes;
  ASSERT_EQ(volumes.size(), 2U);
  EXPECT_TRUE(volumes[0].suspended);
  EXPECT_EQ(volumes[1].resync->action, "check");
  EXPECT_EQ(volumes[1].resync->progress_ratio, 0.25);
  EXPECT_EQ(volumes[1].resync->bytes_per_second, 2048U * 1024);
}

TEST(HostReader, DisksThatAreNotMeasuredCountToo) {
  const tests::TemporaryTree tree;
  tree.file(
      "proc/diskstats",
      "   8       0 sda 1 0 8 1 0 0 0 0 0 500 1 0 0 0 0 0 0\n   8      16 sdb 1 0 8 1 0 0 0 0 0 2500 1 0 0 0 0\n");
  model::Inventory both = inventory();
  both.devices.push_back(both.devices[0]);
  both.devices[1].name = "sdb";
  both.devices[1].coverage = model::Coverage::excluded;
  EXPECT_EQ(host::HostReader(roots(tree, true)).read(both, {}, same).other_disks_busy_seconds, 2.5);
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
    answers = rooms.look(mounts, start + i * 1s).size();
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(answers, 2U);
}

TEST(RoomWatch, AsksTheKernelOnlyAboutMounts) {
  EXPECT_FALSE(host::room_of("/proc/self/no/such"));
  EXPECT_FALSE(host::room_of("/proc")) << "it has no size";
  EXPECT_FALSE(host::room_of("/proc/self")) << "nothing is mounted there";
}

}  // namespace
}  // namespace ssdpulse::analysis
