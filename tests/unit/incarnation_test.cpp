// SPDX-License-Identifier: Apache-2.0
// Is a device that is still the same recognised, and no other mistaken for it?
#include <gtest/gtest.h>

#include "daemon/model/device_identity.h"

namespace ssdpulse::model {
namespace {

Device disk(const std::string& name, std::uint64_t diskseq, std::uint32_t minor) {
  Device device;
  device.name = name;
  device.major = 8;
  device.minor = minor;
  device.paths = {{name, 1, 64, diskseq}};
  return device;
}

Device head(const std::vector<std::string>& paths, const std::string& serial) {
  Device device;
  device.name = "nvme0n1";
  device.serial = serial;
  device.wwid = "eui." + serial;
  for (const std::string& path : paths) {
    device.paths.push_back({path, 1, 64, 7});
  }
  return device;
}

TEST(Incarnation, ADiskIsItsNameAndItsNumber) {
  EXPECT_TRUE(same_device(disk("sda", 4, 0), disk("sda", 4, 0)));
  EXPECT_FALSE(same_device(disk("sda", 4, 0), disk("sda", 5, 0))) << "another one in the slot";
  EXPECT_FALSE(same_device(disk("sda", 4, 0), disk("sdb", 4, 0)));
  EXPECT_TRUE(same_device(disk("sda", 0, 0), disk("sda", 0, 0))) << "before Linux 5.15";
  EXPECT_FALSE(same_device(disk("sda", 0, 0), disk("sda", 0, 16)));
}

TEST(Incarnation, WhatElseChangesIsTheSameDisk) {
  Device now = disk("sda", 4, 0);
  now.size_bytes = 1 << 30;
  now.scheduler = "none";
  now.paths[0].queue_depth = 1023;
  EXPECT_TRUE(same_device(disk("sda", 4, 0), now));
  EXPECT_TRUE(same_paths(disk("sda", 4, 0), now));
}

TEST(Incarnation, PathsComeAndGo) {
  const Device both = head({"nvme0c0n1", "nvme0c1n1"}, "S1");
  const Device one = head({"nvme0c1n1"}, "S1");
  EXPECT_TRUE(same_device(both, one));
  EXPECT_FALSE(same_paths(both, one));
  EXPECT_FALSE(same_device(both, head({"nvme0c0n1", "nvme0c1n1"}, "S2")));
  Device other = both;
  other.model = "another, which reports the same WWID and serial number";
  EXPECT_FALSE(same_device(both, other));
}

}  // namespace
}  // namespace ssdpulse::model
