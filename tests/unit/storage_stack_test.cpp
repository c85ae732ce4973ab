// SPDX-License-Identifier: Apache-2.0
// What lies on what? Arrays, volumes and mounted file systems down to the disks that carry them, on made-up hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/sources/inventory/filesystems.h"
#include "daemon/sources/inventory/inventory.h"
#include "tests/fixtures/sysfs_host.h"

namespace ssdpulse::inventory {
namespace {

using model::Coverage;
using model::Inventory;
using tests::add_nvme;
using tests::add_scsi;
using tests::device_of;
using tests::kNvme0;
using tests::look;
using tests::SysfsHost;
using Strings = std::vector<std::string>;
using StringSet = std::set<std::string>;

/// "array/kind/name:device" for each membership.
std::set<std::string> members_of(const Inventory& inventory) {
  std::set<std::string> members;
  for (const auto& m : inventory.memberships) {
    EXPECT_TRUE(members.insert(m.array + "/" + m.kind + "/" + m.name + ":" + m.device).second);
  }
  return members;
}

/// "device mountpoint fstype", plus " discard" if it is on.
std::vector<std::string> mounts_of(const Inventory& inventory) {
  std::vector<std::string> mounts;
  for (const auto& f : inventory.filesystems) {
    mounts.push_back(f.device + " " + f.mountpoint + " " + f.fstype + (f.discard ? " discard" : ""));
  }
  return mounts;
}

/// "name on device", plus " carries" if an array lies directly on it; by number.
std::map<std::string, std::string> volumes_of(const Inventory& inventory) {
  std::map<std::string, std::string> volumes;
  for (const auto& v : inventory.volumes) {
    volumes[std::to_string(v.major) + ":" + std::to_string(v.minor)] =
        v.name + " on " + v.device + (v.carries_array ? " carries" : "");
  }
  EXPECT_TRUE(std::is_sorted(inventory.volumes.begin(), inventory.volumes.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  return volumes;
}

/// "mountpoint volume,volume" for each file system, once.
StringSet volumes_below(const Inventory& inventory) {
  StringSet result;
  for (const auto& f : inventory.filesystems) {
    std::string names;
    for (const std::string& volume : f.volumes) {
      names += (names.empty() ? "" : ",") + volume;
    }
    result.insert(f.mountpoint + " " + names);
  }
  return result;
}

TEST(Stacking, RaidOverPartitions) {
  const SysfsHost host;
  Strings members;
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    const std::string place = "pci0000:00/0000:0" + n + ":00.0/nvme/nvme" + n;
    add_nvme(host, i, std::to_string(i * 2));
    host.partition(place, "nvme" + n + "n1", "nvme" + n + "n1p1", "259:" + std::to_string(i * 2 + 1));
    members.push_back(place + "/nvme" + n + "n1/nvme" + n + "n1p1");
  }
  host.array("md0", "9:0", members);
  host.mounts("30 1 9:0 / /srv/my\\040data rw,noatime shared:1 - xfs /dev/md0 rw,discard,noquota\n");
  const Inventory inventory = look(host, {{"*"}, {"nvme2n1"}});
  EXPECT_EQ(device_of(inventory, "md0").coverage, Coverage::stacked);
  EXPECT_TRUE(device_of(inventory, "md0").paths.empty());
  EXPECT_EQ(members_of(inventory),
            (StringSet{"md0/md/:nvme0n1", "md0/md/:nvme1n1", "md0/md/:nvme2n1", "md0/md/:nvme3n1"}));
  EXPECT_EQ(mounts_of(inventory), (Strings{"nvme0n1 /srv/my data xfs discard", "nvme1n1 /srv/my data xfs discard",
                                           "nvme3n1 /srv/my data xfs discard"}));
  EXPECT_EQ(volumes_below(inventory), StringSet{"/srv/my data md0"});
}

TEST(Stacking, LvmOverCryptOverPartition) {
  const SysfsHost host;
  add_nvme(host, 0, "0");
  host.partition(kNvme0, "nvme0n1", "nvme0n1p3", "259:3");
  host.array("dm-0", "252:0", {std::string(kNvme0) + "/nvme0n1/nvme0n1p3"}, "dm/name = luks-1");
  host.array("dm-1", "252:1", {"virtual/block/dm-0"}, "dm/name = vg-root");
  host.array("dm-2", "252:2", {}, "dm/name = empty-target");
  host.mounts(
      "20 1 252:1 / / rw - ext4 /dev/mapper/vg-root rw,nodiscard\n"
      "21 20 259:3 / /boot rw - vfat /dev/nvme0n1p3 rw,errors=remount-ro\n");
  const Inventory inventory = look(host);
  for (const std::string dm : {"dm-0", "dm-1", "dm-2"}) {
    EXPECT_EQ(device_of(inventory, dm).coverage, Coverage::stacked);
    EXPECT_EQ(device_of(inventory, dm).transport, "dm");
  }
  EXPECT_EQ(members_of(inventory), (StringSet{"dm-0/dm/luks-1:nvme0n1", "dm-1/dm/vg-root:nvme0n1"}));
  EXPECT_EQ(mounts_of(inventory), (Strings{"nvme0n1 / ext4", "nvme0n1 /boot vfat"}));
  EXPECT_EQ(volumes_below(inventory), (StringSet{"/ dm-1", "/boot nvme0n1p3"}));
  EXPECT_EQ(volumes_of(inventory), (std::map<std::string, std::string>{{"259:0", "nvme0n1 on nvme0n1"},
                                                                       {"259:3", "nvme0n1p3 on nvme0n1 carries"},
                                                                       {"252:0", "dm-0 on dm-0 carries"},
                                                                       {"252:1", "dm-1 on dm-1"},
                                                                       {"252:2", "dm-2 on dm-2"}}));
}

TEST(Stacking, DmMultipathCountsNothingTwice) {
  const SysfsHost host;
  const std::string first = "pci0000:00/host1/rport-1:0-0/target1:0:0/1:0:0:0";
  const std::string second = "pci0000:00/host2/rport-2:0-0/target2:0:0/2:0:0:0";
  add_scsi(host, "sda", first, "0", "");
  add_scsi(host, "sdb", second, "16", "");
  host.array("dm-0", "252:0", {first + "/block/sda", second + "/block/sdb"}, "dm/name = mpatha\nmq/0/nr_tags = 128");
  const Inventory inventory = look(host);
  EXPECT_EQ(device_of(inventory, "dm-0").coverage, Coverage::stacked);
  EXPECT_TRUE(device_of(inventory, "dm-0").paths.empty());
  EXPECT_EQ(device_of(inventory, "sda").transport, "fc");
  EXPECT_EQ(members_of(inventory), (StringSet{"dm-0/dm/mpatha:sda", "dm-0/dm/mpatha:sdb"}));
}

TEST(Filesystems, OneMountForEachFilesystemAndItsRootIfShown) {
  const auto mounts = one_for_each_filesystem(
      parse_mountinfo("1 0 8:1 /sub /bind rw shared:5 master:2 - ext4 /dev/sda1 rw,discard\n"
                      "2 0 8:1 / /real\\011\\134x\\040y rw - ext4 /dev/sda1 rw,discard\n"
                      "3 0 8:1 / /second rw - ext4 /dev/sda1 rw\n"
                      "4 0 0:44 /@ / rw - btrfs /dev/sda2 rw,ssd,discard=async,subvol=/a\\054b\n"
                      "5 0 0:44 /@home /home rw - btrfs /dev/sda2 rw,discard=async\n"
                      "6 0 8:2 / /nodiscard rw,discard - ext4 /dev/sda2 rw,nodiscard,xdiscard\n"
                      "not a mount\n"
                      "7 0 8:3 / /short rw - ext4 /dev/sda3\n"
                      "8 0 8:4 / /last\\0400 rw - f2fs /dev/sd\\040a rw,discard"));
  ASSERT_EQ(mounts.size(), 4U);
  EXPECT_EQ(mounts[0].mountpoint, "/real\t\\x y");
  EXPECT_TRUE(mounts[0].discard);
  EXPECT_EQ(mounts[1].mountpoint, "/");
  EXPECT_TRUE(mounts[1].discard);
  EXPECT_EQ(mounts[1].options, (std::set<std::string>{"rw", "ssd", "discard=async", "subvol=/a,b"}));
  EXPECT_EQ(mounts[2].mountpoint, "/nodiscard");
  EXPECT_FALSE(mounts[2].discard);
  EXPECT_EQ(mounts[3].mountpoint, "/last 0");
  EXPECT_EQ(mounts[3].source, "/dev/sd a");
  EXPECT_TRUE(parse_mountinfo("").empty());
}

TEST(Filesystems, BtrfsIsFoundByItsSourceAndItsMembers) {
  const SysfsHost host;
  add_nvme(host, 0, "0");
  add_nvme(host, 1, "2");
  const std::string second = "pci0000:00/0000:01:00.0/nvme/nvme1";
  host.partition(second, "nvme1n1", "nvme1n1p2", "259:7");
  host.array("dm-0", "252:0", {second + "/nvme1n1"}, "dm/name = vg-b");
  host.tree().add("sys/fs/btrfs/1234/devices",
                  "nvme0n1 -> ../../../../devices/x/nvme0n1\nnvme1n1p2 -> ../../../../devices/x/nvme1n1/nvme1n1p2");
  host.tree().add("sys/fs/btrfs/5678/devices", "dm-0 -> ../../../../devices/x/dm-0\nvda -> ../../../../devices/x/vda");
  host.disk("x", "vda", "254:0");
  host.mounts(
      "1 0 0:30 / /two rw - btrfs /dev/nvme1n1p2 rw,discard=async\n"
      "2 0 0:31 / /lvm rw - btrfs /dev/mapper/vg-b rw\n"
      "3 0 0:32 / /tmp rw - tmpfs tmpfs rw\n"
      "4 0 0:33 / /nfs rw - nfs server:/dev/nvme0n1 rw\n"
      "5 0 0:34 / /odd rw - btrfs /dev/none rw\n"
      "6 0 8:99 / /unknown rw - ext4 /dev/sdq rw\n"
      "7 0 259:0 / /over rw - ext4 /dev/nvme0n1 rw\n"
      "8 0 259:7 / /two rw - ext4 /dev/nvme1n1p2 rw\n");
  const Inventory inventory = look(host);
  EXPECT_EQ(mounts_of(inventory), (Strings{"nvme0n1 /over ext4", "nvme0n1 /two btrfs discard", "nvme1n1 /lvm btrfs",
                                           "nvme1n1 /two btrfs discard", "vda /lvm btrfs"}));
  EXPECT_EQ(volumes_below(inventory), (StringSet{"/lvm dm-0,vda", "/over nvme0n1", "/two nvme0n1,nvme1n1p2"}));
}

}  // namespace
}  // namespace ssdpulse::inventory
