// SPDX-License-Identifier: Apache-2.0
// Is the page served as it is in the tree, and each API answer made once per snapshot, bounded and harmless?
#include "exporters/page/page_site.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "exporters/page/page_documents.h"
#include "tests/unit/fed_past.h"
#include "tests/unit/json_schema.h"
#include "tests/unit/prometheus_snapshots.h"

namespace ssdpulse::page {
namespace {

using Json = nlohmann::json;

Question question(const std::string& path, std::map<std::string, std::string> query = {}, std::string known = "") {
  return {path,
          [query = std::move(query)](std::string_view name) {
            const auto found = query.find(std::string(name));
            return found == query.end() ? "" : found->second;
          },
          "", std::move(known)};
}

/// Which definition of the schema an answer has.
std::string definition_of(const std::string& path) {
  const std::string last = path.substr(path.rfind('/') + 1);
  return last == "why" ? "why_answer" : last == "what-if" ? "what_if" : last;
}

void expect_fits(const std::string& definition, const Json& answer) {
  static const test::JsonSchema kSchema{Json::parse(api_schema())};
  EXPECT_EQ(kSchema.flaw_by_name(definition, answer), "");
}

std::string file_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Rig {
  /// This many of the other exporter's small snapshots, one second apart.
  explicit Rig(std::uint64_t seconds = 3) {
    for (std::uint64_t number = 1; number <= seconds; ++number) {
      auto snapshot = test::small_snapshot();
      snapshot.number = number;
      snapshot.taken_at = test::at(1'700'000'100'000 + static_cast<std::int64_t>(number) * 1000);
      take(std::move(snapshot));
    }
  }
  void take(model::Snapshot snapshot) {
    current = std::make_shared<const model::Snapshot>(std::move(snapshot));
    past.observe(*current);
  }
  Json ask(const std::string& path, std::map<std::string, std::string> query = {}) {
    const auto answer = site.api(current, question(path, std::move(query)));
    EXPECT_EQ(answer->status, 200U) << answer->bytes;
    Json json = Json::parse(answer->bytes);
    expect_fits(definition_of(path), json);
    return json;
  }

  test::FedPast past{1U << 20};
  advice::FindingAges finding_ages;
  Site site{past, finding_ages};
  std::shared_ptr<const model::Snapshot> current;
};

TEST(page_site, serves_the_files_as_they_are) {
  Rig rig;
  const std::filesystem::path source = SSDPULSE_SOURCE_DIR;
  std::size_t files = 0;
  for (const auto& directory : {source / "exporters/page/assets", source / "deploy/runbooks"}) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const auto name = entry.path().filename().string();
      const std::string path = name == "index.html" ? "/" : (name.ends_with(".md") ? "/runbooks/" : "/") + name;
      const auto answer = rig.site.file(question(path));
      EXPECT_EQ(answer->status, 200U) << path;
      EXPECT_EQ(answer->bytes, file_text(entry.path())) << path;
      EXPECT_EQ(rig.site.file(question(path, {}, answer->etag))->status, 304U) << path;
      ++files;
    }
  }
  const std::string catalogue = rig.site.file(question("/catalogue.js"))->bytes;
  const Json texts = Json::parse(catalogue.substr(catalogue.find('{'), catalogue.rfind('}') + 1 - catalogue.find('{')));
  EXPECT_EQ(texts.size(), 2U);
  for (const std::string room : {"page", "shared"}) {
    EXPECT_EQ(texts.at(room), Json::parse(file_text(source / "exporters/words" / (room + ".json"))));
  }
  EXPECT_EQ(embedded_files().size(), files + 1);
  EXPECT_EQ(rig.site.file(question("/no.js"))->status, 404U);
}

TEST(page_site, names_the_host) {
  Rig rig;
  EXPECT_TRUE(rig.ask("/api/v1/status").at("host").is_null()) << "not known is not empty";
  Site site(rig.past, rig.finding_ages, {}, {}, "db7\x1b[0m");
  const Json status = Json::parse(site.api(rig.current, question("/api/v1/status"))->bytes);
  EXPECT_EQ(status.at("host").get<std::string>().find("db7"), 0U);
  EXPECT_EQ(status.at("host").get<std::string>().find('\x1b'), std::string::npos) << status.at("host");
}

TEST(page_site, why_asks_the_history_for_the_minute) {
  Rig rig;
  std::vector<model::PastTime> asked;
  Site site(rig.past, rig.finding_ages, [&](model::PastTime at) -> util::Result<model::PastMoment> {
    asked.push_back(at);
    model::PastMoment moment;
    moment.window = {at, at + std::chrono::minutes(1)};
    moment.devices = {{"nvme0n1", 60'000, 0}};
    return moment;
  });
  const auto ask = [&](const std::string& at) {
    return Json::parse(site.api(rig.current, question("/api/v1/why", {{"at", at}}))->bytes).at("why");
  };
  const Json answer = ask("1699990030");
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].time_since_epoch().count(), 1'699'990'030 / 60);
  EXPECT_EQ(answer.at("moment").at("coverage"), "recorded");
  EXPECT_EQ(answer.at("moment").at("begin"), 1'699'990'030 / 60 * 60);
  EXPECT_NE(answer.at("sentence").get<std::string>().find("No drive had any I/O between"), std::string::npos) << answer;
  EXPECT_EQ(ask("1800000000").at("moment").at("coverage"), "to_come");
  EXPECT_EQ(asked.size(), 1U) << "nobody knows the future";
  EXPECT_EQ(answer.at("summary"), answer.at("sentence")) << "of a time that was asked for";
  const Json now = rig.ask("/api/v1/why").at("why");
  EXPECT_TRUE(now.at("moment").is_null());
  EXPECT_EQ(now.at("sentence").get<std::string>().find(now.at("summary").get<std::string>()), 0U);
  Site deaf(rig.past, rig.finding_ages,
            [](model::PastTime) -> util::Result<model::PastMoment> { return util::fail("the disk is gone"); });
  const auto refused = Json::parse(deaf.api(rig.current, question("/api/v1/why", {{"at", "1699990030"}}))->bytes);
  EXPECT_EQ(refused.at("why").at("moment").at("coverage"), "out_of_range");
  EXPECT_NE(refused.dump().find("the history does not answer (the disk is gone)"), std::string::npos);
}

model::PastDay some_day(model::PastTime at) {
  model::PastDay day;
  day.window = {at - std::chrono::hours(24), at};
  day.hour = {at - std::chrono::hours(1), at};
  day.devices.resize(2);
  auto& busy = day.devices[0];
  busy.name = "nvme0n1";
  busy.slots[7] = {15, 2, 1, model::PastDay::Worst{at - std::chrono::hours(22), "read", "gc\n", 3, 0.5, 2.5}};
  busy.spikes = 2;
  busy.bursts = 1;
  busy.hour_measured_ms = 3'540'000;
  busy.hour_reads = {{{100, 99}, {150, 1}}, 1};
  day.devices[1].name = "<b>";
  day.reach.minutes = at - std::chrono::hours(3);
  day.reach.hours = at - std::chrono::hours(12);
  return day;
}

TEST(page_site, a_day_is_made_once_a_minute) {
  Rig rig;
  std::vector<model::PastTime> asked;
  bool up = true;
  Site site(rig.past, rig.finding_ages, {}, [&](model::PastTime at) -> util::Result<model::PastDay> {
    asked.push_back(at);
    return up ? util::Result<model::PastDay>(some_day(at)) : util::fail("<i>busy");
  });
  const auto begin = std::chrono::ceil<std::chrono::minutes>(rig.current->taken_at);
  const auto ask = [&](std::chrono::seconds later, const std::string& known = "") {
    auto snapshot = *rig.current;
    ++snapshot.number;
    snapshot.taken_at = begin + later;
    rig.current = std::make_shared<const model::Snapshot>(snapshot);
    return site.api(rig.current, question("/api/v1/day", {}, known));
  };
  const auto first = ask(std::chrono::seconds(1));
  EXPECT_EQ(ask(std::chrono::seconds(59)), first);
  EXPECT_EQ(ask(std::chrono::seconds(59), first->etag)->status, 304U);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0], begin);
  up = false;
  const auto none = ask(std::chrono::seconds(60), first->etag);
  EXPECT_EQ(none->status, 200U);
  EXPECT_EQ(asked.size(), 2U);
  const Json why = Json::parse(none->bytes);
  EXPECT_EQ(why.at("reason"), "the history does not answer (<i>busy)");
  EXPECT_TRUE(why.at("day").is_null());
  EXPECT_TRUE(why.at("devices").empty());
  EXPECT_EQ(ask(std::chrono::seconds(69)), none);
  up = true;
  EXPECT_EQ(ask(std::chrono::seconds(70), none->etag)->status, 200U) << "after ten seconds it is asked again";
  EXPECT_EQ(asked.size(), 3U);
  EXPECT_EQ(ask(std::chrono::seconds(5))->status, 200U) << "the clock was set back";
  EXPECT_EQ(asked.size(), 4U);
  EXPECT_EQ(rig.ask("/api/v1/day").at("reason"), "no history is kept here: history.directory is empty");
}

TEST(page_site, a_day_distinguishes_none_from_unknown) {
  Rig rig;
  Site site(rig.past, rig.finding_ages, {},
            [](model::PastTime at) -> util::Result<model::PastDay> { return some_day(at); });
  const Json answer = Json::parse(site.api(rig.current, question("/api/v1/day"))->bytes);
  EXPECT_TRUE(answer.at("reason").is_null());
  EXPECT_EQ(answer.at("slot_seconds"), 900);
  EXPECT_EQ(answer.at("day").at("to").get<double>() - answer.at("day").at("from").get<double>(), 86'400);
  EXPECT_EQ(answer.at("day").at("to").get<double>() - answer.at("oldest").get<double>(), 12 * 3600);
  const Json& busy = answer.at("devices").at(0);
  ASSERT_EQ(busy.at("spikes").size(), 96U);
  EXPECT_EQ(busy.at("measured_minutes").at(7), 15);
  EXPECT_EQ(busy.at("measured_minutes").at(8), 0);
  EXPECT_EQ(busy.at("spikes").at(7), 2);
  EXPECT_EQ(busy.at("bursts").at(7), 1);
  ASSERT_EQ(busy.at("worst").size(), 1U);
  EXPECT_EQ(busy.at("worst").at(0).at("slot"), 7);
  EXPECT_EQ(busy.at("worst").at(0).at("excess_seconds"), 2.5);
  EXPECT_EQ(busy.at("worst").at(0).at("cause"), "gc\xef\xbf\xbd") << "the file may hold anything";
  EXPECT_EQ(busy.at("spikes_in_all"), 2);
  EXPECT_EQ(busy.at("bursts_in_all"), 1);
  EXPECT_EQ(busy.at("hour").at("measured_seconds"), 3540);
  EXPECT_EQ(busy.at("hour").at("read").at("ios"), 100);
  EXPECT_LT(busy.at("hour").at("read").at("p99").get<double>(), busy.at("hour").at("read").at("p999").get<double>());
  EXPECT_EQ(busy.at("hour").at("write").at("ios"), 0);
  EXPECT_TRUE(busy.at("hour").at("write").at("p99").is_null()) << "no quantile of nothing";
  EXPECT_TRUE(answer.at("devices").at(1).at("hour").is_null()) << "not known is not none";
}

TEST(page_site, columns_say_where_the_clock_was_set) {
  Rig rig(2);
  for (const std::uint64_t number : {3U, 4U}) {
    auto snapshot = test::small_snapshot();
    snapshot.number = number;
    snapshot.taken_at = test::at(1'700'003'700'000 + static_cast<std::int64_t>(number) * 1000);  // an hour later
    rig.current = std::make_shared<const model::Snapshot>(snapshot);
    rig.past.observe(*rig.current, std::chrono::steady_clock::time_point(std::chrono::seconds(number)));
  }
  const std::string path = "/api/v1/devices/" + rig.current->devices[0].device->name + "/live";
  const Json all = rig.ask(path);
  EXPECT_TRUE(all.at("clock_steps").empty()) << "without a clock that nobody sets, the wall clock is believed";
  for (const std::uint64_t number : {5U, 6U}) {
    auto snapshot = test::small_snapshot();
    snapshot.number = number;
    snapshot.taken_at = test::at((number == 5 ? 1'700'003'705'000 : 1'700'007'306'000));
    rig.current = std::make_shared<const model::Snapshot>(snapshot);
    rig.past.observe(*rig.current, std::chrono::steady_clock::time_point(std::chrono::seconds(number)));
  }
  const Json more = rig.ask(path, {{"since", "5"}});
  ASSERT_EQ(more.at("clock_steps").size(), 1U);
  EXPECT_EQ(more.at("clock_steps")[0].at("column"), 6);
  EXPECT_EQ(more.at("clock_steps")[0].at("milliseconds"), 3'600'000);
  EXPECT_EQ(more.at("columns").at("milliseconds")[0], 1000);
  EXPECT_EQ(more.at("begin"), 1'700'007'305.0);
}

TEST(page_site, tenants_and_paths_are_totals) {
  Rig rig;
  auto snapshot = test::small_snapshot();
  snapshot.number = 9;
  model::DeviceTenants who;
  who.tenants = {{{"db.service", model::TenantKind::unit, ""}, {{{{7, 4096, 2'000'000'000}}}}, 0, {}}};
  who.other = {{{{1, 512, 0}}}};
  who.paths[model::index(model::IoPath::libaio)][model::index(model::IoAccess::raw)] = {{{{8, 4608, 2'000'000'000}}}};
  snapshot.devices[0].tenants = std::make_shared<const model::DeviceTenants>(who);
  const std::string path = "/api/v1/devices/" + snapshot.devices[0].device->name + "/tenants";
  rig.take(snapshot);
  const Json answer = rig.ask(path);
  ASSERT_EQ(answer.at("tenants").size(), 2U);
  EXPECT_EQ(answer.at("tenants")[0].at("name"), "db.service");
  EXPECT_EQ(answer.at("tenants")[0].at("read").at("device_seconds"), 2.0);
  EXPECT_EQ(answer.at("tenants")[1].at("name"), "other");
  ASSERT_EQ(answer.at("paths").size(), 1U);
  EXPECT_EQ(answer.at("paths")[0].at("name"), "libaio (raw)");
  EXPECT_EQ(answer.at("paths")[0].at("read").at("ios"), 8);
  snapshot.devices[0].tenants = nullptr;
  snapshot.number = 10;
  rig.take(snapshot);
  EXPECT_TRUE(rig.ask(path).at("tenants").is_null()) << "not known is not none";
}

TEST(page_site, writes_have_their_hints_classes_and_streams) {
  Rig rig;
  auto snapshot = test::small_snapshot();
  const std::string path = "/api/v1/devices/" + snapshot.devices[0].device->name + "/tenants";
  using model::NvmeField;
  snapshot.nvme_drives[0].values = {{NvmeField::fdp_handle_use, "0", 1, 1},
                                    {NvmeField::fdp_handle_use, "1", 2, 1},
                                    {NvmeField::fdp_handle_use, "2", 1, 1}};
  snapshot.number = 9;
  rig.take(snapshot);
  const Json answer = rig.ask(path);
  const Json& writes = answer.at("writes");
  ASSERT_EQ(writes.at("hints").size(), model::kWriteHints);
  EXPECT_EQ(writes.at("hints").at(0), Json({{"name", "not_set"}, {"ios", 0}, {"bytes", 0}, {"device_seconds", 0.0}}));
  EXPECT_EQ(writes.at("hints").at(4),
            Json({{"name", "long"}, {"ios", 1}, {"bytes", 4096}, {"device_seconds", 0.0001}}));
  ASSERT_EQ(writes.at("classes").size(), model::kWriteClasses);
  EXPECT_EQ(writes.at("classes").at(0), Json({{"name", "journal"}, {"bytes", 4096}}));
  ASSERT_EQ(writes.at("streams").size(), 1U);
  EXPECT_EQ(writes.at("streams").at(0), Json({{"name", "2"}, {"bytes", 4096}}));
  EXPECT_EQ(answer.at("hint_path").at("kernel"), "reach the block layer");
  EXPECT_EQ(answer.at("hint_path").at("drive"), "has FDP");
  EXPECT_EQ(answer.at("placement_handles"), Json({{"unused", 0}, {"host", 2}, {"controller", 1}}));
  snapshot.latency_mode = "completion-only";
  snapshot.devices[0].hint_path = std::nullopt;
  snapshot.nvme_drives.clear();
  snapshot.number = 10;
  rig.take(snapshot);
  const Json unknown = rig.ask(path);
  EXPECT_TRUE(unknown.at("writes").is_null()) << "not counted is not none";
  EXPECT_TRUE(unknown.at("hint_path").is_null());
  EXPECT_TRUE(unknown.at("placement_handles").is_null());
}

TEST(page_site, an_nvme_drive_says_its_wear) {
  Rig rig;
  auto snapshot = test::small_snapshot();
  const auto told = [&](std::uint64_t number) {
    snapshot.number = number;
    snapshot.taken_at = test::at(1'700'000'100'000 + static_cast<std::int64_t>(number) * 1000);
    rig.take(snapshot);
    return rig.ask("/api/v1/devices").at("devices")[0].at("nvme");
  };
  using model::NvmeField;
  auto& drive = snapshot.nvme_drives[0];
  drive.values = {{NvmeField::available_spare_ratio, "", 0.5, 1},  // of an endurance group
                  {NvmeField::available_spare_ratio, "", 0.98},
                  {NvmeField::percentage_used_ratio, "", 0.07},
                  {NvmeField::temperature_celsius, "sensor_1", 55},
                  {NvmeField::temperature_celsius, "composite", 41}};
  auto& waf = drive.write_amplification;
  waf.ratios = {{"5m", 300, 0, 4, 3, 5}, {"24h", 86'400, 0, 2.5, 2.25, 2.75}, {"lifetime", 0, 0, 2, 1.5, 2.25}};
  waf.life_remaining = {{"percentage_used", 864'000, 1e8}, {"endurance_estimate", 864'000, 5e7}};
  Json known{{"controller", "nvme0"},      {"up", true},          {"reason", ""},
             {"used_ratio", 0.07},         {"life_seconds", 5e7}, {"spare_ratio", 0.98},
             {"temperature_celsius", 41.0}};
  known["write_amplification"] = {{"ratio", 2.5},    {"lower", 2.25},   {"upper", 2.75},
                                  {"window", "24h"}, {"source", "ocp"}, {"reason", "fdp: refused"}};
  EXPECT_EQ(told(9), known);

  drive.values = {{NvmeField::percentage_used_ratio, "", 0}};
  drive.polling.up = false;
  drive.polling.reason = "timeout";
  waf.ratios.clear();
  waf.life_remaining.clear();
  Json unknown{{"controller", "nvme0"},         {"up", false},
               {"reason", "timeout"},           {"used_ratio", 0.0},
               {"life_seconds", nullptr},       {"spare_ratio", nullptr},
               {"temperature_celsius", nullptr}};
  unknown["write_amplification"] = {{"ratio", nullptr}, {"source", "ocp"}, {"reason", "fdp: refused"}};
  EXPECT_EQ(told(10), unknown) << "not known is null, and nothing used is 0";

  snapshot.nvme_drives.clear();
  EXPECT_TRUE(told(11).is_null()) << "no NVMe drive";
}

TEST(page_site, the_status_has_what_the_audit_found) {
  Rig rig;
  const auto shown = [&] {
    std::size_t count = 0;
    const Json status = rig.ask("/api/v1/status");
    for (const Json& one : status["findings"]) {
      count += one["runbook"] == "SsdpulseAuditDanger" ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(shown(), 1U);
  auto snapshot = test::small_snapshot();
  snapshot.number = rig.current->number + 1;
  snapshot.audit = nullptr;
  rig.take(std::move(snapshot));
  EXPECT_EQ(shown(), 0U) << "not looked yet";
}

TEST(page_site, the_cost_is_null_where_it_is_not_known) {
  Rig rig;
  EXPECT_EQ(rig.ask("/api/v1/cost")["seconds"], 0);
  EXPECT_TRUE(rig.ask("/api/v1/cost")["total"].is_null());
  auto snapshot = test::small_snapshot();
  snapshot.number = rig.current->number + 1;
  snapshot.kernel_features[model::KernelFeature::write_class] = model::KernelDecision::end_functions;
  snapshot.own_cost.recent = std::make_shared<const model::RecentCost>(
      model::RecentCost{.seconds = 60, .cpus = 2, .completions = 600, .run_cost = model::RunCost{0, 100}});
  rig.take(std::move(snapshot));
  const Json cost = rig.ask("/api/v1/cost");
  EXPECT_EQ(cost["seconds"], 60);
  EXPECT_EQ(cost["cpus"], 2);
  EXPECT_EQ(cost["daemon_cpu_ratio"], 0);
  const Json& part = cost["parts"][0];
  EXPECT_EQ(part["name"], "completions");
  EXPECT_EQ(part["runs_per_second"], 10);
  EXPECT_DOUBLE_EQ(part["ns_per_run"].get<double>(), 70);
  EXPECT_EQ(part["known_by"], "estimate");
  EXPECT_EQ(part["of"], "");
  EXPECT_EQ(part["off"], "");
  EXPECT_EQ(part["at_most"], false);
  EXPECT_EQ(part["change"], "devices.exclude");
  EXPECT_EQ(part["tells"], "total latency, sizes, errors");
  EXPECT_EQ(cost["total"]["cpu_ratio"], cost["programs"]["cpu_ratio"]);
  EXPECT_LT(cost["total"]["lower"], cost["total"]["upper"]);
  EXPECT_TRUE(cost["parts"].back()["cpu_ratio"].is_null()) << "another process";
}

TEST(page_site, files_with_all_runbooks_are_at_most_135_KB_compressed) {
  Rig rig;
  std::size_t bytes = 0;
  for (const EmbeddedFile& file : embedded_files()) {
    auto asked = question(std::string(file.path));
    asked.accept_encoding = "gzip";
    bytes += rig.site.file(asked)->bytes.size();
  }
  EXPECT_LE(bytes, 135'000U);
}

TEST(page_site, answers_are_made_once_a_snapshot) {
  Rig rig;
  const auto first = rig.site.api(rig.current, question("/api/v1/devices"));
  EXPECT_EQ(rig.site.api(rig.current, question("/api/v1/devices")), first);
  EXPECT_EQ(rig.site.renderings(), 1U);
  EXPECT_EQ(rig.site.api(rig.current, question("/api/v1/devices", {}, first->etag))->status, 304U);
  EXPECT_EQ(rig.site.api(rig.current, question("/api/v1/devices", {}, "W/\"other\""))->status, 200U);
  auto next = *rig.current;
  next.number = 4;
  rig.take(next);
  EXPECT_EQ(rig.site.api(rig.current, question("/api/v1/devices", {}, first->etag))->status, 200U);
  EXPECT_EQ(rig.site.renderings(), 2U);
}

TEST(page_site, the_etag_is_of_the_run_too) {
  Rig rig;
  const auto etag = rig.site.api(rig.current, question("/api/v1/status"))->etag;
  auto restarted = *rig.current;
  restarted.process.start_time_seconds += 60;
  rig.current = std::make_shared<const model::Snapshot>(restarted);
  EXPECT_EQ(rig.site.api(rig.current, question("/api/v1/status", {}, etag))->status, 200U);
}

TEST(page_site, live_answers_go_on_where_the_last_one_ended) {
  Rig rig(40);
  const Json all = rig.ask("/api/v1/devices/nvme0n1/live");
  EXPECT_EQ(all["from"], 0);
  EXPECT_EQ(all["to"], 40);
  EXPECT_EQ(all["columns"]["read_ios"].size(), 39U);
  EXPECT_EQ(all["heat"]["levels"].size(), 39U);
  EXPECT_EQ(all["bounds_seconds"].size(), static_cast<std::size_t>(LATENCY_OVER_WORD) + 1);
  const Json rest = rig.ask("/api/v1/devices/nvme0n1/live", {{"since", "38"}, {"heat", "commit"}});
  EXPECT_EQ(rest["from"], 38);
  EXPECT_EQ(rest["columns"]["read_ios"].size(), 2U);
  EXPECT_EQ(rest["heat"]["operation"], "commit");
  EXPECT_FALSE(rest.contains("bounds_seconds"));
  // Far behind, or from another run: everything there is.
  EXPECT_EQ(rig.ask("/api/v1/devices/nvme0n1/live", {{"since", "3"}})["from"], 0);
  EXPECT_EQ(rig.ask("/api/v1/devices/nvme0n1/live", {{"since", "999"}})["from"], 0);
}

TEST(page_site, numbers_of_a_column_are_what_was_added) {
  Rig rig(2);
  auto next = *rig.current;
  next.number = 3;
  next.taken_at += std::chrono::milliseconds(1250);
  auto io = *next.devices[0].io;
  auto& read = io.operations[model::index(model::Operation::read)];
  read.total_latency.words[100] += 5;
  read.total_latency.words[LATENCY_OVER_WORD] += 1;
  read.device_latency[0].words[100] += 6;
  read.bytes += 4096;
  next.devices[0].io = std::make_shared<const model::DeviceIo>(io);
  rig.take(next);
  const Json live = rig.ask("/api/v1/devices/nvme0n1/live", {{"since", "2"}});
  EXPECT_EQ(live["columns"]["milliseconds"], Json({1250}));
  EXPECT_EQ(live["columns"]["read_ios"], Json({6}));
  EXPECT_EQ(live["columns"]["read_bytes"], Json({4096}));
  EXPECT_EQ(live["columns"]["read_p50"], Json({100}));
  EXPECT_EQ(live["columns"]["read_p99"], Json({LATENCY_OVER_WORD}));
  EXPECT_EQ(live["columns"]["write_p99"], Json::array({nullptr}));
  const std::string levels = live["heat"]["levels"][0];
  EXPECT_EQ(levels, "100:3" + std::string(LATENCY_OVER_WORD - 101, '0') + "1");
  const Json column = rig.ask("/api/v1/devices/nvme0n1/column", {{"snapshot", "3"}});
  EXPECT_EQ(column["latency"]["read"], Json({{100, 5}, {LATENCY_OVER_WORD, 1}}));
}

TEST(page_site, reads_during_others_have_a_p99_where_they_are_enough) {
  Rig rig(2);
  const auto now = [&] { return rig.ask("/api/v1/devices").at("devices")[0].at("now"); };
  const Json nothing{{"ios", 0}, {"p99", nullptr}};
  EXPECT_EQ(now().at("reads_during_discard"), nothing);
  EXPECT_TRUE(now().at("queue_share").is_null()) << "of no time";
  auto next = *rig.current;
  next.number = 3;
  next.taken_at += std::chrono::seconds(1);
  auto io = *next.devices[0].io;
  auto& read = io.operations[model::index(model::Operation::read)];
  auto& during_discard = read.device_latency[model::index(model::During::discard)];
  auto& during_both = read.device_latency[model::index(model::During::both)];
  during_both.words.resize(LATENCY_OVER_WORD + 1);
  during_discard.words[120] += 98;
  during_both.words[150] += 2;
  read.queue_latency.words.resize(LATENCY_OVER_WORD + 1);
  read.queue_latency.words[50] += 100;
  read.queue_latency.sum_ns += 250;
  during_discard.sum_ns += 700;
  during_both.sum_ns += 50;
  next.devices[0].io = std::make_shared<const model::DeviceIo>(io);
  rig.take(next);
  const Json bounds = rig.ask("/api/v1/devices/nvme0n1/live").at("bounds_seconds");
  EXPECT_EQ(now().at("reads_during_discard"), Json({{"ios", 100}, {"p99", bounds[150]}}));
  EXPECT_EQ(now().at("reads_during_flush"), Json({{"ios", 2}, {"p99", nullptr}})) << "too few";
  EXPECT_EQ(now().at("queue_share"), 0.25);
}

TEST(page_site, the_share_of_a_queue_that_was_not_timed_is_not_known) {
  Rig rig(2);
  auto next = *rig.current;
  next.number = 3;
  next.taken_at += std::chrono::seconds(1);
  auto io = *next.devices[0].io;
  auto& device = io.operations[model::index(model::Operation::read)].device_latency[0];
  device.words[100] += 5;
  device.sum_ns += 5000;
  next.devices[0].io = std::make_shared<const model::DeviceIo>(io);
  rig.take(next);
  EXPECT_TRUE(rig.ask("/api/v1/devices").at("devices")[0].at("now").at("queue_share").is_null()) << "as with iostats=0";
}

TEST(page_site, interference_without_device_times_is_unknown) {
  Rig rig(2);
  auto next = *rig.current;
  next.number = 3;
  next.taken_at += std::chrono::seconds(1);
  auto io = *next.devices[0].io;
  io.operations[model::index(model::Operation::read)].total_latency.words[100] += 5;
  next.devices[0].io = std::make_shared<const model::DeviceIo>(io);
  rig.take(next);
  const Json now = rig.ask("/api/v1/devices").at("devices")[0].at("now");
  EXPECT_FALSE(now.at("read").at("p99").is_null());
  EXPECT_TRUE(now.at("reads_during_discard").is_null());
  EXPECT_TRUE(now.at("reads_during_flush").is_null());
  EXPECT_TRUE(now.at("queue_share").is_null());
}

TEST(page_site, the_list_sums_up_fifteen_minutes) {
  Rig rig(1);
  auto next = *rig.current;
  next.spikes_going_on.clear();
  auto device = next.devices[0];
  device.discards = {};
  device.spikes = {};
  auto io = *device.io;
  constexpr std::uint64_t kFirst = 2;    // snapshot of the first column
  constexpr std::uint64_t kLast = 25;    // 24 columns: cells of 4, 10 and 10
  constexpr std::uint64_t kAbsent = 14;  // the device is not measured: neither this column nor the next
  constexpr std::uint64_t kLong = 16;    // the first of the last ten takes two seconds
  for (next.number = kFirst; next.number <= kLast; ++next.number) {
    next.taken_at += std::chrono::seconds(next.number == kLong ? 2 : 1);
    next.devices = {device};
    auto& reads = io.operations[model::index(model::Operation::read)];
    auto& read = reads.total_latency.words;
    reads.device_latency[0].words[90] += 2;
    auto& write = io.operations[model::index(model::Operation::write)];
    read[next.number < kAbsent ? 100 : 120] += 2;
    if (next.number == 4) {
      write.total_latency.words.resize(LATENCY_OVER_WORD + 1);
      write.total_latency.words[180] += 1;
      write.errors[0] += 1;
    } else if (next.number == 6) {
      next.devices[0].discards[0].active = true;
    } else if (next.number == 7) {
      read[170] += 2;
      next.devices[0].spikes[0].active = model::SpikeCause::gc;
    }
    next.devices[0].io = std::make_shared<const model::DeviceIo>(io);
    if (next.number == kAbsent) {
      next.devices.clear();
    }
    rig.take(next);
  }
  const Json bounds = rig.ask("/api/v1/devices/nvme0n1/live").at("bounds_seconds");
  const Json list = rig.ask("/api/v1/devices").at("devices")[0];
  EXPECT_EQ(list.at("strip").at("p99"), Json({180, 170, 120}));
  EXPECT_EQ(list.at("strip").at("marks"), Json({4, 3, 0})) << "an error; a spike and a burst; nothing";
  EXPECT_EQ(list.at("spike_seconds"), 1);
  const Json& now = list.at("now");
  EXPECT_EQ(now.at("read").at("ios"), 20);
  EXPECT_EQ(now.at("read").at("p99"), bounds[120]);
  EXPECT_EQ(now.at("seconds"), 11);
  EXPECT_EQ(now.at("from"), kLong - 1);
  EXPECT_EQ(now.at("to"), kLast);
  EXPECT_EQ(now.at("end").get<double>() - now.at("begin").get<double>(), 11);
}

TEST(page_site, a_drive_is_as_usual_only_if_it_is) {
  Rig rig(2);
  auto next = *rig.current;
  next.spikes_going_on.clear();
  auto& device = next.devices[0];
  device.spikes = {};
  const auto ask = [&](std::uint64_t reads) {
    auto io = *next.devices[0].io;
    auto& read = io.operations[model::index(model::Operation::read)];
    read.total_latency.words.resize(LATENCY_OVER_WORD + 1);
    read.total_latency.words[120] += reads;
    read.device_latency[0].words.resize(LATENCY_OVER_WORD + 1);
    read.device_latency[0].words[90] += reads;
    next.devices[0].io = std::make_shared<const model::DeviceIo>(io);
    ++next.number;
    next.taken_at += std::chrono::seconds(1);
    rig.take(next);
    return rig.ask("/api/v1/devices").at("devices")[0];
  };
  const Json unknown = ask(50);
  EXPECT_TRUE(unknown.at("baseline_p99").at("read").is_null());
  EXPECT_EQ(unknown.at("state"), "ok");
  const double now = unknown.at("now").at("read").at("p99").get<double>();
  device.spikes[model::Operation::read].baseline = {now / 4.1, 340};
  const Json few = ask(1);
  EXPECT_EQ(few.at("state"), "ok") << "with so few, the 99th percentile is the slowest";
  EXPECT_NEAR(few.at("baseline_p99").at("read").get<double>(), now / 4.1, now / 1000) << "what spikes are judged by";
  EXPECT_EQ(few.at("baseline_learned_seconds").at("read"), 340);
  EXPECT_EQ(ask(100).at("state"), "ok") << "the last ten seconds still have some of a spike that is over";
  for (int second = 0; second < 10; ++second) {
    ask(1);
  }
  const Json high = ask(100);
  EXPECT_EQ(high.at("state"), "high");
  EXPECT_EQ(high.at("above_baseline").at("operation"), "read");
  EXPECT_NEAR(high.at("above_baseline").at("times").get<double>(), 4.1, 0.11);
  EXPECT_TRUE(high.at("now").at("read").at("standstill_seconds").is_null());
  model::LatencySpike spike;
  spike.device = device.device->name;
  spike.evidence = {{model::EvidenceKey::standstill_seconds, 11}};
  next.spikes_going_on = {spike};
  const Json hung = ask(100);
  EXPECT_EQ(hung.at("now").at("read").at("standstill_seconds"), 11);
  EXPECT_TRUE(hung.at("now").at("write").at("standstill_seconds").is_null());
  EXPECT_TRUE(hung.at("now").at("commit").at("standstill_seconds").is_null()) << "something else completes";
  next.spikes_going_on[0].evidence[model::EvidenceKey::device_standstill_seconds] = 9;
  EXPECT_EQ(ask(100).at("now").at("commit").at("standstill_seconds"), 9);
  next.spikes_going_on.clear();
  device.spikes[model::Operation::read].baseline = {now / 2.9, 340};
  const Json usual = ask(100);
  EXPECT_EQ(usual.at("state"), "ok");
  EXPECT_TRUE(usual.at("above_baseline").is_null());
}

TEST(page_site, the_drive_that_waited_longest_is_the_first_of_the_list) {
  Rig rig(1);
  auto next = *rig.current;
  ++next.number;
  const auto device = next.devices[0];
  next.devices.clear();
  next.spikes_going_on.clear();
  using Waited = std::pair<const char*, std::optional<double>>;
  for (const auto& [name, excess_seconds] : {Waited("calm", {}), Waited("just_begun", 0), Waited("slow", 9)}) {
    auto renamed = *device.device;
    renamed.name = name;
    next.devices.push_back(device);
    next.devices.back().device = std::make_shared<const model::Device>(renamed);
    if (excess_seconds) {
      next.spikes_going_on.emplace_back().device = name;
      next.spikes_going_on.back().excess_seconds = *excess_seconds;
    }
  }
  rig.take(next);
  const Json devices = rig.ask("/api/v1/devices").at("devices");
  ASSERT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices[0].at("name"), "slow");
  EXPECT_EQ(devices[1].at("name"), "just_begun");
  EXPECT_EQ(devices[2].at("name"), "calm");
}

TEST(page_site, zero_and_no_data_differ) {
  Rig rig(3);
  auto gone = *rig.current;
  gone.number = 4;
  const auto device = gone.devices;
  gone.devices.clear();
  rig.take(gone);
  gone.number = 5;
  gone.devices = device;
  rig.take(gone);
  const Json live = rig.ask("/api/v1/devices/nvme0n1/live");
  EXPECT_EQ(live["columns"]["read_ios"], Json({0, 0, nullptr, nullptr}));
  EXPECT_EQ(live["heat"]["levels"], Json({"", "", nullptr, nullptr}));
}

TEST(page_site, refuses_what_it_does_not_know) {
  Rig rig;
  const auto status = [&](const std::string& path, std::map<std::string, std::string> query = {}) {
    return rig.site.api(rig.current, question(path, std::move(query)))->status;
  };
  EXPECT_EQ(status("/api/v1/"), 404U);
  EXPECT_EQ(status("/api/v1/devices/"), 404U);
  EXPECT_EQ(status("/api/v1/devices/sdq/live"), 404U);
  EXPECT_EQ(status("/api/v1/devices/nvme0n1/other"), 404U);
  EXPECT_EQ(status("/api/v1/devices/nvme0n1/live", {{"since", "-1"}}), 400U);
  EXPECT_EQ(status("/api/v1/devices/nvme0n1/live", {{"since", "18446744073709551616"}}), 400U);
  EXPECT_EQ(status("/api/v1/devices/nvme0n1/live", {{"since", "18446744073709551615"}}), 200U);
  EXPECT_EQ(status("/api/v1/devices/nvme0n1/live", {{"heat", "everything"}}), 400U);
  EXPECT_EQ(status("/api/v1/devices/nvme0n1/column"), 400U);
  EXPECT_EQ(status("/api/v1/devices/nvme0n1/column", {{"snapshot", "900"}}), 404U);
  EXPECT_EQ(status("/api/v1/why", {{"at", "noon"}}), 400U);
  EXPECT_EQ(rig.site.api(nullptr, question("/api/v1/devices"))->status, 503U);
}

TEST(page_site, stacks_show_what_lies_above_the_drives) {
  Rig rig;
  auto snapshot = *rig.current;
  snapshot.filesystems[0].volumes = {"dm-0"};
  const std::string snapshot_mountpoint = util::for_json(snapshot.filesystems[0].mountpoint);
  model::VolumeFigures figures;
  figures.seconds = 50;
  figures.devices = {{"dm-0", 1000, 500, model::RecentBios::Latency{10, 0.002, 0.001, 0.009},
                      model::RecentBios::Latency{10, 0.003, 0.002, 0.004}}};
  figures.floors = {{{"dm-0"}, {"md0"}, model::Operation::read, 10, 0.002, 0.0015, true}};
  snapshot.volume_figures = std::make_shared<const model::VolumeFigures>(figures);
  rig.take(snapshot);
  const Json answer = rig.ask("/api/v1/stacks");
  const auto row = [](const Json& place) {
    return std::string(place.at("floor").get<std::size_t>(), ' ') + place.at("name").get<std::string>() + " " +
           place.at("kind").get<std::string>() + (place.at("shared") ? " shared" : "");
  };
  std::vector<std::string> rows;
  for (const Json& stack : answer.at("stacks")) {
    rows.push_back(stack.at("mountpoint").is_null() ? "-" : stack.at("fstype").get<std::string>());
    std::transform(stack.at("places").begin(), stack.at("places").end(), std::back_inserter(rows), row);
  }
  EXPECT_EQ(rows, (std::vector<std::string>{"ext4", "dm-0 thin_pool", " md0 raid1", "  nvme0n1 disk shared",
                                            "  nvme0n1p1 partition", "   nvme0n1 disk shared", "-", "zram0 zram"}));
  const Json& layers = answer.at("layers");
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0].at("title"), "vg-data");
  EXPECT_EQ(layers[0].at("health"), "suspended");
  EXPECT_EQ(layers[0].at("latency_p50_seconds"), 0.002) << "of reads and writes, the slower";
  EXPECT_EQ(layers[0].at("latency_p99_seconds"), 0.009);
  EXPECT_EQ(layers[0].at("added_latency_seconds"), 0.0015);
  EXPECT_EQ(layers[0].at("bytes_per_second"), 1500);
  EXPECT_EQ(
      layers[0].at("read"),
      (Json{{"ios_per_second", 0.2}, {"bytes_per_second", 1000.0}, {"p50_seconds", 0.001}, {"p99_seconds", 0.009}}));
  EXPECT_EQ(layers[0].at("write").at("bytes_per_second"), 500);
  EXPECT_FALSE(layers[1].contains("latency_p99_seconds")) << "not measured";
  EXPECT_FALSE(layers[1].contains("read") || layers[1].contains("write"));
  EXPECT_EQ(layers[1].at("health"), "1 member is missing; check, 25 % done");
  EXPECT_EQ(layers[1].at("missing_members"), 1);
  EXPECT_EQ(layers[1].at("consistency_policy"), "bitmap");
  EXPECT_EQ(layers[2].at("bad"), false);
  EXPECT_EQ(layers[0].at("mountpoints"), Json::array({snapshot_mountpoint}));
  EXPECT_EQ(layers[1].at("mountpoints"), Json::array()) << "it only lies below";
  EXPECT_EQ(layers[0].at("read_bytes"), 4'096'000);
  EXPECT_EQ(layers[0].at("written_bytes"), 0);
  EXPECT_FALSE(layers[0].contains("members_read_bytes")) << "bios of md0 are not counted";
  EXPECT_FALSE(layers[1].contains("written_bytes"));
  const Json& ladder = answer.at("ladders").at(0);
  EXPECT_EQ(ladder.at("drives"), Json::array({"nvme0n1"}));
  EXPECT_EQ(ladder.at("volumes"), Json::array({"dm-0", "md0"}));
  EXPECT_EQ(ladder.at("rungs")[0].at("rung"), "drive");
  EXPECT_FALSE(ladder.at("rungs")[0].contains("class"));
  EXPECT_TRUE(ladder.at("rungs")[0].contains("counts_since"));
  EXPECT_EQ(ladder.at("gaps")[0], (Json{{"rung", "file_system"}, {"device", "nvme0n1"}, {"reason", "unknown_sender"}}));
  for (int i = 0; i < 1500; ++i) {
    snapshot.layers.push_back({"zram" + std::to_string(10'000 + i), "", model::LayerKind::zram});
  }
  ++snapshot.number;
  rig.take(snapshot);
  const Json many = rig.ask("/api/v1/stacks");
  EXPECT_EQ(many.at("stacks").size() + many.at("layers").size() + many.at("left_out").get<std::size_t>() +
                many.at("layers_left_out").get<std::size_t>(),
            1502U + 1503U);
}

TEST(page_site, what_is_mounted_from_a_volume_is_known_beyond_the_listed_stacks_and_on_partitions_of_arrays) {
  Rig rig;
  auto snapshot = *rig.current;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "md" + std::to_string(1000 + i);
    snapshot.layers.push_back({name, "", model::LayerKind::raid1});
    snapshot.volumes.push_back({name + "p1", 259, 0, name});
    snapshot.filesystems.push_back({"nvme0n1", "/srv/" + std::to_string(i), "ext4", false, {name + "p1"}});
    snapshot.filesystems.push_back({"nvme1n1", "/srv/" + std::to_string(i), "ext4", false, {name + "p1"}});
  }
  std::sort(snapshot.volumes.begin(), snapshot.volumes.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  rig.take(snapshot);
  const Json answer = rig.ask("/api/v1/stacks");
  EXPECT_GT(answer.at("left_out"), 0);
  for (const Json& layer : answer.at("layers")) {
    const std::string name = layer.at("name");
    if (name.starts_with("md1")) {
      EXPECT_EQ(layer.at("mountpoints"), Json::array({"/srv/" + std::to_string(std::stoi(name.substr(2)) - 1000)}));
    }
  }
}

TEST(page_site, volumes_without_figures_have_a_reason) {
  Rig rig;
  auto snapshot = *rig.current;
  snapshot.kernel_features[model::KernelFeature::volume_times] = model::KernelDecision::every_bio;
  const auto ask = [&] {
    ++snapshot.number;
    rig.take(snapshot);
    return rig.ask("/api/v1/stacks").at("not_measured").get<std::string>();
  };
  EXPECT_EQ(ask(), "the first figures come within some seconds");
  snapshot.volume_figures = std::make_shared<const model::VolumeFigures>();
  EXPECT_EQ(ask(), "");
  snapshot.volume_figures = nullptr;
  snapshot.bios.clear();
  snapshot.kernel_features[model::KernelFeature::volume_times] = model::KernelDecision::not_hooked;
  EXPECT_EQ(ask(), "the log of the daemon's start says why");
  snapshot.kernel_features[model::KernelFeature::volume_times] = model::KernelDecision::absent;
  EXPECT_EQ(ask(), "there was none when the daemon started, and it attaches programs only then");
  snapshot.kernel_features.erase(model::KernelFeature::volume_times);
  EXPECT_EQ(ask(), "volumes.enabled is false");
  snapshot.latency_mode = "completion-only";
  EXPECT_EQ(ask(), "latency.mode is completion-only");
  snapshot.own_cost.effort = model::Effort::essentials;
  EXPECT_EQ(ask(), "limits.cpu: the programs in the kernel cost too much");
  snapshot.memberships.clear();
  snapshot.layers = {{"zram0", "", model::LayerKind::zram}};
  EXPECT_EQ(ask(), "") << "the host has none";
}

TEST(page_site, strings_from_outside_are_tamed) {
  Rig rig;
  auto snapshot = *rig.current;
  snapshot.number = 4;
  auto device = *snapshot.devices[0].device;
  device.model = "<script>\x01\xff\xe2\x80\xae" + std::string(10'000, 'x');  // control, not UTF-8, direction mark
  snapshot.devices[0].device = std::make_shared<const model::Device>(device);
  snapshot.filesystems = {{"nvme0n1", "/mnt/\xe2\x81\xa6\n", "ext4", false}};
  rig.take(snapshot);
  const Json answer = rig.ask("/api/v1/devices");
  const std::string model = answer["devices"][0]["model"];
  EXPECT_EQ(model.substr(0, 17), "<script>\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_LT(model.size(), 200U);
  EXPECT_EQ(answer["devices"][0]["mounts"][0]["mountpoint"], "/mnt/\xef\xbf\xbd\xef\xbf\xbd");
}

RC_GTEST_PROP(page_site, any_snapshot_and_any_question_get_an_answer, ()) {
  Rig rig(1);
  for (std::uint64_t number = 2; number < 5; ++number) {
    auto snapshot = test::random::snapshot();
    snapshot.number = number;
    snapshot.taken_at = test::at(1'700'000'100'000 + static_cast<std::int64_t>(number) * 1000);
    rig.take(snapshot);
  }
  for (const char* path :
       {"/api/v1/devices", "/api/v1/stacks", "/api/v1/status", "/api/v1/doctor", "/api/v1/cost", "/api/v1/why"}) {
    RC_ASSERT(Json::accept(rig.site.api(rig.current, question(path))->bytes));
  }
  const auto any = *rc::gen::string<std::string>();
  const auto path =
      *rc::gen::element<std::string>("/api/v1/" + any, "/api/v1/devices/" + any, "/api/v1/devices/sda/live",
                                     "/api/v1/devices/" + any + "/live", "/api/v1/why", any);
  const auto name = *rc::gen::element<std::string>("since", "at", "heat", "snapshot");
  const auto value = *rc::gen::oneOf(
      rc::gen::string<std::string>(),
      rc::gen::map(rc::gen::arbitrary<std::uint64_t>(), [](std::uint64_t n) { return std::to_string(n); }));
  const auto answer = rig.site.api(rig.current, question(path, {{name, value}}));
  RC_ASSERT(answer->status != 200U || Json::accept(answer->bytes));
}

}  // namespace
}  // namespace ssdpulse::page
