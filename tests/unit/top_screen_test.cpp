// SPDX-License-Identifier: Apache-2.0
// Is the screen of `ssdpulse top` right, at any size, for anything that a daemon may answer? Golden screens are in
// tests/fixtures/top; SSDPULSE_TEST_GOLDEN=write rewrites them, to look at the difference.
#include "exporters/terminal/top_screen.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <time.h>

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
            {"in_flight", 12}}},
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
            {"sentence",
             "nvme0n1: reads take up to 24 ms, 12 times longer than usual (2 ms), since 22:12:38 UTC (42 s), because "
             "fstrim is trimming a file system on it."},
            {"next", "Let trims run in quiet hours, or in smaller pieces (discard_max_bytes)."}}},
          {"devices", {slow, past, idle, unknown}}};
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
  left_out.erase("read");
  left_out.erase("write");
  Json swap = layer("zram0", "", "zram", Json::array());
  swap.erase("read");
  const auto place = [](const char* name, int floor) { return Json{{"name", name}, {"floor", floor}}; };
  return {{"stacks",
           {{{"mountpoint", "/srv/db"}, {"places", {place("dm-3", 0), place("md0", 1), place("nvme0n1p1", 2)}}},
            {{"mountpoint", nullptr}, {"places", {place("md1", 0)}}}}},
          {"layers", {data, pool, suspended, degraded, well, left_out, swap}},
          {"left_out", 0},
          {"not_measured", ""}};
}

State state() {
  State result;
  result.address = "http://127.0.0.1:10936";
  result.overview = overview_from(devices());
  result.seconds = seconds_from(live());
  result.volumes = volumes_from(stacks());
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

TEST_F(Golden, overview_at_four_sizes) {
  expect("overview_40x10", draw(state(), {}, 40, 10, true));
  expect("overview_80x24", draw(state(), {}, 80, 24, true));
  expect("overview_120x40", draw(state(), {}, 120, 40, true));
  expect("overview_200x60", draw(state(), {}, 200, 60, true));
}

TEST_F(Golden, device_at_four_sizes_and_in_ascii) {
  View view;
  view.screen = Screen::device;
  view.selected = "nvme0n1";
  expect("device_40x10", draw(state(), view, 40, 10, true));
  expect("device_80x24", draw(state(), view, 80, 24, true));
  expect("device_120x40", draw(state(), view, 120, 40, true));
  expect("device_200x60", draw(state(), view, 200, 60, true));
  expect("device_80x24_ascii", draw(state(), view, 80, 24, false));
}

View of_volumes() {
  View view;
  view.screen = Screen::volumes;
  return view;
}

TEST_F(Golden, volumes_at_four_sizes) {
  expect("volumes_40x10", draw(state(), of_volumes(), 40, 10, true));
  expect("volumes_80x24", draw(state(), of_volumes(), 80, 24, true));
  expect("volumes_120x40", draw(state(), of_volumes(), 120, 40, true));
  expect("volumes_200x60", draw(state(), of_volumes(), 200, 60, true));
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
  unmeasured.volumes = volumes_from(all);
  expect("volumes_not_measured_80x24", draw(unmeasured, of_volumes(), 80, 24, true));
}

TEST_F(Golden, help_filter_and_no_answer) {
  View view;
  view.screen = Screen::help;
  expect("help_80x24", draw(state(), view, 80, 24, true));
  view = {};
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

Json history() {
  const auto kind = [](double ios, double p99) {
    return Json{{"ios", {1, ios}},
                {"bytes", {1, ios * 4096}},
                {"p50", {nullptr, p99 / 10}},
                {"p99", {nullptr, p99}},
                {"p999", {nullptr, p99 * 2}}};
  };
  return {{"step_seconds", 60},
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
            {{"begin", 1'699'990'000.0},
             {"seconds", 20.0},
             {"operation", "write"},
             {"cause", ""},
             {"peak_seconds", 0.5}}}}};
}

State past_state() {
  const double at = 1'699'999'230;
  State result = state();
  const Json why{{"why", {{"verdict", "slow"}, {"sentence", "nvme0n1: reads took up to 24 ms."}, {"next", ""}}}};
  Json quiet = history();
  quiet["spikes"] = Json::array();
  result.overview = overview_at(at, devices(), why, {{"nvme10n1", history()}, {"nvme0n1", quiet}});
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
}

TEST(top_screen, what_waits_has_taken_longer_than_all_that_completed) {
  Json all = devices();
  all["devices"][0]["now"]["read"]["standstill_seconds"] = 11.0;
  State hung = state();
  hung.overview = overview_from(all);
  EXPECT_NE(draw(hung, View{}, 120, 40, true).text().find(">11s"), std::string::npos);
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
    const std::size_t row = text.find("SLOW");
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
  EXPECT_NE(screen.find("high"), std::string::npos) << screen;
  EXPECT_NE(screen.find("commits: 4.2 times usual"), std::string::npos) << screen;
  EXPECT_EQ(screen.find(" ok "), std::string::npos) << screen;
}

TEST(top_volumes, are_sorted_by_harm_and_then_by_latency) {
  const auto names = [](Order order) {
    View view = of_volumes();
    view.order = order;
    std::string all;
    const Volumes volumes = volumes_from(stacks());
    for (const Volume* one : shown(volumes, view)) {
      all += one->name + " ";
    }
    return all;
  };
  EXPECT_EQ(names(Order::worst), "md0 dm-5 dm-4 dm-3 md1 md2 ") << "memory that nobody wants measured is left out";
  EXPECT_EQ(names(Order::name), "dm-3 dm-4 dm-5 md0 md1 md2 ");
  EXPECT_EQ(names(Order::read), "dm-3 md0 dm-5 dm-4 md1 md2 ");
  EXPECT_EQ(names(Order::write), "dm-4 dm-3 md0 dm-5 md1 md2 ");
  EXPECT_EQ(names(Order::ios), "dm-3 md0 dm-4 dm-5 md1 md2 ");
  EXPECT_EQ(names(Order::bytes), "dm-3 md0 dm-4 dm-5 md1 md2 ");
}

TEST(top_volumes, say_why_there_are_none) {
  const auto screen = [](const Json& answer, const View& view) {
    State all = state();
    all.volumes = volumes_from(answer);
    return draw(all, view, 80, 24, true).text();
  };
  Json none = stacks();
  none["layers"] = Json::array({none["layers"].back()});
  EXPECT_NE(screen(none, of_volumes()).find("\nthis host has no volumes (LVM, LUKS, md and the like)\n"),
            std::string::npos);
  View view = of_volumes();
  view.filter = "nothing";
  EXPECT_NE(screen(stacks(), view).find("no volume fits the filter"), std::string::npos);
  view.filter = "RAID6";
  EXPECT_EQ(shown(volumes_from(stacks()), view).size(), 1U);
  Json many = stacks();
  many["layers_left_out"] = 7;
  EXPECT_NE(screen(many, of_volumes()).find("\n7 more are not listed\n"), std::string::npos);
  view = of_volumes();
  view.at = 1'699'999'230;
  const std::string past = screen(stacks(), view);
  EXPECT_NE(past.find("the history does not have volumes"), std::string::npos);
  EXPECT_EQ(past.find("dm-3"), std::string::npos) << "these are not of then";
}

TEST(top_volumes, hostile_names_stay_in_their_columns) {
  Json all = stacks();
  const std::string wide = "\xe6\xbc\xa2\x1b[2J\xe2\x80\xae\n" + std::string(300, 'x');
  for (const char* field : {"name", "title", "kind", "health"}) {
    all["layers"][3][field] = wide;
  }
  all["layers"][3]["missing_members"] = nullptr;
  all["layers"][3]["members"] = std::vector<std::string>(1000, wide);
  all["stacks"][0]["mountpoint"] = wide;
  State odd = state();
  odd.volumes = volumes_from(all);
  for (const std::size_t width : {40U, 80U, 120U, 200U}) {
    const std::string text = draw(odd, of_volumes(), width, 24, true).text();
    const std::string table = text.substr(text.find("\nvolume ") + 1);
    EXPECT_EQ(table.substr(table.find('\n') + 1).find("2.2ms"), table.find("r p99")) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
  }
}

TEST(top_volumes, keys_select_filter_and_lead_back) {
  const Overview overview = overview_from(devices());
  const Volumes volumes = volumes_from(stacks());
  View view;
  const auto type = [&](const std::string& characters) {
    for (const char c : characters) {
      press(view, {Key::character, c}, overview, volumes);
    }
  };
  type("v");
  EXPECT_EQ(view.screen, Screen::volumes);
  type("jjk");
  EXPECT_EQ(selected(volumes, view)->name, "dm-5");
  EXPECT_EQ(selected(overview, view)->name, "nvme0n1") << "drives have a selection of their own";
  press(view, {Key::enter}, overview, volumes);
  EXPECT_EQ(view.screen, Screen::volumes);
  type("/vg-");
  press(view, {Key::enter}, overview, volumes);
  EXPECT_EQ(view.screen, Screen::volumes);
  EXPECT_EQ(shown(volumes, view).size(), 3U);
  press(view, {Key::escape}, overview, volumes);
  EXPECT_EQ(view.filter, "");
  EXPECT_EQ(view.screen, Screen::volumes) << "the filter goes first";
  press(view, {Key::escape}, overview, volumes);
  EXPECT_EQ(view.screen, Screen::overview);
  type("vv");
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
  EXPECT_NE(text.find("reads: trim by fstrim.service"), std::string::npos) << text;
  EXPECT_NE(text.find(" queue "), std::string::npos) << text;
  EXPECT_EQ(text.find("w p50"), std::string::npos) << text;
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
                                          "bounds_seconds", "mounts", "reads_during_flush", "queue_share", "layers",
                                          "stacks", "places", "health")] = some_value(depth);
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
  all.volumes = volumes_from(volumes);
  all.gaps = gaps_from(some_json(2));
  View view;
  view.screen = *rc::gen::element(Screen::overview, Screen::device, Screen::volumes, Screen::help);
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
        *all.overview, *all.volumes);
  RC_ASSERT(draw(all, view, 80, 24, utf8).height() == 24U);
}

}  // namespace
}  // namespace ssdpulse::terminal
