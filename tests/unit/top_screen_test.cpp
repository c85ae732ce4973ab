// SPDX-License-Identifier: Apache-2.0
// Is the screen of `ssdpulse top` right, at any size, for anything that a daemon may answer? Golden screens are in
// tests/fixtures/top; SSDPULSE_TEST_GOLDEN=write rewrites them, to look at the difference.
#include "exporters/terminal/top_screen.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "exporters/terminal/top_words.h"

namespace ssdpulse::terminal {
namespace {

using Json = nlohmann::json;

Json tails(double ios, double p50, double p99, double p999) {
  return {{"ios", ios}, {"bytes", ios * 4096}, {"p50", p50}, {"p99", p99}, {"p999", p999}};
}

Json device(const std::string& name, const std::string& state) {
  return {{"name", name},
          {"title", "/srv/db (vg-data on " + name + ")"},
          {"use", "/srv/db"},
          {"model", "ACME Fast 4T"},
          {"mounts", {{{"mountpoint", "/srv/db"}}}},
          {"arrays", {"vg-data"}},
          {"state", state},
          {"now",
           {{"seconds", 10.0},
            {"read", tails(125'000, 85e-6, 2.4e-3, 24e-3)},
            {"write", tails(8'000, 21e-6, 410e-6, 2.8e-3)},
            {"commit", tails(400, 1e-3, 5e-3, 12e-3)},
            {"reads_during_discard", {{"ios", 900}, {"p99", 9.6e-3}}},
            {"reads_during_flush", {{"ios", 40}, {"p99", nullptr}}},
            {"queue_share", 0.13},
            {"in_flight", 12},
            {"busy_ratio", 0.42}}},
          {"baseline_p99", {{"read", 2e-4}, {"write", 4e-4}, {"commit", nullptr}}},
          {"spikes", Json::array()},
          {"spike_seconds", 0},
          {"nvme", {{"write_amplification", {{"ratio", 2.345}}}, {"used_ratio", 0.07}, {"temperature_celsius", 41.0}}}};
}

Json devices() {
  Json slow = device("nvme0n1", "slow");
  slow["spikes"] = {{{"operation", "read"}, {"short_words", "trim by fstrim.service"}, {"excess_seconds", 3.0}}};
  Json idle = device("sda", "idle");
  for (const char* kind : {"read", "write", "commit"}) {
    idle["now"][kind] = {{"ios", 0}, {"bytes", 0}, {"p50", nullptr}, {"p99", nullptr}, {"p999", nullptr}};
  }
  idle["now"]["reads_during_discard"] = idle["now"]["reads_during_flush"] = {{"ios", 0}, {"p99", nullptr}};
  idle["now"]["queue_share"] = nullptr;
  idle["nvme"] = nullptr;
  Json unknown = device("sdb", "unknown");
  unknown["now"] = nullptr;
  unknown["model"] = unknown["use"] = "";
  unknown["title"] = "sdb";
  Json past = device("nvme10n1", "ok");
  past["spike_seconds"] = 31;
  return {{"taken_at", 1'700'000'000.5},
          {"why",
           {{"verdict", "slow"},
            {"summary",
             "/srv/db (nvme0n1): reads take up to 24 ms, 12 times longer than usual (2 ms), since 22:12:38 UTC (42 s), "
             "because fstrim is trimming a file system on it."},
            {"remarks", "backup.service discarded 1.2 GB; database.service was slowed most."},
            {"past", ""},
            {"next", "Let trims run in quiet hours, or in smaller pieces (discard_max_bytes)."}}},
          {"devices", {slow, past, idle, unknown}}};
}

/// Nothing is slow, and something was.
Json healthy() {
  Json all{{"taken_at", 1'700'000'000.5}, {"devices", Json::array()}};
  all["why"] = {{"verdict", "ok"},
                {"summary", "No drive is slower than usual."},
                {"remarks", ""},
                {"past", "nvme3n1 was slow from 22:08:20 UTC until 4 min ago: writes took up to 120 ms."},
                {"next", "Look at its temperature."}};
  for (int i = 0; i < 10; ++i) {
    Json one = device("nvme" + std::to_string(i) + "n1", i == 9 ? "idle" : "ok");
    one["use"] = i % 3 == 0 ? "/srv/pg" + std::to_string(i) : i % 3 == 1 ? "vg-data" : "";
    one["nvme"] = nullptr;
    all["devices"].push_back(one);
  }
  all["devices"][3]["spike_seconds"] = 31;
  return all;
}

/// Ten drives, of which the first is slow.
Json ill() {
  Json all = devices();
  const Json others = healthy()["devices"];
  all["devices"].insert(all["devices"].end(), others.begin() + 4, others.end());
  return all;
}

Json live() {
  Json bounds = Json::array();
  for (int word = 0; word < 211; ++word) {
    bounds.push_back(std::exp2((word - 161) / 8.0));
  }
  Json levels = Json::array();
  for (int second = 0; second < 120; ++second) {
    levels.push_back(second < 10                  ? Json()
                     : second == 50               ? Json("")
                     : second > 80 && second < 92 ? Json("60:1234543210000001110011")
                                                  : Json("60:123454321"));
  }
  return {{"device", "nvme0n1"},
          {"heat", {{"operation", "read"}, {"levels", levels}}},
          {"bounds_seconds", bounds},
          {"marks",
           {{"spikes",
             {{{"begin", 1'699'999'700.0},
               {"end", 1'699'999'731.0},
               {"operation", "write"},
               {"words", "because the drive is collecting garbage"},
               {"peak_seconds", 0.12}},
              {{"begin", 1'699'999'958.0},
               {"end", nullptr},
               {"operation", "read"},
               {"words", "because fstrim is trimming a file system on it"},
               {"peak_seconds", 0.024}}}}}}};
}

Json bios(double ios, Json p50, Json p99) {
  return {{"ios_per_second", ios},
          {"bytes_per_second", ios * 4096},
          {"p50_seconds", std::move(p50)},
          {"p99_seconds", std::move(p99)}};
}

Json layer(const std::string& name, const std::string& title, const std::string& kind, const Json& members) {
  return {{"name", name},
          {"title", title},
          {"kind", kind},
          {"members", members},
          {"health", ""},
          {"bad", false},
          {"suspended", false},
          {"missing_members", nullptr},
          {"read", bios(0, nullptr, nullptr)},
          {"write", bios(0, nullptr, nullptr)}};
}

Json place(const char* name, const char* kind, int floor) { return {{"name", name}, {"kind", kind}, {"floor", floor}}; }

Json stacks() {
  Json data = layer("dm-3", "vg-data", "lvm", {"md0"});
  data["read"] = bios(1200, 9e-5, 2.4e-3);
  data["write"] = bios(300, 4e-4, 3.1e-3);
  data["added_latency_seconds"] = 2.1e-4;
  Json pool = layer("dm-4", "vg-pool", "thin_pool", {"dm-1", "dm-2"});
  pool["write"] = bios(10, 1e-3, 0.04);
  Json suspended = layer("dm-5", "vg-vm1", "snapshot", {"dm-4"});
  suspended["suspended"] = suspended["bad"] = true;
  suspended["health"] = "suspended";
  Json degraded = layer("md0", "", "raid1", {"nvme0n1p1"});
  degraded["read"] = bios(1200, 8e-5, 2.2e-3);
  degraded["bad"] = true;
  degraded["missing_members"] = 1;
  degraded["health"] = "1 member is missing; recover, 45 % done";
  Json well = layer("md1", "", "raid0", {"sda", "sdb"});
  well["missing_members"] = 0;
  Json left_out = layer("md2", "archive", "raid6", {"sdc", "sdd", "sde", "sdf"});
  left_out["missing_members"] = 0;
  left_out["health"] = "check, 3 % done";
  left_out["mountpoints"] = {"/srv/archive", "/home"};
  left_out.erase("read");
  left_out.erase("write");
  Json swap = layer("zram0", "", "zram", Json::array());
  swap.erase("read");
  return {{"stacks",
           {{{"mountpoint", "/"}, {"places", {place("sda1", "partition", 0), place("sda", "disk", 1)}}},
            {{"mountpoint", "/srv/db"},
             {"places",
              {place("dm-3", "lvm", 0), place("md0", "raid1", 1), place("nvme0n1p1", "partition", 2),
               place("nvme0n1", "disk", 3)}}},
            {{"mountpoint", "/srv/wal"},
             {"places",
              {place("md0p1", "partition", 0), place("md0", "raid1", 1), place("nvme0n1p1", "partition", 2),
               place("nvme0n1", "disk", 3)}}},
            {{"mountpoint", nullptr},
             {"places",
              {place("dm-5", "snapshot", 0), place("dm-4", "thin_pool", 1), place("dm-1", "lvm", 2),
               place("sdb", "disk", 3), place("dm-2", "lvm", 2), place("sdb", "disk", 3)}}},
            {{"mountpoint", nullptr},
             {"places", {place("md1", "raid0", 0), place("sda", "disk", 1), place("sdb", "disk", 1)}}}}},
          {"layers", {data, pool, suspended, degraded, well, left_out, swap}},
          {"left_out", 0},
          {"not_measured", ""}};
}

Json attributed(double ios, double bytes, double device_seconds) {
  return {{"ios", ios}, {"bytes", bytes}, {"device_seconds", device_seconds}};
}

Json tenant(const std::string& name, const Json& read, const Json& write, const Json& discard) {
  return {{"name", name},
          {"title", name == "/" ? "the system (units without I/O accounting)" : name},
          {"read", read},
          {"write", write},
          {"discard", discard}};
}

Json tenants_answer(double taken_at, const Json& tenants) {
  return {{"run", "1"}, {"taken_at", taken_at}, {"tenants", tenants}, {"paths", Json::array()}};
}

/// Over 50 s; who did nothing, or only before, is not shown.
Tenants tenants() {
  const Json none = attributed(0, 0, 0);
  const Json before{tenant("postgresql.service", attributed(1000, 8e6, 1), none, none), tenant("/", none, none, none),
                    tenant("cron.service", attributed(5, 2e4, 1e-3), none, none)};
  const Json after{tenant("postgresql.service", attributed(101'000, 827.2e6, 26), attributed(5000, 80e6, 2), none),
                   tenant("/", none, attributed(50, 409'600, 0.025), none),
                   tenant("cron.service", attributed(5, 2e4, 1e-3), none, none),
                   tenant("backup.service", none, attributed(10, 1e6, 0.1), attributed(300, 1.2e9, 30))};
  return tenants_between({{"nvme0n1", tenants_answer(100, before)}, {"sda", tenants_answer(100, before)}},
                         {{"nvme0n1", tenants_answer(150, after)}, {"sda", tenants_answer(150, before)}});
}

State state() {
  State result;
  result.address = "http://127.0.0.1:10936";
  result.host = "db7";
  result.overview = overview_from(devices());
  result.seconds = seconds_from(live());
  result.volumes = volumes_from(stacks(), *result.overview);
  result.tenants = tenants();
  result.gaps =
      std::vector<Gap>{{"Health, wear and write amplification of sda", "log pages are read only from NVMe drives"}};
  return result;
}

class Golden : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  static void expect(const std::string& name, const Grid& grid) {
    const std::string path = std::string(SSDPULSE_SOURCE_DIR) + "/tests/fixtures/top/" + name + ".txt";
    if (const char* wanted = std::getenv("SSDPULSE_TEST_GOLDEN"); wanted != nullptr && std::string(wanted) == "write") {
      std::ofstream(path) << grid.text();
    }
    std::ostringstream golden;
    golden << std::ifstream(path).rdbuf();
    EXPECT_EQ(grid.text(), golden.str()) << path;
  }
};

View of(Screen screen) {
  View view;
  view.screen = screen;
  view.selected = "nvme0n1";
  return view;
}

struct Size {
  std::size_t width;
  std::size_t height;
};
constexpr Size kSizes[] = {{80, 24}, {100, 30}, {132, 43}, {200, 60}};
constexpr std::pair<const char*, Screen> kScreens[] = {{"drives", Screen::overview},
                                                       {"device", Screen::device},
                                                       {"volumes", Screen::volumes},
                                                       {"tenants", Screen::tenants},
                                                       {"help", Screen::help}};

std::string file_of(const std::string& name, Size size) {
  return name + "_" + std::to_string(size.width) + "x" + std::to_string(size.height);
}

TEST_F(Golden, each_view_at_four_sizes_and_a_narrow_one) {
  State all = state();
  all.overview = overview_from(ill());
  for (const auto& [name, screen] : kScreens) {
    for (const Size size : kSizes) {
      expect(file_of(name, size), draw(all, of(screen), size.width, size.height, true));
    }
    expect(file_of(name, {40, 10}), draw(all, of(screen), 40, 10, true));
  }
  expect("device_80x24_ascii", draw(all, of(Screen::device), 80, 24, false));
}

TEST_F(Golden, healthy_is_quiet) {
  State all = state();
  all.overview = overview_from(healthy());
  all.volumes = volumes_from(stacks(), *all.overview);
  for (const Size size : kSizes) {
    expect(file_of("healthy_drives", size), draw(all, of(Screen::overview), size.width, size.height, true));
  }
}

TEST(top_screen, what_is_over_is_small) {
  Json all = healthy();
  const std::string over = all["why"]["past"];
  for (int i = 0; i < 10; ++i) {
    all["why"]["past"] = all["why"]["past"].get<std::string>() + " Then another one was slow.";
  }
  State state;
  state.overview = overview_from(all);
  const std::string text = draw(state, {}, 80, 24, true).text();
  std::istringstream lines(text.substr(text.find(over.substr(0, 20))));
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  EXPECT_TRUE(line.ends_with(" ...")) << text;
  std::getline(lines, line);
  EXPECT_EQ(line, "") << text;
}

TEST_F(Golden, nothing_is_there) {
  State none;
  none.address = "http://127.0.0.1:10936";
  Json answer = healthy();
  answer["devices"] = Json::array();
  answer["why"] = {{"verdict", "unknown"}, {"summary", "No drive is measured."}};
  none.overview = overview_from(answer);
  none.volumes = volumes_from({{"stacks", Json::array()}, {"layers", Json::array()}}, *none.overview);
  none.tenants = tenants_between({}, {{"sda", {{"tenants", nullptr}, {"paths", Json::array()}}}});
  for (const auto& [name, screen] : kScreens) {
    expect(file_of(std::string("empty_") + name, {80, 24}), draw(none, of(screen), 80, 24, true));
  }
}

/// What somebody else chose, with all that a terminal could take for a command.
const std::string kHostile = "\xe6\xbc\xa2\x1b[2J\x1b]0;x\x07\xe2\x80\xae\n\x9b" + std::string(300, 'x');

TEST_F(Golden, hostile_and_very_long_names_stay_in_their_columns) {
  Json drives = ill();
  Json volumes = stacks();
  for (const char* field : {"name", "title", "use", "model"}) {
    drives["devices"][1][field] = kHostile;
  }
  for (const char* field : {"name", "title", "kind", "health"}) {
    volumes["layers"][3][field] = kHostile;
  }
  volumes["layers"][3]["missing_members"] = nullptr;
  volumes["layers"][3]["members"] = std::vector<std::string>(1000, kHostile);
  volumes["stacks"][0]["mountpoint"] = volumes["stacks"][1]["mountpoint"] = kHostile;
  State odd = state();
  odd.overview = overview_from(drives);
  odd.volumes = volumes_from(volumes, *odd.overview);
  odd.tenants->tenants[0].title = odd.tenants->tenants[1].drive = kHostile;
  odd.host = odd.address = kHostile;
  for (const auto& [name, screen] : kScreens) {
    expect(file_of(std::string("hostile_") + name, {80, 24}), draw(odd, of(screen), 80, 24, true));
    for (std::size_t width = 1; width <= 240; width += 7) {
      const std::string text = draw(odd, of(screen), width, 24, true).text();
      EXPECT_EQ(text.find_first_of("\x1b\x07\x9b"), std::string::npos);
      EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 24);
    }
  }
}

TEST_F(Golden, five_hundred_volumes) {
  Json all{{"stacks", Json::array()}, {"layers", Json::array()}};
  for (int i = 0; i < 500; ++i) {
    const std::string name = "dm-" + std::to_string(i);
    all["layers"].push_back(layer(name, "vg-lv" + std::to_string(i), "lvm", {"sda1"}));
    if (i < 256) {
      all["stacks"].push_back(
          {{"mountpoint", "/srv/" + std::to_string(i)},
           {"places", {place(name.c_str(), "lvm", 0), place("sda1", "partition", 1), place("sda", "disk", 2)}}});
    } else {
      all["layers"].back()["mountpoints"] = {"/srv/" + std::to_string(i)};
    }
  }
  State many = state();
  many.volumes = volumes_from(all, *many.overview);
  View view = of(Screen::volumes);
  view.order = Order::name;
  expect("many_volumes_80x24", draw(many, view, 80, 24, true));
  press(view, {Key::end}, *many.overview, *many.volumes);
  expect("many_volumes_end_80x24", draw(many, view, 80, 24, true));
  EXPECT_EQ(selected(*many.volumes, view)->id, "dm-99/1");
  view.filter = "/srv/499";
  ASSERT_EQ(shown(*many.volumes, view).size(), 1U) << "what is mounted beyond 256 stacks is known, too";
}

TEST_F(Golden, volumes_that_are_not_measured) {
  Json all = stacks();
  all["not_measured"] = "there was none when the daemon started, and it attaches programs only then";
  for (Json& one : all["layers"]) {
    one.erase("read");
    one.erase("write");
    one.erase("added_latency_seconds");
  }
  State unmeasured = state();
  unmeasured.volumes = volumes_from(all, *unmeasured.overview);
  expect("volumes_not_measured_80x24", draw(unmeasured, of(Screen::volumes), 80, 24, true));
}

TEST_F(Golden, filter_and_no_answer) {
  View view;
  view.filter = "SRV";
  view.typing = true;
  view.paused = true;
  expect("filter_80x24", draw(state(), view, 80, 24, true));
  State gone = state();
  gone.trouble = "no daemon answers at http://127.0.0.1:10936 (Couldn't connect to server); is it running?";
  expect("no_answer_80x24", draw(gone, {}, 80, 24, true));
}

TEST(top_keys, do_what_the_help_says) {
  const Overview overview = overview_from(devices());
  View view;
  const auto type = [&](const std::string& characters) {
    for (const char c : characters) {
      press(view, {Key::character, c}, overview);
    }
  };
  press(view, {Key::down}, overview);
  EXPECT_EQ(view.selected, "nvme10n1");
  type("jjjj");
  EXPECT_EQ(view.selected, "sdb");
  type("k");
  EXPECT_EQ(view.selected, "sda");
  press(view, {Key::enter}, overview);
  EXPECT_EQ(view.screen, Screen::device);
  type("o");
  EXPECT_EQ(heat_name(view.heat), "write");
  press(view, {Key::escape}, overview);
  EXPECT_EQ(view.screen, Screen::overview);
  type("/nvme1q");
  EXPECT_TRUE(view.typing);
  EXPECT_FALSE(view.over);
  press(view, {Key::backspace}, overview);
  press(view, {Key::enter}, overview);
  EXPECT_EQ(view.filter, "nvme1");
  ASSERT_EQ(shown(overview, view).size(), 1U);
  EXPECT_EQ(selected(overview, view)->name, "nvme10n1");
  press(view, {Key::escape}, overview);
  EXPECT_EQ(view.filter, "");
  type("s");
  EXPECT_EQ(shown(overview, view).front()->name, "nvme0n1");
  EXPECT_EQ(shown(overview, view).back()->name, "sdb");
  type("p?");
  EXPECT_TRUE(view.paused);
  EXPECT_EQ(view.screen, Screen::help);
  type("?");
  EXPECT_EQ(view.screen, Screen::overview);
  type("q");
  EXPECT_TRUE(view.over);
}

/// The first is of another minute.
Json past_tenants() {
  Json other = tenant("other", attributed(9, 9e6, 9), attributed(0, 0, 0), attributed(0, 0, 0));
  Json backup = tenant("backup.service", attributed(3000, 12e6, 6), attributed(600, 2.4e6, 1), attributed(0, 0, 0));
  other["point"] = 0;
  backup["point"] = 1;
  return {other, backup};
}

Json history() {
  const auto kind = [](double ios, double p99) {
    return Json{{"ios", {1, ios}},
                {"bytes", {1, ios * 4096}},
                {"p50", {nullptr, p99 / 10}},
                {"p99", {nullptr, p99}},
                {"p999", {nullptr, p99 * 2}}};
  };
  return {
      {"step_seconds", 60},
      {"points",
       {{"start", {1'699'999'140, 1'699'999'200}},
        {"measured_seconds", {60.0, 30.0}},
        {"read", kind(3000, 3e-3)},
        {"write", kind(600, 1e-3)},
        {"commit", kind(60, 5e-3)}}},
      {"spikes",
       {{{"begin", 1'699'999'210.0},
         {"seconds", 20.0},
         {"operation", "read"},
         {"cause", "discard"},
         {"words", "because fstrim is trimming a file system on it"},
         {"sentences", {"97 % of the slow time was spent in the device."}},
         {"peak_seconds", 0.024}},
        {{"begin", 1'699'990'000.0}, {"seconds", 20.0}, {"operation", "write"}, {"cause", ""}, {"peak_seconds", 0.5}}}},
      {"tenants", past_tenants()}};
}

State past_state() {
  const double at = 1'699'999'230;
  State result = state();
  const Json why{{"why", {{"verdict", "slow"}, {"summary", "nvme0n1: reads took up to 24 ms."}, {"next", ""}}}};
  Json quiet = history();
  quiet["spikes"] = Json::array();
  result.overview = overview_at(at, devices(), why, {{"nvme10n1", history()}, {"nvme0n1", quiet}});
  result.tenants = tenants_at(at, {{"nvme10n1", history()}, {"sda", Json()}});
  Json minutes{{"minutes", Json::array()}};
  for (int minute = 0; minute < 100; ++minute) {
    minutes["minutes"].push_back(
        {{"start", 1'699'999'200 - 60 * minute},
         {"latencies",
          {{"read_total", {{"words", {{60U, 5U}, {61U, 500U}, {70U + static_cast<unsigned>(minute % 9), 1U}}}}}}}});
  }
  result.seconds = minutes_at(at, "read", 120, live(), history(), minutes);
  return result;
}

TEST_F(Golden, the_past) {
  View view;
  view.at = 1'699'999'230;
  expect("past_120x40", draw(past_state(), view, 120, 40, true));
  view.screen = Screen::device;
  view.selected = "nvme0n1";
  expect("past_device_80x24", draw(past_state(), view, 80, 24, true));
  view.screen = Screen::tenants;
  expect("past_tenants_80x24", draw(past_state(), view, 80, 24, true));
}

TEST(top_screen, what_waits_has_taken_longer_than_all_that_completed) {
  Json all = devices();
  all["devices"][0]["now"]["read"]["standstill_seconds"] = 11.0;
  State hung = state();
  hung.overview = overview_from(all);
  EXPECT_NE(draw(hung, View{}, 120, 40, true).text().find("> 11 s"), std::string::npos);
}

TEST(top_past, has_the_figures_of_the_minute_and_nothing_that_is_not_known) {
  const Overview overview = *past_state().overview;
  ASSERT_EQ(overview.drives.size(), 4U);
  const Drive& slow = overview.drives[0];  // was fourth: what was slow then comes first
  EXPECT_EQ(slow.name, "nvme10n1");
  EXPECT_EQ(slow.state, "slow");
  EXPECT_EQ(slow.cause, "reads: because fstrim is trimming a file system on it");
  EXPECT_EQ(slow.read.ios_per_second, 100);  // over 30 measured seconds
  EXPECT_EQ(slow.read.p99, 3e-3);
  EXPECT_EQ(slow.read.baseline_p99, std::nullopt);
  EXPECT_EQ(slow.temperature, std::nullopt);
  EXPECT_EQ(overview.drives[1].state, "ok");
  EXPECT_FALSE(overview.drives[2].measured);
  EXPECT_EQ(overview.drives[2].state, "unknown");
}

TEST(top_past, a_minute_that_the_history_does_not_have_is_not_known) {
  const Overview overview = overview_at(1'699'999'260, devices(), Json(), {{"nvme0n1", history()}});
  EXPECT_FALSE(overview.drives[0].measured);
  EXPECT_EQ(overview.drives[0].state, "unknown");
}

TEST(top_past, columns_are_minutes_up_to_the_selected_one) {
  const Seconds seconds = *past_state().seconds;
  ASSERT_EQ(seconds.levels.size(), 120U);
  EXPECT_EQ(seconds.until, 1'699'999'260);
  EXPECT_FALSE(seconds.levels[19]);
  ASSERT_TRUE(seconds.levels[20]);
  EXPECT_EQ((*seconds.levels[119])[60], 3U);
  EXPECT_EQ((*seconds.levels[119])[61], 9U);
  ASSERT_EQ(seconds.spikes.size(), 1U);  // the other one was before
}

TEST(top_keys, step_back_and_return) {
  Overview overview = overview_from(devices());
  View view;
  press(view, {Key::character, ']'}, overview);
  EXPECT_EQ(view.at, std::nullopt);
  press(view, {Key::character, '['}, overview);
  EXPECT_EQ(view.at, overview.taken_at - 60);
  press(view, {Key::character, '{'}, overview);
  press(view, {Key::character, ']'}, overview);
  EXPECT_EQ(view.at, overview.taken_at - 3600);
  press(view, {Key::character, 'n'}, overview);
  EXPECT_EQ(view.at, std::nullopt);
}

TEST(top_screen, what_is_on_a_drive_is_shown_beside_its_cause) {
  for (std::size_t width = 80; width <= 240; ++width) {
    const std::string text = draw(state(), {}, width, 24, true).text();
    const std::size_t row = text.find("▲ slow", text.find("\nDrive"));
    ASSERT_NE(row, std::string::npos);
    EXPECT_EQ(text.substr(text.rfind('\n', row) + 1, 17), "/srv/db (nvme0n1)") << width;
  }
}

TEST(top_words, of_a_drive_fit) {
  EXPECT_EQ(drive_text("/srv/pgwal", "nvme0n1", 20), "/srv/pgwal (nvme0n1)");
  EXPECT_EQ(drive_text("/srv/pgwal", "nvme0n1", 19), "/srv/pgw~ (nvme0n1)");
  EXPECT_EQ(drive_text("/srv/pgwal", "nvme0n1", 14), "/sr~ (nvme0n1)");
  EXPECT_EQ(drive_text("/srv/pgwal", "nvme0n1", 13), "nvme0n1");
  EXPECT_EQ(drive_text("/srv/pgwal", "nvme0n1", 5), "nvme0");
  EXPECT_EQ(drive_text("", "nvme0n1", 20), "nvme0n1");
}

TEST(top_screen, what_is_above_its_usual_is_not_called_ok) {
  Json one = devices();
  one["devices"] = Json::array({device("nvme0n1", "high")});
  one["devices"][0]["above_baseline"] = {{"operation", "commit"}, {"times", 4.2}};
  State high = state();
  high.overview = overview_from(one);
  const std::string screen = draw(high, View{}, 200, 24, true).text();
  EXPECT_NE(screen.find("△ high"), std::string::npos) << screen;
  EXPECT_NE(screen.find("commits: 4.2 times usual"), std::string::npos) << screen;
  EXPECT_EQ(screen.find("✓ as usual"), std::string::npos) << screen;
}

TEST(top_volumes, are_trees_of_which_the_worst_is_first) {
  const auto names = [](Order order, bool reversed = false) {
    View view = of(Screen::volumes);
    view.order = order;
    view.reversed = reversed;
    std::string all;
    const Volumes volumes = volumes_from(stacks(), overview_from(devices()));
    for (const Volume* one : shown(volumes, view)) {
      all += std::string(one->depth, '>') + one->name + " ";
    }
    return all;
  };
  EXPECT_EQ(names(Order::worst),
            "dm-5 >dm-4 >>dm-1 >>>sdb >>dm-2 >>>sdb dm-3 >md0 >>nvme0n1 md0p1 >md0 md1 >sda >sdb md2 ")
      << "the stack of / has no volume; memory that nobody wants measured is left out; what is below md0 is there once";
  EXPECT_EQ(names(Order::name),
            "md2 dm-3 >md0 >>nvme0n1 md0p1 >md0 md1 >sda >sdb dm-5 >dm-4 >>dm-1 >>>sdb >>dm-2 >>>sdb ")
      << "by what is mounted, or the title";
  EXPECT_EQ(names(Order::write).substr(0, 5), "dm-3 ");
  EXPECT_EQ(names(Order::write, true).substr(0, 4), "md2 ");
}

TEST(top_volumes, have_one_line_for_a_partition_and_its_drive_and_for_what_is_mounted_twice) {
  Json all = stacks();
  Json again = all["stacks"][1];
  again["mountpoint"] = "/var/lib/db";
  all["stacks"].push_back(again);
  all["stacks"].push_back(
      {{"mountpoint", "/srv/two"},
       {"fstype", "btrfs"},
       {"places", {place("md2", "raid6", 0), place("sdc2", "partition", 0), place("sdc", "disk", 1)}}});
  Json subvolume = all["stacks"].back();
  subvolume["mountpoint"] = "/home";
  all["stacks"].push_back(subvolume);
  const Volumes volumes = volumes_from(all, overview_from(devices()));
  const auto line = [&](const std::string& name) {
    return *std::find_if(volumes.volumes.begin(), volumes.volumes.end(),
                         [&](const Volume& one) { return one.name == name; });
  };
  EXPECT_EQ(line("dm-3").use, "/srv/db /var/lib/db");
  EXPECT_EQ(line("nvme0n1").use, "nvme0n1p1");
  EXPECT_EQ(line("nvme0n1").state, "▲ slow");
  EXPECT_EQ(line("nvme0n1").read.p99, 2.4e-3);
  EXPECT_EQ(line("md0p1").use, "/srv/wal") << "mounted from a partition of an array";
  EXPECT_FALSE(line("md0p1").measured) << "figures are the array's";
  EXPECT_EQ(line("/srv/two /home").kind, "btrfs");
  EXPECT_EQ(line("md2").depth, 1U);
  EXPECT_EQ(line("sdc").use, "sdc2");
  EXPECT_EQ(line("sdc").depth, 1U);
}

TEST(top_volumes, say_why_there_are_none) {
  const auto screen = [](const Json& answer, const View& view) {
    State all = state();
    all.volumes = volumes_from(answer, *all.overview);
    return draw(all, view, 80, 24, true).text();
  };
  View view = of(Screen::volumes);
  view.filter = "nothing";
  EXPECT_NE(screen(stacks(), view).find("No volume fits the filter."), std::string::npos);
  view.filter = "RAID6";
  EXPECT_EQ(shown(volumes_from(stacks(), {}), view).size(), 1U);
  Json many = stacks();
  many["layers_left_out"] = 7;
  EXPECT_NE(screen(many, of(Screen::volumes)).find("\n7 more are not listed.\n"), std::string::npos);
  view = of(Screen::volumes);
  view.at = 1'699'999'230;
  const std::string past = screen(stacks(), view);
  EXPECT_NE(past.find("The history does not have volumes"), std::string::npos);
  EXPECT_EQ(past.find("dm-3"), std::string::npos) << "these are not of then";
}

TEST(top_tenants, have_what_they_did_between_two_answers) {
  const Tenants all = tenants();
  ASSERT_EQ(all.tenants.size(), 3U);
  EXPECT_EQ(all.seconds, 50);
  EXPECT_EQ(all.tenants[0].name, "backup.service") << "most data first, discards included";
  EXPECT_EQ(all.tenants[0].discarded_bytes_per_second, 24e6);
  EXPECT_EQ(all.tenants[0].drive, "nvme0n1");
  const Tenant& database = all.tenants[1];
  EXPECT_EQ(database.ios_per_second, 2100);
  EXPECT_NEAR(database.read_bytes_per_second, 16.384e6, 1);
  EXPECT_NEAR(database.device_ratio, 27. / 50, 1e-9);
  EXPECT_NEAR(*database.mean_seconds, 27. / 105'000, 1e-9);
  EXPECT_EQ(all.tenants[2].title, "the system (units without I/O accounting)");
}

TEST(top_tenants, say_why_there_are_none) {
  const Json named = tenants_answer(100, Json::array());
  const auto reason = [](const Json& before, const Json& after) {
    return tenants_between({{"sda", before}}, {{"sda", after}}).not_known;
  };
  EXPECT_EQ(reason(named, named), "Counted from now on: the first figures follow in a second.");
  EXPECT_EQ(reason(named, tenants_answer(101, Json::array())), "");
  Json other_run = tenants_answer(101, Json::array());
  other_run["run"] = "2";
  EXPECT_NE(reason(named, other_run), "") << "the daemon was restarted: its counts began again";
  Json unnamed = tenants_answer(101, nullptr);
  EXPECT_NE(reason(named, unnamed).find("attribution.names"), std::string::npos);
  unnamed["paths"] = nullptr;
  EXPECT_NE(reason(named, unnamed).find("attribution.enabled"), std::string::npos);
}

TEST(top_tenants, that_came_back_do_not_count_down) {
  const Json much = attributed(1000, 1e9, 5);
  const Json little = attributed(10, 1e6, 0.1);
  const Tenants all = tenants_between({{"sda", tenants_answer(100, Json::array({tenant("a", much, little, little)}))}},
                                      {{"sda", tenants_answer(110, Json::array({tenant("a", little, much, little)}))}});
  ASSERT_EQ(all.tenants.size(), 1U);
  EXPECT_EQ(all.tenants[0].read_bytes_per_second, 0);
  EXPECT_EQ(all.tenants[0].written_bytes_per_second, 99.9e6);
  EXPECT_EQ(all.tenants[0].ios_per_second, 99);
}

TEST(top_volumes, keys_select_filter_and_lead_back) {
  const Overview overview = overview_from(devices());
  const Volumes volumes = volumes_from(stacks(), overview);
  View view;
  const auto type = [&](const std::string& characters) {
    for (const char c : characters) {
      press(view, {Key::character, c}, overview, volumes, tenants());
    }
  };
  type("v");
  EXPECT_EQ(view.screen, Screen::volumes);
  type("jjk");
  EXPECT_EQ(selected(volumes, view)->name, "dm-4");
  EXPECT_EQ(selected(overview, view)->name, "nvme0n1") << "drives have a selection of their own";
  press(view, {Key::enter}, overview, volumes);
  EXPECT_EQ(view.screen, Screen::volumes) << "only drives can be opened";
  press(view, {Key::end}, overview, volumes);
  EXPECT_EQ(selected(volumes, view)->name, "md2");
  press(view, {Key::page_up}, overview, volumes);
  EXPECT_EQ(selected(volumes, view)->name, "dm-2");
  press(view, {Key::home}, overview, volumes);
  press(view, {Key::page_down}, overview, volumes);
  press(view, {Key::down}, overview, volumes);
  press(view, {Key::down}, overview, volumes);
  EXPECT_EQ(selected(volumes, view)->name, "sda");
  press(view, {Key::enter}, overview, volumes);
  EXPECT_EQ(view.screen, Screen::device);
  EXPECT_EQ(view.selected, "sda");
  type("dv/VG-VM");
  press(view, {Key::enter}, overview, volumes);
  EXPECT_EQ(view.screen, Screen::volumes);
  EXPECT_EQ(shown(volumes, view).size(), 6U) << "whole stacks";
  press(view, {Key::escape}, overview, volumes);
  EXPECT_EQ(view.filter, "");
  EXPECT_EQ(view.screen, Screen::volumes) << "the filter goes first";
  press(view, {Key::escape}, overview, volumes);
  EXPECT_EQ(view.screen, Screen::overview);
  type("vv");
  EXPECT_EQ(view.screen, Screen::overview);
  type("vt");
  EXPECT_EQ(view.screen, Screen::tenants);
  EXPECT_EQ(order_text(view), "most data");
  type("j>>");
  EXPECT_EQ(view.selected_tenant, "postgresql.service");
  EXPECT_EQ(order_text(view), "data read");
  EXPECT_EQ(shown(tenants(), view).front()->name, "postgresql.service");
  type("<r");
  EXPECT_EQ(order_text(view), "name (r)");
  EXPECT_EQ(shown(tenants(), view).front()->name, "/");
  type("t");
  EXPECT_EQ(view.screen, Screen::overview);
}

TEST(top_screen, the_selected_drive_is_in_sight) {
  Json many = devices();
  for (int i = 0; i < 50; ++i) {
    many["devices"].push_back(device("sd" + std::to_string(i), "ok"));
  }
  State all = state();
  all.overview = overview_from(many);
  View view;
  view.selected = "sd49";
  EXPECT_NE(draw(all, view, 80, 24, true).text().find("\n/srv/db (sd49) "), std::string::npos);
}

TEST(top_screen, a_cause_has_room_before_the_least_important_columns) {
  const std::string text = draw(state(), {}, 172, 24, true).text();
  EXPECT_NE(text.find("reads: trim by fstrim.ser"), std::string::npos) << text;
  EXPECT_NE(text.find(" usual"), std::string::npos) << text;
  EXPECT_EQ(text.find(" p50 ms"), std::string::npos) << text;
}

TEST(top_screen, nothing_is_claimed_before_the_daemon_was_asked) {
  View view;
  view.screen = Screen::help;
  const auto claims = [&](const State& all) {
    return draw(all, view, 80, 40, true).text().find("every source answers") != std::string::npos;
  };
  State all = state();
  all.gaps.emplace();
  EXPECT_TRUE(claims(all));
  all.gaps.reset();
  EXPECT_FALSE(claims(all));
}

TEST(top_grid, an_overlong_character_is_none) {
  EXPECT_EQ(characters("\xe0\x82\xa9!"), characters("\xff!")) << "U+00A9 in three bytes";
  EXPECT_EQ(characters("\xc2\xa9\xe2\x96\x88"), (std::vector<std::string>{"\xc2\xa9", "\xe2\x96\x88"}));
}

TEST(top_grid, rejects_characters_that_are_not_one_cell_wide) {
  Grid grid(12, 1);
  grid.put(0, 0,
           "a\x1b[2J\xe6\xbc\xa2\xcc\x81\xe2\x80\xae\xff"
           "b");  // escape, wide, combining, direction, invalid UTF-8
  EXPECT_EQ(grid.text(), "a?[2J????b\n");
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
}

/// Any JSON, more often with the expected shape.
Json some_json(int depth);

Json some_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<double>();
    case 2:
      return *rc::gen::arbitrary<int>();
    case 3:
      return *rc::gen::string<std::string>();
    case 4:
      return "60:" + *rc::gen::string<std::string>();
    case 5:
      return *rc::gen::arbitrary<bool>();
    default:
      return some_json(depth - 1);
  }
}

Json some_json(int depth) {
  Json json = *rc::gen::arbitrary<bool>() ? Json::object() : Json::array();
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
    if (json.is_array()) {
      json.push_back(some_value(depth));
    } else {
      json[*rc::gen::element<std::string>("name", "now", "spikes", "read", "devices", "levels", "heat",
                                          "bounds_seconds", "mounts", "tenants", "points", "reads_during_flush",
                                          "queue_share", "layers", "stacks", "places", "health")] = some_value(depth);
    }
  }
  return json;
}

/// Replaces some part of it, at any depth.
void spoil(Json& json) {
  if (!json.is_structured() || json.empty() || *rc::gen::inRange(0, 3) == 0) {
    json = some_value(2);
    return;
  }
  auto at = json.begin();
  std::advance(at, *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(json.size())));
  spoil(*at);
}

RC_GTEST_PROP(top_screen, any_answer_fits_any_size, ()) {
  Json overview = devices();
  Json seconds = live();
  Json volumes = stacks();
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
    spoil(overview);
    spoil(seconds);
    spoil(volumes);
  }
  State all = state();
  all.overview = overview_from(overview);
  all.seconds = seconds_from(seconds);
  all.volumes = volumes_from(volumes, *all.overview);
  all.tenants = tenants_between({{"sda", some_json(3)}}, {{"sda", some_json(3)}});
  all.gaps = gaps_from(some_json(2));
  View view;
  view.screen = *rc::gen::element(Screen::overview, Screen::device, Screen::volumes, Screen::tenants, Screen::help);
  view.selected = *rc::gen::element<std::string>("nvme0n1", "sdb", "");
  view.filter = *rc::gen::element<std::string>("", "nvme", "\xff");
  const auto width = *rc::gen::inRange<std::size_t>(0, 250);
  const auto height = *rc::gen::inRange<std::size_t>(0, 80);
  const bool utf8 = *rc::gen::arbitrary<bool>();
  const Grid grid = draw(all, view, width, height, utf8);
  RC_ASSERT(grid.width() == width);
  RC_ASSERT(grid.height() == height);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      RC_ASSERT(characters(grid.at(x, y).glyph).size() == 1U);
      RC_ASSERT(characters(grid.at(x, y).glyph).front() == grid.at(x, y).glyph);
    }
  }
  press(view,
        {*rc::gen::element(Key::enter, Key::up, Key::down, Key::escape, Key::character),
         *rc::gen::inRange<char>(' ', '~')},
        *all.overview, *all.volumes, *all.tenants);
  RC_ASSERT(draw(all, view, 80, 24, utf8).height() == 24U);
}

}  // namespace
}  // namespace ssdpulse::terminal
