// SPDX-License-Identifier: Apache-2.0
// Is one disk's setting never taken for another's, and are settings of removed disks and mounts forgotten?
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/history/setting_changes.h"
#include "daemon/model/device_identity.h"

namespace ssdpulse::history {
namespace {

class Host {
 public:
  /// Disks by name, all reporting the same `wwid`, with their scheduler; and the mounts of sda.
  model::Effects observe(const std::map<std::string, std::string>& schedulers,
                         const std::vector<std::string>& mounts = {}, const std::set<std::string>& options = {"rw"}) {
    model::Tick tick;
    auto inventory = std::make_shared<model::Inventory>();
    for (const std::string& mountpoint : mounts) {
      model::Filesystem filesystem;
      filesystem.device = "sda";
      filesystem.mountpoint = mountpoint;
      filesystem.fstype = "ext4";
      filesystem.options = {options.begin(), options.end()};
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
    keys_.set_history_keys(tick);
    return stage_.observe(tick).effects;
  }

 private:
  model::HistoryKeys keys_;
  SettingChanges stage_;
};

TEST(SettingChanges, OfTwoDisksThatSayTheSameOfThemselvesAreApart) {
  Host host;
  const model::Effects first = host.observe({{"sda", "none"}, {"sdb", "bfq"}});
  ASSERT_EQ(first.rows.settings.size(), 2U);
  EXPECT_EQ(first.rows.settings[0].device, "wwid wwid | at sda");
  EXPECT_EQ(first.rows.settings[1].device, "wwid wwid | at sdb");
  EXPECT_TRUE(host.observe({{"sda", "none"}, {"sdb", "bfq"}}).rows.settings.empty());
  const model::Effects alone = host.observe({{"sdb", "none"}});
  ASSERT_EQ(alone.rows.settings.size(), 1U);
  EXPECT_EQ(alone.rows.settings[0].device, "wwid wwid | at sdb") << "also when the other one goes";
  EXPECT_EQ(alone.lines.size(), 1U);
}

TEST(SettingChanges, AFileSystemThatIsUnmountedIsOneRowAndForgotten) {
  Host host;
  host.observe({{"sda", "none"}}, {"/srv", "/mnt"});
  const model::Effects gone = host.observe({{"sda", "none"}}, {"/srv"});
  ASSERT_EQ(gone.rows.settings.size(), 1U);
  EXPECT_EQ(gone.rows.settings[0].name, "mount /mnt");
  EXPECT_EQ(gone.rows.settings[0].value, "");
  EXPECT_EQ(gone.lines.size(), 1U);
  EXPECT_TRUE(host.observe({{"sda", "none"}}, {"/srv"}).rows.settings.empty());
  const model::Effects again = host.observe({{"sda", "none"}}, {"/srv", "/mnt"});
  ASSERT_EQ(again.rows.settings.size(), 1U);
  EXPECT_EQ(again.rows.settings[0].value, "ext4 rw");
}

TEST(SettingChanges, EachOptionOfAMountIsASetting) {
  Host host;
  host.observe({{"sda", "none"}}, {"/srv"}, {"rw", "discard"});
  const model::Effects without = host.observe({{"sda", "none"}}, {"/srv"}, {"rw"});
  ASSERT_EQ(without.rows.settings.size(), 1U);
  EXPECT_EQ(without.rows.settings[0].value, "ext4 rw");
  ASSERT_EQ(without.lines.size(), 1U);
  EXPECT_NE(without.lines[0].text.find("before=\"ext4 discard,rw\" now=\"ext4 rw\""), std::string::npos)
      << without.lines[0].text;
  EXPECT_EQ(host.observe({{"sda", "none"}}, {"/srv"}, {"rw", "nobarrier"}).rows.settings.size(), 1U);
}

TEST(SettingChanges, WhatIsSetUpOnADiskMayGoAwayAndWhatWasNotReadIsLeft) {
  model::HistoryKeys keys;
  SettingChanges stage;
  const auto observe = [&](std::map<util::OutsideText, util::OutsideText> values) {
    model::Tick tick;
    tick.inventory = std::make_shared<const model::Inventory>();
    auto device = std::make_shared<model::Device>();
    device->name = "sda";
    device->wwid = "wwid";
    tick.devices.emplace_back();
    tick.devices.back().block.device = device;
    tick.settings_read.push_back({"sda", std::move(values)});
    keys.set_history_keys(tick);
    return stage.observe(tick).effects.rows.settings;
  };
  observe({{"scheduler", "none"},
           {"partition sda1", "1000 bytes at 512"},
           {"volume md0 sync_speed_max", "200000 (system)"}});
  const auto rows = observe({{"partition sda1", "1000 bytes at 1048576"}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].value, "1000 bytes at 1048576");
  EXPECT_EQ(rows[1].name, "volume md0 sync_speed_max");
  EXPECT_EQ(rows[1].value, "");
}

TEST(SettingChanges, AFloodWaitsAndPushesNothingOut) {
  model::HistoryKeys keys;
  SettingChanges stage;
  int minute = 0;
  std::uint64_t waiting = 0;
  const auto observe = [&](const std::set<int>& mounted, const std::string& scheduler = "none") {
    model::Tick tick;
    tick.at = model::SteadyTime(std::chrono::minutes(++minute));
    auto inventory = std::make_shared<model::Inventory>();
    for (const int number : mounted) {
      model::Filesystem filesystem;
      filesystem.device = "sda";
      filesystem.mountpoint = "/run/" + std::to_string(number);
      filesystem.fstype = "ext4";
      inventory->filesystems.push_back(filesystem);
    }
    tick.inventory = inventory;
    for (const std::string name : {"sda", "sdb"}) {
      auto device = std::make_shared<model::Device>();
      device->name = name;
      device->wwid = name;
      tick.devices.emplace_back();
      tick.devices.back().block.device = device;
      tick.settings_read.push_back({name, {{"scheduler", scheduler}}});
    }
    keys.set_history_keys(tick);
    const model::Findings findings = stage.observe(tick);
    model::Snapshot snapshot;
    findings.values(snapshot);
    waiting = snapshot.setting_changes_waiting;
    return findings.effects;
  };
  observe({});
  std::size_t rows = 0;
  std::size_t lines = 0;
  for (int i = 0; i < 30; ++i) {  // 50 others each time
    std::set<int> mounted;
    for (int number = 0; number < 50; ++number) {
      mounted.insert(50 * i + number);
    }
    const model::Effects effects = observe(mounted);
    rows += effects.rows.settings.size();
    lines += effects.lines.size();
  }
  EXPECT_EQ(rows, SettingChanges::kMaxChangesOfDevice);
  EXPECT_LE(lines, SettingChanges::kMaxChangesOfDevice);
  EXPECT_GT(waiting, 0U);
  const auto schedulers = [](const model::Effects& effects) {
    return std::count_if(effects.rows.settings.begin(), effects.rows.settings.end(),
                         [](const auto& one) { return one.name == "scheduler" && one.value == "bfq"; });
  };
  EXPECT_EQ(schedulers(observe({}, "bfq")), 2) << "a setting of its own never waits for mounts";
  minute += 60;
  const model::Effects later = observe({}, "bfq");
  EXPECT_FALSE(later.rows.settings.empty()) << "an hour later";
  EXPECT_EQ(waiting, 0U);
}

}  // namespace
}  // namespace ssdpulse::history
