// SPDX-License-Identifier: Apache-2.0
// Do schema.json, the shipped ssdpulse.yaml, Config{} and the parser agree? The schema is read as JSON and the file's
// keys by indentation, both without the parser under test. SSDPULSE_TEST_GOLDEN=write rewrites what the table of keys
// makes: these two, and the manual.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/config/key_documents.h"
#include "daemon/config/keys.h"
#include "tests/unit/json_schema.h"

namespace ssdpulse::config {
namespace {

using nlohmann::json;
using test::matches;

const std::string kFolder = std::string(SSDPULSE_SOURCE_DIR) + "/deploy/config/";

json schema() {
  std::ifstream file(kFolder + "schema.json");
  return json::parse(file);
}

std::string words(const ParseOutcome& outcome) { return outcome ? "accepted" : to_string(outcome.error()); }

/// A document with one key in it; JSON is YAML.
ParseOutcome parse_one(const std::string& section, const std::string& key, const json& value) {
  return parse(json{{section, {{key, value}}}}.dump(), "one");
}

bool allows(const json& root, const json& node, const json& value) {
  return test::JsonSchema(root).flaw(node, value).empty();
}

TEST(Schema, has_exactly_the_keys_of_the_parser) {
  const json root = schema();
  EXPECT_EQ(root.at("$schema"), "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(root.at("additionalProperties"), false);
  std::set<std::string> names;
  for (const auto& section : root.at("properties").items()) {
    EXPECT_EQ(section.value().at("additionalProperties"), false) << section.key();
    EXPECT_FALSE(section.value().at("description").get<std::string>().empty()) << section.key();
    for (const auto& key : section.value().at("properties").items()) {
      names.insert(section.key() + "." + key.key());
      EXPECT_FALSE(key.value().at("description").get<std::string>().empty()) << key.key();
    }
  }
  const std::vector<std::string> known = known_keys();
  EXPECT_EQ(names, std::set<std::string>(known.begin(), known.end()));
  EXPECT_EQ(names.size(), known.size());
}

TEST(Schema, states_the_defaults_and_examples_that_the_parser_takes) {
  const json root = schema();
  for (const auto& section : root.at("properties").items()) {
    for (const auto& key : section.value().at("properties").items()) {
      const std::string name = section.key() + "." + key.key();
      const ParseOutcome by_default = parse_one(section.key(), key.key(), key.value().at("default"));
      EXPECT_TRUE(by_default == Config{}) << name << ": " << words(by_default);
      EXPECT_TRUE(allows(root, key.value(), key.value().at("default"))) << name;
      ASSERT_FALSE(key.value().at("examples").empty()) << name;
      for (const json& example : key.value().at("examples")) {
        const ParseOutcome outcome = parse_one(section.key(), key.key(), example);
        ASSERT_TRUE(outcome.has_value()) << name << ": " << words(outcome);
        EXPECT_FALSE(*outcome == Config{}) << name << " ignores " << example;
        EXPECT_TRUE(allows(root, key.value(), example)) << name << ": " << example;
      }
    }
  }
}

// Each value with the verdicts of both. The schema may allow what the parser refuses for reasons other than form, never
// the reverse: an editor must not complain about a file that works.
TEST(Schema, never_refuses_what_the_parser_accepts) {
  const json root = schema();
  const json values = json::parse(R"([
      ":0", ":65535", ":9999", ":59999", ":60000", ":64999", ":65499", ":65500", ":65529", ":65530", ":65536", ":70000", ":00080", "localhost:80", "a_b.example:1", "127.0.0.1:1", "127.0.0.1",
      "[::1]:80", "[::ffff:192.0.2.1]:80", "::1:80", "*:80", "", "full", "completion-only", "off", "Full",
      "9s", "10s", "1h", "2h", "1d", "3650d", "3651d", "90", "1.5h", "-1d", "/", "/a b", "a/b", "/a\nb",
      0, 1, 1024, 1025, 1.5, "1024", "1025", [{"match": "/a", "tenant": "b"}], [{"match": "a", "tenant": "b"}],
      [{"match": "*", "tenant": "-"}], [{"match": "/a", "tenant": "b c"}], [{"match": "/a"}], [{"tenant": "b"}], [{}],
      [{"match": "/a", "tenant": "b", "more": "c"}], [{"match": ["/a"], "tenant": "b"}],
      [], [":1"], [":1", ":2"], [":1", ":1"], [":1", "x"], ["*"], [""], ["/dev/sda"], ["a b"], ["~!.[a-c]?"], ["\u00e4"],
      {}, {"a": "b"}, null, [[]], [null]])");
  int accepted = 0;
  int refused_by_both = 0;
  for (const auto& section : root.at("properties").items()) {
    for (const auto& key : section.value().at("properties").items()) {
      for (const json& value : values) {
        const bool by_parser = parse_one(section.key(), key.key(), value).has_value();
        const bool by_schema = allows(root, key.value(), value);
        EXPECT_TRUE(by_schema || !by_parser) << section.key() << "." << key.key() << ": " << value;
        accepted += by_parser ? 1 : 0;
        refused_by_both += !by_parser && !by_schema ? 1 : 0;
      }
    }
  }
  EXPECT_GE(accepted, 20);
  EXPECT_GE(refused_by_both, 50);
}

TEST(Schema, sections_and_the_whole_may_be_empty_in_both) {
  const json root = schema();
  const json object_or_null = json::parse(R"(["object", "null"])");
  EXPECT_EQ(root.at("type"), object_or_null);
  EXPECT_TRUE(parse("null", "f") == Config{});
  EXPECT_TRUE(parse("{}", "f") == Config{});
  for (const auto& section : root.at("properties").items()) {
    EXPECT_EQ(section.value().at("type"), object_or_null) << section.key();
    EXPECT_TRUE(parse(section.key() + ":\n", "f") == Config{}) << section.key();
    EXPECT_TRUE(parse(section.key() + ": {}\n", "f") == Config{}) << section.key();
  }
}

TEST(Documents, are_what_the_table_of_keys_makes) {
  const char* wanted = std::getenv("SSDPULSE_TEST_GOLDEN");
  for (const auto& [path, made] :
       {std::pair(kFolder + "ssdpulse.yaml", commented_defaults()), std::pair(kFolder + "schema.json", schema_json()),
        std::pair(kFolder + "../man/ssdpulse.yaml.5", manual_page())}) {
    if (wanted != nullptr && std::string(wanted) == "write") {
      std::ofstream(path) << made;
    }
    std::ifstream file(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), made)
        << path << ": SSDPULSE_TEST_GOLDEN=write rewrites it";
  }
}

TEST(Documents, state_the_range_and_the_words_of_every_key) {
  const std::string all = commented_defaults() + schema_json() + manual_page();
  EXPECT_EQ(all.find("{min}"), std::string::npos);
  EXPECT_EQ(all.find("{max}"), std::string::npos);
  EXPECT_EQ(all.find("{values}"), std::string::npos);
  for (const Key& key : keys()) {
    const bool has_range = !key.form.min.empty();
    for (const std::string_view text : {key.texts.help.view(), key.texts.manual.view()}) {
      EXPECT_EQ(text.find("{min}") != std::string_view::npos, has_range) << key.full_name();
      EXPECT_EQ(text.find("{max}") != std::string_view::npos, has_range) << key.full_name();
    }
  }
}

TEST(DefaultFile, means_the_built_in_defaults) {
  const ParseOutcome outcome = load(kFolder + "ssdpulse.yaml");
  ASSERT_TRUE(outcome.has_value()) << words(outcome);
  EXPECT_EQ(*outcome, Config{});
}

TEST(DefaultFile, spells_out_every_key_and_explains_it) {
  std::ifstream file(kFolder + "ssdpulse.yaml");
  std::vector<std::string> names;
  std::string section;
  std::string before;
  for (std::string line; std::getline(file, line); before = line) {
    if (matches(line, "^[a-z_]+:$")) {
      section = line.substr(0, line.size() - 1);
    } else if (matches(line, "^  [a-z_]+: .")) {
      names.push_back(section + "." + line.substr(2, line.find(':') - 2));
      EXPECT_EQ(before.rfind("  # ", 0), 0U) << names.back() << " has no comment above it";
    } else {
      EXPECT_TRUE(matches(line, "^( *#.*)?$")) << line;
    }
  }
  EXPECT_EQ(names, known_keys());  // in the same order as print, too
}

}  // namespace
}  // namespace ssdpulse::config
