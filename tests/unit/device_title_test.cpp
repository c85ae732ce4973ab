// SPDX-License-Identifier: Apache-2.0
// Is a disk called what people call it, whatever is on it?
#include "daemon/model/device_title.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ssdpulse::model {
namespace {

struct Case {
  const char* what;
  std::vector<Filesystem> filesystems;
  std::vector<Membership> memberships;
  std::string full;
  std::string use;
};

Filesystem on(const std::string& volume, const std::string& mountpoint, const std::string& device = "nvme0n1") {
  return {device, mountpoint, "ext4", false, {volume}};
}

Membership dm(const std::string& array, const std::string& name, const std::string& device = "nvme0n1") {
  return {array, device, "dm", name};
}

const std::vector<Membership> kGroup{dm("dm-0", "vg0-root"), dm("dm-1", "vg0-wal"), dm("dm-2", "vg0-data")};

const std::vector<Case> kCases{
    {"nothing is known", {}, {}, "nvme0n1", ""},
    {"another disk has it all", {on("sdb1", "/srv", "sdb")}, {dm("dm-9", "vg9-x", "sdb")}, "nvme0n1", ""},
    {"directly on the disk", {on("nvme0n1", "/srv/pgwal")}, {}, "/srv/pgwal (nvme0n1)", "/srv/pgwal"},
    {"on a partition", {on("nvme0n1p2", "/srv/pgwal")}, {}, "/srv/pgwal (nvme0n1)", "/srv/pgwal"},
    {"on a volume", {on("dm-1", "/srv/pgwal")}, kGroup, "/srv/pgwal (vg0-wal on nvme0n1)", "/srv/pgwal"},
    {"on an array", {on("md0", "/srv")}, {{"md0", "nvme0n1", "md", ""}}, "/srv (md0 on nvme0n1)", "/srv"},
    {"on a partition of an array", {on("md0p1", "/srv")}, {{"md0", "nvme0n1", "md", ""}}, "/srv (nvme0n1)", "/srv"},
    {"a volume without a mount", {}, {dm("dm-1", "vg0-wal")}, "vg0-wal on nvme0n1", "vg0-wal"},
    {"an array without a mount", {}, {{"md0", "nvme0n1", "md", ""}}, "md0 on nvme0n1", "md0"},
    {"volumes without a mount", {}, kGroup, "vg0-data and 2 more on nvme0n1", "vg0-data and 2 more"},
    {"the root, then what it starts from",
     {on("nvme0n1p1", "/boot/efi"), on("nvme0n1p2", "/boot"), on("nvme0n1p3", "/")},
     {},
     "/ and 2 more (nvme0n1)",
     "/ and 2 more"},
    {"a boot partition comes after what is deep",
     {on("nvme0n1p1", "/boot"), on("nvme0n1p2", "/srv/a/b/c")},
     {},
     "/srv/a/b/c and 1 more (nvme0n1)",
     "/srv/a/b/c and 1 more"},
    {"several volumes: none of them is the disk's",
     {on("dm-2", "/srv/pgdata"), on("dm-1", "/srv/pgwal")},
     kGroup,
     "/srv/pgdata and 1 more (nvme0n1)",
     "/srv/pgdata and 1 more"},
    {"subvolumes of one volume",
     {on("dm-1", "/srv/b"), on("dm-1", "/srv/a")},
     kGroup,
     "/srv/a and 1 more (vg0-wal on nvme0n1)",
     "/srv/a and 1 more"},
    {"hostile names",
     {on("dm-1", "/srv/\x1b[31mred\n\xff")},
     {dm("dm-1", "vg\x07")},
     "/srv/?[31mred?? (vg? on nvme0n1)",
     "/srv/?[31mred??"},
    {"a path that is too long",
     {on("nvme0n1", "/var/lib/kubelet/pods/0123456789/volumes/kubernetes.io~csi/pvc-7/mount")},
     {},
     "/var/lib/kubelet...kubernetes.io~csi/pvc-7/mount (nvme0n1)",
     "/var/lib/kubelet...kubernetes.io~csi/pvc-7/mount"},
};

TEST(DeviceTitle, IsWhatIsMountedOrTheVolumeAndThenTheDisk) {
  for (const Case& one : kCases) {
    const DeviceTitle title = device_title("nvme0n1", one.filesystems, one.memberships);
    EXPECT_EQ(title.full, one.full) << one.what;
    EXPECT_EQ(title.use, one.use) << one.what;
  }
}

TEST(DeviceTitle, DependsOnNoOrder) {
  for (Case one : kCases) {
    std::reverse(one.filesystems.begin(), one.filesystems.end());
    std::reverse(one.memberships.begin(), one.memberships.end());
    EXPECT_EQ(device_title("nvme0n1", one.filesystems, one.memberships).full, one.full) << one.what;
  }
}

TEST(DeviceTitle, IsBounded) {
  const std::string all(4000, 'x');
  for (const auto& title : {device_title(all, {on("v", "/" + all, all)}, {dm("v", all, all)}),
                            device_title(all, {}, {dm("v", all, all)}), device_title(all, {}, {})}) {
    EXPECT_LE(title.full.size(), 140U);
    EXPECT_LE(title.use.size(), 64U);
  }
}

TEST(DeviceTitle, OfTheAuditsDisksAndArrays) {
  HostSettings settings;
  settings.disks.resize(1);
  settings.disks[0].device.name = "nvme0n1";
  settings.arrays.resize(2);
  settings.arrays[0].device.name = "dm-1";
  settings.arrays[0].files.set("dm/name", "vg0-wal");
  settings.arrays[0].disks = {"nvme0n1"};
  settings.arrays[1].device.name = "md0";
  settings.arrays[1].disks = {"sda", "sdb"};
  settings.mounts = {{"/srv/pgwal", "ext4", {}, {"dm-1"}, {"nvme0n1"}}, {"/srv", "xfs", {}, {"md0"}, {"sda", "sdb"}}};
  EXPECT_EQ(device_title(settings, "nvme0n1").full, "/srv/pgwal (vg0-wal on nvme0n1)");
  EXPECT_EQ(device_title(settings, "dm-1").full, "/srv/pgwal (vg0-wal on dm-1)");
  EXPECT_EQ(device_title(settings, "sdb").full, "/srv (md0 on sdb)");
  EXPECT_EQ(device_title(settings, "md0").full, "/srv (md0)");
  EXPECT_EQ(device_title(settings, "sdc").full, "sdc");
}

}  // namespace
}  // namespace ssdpulse::model
