// SPDX-License-Identifier: Apache-2.0
// Does every file that speaks of causes say what the tables of causes say? SSDPULSE_TEST_GOLDEN=write rewrites the
// generated ones: the page's script and the rows of causes.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "daemon/model/host_signals.h"
#include "daemon/model/spike_cause.h"
#include "exporters/page/page_documents.h"
#include "exporters/page/page_site.h"

namespace ssdpulse::page {
namespace {

const std::string kRoot = std::string(SSDPULSE_SOURCE_DIR) + "/";
const std::string kScript = kRoot + "exporters/page/assets/causes.js";
const std::string kDocument = kRoot + "deploy/docs/causes.md";

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Expects that the lines from the first that begins with `first` to the last that begins with `last` are `made`.
void expect_lines(const std::string& path, const std::string& first, const std::string& last, const std::string& made) {
  const std::string text = read(path);
  const auto begin = text.find("\n" + first);
  const auto end_line = text.find("\n" + last, begin);
  ASSERT_TRUE(begin != std::string::npos && end_line != std::string::npos) << path << ": " << first << ", " << last;
  const auto end = text.find('\n', end_line + 1) + 1;
  const std::string wanted = text.substr(0, begin + 1) + made + text.substr(end);
  if (const char* mode = std::getenv("SSDPULSE_TEST_GOLDEN"); mode != nullptr && std::string(mode) == "write") {
    std::ofstream(path) << wanted;
  }
  EXPECT_EQ(read(path), wanted) << path << ": SSDPULSE_TEST_GOLDEN=write rewrites it";
}

TEST(cause_documents, are_what_the_tables_of_causes_make) {
  if (const char* mode = std::getenv("SSDPULSE_TEST_GOLDEN"); mode != nullptr && std::string(mode) == "write") {
    std::ofstream(kScript) << causes_script();
  }
  EXPECT_EQ(read(kScript), causes_script()) << "SSDPULSE_TEST_GOLDEN=write rewrites it";
  expect_lines(kDocument, "| `discard` |", "| `unknown` |", spike_cause_rows());
  expect_lines(kDocument, "| `suspended` |", "| `pressure` |", host_wait_rows());
}

TEST(cause_documents, name_runbooks_that_exist_and_letters_that_differ) {
  std::set<std::string_view> letters{"W", "B", "C", "M", "!"};  // of other marks
  std::set<std::string_view> colours;
  for (const model::SpikeCauseInfo& cause : model::kSpikeCauseTable) {
    EXPECT_EQ(cause.letter.view().size(), 1U) << cause.name.view();
    EXPECT_TRUE(letters.insert(cause.letter).second) << cause.letter.view();
    EXPECT_TRUE(colours.insert(cause.colour).second) << cause.colour.view();
    for (std::size_t i = 0; i < cause.sentences.size(); ++i) {
      const std::string path = "/runbooks/" + std::string(cause.sentences[i].runbook.view()) + ".md";
      EXPECT_NE(embedded_file(path), nullptr) << path;
    }
  }
}

}  // namespace
}  // namespace ssdpulse::page
