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

report::DeviceReport unchanged(const std::string& name) {
  report::DeviceReport device = made_up(name);
  device.comparison.rows = {row("read.p99", "reads p99", 1e-3, 1.01e-3, Verdict::same, Change{1.01, 0.96, 1.06, 1})};
  device.comparison.differing.clear();
  device.comparison.notes.clear();
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

const auto kText = [](const report::Report& what, std::ostream& out) { report::print_text(what, out); };
const auto kAll = [](const report::Report& what, std::ostream& out) { report::print_text(what, out, {.all = true}); };
const auto kMarkdown = [](const report::Report& what, std::ostream& out) { report::print_markdown(what, out); };

TEST(Report, Text) { expect_golden("compared.txt", printed(kText, report({made_up("nvme0n1")}))); }
TEST(Report, Markdown) { expect_golden("compared.md", printed(kMarkdown, report({made_up("nvme0n1")}))); }
TEST(Report, Json) { expect_golden("compared.json", printed(report::print_json, report({made_up("nvme0n1")}))); }

/// Sentences end at a full stop, a line's end or a semicolon.
TEST(Report, TheAnswerComesFirstAndInShortSentences) {
  const std::string text = printed(kText, report({made_up("nvme0n1"), unchanged("sda")}));
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "Worse: writes p99 on nvme0n1 rose by 50 % (95 %: 40 to 60).") << "the load is adjusted for";
  std::getline(lines, line);
  EXPECT_EQ(line, "Better: reads p99 on nvme0n1 fell by 86 % (95 %: 83 to 88), from 12.5 ms to 1.8 ms.");
  std::getline(lines, line);
  EXPECT_EQ(line, "The same within 10 %: sda.");
  for (const std::string& sentence : report::answer_of(report({made_up("nvme0n1"), unchanged("sda")}))) {
    EXPECT_LE(std::count(sentence.begin(), sentence.end(), ' '), 19) << sentence;
  }
}

TEST(Report, NoDifferenceIsSaidWithWhatTheDataAllow) {
  EXPECT_EQ(
      report::answer_of(unchanged("sda").comparison),
      (std::vector<std::string>{"No difference that this much data can show: reads p99 on sda within -4 to +6 %."}));
  report::DeviceReport wide = unchanged("sda");
  wide.comparison.rows[0].verdict = Verdict::cannot_tell;
  wide.comparison.rows[0].corrected = Interval{0.15, 13};
  wide.comparison.rows[0].hours_needed = 2.5;
  EXPECT_EQ(report::answer_of(wide.comparison).at(0),
            "No difference that this much data can show: reads p99 on sda within 0.15 to 13 times. Windows of about 3 "
            "hours would decide.");
  wide.comparison.rows[0].verdict = Verdict::not_comparable;
  wide.comparison.rows[0].reason = "the load was another one";
  EXPECT_EQ(report::answer_of(wide.comparison).at(0), "Not comparable: reads p99 on sda: the load was another one.");
}

TEST(Report, AtMostEightRowsTheRestFolded) {
  report::DeviceReport many = made_up("nvme0n1");
  for (int i = 0; i < 6; ++i) {
    many.comparison.rows.push_back(row("x.p98", ("other " + std::to_string(i)).c_str(), 1, 1, Verdict::same, Change{}));
  }
  const report::Report both = report({unchanged("sda"), many});
  const std::string text = printed(kText, both);
  EXPECT_EQ(text.find("other 2"), std::string::npos);
  EXPECT_NE(text.find("Not shown: 6 rows"), std::string::npos) << text;
  EXPECT_NE(text.find("1 disk. --all shows everything."), std::string::npos) << text;
  const std::string all = printed(kAll, both);
  for (const char* what : {"other 5", "sda (Model A, serial S1)", "nvme0n1 (Model A, serial S1)"}) {
    EXPECT_NE(all.find(what), std::string::npos) << what;
  }
  EXPECT_EQ(all.find("Not shown"), std::string::npos);
}

TEST(Report, ANoteIsSaidOnceForAllItsDevices) {
  report::Report both = report({made_up("nvme0n1"), unchanged("sda")});
  both.devices[1].comparison.notes = both.devices[0].comparison.notes;
  both.devices[1].comparison.notes.push_back({"this-load", "Only for this load."});
  const auto groups = report::notes_of(both);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].title, "Cause");
  EXPECT_EQ(groups[0].sentences, std::vector<std::string>{"one known setting differs"});
  EXPECT_EQ(groups[1].sentences,
            std::vector<std::string>{"1 figure is undecided: windows of about 62 hours would decide."});
  EXPECT_EQ(groups[2].sentences, std::vector<std::string>{"sda: Only for this load."});
}

/// The column in which a window's curve is highest, and where the scale has its millisecond.
TEST(Report, ThePictureHasBothWindowsOnOneScale) {
  report::DeviceReport device = made_up("nvme0n1");
  const auto all_at = [](Side& side, std::uint8_t word) {
    for (auto& minute : side.minutes) {
      minute.load.latency(model::Latency::write_total).words = {{30, 1}, {word, 1000}, {200, 1}};
    }
  };
  all_at(*device.question.before, 80);  // 2^((80 - 2 - 160) / 8 + 1/8) s
  all_at(device.question.after, 104);   // three octaves more
  std::istringstream lines(report::picture_text(device, false));
  std::string title;
  std::string before;
  std::string after;
  std::getline(lines, title);
  std::getline(lines, before);
  std::getline(lines, after);
  EXPECT_EQ(title, "Writes on nvme0n1 by latency");
  ASSERT_NE(before.find('@'), std::string::npos) << before;
  const auto columns = static_cast<int>(after.find('@')) - static_cast<int>(before.find('@'));
  EXPECT_EQ(columns, 8) << "three octaves of eight buckets, three in a column:\n" << before << '\n' << after;
  EXPECT_EQ(before.find_first_not_of(" .@", 10), std::string::npos) << before;
  const std::string blocks = report::picture_text(device, true);
  EXPECT_NE(blocks.find("\xe2\x96\x88"), std::string::npos) << "a full block";
  const std::string svg = report::picture_svg(device);
  EXPECT_NE(svg.find("p99 before: 1 ms"), std::string::npos) << svg;
  EXPECT_NE(svg.find("p99 after: 2 ms"), std::string::npos);
}

TEST(Report, ACommandHasAColumnOfItsOwn) {
  report::DeviceReport device = made_up("nvme0n1");
  device.during = report::During{device.question.after, device.comparison};
  device.during->comparison.rows[1].after = 77e-3;
  const report::Report with = report({device});
  EXPECT_EQ(report::verdict_table(device, 1, false)[0],
            (std::vector<std::string>{"figure", "before", "during", "after", "change (95 %)", "verdict"}));
  EXPECT_EQ(report::verdict_table(device, 3, false)[3][2], "77 ms");
  EXPECT_EQ(report::answer_of(with).back(), "While it ran, writes p99 on nvme0n1 rose by 50 % (95 %: 40 to 60).");
  EXPECT_NE(report::picture_text(device, false).find("\n  during  "), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(printed(report::print_json, with))["devices"][0]["during"].is_object());
}

// A mirror below ext4: with data=journal on half of it, then without. What is told of it is added up by hand.
TEST(Report, Ladder) {
  using model::Rung;
  using model::RungClass;
  report::Report both = report({});
  model::PastLadder before, after;
  before.hours = 10;
  after.hours = 5;
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
  expect_golden("ladder.txt", printed(kText, both));
  const auto json = nlohmann::json::parse(printed(report::print_json, both)).at("ladder");
  EXPECT_DOUBLE_EQ(json.at("before").at("rungs").at("file_system").at("ratio"), 2.5);
  EXPECT_DOUBLE_EQ(json.at("before").at("ratio"), 4);
  EXPECT_DOUBLE_EQ(json.at("after").at("volumes").at("md0").at("ratio"), 2);
  EXPECT_DOUBLE_EQ(json.at("after").at("rungs").at("application").at("classes").at("direct"), 2e9);
  EXPECT_NE(printed(report::print_html, both).find("<td>members of md0</td><td>1.39 MB/s</td><td>x 2</td>"),
            std::string::npos);
  // A tenth of the time lacks something: no ratio with that rung, and why; the others stay.
  both.ladder_after->gap_hours = {{{Rung::application, model::RungGapReason::direct_unknown}, 0.8},
                                  {{Rung::drive, model::RungGapReason::drive_not_measured}, 0.06}};
  const std::string lacking = printed(kText, both);
  EXPECT_NE(lacking.find("after: 48 min of 5 h lack something of the rung application (direct unknown)"),
            std::string::npos)
      << lacking;
  EXPECT_EQ(lacking.find("drive not measured"), std::string::npos) << "a hundredth of the time does not matter";
  const auto other = nlohmann::json::parse(printed(report::print_json, both)).at("ladder").at("after").at("rungs");
  EXPECT_TRUE(other.at("file_system").at("ratio").is_null());
  EXPECT_DOUBLE_EQ(other.at("drive").at("ratio"), 2);
  both.ladder_before.reset();
  const std::string alone = printed(kText, both);
  EXPECT_EQ(alone.find("before"), std::string::npos);
  EXPECT_NE(alone.find("drives                     24 GB"), std::string::npos) << alone;
}

TEST(Report, OneWindowAsText) {
  report::DeviceReport alone = made_up("nvme0n1");
  alone.comparison.before.reset();
  alone.question.before.reset();
  expect_golden("alone.txt", printed(kText, report({alone})));
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
  for (const auto& text :
       {html, printed(kText, hostile), printed(kMarkdown, hostile), printed(report::print_json, hostile)}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);  // reverses the direction of the following text
  }
  const std::string markdown = printed(kMarkdown, hostile);
  for (std::size_t at = markdown.find('<'); at != std::string::npos; at = markdown.find('<', at + 1)) {
    EXPECT_EQ(markdown[at - 1], '\\');
  }
  EXPECT_NE(markdown.find("\\<script\\>"), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(printed(report::print_json, hostile), nullptr, false).is_discarded());
}

}  // namespace
}  // namespace ssdpulse::compare
