// SPDX-License-Identifier: Apache-2.0
// Is each disk that was named but is not measured reported with the reason, and no other disk?
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/host/inventory.h"

namespace ssdpulse::host {
namespace {

using Reasons = std::vector<std::pair<std::string, std::string>>;

model::Device disk(const std::string& name, model::Coverage coverage) {
  model::Device device;
  device.name = name;
  device.coverage = coverage;
  return device;
}

TEST(Coverage, SaysOfEachNamedDiskWhyItIsNotMeasured) {
  model::Inventory inventory;
  inventory.devices = {disk("loop0", model::Coverage::excluded), disk("loop1", model::Coverage::empty),
                       disk("md0", model::Coverage::stacked), disk("sda", model::Coverage::measured),
                       disk("sdb", model::Coverage::excluded)};
  EXPECT_EQ(named_and_not_measured({"sdz", "sda", "md0", "loop0", "loop1"}, inventory),
            (Reasons{{"sdz", "there is no such disk"},
                     {"md0", "measured on the disks below it"},
                     {"loop0", "excluded by configuration"},
                     {"loop1", "empty"}}));
  EXPECT_EQ(named_and_not_measured({"*", "nvme?n1", "sd[bc]"}, inventory), Reasons{}) << "patterns name none";
}

}  // namespace
}  // namespace ssdpulse::host
