// SPDX-License-Identifier: Apache-2.0
// Does each disk that is told by submitter have a place of its own, and a new one none of the past?
#include "daemon/sources/block/discard_submissions.h"

#include <gtest/gtest.h>

#include <vector>

namespace ssdpulse::block {
namespace {

model::Device disk(const std::string& name, model::Coverage coverage) {
  model::Device device;
  device.name = name;
  device.coverage = coverage;
  return device;
}

model::Inventory host(const std::vector<model::Device>& devices) {
  model::Inventory inventory;
  inventory.devices = devices;
  return inventory;
}

TEST(Places, are_for_measured_and_stacked_disks) {
  const auto inventory = host({disk("dm-0", model::Coverage::stacked), disk("loop0", model::Coverage::excluded),
                               disk("loop1", model::Coverage::empty), disk("nvme0n1", model::Coverage::measured)});
  std::vector<discard_cell> cells(std::size_t{discard_places(inventory)} * SUBMITTERS);
  DiscardSubmissionReader reader(cells);
  reader.update(inventory);
  EXPECT_NE(reader.place_of("dm-0"), 0U);
  EXPECT_NE(reader.place_of("nvme0n1"), 0U);
  EXPECT_NE(reader.place_of("nvme0n1"), reader.place_of("dm-0"));
  EXPECT_EQ(reader.place_of("loop0"), 0U);
  EXPECT_EQ(reader.place_of("loop1"), 0U);
}

TEST(Places, that_are_reused_count_from_zero) {
  std::vector<discard_cell> cells(1 * SUBMITTERS);
  DiscardSubmissionReader reader(cells);
  reader.update(host({disk("sda", model::Coverage::measured)}));
  cells[SUBMITTER_FSTRIM] = {3, 4096, 10, 20, "fstrim", {}};
  const auto before = reader.read().at("sda")[SUBMITTER_FSTRIM];
  EXPECT_EQ(before.ranges, 3U);
  EXPECT_EQ(before.bytes, 4096U);
  EXPECT_EQ(before.first_ns, 10U);
  EXPECT_EQ(before.last_ns, 20U);
  EXPECT_EQ(before.submitter, "fstrim");
  reader.update(host({}));
  EXPECT_TRUE(reader.read().empty());
  reader.update(host({disk("sdb", model::Coverage::measured), disk("sdc", model::Coverage::measured)}));
  EXPECT_EQ(reader.place_of("sdb"), 1U);
  EXPECT_EQ(reader.place_of("sdc"), 0U) << "the table is full";
  EXPECT_EQ(reader.read().at("sdb")[SUBMITTER_FSTRIM].bytes, 0U);
  cells[SUBMITTER_FSTRIM].bytes += 512;
  EXPECT_EQ(reader.read().at("sdb")[SUBMITTER_FSTRIM].bytes, 512U);
}

TEST(Submitter, is_told_within_a_line_and_its_quotes) {
  std::vector<discard_cell> cells(1 * SUBMITTERS);
  DiscardSubmissionReader reader(cells);
  reader.update(host({disk("sda", model::Coverage::measured)}));
  cells[SUBMITTER_OTHER] = {1, 4096, 10, 20, "a\" b=\nc\xffz", {}};
  EXPECT_EQ(reader.read().at("sda")[SUBMITTER_OTHER].submitter, "a? b=?c?z");
}

}  // namespace
}  // namespace ssdpulse::block
