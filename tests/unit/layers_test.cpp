// SPDX-License-Identifier: Apache-2.0
// What is above the drives? Kinds, members and health of layers, and the tree below each mount, on made-up hosts.
#include "daemon/model/layers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/host/layer_reader.h"
#include "exporters/terminal/device_list.h"
#include "tests/fixtures/sysfs_host.h"

namespace ssdpulse {
namespace {

using model::Inventory;
using model::Layer;
using model::LayerKind;
using tests::add_nvme;
using tests::inventory_of;
using tests::kNvme0;
using tests::SysfsHost;
using Strings = std::vector<std::string>;

const std::string kDrive = std::string(kNvme0) + "/nvme0n1";
const std::string kLvm = "LVM-" + std::string(64, 'x');

/// "kind 'title': members"
std::map<std::string, std::string> layers_of(const Inventory& inventory) {
  std::map<std::string, std::string> all;
  for (const Layer& layer : inventory.layers) {
    std::string& text = all[layer.name];
    text = fmt::format("{} '{}':", model::kLayerKindNames[static_cast<std::size_t>(layer.kind)], layer.title.raw());
    for (const std::string& member : layer.members) {
      text += " " + member;
    }
  }
  return all;
}

/// One line for each place, indented by its floor; "*": shared, "...": cut.
std::string text_of(const std::vector<model::StackPlace>& places) {
  std::string text;
  for (const model::StackPlace& place : places) {
    text += std::string(place.floor, ' ') + place.name + (place.shared ? "*" : "") + (place.cut ? " ..." : "") + "\n";
  }
  return text;
}

/// "MOUNTPOINT FSTYPE", or "not mounted", then its places.
std::string stacks_of(const Inventory& inventory) {
  std::string text;
  for (const model::Stack& stack :
       model::stacks_of(inventory.filesystems, inventory.layers, inventory.volumes).stacks) {
    text += (stack.mountpoint.empty() ? "not mounted" : stack.mountpoint.raw() + " " + stack.fstype.raw()) + "\n" +
            text_of(stack.places);
  }
  return text;
}

TEST(Layers, DmIsWhatItsUuidSays) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {kLvm, "lvm"},
      {kLvm + "-tpool", "thin_pool"},
      {kLvm + "-pool", "thin_pool"},
      {kLvm + "-tdata", "lvm"},
      {kLvm + "-real", "lvm"},
      {kLvm + "-cow", "lvm"},
      {"LVM-short-tpool", "lvm"},
      {"CRYPT-LUKS2-0123-home", "crypt"},
      {"CRYPT-LUKS1-0123-home", "crypt"},
      {"CRYPT-PLAIN-swap", "crypt"},
      {"CRYPT-VERITY-0123-root", "verity"},
      {"CRYPT-INTEGRITY-0123-x", "integrity"},
      {"CRYPT-SUBDEV-0123-home_dif", "integrity"},
      {"mpath-3600508b400105e210000900000490000", "multipath"},
      {"part12-mpath-3600508b400105e210000900000490000", "linear"},
      {"part-mpath-36", "dm"},
      {"part1", "dm"},
      {"DMRAID-isw_abc", "dm"},
      {"lvm-x", "dm"},
      {"", "dm"},
      {std::string(128, '\xff'), "dm"},
  };
  for (const auto& [uuid, kind] : rows) {
    const SysfsHost host;
    add_nvme(host, 0, "0");
    host.array("dm-0", "252:0", {kDrive}, "dm/name = vg-a\ndm/uuid = " + uuid);
    EXPECT_EQ(layers_of(inventory_of(host))["dm-0"], kind + " 'vg-a': nvme0n1") << uuid;
  }
}

TEST(Layers, ThinVolumesSnapshotsAndCachesAreKnownByWhatTheyLieOn) {
  const SysfsHost host;
  add_nvme(host, 0, "0");
  const auto dm = [&](int number, const Strings& below, const std::string& suffix) {
    Strings places;
    for (const std::string& name : below) {
      places.push_back(name == "nvme0n1" ? kDrive : "virtual/block/" + name);
    }
    host.array(fmt::format("dm-{:02}", number), fmt::format("252:{}", number), places,
               fmt::format("dm/name = {}\ndm/uuid = {}{}", number, kLvm, suffix));
  };
  dm(0, {"nvme0n1"}, "-tdata");
  dm(1, {"nvme0n1"}, "-tmeta");
  dm(2, {"dm-00", "dm-01"}, "-tpool");
  dm(3, {"dm-02"}, "");
  dm(4, {"dm-02"}, "-pool");
  dm(5, {"nvme0n1"}, "-real");
  dm(6, {"nvme0n1"}, "-cow");
  dm(7, {"dm-05"}, "");
  dm(8, {"dm-05", "dm-06"}, "");
  dm(9, {"nvme0n1"}, "-cdata");
  dm(10, {"nvme0n1"}, "-cmeta");
  dm(11, {"dm-05", "dm-09", "dm-10"}, "");
  dm(12, {"nvme0n1"}, "-cvol");
  dm(13, {"dm-05", "dm-12"}, "");
  auto layers = layers_of(inventory_of(host));
  EXPECT_EQ(layers["dm-02"], "thin_pool '2': dm-00 dm-01");
  EXPECT_EQ(layers["dm-03"], "thin '3': dm-02");
  EXPECT_EQ(layers["dm-04"], "thin_pool '4': dm-02");
  EXPECT_EQ(layers["dm-07"], "lvm '7': dm-05") << "an origin";
  EXPECT_EQ(layers["dm-08"], "snapshot '8': dm-05 dm-06");
  EXPECT_EQ(layers["dm-11"], "cache '11': dm-05 dm-09 dm-10");
  EXPECT_EQ(layers["dm-13"], "cache '13': dm-05 dm-12");
}

TEST(Layers, MdIsWhatItsLevelSays) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"raid0", "raid0"},     {"raid1", "raid1"},   {"raid4", "raid4"},   {"raid5", "raid5"},
      {"raid6", "raid6"},     {"raid10", "raid10"}, {"linear", "linear"}, {"multipath", "multipath"},
      {"container", "other"}, {"raid15", "other"},  {"", "other"},
  };
  for (const auto& [level, kind] : rows) {
    const SysfsHost host;
    add_nvme(host, 0, "0");
    host.array("md127", "9:127", {kDrive}, "md/level = " + level);
    host.tree().link("dev/md/backup store", "../md127");
    EXPECT_EQ(layers_of(inventory_of(host))["md127"], kind + " 'backup store': nvme0n1") << level;
  }
}

TEST(Layers, BcacheLiesOnItsCacheToo) {
  const SysfsHost host;
  add_nvme(host, 0, "0");
  add_nvme(host, 1, "2");
  host.array("bcache0", "252:0", {"pci0000:00/0000:01:00.0/nvme/nvme1/nvme1n1"},
             "bcache/label = fast\nbcache/state = dirty\nbcache/cache/cache0 -> ../../../devices/" + kDrive +
                 "/bcache\nbcache/cache/cache_available_percent = 9");
  const Inventory inventory = inventory_of(host);
  EXPECT_EQ(layers_of(inventory)["bcache0"], "bcache '': nvme0n1 nvme1n1") << "its label may take minutes to read";
  EXPECT_FALSE(host::read_volume_signals(host.roots().sys, inventory.layers.at(0)));
}

TEST(Layers, DriversThatTakeNoRequests) {
  const SysfsHost host;
  add_nvme(host, 0, "0");
  host.disk("virtual/block", "zram0", "251:0");
  host.disk("virtual/block", "ram0", "1:0");
  host.disk("virtual/block", "ram1", "1:1", "size = 0");
  host.disk("virtual/block", "loop0", "7:0", "mq/0/nr_tags = 128");
  host.disk("x", "pmem0", "259:9");
  host.disk("virtual/block", "drbd0", "147:0");
  host.disk("virtual/block", "odd0", "200:0");
  host.array("odd1", "200:1", {kDrive});
  EXPECT_EQ(layers_of(inventory_of(host)), (std::map<std::string, std::string>{{"zram0", "zram '':"},
                                                                               {"ram0", "ramdisk '':"},
                                                                               {"pmem0", "pmem '':"},
                                                                               {"drbd0", "drbd '':"},
                                                                               {"odd0", "other '':"},
                                                                               {"odd1", "other '': nvme0n1"}}));
}

TEST(Layers, HealthOfMd) {
  struct Row {
    const char* files;
    const char* words;
    bool bad;
  };
  const std::vector<Row> rows{
      {"array_state = clean\ndegraded = 0\nsync_action = idle", "", false},
      {"array_state = active\ndegraded = 1\nsync_action = recover\nsync_completed = 45 / 100",
       "1 member is missing; recover, 45 % done", true},
      {"array_state = active\ndegraded = 2\nsync_action = frozen", "2 members are missing", true},
      {"array_state = inactive", "inactive", true},
      {"array_state = broken", "broken", true},
      {"array_state = readonly\nsync_action = check\nsync_completed = none", "readonly; check", false},
      {"array_state = \xff<b>\ndegraded = -1\nsync_action = \"; rm\nsync_completed = 7 / 0", "", false},
      {"", "", false},
  };
  for (const Row& row : rows) {
    const tests::TemporaryTree tree;
    tree.add("block/md0/md", row.files);
    const auto signals = host::read_volume_signals(tree.path(), {"md0", "", LayerKind::raid1});
    ASSERT_TRUE(signals) << row.files;
    const auto words = model::health_words(*signals);
    EXPECT_EQ(words.text, row.words) << row.files;
    EXPECT_EQ(words.bad, row.bad) << row.files;
  }
  const tests::TemporaryTree tree;
  tree.file("block/md0/md/consistency_policy", "bitmap\n");
  EXPECT_EQ(host::read_volume_signals(tree.path(), {"md0", "", LayerKind::raid5})->consistency_policy, "bitmap");
  EXPECT_FALSE(host::read_volume_signals(tree.path(), {"zram0", "", LayerKind::zram}));
  tree.file("block/dm-0/dm/suspended", "1\n");
  EXPECT_EQ(model::health_words(*host::read_volume_signals(tree.path(), {"dm-0", "", LayerKind::lvm})).text,
            "suspended");
}

TEST(Stacks, FromTheFileSystemDownToTheDrives) {
  const SysfsHost host;
  add_nvme(host, 0, "0");
  add_nvme(host, 1, "10");
  const std::string second = "pci0000:00/0000:01:00.0/nvme/nvme1";
  host.partition(kNvme0, "nvme0n1", "nvme0n1p1", "259:1");
  host.partition(kNvme0, "nvme0n1", "nvme0n1p2", "259:2");
  host.partition(second, "nvme1n1", "nvme1n1p2", "259:12");
  host.array("md0", "9:0", {kDrive + "/nvme0n1p2", second + "/nvme1n1/nvme1n1p2"}, "md/level = raid1");
  host.array("dm-0", "252:0", {"virtual/block/md0"}, "dm/name = luks\ndm/uuid = CRYPT-LUKS2-x-luks");
  host.array("dm-1", "252:1", {"virtual/block/dm-0"}, "dm/name = vg-data\ndm/uuid = " + kLvm);
  host.array("dm-2", "252:2", {"virtual/block/dm-0"}, "dm/name = vg-vm1\ndm/uuid = " + kLvm);
  host.mounts(
      "1 0 252:1 / /srv/a\\012b rw - xfs /dev/mapper/vg-data rw\n"
      "2 0 259:1 / /boot rw - ext4 /dev/nvme0n1p1 rw\n");
  EXPECT_EQ(stacks_of(inventory_of(host)),
            "/boot ext4\nnvme0n1p1\n nvme0n1\n"
            "/srv/a\nb xfs\ndm-1\n dm-0\n  md0\n   nvme0n1p2\n    nvme0n1\n   nvme1n1p2\n    nvme1n1\n"
            "not mounted\ndm-2\n dm-0\n  md0\n   nvme0n1p2\n    nvme0n1\n   nvme1n1p2\n    nvme1n1\n");
}

TEST(Stacks, AsTheDevicesCommandShowsThem) {
  const SysfsHost host;
  add_nvme(host, 0, "0");
  host.partition(kNvme0, "nvme0n1", "nvme0n1p2", "259:2");
  host.array("md0", "9:0", {kDrive + "/nvme0n1p2", kDrive},
             "md/level = raid1\nmd/degraded = 1\nmd/array_state = active");
  host.array("dm-0", "252:0", {"virtual/block/md0"}, "dm/name = vg-da\xffta\ndm/uuid = " + kLvm);
  host.disk("virtual/block", "zram0", "251:0");
  host.mounts("1 0 252:0 / /srv/a\\012b rw - xfs /dev/mapper/vg-data rw\n");
  const Inventory inventory = inventory_of(host);
  terminal::VolumeHealth health;
  for (const Layer& layer : inventory.layers) {
    if (const auto signals = host::read_volume_signals(host.roots().sys, layer)) {
      health.emplace(layer.name, *signals);
    }
  }
  std::ostringstream out;
  terminal::print_stacks(inventory, health, out);
  EXPECT_EQ(out.str(),
            "\n"
            "STACK            KIND       NAME      HEALTH\n"
            "/srv/a?b         xfs        -         -\n"
            "  dm-0           lvm        vg-da?ta  -\n"
            "    md0          raid1      -         1 member is missing\n"
            "      nvme0n1    disk       -         shared\n"
            "      nvme0n1p2  partition  -         -\n"
            "        nvme0n1  disk       -         shared\n"
            "(no mount)       -          -         -\n"
            "  zram0          zram       -         -\n");
  const auto json = nlohmann::json::parse(terminal::devices_json(inventory, {}, {}, health));
  EXPECT_EQ(json["stacks"][0]["mountpoint"], "/srv/a?b");
  EXPECT_EQ(
      json["stacks"][0]["places"][3],
      (nlohmann::json{{"name", "nvme0n1p2"}, {"kind", "partition"}, {"floor", 2}, {"shared", false}, {"cut", false}}));
  EXPECT_EQ(json["layers"][1], (nlohmann::json{{"name", "md0"},
                                               {"title", ""},
                                               {"kind", "raid1"},
                                               {"members", {"nvme0n1", "nvme0n1p2"}},
                                               {"health", "1 member is missing"},
                                               {"bad", true},
                                               {"missing_members", 1},
                                               {"consistency_policy", ""}}));
  std::ostringstream nothing;
  terminal::print_stacks({}, {}, nothing);
  EXPECT_EQ(nothing.str(), "");
}

TEST(Stacks, WhatIsSharedIsMarkedAndListedOnce) {
  const std::vector<Layer> layers{{"dm-0", "", LayerKind::lvm, {"sda1"}},
                                  {"dm-1", "", LayerKind::lvm, {"sda2"}},
                                  {"dm-2", "", LayerKind::thin_pool, {"dm-0", "dm-1"}}};
  const std::vector<model::Volume> volumes{
      {"sda", 8, 0, "sda"}, {"sda1", 8, 1, "sda"}, {"sda2", 8, 2, "sda"}, {"sdb", 8, 16, "sdb"}};
  EXPECT_EQ(text_of(model::places_below({"dm-2", "sdb", "sda2"}, layers, volumes)),
            "dm-2\n dm-0\n  sda1\n   sda*\n dm-1\n  sda2*\n   sda*\nsdb\nsda2*\n");
}

TEST(Stacks, EndWhateverTheNamesSay) {
  EXPECT_EQ(text_of(model::places_below(
                {"dm-0"},
                {{"dm-0", "", LayerKind::dm, {"dm-0", "dm-1", "gone"}}, {"dm-1", "", LayerKind::dm, {"dm-0"}}}, {})),
            "dm-0*\n dm-0*\n dm-1\n  dm-0*\n gone\n");
  std::vector<Layer> tower;
  std::vector<Layer> wide{{"dm-00", "", LayerKind::dm, {}}};
  for (int i = 0; i < 300; ++i) {
    tower.push_back({fmt::format("dm-{:03}", i), "", LayerKind::dm, {fmt::format("dm-{:03}", i + 1)}});
    wide[0].members.push_back(fmt::format("sd{:03}", i));
  }
  const auto floors = model::places_below({"dm-292"}, tower, {});
  EXPECT_EQ(floors.size(), 9U);
  EXPECT_FALSE(floors.back().cut);
  const auto high = model::places_below({"dm-000"}, tower, {});
  EXPECT_EQ(high.size(), model::kMaxFloors);
  EXPECT_TRUE(high.back().cut);
  const auto many = model::places_below({"dm-00", "sdx"}, wide, {});
  EXPECT_EQ(many.size(), model::kMaxStackPlaces);
  EXPECT_TRUE(many.front().cut && many.back().cut);
  EXPECT_TRUE(model::places_below({}, {}, {}).empty());
}

TEST(Stacks, BeyondTheLimitAreCounted) {
  std::vector<model::Filesystem> filesystems;
  std::vector<Layer> layers;
  for (int i = 0; i < 10; ++i) {
    filesystems.push_back({"sda", fmt::format("/srv/{}", i), "xfs", false, {"sda"}});
    layers.push_back({fmt::format("md{}", i), "", LayerKind::raid1, {"sda"}});
  }
  const std::vector<model::Volume> volumes{{"sda", 8, 0, "sda"}};
  const auto text = [](const model::Stacks& known) {
    std::string lines;
    for (const model::Stack& stack : known.stacks) {
      lines += stack.mountpoint.raw() + " " + text_of(stack.places);
    }
    return lines;
  };
  const model::Stacks all = model::stacks_of(filesystems, layers, volumes);
  EXPECT_EQ(all.stacks.size(), 20U);
  EXPECT_EQ(all.left_out, 0U);
  for (std::size_t limit = 0; limit < 22; ++limit) {
    const model::Stacks some = model::stacks_of(filesystems, layers, volumes, limit);
    EXPECT_EQ(some.stacks.size(), std::min<std::size_t>(limit, 20));
    EXPECT_EQ(some.stacks.size() + some.left_out, 20U);
    EXPECT_TRUE(text(all).starts_with(text(some))) << limit;
  }
}

TEST(Stacks, EightFloorsLoopsAndOddNames) {
  const SysfsHost host;
  add_nvme(host, 0, "0");
  host.array("dm-0", "252:0", {kDrive}, "dm/name = a\xff\"b\ndm/uuid = \x01");
  for (int i = 1; i < 8; ++i) {
    host.array(fmt::format("dm-{}", i), fmt::format("252:{}", i), {fmt::format("virtual/block/dm-{}", i - 1)});
  }
  host.array("md0", "9:0", {"virtual/block/md1"});
  host.array("md1", "9:1", {"virtual/block/md0"});
  host.array("md2", "9:2", {}, "slaves/sd a -> nowhere\nslaves/\"\n\" -> nowhere\nslaves/gone -> nowhere");
  host.mounts("1 0 252:7 / /srv rw - xfs /dev/x rw\n");
  const Inventory inventory = inventory_of(host);
  EXPECT_EQ(inventory.layers.at(0).title, "a\xff\"b");
  EXPECT_EQ(stacks_of(inventory),
            "/srv xfs\ndm-7\n dm-6\n  dm-5\n   dm-4\n    dm-3\n     dm-2\n      dm-1\n       dm-0\n        nvme0n1\n"
            "not mounted\nmd2\n gone\n");
}

}  // namespace
}  // namespace ssdpulse
