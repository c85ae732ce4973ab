// SPDX-License-Identifier: Apache-2.0
// What is made of pages that no drive should send: not reported, never counted, another page, lists that lie?
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/nvme_page_cases.h"

namespace ssdpulse::nvme_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const std::string& name) { return from_hexadecimal(case_named(name)["bytes"].get<std::string>()); }

util::Result<nvme::PageContent> decode(const std::string& page, const Bytes& bytes) {
  model::NvmeIdentity identity;
  return page_named(page).decode(bytes, identity);
}

Values values_in(const std::string& page, const Bytes& bytes) {
  const auto content = decode(page, bytes);
  return content ? values_of(*content) : Values{};
}

bool tells(const Values& values, const std::string& metric, const std::string& label = "") {
  return values.contains({"ssdpulse_nvme_" + metric, label});
}

void fill(Bytes& bytes, std::size_t offset, std::size_t size, std::uint8_t value) {
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), size, value);
}

TEST(NotReported, ZeroInAStandardCounterIsAbsent) {
  auto smart = bytes_of("smart.low");
  fill(smart, 32, 32, 0);
  EXPECT_FALSE(decode("smart", smart)->writes.host);
  EXPECT_FALSE(tells(values_in("smart", smart), "data_units_read_bytes_total"));
  EXPECT_FALSE(tells(values_in("smart", smart), "data_units_written_bytes_total"));

  auto group = bytes_of("endurance_group.low");
  fill(group, 32, 64, 0);
  const auto content = decode("endurance_group", group);
  EXPECT_FALSE(content->writes.host || content->writes.media || content->endurance_estimate);
  for (const auto* metric :
       {"endurance_estimate_bytes", "read_bytes_total", "written_bytes_total", "media_written_bytes_total"}) {
    EXPECT_FALSE(tells(values_of(*content), std::string("endurance_group_") + metric)) << metric;
  }
}

TEST(NotReported, ZeroElsewhereIsAValue) {
  auto smart = bytes_of("smart.low");
  fill(smart, 160, 16, 0);
  EXPECT_EQ(values_in("smart", smart).at({"ssdpulse_nvme_media_errors_total", ""}), 0);
  // A drive on which placement has just been enabled has written nothing: that is known.
  const auto content = decode("fdp_statistics", Bytes(64));
  ASSERT_TRUE(content->writes.host && content->writes.media);
  EXPECT_TRUE(content->writes.host->count == 0 && content->writes.media->count == 0);
  auto group = bytes_of("endurance_group.low");
  fill(group, 176, 16, 0);
  EXPECT_EQ(values_in("endurance_group", group).at({"ssdpulse_nvme_endurance_group_unallocated_bytes", ""}), 0);
  fill(group, 160, 16, 0);
  EXPECT_FALSE(tells(values_in("endurance_group", group), "endurance_group_capacity_bytes"));
  EXPECT_FALSE(tells(values_in("endurance_group", group), "endurance_group_unallocated_bytes"));
}

TEST(NotReported, SensorsThatAreNotThere) {
  auto smart = bytes_of("smart.low");
  fill(smart, 202, 2, 0);
  const auto values = values_in("smart", smart);
  EXPECT_TRUE(tells(values, "temperature_celsius", "1"));
  EXPECT_FALSE(tells(values, "temperature_celsius", "2"));
}

TEST(NotReported, AllOnesAreNoCount) {
  auto ocp = bytes_of("ocp_smart.low");
  fill(ocp, 0, 16, 0xff);
  fill(ocp, 40, 8, 0xff);
  fill(ocp, 128, 2, 0xff);
  const auto content = decode("ocp_smart", ocp);
  const auto values = values_of(*content);
  EXPECT_FALSE(content->writes.media);
  EXPECT_TRUE(tells(values, "bad_blocks", "user"));
  EXPECT_FALSE(tells(values, "bad_blocks", "system"));
  EXPECT_FALSE(tells(values, "bad_blocks_normalized_ratio", "system"));
  EXPECT_FALSE(tells(values, "capacitor_health_ratio"));
}

TEST(NotReported, GroupsOnlyWhereThereAreGroups) {
  EXPECT_FALSE(tells(values_in("smart", bytes_of("smart.low")), "endurance_groups_warning", "reliability"));
}

TEST(NotReported, OlderVersionsOfTheOcpPageKnowNoDies) {
  auto ocp = bytes_of("ocp_smart.low");
  for (const auto version : {std::uint8_t{2}, std::uint8_t{3}}) {
    ocp[494] = version;
    const auto values = values_in("ocp_smart", ocp);
    EXPECT_TRUE(tells(values, "power_state_changes_total"));
    EXPECT_FALSE(tells(values, "dies", "total"));
    EXPECT_FALSE(tells(values, "erase_failures_total", "system"));
  }
  ocp[494] = 4;
  EXPECT_TRUE(tells(values_in("ocp_smart", ocp), "dies", "total"));
}

TEST(NotReported, ItemsThatNeverCount) {
  auto intel = bytes_of("intel_smart.low");
  fill(intel, 12 * 11 + 5, 6, 0);
  EXPECT_TRUE(decode("intel_smart", intel)->writes.host);
  fill(intel, 12 * 12 + 5, 6, 0);
  const auto content = decode("intel_smart", intel);
  EXPECT_FALSE(content->writes.host || content->writes.media);
  EXPECT_TRUE(tells(values_of(*content), "program_failures_total", "all"));
}

TEST(NotReported, EmptyPages) {
  EXPECT_TRUE(values_in("endurance_group", Bytes(512)).empty());
  for (const auto& page : nvme::log_pages()) {
    const auto content = page.decode(Bytes(page.bytes), {});
    if (content && page.name != "fdp_statistics") {
      EXPECT_FALSE(content->writes.host || content->writes.media) << page.name;
    }
  }
  EXPECT_FALSE(decode("smart", Bytes(512)));
  EXPECT_FALSE(decode("micron_smart", Bytes(512)));
  EXPECT_FALSE(decode("inspur_smart", Bytes(2048)));
}

TEST(Sums, TwoCellTypesSaturate) {
  auto boot = bytes_of("boot_ssd_smart.low");
  fill(boot, 0, 32, 0xff);
  boot[0] = boot[16] = 0xfe;
  const auto content = decode("boot_ssd_smart", boot);
  EXPECT_TRUE(content->writes.media->count == ~model::Uint128{0});
  fill(boot, 16, 16, 0xff);  // not reported: half of the media count is not a media counter
  EXPECT_FALSE(decode("boot_ssd_smart", boot)->writes.media);
}

TEST(OtherPages, AreRecognizedByStructure) {
  // Everything as C0h, then everything as CAh, D0h and FBh: one vendor's page is not a page of another vendor.
  for (const auto& page_case : page_cases()["cases"]) {
    const auto bytes = from_hexadecimal(page_case["bytes"].get<std::string>());
    const auto own = page_case["page"].get<std::string>();
    for (const auto* guarded : {"ocp_smart", "boot_ssd_smart", "amazon_volume", "seagate_smart"}) {
      if (own != guarded) {
        EXPECT_FALSE(decode(guarded, bytes)) << own << " as " << guarded;
      }
    }
  }
  EXPECT_FALSE(decode("micron_client_smart", bytes_of("intel_smart.low")));
  EXPECT_FALSE(decode("intel_smart", bytes_of("micron_client_smart.low")));
  EXPECT_FALSE(decode("wdc_customer_smart", bytes_of("intel_smart.low")));
  EXPECT_FALSE(decode("wdc_smart", bytes_of("micron_smart.low")));
}

TEST(OtherPages, UnknownVersionsAreRefused) {
  auto memblaze = bytes_of("memblaze_smart_0.low");
  memblaze[511] = 1;
  EXPECT_FALSE(decode("memblaze_smart", memblaze));
  auto seagate = bytes_of("seagate_smart_2.low");
  seagate[0] = 3;
  EXPECT_FALSE(decode("seagate_smart", seagate));
  auto wdc = bytes_of("wdc_nand_3.low");
  wdc[510] = 4;
  EXPECT_FALSE(decode("wdc_nand", wdc));
  auto micron = bytes_of("micron_nand.low");
  micron[494] = 0;
  EXPECT_FALSE(decode("micron_nand", micron));
  auto boot = bytes_of("boot_ssd_smart.low");
  boot[494] = 0;  // its GUID identifies it
  EXPECT_TRUE(decode("boot_ssd_smart", boot));
}

TEST(Lists, ADuplicateKeyIsReportedOnce) {
  auto intel = bytes_of("intel_smart.low");
  const auto before = text_of(decode("intel_smart", intel));
  intel[12 * 15] = 0xab;
  intel[12 * 16] = 0xf4;
  fill(intel, 12 * 16 + 5, 6, 0x11);
  EXPECT_EQ(text_of(decode("intel_smart", intel)), before);
}

TEST(Lists, EndWithKeyZero) {
  auto intel = bytes_of("intel_smart.low");
  intel[12 * 11] = 0;
  const auto content = decode("intel_smart", intel);
  EXPECT_FALSE(content->writes.host || content->writes.media);
}

TEST(Lists, ByKeyWhateverThePosition) {
  auto intel = bytes_of("intel_smart.low");
  const auto before = text_of(decode("intel_smart", intel));
  std::swap_ranges(intel.begin() + 12, intel.begin() + 24, intel.begin() + 12 * 12);
  EXPECT_EQ(text_of(decode("intel_smart", intel)), before);
}

TEST(Lists, DataPlacementPagesThatLieAboutTheirLength) {
  auto configurations = bytes_of("fdp_configurations.low");
  const auto before = text_of(decode("fdp_configurations", configurations));
  configurations[0] = configurations[1] = 0xff;  // 65536 configurations, none of them before the page's own end
  EXPECT_EQ(text_of(decode("fdp_configurations", configurations)), before);
  configurations[5] = 0x10;
  EXPECT_FALSE(decode("fdp_configurations", configurations)) << "a descriptor of 0 bytes";
  auto shorter = bytes_of("fdp_configurations.low");
  shorter[0] = 0;  // one configuration: nothing after it is read
  EXPECT_TRUE(decode("fdp_configurations", shorter));
  shorter[16] = 63;
  EXPECT_FALSE(decode("fdp_configurations", shorter)) << "a descriptor shorter than its fields";
  auto size = bytes_of("fdp_configurations.low");
  size[4] = size[5] = size[6] = size[7] = 0xff;
  EXPECT_EQ(text_of(decode("fdp_configurations", size)), before);
  size[5] = size[6] = size[7] = 0;
  size[4] = 15;
  EXPECT_FALSE(decode("fdp_configurations", size)) << "shorter than its own header";
  size[4] = 16 + 80;  // one descriptor fits, the others are beyond the page's own end
  EXPECT_EQ(values_in("fdp_configurations", size).size(), 5U);
}

TEST(Lists, NonHistograms) {
  auto amazon = bytes_of("amazon_volume_ebs.low");
  for (std::size_t bin = 0; bin < 64; ++bin) {
    fill(amazon, 528 + 24 * bin, 8, 0);
    amazon[528 + 24 * bin] = static_cast<std::uint8_t>(bin + 1);
  }
  amazon[512] = 64;
  EXPECT_TRUE(decode("amazon_volume", amazon));
  amazon[512] = 65;  // the extra one is in the other histogram, and its bound grows
  EXPECT_FALSE(decode("amazon_volume", amazon));
  amazon = bytes_of("amazon_volume_ebs.low");
  std::copy_n(amazon.begin() + 528, 8, amazon.begin() + 528 + 24);  // the second bound is the first again
  EXPECT_FALSE(decode("amazon_volume", amazon));
  amazon = bytes_of("amazon_volume_ebs.low");
  amazon[512] = amazon[2056] = 0;
  EXPECT_TRUE(decode("amazon_volume", amazon));
}

TEST(Lists, SeagateHighHalvesOfVersionOneAreNotGuessed) {
  auto seagate = bytes_of("seagate_smart_1.low");
  for (std::size_t offset = 2; offset < 506; offset += 12) {
    if (seagate[offset] == 234) {
      seagate[offset + 5] = 1;
    }
  }
  const auto content = decode("seagate_smart", seagate);
  EXPECT_FALSE(content->writes.media);
  EXPECT_TRUE(content->writes.host);
}

TEST(Drive, SaysOneThingOnce) {
  using model::NvmeField;
  std::vector<model::NvmeValue> drive{{NvmeField::bad_blocks, "user", 1}, {NvmeField::power_cycles, "", 2}};
  nvme::add_values(
      drive,
      {{NvmeField::bad_blocks, "user", 7}, {NvmeField::bad_blocks, "system", 8}, {NvmeField::power_cycles, "", 9, 1}});
  ASSERT_EQ(drive.size(), 4U);
  EXPECT_EQ(drive[0].value, 1);
  EXPECT_EQ(drive[2].label, "system");
  EXPECT_EQ(drive[3].endurance_group, 1);
}

TEST(Fields, NamesFollowTheRules) {
  std::map<std::string_view, int> seen;
  for (const auto& field : model::kNvmeFieldDescriptions) {
    EXPECT_EQ(++seen[field.metric], 1) << field.metric;
    EXPECT_TRUE(field.metric.starts_with("ssdpulse_nvme_"));
    EXPECT_EQ(field.counter, field.metric.ends_with("_total")) << field.metric;
    const std::string suffix =
        (field.unit.empty() ? "" : "_" + std::string(field.unit)) + (field.counter ? "_total" : "");
    EXPECT_TRUE(field.metric.ends_with(suffix)) << field.metric;
    EXPECT_TRUE(field.help.ends_with(".")) << field.metric;
  }
}

// A health page of a real drive, as far as it was published (README.md has the source); the rest is zero.
TEST(Captured, HealthPage) {
  auto page = from_hexadecimal(
      "003801640a0100000000000000000000000000000000000000000000000000003abc2808000000000000000000000000"
      "c4fc4c030000000000000000000000002a46ac1c000000000000000000000000d9e58b2f000000000000000000000000");
  page.resize(512);
  const auto values = values_in("smart", page);
  const auto value = [&](const std::string& metric, const std::string& label = "") {
    const auto found = values.find({"ssdpulse_nvme_" + metric, label});
    return found == values.end() ? NAN : found->second;
  };
  EXPECT_EQ(value("temperature_celsius", "composite"), 312 - 273);
  EXPECT_EQ(value("available_spare_ratio"), 1);
  EXPECT_EQ(value("available_spare_threshold_ratio"), 0.1);
  EXPECT_EQ(value("percentage_used_ratio"), 0.01);
  EXPECT_EQ(value("data_units_read_bytes_total"), 136'887'354.0 * 512'000);
  EXPECT_EQ(value("data_units_written_bytes_total"), 55'377'092.0 * 512'000);
  EXPECT_EQ(value("host_commands_total", "read"), 481'052'202);
  EXPECT_EQ(value("host_commands_total", "write"), 797'697'497);
}

// An Intel drive's items, whose raw values were published with their keys (README.md has the source).
TEST(Captured, IntelItems) {
  Bytes page(512);
  const std::pair<std::uint8_t, std::uint64_t> items[] = {
      {0xab, 0},     {0xac, 0}, {0xad, 4295098369}, {0xb8, 0}, {0xc7, 0},     {0xe2, 65535}, {0xe3, 65535},
      {0xe4, 65535}, {0xea, 0}, {0xf0, 0},          {0xf3, 0}, {0xf4, 40262}, {0xf5, 45197}, {0xf6, 0}};
  std::size_t offset = 0;
  for (const auto& [key, raw] : items) {
    page[offset] = key;
    page[offset + 3] = 100;
    for (std::size_t byte = 0; byte < 6; ++byte) {
      page[offset + 5 + byte] = static_cast<std::uint8_t>(raw >> (8 * byte));
    }
    offset += 12;
  }
  const auto content = decode("intel_smart", page);
  ASSERT_TRUE(content);
  EXPECT_TRUE(content->writes.media->count == 40262 && content->writes.host->count == 45197);
  EXPECT_EQ(content->writes.host->unit_bytes, 32U << 20U);
  const auto values = values_of(*content);
  EXPECT_EQ(values.at({"ssdpulse_nvme_block_erases_min", "all"}), 1);
  EXPECT_EQ(values.at({"ssdpulse_nvme_block_erases_max", "all"}), 2);
  EXPECT_EQ(values.at({"ssdpulse_nvme_block_erases_mean", "all"}), 1);
}

}  // namespace
}  // namespace ssdpulse::nvme_test
