// SPDX-License-Identifier: Apache-2.0
// Is a vendor's unit found if it can be, and never if it is not certain?
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "daemon/nvme_pages/drive_reading.h"

namespace ssdpulse::nvme {
namespace {

using model::Uint128;

constexpr std::uint64_t kDataUnit = 512'000;
constexpr std::uint64_t kUnits[] = {1,         512,        4096,          kDataUnit, 1'000'000,
                                    1'048'576, 33'554'432, 1'000'000'000, 1073741824};

/// What a drive reports for this many bytes: data units begun, and its own units done or begun.
model::Uint128 data_units(model::Uint128 bytes) { return (bytes + kDataUnit - 1) / kDataUnit; }

TEST(HostCounter, EveryUnitIsFoundOnceEnoughWasWritten) {
  for (const auto unit : kUnits) {
    const model::Uint128 bytes = model::Uint128{5'000} << 30;  // 4.9 TiB
    EXPECT_EQ(unit_of_host_counter(bytes / unit, data_units(bytes)), unit);
    EXPECT_EQ(unit_of_host_counter(bytes / unit + 1, data_units(bytes)), unit);
  }
}

TEST(HostCounter, NeverAWrongUnit) {
  EXPECT_TRUE(rc::check("whatever was written, if the counters are half a percent apart", [] {
    const auto unit = *rc::gen::elementOf(std::vector<std::uint64_t>(std::begin(kUnits), std::end(kUnits)));
    const auto bytes =
        model::Uint128{*rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 60)} >> *rc::gen::inRange(0, 50);
    const auto permille = *rc::gen::inRange<std::uint64_t>(995, 1006);
    const auto found = unit_of_host_counter(bytes * permille / 1000 / unit, data_units(bytes));
    RC_ASSERT(found == 0 || found == unit);
  }));
}

TEST(HostCounter, NothingIsKnownOfAFewUnits) {
  EXPECT_EQ(unit_of_host_counter(0, 0), 0U);
  EXPECT_EQ(unit_of_host_counter(0, 1'000'000), 0U);
  EXPECT_EQ(unit_of_host_counter(1, 66), 0U);    // 33.6 MB, one unit of 32 MiB
  EXPECT_EQ(unit_of_host_counter(10, 655), 0U);  // rounding alone may hide 10 %
  EXPECT_EQ(unit_of_host_counter(200, 13'107), 33'554'432U);
}

TEST(HostCounter, LooseAgreementIsTakenOnlyFromOneUnit) {
  // 7 % apart: fits 32 MiB and nothing else.
  EXPECT_EQ(unit_of_host_counter(107'000, 6'553'600), 33'554'432U);
  EXPECT_EQ(unit_of_host_counter(115'000, 6'553'600), 0U);
  // 512000 * 2e9 bytes. A count 2.3 % below that of whole million bytes is just as close to that of mebibytes: no unit.
  const model::Uint128 units = 2'000'000'000;
  EXPECT_EQ(unit_of_host_counter(units * 512 / 1000, units), 1'000'000U);
  EXPECT_EQ(unit_of_host_counter(units * 500 / 1024, units), 1'048'576U);
  EXPECT_EQ(unit_of_host_counter(units * 500 / 1000, units), 0U);
}

TEST(HostCounter, HugeCountsDoNotOverflow) {
  EXPECT_EQ(unit_of_host_counter(~model::Uint128{0}, ~model::Uint128{0}), kDataUnit);
  EXPECT_EQ(unit_of_host_counter(~model::Uint128{0}, 5), 0U);
}

TEST(MediaCounter, IsInBytesOrInDataUnits) {
  EXPECT_EQ(unit_of_media_counter(model::Uint128{1'500'000} * kDataUnit, 1'000'000), 1U);
  EXPECT_EQ(unit_of_media_counter(1'500'000, 1'000'000), kDataUnit);
  EXPECT_EQ(unit_of_media_counter(model::Uint128{900'000'000} * kDataUnit, 1'000'000), 1U);
  EXPECT_EQ(unit_of_media_counter(900'000'000, 1'000'000), kDataUnit);
  EXPECT_EQ(unit_of_media_counter(model::Uint128{2'000'000'000} * kDataUnit, 1'000'000), 0U);
  EXPECT_EQ(unit_of_media_counter(200'000, 1'000'000), 0U);
  EXPECT_EQ(unit_of_media_counter(150'000, 99'999), 0U) << "a young drive";
  EXPECT_EQ(unit_of_media_counter(0, 1'000'000), 0U);
}

TEST(EnduranceGroups, AreInBillionsUnlessFirmwareErrs) {
  EXPECT_EQ(unit_of_endurance_groups(512, 1'000'000), 1'000'000'000U);
  EXPECT_EQ(unit_of_endurance_groups(1'000'000, 1'000'000), kDataUnit);
  EXPECT_EQ(unit_of_endurance_groups(1, 2'000'000), 0U) << "a counter that is stuck";
}

}  // namespace
}  // namespace ssdpulse::nvme
