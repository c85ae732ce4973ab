// SPDX-License-Identifier: Apache-2.0
// Are the host's NVMe drives found in every kernel's layout, each once, whatever else is in sysfs?
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "daemon/nvme/nvme_identity.h"
#include "tests/fixtures/nvme_sysfs.h"

namespace ssdpulse::nvme {
namespace {

using Names = std::vector<std::string>;

NvmeHost read_host(const tests::NvmeSysfs& host) {
  auto found = read_nvme_host(host.root());
  EXPECT_TRUE(found) << found.error().message;
  return found.value_or(NvmeHost{});
}

/// "nvme0n1:1" ...
Names namespaces_of(const NvmeSubsystem& drive) {
  Names names;
  for (const model::NvmeNamespace& one : drive.namespaces) {
    names.push_back(one.device + ":" + std::to_string(one.nsid));
  }
  return names;
}

TEST(NvmeControllers, NoneWithoutTheDriver) {
  const tests::TemporaryTree empty;
  const auto host = read_nvme_host(empty.path("sys"));
  ASSERT_TRUE(host);
  EXPECT_TRUE(host->subsystems.empty());
  EXPECT_TRUE(host->warnings.empty());
}

TEST(NvmeControllers, TheListItselfCannotBeRead) {
  const tests::TemporaryTree tree;
  tree.file("sys/class/nvme", "not a directory");
  const auto host = read_nvme_host(tree.path("sys"));
  ASSERT_FALSE(host);
  EXPECT_NE(host.error().message.find("class/nvme"), std::string::npos) << host.error().message;
}

TEST(NvmeControllers, OneDriveSaysWhoItIs) {
  const tests::NvmeSysfs sysfs;
  sysfs.controller(0, 0);
  sysfs.disk_of_controller(0, "nvme0n1", "1");
  const auto host = read_host(sysfs);
  ASSERT_EQ(host.subsystems.size(), 1U);
  const NvmeSubsystem& drive = host.subsystems.front();
  EXPECT_EQ(drive.controller, 0U);
  EXPECT_TRUE(drive.live());
  EXPECT_EQ(drive.nqn, "nqn.2014.08.org:S0");
  EXPECT_EQ(drive.transport, "pcie");
  EXPECT_EQ(drive.address, "0000:00:00.0");
  EXPECT_EQ(drive.model, "Big SSD 2000");
  EXPECT_EQ(drive.serial, "S0");
  EXPECT_EQ(drive.firmware, "FW1.2");
  EXPECT_EQ(namespaces_of(drive), Names{"nvme0n1:1"});
  EXPECT_TRUE(host.warnings.empty());
}

TEST(NvmeControllers, MultipathCountsOnceByItsHead) {
  const tests::NvmeSysfs sysfs;  // as in 5.10 and later: heads below the subsystem, hidden paths below controllers
  for (const int controller : {2, 10, 3}) {
    sysfs.controller(controller, 2);
    sysfs.disk_of_controller(controller, "nvme2c" + std::to_string(controller) + "n1", "1");
  }
  sysfs.disk_of_subsystem(2, "nvme2n1", "1");
  sysfs.disk_of_subsystem(2, "nvme2n2", "7");
  const auto host = read_host(sysfs);
  ASSERT_EQ(host.subsystems.size(), 1U);
  EXPECT_EQ(host.subsystems[0].controller, 2U);
  EXPECT_EQ(namespaces_of(host.subsystems[0]), (Names{"nvme2n1:1", "nvme2n2:7"}));
}

TEST(NvmeControllers, TheLowestLiveOneIsAsked) {
  const tests::NvmeSysfs sysfs;
  sysfs.controller(2, 2, "resetting");
  sysfs.controller(10, 2, "live");
  sysfs.controller(9, 2, "live");
  EXPECT_EQ(read_host(sysfs).subsystems.at(0).controller, 9U);  // not in the order of names
  sysfs.tree().file("sys/class/nvme/nvme2/state", "live\n");
  EXPECT_EQ(read_host(sysfs).subsystems.at(0).controller, 2U);
}

TEST(NvmeControllers, NoneIsLive) {
  const tests::NvmeSysfs sysfs;
  sysfs.controller(1, 1, "deleting (no IO)");
  sysfs.controller(0, 1, "connecting");
  const auto host = read_host(sysfs);
  ASSERT_EQ(host.subsystems.size(), 1U);
  EXPECT_EQ(host.subsystems[0].controller, 0U);
  EXPECT_EQ(host.subsystems[0].state, "connecting");
  EXPECT_FALSE(host.subsystems[0].live());
}

TEST(NvmeControllers, TheStateCannotBeRead) {
  const tests::NvmeSysfs sysfs;
  sysfs.controller(0, 0);
  sysfs.tree().remove("sys/devices/" + tests::NvmeSysfs::directory(0) + "/state");
  const auto host = read_host(sysfs);
  EXPECT_FALSE(host.subsystems.at(0).live());
  EXPECT_NE(host.subsystems.at(0).state.find("state"), std::string::npos) << host.subsystems.at(0).state;
}

TEST(NvmeControllers, WithoutMultipathEveryPathIsADisk) {
  const tests::NvmeSysfs sysfs;  // nvme_core.multipath=N; the second controller's disk has a different number
  sysfs.controller(0, 0);
  sysfs.controller(1, 0);
  sysfs.disk_of_controller(0, "nvme0n1", "1");
  sysfs.disk_of_controller(1, "nvme4n1", "1");
  const auto host = read_host(sysfs);
  ASSERT_EQ(host.subsystems.size(), 1U);
  EXPECT_EQ(namespaces_of(host.subsystems[0]), (Names{"nvme0n1:1", "nvme4n1:1"}));
}

TEST(NvmeControllers, WithoutTheSubsystemClassEachIsADriveOfItsOwn) {
  const tests::NvmeSysfs sysfs;
  sysfs.controller(0, 0);
  sysfs.controller(1, 0);
  sysfs.disk_of_controller(1, "nvme1n1", "1");
  sysfs.tree().remove("sys/class/nvme-subsystem");
  const auto host = read_host(sysfs);
  ASSERT_EQ(host.subsystems.size(), 2U);
  EXPECT_TRUE(host.subsystems[0].namespaces.empty());
  EXPECT_EQ(namespaces_of(host.subsystems[1]), Names{"nvme1n1:1"});
}

TEST(NvmeControllers, DiscoveryControllersAreNoDrives) {
  const tests::NvmeSysfs sysfs;
  sysfs.controller(0, 0, "live", "subsysnqn = nqn.2014-08.org.nvmexpress.discovery");
  sysfs.controller(1, 1, "live", "cntrltype = discovery");
  sysfs.controller(2, 2, "live", "cntrltype = io");
  const auto host = read_host(sysfs);
  ASSERT_EQ(host.subsystems.size(), 1U);
  EXPECT_EQ(host.subsystems[0].controller, 2U);
}

TEST(NvmeControllers, OtherNamesAreLeftAlone) {
  const tests::NvmeSysfs sysfs;
  sysfs.controller(0, 0);
  for (const char* name :
       {"nvme", "nvme-fabrics", "nvme00", "nvme0x", "nvme4294967296", "xnvme1", "nvme-1", "nvme 1"}) {
    sysfs.tree().add(std::string("sys/class/nvme/") + name, "state = live");
  }
  for (const char* name : {"ng0n1", "nvme0c0n1", "nvme0n1p1", "nvme0n", "nvmen1", "nvme0n01", "hwmon1", "nvme00n1"}) {
    sysfs.disk_of_controller(0, name, "1");
  }
  const auto host = read_host(sysfs);
  ASSERT_EQ(host.subsystems.size(), 1U);
  EXPECT_EQ(host.subsystems[0].controller, 0U);
  EXPECT_EQ(namespaces_of(host.subsystems[0]), Names{});
}

TEST(NvmeControllers, ANamespaceWithoutIdentifierIsLeftOutAndSaidSo) {
  for (const char* nsid : {"", "0", "4294967295", "4294967296", "-1", "1x", "0x1"}) {
    const tests::NvmeSysfs sysfs;
    sysfs.controller(0, 0);
    sysfs.disk_of_controller(0, "nvme0n1", nsid);
    sysfs.disk_of_controller(0, "nvme0n2", "4294967294");
    const auto host = read_host(sysfs);
    EXPECT_EQ(namespaces_of(host.subsystems.at(0)), Names{"nvme0n2:4294967294"}) << nsid;
    ASSERT_EQ(host.warnings.size(), 1U) << nsid;
    EXPECT_NE(host.warnings[0].find("nvme0n1"), std::string::npos) << host.warnings[0];
  }
}

TEST(NvmeControllers, TextsAreFitForLabels) {
  const tests::NvmeSysfs sysfs;
  sysfs.controller(0, 0, "live",
                   "model = \xff\xfe\nserial = a\"b\x01"
                   "c\nfirmware_rev = ");
  const auto host = read_host(sysfs);
  EXPECT_EQ(util::for_log(host.subsystems.at(0).model), "??");
  EXPECT_EQ(util::for_log(host.subsystems.at(0).serial), "a?b?c");
  EXPECT_EQ(host.subsystems.at(0).firmware, "");
}

TEST(NvmeControllers, AnythingInTheFilesIsHarmless) {
  const tests::NvmeSysfs sysfs;
  sysfs.controller(0, 0);
  sysfs.disk_of_controller(0, "nvme0n1", "1");
  EXPECT_TRUE(rc::check([&](const std::string& state, const std::string& nsid, const std::string& text) {
    sysfs.tree().file("sys/class/nvme/nvme0/state", state);
    sysfs.tree().file("sys/class/nvme/nvme0/nvme0n1/nsid", nsid);
    for (const char* name : {"subsysnqn", "serial", "transport"}) {
      sysfs.tree().file(std::string("sys/class/nvme/nvme0/") + name, text);
    }
    const auto host = read_nvme_host(sysfs.root());
    RC_ASSERT(host.has_value());
    for (const NvmeSubsystem& drive : host->subsystems) {
      for (const std::string& shown : {drive.state, drive.transport, drive.address}) {
        RC_ASSERT(std::all_of(shown.begin(), shown.end(), [](char c) { return c >= 0x20 && c <= 0x7e; }));
      }
      for (const model::NvmeNamespace& one : drive.namespaces) {
        RC_ASSERT(one.nsid != 0U && one.nsid != 0xffffffffU);
      }
    }
  }));
}

}  // namespace
}  // namespace ssdpulse::nvme
