// SPDX-License-Identifier: Apache-2.0
// Is Identify read as laid out in the specification? The oracle is libnvme's own structures, which the parser does not
// use; and whatever a drive sends is parsed, or rejected with a reason.
#include <gtest/gtest.h>
#include <libnvme.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "daemon/nvme/nvme_identity.h"

namespace ssdpulse::nvme {
namespace {

/// Writes a little-endian number byte by byte: htole16() and the like could share a mistake with the parser.
template <typename Field, typename Value>
void put(Field& field, Value value) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(&field);
  for (std::size_t i = 0; i < sizeof field; ++i) {
    bytes[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}

template <std::size_t size>
void put_text(char (&field)[size], std::string_view text) {
  std::memset(field, ' ', size);
  std::memcpy(field, text.data(), std::min(size, text.size()));
}

template <typename Structure>
Bytes bytes_of(const Structure& structure) {
  static_assert(sizeof structure == kIdentifyBytes);
  return {reinterpret_cast<const std::uint8_t*>(&structure), sizeof structure};
}

nvme_id_ctrl sample_controller() {
  nvme_id_ctrl drive{};
  put(drive.vid, 0x1234);
  put(drive.ssvid, 0xfedc);
  put_text(drive.sn, "  SERIAL 7");
  put_text(drive.mn, "A model that takes all of its 40 bytes !");
  put_text(drive.fr, "FW.1");
  put(drive.ver, 0x00020100);
  put(drive.ctratt, 0x80080210);
  put(drive.endgidmax, 0xabcd);
  put(drive.hmpre, 0xffffffff);
  put(drive.hmmin, 0x4000);
  for (std::size_t i = 0; i < sizeof drive.vs; ++i) {
    drive.vs[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  }
  return drive;
}

TEST(NvmeIdentify, ReadsEveryFieldOfAController) {
  const nvme_id_ctrl drive = sample_controller();
  const auto identity = parse_identify_controller(bytes_of(drive));
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->vendor_id, 0x1234);
  EXPECT_EQ(identity->subsystem_vendor_id, 0xfedc);
  EXPECT_EQ(identity->serial, "SERIAL 7");
  EXPECT_EQ(identity->model, "A model that takes all of its 40 bytes !");
  EXPECT_EQ(identity->firmware, "FW.1");
  EXPECT_EQ(identity->version, 0x00020100U);
  EXPECT_EQ(identity->controller_attributes, 0x80080210U);
  EXPECT_EQ(identity->endurance_group_max, 0xabcd);
  EXPECT_EQ(identity->host_memory_preferred_bytes, 0xffffffffULL * 4096);
  EXPECT_EQ(identity->host_memory_minimum_bytes, 64ULL << 20U);
  ASSERT_EQ(identity->vendor_specific.size(), sizeof drive.vs);
  EXPECT_TRUE(std::equal(identity->vendor_specific.begin(), identity->vendor_specific.end(), drive.vs));
}

TEST(NvmeIdentify, OptionalListsAreThoseWhoseAttributeBitIsSet) {
  for (unsigned bit = 0; bit < 32; ++bit) {
    nvme_id_ctrl drive = sample_controller();
    put(drive.ctratt, 1U << bit);
    const auto identity = parse_identify_controller(bytes_of(drive));
    ASSERT_TRUE(identity);
    EXPECT_EQ(has_endurance_group_list(*identity), bit == 4) << bit;
    EXPECT_EQ(has_uuid_list(*identity), bit == 9) << bit;
  }
}

TEST(NvmeIdentify, RejectsAllZerosAndAllOnes) {
  nvme_id_ctrl nothing{};
  EXPECT_FALSE(parse_identify_controller(bytes_of(nothing)));
  std::memset(&nothing, 0xff, sizeof nothing);
  EXPECT_FALSE(parse_identify_controller(bytes_of(nothing)));
}

TEST(NvmeIdentify, AcceptsTheKernelsOwnTargetWhichHasNoVendor) {
  nvme_id_ctrl target = sample_controller();
  put(target.vid, 0);
  EXPECT_TRUE(parse_identify_controller(bytes_of(target)));
}

TEST(NvmeIdentify, PreferredWriteSizesCountOnlyIfTheNamespaceReportsThem) {
  nvme_id_ns name_space{};
  put(name_space.endgid, 0xbeef);
  put(name_space.npwg, 7);
  put(name_space.npwa, 0xffff);
  model::NvmeNamespace parsed;
  ASSERT_TRUE(parse_identify_namespace(bytes_of(name_space), parsed));
  EXPECT_EQ(parsed, (model::NvmeNamespace{"", 0, 0xbeef, 0, 0})) << "NSFEAT.OPTPERF is not set";
  for (const unsigned optimal_performance : {1U, 2U, 3U}) {
    name_space.nsfeat = static_cast<std::uint8_t>((optimal_performance << 4U) & 0xffU);
    ASSERT_TRUE(parse_identify_namespace(bytes_of(name_space), parsed));
    EXPECT_EQ(parsed, (model::NvmeNamespace{"", 0, 0xbeef, 8, 0x10000}));
  }
}

TEST(NvmeIdentify, UsedShareIsAbsentIfItIsImpossible) {
  nvme_id_ns name_space{};
  model::NvmeNamespace parsed;
  ASSERT_TRUE(parse_identify_namespace(bytes_of(name_space), parsed));
  EXPECT_EQ(parsed.used_share, std::nullopt) << "the namespace has no blocks";
  put(name_space.nsze, 1ULL << 40U);
  put(name_space.nuse, 1ULL << 38U);
  ASSERT_TRUE(parse_identify_namespace(bytes_of(name_space), parsed));
  EXPECT_EQ(parsed.used_share, 0.25);
  put(name_space.nuse, (1ULL << 40U) + 1);
  ASSERT_TRUE(parse_identify_namespace(bytes_of(name_space), parsed));
  EXPECT_EQ(parsed.used_share, std::nullopt) << "more blocks are used than there are";
}

TEST(NvmeIdentify, RanksBlockSizesWithoutMetadata) {
  nvme_id_ns name_space{};
  const auto format = [&](std::size_t index, unsigned metadata, unsigned shift, unsigned rank) {
    put(name_space.lbaf[index].ms, metadata);
    name_space.lbaf[index].ds = static_cast<std::uint8_t>(shift);
    name_space.lbaf[index].rp = static_cast<std::uint8_t>(rank);
  };
  const auto sizes = [&] {
    model::NvmeNamespace parsed;
    EXPECT_TRUE(parse_identify_namespace(bytes_of(name_space), parsed));
    return parsed.block_sizes;
  };
  using Ranks = std::map<std::uint32_t, std::uint8_t>;
  EXPECT_EQ(sizes(), Ranks{}) << "the only format has no block size";
  format(0, 0, 9, 2);
  format(1, 8, 10, 0);
  format(2, 0, 12, 0xfc);  // only two bits of it count
  format(3, 0, 12, 3);
  format(4, 0, 200, 0);
  name_space.nlbaf = 1;
  EXPECT_EQ(sizes(), (Ranks{{512, 2}})) << "formats beyond NLBAF do not count";
  name_space.nlbaf = 4;
  EXPECT_EQ(sizes(), (Ranks{{512, 2}, {4096, 0}}));
  name_space.flbas = 3;
  EXPECT_EQ(sizes(), (Ranks{{512, 2}, {4096, 3}})) << "of two formats of one size, the one in use counts";
  name_space.flbas = 1;
  EXPECT_EQ(sizes(), Ranks{}) << "the format in use has metadata";
  name_space.flbas = 0x20 | 1;  // format 17, which NLBAF does not include yet
  EXPECT_EQ(sizes(), Ranks{});
  format(17, 0, 12, 1);
  name_space.nlbaf = 17;
  EXPECT_EQ(sizes(), (Ranks{{512, 2}, {4096, 1}}));
  name_space.nlbaf = 0xff;
  name_space.flbas = 0x6f;
  format(63, 0, 13, 1);
  EXPECT_EQ(sizes(), (Ranks{{512, 2}, {4096, 0}, {8192, 1}})) << "at most 64 formats";
}

TEST(NvmeIdentify, UuidsKeepTheirIndex) {
  nvme_id_uuid_list list{};
  EXPECT_TRUE(parse_uuid_list(bytes_of(list)).value().empty());
  for (unsigned i = 0; i < NVME_ID_UUID_LIST_MAX; ++i) {
    std::fill_n(list.entry[i].uuid, 16, static_cast<std::uint8_t>(i + 1));
    list.entry[i].header = static_cast<std::uint8_t>(i);
  }
  auto uuids = parse_uuid_list(bytes_of(list));
  ASSERT_EQ(uuids.value().size(), std::size_t{NVME_ID_UUID_LIST_MAX});
  for (std::size_t i = 0; i < uuids->size(); ++i) {
    EXPECT_EQ((*uuids)[i][0], i + 1);
    EXPECT_EQ((*uuids)[i][15], i + 1);
  }
  std::fill_n(list.entry[5].uuid, 16, std::uint8_t{0});
  EXPECT_EQ(parse_uuid_list(bytes_of(list)).value().size(), 5U) << "a UUID of zeros ends the list";
}

TEST(NvmeIdentify, RejectsImpossibleListsOfEnduranceGroups) {
  nvme_id_endurance_group_list list{};
  EXPECT_TRUE(parse_endurance_group_list(bytes_of(list)).value().empty());
  put(list.num, 2);
  put(list.identifier[0], 1);
  put(list.identifier[1], 0x1234);
  put(list.identifier[2], 0x2000);
  EXPECT_EQ(parse_endurance_group_list(bytes_of(list)).value(), (std::vector<std::uint16_t>{1, 0x1234}));
  put(list.identifier[1], 1);
  EXPECT_FALSE(parse_endurance_group_list(bytes_of(list))) << "a group is listed twice";
  put(list.identifier[0], 0);
  EXPECT_FALSE(parse_endurance_group_list(bytes_of(list))) << "0 is not a group";
  put(list.num, 2048);
  EXPECT_FALSE(parse_endurance_group_list(bytes_of(list))) << "more groups than the list has room for";
  put(list.num, 2047);
  for (unsigned i = 0; i < 2047; ++i) {
    put(list.identifier[i], i + 1);
  }
  EXPECT_EQ(parse_endurance_group_list(bytes_of(list)).value().back(), 2047);
}

RC_GTEST_PROP(NvmeIdentify, AnyBytesAreParsedOrRejected, ()) {
  const auto size = *rc::gen::weightedElement<std::size_t>({{9, kIdentifyBytes}, {1, 0}, {1, 4095}, {1, 512}});
  const auto bytes = *rc::gen::container<std::vector<std::uint8_t>>(size, rc::gen::arbitrary<std::uint8_t>());
  const auto identity = parse_identify_controller(bytes);
  RC_ASSERT(identity.has_value() || !identity.error().message.empty());
  RC_ASSERT(!identity.has_value() || size == kIdentifyBytes);
  model::NvmeNamespace name_space;
  RC_ASSERT(parse_identify_namespace(bytes, name_space).has_value() == (size == kIdentifyBytes));
  const auto uuids = parse_uuid_list(bytes);
  RC_ASSERT(uuids.has_value() == (size == kIdentifyBytes));
  RC_ASSERT(!uuids || uuids->size() <= 127U);
  const auto groups = parse_endurance_group_list(bytes);
  RC_ASSERT(!groups || groups->size() <= 2047U);
}

}  // namespace
}  // namespace ssdpulse::nvme
