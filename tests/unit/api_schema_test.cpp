// SPDX-License-Identifier: Apache-2.0
// Is api.schema.json what the tables of fields make, and complete? Every answer of page_site_test is checked against
// it, too. SSDPULSE_TEST_GOLDEN=write rewrites it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "exporters/page/page_documents.h"
#include "tests/unit/json_schema.h"

namespace ssdpulse::page {
namespace {

using nlohmann::json;

/// Every $ref in it and below.
void collect_references(const json& node, std::set<std::string>& names) {
  if (node.is_object() && node.contains("$ref")) {
    names.insert(node.at("$ref").get<std::string>());
  }
  for (const json& child : node.is_structured() ? node : json::array()) {
    collect_references(child, names);
  }
}

TEST(api_schema, is_what_the_tables_of_fields_make) {
  const std::string path = std::string(SSDPULSE_SOURCE_DIR) + "/exporters/page/assets/api.schema.json";
  if (const char* mode = std::getenv("SSDPULSE_TEST_GOLDEN"); mode != nullptr && std::string(mode) == "write") {
    std::ofstream(path) << api_schema();
  }
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), api_schema())
      << "SSDPULSE_TEST_GOLDEN=write rewrites it";
}

TEST(api_schema, refers_to_definitions_that_it_has_and_has_no_field_twice) {
  std::set<std::string> names;
  const json schema = json::parse(api_schema());
  collect_references(schema, names);
  EXPECT_GE(names.size(), 40U);
  for (const std::string& name : names) {
    EXPECT_TRUE(schema.contains(json::json_pointer(name.substr(1)))) << name;
  }
  for (const auto& definition : schema.at("$defs").items()) {
    const json required = definition.value().value("required", json::array());
    EXPECT_EQ(std::set<json>(required.begin(), required.end()).size(), required.size()) << definition.key();
    for (const json& name : required) {
      EXPECT_TRUE(definition.value().at("properties").contains(name.get<std::string>())) << definition.key() << name;
    }
  }
}

}  // namespace
}  // namespace ssdpulse::page
