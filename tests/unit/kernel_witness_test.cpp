// SPDX-License-Identifier: Apache-2.0
// What the inventory gets directly from the kernel while running: disk statistics and uevents.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/loop.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "daemon/host/disk_stats.h"
#include "daemon/host/uevent_monitor.h"
#include "tests/fixtures/sysfs_host.h"

namespace ssdpulse::host {
namespace {

using namespace std::string_literals;

TEST(DiskStats, ElevenFifteenOrSeventeenFields) {
  auto stats = parse_disk_stats("   1  2  3  4  5  6  7  8  9  10  11\n");
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->reads, 1U);
  EXPECT_EQ(stats->read_sectors, 3U);
  EXPECT_EQ(stats->writes, 5U);
  EXPECT_EQ(stats->written_sectors, 7U);
  EXPECT_EQ(stats->in_flight, 9U);
  EXPECT_FALSE(stats->discards);
  EXPECT_FALSE(stats->discarded_sectors);
  EXPECT_FALSE(stats->flushes);
  stats = parse_disk_stats("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->discards, 12U);
  EXPECT_EQ(stats->discarded_sectors, 14U);
  EXPECT_FALSE(stats->flushes);
  stats = parse_disk_stats("1 2 3 4 18446744073709551615 6 7 8 9 10 11 12 13 14 15 16 17 18 19");
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->writes, 18446744073709551615U);
  EXPECT_EQ(stats->flushes, 16U);
  for (const std::string text : {"", "1 2 3 4 5 6 7 8 9 10", "1 2 x 4 5 6 7 8 9 10 11", "1 2 -3 4 5 6 7 8 9 10 11",
                                 "1 2 3 4 18446744073709551616 6 7 8 9 10 11"}) {
    EXPECT_FALSE(parse_disk_stats(text)) << text;
  }
}

TEST(DiskStats, OfAllDisksAreFoundByName) {
  const AllDiskStats all = parse_all_disk_stats(
      "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n   8       1 sda1 4 3\n 104       0 cciss/c0d0 6 2 3 4 5 6 7 8 9 10 "
      "11 12 13 14 "
      "15\nnonsense\n\n 253       0 dm-0 7 2 3 4 5 6 7 8 9 10 11");
  ASSERT_EQ(all.size(), 3U) << "what is not understood is left out";
  EXPECT_EQ(all.at("sda").reads, 1U);
  EXPECT_EQ(all.at("sda").busy_ms, 10U);
  EXPECT_EQ(all.at("cciss/c0d0").discards, 12U);
  EXPECT_EQ(all.at("dm-0").reads, 7U);
}

TEST(DiskStats, HiddenPathsAreFoundWhereverTheyLie) {
  const tests::SysfsHost host;
  const std::string line = " 0 0 0 0 0 0 0 0 0 0";
  host.disk("a/nvme/nvme4", "nvme0c4n1", "", "stat = 41" + line + "\ninflight = 0 0");
  host.tree().link("sys/class/nvme/nvme4", "../../devices/a/nvme/nvme4");
  host.disk("b/nvme/nvme5", "nvme0c5n1", "", "stat = 51" + line + "\ninflight = 0 0");
  host.tree().link("sys/class/nvme/nvme5", "../../devices/b/nvme/nvme5");
  host.tree().remove("sys/block/nvme0c5n1");
  host.disk("c", "cciss!c0d0", "104:0", "stat = 7" + line + "\ninflight = 0 0");
  EXPECT_EQ(read_disk_stats(host.roots(), "nvme0c4n1")->reads, 41U);
  EXPECT_EQ(read_disk_stats(host.roots(), "nvme0c5n1")->reads, 51U);
  EXPECT_EQ(read_disk_stats(host.roots(), "cciss/c0d0")->reads, 7U);
  EXPECT_FALSE(read_disk_stats(host.roots(), "nvme0c6n1"));
  EXPECT_FALSE(read_disk_stats(host.roots(), "sda"));
}

TEST(DiskStats, AnOpenFileFollowsTheCounters) {
  const tests::SysfsHost host;
  host.disk("a", "sda", "8:0", "stat = 1 0 0 0 0 0 0 0 0 0 0\ninflight = 0 0");
  const auto file = DiskStatsFile::open(host.roots(), "sda");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->read()->reads, 1U);
  host.tree().file("sys/devices/a/sda/stat", "12345 0 0 0 0 0 0 0 0 0 0\n");
  EXPECT_EQ(file->read()->reads, 12345U);
  host.tree().file("sys/devices/a/sda/stat", "");
  EXPECT_FALSE(file->read());
  host.tree().file("sys/devices/a/sda/inflight", "       3       14\n");
  ASSERT_TRUE(file->read_in_flight());
  EXPECT_EQ(file->read_in_flight()->reads, 3);
  EXPECT_EQ(file->read_in_flight()->writes, 14);
  for (const char* odd : {"", "3", "3 x", "-3 4", "3 4 5"}) {
    host.tree().file("sys/devices/a/sda/inflight", odd);
    EXPECT_FALSE(file->read_in_flight()) << odd;
  }
}

TEST(UeventMessage, OnlyDisksConcern) {
  EXPECT_TRUE(concerns_disks("add@/devices/x\0ACTION=add\0SUBSYSTEM=block\0DEVNAME=sda\0"s));
  EXPECT_TRUE(concerns_disks("change@/devices/x\0SUBSYSTEM=nvme"s));
  EXPECT_FALSE(concerns_disks("add@/devices/x\0ACTION=add\0SUBSYSTEM=net\0"s));
  EXPECT_FALSE(concerns_disks("add@/devices/x\0SUBSYSTEM=blocked\0XSUBSYSTEM=block\0"s));
  EXPECT_FALSE(concerns_disks("libudev\0SUBSYSTEM=block\0"s));  // udev's own messages
  EXPECT_FALSE(concerns_disks("add@SUBSYSTEM=block"s));
  EXPECT_FALSE(concerns_disks(""));
  EXPECT_FALSE(concerns_disks("\0\0\0"s));
}

bool becomes_readable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, 20'000) == 1;
}

/// A loop device of our own, for the duration of the test: it plays the disks that appear and disappear.
class LoopDevice {
 public:
  static constexpr int kNumber = 4711;
  LoopDevice() : control_(::open("/dev/loop-control", O_RDWR | O_CLOEXEC)) {
    present_ = control_.valid() && ::ioctl(control_.get(), LOOP_CTL_ADD, kNumber) == kNumber;
  }
  ~LoopDevice() { remove(); }
  [[nodiscard]] bool present() const { return present_; }
  void remove() {
    if (present_) {
      // A program that probes new devices (udev) may hold it for a moment.
      for (int attempt = 0; attempt < 100 && ::ioctl(control_.get(), LOOP_CTL_REMOVE, kNumber) < 0; ++attempt) {
        ::usleep(20000);
      }
      present_ = false;
    }
  }

 private:
  util::UniqueFd control_;
  bool present_ = false;
};

TEST(ThisKernel, AnnouncesDisksAndEndsTheirStatistics) {
  const auto monitor = UeventMonitor::open();
  ASSERT_TRUE(monitor) << monitor.error().message;
  (void)monitor->drain();
  LoopDevice loop;
  if (!loop.present()) {
    GTEST_SKIP() << "cannot add a loop device here";
  }
  EXPECT_TRUE(becomes_readable(monitor->fd()));
  EXPECT_TRUE(monitor->drain());
  const auto file = DiskStatsFile::open({}, "loop4711");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->read());
  EXPECT_TRUE(file->read_in_flight());
  loop.remove();
  EXPECT_TRUE(becomes_readable(monitor->fd()));
  EXPECT_TRUE(monitor->drain());
  const auto gone = file->read();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().error_number, ENODEV);
}

TEST(ThisKernel, MessagesOfOtherProcessesAreIgnored) {
  const auto monitor = UeventMonitor::open();
  ASSERT_TRUE(monitor) << monitor.error().message;
  sockaddr_nl address{};
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(monitor->fd(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  address.nl_groups = 0;
  const util::UniqueFd liar(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT));
  const std::string message = "add@/devices/x\0SUBSYSTEM=block\0"s;
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  // Other disks of this host may appear or disappear at the same time; a wrong answer would be wrong every time.
  for (int attempt = 0; attempt < 100; ++attempt) {
    (void)monitor->drain();
    if (::sendto(liar.get(), message.data(), message.size(), 0, to, length) < 0) {
      GTEST_SKIP() << "this kernel lets nobody send here";
    }
    ASSERT_TRUE(becomes_readable(monitor->fd()));
    if (!monitor->drain()) {
      return;
    }
  }
  FAIL() << "a message of another process was taken for the kernel's";
}

}  // namespace
}  // namespace ssdpulse::host
