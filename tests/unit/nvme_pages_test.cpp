// SPDX-License-Identifier: Apache-2.0
// Do the page decoders report what the pages contain, all of it and nothing else? The pages and their content come from
// tests/fixtures/nvme, which has tables of its own.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/nvme_page_cases.h"

namespace ssdpulse::nvme_test {
namespace {

using nlohmann::json;

class Pages : public testing::TestWithParam<std::string> {
 protected:
  const json& expected_ = case_named(GetParam());
  const nvme::LogPage& page_ = page_named(expected_["page"].get<std::string>());
  const model::NvmeIdentity identity_ = identity_of(expected_["identity"]);
  std::vector<std::uint8_t> bytes_ = from_hexadecimal(expected_["bytes"].get<std::string>());
};

std::string decimal(model::Uint128 number) {
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(number % 10)));
    number /= 10;
  } while (number != 0);
  return digits;
}

json description_of(const std::optional<model::ByteCounter>& counter) {
  if (!counter) {
    return nullptr;
  }
  static const std::map<model::Rounding, std::string> kRoundings{
      {model::Rounding::exact, "exact"}, {model::Rounding::up, "up"}, {model::Rounding::unknown, "unknown"}};
  return {{"count", decimal(counter->count)},
          {"unit", counter->unit_bytes},
          {"rounding", kRoundings.at(counter->rounding)}};
}

std::map<std::string, const model::NvmeFieldDescription*> fields_by_name() {
  std::map<std::string, const model::NvmeFieldDescription*> fields;
  for (const auto& field : model::kNvmeFieldDescriptions) {
    std::string name(field.metric.substr(std::string_view("ssdpulse_nvme_").size()));
    if (field.counter) {
      name.resize(name.size() - std::string_view("_total").size());
    }
    fields[name] = &field;
  }
  return fields;
}

TEST_P(Pages, SayExactlyWhatIsInThem) {
  ASSERT_TRUE(page_.offered(identity_));
  ASSERT_EQ(bytes_.size(), page_.bytes);
  const auto content = page_.decode(bytes_, identity_);
  ASSERT_TRUE(content) << content.error().message;

  static const auto kFields = fields_by_name();
  Values expected;
  for (const auto& value : expected_["values"]) {
    const auto name = value[0].get<std::string>();
    ASSERT_TRUE(kFields.contains(name)) << name;
    expected[{std::string(kFields.at(name)->metric), value[1].get<std::string>()}] = value[2].get<double>();
  }
  const auto values = values_of(*content);
  EXPECT_EQ(values.size(), content->values.size()) << "one series has two values";
  for (const auto& [series, value] : expected) {
    ASSERT_TRUE(values.contains(series)) << series.first << " " << series.second;
    EXPECT_DOUBLE_EQ(values.at(series), value) << series.first << " " << series.second;
  }
  for (const auto& [series, value] : values) {
    EXPECT_TRUE(expected.contains(series)) << series.first << " " << series.second << " = " << value;
  }
  EXPECT_EQ(description_of(content->writes.host), expected_["host"]);
  EXPECT_EQ(description_of(content->writes.media), expected_["media"]);
  EXPECT_EQ(description_of(content->endurance_estimate), expected_["endurance_estimate"]);
  EXPECT_EQ(content->media_includes_slc, expected_["media_includes_slc"].get<bool>());
  ASSERT_EQ(content->percentage_used.has_value(), !expected_["percentage_used"].is_null());
  if (content->percentage_used) {
    EXPECT_DOUBLE_EQ(*content->percentage_used, expected_["percentage_used"].get<double>());
  }
}

TEST_P(Pages, ChangeWithEveryReportedByte) {
  if (GetParam().ends_with(".high")) {
    return;  // a double does not show the low bytes of such a large number: the low fill does
  }
  const auto original = text_of(page_.decode(bytes_, identity_));
  for (const auto& offset : expected_["asserted"]) {
    auto changed = bytes_;
    changed.at(offset.get<std::size_t>()) ^= 1;
    EXPECT_NE(text_of(page_.decode(changed, identity_)), original) << "byte " << offset;
  }
}

TEST_P(Pages, AreErrorsWhenTruncated) {
  for (std::size_t size = 0; size < bytes_.size(); ++size) {
    // A copy of that size, so that a sanitizer notices a read beyond it.
    const std::vector<std::uint8_t> part(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size));
    const auto content = page_.decode(part, identity_);
    ASSERT_FALSE(content) << size;
    ASSERT_NE(content.error().message.find(std::to_string(size)), std::string::npos) << content.error().message;
  }
}

TEST_P(Pages, AreReadNoFurtherThanTheirSize) {
  const auto original = text_of(page_.decode(bytes_, identity_));
  bytes_.resize(bytes_.size() + 512, 0xff);
  EXPECT_EQ(text_of(page_.decode(bytes_, identity_)), original);
}

std::vector<std::string> names_of_cases() {
  std::vector<std::string> names;
  for (const auto& page_case : page_cases()["cases"]) {
    names.push_back(page_case["name"].get<std::string>());
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Pages, testing::ValuesIn(names_of_cases()), [](const auto& parameter) {
  std::string name = parameter.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(PageList, NoFieldIsWithoutACase) {
  std::set<std::string> told;
  for (const auto& page_case : page_cases()["cases"]) {
    for (const auto& value : page_case["values"]) {
      told.insert(value[0].get<std::string>());
    }
  }
  for (const auto& [name, field] : fields_by_name()) {
    EXPECT_TRUE(told.contains(name)) << name << " is described, and no case asserts it";
  }
}

TEST(PageList, BestSourcesComeFirst) {
  std::vector<std::string> names;
  std::set<std::string_view> sources;
  for (const auto& page : nvme::log_pages()) {
    names.emplace_back(page.name);
    EXPECT_TRUE(page.source.empty() || sources.insert(page.source).second) << page.source;
    EXPECT_EQ(page.bytes % 4, 0) << page.name;
    EXPECT_LE(page.bytes, nvme::kMaxPageBytes) << page.name;
  }
  std::vector<std::string> expected;
  for (const auto& page : page_cases()["pages"]) {
    expected.push_back(page["page"].get<std::string>());
  }
  EXPECT_EQ(names, expected);
}

TEST(PageList, EachDriveIsAskedOnlyForWhatItMayHave) {
  for (const auto& gate : page_cases()["gates"]) {
    const auto identity = identity_of(gate["identity"]);
    std::vector<std::string> offered;
    for (const auto& page : nvme::log_pages()) {
      if (page.offered(identity)) {
        offered.emplace_back(page.name);
      }
    }
    EXPECT_EQ(offered, gate["pages"].get<std::vector<std::string>>()) << gate["identity"].dump();
  }
}

TEST(PageList, CommandsAreThoseOfTheSpecifications) {
  const std::map<std::string, nvme::Scope> scopes{{"controller", nvme::Scope::controller},
                                                  {"no_namespace", nvme::Scope::no_namespace},
                                                  {"first_namespace", nvme::Scope::first_namespace}};
  for (const auto& command : page_cases()["pages"]) {
    const auto& page = page_named(command["page"].get<std::string>());
    EXPECT_EQ(page.lid, command["lid"].get<int>()) << page.name;
    EXPECT_EQ(page.lsp, command["lsp"].get<int>()) << page.name;
    EXPECT_EQ(page.scope, scopes.at(command["scope"].get<std::string>())) << page.name;
    EXPECT_EQ(page.per_endurance_group, command["per_endurance_group"].get<bool>()) << page.name;
  }
}

TEST(PageList, UuidsAreThoseThatTheListsHold) {
  const auto bytes = [](const char* text) {
    const auto parsed = from_hexadecimal(text);
    nvme::Uuid uuid{};
    std::copy_n(parsed.begin(), uuid.size(), uuid.begin());
    return uuid;
  };
  ASSERT_NE(page_named("ocp_smart").uuid, nullptr);
  EXPECT_EQ(*page_named("ocp_smart").uuid, bytes("c194d55be0944794a21d29998f56be6f"));
  ASSERT_NE(page_named("intel_smart").uuid, nullptr);
  EXPECT_EQ(*page_named("intel_smart").uuid, bytes("9619586ec11b43adaaaa654187f6bbb2"));
}

}  // namespace
}  // namespace ssdpulse::nvme_test
