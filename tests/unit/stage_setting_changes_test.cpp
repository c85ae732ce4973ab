// SPDX-License-Identifier: Apache-2.0
// Is a setting of one disk never taken for that of another, and is what is gone forgotten?
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/stages/setting_changes.h"

namespace ssdpulse::stages {
namespace {

class Host {
 public:
  /// Disks by name, that all say `wwid` of themselves, with their scheduler; and what sda has mounted.
  Effects look(const std::map<std::string, std::string>& schedulers, const std::vector<std::string>& mounts = {}) {
    Tick tick;
    auto inventory = std::make_shared<model::Inventory>();
    for (const std::string& mountpoint : mounts) {
      model::Filesystem filesystem;
      filesystem.device = "sda";
      filesystem.mountpoint = mountpoint;
      filesystem.fstype = "ext4";
      inventory->filesystems.push_back(filesystem);
    }
    tick.inventory = inventory;
    for (const auto& [name, scheduler] : schedulers) {
      auto device = std::make_shared<model::Device>();
      device->name = name;
      device->wwid = "wwid";
      tick.devices.emplace_back();
      tick.devices.back().block.device = device;
      tick.settings_read.push_back({name, {{"scheduler", scheduler}}});
    }
    return stage_.observe(tick).effects;
  }

 private:
  SettingChanges stage_;
};

TEST(SettingChanges, OfTwoDisksThatSayTheSameOfThemselvesAreApart) {
  Host host;
  const Effects first = host.look({{"sda", "none"}, {"sdb", "bfq"}});
  ASSERT_EQ(first.rows.settings.size(), 2U);
  EXPECT_EQ(first.rows.settings[0].device, "wwid");
  EXPECT_EQ(first.rows.settings[1].device, "wwid sdb");
  EXPECT_TRUE(host.look({{"sda", "none"}, {"sdb", "bfq"}}).rows.settings.empty());
  const Effects alone = host.look({{"sdb", "none"}});
  ASSERT_EQ(alone.rows.settings.size(), 1U);
  EXPECT_EQ(alone.rows.settings[0].device, "wwid sdb") << "also when the other one goes";
  EXPECT_EQ(alone.lines.size(), 1U);
}

TEST(SettingChanges, AFileSystemThatIsUnmountedIsOneRowAndForgotten) {
  Host host;
  host.look({{"sda", "none"}}, {"/srv", "/mnt"});
  const Effects gone = host.look({{"sda", "none"}}, {"/srv"});
  ASSERT_EQ(gone.rows.settings.size(), 1U);
  EXPECT_EQ(gone.rows.settings[0].name, "mount /mnt");
  EXPECT_EQ(gone.rows.settings[0].value, "");
  EXPECT_EQ(gone.lines.size(), 1U);
  EXPECT_TRUE(host.look({{"sda", "none"}}, {"/srv"}).rows.settings.empty());
  const Effects again = host.look({{"sda", "none"}}, {"/srv", "/mnt"});
  ASSERT_EQ(again.rows.settings.size(), 1U);
  EXPECT_EQ(again.rows.settings[0].value, "ext4 nodiscard");
}

}  // namespace
}  // namespace ssdpulse::stages
