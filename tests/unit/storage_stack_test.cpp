// SPDX-License-Identifier: Apache-2.0
// What lies on what? Arrays, volumes and mounted file systems down to the disks that carry them, on made-up hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/host/filesystems.h"
#include "daemon/host/inventory.h"
#include "tests/fixtures/sysfs_host.h"

namespace ssdpulse::host {
namespace {

using model::Coverage;
using model::Inventory;
using tests::add_nvme;
using tests::add_scsi;
using tests::device_of;
using tests::inventory_of;
using tests::kNvme0;
using tests::SysfsHost;
using Strings = std::vector<std::string>;
using StringSet = std::set<std::string>;

/// "array/kind/name:device" for each membership.
std::set<std::string> members_of(const Inventory& inventory) {
  std::set<std::string> members;
  for (const auto& m : inventory.memberships) {
    EXPECT_TRUE(members.insert(m.array + "/" + m.kind + "/" + m.name.raw() + ":" + m.device).second);
  }
  return members;
}

/// "device mountpoint fstype", plus " discard" if it is on.
std::vector<std::string> mounts_of(const Inventory& inventory) {
  std::vector<std::string> mounts;
  for (const auto& f : inventory.filesystems) {
    mounts.push_back(f.device + " " + f.mountpoint.raw() + " " + f.fstype.raw() + (f.discard ? " discard" : ""));
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
    result.insert(f.mountpoint.raw() + " " + names);
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
  const Inventory inventory = inventory_of(host, {{"*"}, {"nvme2n1"}});
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
  const Inventory inventory = inventory_of(host);
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
  const Inventory inventory = inventory_of(host);
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
  const Inventory inventory = inventory_of(host);
  EXPECT_EQ(mounts_of(inventory), (Strings{"nvme0n1 /over ext4", "nvme0n1 /two btrfs discard", "nvme1n1 /lvm btrfs",
                                           "nvme1n1 /two btrfs discard", "vda /lvm btrfs"}));
  EXPECT_EQ(volumes_below(inventory), (StringSet{"/lvm dm-0,vda", "/over nvme0n1", "/two nvme0n1,nvme1n1p2"}));
}

struct Options {
  const char* fstype;
  const char* shown;
  const char* listed;  // in /proc/fs/ext4; null: there is no such file
  StringSet in_force;
  bool complete;
  std::optional<bool> journal;
  bool discard;
};

TEST(Filesystems, OptionsInForceThatMountinfoDoesNotShow) {
  const std::vector<Options> rows{
      {"ext4",
       "rw",
       "rw\ndiscard\nnobarrier\ndata=writeback\n",
       {"data=writeback", "discard", "nobarrier"},
       true,
       true,
       true},
      {"ext4", "rw", "rw\nnodiscard\nbarrier\ndata=ordered\n", {}, true, true, false},
      {"ext4", "rw,discard", "rw\ndiscard\nbarrier\ndata=journal\n", {"data=journal"}, true, true, true},
      {"ext4", "rw", "rw\ndiscard\nbarrier\n", {"discard"}, true, false, true},
      {"ext3", "rw", "rw\nnodiscard\nnobarrier\ndata=ordered", {"nobarrier"}, true, true, false},
      {"ext2", "rw", "rw\nnodiscard\nbarrier\n", {}, true, false, false},
      {"ext2", "rw", nullptr, {}, true, {}, false},
      {"ext4", "rw", nullptr, {}, false, {}, false},
      {"ext4", "rw,discard", nullptr, {}, false, {}, true},
      {"ext4", "rw", "", {}, false, {}, false},
      {"ext4", "rw", "rw\nnobarrier\n", {"nobarrier"}, false, {}, false},
      {"ext4", "rw", "discarded\n\x01\xff barrier\ndata", {}, false, {}, false},
      {"xfs", "rw", "rw\ndiscard\nnobarrier\n", {}, true, {}, false},
      {"f2fs", "rw,discard", nullptr, {}, true, {}, true},
      {"ocfs2", "rw", nullptr, {}, false, {}, false},
      {"fuseblk", "rw", "rw\ndiscard\nbarrier\n", {}, false, {}, false},
  };
  for (const Options& row : rows) {
    SCOPED_TRACE(std::string(row.fstype) + " " + row.shown + ": " + (row.listed == nullptr ? "none" : row.listed));
    const SysfsHost host;
    add_nvme(host, 0, "0");
    host.mounts("1 0 259:0 / /data rw,relatime - " + std::string(row.fstype) + " /dev/x " + row.shown + "\n");
    if (row.listed != nullptr) {
      host.tree().file("proc/fs/ext4/nvme0n1/options", row.listed);
    }
    const Inventory inventory = inventory_of(host);
    ASSERT_EQ(inventory.filesystems.size(), 1U);
    const model::Filesystem& found = inventory.filesystems[0];
    EXPECT_EQ(found.unshown.in_force, row.in_force);
    EXPECT_EQ(found.unshown.complete, row.complete);
    EXPECT_EQ(found.unshown.journal, row.journal);
    EXPECT_EQ(found.discard, row.discard);
    for (const std::string& option : row.in_force) {
      EXPECT_EQ(found.options.count(option), 1U) << option;
    }
  }
}

/// Three drives, of which the third has a partition and carries dm-0; a btrfs over the first two.
struct PooledHost : SysfsHost {
  static constexpr const char* kFirst = "15893a4f-4744-4d40-aea8-e1ee8c2e5033";

  PooledHost() {
    for (int i = 0; i < 3; ++i) {
      add_nvme(*this, i, std::to_string(i * 2));
    }
    const std::string third = "pci0000:00/0000:02:00.0/nvme/nvme2";
    partition(third, "nvme2n1", "nvme2n1p1", "259:9");
    array("dm-0", "252:0", {third + "/nvme2n1/nvme2n1p1"}, "dm/name = vg-data");
    btrfs(kFirst, {"nvme0n1", "nvme1n1"});
    tree().directory("sys/fs/btrfs/features");
  }
  void btrfs(const std::string& id, const Strings& members) const {
    for (const std::string& member : members) {
      tree().link("sys/fs/btrfs/" + id + "/devices/" + member, "../../../../devices/x/" + member);
    }
  }
  void bcachefs(const std::string& id, const Strings& members) const {
    for (std::size_t i = 0; i < members.size(); ++i) {
      tree().link("sys/fs/bcachefs/" + id + "/dev-" + std::to_string(i) + "/block", "../../../../block/" + members[i]);
    }
  }
};

TEST(Filesystems, OverSeveralDisksAreFoundWhateverTheirSourceIsCalled) {
  for (const std::string source :
       {"/dev/nvme0n1", "/dev/root", "/dev/disk/by-uuid/15893a4f-4744-4d40-aea8-e1ee8c2e5033", "/dev/gone/link",
        "UUID=15893a4f-4744-4d40-aea8-e1ee8c2e5033", "none"}) {
    SCOPED_TRACE(source);
    const PooledHost host;
    host.mounts("61 1 0:30 /@ / rw,noatime shared:1 - btrfs " + source + " rw,ssd,discard=async,subvolid=256\n");
    const Inventory inventory = inventory_of(host);
    EXPECT_EQ(mounts_of(inventory), (Strings{"nvme0n1 / btrfs discard", "nvme1n1 / btrfs discard"}));
    EXPECT_EQ(volumes_below(inventory), StringSet{"/ nvme0n1,nvme1n1"});
    EXPECT_TRUE(inventory.warnings.empty());
  }
}

TEST(Filesystems, OverSeveralDisksAreKeptApart) {
  const PooledHost host;
  host.btrfs("22222222-0000-0000-0000-000000000000", {"dm-0"});
  host.tree().link("dev/disk/by-label/data", "../../dm-0");
  const auto mounts = [&](const std::string& first, const std::string& second) {
    host.mounts("1 0 0:30 / /a rw - btrfs " + first + " rw\n2 0 0:31 / /b rw - btrfs " + second + " rw\n");
    return inventory_of(host);
  };
  const Strings right{"nvme0n1 /a btrfs", "nvme1n1 /a btrfs", "nvme2n1 /b btrfs"};
  EXPECT_EQ(mounts_of(mounts("/dev/nvme1n1", "/dev/mapper/vg-data")), right);
  EXPECT_EQ(mounts_of(mounts("/dev/root", "/dev/disk/by-label/data")), right) << "what is left";
  EXPECT_EQ(mounts_of(mounts(std::string("/dev/disk/by-uuid/") + PooledHost::kFirst, "/dev/gone")), right);
  const Inventory unknown = mounts("/dev/root", "/dev/gone");
  EXPECT_EQ(mounts_of(unknown), Strings{}) << "either could be either";
  ASSERT_EQ(unknown.warnings.size(), 2U);
  EXPECT_EQ(unknown.warnings[0], "the disks of /a (btrfs) are unknown");
  EXPECT_EQ(mounts_of(mounts("/dev/nvme0n1", "/dev/nvme1n1")), Strings{}) << "one of the names is out of date";
}

TEST(Filesystems, Bcachefs) {
  const std::string mount = "60 1 0:46 / /data rw,relatime shared:1 - bcachefs ";
  for (const std::string source : {"/dev/nvme0n1:/dev/nvme1n1", "UUID=abc", "/dev/nvme1n1", "/dev/gone:/dev/root"}) {
    SCOPED_TRACE(source);
    const PooledHost host;
    host.bcachefs("abc", {"nvme0n1", "nvme1n1"});
    host.mounts(mount + source + " rw\n");
    EXPECT_EQ(mounts_of(inventory_of(host)), (Strings{"nvme0n1 /data bcachefs", "nvme1n1 /data bcachefs"}));
    host.tree().file("sys/fs/bcachefs/abc/dev-1/discard", "1\n");
    EXPECT_EQ(mounts_of(inventory_of(host)),
              (Strings{"nvme0n1 /data bcachefs discard", "nvme1n1 /data bcachefs discard"}));
  }
  const PooledHost without;
  without.mounts(mount + "/dev/nvme0n1:/dev/mapper/vg-data rw\n");
  EXPECT_EQ(mounts_of(inventory_of(without)), (Strings{"nvme0n1 /data bcachefs", "nvme2n1 /data bcachefs"}))
      << "sysfs lists none: the paths by which the kernel knows them";
}

TEST(Filesystems, NobodyGetsADiskByNamingIt) {
  const PooledHost host;
  host.mounts(
      "1 0 0:50 / /fuse rw,user_id=1000 - fuse.sshfs /dev/nvme0n1 rw,user_id=1000\n"
      "2 0 0:51 / /fuse2 rw - fuse /dev/nvme0n1:/dev/nvme1n1 rw,discard\n"
      "3 0 0:52 / /fuse3 rw - fuse.btrfs /dev/nvme0n1 rw,discard\n"
      "4 0 0:53 / /tmp rw - tmpfs /dev/nvme0n1 rw\n"
      "5 0 0:54 / /nfs rw - nfs4 /dev/nvme0n1 rw\n"
      "6 0 0:55 / /over rw - overlay /dev/mapper/vg-data rw,logdev=/dev/nvme0n1\n"
      "7 0 259:9 / /ntfs rw - fuseblk /dev/nvme0n1 rw,logdev=/dev/nvme0n1\n");
  EXPECT_EQ(mounts_of(inventory_of(host)), Strings{"nvme2n1 /ntfs fuseblk"}) << "by its number";
}

TEST(Filesystems, BeyondTheLimitsAreCountedAndTakeNoName) {
  const SysfsHost host;
  std::string lines;
  std::uint64_t id = 1;
  const auto fill = [&](unsigned disk, std::uint64_t partitions) {
    const std::string number = std::to_string(disk);
    const std::string name = "nvme" + number + "n1";
    const std::string path = "pci0000:00/0000:0" + number + ":00.0/nvme/nvme" + number;
    add_nvme(host, static_cast<int>(disk), std::to_string(disk * 200));
    for (std::uint64_t i = 1; i <= partitions; ++i) {
      const std::string device = "259:" + std::to_string(disk * 200 + i);
      host.partition(path, name, name + "p" + std::to_string(i), device);
      // New names sort first; the order of the list is that of mounting.
      lines += std::to_string(id) + " 0 " + device + " / /" + std::to_string(9999 - id) + " rw - ext4 x rw\n";
      ++id;
    }
  };
  fill(0, 100);
  host.mounts(lines);
  const Inventory one = inventory_of(host);
  ASSERT_EQ(one.filesystems.size(), kMaxFilesystemsOfDisk);
  EXPECT_EQ(one.filesystems.back().mountpoint, "/9998") << "those that were mounted first";
  EXPECT_EQ(one.unnamed_filesystems.in_all, 100 - kMaxFilesystemsOfDisk);
  for (unsigned disk = 1; disk < 6; ++disk) {
    fill(disk, 60);
  }
  host.mounts(lines);
  const Inventory many = inventory_of(host);
  EXPECT_EQ(many.filesystems.size(), kMaxFilesystems);
  EXPECT_EQ(many.unnamed_filesystems.in_all, 400 - kMaxFilesystems);
  EXPECT_EQ(many.unnamed_filesystems.by_device,
            (std::map<std::string, std::uint64_t>{{"nvme0n1", 36}, {"nvme4n1", 48}, {"nvme5n1", 60}}));
}

TEST(Filesystems, XfsIsOnItsLogAndRealtimeDisksToo) {
  for (const auto& [log, realtime] : std::vector<std::pair<std::string, std::string>>{
           {"/dev/nvme1n1", "/dev/nvme2n1p1"}, {"/dev/by/log", "/dev/mapper/vg-data"}, {"/dev/nvme1n1", "/dev/dm-0"}}) {
    const PooledHost host;
    host.tree().link("dev/by/log", "../nvme1n1");
    host.mounts("1 0 259:0 / /x rw - xfs /dev/nvme0n1 rw,logdev=" + log + ",rtdev=" + realtime + "\n");
    const Inventory inventory = inventory_of(host);
    EXPECT_EQ(mounts_of(inventory), (Strings{"nvme0n1 /x xfs", "nvme1n1 /x xfs", "nvme2n1 /x xfs"})) << log;
    EXPECT_EQ(inventory.filesystems[0].volumes[0], "nvme0n1") << "data first";
  }
  const PooledHost host;
  host.mounts("1 0 259:0 / /x rw - xfs /dev/nvme0n1 rw,logdev=/dev/gone\n");
  EXPECT_EQ(mounts_of(inventory_of(host)), Strings{"nvme0n1 /x xfs"});
  EXPECT_EQ(inventory_of(host).warnings, Strings{"the disk of /dev/gone, a part of /x, is unknown"});
}

TEST(Swaps, AreFollowedDownToTheDisks) {
  const PooledHost host;
  host.array("md1", "9:1",
             {"pci0000:00/0000:00:00.0/nvme/nvme0/nvme0n1", "pci0000:00/0000:01:00.0/nvme/nvme1/nvme1n1"});
  host.disk("virtual/block", "zram0", "251:0");
  host.tree().link("dev/vg/swap", "../dm-0");
  host.mounts(
      "1 0 259:9 / / rw - ext4 /dev/root rw\n"
      "2 1 259:0 / /var rw - xfs /dev/nvme0n1 rw\n"
      "3 2 0:30 /@ /var/pool rw - btrfs /dev/nvme1n1 rw\n"
      "4 1 0:40 / /nfs rw - nfs4 server:/x rw\n"
      "5 1 0:41 / /srv rw - zfs tank rw\n"
      "6 2 259:9 /bound /var/bound rw - ext4 /dev/root rw\n"
      "7 6 259:2 / /var/bound rw - ext4 /dev/nvme1n1 rw\n"
      "8 1 259:0 / /hidden/deep rw - xfs /dev/nvme0n1 rw\n"
      "9 1 259:2 / /hidden rw - ext4 /dev/nvme1n1 rw\n");
  const std::vector<std::tuple<std::string, StringSet, bool>> rows{
      {"/dev/dm-0 partition 8388604 4096 -2", {"nvme2n1"}, true},
      {"/dev/mapper/vg-data partition 8388604 0 -3", {"nvme2n1"}, true},
      {"/dev/vg/swap partition 1 0 -3", {"nvme2n1"}, true},
      {"/dev/md1\tpartition\t1\t0\t-3", {"nvme0n1", "nvme1n1"}, true},
      {"/dev/nvme2n1p1                         partition\t1\t0\t-3", {"nvme2n1"}, true},
      {"/dev/zram0 partition 1 0 100", {"zram0"}, true},
      {"/dev/gone partition 1 0 100", {}, false},
      {"/swapfile file 2097148 0 -4", {"nvme2n1"}, true},
      {"/variable/swapfile file 2097148 0 -4", {"nvme2n1"}, true},
      {"/var/swapfile file 2097148 0 -4", {"nvme0n1"}, true},
      {"/var/swap\\040file\\040(deleted) file 2097148 0 -4", {"nvme0n1"}, true},
      {"/var/pool/swapfile file 2097148 0 -4", {"nvme0n1", "nvme1n1"}, true},
      {"/var/bound/swapfile file 2097148 0 -4", {"nvme1n1"}, true},
      {"/hidden/deep/swapfile file 2097148 0 -4", {"nvme1n1"}, true},
      {"/nfs/swapfile file 2097148 0 -4", {}, true},
      {"/srv/swapfile file 2097148 0 -4", {}, false},
  };
  std::string text = "Filename\t\t\tType\tSize\n\n/dev/nothing\n";
  for (const auto& row : rows) {
    text += std::get<0>(row) + "\n";
  }
  host.tree().file("proc/swaps", text);
  const Inventory inventory = inventory_of(host);
  ASSERT_EQ(inventory.swaps.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [line, disks, known] = rows[i];
    EXPECT_EQ(inventory.swaps[i].disks, disks) << line;
    EXPECT_EQ(inventory.swaps[i].known, known) << line;
  }
  EXPECT_EQ(inventory.swaps[10].name, "/var/swap file (deleted)");
}

}  // namespace
}  // namespace ssdpulse::host
