// SPDX-License-Identifier: Apache-2.0
// What does `ssdpulse report` print? SSDPULSE_TEST_GOLDEN=write rewrites the golden pages in tests/fixtures/report.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "exporters/report/report_forms.h"
#include "tests/unit/simulated_minutes.h"

namespace ssdpulse::compare {
namespace {

using compare::Change;
using compare::Row;
using compare::Side;
using compare::Unit;
using compare::Verdict;
using namespace std::chrono_literals;

const model::PastTime kBegin{std::chrono::minutes(29'000'000)};
constexpr auto kLength = 240min;
const std::string kHostile =
    "</script><script>alert(1)</script>\"'&|\x1b[31m\xe2\x80\xae\xff" + std::string(10000, 'A');

Side side(model::PastTime begin, std::uint64_t seed) {
  test::SimulatedDisk disk{.ios = 3000};
  Side result{{begin, begin + kLength}, test::simulate_minutes(disk, 240, seed, begin.time_since_epoch().count()), {}};
  result.minutes.erase(result.minutes.begin() + 50, result.minutes.begin() + 60);
  return result;
}

Row row(const char* id, const char* what, double before, double after, Verdict verdict, std::optional<Change> change) {
  Row result;
  result.id = id;
  result.what = what;
  result.before = before;
  result.after = after;
  result.n_before = 7'200'000;
  result.n_after = 3'600;
  result.verdict = verdict;
  result.raw = change;
  return result;
}

/// Made up, so that changes to the statistics do not affect the pages.
report::DeviceReport made_up(const std::string& name) {
  report::DeviceReport device;
  device.question.before = side(kBegin, 1);
  device.question.after = side(kBegin + kLength + 10min, 2);
  auto& comparison = device.comparison;
  comparison.device = {name, "Model A", "S1", kBegin, kBegin};
  comparison.before = device.question.before->window;
  comparison.after = device.question.after.window;
  comparison.hours_before = 3.8;
  comparison.hours_after = 4;
  comparison.rows = {
      row("read.p50", "reads p50", 200e-6, 201e-6, Verdict::same, Change{1.005, 0.97, 1.04, 1}),
      row("read.p99", "reads p99", 12.5e-3, 1.8e-3, Verdict::better, Change{0.144, 0.12, 0.17, 0}),
      row("read.p99.9", "reads p99.9", 0.1, 0.2, Verdict::cannot_tell, Change{2, 0.5, 8, 0.3}),
      row("write.p99", "writes p99", 1e-3, 2e-3, Verdict::worse, Change{2, 1.8, 2.2, 0}),
      row("commit.p50", "commits p50", 2.09e-3, 57.8e-3, Verdict::worse, Change{27.7, 18.1, 42.3, 0}),
      row("commit.p99", "commits p99", 1, 1, Verdict::too_few, std::nullopt),
      row("flush.p99", "flushes p99", 1, 1, Verdict::no_data, std::nullopt),
  };
  comparison.rows[2].reason = "the interval is too wide";
  comparison.rows[2].hours_needed = 61.3;
  comparison.rows[2].corrected = Interval{0.3, 13};
  comparison.rows[2].from = IntervalFrom::last_day;
  comparison.rows[3].adjusted = Change{1.5, 1.4, 1.6, 0};
  comparison.rows[3].usual = 1.05;
  comparison.rows[5].before = std::nullopt;
  comparison.rows[5].n_before = 29;
  comparison.rows[5].n_needed = 3000;
  comparison.rows[5].reason = "too few for this figure before: 3000 are needed";
  comparison.rows[6].before = std::nullopt;
  comparison.rows[6].n_before = 0;
  comparison.rows[6].reason = "there were none before";
  Row wear = row("wear.media_bytes", "bytes to the media a day", 4.2e12, 3.1e12, Verdict::better,
                 Change{0.74, 0.6, 0.9, 0.01});
  wear.unit = Unit::bytes_per_day;
  wear.n_before = wear.n_after = 1.5e12;
  comparison.rows.push_back(wear);
  comparison.load = {{"read.ios", "reads", Unit::per_second, 502, 514},
                     {"write.bytes", "written", Unit::bytes_per_second, 2.07e6, std::nullopt}};
  comparison.differing = {{kBegin + kLength, name, "queue.scheduler", "mq-deadline", "none"}};
  comparison.notes = {{"one-setting", "one known setting differs"}};
  return device;
}

report::Report report(std::vector<report::DeviceReport> devices) {
  return {"db1", kBegin + 1000min, "mark \"try\"", {{kBegin + kLength, "try"}}, std::move(devices)};
}

template <typename Print>
std::string printed(Print print, const report::Report& what) {
  std::ostringstream out;
  print(what, out);
  return out.str();
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string file = std::string(SSDPULSE_SOURCE_DIR) + "/tests/fixtures/report/" + name;
  const char* mode = std::getenv("SSDPULSE_TEST_GOLDEN");
  if (mode != nullptr && std::string(mode) == "write") {
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
  }
  std::ifstream stream(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), text) << file;
}

TEST(Report, Text) { expect_golden("compared.txt", printed(report::print_text, report({made_up("nvme0n1")}))); }
TEST(Report, Markdown) { expect_golden("compared.md", printed(report::print_markdown, report({made_up("nvme0n1")}))); }
TEST(Report, Json) { expect_golden("compared.json", printed(report::print_json, report({made_up("nvme0n1")}))); }

// A mirror below ext4: with data=journal on half of it, then without. What is told of it is added up by hand.
TEST(Report, Ladder) {
  using model::Rung;
  using model::RungClass;
  report::Report both = report({});
  model::PastLadder before, after;
  before.hours = after.hours = 8;
  before.bytes = {{{Rung::application, RungClass::page_cache}, 10e9},
                  {{Rung::file_system, RungClass::journal}, 15e9},
                  {{Rung::file_system, RungClass::writeback}, 10e9},
                  {{Rung::drive, {}}, 50e9},
                  {{Rung::reported, {}}, 50e9},
                  {{Rung::media, {}}, 100e9}};
  before.volumes = {{"md0", {25e9, 0, 50e9, 3e9}}};
  after.bytes = {{{Rung::application, RungClass::page_cache}, 10e9},
                 {{Rung::application, RungClass::direct}, 2e9},
                 {{Rung::file_system, RungClass::writeback}, 10e9},
                 {{Rung::file_system, RungClass::direct}, 2e9},
                 {{Rung::drive, {}}, 24e9},
                 {{Rung::reported, {}}, 24e9},
                 {{Rung::media, {}}, 36e9}};
  after.volumes = {{"md0", {12e9, 0, 24e9, 0}}};
  both.ladder_before = before;
  both.ladder_after = after;
  expect_golden("ladder.txt", printed(report::print_text, both));
  const auto json = nlohmann::json::parse(printed(report::print_json, both)).at("ladder");
  EXPECT_DOUBLE_EQ(json.at("before").at("rungs").at("file_system").at("ratio"), 2.5);
  EXPECT_DOUBLE_EQ(json.at("before").at("ratio"), 4);
  EXPECT_DOUBLE_EQ(json.at("after").at("volumes").at("md0").at("ratio"), 2);
  EXPECT_DOUBLE_EQ(json.at("after").at("rungs").at("application").at("classes").at("direct"), 2e9);
  EXPECT_NE(printed(report::print_html, both).find("<td>members of md0</td><td>50 GB</td><td>x 2</td>"),
            std::string::npos);
  // A tenth of the time lacks something: no ratio with that rung, and why; the others stay.
  both.ladder_after->gap_hours = {{{Rung::application, model::RungGapReason::direct_unknown}, 0.8},
                                  {{Rung::drive, model::RungGapReason::drive_not_measured}, 0.1}};
  const std::string lacking = printed(report::print_text, both);
  EXPECT_NE(lacking.find("after: 48 min of 8 h lack something of the rung application (direct unknown)"),
            std::string::npos)
      << lacking;
  EXPECT_EQ(lacking.find("drive not measured"), std::string::npos) << "a hundredth of the time does not matter";
  const auto other = nlohmann::json::parse(printed(report::print_json, both)).at("ladder").at("after").at("rungs");
  EXPECT_TRUE(other.at("file_system").at("ratio").is_null());
  EXPECT_DOUBLE_EQ(other.at("drive").at("ratio"), 2);
  both.ladder_before.reset();
  EXPECT_EQ(printed(report::print_text, both).find("before"), std::string::npos);
}

TEST(Report, OneWindowAsText) {
  report::DeviceReport alone = made_up("nvme0n1");
  alone.comparison.before.reset();
  alone.question.before.reset();
  expect_golden("alone.txt", printed(report::print_text, report({alone})));
}

TEST(Report, HtmlAsksForNothing) {
  const std::string html = printed(report::print_html, report({made_up("nvme0n1")}));
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("http:"), std::string::npos);
  EXPECT_EQ(html.find("https:"), std::string::npos);
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  // One picture for each window.
  EXPECT_NE(html.find("aria-label=\"before"), std::string::npos);
  EXPECT_NE(html.find("aria-label=\"after"), std::string::npos);
  EXPECT_NE(html.find("url(#no-data)"), std::string::npos);  // ten minutes are missing
}

TEST(Report, HtmlIsBounded) {
  std::vector<report::DeviceReport> devices;
  for (int i = 0; i < 200; ++i) {
    devices.push_back(made_up("nvme" + std::to_string(i) + "n1"));
  }
  report::Report many = report(std::move(devices));
  many.marks.assign(2000, {kBegin, kHostile});
  EXPECT_LE(printed(report::print_html, many).size(), report::kMaxHtmlBytes);
}

TEST(Report, NamesFromOutsideAreHarmless) {
  report::DeviceReport device = made_up(kHostile);
  device.comparison.device.model = kHostile;
  device.comparison.device.serial = kHostile;
  device.comparison.differing = {{kBegin, kHostile, kHostile, kHostile, kHostile}};
  report::Report hostile = report({device});
  hostile.change = hostile.host = kHostile;
  hostile.marks = {{kBegin, kHostile}};
  const std::string html = printed(report::print_html, hostile);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
  for (const auto& text : {html, printed(report::print_text, hostile), printed(report::print_markdown, hostile),
                           printed(report::print_json, hostile)}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);  // reverses the direction of the following text
  }
  const std::string markdown = printed(report::print_markdown, hostile);
  for (std::size_t at = markdown.find('<'); at != std::string::npos; at = markdown.find('<', at + 1)) {
    EXPECT_EQ(markdown[at - 1], '\\');
  }
  EXPECT_NE(markdown.find("\\<script\\>"), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(printed(report::print_json, hostile), nullptr, false).is_discarded());
}

}  // namespace
}  // namespace ssdpulse::compare
