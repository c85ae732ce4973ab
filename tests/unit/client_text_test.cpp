// SPDX-License-Identifier: Apache-2.0
// Do commands show what an answer holds, in words and numbers that people write?
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/base/number_text.h"
#include "daemon/cli/api_client.h"
#include "daemon/cli/command_output.h"
#include "daemon/cli/history_text.h"

namespace ssdpulse::cli {
namespace {

using Json = nlohmann::json;

/// Oracle: what a terminal, or a reader of lines, takes for more than a character.
bool is_harmless(const std::string& text) {
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }) &&
         !has("\xC2\x9B") && !has("\xE2\x80\xAE") && !has("\xE2\x81\xA6") && !has("\xE2\x80\xA8");
}

TEST(server_text, cannot_steer_the_terminal) {
  const std::string hostile =
      "ok\x1b[2J\x1b]0;owned\x07\r\nforged=1 \xC2\x9B"
      "31m \xE2\x80\xAEtxt \x7F";
  Json answer = {{"why", {{"sentence", hostile}, {hostile, {hostile, 1, nullptr, {{"a", hostile}}}}}}};
  clean_strings(answer);
  std::size_t strings = 0;
  const Json flat = answer.flatten();
  for (const auto& [path, value] : flat.items()) {
    EXPECT_TRUE(is_harmless(path)) << path;
    if (value.is_string()) {
      ++strings;
      EXPECT_TRUE(is_harmless(value.get<std::string>())) << value;
      EXPECT_NE(value.get<std::string>().find("forged=1"), std::string::npos) << "nothing else is lost";
    }
  }
  EXPECT_EQ(strings, 3U);
  EXPECT_TRUE(is_harmless(first_line_of(hostile)));
  EXPECT_EQ(first_line_of("no such device\nmore"), "no such device");
  Json deep = "\x1b";
  for (int i = 0; i < 200'000; ++i) {
    deep = Json::array({std::move(deep)});
  }
  clean_strings(deep);
}

TEST(server_answer, that_is_nested_deeply_is_refused) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_answer(R"({"why": {"headline": "No drive is slower"}})"));
  EXPECT_TRUE(parse_answer(nested(32)));
  EXPECT_FALSE(parse_answer(nested(100)));
  EXPECT_FALSE(parse_answer("{\"why\":" + nested(1'000'000) + "}"));
  EXPECT_FALSE(parse_answer(std::string(1'000'000, '[')));
  EXPECT_FALSE(parse_answer("no JSON"));
}

TEST(number_text, has_no_exponent_and_no_needless_digit) {
  struct Case {
    double value;
    const char* text;
  };
  for (const auto& [value, text] : {Case{0, "0"},
                                    {1, "1"},
                                    {8.863e-05, "<0.001"},
                                    {-1e-9, ">-0.001"},
                                    {0.001, "0.001"},
                                    {0.1204, "0.12"},
                                    {1.005, "1"},
                                    {9.876, "9.88"},
                                    {12.34, "12.3"},
                                    {100.4, "100"},
                                    {1234.5, "1234"},
                                    {1.2e8, "120000000"},
                                    {-12.34, "-12.3"},
                                    {20, "20"},
                                    {0.5, "0.5"}}) {
    EXPECT_EQ(util::number_text(value), text) << value;
  }
}

TEST(count_text, is_one_or_many) {
  EXPECT_EQ(util::count_text(0, "minute"), "0 minutes");
  EXPECT_EQ(util::count_text(1, "minute"), "1 minute");
  EXPECT_EQ(util::count_text(2, "flush"), "2 flushes");
  EXPECT_EQ(util::count_text(1, "flush"), "1 flush");
}

Json spike() {
  return {{"operation", "flush"},     {"words", "because the drive is collecting garbage"},
          {"peak_seconds", 0.0244},   {"baseline_seconds", 0.002},
          {"evidence", {"Decided."}}, {"missing", {"Log pages."}}};
}

TEST(why_evidence, is_that_of_the_incident) {
  Json with_groups = spike();
  with_groups["ruled_out"] = {"No discard."};
  with_groups["other"] = {"The load was 1.1 times the usual."};
  const Json answer{{"why", {{"sentence", "..."}}}, {"incident", {{"spikes", {with_groups}}}}};
  EXPECT_EQ(evidence_text(answer),
            "Flushes: p99 of the worst second 24.4 ms (usual 2 ms), because the drive is collecting garbage\n"
            "  Evidence for it:\n    - Decided.\n  What was ruled out:\n    - No discard.\n"
            "  What gave no clue:\n    - Log pages.\n  Other figures:\n    - The load was 1.1 times the usual.\n");
  Json unusual = spike();
  unusual["baseline_seconds"] = nullptr;
  unusual["missing"] = Json::array();
  EXPECT_EQ(evidence_text({{"why", {{"incident", {{"spikes", {unusual}}}}}}}),
            "Flushes: p99 of the worst second 24.4 ms, because the drive is collecting garbage\n"
            "  Evidence for it:\n    - Decided.\n");
}

TEST(why_evidence, of_what_holds_up_io_above_the_drives_is_in_words) {
  const Json wait{{"source", "io.max"},
                  {"command", nullptr},
                  {"evidence", {{"pressure_ratio", 0.81}, {"rate_per_second", 40}, {"limit_kind", 3}}}};
  EXPECT_EQ(evidence_text({{"why", {{"wait", wait}}}}),
            "  Evidence for it (io.max):\n    - pressure: 81 % of the time\n    - rate: 40 a second\n");
  EXPECT_EQ(evidence_text({{"why", {{"wait", {{"source", "freeze_super"}, {"command", "fsfreeze"}}}}}}),
            "  Evidence for it (freeze_super):\n    - command: fsfreeze\n");
}

TEST(why_evidence, of_answers_without_an_incident_is_nothing) {
  for (const char* answer : {"{}", "[]", "null", R"({"incident":null,"why":{"sentence":"."}})",
                             R"({"incident":{"spikes":null}})", R"({"incident":{"spikes":[]}})"}) {
    EXPECT_EQ(evidence_text(Json::parse(answer)), "") << answer;
  }
}

Json totals(std::uint64_t ios, double device_seconds) {
  return {{"ios", ios}, {"bytes", ios * 4096}, {"device_seconds", device_seconds}};
}

Json tenant(std::size_t point, const char* name, std::uint64_t reads, double seconds) {
  return {{"point", point},
          {"name", name},
          {"read", totals(reads, seconds)},
          {"write", totals(60, 0)},
          {"discard", totals(0, 0)}};
}

Json history() {
  return {{"device", {{"name", "sda"}, {"model", "ACME"}, {"serial", "1"}}},
          {"step_seconds", 60},
          {"points", {{"start", {1'699'999'140, 1'699'999'200}}, {"measured_seconds", {60.0, 30.0}}}},
          {"tenants",
           {tenant(1, "/", 3, 0.0001), tenant(0, "db.service", 6000, 12), tenant(1, "db.service", 3000, 15),
            tenant(7, "lost", 1, 1)}}};
}

TEST(cost_text, shows_what_is_known_and_how) {
  const Json total{{"cpu_ratio", 0.002}, {"lower", 0.001}, {"upper", 0.006}};
  const auto part = [](const char* name, const char* known_by, Json more) {
    Json all{{"name", name}, {"tells", "all of it"}, {"change", "a.key"}, {"known_by", known_by}};
    all.update(more);
    return all;
  };
  std::ostringstream out;
  print_cost(
      {{"seconds", 60.0},
       {"cpus", 2},
       {"daemon_cpu_ratio", 0.00004},
       {"programs", total},
       {"total", nullptr},
       {"parts",
        {part("completions", "estimate", {{"runs_per_second", 1234.5}, {"ns_per_run", 75.25}, {"cpu_ratio", 0.002}}),
         part("hints", "elsewhere", {{"of", "completions"}, {"at_most", true}, {"cpu_ratio", 0.0004}}),
         part("attribution", "unknown", {{"off", "off: configured"}}), part("reader", "unknown", Json::object())}}},
      out);
  EXPECT_EQ(out.str(),
            "PART                    TELLS      CHANGED BY  PER SECOND  NS EACH  % OF CPUS  KNOWN BY\n"
            "completions             all of it  a.key       1234        75.2     0.2        estimate\n"
            "hints (of completions)  all of it  a.key       -           -        <=0.04     elsewhere\n"
            "attribution             all of it  a.key       -           -        -          off: configured\n"
            "reader                  all of it  a.key       -           -        -          unknown\n"
            "\n"
            "in the last 1 min, of the time of 2 CPUs:\n"
            "programs in the kernel: 0.2 % (0.1 to 0.6 %)\n"
            "the daemon: 0.004 %\n"
            "total: not known, because what a run costs could not be measured\n"
            "estimate: runs, counted, times what one costs, measured at the start: within a factor of 3; shares by "
            "overhead.md\n"
            "elsewhere: I/Os, counted, times what one cost on the machine of overhead.md; not measured on this host\n"
            "unknown: not in the totals; kernel.bpf_stats_enabled=1 would tell of programs in the kernel\n");
  std::ostringstream early;
  print_cost({{"seconds", 0}, {"parts", Json::array()}}, early);
  EXPECT_EQ(early.str().substr(0, 13), "not known yet");
}

TEST(history_by_tenant, is_in_the_order_of_time_and_of_device_time) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(history_by_tenant_text(history()), R"(sda ACME 1, by the minute
TIME              TENANT                                     READ/s  MB/s    WRITE/s  MB/s   DISCARD MB/s  DEVICE TIME
2023-11-14 21:59  db.service                                 100     0.41    1        0.004  0             20 %
2023-11-14 22:00  db.service                                 100     0.41    2        0.008  0             50 %
                  the system (units without I/O accounting)  0.1     <0.001  2        0.008  0             <0.001 %
)");
  const std::string csv = history_by_tenant_csv(history());
  EXPECT_EQ(csv.substr(csv.find('\n') + 1, 143),
            R"(1699999140.0,60.0,"db.service",6000,24576000,12.0,60,245760,0.0,0,0,0.0
1699999200.0,30.0,"db.service",3000,12288000,15.0,60,245760,0.0,0,0,0.0)");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
}

TEST(history_by_tenant, says_if_there_is_none) {
  Json nothing = history();
  nothing["tenants"] = Json::array();
  nothing["step_seconds"] = 3600;
  EXPECT_EQ(history_by_tenant_text(nothing), "sda ACME 1, by the hour\nthe history has no tenants of this time\n");
}

}  // namespace
}  // namespace ssdpulse::cli
