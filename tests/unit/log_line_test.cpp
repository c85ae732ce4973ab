// SPDX-License-Identifier: Apache-2.0
// Do a log line's text and its fields say the same, and does only what was made as a field become one?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/log.h"

namespace ssdpulse::log {

namespace {

using NamesAndValues = std::vector<std::pair<std::string_view, std::string>>;

NamesAndValues fields_of(const Line& line) {
  NamesAndValues all;
  for (const Field& field : line.fields) {
    all.emplace_back(field.name, field.value);
  }
  return all;
}

TEST(LogLine, FieldsAreInTheWordsAndAfterThem) {
  const Line line = log::line(Level::warning, "{} lost {:.1f} % of {}", field("device", "sda"), 2.25, field("ios", 400),
                              field("seconds", "{:.3f}", 0.5), quoted("reason", "no \"answer\" yet"));
  EXPECT_EQ(line.text, "device=sda lost 2.2 % of ios=400 seconds=0.500 reason=\"no \"answer\" yet\"");
  EXPECT_EQ(fields_of(line),
            (NamesAndValues{{"device", "sda"}, {"ios", "400"}, {"seconds", "0.500"}, {"reason", "no \"answer\" yet"}}));
  EXPECT_EQ(line.level, Level::warning);
  EXPECT_EQ(line.kind, "{} lost {:.1f} % of {}");
}

TEST(LogLine, AnAbsentFieldIsNowhere) {
  const auto burst = [](std::optional<int> ranges) {
    return log::line(Level::info, "burst", field("requests", 1), ranges ? field("ranges", *ranges) : Field{},
                     quoted("comm", ""));
  };
  EXPECT_EQ(burst(5).text, "burst requests=1 ranges=5 comm=\"\"");
  EXPECT_EQ(burst({}).text, "burst requests=1 comm=\"\"");
  EXPECT_EQ(fields_of(burst({})), (NamesAndValues{{"requests", "1"}, {"comm", ""}}));
  EXPECT_EQ(log::line(Level::info, "stopping").text, "stopping");
}

TEST(LogLine, WordsOfOthersAreNoFields) {
  const std::string theirs = "ended\" cause=gc p99_seconds=9.9 evidence=\"";
  const Line line =
      log::line(Level::info, "{}: {}, cause=gc", theirs, "device=sda", field("device", "sdb"), quoted("comm", theirs));
  EXPECT_EQ(fields_of(line), (NamesAndValues{{"device", "sdb"}, {"comm", theirs}}));
}

RC_GTEST_PROP(LogLine, TextAndFieldsAgree,
              (const std::string& word, const std::string& one, const std::string& other)) {
  const Line line = log::line(Level::info, "{} {}", word, field("one", one), quoted("other", other));
  RC_ASSERT(line.text == word + " one=" + one + " other=\"" + other + "\"");
  RC_ASSERT(fields_of(line) == (NamesAndValues{{"one", one}, {"other", other}}));
}

}  // namespace
}  // namespace ssdpulse::log
