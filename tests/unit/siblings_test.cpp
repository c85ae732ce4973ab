// SPDX-License-Identifier: Apache-2.0
// Is the slow drive found among its siblings, and nobody else? Eight simulated drives; a few runs of each case in CI,
// all of them, with a table, in the long tier.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bpf/abi/latency_buckets.h"
#include "daemon/siblings/equal_load.h"
#include "daemon/siblings/sibling_groups.h"
#include "tests/unit/sibling_simulation.h"

namespace ssdpulse::siblings {
namespace {

using test::SiblingLoad;
using test::SiblingScene;
using test::SiblingSimulation;

bool long_tier() {
  const char* text = std::getenv("SSDPULSE_TEST_LONG");
  return text != nullptr && *text == '1';
}

std::uint64_t seed_of(int run) {
  const char* text = std::getenv("SSDPULSE_TEST_SEED");
  return (text != nullptr ? std::strtoull(text, nullptr, 10) : 1) * 1000 + static_cast<std::uint64_t>(run);
}

constexpr double kWithin = 900;  // seconds

struct Tally {
  int runs = 0;
  int found = 0;      // all slow drives, within the time
  int innocents = 0;  // runs in which another was named
  double latest = 0;
  double ratio = 0;  // mean, at the end
};

Tally tally(const SiblingScene& scene, int runs) {
  Tally result;
  for (int run = 0; run < runs; ++run) {
    const auto outcome = SiblingSimulation(scene, seed_of(run)).run(scene.slow_after + kWithin);
    bool all = true;
    bool innocent = false;
    for (std::size_t i = 0; i < scene.slowdown.size(); ++i) {
      const std::string name = "nvme" + std::to_string(i) + "n1";
      const bool named = outcome.named.contains(name);
      all = all && (scene.slowdown[i] == 1 || named);
      innocent = innocent || (scene.slowdown[i] == 1 && named);
      result.latest = std::max(result.latest, outcome.named_at[i]);
    }
    ++result.runs;
    result.found += all ? 1 : 0;
    result.innocents += innocent ? 1 : 0;
    if (outcome.last) {
      for (const model::SiblingRatio& one : outcome.last->ratios) {
        result.ratio += one.device == "nvme3n1" && one.operation == model::Operation::read ? one.ratio : 0;
      }
    }
  }
  result.ratio /= runs;
  return result;
}

void print(const std::string& what, const Tally& tally) {
  std::printf("%-34s %4d runs, found %4d, innocents named %d, latest %4.0f s, ratio %.2f\n", what.c_str(), tally.runs,
              tally.found, tally.innocents, tally.latest, tally.ratio);
}

const std::pair<const char*, SiblingLoad> kLoads[] = {{"light", SiblingLoad::light}, {"heavy", SiblingLoad::heavy}};

TEST(Siblings, a_drive_that_is_twice_as_slow_is_found_within_15_minutes) {
  const int runs = long_tier() ? 100 : 3;
  for (const auto& [load_name, load] : kLoads) {
    for (const bool unequal : {false, true}) {
      for (const double slowdown : {1.5, 2.0, 4.0}) {
        SiblingScene scene{.load = load, .unequal = unequal, .array = !unequal};
        scene.slowdown[3] = slowdown;
        const Tally found = tally(scene, runs);
        print(std::string(load_name) + (unequal ? ", unequal" : ", equal") + ", slowed " +
                  std::to_string(slowdown).substr(0, 3),
              found);
        EXPECT_EQ(found.innocents, 0);
        if (slowdown >= 2) {
          // Few I/Os, or few of equal load, for an interval that ends above 1.5 (siblings.md).
          const bool few = slowdown == 2 && (load == SiblingLoad::light || unequal);
          EXPECT_GE(found.found, runs - runs / (few ? 8 : 20));
        }
      }
    }
  }
}

TEST(Siblings, no_healthy_drive_is_named) {
  const int runs = long_tier() ? 200 : 6;
  int named = 0;
  for (int run = 0; run < runs; ++run) {
    SiblingScene scene{.load = run % 3 == 0   ? SiblingLoad::light
                               : run % 3 == 1 ? SiblingLoad::heavy
                                              : SiblingLoad::bursty,
                       .unequal = true,
                       .parallel = run % 2 == 0 ? 8.0 : 2.0,
                       .array = run % 4 < 2,
                       .collects_garbage = true};
    const auto outcome = SiblingSimulation(scene, seed_of(run)).run(1800);
    named += outcome.named.empty() ? 0 : 1;
    EXPECT_TRUE(outcome.named.empty()) << "run " << run << ": " << *outcome.named.begin();
  }
  std::printf("healthy, unequal load: %d runs of 30 minutes, %d with a claim\n", runs, named);
}

TEST(Siblings, two_slow_ones_of_eight_are_both_found) {
  const int runs = long_tier() ? 100 : 2;
  for (const auto& [load_name, load] : kLoads) {
    SiblingScene scene{.load = load};
    scene.slowdown[3] = 2;
    scene.slowdown[5] = 4;
    const Tally found = tally(scene, runs);
    print(std::string("two slow of eight, ") + load_name, found);
    // With few I/Os, two that must both be found are found less often than one.
    EXPECT_GE(found.found, runs - runs / (load == SiblingLoad::light ? 8 : 20));
    EXPECT_EQ(found.innocents, 0);
  }
}

/// Scenes in which nobody may be named.
void expect_nobody(const char* what, const SiblingScene& scene) {
  const int runs = long_tier() ? 50 : 2;
  int named = 0;
  for (int run = 0; run < runs; ++run) {
    named += SiblingSimulation(scene, seed_of(run)).run(scene.slow_after + 1500).named.empty() ? 0 : 1;
  }
  std::printf("%-34s %4d runs, %d with a claim\n", what, runs, named);
  EXPECT_EQ(named, 0);
}

TEST(Siblings, nobody_is_named_if_all_are_slow_or_half_of_them) {
  SiblingScene scene{.load = SiblingLoad::light};
  scene.slowdown = {4, 4, 4, 4, 4, 4, 4, 4};
  expect_nobody("all eight slow", scene);
  scene.slowdown = {4, 4, 4, 4, 1, 1, 1, 1};
  expect_nobody("four of eight slow", scene);
}

TEST(Siblings, nobody_is_named_while_an_array_is_rebuilt) {
  SiblingScene scene{.load = SiblingLoad::light, .rebuild_from = 300};
  scene.slowdown[3] = 4;
  expect_nobody("a member is rebuilt", scene);
}

TEST(Siblings, a_slow_drive_stays_named_for_three_minutes_in_which_it_cannot_be_compared) {
  SiblingScene scene{.load = SiblingLoad::light, .idle_from = 1300, .idle_until = 1400};
  scene.slowdown[3] = 4;
  const double until_the_end = 2100;
  const auto paused = SiblingSimulation(scene, seed_of(0)).run(until_the_end);
  EXPECT_EQ(paused.named_for[3], until_the_end - scene.slow_after - paused.named_at[3]) << "with a gap";
  scene.idle_until = 1e9;
  const auto stopped = SiblingSimulation(scene, seed_of(0)).run(until_the_end);
  const double ended = scene.slow_after + stopped.named_at[3] + stopped.named_for[3];
  EXPECT_GT(ended, scene.idle_from + 180);
  EXPECT_LT(ended, scene.idle_from + 360);
}

TEST(Siblings, what_was_proved_of_a_drive_is_not_said_of_another_of_its_name) {
  SiblingScene scene{.load = SiblingLoad::light, .idle_from = 1300, .replaced_at = 1300};
  scene.slowdown[3] = 4;
  const auto outcome = SiblingSimulation(scene, seed_of(0)).run(1500);
  EXPECT_GT(outcome.named_for[3], 0);
  EXPECT_LE(scene.slow_after + outcome.named_at[3] + outcome.named_for[3],
            scene.replaced_at + static_cast<double>(LoadWindow::kSlice.count()) + 1);
}

TEST(Siblings, nobody_is_named_whose_depth_has_no_equal) {
  SiblingScene scene{.load = SiblingLoad::heavy, .parallel = 1, .depth = {2, 2, 2, 32, 2, 2, 2, 2}};
  expect_nobody("unlike depths", scene);
  scene.depth = {4.2, 4.2, 4.2, 7.8, 4.2, 4.2, 4.2, 4.2};
  expect_nobody("depths that are nearly alike", scene);
}

/// Seldom found, but nobody else is named: deploy/docs/siblings.md.
TEST(Siblings, of_a_busy_array_whose_ios_gather_on_the_slow_member_name_nobody_else) {
  SiblingScene scene{.load = SiblingLoad::shared};
  for (const bool unequal : {false, true}) {
    for (const double slowdown : {2.0, 4.0, 8.0}) {
      scene.unequal = unequal;
      scene.slowdown[3] = slowdown;
      const Tally found = tally(scene, long_tier() ? 50 : 3);
      print(std::string("shared, ") + (unequal ? "varying" : "constant") + ", slowed " +
                std::to_string(slowdown).substr(0, 3),
            found);
      EXPECT_EQ(found.innocents, 0);
    }
  }
}

/// Single reads of 4 KiB for ten slices, each of so long.
LoadWindow single_reads(std::uint64_t ios_per_second, std::int64_t each_ns) {
  LoadWindow window;
  auto io = std::make_shared<model::DeviceIo>();
  model::DeviceTick tick;
  for (int second = 1; second <= 200; ++second) {
    auto interval = std::make_shared<model::DeviceInterval>();
    interval->measured_ms = 1000;
    io = std::make_shared<model::DeviceIo>(*io);
    auto& sizes = io->operations[index(model::Operation::read)].size.words;
    sizes.resize(SIZE_WORDS);
    sizes[size_word(4096)] += ios_per_second;
    auto& did = interval->operations[index(model::Operation::read)];
    did.ios = ios_per_second;
    did.bytes = 4096 * ios_per_second;
    did.device[0] = {{{latency_word(each_ns), ios_per_second}}, ios_per_second * static_cast<std::uint64_t>(each_ns)};
    tick.block.io = io;
    tick.interval = interval;
    window.add(tick, static_cast<double>(ios_per_second) * static_cast<double>(each_ns) / 1e9, false);
    if (second % 5 == 0) {
      window.end_stretch();
    }
    if (second % 20 == 0) {
      window.end_slice();
    }
  }
  return window;
}

TEST(EqualLoad, of_a_drive_that_may_sleep_is_not_that_of_those_that_never_do) {
  constexpr std::int64_t kAwakeNs = 100'000, kWakingNs = 2'000'000;
  const auto ratio = [](std::uint64_t own, std::uint64_t siblings) {
    const LoadWindow idle = single_reads(own, kWakingNs), busy = single_reads(siblings, kAwakeNs);
    const auto found = EqualLoad({&idle, &busy, &busy, &busy}, model::Operation::read).ratio_of(0, 3);
    return found ? found->change.ratio : 0;
  };
  EXPECT_EQ(ratio(5, 100), 0) << "it wakes up for each of them";
  EXPECT_GT(ratio(5, 30), 10) << "they may sleep as well";
  EXPECT_GT(ratio(25, 300), 10) << "it does not sleep either";
}

TEST(LoadWindow, keeps_three_minutes_and_two_loads_a_stretch) {
  LoadWindow window;
  auto io = std::make_shared<model::DeviceIo>();
  model::DeviceTick tick;
  for (int second = 1; second <= 3600; ++second) {
    auto interval = std::make_shared<model::DeviceInterval>();
    interval->measured_ms = 1000;
    io = std::make_shared<model::DeviceIo>(*io);
    for (const auto operation : {model::Operation::read, model::Operation::write}) {
      const std::uint64_t bytes = std::uint64_t{512} << (second % 12);
      io->operations[index(operation)].size.words.resize(SIZE_WORDS);
      io->operations[index(operation)].size.words[size_word(static_cast<std::uint32_t>(bytes))] += 10;
      auto& did = interval->operations[index(operation)];
      did.ios = 10;
      did.bytes = 10 * bytes;
      did.device[0] = {{{latency_word(1'000'000), 10}}, 10'000'000};
    }
    tick.block.io = io;
    tick.interval = interval;
    window.add(tick, 0.5, false);
    if (second % 5 == 0) {
      window.end_stretch();
    }
    if (second % 20 == 0) {
      window.end_slice();
    }
    ASSERT_LE(window.slices().size(), LoadWindow::kSlices + 1);
    for (const auto& slice : window.slices()) {
      ASSERT_LE(slice.cells.size(), 8U);
    }
  }
  EXPECT_EQ(window.slices().front().cells.empty(), false);
  EXPECT_FALSE(window.disturbed());
}

model::DeviceTick device(const std::string& name, const std::string& drive_model, const std::string& firmware = "1") {
  auto made = std::make_shared<model::Device>();
  made->name = name;
  made->model = drive_model;
  made->firmware = firmware;
  made->serial = "of " + name.substr(0, name.find('n', 1));
  made->transport = "nvme";
  made->part = "1";  // as sysfs has it of every namespace
  model::DeviceTick tick;
  tick.block.device = made;
  tick.block.io = std::make_shared<const model::DeviceIo>();
  return tick;
}

struct Host {
  model::Tick tick;
  std::shared_ptr<model::Inventory> inventory = std::make_shared<model::Inventory>();

  std::vector<model::SiblingGroup> groups() {
    tick.inventory = inventory;
    return sibling_groups(tick).groups;
  }
};

TEST(SiblingGroups, are_arrays_of_three_and_models_of_four) {
  Host host;
  for (const char* name : {"nvme0n1", "nvme1n1", "nvme2n1"}) {
    host.tick.devices.push_back(device(name, "A"));
  }
  EXPECT_TRUE(host.groups().empty());
  for (const char* name : {"nvme0n1", "nvme1n1", "nvme2n1"}) {
    host.inventory->memberships.push_back({"md0", name, "md", {}});
  }
  const std::vector<std::string> all{"nvme0n1", "nvme1n1", "nvme2n1"};
  EXPECT_EQ(host.groups(), (std::vector<model::SiblingGroup>{{"md0", model::SiblingKind::array, all}}));
  host.tick.devices.push_back(device("nvme3n1", "A"));
  const std::vector<std::string> four{"nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1"};
  EXPECT_EQ(host.groups(), (std::vector<model::SiblingGroup>{{"md0", model::SiblingKind::array, all},
                                                             {"model", model::SiblingKind::model, four}}));
  host.tick.devices.back() = device("nvme3n1", "A", "2");
  EXPECT_EQ(host.groups().size(), 1U) << "another firmware";
}

TEST(SiblingGroups, are_one_for_arrays_on_the_same_drives) {
  Host host;
  for (const char* name : {"nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1"}) {
    host.tick.devices.push_back(device(name, "A"));
    host.inventory->memberships.push_back({"dm-0", name, "dm", "vg-data"});
    host.inventory->memberships.push_back({"md0", name, "md", {}});
  }
  ASSERT_EQ(host.groups().size(), 1U);
  EXPECT_EQ(host.groups()[0].name, "md0");
}

TEST(SiblingGroups, leave_other_models_and_shared_drives_out) {
  Host host;
  for (const char* name : {"nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1"}) {
    host.tick.devices.push_back(device(name, name == std::string("nvme3n1") ? "B" : "A"));
    host.inventory->memberships.push_back({"md0", name, "md", {}});
  }
  EXPECT_EQ(host.groups()[0].members, (std::vector<std::string>{"nvme0n1", "nvme1n1", "nvme2n1"}));
  auto split = std::make_shared<model::NvmeDrive>();
  auto identity = std::make_shared<model::NvmeIdentity>();
  identity->namespaces = {{"nvme0n1", 1}, {"nvme0n2", 2}};
  split->identity = identity;
  host.tick.devices[0].drive = split;
  EXPECT_TRUE(host.groups().empty()) << "two namespaces of one drive";
  host.tick.devices[0].drive = nullptr;
  EXPECT_EQ(host.groups().size(), 1U);
  model::Device second = *host.tick.devices[0].block.device;
  host.inventory->devices = {second};
  EXPECT_EQ(host.groups().size(), 1U) << "itself is no other";
  second.name = "nvme0n2";
  second.part = "2";
  host.inventory->devices.push_back(second);
  EXPECT_TRUE(host.groups().empty()) << "a second namespace, of which no log is read";
}

TEST(SiblingGroups, units_of_one_target_share_a_drive_and_paths_to_one_unit_do_not) {
  Host host;
  const auto add = [&](const std::string& name, const std::string& serial, const std::string& wwid) {
    model::DeviceTick tick = device(name, "A");
    auto made = std::make_shared<model::Device>(*tick.block.device);
    made->transport = "sas";
    made->part.clear();
    made->serial = serial;
    made->wwid = wwid;
    tick.block.device = made;
    host.tick.devices.push_back(tick);
    host.inventory->devices.push_back(*made);
  };
  for (const char* name : {"sda", "sdb", "sdc", "sdd"}) {
    add(name, std::string("serial of ") + name, std::string("naa.") + name);
  }
  ASSERT_EQ(host.groups().size(), 1U);
  add("sde", "serial of sda", "naa.sda");
  EXPECT_EQ(host.groups().at(0).members.size(), 5U) << "another path to sda, which no multipath device has";
  add("sdf", "serial of sda", "naa.sdf");
  EXPECT_TRUE(host.groups().empty()) << "another unit of the target of sda";
}

TEST(SiblingGroups, beyond_512_places_are_counted_and_smaller_ones_still_compared) {
  Host host;
  for (int i = 0; i < 600; ++i) {
    host.tick.devices.push_back(device("sd" + std::to_string(i), i < 200 ? "A" : i < 590 ? "B" : "C"));
  }
  const auto groups = host.groups();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].members.size() + groups[1].members.size(), 210U);
  EXPECT_EQ(sibling_groups(host.tick).groups_left_out, 1U);
}

TEST(SiblingGroups, of_paths_are_those_of_one_multipath_device) {
  Host host;
  for (const char* name : {"sda", "sdb", "sdc", "sdd"}) {
    host.tick.devices.push_back(device(name, "LUN"));
    host.inventory->memberships.push_back({"dm-0", name, "dm", "mpatha", true});
    host.inventory->memberships.push_back({"dm-1", name, "dm", "vg-data"});
  }
  ASSERT_EQ(host.groups().size(), 1U);
  EXPECT_EQ(host.groups()[0].kind, model::SiblingKind::paths);
}

}  // namespace
}  // namespace ssdpulse::siblings
