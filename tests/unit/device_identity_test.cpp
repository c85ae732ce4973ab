// SPDX-License-Identifier: Apache-2.0
// Does each drive keep its own history and state whatever names the kernel gives, also where drives share a WWID, a
// serial number or everything, and is it said that they do?
#include "daemon/model/device_identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/block/device_events.h"
#include "daemon/flash/flash_input.h"
#include "daemon/history/past_reader.h"
#include "daemon/history/store.h"
#include "tests/fixtures/sysfs_host.h"

namespace ssdpulse {
namespace {

using model::Device;
using namespace std::chrono_literals;

/// A drive as it reports itself, and where it is.
struct Drive {
  std::string model;
  std::string serial;
  std::string wwid;
  std::string attachment;
  std::uint64_t size_bytes = 1'000'000;
  std::string part = "";
};

model::Tick tick_of(const std::map<std::string, Drive>& drives) {
  model::Tick tick;
  for (const auto& [name, drive] : drives) {
    auto device = std::make_shared<Device>();
    device->name = name;
    device->model = drive.model;
    device->serial = drive.serial;
    device->wwid = drive.wwid;
    device->part = drive.part;
    device->attachment = drive.attachment;
    device->size_bytes = drive.size_bytes;
    device->transport = "sata";
    tick.devices.emplace_back();
    tick.devices.back().block.device = device;
    tick.devices.back().block.io = std::make_shared<model::DeviceIo>();
  }
  return tick;
}

model::DeviceKey key_in(model::HistoryKeys& keys, const std::map<std::string, Drive>& drives, const std::string& name) {
  model::Tick tick = tick_of(drives);
  keys.set_history_keys(tick);
  return *std::find_if(tick.devices.begin(), tick.devices.end(), [&](const model::DeviceTick& one) {
            return one.block.device->name == name;
          })->history_key;
}

model::DeviceKey key_of(const std::map<std::string, Drive>& drives, const std::string& name) {
  model::HistoryKeys keys;
  return key_in(keys, drives, name);
}

struct Pair {
  const char* what;
  Drive a;
  Drive b;
  bool clash;
};

const std::vector<Pair>& pairs() {
  static const auto& pairs = *new std::vector<Pair>{
      {"a batch with one WWN", {"M", "S1", "naa.5", "p1"}, {"M", "S2", "naa.5", "p2"}, false},
      {"an adapter's WWN for any drive", {"A", "", "naa.5", "p1"}, {"B", "", "naa.5", "p2"}, false},
      {"an adapter's WWN and serial number", {"A", "0", "naa.5", "p1"}, {"B", "0", "naa.5", "p2"}, false},
      {"one serial number and model", {"M", "S1", "naa.1", "p1"}, {"M", "S1", "naa.2", "p2"}, false},
      {"nothing but one serial number", {"", "S1", "", "p1"}, {"", "S1", "", "p2"}, true},
      {"everything", {"M", "S1", "naa.5", "p1"}, {"M", "S1", "naa.5", "p2"}, true},
      {"everything but the size", {"M", "S1", "naa.5", "p1", 1}, {"M", "S1", "naa.5", "p2", 2}, true},
      {"a WWN, and no serial number", {"M", "", "naa.5", "p1"}, {"M", "", "naa.5", "p2"}, true},
      {"everything, behind one port", {"M", "S1", "naa.5", "p1"}, {"M", "S1", "naa.5", "p1"}, true},
      {"an identifier that one was not given", {"M", "S1", "eui.5", "p1"}, {"M", "S1", "nvme.1-2", "p2"}, true},
      {"namespaces of one drive", {"M", "S1", "", "p1", 1, "1"}, {"M", "S1", "", "p1", 1, "2"}, false},
  };
  return pairs;
}

TEST(Identity, of_any_two_drives_each_keeps_its_own_also_when_their_names_are_swapped) {
  for (const Pair& pair : pairs()) {
    const std::map<std::string, Drive> before{{"sda", pair.a}, {"sdb", pair.b}};
    const std::map<std::string, Drive> after{{"sda", pair.b}, {"sdb", pair.a}};
    EXPECT_NE(key_of(before, "sda").identity, key_of(before, "sdb").identity) << pair.what;
    if (pair.a.attachment != pair.b.attachment || !pair.clash) {
      EXPECT_EQ(key_of(before, "sda").identity, key_of(after, "sdb").identity) << pair.what;
      EXPECT_EQ(key_of(before, "sdb").identity, key_of(after, "sda").identity) << pair.what;
      EXPECT_EQ(flash::drives_of(tick_of(before))[0].key, flash::drives_of(tick_of(after))[1].key) << pair.what;
    }
    EXPECT_NE(flash::drives_of(tick_of(before))[0].key, flash::drives_of(tick_of(before))[1].key) << pair.what;
    const model::Tick tick = tick_of(before);
    const auto said =
        model::reported_clashes({tick.devices[0].block.device.get(), tick.devices[1].block.device.get()}, {});
    ASSERT_EQ(said.size(), pair.clash ? 1U : 0U) << pair.what;
    if (pair.clash) {
      EXPECT_EQ(said[0].devices, (std::vector<std::string>{"sda", "sdb"})) << pair.what;
      EXPECT_EQ(said[0].sizes_differ, pair.a.size_bytes != pair.b.size_bytes) << pair.what;
    }
  }
}

TEST(Identity, in_a_clash_an_identifier_that_the_kernel_gives_to_one_of_them_does_not_count) {
  const Drive a{"M", "S1", "eui.5", "p1"};
  const Drive b{"M", "S1", "nvme.1-2", "p2"};
  const Drive a_after{"M", "S1", "nvme.1-2", "p1"};
  const Drive b_after{"M", "S1", "eui.5", "p2"};
  EXPECT_EQ(key_of({{"sda", a}, {"sdb", b}}, "sda").identity,
            key_of({{"sda", b_after}, {"sdb", a_after}}, "sdb").identity);
}

TEST(Identity, three_of_one_identity_are_one_report) {
  const Drive one{"M", "S1", "naa.5", ""};
  model::Tick tick = tick_of({{"sda", one}, {"sdb", one}, {"sdc", one}});
  block::DeviceEvents stage;
  const auto lines = stage.observe(tick).effects.lines;
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].level, log::Level::warning);
  EXPECT_EQ(lines[0].text.find("devices identity=\"sda, sdb, sdc report one identity (M | serial S1 | wwid naa.5)"), 0U)
      << lines[0].text;
  tick.at += 1s;
  EXPECT_TRUE(stage.observe(tick).effects.lines.empty());
}

TEST(Identity, paths_joined_by_multipath_do_not_clash) {
  const Drive one{"M", "S1", "naa.5", ""};
  const model::Tick tick = tick_of({{"sda", one}, {"sdb", one}});
  const std::vector<const Device*> devices{tick.devices[0].block.device.get(), tick.devices[1].block.device.get()};
  EXPECT_TRUE(
      model::reported_clashes(devices, {{"dm-0", "sda", "dm", "mpatha", true}, {"dm-0", "sdb", "dm", "mpatha", true}})
          .empty());
  EXPECT_EQ(model::reported_clashes(devices, {{"dm-0", "sda", "dm", "vg"}, {"dm-0", "sdb", "dm", "vg"}}).size(), 1U);
  EXPECT_EQ(model::reported_clashes(devices, {{"dm-0", "sda", "dm", "mpatha", true}}).size(), 1U);
}

TEST(Identity, a_device_of_a_clash_is_identified_by_its_attachment_until_it_goes) {
  const Drive a{"M", "S1", "naa.5", "p1"};
  const Drive b{"M", "S1", "naa.5", "p2"};
  model::HistoryKeys keys;
  const model::DeviceKey alone = key_in(keys, {{"sda", a}}, "sda");
  EXPECT_EQ(alone.identity, "M | serial S1 | wwid naa.5");
  EXPECT_EQ(alone.without_wwid, "M | serial S1");
  const model::DeviceKey both = key_in(keys, {{"sda", a}, {"sdb", b}}, "sda");
  EXPECT_EQ(both.identity, "M | serial S1 | wwid naa.5 | at p1");
  EXPECT_EQ(both.without_wwid, "") << "the history before may be that of either";
  EXPECT_EQ(key_in(keys, {{"sdb", b}}, "sdb").identity, "M | serial S1 | wwid naa.5 | at p2");
}

TEST(Identity, a_size_that_grows_changes_nothing) {
  EXPECT_EQ(key_of({{"sda", {"M", "S1", "naa.5", "p1", 1}}}, "sda").identity,
            key_of({{"sdb", {"M", "S1", "naa.5", "p2", 2}}}, "sdb").identity);
}

// ---- where it is attached

TEST(Attachment, is_the_same_whatever_numbers_the_kernel_gives) {
  struct Case {
    const char* place;
    const char* other_numbers;
    const char* says;
  };
  const std::vector<Case> cases{
      {"pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0",
       "pci0000:00/0000:00:1f.2/ata7/host5/target5:0:0/5:0:0:0", "pci-0000:00:1f.2 ata-2 scsi-0:0:0"},
      {"pci0000:00/0000:00:05.0/virtio2/host0/target0:0:1/0:0:1:0",
       "pci0000:00/0000:00:05.0/virtio7/host4/target4:0:1/4:0:1:0", "pci-0000:00:05.0 scsi-0:1:0"},
      {"pci0000:00/0000:00:01.0/0000:01:00.0/usb2/2-1/2-1.4/2-1.4:1.0/host4/target4:0:0/4:0:0:1",
       "pci0000:00/0000:00:01.0/0000:01:00.0/usb1/1-1/1-1.4/1-1.4:1.0/host9/target9:0:0/9:0:0:1",
       "pci-0000:01:00.0 usb-1 usb-1.4 usb-1.4:1.0 scsi-0:0:1"},
      {"pci0000:00/0000:00:03.0/host1/port-1:0/end_device-1:0/target1:0:3/1:0:3:0",
       "pci0000:00/0000:00:03.0/host6/port-6:0/end_device-6:0/target6:0:1/6:0:1:0",
       "pci-0000:00:03.0 sas-0x5000c5 scsi-0"},
      {"platform/host7/session3/target7:0:0/7:0:0:2", "platform/host9/session1/target9:0:0/9:0:0:2",
       "iscsi-iqn.2003-01.example:t scsi-2"},
      {"LNXSYSTM:00/VMBUS:01/fd1d2cbd/host0/target0:0:0/0:0:0:1",
       "LNXSYSTM:00/VMBUS:01/fd1d2cbd/host1/target1:0:0/1:0:0:1", "LNXSYSTM:00 VMBUS:01 fd1d2cbd scsi-0:0:1"},
  };
  for (const Case& one : cases) {
    for (const char* place : {one.place, one.other_numbers}) {
      const tests::SysfsHost host;
      host.tree().add("sys/class/ata_port/ata3", "port_no = 2");
      host.tree().add("sys/class/ata_port/ata7", "port_no = 2");
      for (const char* device : {"end_device-1:0", "end_device-6:0"}) {
        host.tree().add(std::string("sys/class/sas_device/") + device, "sas_address = 0x5000c5");
      }
      for (const char* session : {"session3", "session1"}) {
        host.tree().add(std::string("sys/class/iscsi_session/") + session, "targetname = iqn.2003-01.example:t");
      }
      tests::add_scsi(host, "sda", place, "0", "model = M");
      EXPECT_EQ(tests::device_of(tests::inventory_of(host), "sda").attachment, one.says) << place;
    }
  }
}

TEST(Attachment, of_nvme_and_of_hosts_of_one_adapter) {
  const tests::SysfsHost host;
  tests::add_nvme(host, 0, "0", "nsid = 1\nwwid = eui.1");
  EXPECT_EQ(tests::device_of(tests::inventory_of(host), "nvme0n1").attachment, "pci-0000:00:00.0");
  EXPECT_EQ(tests::device_of(tests::inventory_of(host), "nvme0n1").part, "1");
  tests::add_scsi(host, "sda", "pci0000:00/0000:00:09.0/host3/target3:0:0/3:0:0:0", "0", "model = M");
  tests::add_scsi(host, "sdb", "pci0000:00/0000:00:09.0/host4/target4:0:0/4:0:0:0", "16", "model = M");
  EXPECT_EQ(tests::device_of(tests::inventory_of(host), "sda").attachment, "pci-0000:00:09.0 scsi-0:0:0");
  EXPECT_EQ(tests::device_of(tests::inventory_of(host), "sdb").attachment, "pci-0000:00:09.0 host-1 scsi-0:0:0");
}

TEST(Attachment, of_a_multipath_head_is_that_of_a_path) {
  const tests::SysfsHost host;
  const std::string controller = "pci0000:00/0000:00:04.0/nvme/nvme5";
  host.tree().link("sys/class/nvme/nvme5", "../../devices/" + controller);
  host.disk("virtual/nvme-subsystem/nvme-subsys3", "nvme3n1", "259:1", "wwid = uuid.1\nnsid = 1");
  host.disk(controller, "nvme3c5n1", "");
  EXPECT_EQ(tests::device_of(tests::inventory_of(host), "nvme3n1").attachment, "pci-0000:00:04.0");
}

TEST(Attachment, hardware_partitions_of_a_card_are_no_clash) {
  const tests::SysfsHost host;
  const std::string card = "platform/fe.mmc/mmc_host/mmc0/mmc0:0001";
  host.tree().add("sys/devices/" + card, "subsystem -> ../../../../../../bus/mmc\nserial = 0x1");
  int minor = 0;
  for (const char* name : {"mmcblk0", "mmcblk0boot0", "mmcblk0boot1"}) {
    host.disk(card + "/block", name, "179:" + std::to_string(minor++), "device -> ../../../mmc0:0001");
  }
  const model::Inventory inventory = tests::inventory_of(host);
  std::vector<const Device*> devices;
  for (const Device& device : inventory.devices) {
    EXPECT_EQ(device.serial, "0x1");
    devices.push_back(&device);
  }
  EXPECT_TRUE(model::reported_clashes(devices, inventory.memberships).empty());
}

// ---- in the history

class Kept : public testing::Test {
 protected:
  static constexpr model::Minute kBegin{std::chrono::minutes(29'000'040)};

  Kept() {
    std::optional<history::FileIdentity> checked;
    store_.emplace(*history::Store::open(file(), {}, checked, stop_));
  }
  [[nodiscard]] std::string file() const { return tree_.path("ssdpulse.db"); }

  /// One read in that minute by the device that has the name; and its scheduler.
  void write(const model::DeviceKey& key, int minute, const std::string& scheduler = "") {
    model::Batch batch;
    model::DeviceInterval load;
    load.measured_ms = 60'000;
    load.operations[0].ios = 1;
    batch.device_minutes.push_back({key, kBegin + std::chrono::minutes(minute), load});
    if (!scheduler.empty()) {
      batch.at = kBegin + std::chrono::minutes(minute);
      batch.settings.push_back({key.identity, "scheduler", scheduler});
    }
    ASSERT_TRUE(store_->write(batch, {kBegin + std::chrono::minutes(minute), 60s}).has_value());
  }
  /// Minutes recorded of what `words` names; -1: nothing has that name.
  int minutes(const history::Which& which) {
    auto past = history::PastReader::open(file(), 25ms, std::chrono::steady_clock::now() + 60s);
    int count = 0;
    const auto read = past->minutes(which, {kBegin, kBegin + 60min}, [&](const auto&) { ++count; });
    return read ? count : -1;
  }
  static history::Which by_identity(const std::string& identity) {
    history::Which which(identity);
    which.by_identity = true;
    return which;
  }
  std::size_t devices() {
    return history::PastReader::open(file(), 25ms, std::chrono::steady_clock::now() + 60s)->devices(nullptr)->size();
  }
  std::int64_t count(const std::string& sql) {
    return history::Connection::open_to_read(file())->number("SELECT count(*) FROM " + sql).value();
  }

  tests::TemporaryTree tree_;
  std::atomic<bool> stop_{false};
  std::optional<history::Store> store_;
};

TEST_F(Kept, each_of_two_clones_keeps_its_own_also_when_it_is_alone) {
  const Drive one{"M", "S1", "eui.7", "usb-1", 1, "1"};
  const Drive other{"M", "S1", "eui.7", "usb-2", 1, "1"};
  const std::map<std::string, Drive> both{{"sda", one}, {"sdb", other}};
  write(key_of(both, "sda"), 0);
  write(key_of(both, "sdb"), 0);
  for (const int minute : {1, 3}) {
    write(key_of({{"sda", one}}, "sda"), minute);
    write(key_of({{"sda", other}}, "sda"), minute + 1);
  }
  EXPECT_EQ(devices(), 2U);
  EXPECT_EQ(minutes(by_identity(key_of(both, "sda").identity)), 3);
  EXPECT_EQ(minutes(by_identity(key_of(both, "sdb").identity)), 3);
}

TEST_F(Kept, what_could_be_any_of_several_becomes_none_of_them) {
  write(key_of({{"a", {"M", "S1", "eui.7", "p1", 1, "1"}}}, "a"), 0);
  write(key_of({{"b", {"M", "S1", "eui.8", "p2", 1, "1"}}}, "b"), 0);
  write(key_of({{"b", {"M", "S1", "", "p2", 1, "1"}}}, "b"), 1);
  EXPECT_EQ(devices(), 3U);
}

TEST_F(Kept, nvme_drives_whose_identifiers_are_cleared_in_turn_keep_their_own) {
  const auto boot = [](bool swapped) {
    std::map<std::string, Drive> drives{{"nvme0n1", {"M", "S1", "eui.5", "p1", 1, "1"}},
                                        {"nvme1n1", {"M", "S2", "nvme.1234-5332-4d-00000001", "p2", 1, "1"}}};
    if (swapped) {
      drives = {{"nvme0n1", {"M", "S2", "eui.5", "p2", 1, "1"}},
                {"nvme1n1", {"M", "S1", "nvme.1234-5331-4d-00000001", "p1", 1, "1"}}};
    }
    return drives;
  };
  for (int minute = 0; minute < 6; ++minute) {
    const auto drives = boot(minute % 2 == 1);
    write(key_of(drives, "nvme0n1"), minute, "none");
    if (minute < 4) {
      write(key_of(drives, "nvme1n1"), minute, "bfq");
    }
  }
  EXPECT_EQ(devices(), 2U);
  EXPECT_EQ(minutes(std::string("S1")), 5);
  EXPECT_EQ(minutes(std::string("S2")), 5);
  EXPECT_EQ(minutes(std::string("eui.5")), 5) << "by its WWID: who has it now";
  EXPECT_EQ(count("setting WHERE device NOT IN (SELECT identity FROM device)"), 0);
}

TEST_F(Kept, no_history_goes_to_who_is_in_a_clash) {
  const Drive a{"M", "S1", "naa.5", "p1"};
  const Drive b{"M", "S1", "naa.5", "p2"};
  write({"M | serial S1", "sda", "M", "S1"}, 0);
  write(key_of({{"sda", a}, {"sdb", b}}, "sda"), 1);
  write(key_of({{"sda", a}, {"sdb", b}}, "sdb"), 1);
  write(key_of({{"sda", b}, {"sdb", a}}, "sda"), 2);
  EXPECT_EQ(devices(), 3U);
  EXPECT_EQ(minutes(by_identity("M | serial S1 | wwid naa.5 | at p1")), 1);
  EXPECT_EQ(minutes(by_identity("M | serial S1 | wwid naa.5 | at p2")), 2);
  EXPECT_EQ(minutes(by_identity("M | serial S1")), 1) << "of when it had no WWID";
  EXPECT_EQ(minutes(std::string("naa.5")), 2) << "by its WWID: who had it last";
}

}  // namespace
}  // namespace ssdpulse
