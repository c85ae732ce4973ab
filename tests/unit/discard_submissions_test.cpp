// SPDX-License-Identifier: Apache-2.0
// Does each volume that is counted by submitter have a row of its own, and does a new one inherit no counts?
#include "daemon/block/discard_submissions.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace ssdpulse::block {
namespace {

constexpr std::uint32_t kMajor = 259;

/// A host's disks and partitions, with consecutive device numbers.
class Host {
 public:
  Host& disk(const std::string& name, model::Coverage coverage) {
    model::Device device;
    device.name = name;
    device.coverage = coverage;
    inventory_.devices.push_back(device);
    return volume(name, name);
  }
  Host& partition(const std::string& disk, const std::string& name) { return volume(name, disk); }
  [[nodiscard]] const model::Inventory& inventory() const { return inventory_; }
  /// The number in the kernel's format.
  [[nodiscard]] __u32 number(const std::string& name) const {
    for (const model::Volume& volume : inventory_.volumes) {
      if (volume.name == name) {
        return kMajor << 20U | volume.minor;
      }
    }
    return 0;
  }

 private:
  Host& volume(const std::string& name, const std::string& disk) {
    inventory_.volumes.push_back({name, kMajor, static_cast<std::uint32_t>(inventory_.volumes.size()), disk, false});
    return *this;
  }
  model::Inventory inventory_;
};

/// The kernel's tables, and its way of looking up a volume.
struct Tables {
  std::vector<discard_cell> cells;
  std::vector<__u64> volumes = std::vector<__u64>(DEVICE_ROW_ENTRIES);
  DiscardSubmissionReader reader;

  explicit Tables(std::uint32_t rows, bool sees_partitions = true)
      : cells(std::size_t{rows} * SUBMITTERS), reader(cells, volumes, sees_partitions) {}
  /// Row + 1, or 0.
  [[nodiscard]] std::uint32_t row_of(__u32 device) const {
    for (__u32 probe = 0; probe < DEVICE_ROW_PROBES; ++probe) {
      const __u64 entry = volumes[(device_row_hash(device) + probe) % DEVICE_ROW_ENTRIES];
      if (static_cast<__u32>(entry) == device) {
        return static_cast<std::uint32_t>(entry >> DEVICE_ROW_SHIFT);
      }
    }
    return 0;
  }
};

TEST(Rows, are_for_measured_and_stacked_disks_and_their_partitions) {
  Host host;
  host.disk("dm-0", model::Coverage::stacked).disk("loop0", model::Coverage::excluded);
  host.disk("loop1", model::Coverage::empty).disk("nvme0n1", model::Coverage::measured);
  host.partition("nvme0n1", "nvme0n1p1").partition("loop0", "loop0p1");
  Tables tables(discard_rows(host.inventory()));
  tables.reader.update(host.inventory());
  std::set<std::uint32_t> rows;
  for (const std::string volume : {"dm-0", "nvme0n1", "nvme0n1p1"}) {
    EXPECT_NE(tables.row_of(host.number(volume)), 0U) << volume;
    EXPECT_TRUE(rows.insert(tables.row_of(host.number(volume))).second) << volume;
  }
  for (const std::string volume : {"loop0", "loop0p1", "loop1"}) {
    EXPECT_EQ(tables.row_of(host.number(volume)), 0U) << volume;
  }
  EXPECT_EQ(tables.reader.read().size(), 3U);
}

TEST(Rows, of_partitions_are_none_where_the_kernel_does_not_tell_them_apart) {
  Host host;
  host.disk("sda", model::Coverage::measured).partition("sda", "sda1");
  Tables tables(8, false);
  tables.reader.update(host.inventory());
  EXPECT_NE(tables.row_of(host.number("sda")), 0U);
  EXPECT_EQ(tables.row_of(host.number("sda1")), 0U);
  EXPECT_EQ(tables.reader.read().count("sda1"), 0U) << "what is not known is absent";
}

TEST(Rows, that_are_reused_count_from_zero) {
  Tables tables(1);
  Host host;
  tables.reader.update(host.disk("sda", model::Coverage::measured).inventory());
  tables.cells[SUBMITTER_FSTRIM] = {3, 4096, 10, 20, "fstrim", {}};
  const auto before = tables.reader.read().at("sda")[SUBMITTER_FSTRIM];
  EXPECT_EQ(before.ranges, 3U);
  EXPECT_EQ(before.bytes, 4096U);
  EXPECT_EQ(before.first_ns, 10U);
  EXPECT_EQ(before.last_ns, 20U);
  EXPECT_EQ(before.submitter, "fstrim");
  tables.reader.update({});
  EXPECT_TRUE(tables.reader.read().empty());
  EXPECT_EQ(tables.row_of(host.number("sda")), 0U);
  Host other;
  other.disk("sdb", model::Coverage::measured).disk("sdc", model::Coverage::measured);
  tables.reader.update(other.inventory());
  EXPECT_EQ(tables.row_of(other.number("sdb")), 1U);
  EXPECT_EQ(tables.row_of(other.number("sdc")), 0U) << "the table is full";
  EXPECT_EQ(tables.reader.read().at("sdb")[SUBMITTER_FSTRIM].bytes, 0U);
  tables.cells[SUBMITTER_FSTRIM].bytes += 512;
  EXPECT_EQ(tables.reader.read().at("sdb")[SUBMITTER_FSTRIM].bytes, 512U);
}

/// Every volume that has a row is found by its number, and no two share a row, however many there are.
TEST(Rows, are_found_however_many_there_are) {
  Host host;
  for (int i = 0; i < 1500; ++i) {
    const std::string disk = "dm-" + std::to_string(i);
    host.disk(disk, model::Coverage::stacked).partition(disk, disk + "p1");
  }
  Tables tables(discard_rows(host.inventory()));
  tables.reader.update(host.inventory());
  std::set<std::uint32_t> rows;
  for (const auto& [volume, submitters] : tables.reader.read()) {
    const std::uint32_t row = tables.row_of(host.number(volume));
    ASSERT_NE(row, 0U) << volume;
    ASSERT_TRUE(rows.insert(row).second) << volume;
    tables.cells[std::size_t{row - 1} * SUBMITTERS].bytes = host.number(volume);
  }
  EXPECT_GE(rows.size(), 2900U);
  for (const auto& [volume, submitters] : tables.reader.read()) {
    ASSERT_EQ(submitters[0].bytes, host.number(volume)) << volume;
  }
}

TEST(Submitter, is_kept_as_it_calls_itself) {
  Tables tables(1);
  Host host;
  tables.reader.update(host.disk("sda", model::Coverage::measured).inventory());
  tables.cells[SUBMITTER_OTHER] = {1, 4096, 10, 20, "a\" b=\nc\xffz", {}};
  EXPECT_EQ(tables.reader.read().at("sda")[SUBMITTER_OTHER].submitter, "a\" b=\nc\xffz");
}

}  // namespace
}  // namespace ssdpulse::block
