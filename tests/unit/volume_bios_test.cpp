// SPDX-License-Identifier: Apache-2.0
// Which volumes and members have rows, and what their cells mean. The cells are written here as the programs in the
// kernel would.
#include "daemon/block/volume_bios.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace ssdpulse::block {
namespace {

using model::Coverage;

/// A drive with two partitions, an LVM volume on one of them, and an array on that volume and on another whole drive.
model::Inventory stacked_host() {
  model::Inventory inventory;
  std::uint32_t minor = 0;
  const auto add = [&](const std::string& name, Coverage coverage) {
    model::Device device;
    device.name = name;
    device.coverage = coverage;
    inventory.devices.push_back(device);
  };
  const auto volume = [&](const std::string& name, const std::string& device, bool carries) {
    inventory.volumes.push_back({name, 8, minor++, device, carries});
  };
  add("dm-0", Coverage::stacked);
  add("md0", Coverage::stacked);
  add("sda", Coverage::measured);
  add("sdb", Coverage::measured);
  add("sdc", Coverage::measured);
  volume("dm-0", "dm-0", true);
  volume("md0", "md0", false);
  volume("md0p1", "md0", false);
  volume("sda", "sda", false);
  volume("sda1", "sda", true);
  volume("sda2", "sda", false);
  volume("sdb", "sdb", true);
  volume("sdc", "sdc", false);
  return inventory;
}

struct Kernel {
  VolumePlan plan;
  std::vector<volume_cell> cells;
  std::vector<__u64> devices = std::vector<__u64>(DEVICE_ROW_ENTRIES);
  VolumeReader reader;

  explicit Kernel(std::uint32_t rows, bool sees_partitions = true)
      : plan{.rows = rows, .stripes = 2, .sets = 1},
        cells(std::size_t{rows} * volume_cells_of_row(2)),
        reader(cells, devices, plan, sees_partitions) {}

  /// Row + 1 of a device, or 0, as the programs find it.
  [[nodiscard]] std::uint32_t row_of(const model::Inventory& inventory, const std::string& name) const {
    for (const model::Volume& volume : inventory.volumes) {
      const __u32 number = volume.major << 20U | volume.minor;
      for (__u32 probe = 0; volume.name == name && probe < DEVICE_ROW_PROBES; ++probe) {
        const __u64 entry = devices[(device_row_hash(number) + probe) % DEVICE_ROW_ENTRIES];
        if (entry == 0) {
          break;
        }
        if (static_cast<__u32>(entry) == number) {
          return static_cast<std::uint32_t>(entry >> DEVICE_ROW_SHIFT);
        }
      }
    }
    return 0;
  }
  volume_cell& cell(std::uint32_t row, std::uint32_t number) {
    return cells[std::size_t{row} * volume_cells_of_row(2) + number];
  }
  std::map<std::string, std::shared_ptr<const model::BioIo>> read() {
    std::map<std::string, std::shared_ptr<const model::BioIo>> result;
    for (const auto& io : reader.read()) {
      result[io->device] = io;
    }
    return result;
  }
};

TEST(VolumeRows, are_for_volumes_and_for_what_lies_directly_below_them) {
  const model::Inventory inventory = stacked_host();
  EXPECT_EQ(volume_rows(inventory), 4U);
  Kernel kernel(8);
  kernel.reader.update(inventory);
  EXPECT_NE(kernel.row_of(inventory, "dm-0"), 0U);
  EXPECT_NE(kernel.row_of(inventory, "md0"), 0U);
  EXPECT_EQ(kernel.row_of(inventory, "md0p1"), kernel.row_of(inventory, "md0")) << "its bios are the volume's";
  EXPECT_NE(kernel.row_of(inventory, "sda1"), 0U);
  EXPECT_NE(kernel.row_of(inventory, "sdb"), 0U);
  for (const std::string none : {"sda", "sda2", "sdc"}) {
    EXPECT_EQ(kernel.row_of(inventory, none), 0U) << none;
  }
  const auto ios = kernel.read();
  EXPECT_EQ(ios.size(), 4U);
  EXPECT_TRUE(ios.at("dm-0")->is_volume);
  EXPECT_FALSE(ios.at("sda1")->is_volume);
}

TEST(VolumeRows, are_none_without_a_volume) {
  model::Inventory inventory = stacked_host();
  for (model::Device& device : inventory.devices) {
    device.coverage = Coverage::measured;
  }
  EXPECT_EQ(volume_rows(inventory), 0U);
  EXPECT_EQ(plan_volumes(0, 8).bytes(), 0U);
}

TEST(VolumeRows, of_partitions_are_none_where_the_kernel_does_not_tell_them_apart) {
  const model::Inventory inventory = stacked_host();
  Kernel kernel(8, false);
  kernel.reader.update(inventory);
  EXPECT_EQ(kernel.row_of(inventory, "sda1"), 0U);
  EXPECT_EQ(kernel.read().count("sda1"), 0U) << "what is not known is absent";
}

TEST(VolumeRows, that_are_too_few_leave_out_members_first) {
  const model::Inventory inventory = stacked_host();
  Kernel two(2);
  two.reader.update(inventory);
  EXPECT_EQ(two.read().size(), 2U);
  EXPECT_TRUE(two.reader.left_out().empty());
  Kernel one(1);
  one.reader.update(inventory);
  EXPECT_EQ(one.reader.left_out(), std::vector<std::string>{"md0"});
}

/// `minors`: of volumes; the test's own kernel has no other devices.
model::Inventory host_of_volumes(const std::vector<std::uint32_t>& minors) {
  model::Inventory inventory;
  for (const std::uint32_t minor : minors) {
    model::Device device;
    device.name = "dm-" + std::to_string(minor);
    device.coverage = Coverage::stacked;
    inventory.volumes.push_back({device.name, 253, minor, device.name, false});
    inventory.devices.push_back(std::move(device));
  }
  return inventory;
}

/// Minor numbers of devices that the programs look for at the same place.
std::vector<std::uint32_t> colliding_minors(std::size_t wanted) {
  std::vector<std::uint32_t> minors{0};
  for (std::uint32_t minor = 1; minors.size() < wanted; ++minor) {
    if (device_row_hash(253U << 20U | minor) == device_row_hash(253U << 20U)) {
      minors.push_back(minor);
    }
  }
  return minors;
}

TEST(VolumeRows, count_from_the_moment_at_which_the_programs_find_them) {
  constexpr std::uint32_t kVolumes = 500;
  std::vector<std::uint32_t> minors(kVolumes);
  std::iota(minors.begin(), minors.end(), 0);
  const model::Inventory inventory = host_of_volumes(minors);
  for (int round = 0; round < 20; ++round) {
    Kernel kernel(kVolumes);
    std::atomic<bool> running = false;
    // Each volume has one I/O, as soon as its row is there.
    std::thread programs([&] {
      for (std::uint32_t done = 0; done < kVolumes; running = true) {
        for (const __u64& entry : kernel.devices) {
          const __u64 row = __atomic_load_n(&entry, __ATOMIC_ACQUIRE) >> DEVICE_ROW_SHIFT;
          if (row != 0 && kernel.cell(static_cast<std::uint32_t>(row) - 1, 0).submitted == 0) {
            __atomic_store_n(&kernel.cell(static_cast<std::uint32_t>(row) - 1, 0).submitted, 1, __ATOMIC_RELEASE);
            ++done;
          }
        }
      }
    });
    while (!running) {
      std::this_thread::yield();
    }
    kernel.reader.update(inventory);
    programs.join();
    std::vector<std::string> lost;
    for (const auto& [device, io] : kernel.read()) {
      if (io->operations[0].submitted != 1) {
        lost.push_back(device);
      }
    }
    ASSERT_EQ(lost, std::vector<std::string>()) << "round " << round;
  }
}

TEST(VolumeRows, are_found_while_others_come_and_go) {
  const std::vector<std::uint32_t> minors = colliding_minors(4);
  const auto only = [&](const std::vector<std::size_t>& which) {
    std::vector<std::uint32_t> some;
    std::transform(which.begin(), which.end(), std::back_inserter(some), [&](std::size_t i) { return minors[i]; });
    return host_of_volumes(some);
  };
  Kernel kernel(8);
  const auto place_of = [&](std::size_t which) {
    const auto found = std::find_if(kernel.devices.begin(), kernel.devices.end(), [&](__u64 entry) {
      return static_cast<__u32>(entry) == (253U << 20U | minors[which]) && entry >> DEVICE_ROW_SHIFT != 0;
    });
    return found - kernel.devices.begin();
  };
  const auto update = [&](const std::vector<std::size_t>& which) {
    kernel.reader.update(only(which));
    for (std::size_t i = 0; i < minors.size(); ++i) {
      const bool wanted = std::find(which.begin(), which.end(), i) != which.end();
      EXPECT_EQ(kernel.row_of(only({i}), "dm-" + std::to_string(minors[i])) != 0, wanted) << i;
    }
  };
  update({1, 2});
  const auto second = place_of(2);
  update({0, 1, 2});
  EXPECT_EQ(place_of(2), second) << "it does not make room for another";
  update({2});
  EXPECT_EQ(place_of(2), second) << "those before it are gone";
  update({2, 3});
  update({3});
  update({0, 1, 2, 3});
  EXPECT_EQ(std::count_if(kernel.devices.begin(), kernel.devices.end(), [](__u64 entry) { return entry != 0; }), 4)
      << "entries of devices that are gone are used again";
}

TEST(VolumeRows, that_are_given_away_count_nothing_more_of_who_had_them) {
  Kernel kernel(1);
  kernel.reader.update(host_of_volumes({1}));
  kernel.reader.update(host_of_volumes({1, 2}));
  EXPECT_EQ(kernel.reader.left_out(), std::vector<std::string>{"dm-2"});
  kernel.reader.update(host_of_volumes({2}));
  EXPECT_EQ(kernel.row_of(host_of_volumes({1}), "dm-1"), 0U);
  EXPECT_EQ(kernel.row_of(host_of_volumes({2}), "dm-2"), 1U);
}

TEST(VolumeRows, in_which_bios_may_still_end_are_the_last_to_be_given_away) {
  Kernel kernel(3);
  kernel.reader.update(host_of_volumes({1, 2}));
  const std::uint32_t first = kernel.row_of(host_of_volumes({1}), "dm-1");
  kernel.reader.update(host_of_volumes({2, 3}));
  EXPECT_NE(kernel.row_of(host_of_volumes({3}), "dm-3"), first) << "another was free";
  kernel.reader.update(host_of_volumes({2, 3, 4}));
  EXPECT_EQ(kernel.row_of(host_of_volumes({4}), "dm-4"), first) << "none else is";
}

TEST(VolumeCells, of_all_groups_of_cpus_are_added_up) {
  const model::Inventory inventory = stacked_host();
  Kernel kernel(8);
  kernel.reader.update(inventory);
  const std::uint32_t row = kernel.row_of(inventory, "dm-0") - 1;
  // Read and write of the first group, read and write of the second, flush, discard, ...
  kernel.cell(row, 1).submitted = 5;
  kernel.cell(row, 1).bytes = 20480;
  kernel.cell(row, 3).submitted = 2;
  kernel.cell(row, 3).bytes = 8192;
  kernel.cell(row, 3).timed = 4;
  kernel.cell(row, 3).failed = 1;
  kernel.cell(row, 3).sum_ns = 4000;
  kernel.cell(row, 3).latency[3] = 4;
  kernel.cell(row, 1).untimed = 1;
  kernel.cell(row, 4).submitted = 1;
  const auto io = kernel.read().at("dm-0");
  const model::BioOperation& write = io->operations[model::index(model::Operation::write)];
  EXPECT_EQ(write.submitted, 7U);
  EXPECT_EQ(write.bytes, 28672U);
  EXPECT_EQ(write.errors, 1U);
  EXPECT_EQ(write.untimed, 1U);
  EXPECT_EQ(write.latency.count(), 4U);
  EXPECT_EQ(write.latency.sum_ns, 4000U);
  EXPECT_EQ(write.in_flight, 2);
  EXPECT_EQ(io->operations[model::index(model::Operation::flush)].in_flight, 1);
  EXPECT_FALSE(io->operations[model::index(model::Operation::read)].active());
  EXPECT_EQ(kernel.read().at("dm-0"), io) << "nothing happened: the same object";
  kernel.cell(row, 1).missed = 2;
  EXPECT_EQ(kernel.read().at("dm-0")->operations[model::index(model::Operation::write)].in_flight, 0);
}

TEST(VolumeCells, of_a_row_that_is_used_again_count_from_zero) {
  const model::Inventory inventory = stacked_host();
  Kernel kernel(8);
  kernel.reader.update(inventory);
  const std::uint32_t row = kernel.row_of(inventory, "dm-0") - 1;
  kernel.cell(row, 0).submitted = 9;
  kernel.cell(row, 0).timed = 9;
  kernel.cell(row, 0).latency[7] = 9;
  kernel.reader.pause(true);
  EXPECT_EQ(kernel.row_of(inventory, "dm-0"), 0U);
  EXPECT_TRUE(kernel.read().empty());
  EXPECT_TRUE(kernel.reader.left_out().empty()) << "left out on purpose";
  kernel.reader.pause(false);
  for (const auto& [device, io] : kernel.read()) {
    EXPECT_EQ(io->operations[0].submitted, 0U) << device;
    EXPECT_EQ(io->operations[0].latency.count(), 0U) << device;
  }
}

TEST(VolumeCells, of_a_volume_that_was_replaced_under_its_name_count_from_zero) {
  model::Inventory inventory = stacked_host();
  inventory.layers = {{"dm-0", "old", model::LayerKind::crypt, {"sda1"}, 7}};
  Kernel kernel(8);
  kernel.reader.update(inventory);
  const std::uint32_t row = kernel.row_of(inventory, "dm-0");
  kernel.cell(row - 1, 0).submitted = 9;
  EXPECT_EQ(kernel.read().at("dm-0")->operations[0].submitted, 9U);
  kernel.reader.update(inventory);
  EXPECT_EQ(kernel.row_of(inventory, "dm-0"), row) << "it is the same";
  inventory.layers[0].diskseq = 8;
  kernel.reader.update(inventory);
  EXPECT_NE(kernel.row_of(inventory, "dm-0"), row);
  EXPECT_EQ(kernel.read().at("dm-0")->operations[0].submitted, 0U);
}

TEST(VolumePlan, is_bounded) {
  const VolumePlan small = plan_volumes(4, 64);
  EXPECT_EQ(small.rows, 68U);
  EXPECT_LE(small.bytes(), 2U << 20U);
  const VolumePlan large = plan_volumes(5000, 384);
  EXPECT_EQ(large.rows, std::uint32_t{VOLUME_MAX_ROWS});
  EXPECT_LE(large.bytes(), 54U << 20U);
}

}  // namespace
}  // namespace ssdpulse::block
