// SPDX-License-Identifier: Apache-2.0
// What does the source make of the kernel's tables as disks and their paths appear and disappear? The test writes the
// counts, instead of a kernel.
#include "daemon/block/block_source.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "daemon/model/block_io.h"

namespace ssdpulse::block {
namespace {

constexpr std::uint32_t kDevices = 4;
constexpr std::uint64_t kSerial = 7;  // of the only cgroup
constexpr model::CgroupId kCgroup = 1007;

/// One CPU, four rows, one cgroup.
struct Kernel {
  std::vector<io_cell> hot = std::vector<io_cell>(kDevices * HOT_CLASSES);
  std::vector<io_cell> cold = std::vector<io_cell>(kDevices * COLD_CLASSES);
  std::vector<write_cell> writes = std::vector<write_cell>(kDevices);
  std::vector<tagged_cell> tagged = std::vector<tagged_cell>(kDevices);
  std::vector<commit_cell> commits = std::vector<commit_cell>(kDevices);
  std::vector<device_state> states = std::vector<device_state>(kDevices);
  std::vector<device_events> events = std::vector<device_events>(kDevices);
  std::vector<host_state> hosts = std::vector<host_state>(1);
  std::vector<queue_entry> queues = std::vector<queue_entry>(QUEUE_IDS);
  std::vector<known_disk> disks = std::vector<known_disk>(KNOWN_DISKS);
  std::vector<issue_slot> slots = std::vector<issue_slot>(kDevices * kMinSlotsPerDevice);
  std::vector<attribution_set> attributions = std::vector<attribution_set>(kDevices);
  std::vector<unattributed> others = std::vector<unattributed>(kDevices);
  std::vector<announced_cgroup> announced = std::vector<announced_cgroup>(1);
  std::vector<announcements> announcement_states = std::vector<announcements>(1);

  Kernel() {
    announced[0].serial = kSerial;
    announced[0].cgroup = kCgroup;
    announcement_states[0].written = 1;
  }
  Tables tables() {
    Tables tables;
    tables.hot_cells = hot;
    tables.cold_cells = cold;
    tables.write_cells = writes;
    tables.tagged_cells = tagged;
    tables.commit_cells = commits;
    tables.device_states = tables.writable_states = states;
    tables.rare_events = events;
    tables.host_states = hosts;
    tables.queue_entries = queues;
    tables.known_disks = disks;
    tables.issue_slots = slots;
    tables.attributions = attributions;
    tables.unattributed_cells = others;
    tables.announced_cgroups = announced;
    tables.announcement_states = announcement_states;
    return tables;
  }
  static MemoryPlan plan() {
    MemoryPlan plan;
    plan.devices = plan.attribution_sets = kDevices;
    plan.cpus = plan.announcements = plan.unattributed_cells = 1;
    plan.slots = kDevices * kMinSlotsPerDevice;
    return plan;
  }

  /// The index of a disk that is measured or retiring.
  [[nodiscard]] std::uint32_t row_of(const std::string& disk) const {
    for (const known_disk& entry : disks) {
      if (entry.device != 0 && entry.device <= kDevices && disk == reinterpret_cast<const char*>(entry.name)) {
        return entry.device - 1;
      }
    }
    ADD_FAILURE() << disk << " has no row";
    return 0;
  }
  /// A write of one page that took a microsecond.
  void write(std::uint32_t device) {
    io_cell& cell = hot[device * HOT_CLASSES + CLASS_WRITE];
    cell.issues += 1;
    cell.completions += 1;
    cell.bytes += 4096;
    cell.device[0][latency_word(1000)] += 1;
    writes[device].hint_pages[HINT_DEFAULT] += states[device].sampling.groups != 0 ? 1 : 0;
    attributed& owner = attributions[device].cell[0];
    if (owner.key == ATTRIBUTION_FREE) {
      owner.key = attribution_key(kSerial, device, ATTRIBUTED_WRITE, PATH_LIBAIO);
      announcement_states[0].taken += 1;
    }
    owner.ios += 1;
    owner.bytes += 4096;
    owner.device_ns += 1000;
  }
  /// Writes for whose cgroup there was no cell.
  void write_of_nobody(std::uint32_t device, std::uint32_t ios) {
    io_cell& cell = hot[device * HOT_CLASSES + CLASS_WRITE];
    cell.issues += ios;
    cell.completions += ios;
    cell.device[0][latency_word(1000)] += ios;
    others[device].of[ATTRIBUTED_WRITE][PATH_LIBAIO].ios += ios;
    others[device].events += ios;
  }
};

class Source : public testing::Test {
 protected:
  /// A multipath head with these paths.
  static model::Inventory head(const std::vector<std::string>& paths) {
    model::Device device;
    device.name = "nvme0n1";
    device.serial = "S1";
    for (const std::string& path : paths) {
      device.paths.push_back({path, 1, 64, 0});
    }
    model::Inventory inventory;
    inventory.devices.push_back(std::move(device));
    return inventory;
  }

  Kernel kernel_;
  std::unique_ptr<BlockSource> source_ = BlockSource::on(kernel_.tables(), Kernel::plan());
};

std::uint64_t written_ios(const DeviceSample& sample) {
  return sample.attribution->cgroups.at(kCgroup)[model::Operation::write].ios;
}

TEST_F(Source, one_device_alone_keeps_its_attribution) {
  source_->update(head({"nvme0c0n1"}));
  kernel_.write(kernel_.row_of("nvme0c0n1"));
  const BlockSample all = source_->sample();
  kernel_.write(kernel_.row_of("nvme0c0n1"));
  source_->mark_in_flight_missed("nvme0n1", std::array{model::Operation::write});
  const auto again = source_->sample_device("nvme0n1");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->io->operation(model::Operation::write).completions, 2U);
  ASSERT_TRUE(again->attribution);
  EXPECT_EQ(again->attribution, all.devices[0].attribution);
  EXPECT_EQ(written_ios(*again), 1U) << "that of the last sample";
  EXPECT_EQ(written_ios(source_->sample().devices[0]), 2U);
}

/// nvme0n1 and sda.
model::Inventory two_disks() {
  model::Inventory inventory;
  for (const char* name : {"nvme0n1", "sda"}) {
    model::Device device;
    device.name = name;
    device.serial = name;
    device.paths.push_back({name, 1, 64, 0});
    inventory.devices.push_back(std::move(device));
  }
  return inventory;
}

TEST_F(Source, each_device_has_its_own_writes_of_nobody) {
  source_->update(two_disks());
  source_->sample();
  kernel_.write_of_nobody(kernel_.row_of("nvme0n1"), 3);
  kernel_.write_of_nobody(kernel_.row_of("sda"), 5);
  const BlockSample sample = source_->sample();
  ASSERT_EQ(sample.devices.size(), 2U);
  EXPECT_EQ(sample.devices[0].attribution->other[model::Operation::write].ios, 3U);
  EXPECT_EQ(sample.devices[1].attribution->other[model::Operation::write].ios, 5U);
}

TEST_F(Source, each_operation_of_each_device_has_its_own_cells) {
  source_->update(two_disks());
  source_->sample();
  const auto expected = [](std::uint32_t device, std::uint32_t operation) { return 10 * (device + 1) + operation; };
  for (std::uint32_t device = 0; device < 2; ++device) {
    const std::uint32_t row = kernel_.row_of(device == 0 ? "nvme0n1" : "sda");
    for (std::uint32_t operation = 0; operation < CLASSES; ++operation) {
      io_cell& cell = operation < HOT_CLASSES ? kernel_.hot[row * HOT_CLASSES + operation]
                                              : kernel_.cold[row * COLD_CLASSES + operation - HOT_CLASSES];
      cell.issues = cell.completions = expected(device, operation);
    }
  }
  const BlockSample sample = source_->sample();
  for (std::uint32_t device = 0; device < 2; ++device) {
    for (std::uint32_t operation = 0; operation < CLASSES; ++operation) {
      EXPECT_EQ(sample.devices[device].io->operations[operation].completions, expected(device, operation)) << operation;
    }
  }
}

TEST_F(Source, a_path_that_goes_leaves_what_it_counted_to_its_device) {
  source_->set_sampling({{"nvme0n1", {12, 3, 5, 100, 0}}});
  source_->update(head({"nvme0c0n1", "nvme0c1n1"}));
  source_->sample();
  const std::uint32_t stays = kernel_.row_of("nvme0c0n1"), goes = kernel_.row_of("nvme0c1n1");
  kernel_.write(stays);
  kernel_.write(goes);
  source_->sample();
  source_->update(head({"nvme0c0n1"}));  // it retires
  kernel_.write(stays);
  kernel_.write(goes);                   // what was in flight there ends
  source_->update(head({"nvme0c0n1"}));  // and it is released
  const BlockSample sample = source_->sample();
  const DeviceSample& device = sample.devices[0];
  EXPECT_EQ(device.io->operation(model::Operation::write).completions, 4U);
  EXPECT_EQ(written_ios(device), 4U);
  ASSERT_TRUE(sample.flash);
  EXPECT_EQ(sample.flash->devices[0].written[model::index(model::WriteHint::unknown)], 4U);
  // The next disk in that row starts with nothing.
  model::Inventory more = head({"nvme0c0n1"});
  more.devices.push_back(more.devices[0]);
  more.devices[1].name = more.devices[1].paths[0].disk_name = "sda";
  more.devices[1].serial = "S2";
  source_->update(more);
  EXPECT_EQ(kernel_.row_of("sda"), goes);
  EXPECT_TRUE(source_->sample().devices[1].attribution->cgroups.empty());
}

TEST_F(Source, a_device_is_sampled_while_all_its_paths_are_measured) {
  source_->set_sampling({{"nvme0n1", {12, 3, 5, 100, 0}}});
  source_->update(head({"a", "b", "c", "d"}));
  BlockSample sample = source_->sample();
  ASSERT_TRUE(sample.flash);
  EXPECT_TRUE(sample.devices[0].whole);
  const auto first = sample.flash->devices[0].sampling;
  const std::uint32_t row = kernel_.row_of("a");
  EXPECT_NE(kernel_.states[row].sampling.groups, 0U);

  source_->update(head({"a", "b", "c", "d", "e"}));  // the tables are full
  sample = source_->sample();
  EXPECT_FALSE(sample.flash);
  EXPECT_FALSE(sample.devices[0].whole);
  EXPECT_TRUE(sample.devices[0].io);
  EXPECT_EQ(kernel_.states[row].sampling.groups, 0U);

  source_->update(head({"a", "b", "c", "d"}));
  sample = source_->sample();
  ASSERT_TRUE(sample.flash);
  EXPECT_NE(sample.flash->devices[0].sampling, first) << "anew";
  EXPECT_TRUE(sample.devices[0].whole);
}

TEST_F(Source, a_device_without_a_row_is_not_sampled) {
  model::Inventory inventory = head({"a", "b", "c", "d"});
  inventory.devices.push_back(head({"sda"}).devices[0]);
  inventory.devices[1].name = "sda";
  inventory.devices[1].serial = "S2";
  source_->set_sampling({{"sda", {12, 3, 5, 100, 0}}});
  source_->update(inventory);
  const BlockSample sample = source_->sample();
  ASSERT_EQ(sample.devices.size(), 2U);
  EXPECT_FALSE(sample.devices[1].io);
  EXPECT_FALSE(sample.devices[1].whole);
  EXPECT_FALSE(sample.flash);
  EXPECT_EQ(source_->devices_left_out(), (std::vector<std::string>{"sda"}));
  EXPECT_EQ(source_->measured_devices(), 1U);
  inventory.devices.pop_back();
  inventory.devices[0].paths.resize(1);
  source_->update(inventory);
  EXPECT_TRUE(source_->devices_left_out().empty());
  EXPECT_EQ(source_->measured_devices(), 1U);
}

}  // namespace
}  // namespace ssdpulse::block
