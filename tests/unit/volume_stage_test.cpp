// SPDX-License-Identifier: Apache-2.0
// Which floor of a stack adds the time, from made-up counts.
#include "daemon/volumes/volume_stage.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "bpf/abi/latency_buckets.h"

namespace ssdpulse::volumes {
namespace {

using model::Layer;
using model::LayerKind;
using model::Operation;

struct Device {
  std::string name;
  Operation operation;
  std::uint64_t ios;
  double mean_ms;
  std::uint64_t bytes = 0;
  std::uint64_t lost = 0;
  std::int64_t in_flight = 0;
};

Bios host(const std::vector<Device>& devices) {
  Bios bios;
  for (const Device& device : devices) {
    // Several operations of a device follow one another.
    auto io = !bios.empty() && bios.back()->device == device.name ? std::make_shared<model::BioIo>(*bios.back())
                                                                  : std::make_shared<model::BioIo>();
    if (io->device == device.name) {
      bios.pop_back();
    }
    io->device = device.name;
    model::BioOperation& out = io->operations[model::index(device.operation)];
    const auto ns = static_cast<std::int64_t>(device.mean_ms * 1e6);
    out.submitted = device.ios;
    out.bytes = device.bytes;
    out.untimed = device.lost;
    out.in_flight = device.in_flight;
    out.latency.words.resize(LATENCY_OVER_WORD + 1);
    out.latency.words[latency_word(ns)] = device.ios;
    out.latency.sum_ns = static_cast<std::uint64_t>(ns) * device.ios;
    bios.push_back(std::move(io));
  }
  return bios;
}

Bios at_zero(const std::vector<Device>& devices) {
  std::vector<Device> nothing = devices;
  for (Device& device : nothing) {
    device.ios = 0;
    device.bytes = 0;
    device.lost = 0;
  }
  return host(nothing);
}

model::VolumeFigures figures(const std::vector<Device>& devices, const std::vector<Layer>& layers) {
  return figures_between(at_zero(devices), host(devices), 10, layers);
}

Layer layer(const std::string& name, std::vector<std::string> members, LayerKind kind = LayerKind::crypt) {
  return {name, {}, kind, std::move(members)};
}

TEST(Floors, of_a_crypt_layer_that_adds_the_time) {
  const auto found = figures({{"dm-0", Operation::write, 1000, 2.4}, {"sda1", Operation::write, 1000, 0.3}},
                             {layer("dm-0", {"sda1"})});
  ASSERT_EQ(found.floors.size(), 1U);
  const model::FloorTime& floor = found.floors[0];
  EXPECT_EQ(floor.volumes, std::vector<std::string>{"dm-0"});
  EXPECT_EQ(floor.operation, Operation::write);
  EXPECT_NEAR(floor.mean_seconds, 0.0024, 1e-9);
  EXPECT_NEAR(floor.own_seconds, 0.0021, 1e-9);
  EXPECT_TRUE(floor.exact);
}

TEST(Floors, of_two_layers_have_their_own_part_each) {
  const auto found = figures(
      {{"dm-0", Operation::read, 1000, 2.0}, {"dm-1", Operation::read, 1000, 2.5}, {"sda", Operation::read, 1000, 0.5}},
      {layer("dm-0", {"sda"}), layer("dm-1", {"dm-0"})});
  ASSERT_EQ(found.floors.size(), 2U);
  EXPECT_NEAR(found.floors[0].own_seconds, 0.0015, 1e-9);
  EXPECT_NEAR(found.floors[1].own_seconds, 0.0005, 1e-9);
}

TEST(Floors, of_writes_wait_for_flushes_below) {
  const auto found = figures({{"dm-0", Operation::write, 1000, 5.0},
                              {"sda1", Operation::write, 1000, 0.5},
                              {"sda1", Operation::flush, 1000, 4.0}},
                             {layer("dm-0", {"sda1"}, LayerKind::lvm)});
  ASSERT_EQ(found.floors.size(), 1U);
  EXPECT_NEAR(found.floors[0].own_seconds, 0.0005, 1e-9) << "the drive's flushes are not the volume's time";
  EXPECT_FALSE(found.floors[0].exact);
}

TEST(Floors, may_miss_as_many_bios_below_as_were_in_flight) {
  const auto of = [](std::int64_t in_flight, std::uint64_t ended_below) {
    return figures({{"dm-0", Operation::read, 270, 110.0, 270 * 4096, 0, in_flight},
                    {"sda1", Operation::read, ended_below, 5.0, ended_below * 4096}},
                   {layer("dm-0", {"sda1"})})
        .floors;
  };
  EXPECT_TRUE(of(0, 264).empty());
  EXPECT_TRUE(of(100, 250).empty()) << "more than a twentieth may be remapped";
  const auto found = of(6, 264);  // they were below, and decrypted when the window began
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].own_seconds, 0.1027, 1e-4) << "as if the six had been below all the time";
  EXPECT_FALSE(found[0].exact);
}

TEST(Floors, are_none_where_bios_below_were_not_seen_or_not_timed) {
  const auto of = [](const Device& member) {
    return figures({{"dm-0", Operation::write, 1000, 2.0, 4096000}, member}, {layer("dm-0", {"sda1"})}).floors.size();
  };
  EXPECT_EQ(of({"sda1", Operation::write, 1000, 0.5, 4096000}), 1U);
  EXPECT_EQ(of({"sda1", Operation::write, 0, 0, 0}), 0U) << "remapped";
  EXPECT_EQ(of({"sda1", Operation::write, 1000, 0.5, 2048000}), 0U) << "half of each was remapped";
  EXPECT_EQ(of({"sda1", Operation::write, 1000, 0.5, 4096000, 50}), 0U) << "the slow ones may be those that were lost";
}

TEST(Floors, are_none_of_kinds_that_do_more_than_pass_bios_on) {
  for (const LayerKind kind : {LayerKind::thin, LayerKind::snapshot, LayerKind::cache, LayerKind::integrity,
                               LayerKind::raid5, LayerKind::raid6, LayerKind::bcache, LayerKind::drbd}) {
    EXPECT_TRUE(figures({{"dm-0", Operation::read, 1000, 2.0}, {"sda1", Operation::read, 1000, 0.5}},
                        {layer("dm-0", {"sda1"}, kind)})
                    .floors.empty())
        << name(kind, model::kLayerKindNames);
  }
  const auto mixed = figures(
      {{"dm-0", Operation::read, 500, 2.0}, {"dm-1", Operation::read, 500, 2.0}, {"sda1", Operation::read, 1000, 0.5}},
      {layer("dm-0", {"sda1"}, LayerKind::lvm), layer("dm-1", {"sda1"}, LayerKind::snapshot)});
  EXPECT_TRUE(mixed.floors.empty());
}

TEST(Floors, are_none_of_lvm_where_it_may_be_raid) {
  const std::vector<Device> devices{{"dm-1", Operation::write, 1000, 1.0},
                                    {"dm-2", Operation::write, 1000, 1.0},
                                    {"dm-3", Operation::write, 1000, 9.0}};  // the old data are read first
  EXPECT_TRUE(figures(devices, {layer("dm-3", {"dm-1", "dm-2"}, LayerKind::lvm)}).floors.empty());
  EXPECT_EQ(figures(devices, {layer("dm-3", {"dm-1"}, LayerKind::lvm)}).floors.size(), 1U);
}

TEST(Floors, of_a_mirror_are_no_claim_for_writes) {
  const auto found = figures({{"md0", Operation::write, 1000, 1.1},
                              {"sda", Operation::write, 1000, 1.0},
                              {"sdb", Operation::write, 1000, 0.9}},
                             {layer("md0", {"sda", "sdb"}, LayerKind::raid1)});
  EXPECT_TRUE(found.floors.empty()) << "two writes at the same time, and none of it needs be the array's";
}

TEST(Floors, are_those_of_the_time_in_which_no_layer_changed) {
  Volumes stage;
  model::Tick tick;
  tick.host = std::make_shared<const model::HostSignals>();
  tick.tenants = std::make_shared<const model::Tenants>();
  for (const char* name : {"sda", "sdb"}) {
    auto disk = std::make_shared<model::Device>();
    disk->name = name;
    model::DeviceTick device;
    device.block.device = disk;
    device.interval = std::make_shared<const model::DeviceInterval>();
    tick.devices.push_back(device);
  }
  const auto after = [&](int seconds, const std::vector<Device>& devices, const std::vector<Layer>& layers) {
    auto inventory = std::make_shared<model::Inventory>();
    inventory->layers = layers;
    tick.inventory = inventory;
    tick.at += std::chrono::seconds(seconds);
    tick.bios = host(devices);
    model::Snapshot snapshot;
    if (const auto values = stage.observe(tick).values) {
      values(snapshot);
    }
    return snapshot.volume_figures;
  };
  const std::vector<Layer> mirror{layer("md0", {"sda", "sdb"}, LayerKind::raid1)};
  const auto devices = [](std::uint64_t ios) {
    return std::vector<Device>{{"md0", Operation::read, ios, 2.0}, {"sda", Operation::read, ios, 1.0}};
  };
  EXPECT_EQ(after(0, devices(0), mirror), nullptr);
  EXPECT_NE(after(6, devices(1000), mirror), nullptr);
  EXPECT_EQ(after(1, devices(1100), {layer("md0", {"sda"}, LayerKind::raid1)}), nullptr) << "a member was failed";
  const auto again = after(6, devices(2100), {layer("md0", {"sda"}, LayerKind::raid1)});
  ASSERT_NE(again, nullptr);
  ASSERT_EQ(again->floors.size(), 1U);
  EXPECT_EQ(again->floors[0].ended, 1000U) << "only what happened since";
}

TEST(Floors, of_volumes_on_the_same_disk_are_one) {
  const auto found = figures(
      {{"dm-0", Operation::read, 900, 1.0}, {"dm-1", Operation::read, 100, 11.0}, {"sda2", Operation::read, 1000, 1.0}},
      {layer("dm-0", {"sda2"}), layer("dm-1", {"sda2"})});
  ASSERT_EQ(found.floors.size(), 1U);
  EXPECT_EQ(found.floors[0].volumes, (std::vector<std::string>{"dm-0", "dm-1"}));
  EXPECT_NEAR(found.floors[0].own_seconds, 0.001, 1e-9) << "which of the two it is cannot be known";
}

TEST(Floors, are_left_out_where_a_member_is_not_measured_or_little_happened) {
  EXPECT_TRUE(figures({{"dm-0", Operation::read, 1000, 2}}, {layer("dm-0", {"sda"})}).floors.empty());
  EXPECT_TRUE(figures({{"dm-0", Operation::read, 10, 2}, {"sda", Operation::read, 10, 1}}, {layer("dm-0", {"sda"})})
                  .floors.empty());
}

TEST(Figures, are_those_of_the_time_between_two_readings) {
  const auto before = host({{"dm-0", Operation::read, 1000, 8, 4096000}});
  const auto now = host({{"dm-0", Operation::read, 1500, 8, 6144000}});
  const auto found = figures_between(before, now, 10, {});
  ASSERT_EQ(found.devices.size(), 1U);
  EXPECT_NEAR(found.devices[0].read_bytes_per_second, 204800, 1e-6);
  ASSERT_TRUE(found.devices[0].read);
  EXPECT_EQ(found.devices[0].read->ended, 500U);
  EXPECT_NEAR(found.devices[0].read->mean_seconds, 0.008, 1e-9);
  EXPECT_NEAR(found.devices[0].read->p99_seconds, 0.008, 0.0008);
  EXPECT_FALSE(found.devices[0].write);
}

TEST(Figures, of_counts_that_began_again_are_none) {
  const auto before = host({{"dm-0", Operation::read, 1000, 8}});
  EXPECT_TRUE(figures_between(before, host({{"dm-0", Operation::read, 10, 8}}), 10, {}).devices.empty());
  auto again = host({{"dm-0", Operation::read, 2000, 8}});
  auto later = std::make_shared<model::BioIo>(*again[0]);
  later->since += std::chrono::seconds(5);
  EXPECT_TRUE(figures_between(before, {later}, 10, {}).devices.empty());
}

/// A floor whose bios take `mean_ms`, of which `own_ms` is its own.
model::FloorTime floor(double mean_ms, double own_ms) {
  return {{"dm-0"}, {"sda1"}, Operation::write, 1000, mean_ms / 1e3, own_ms / 1e3, true};
}

std::vector<model::SlowFloor> after(SlowFloors& floors, int intervals, double mean_ms, double own_ms) {
  std::vector<model::SlowFloor> slow;
  for (int i = 0; i < intervals; ++i) {
    slow = floors.observe({floor(mean_ms, own_ms)}, std::chrono::seconds(5));
  }
  return slow;
}

TEST(SlowFloors, is_slow_after_two_intervals_beyond_what_is_usual_and_no_longer_than_it_is) {
  SlowFloors floors;
  EXPECT_TRUE(after(floors, 12, 0.5, 0.2).empty());
  EXPECT_TRUE(after(floors, 1, 40, 39).empty()) << "what happens once is in one interval";
  const auto slow = after(floors, 1, 40, 39);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_NEAR(slow[0].usual_own_seconds, 0.0002, 1e-9);
  EXPECT_NEAR(slow[0].time.own_seconds, 0.039, 1e-9);
  EXPECT_EQ(slow[0].slow_for, std::chrono::seconds(10));
  EXPECT_EQ(after(floors, 1, 40, 39).size(), 1U);
  EXPECT_TRUE(after(floors, 1, 0.5, 0.2).empty());
  EXPECT_TRUE(after(floors, 1, 40, 39).empty());
}

TEST(SlowFloors, is_none_that_takes_little_or_as_much_as_usual_or_less_than_what_is_below) {
  for (const auto& [mean_ms, own_ms] : {std::pair(1.1, 0.9), std::pair(40.0, 19.0)}) {
    SlowFloors floors;
    after(floors, 12, 0.5, 0.2);
    EXPECT_TRUE(after(floors, 5, mean_ms, own_ms).empty()) << mean_ms;
  }
  SlowFloors always;
  after(always, 12, 20, 15);
  EXPECT_TRUE(after(always, 1, 60, 59).empty());
  EXPECT_EQ(after(always, 2, 120, 119).size(), 1U);
  SlowFloors soon;
  after(soon, 6, 0.5, 0.2);
  EXPECT_TRUE(after(soon, 6, 40, 39).empty()) << "what is usual is known after a minute";
}

TEST(SlowFloors, learns_little_from_a_slow_time_at_its_beginning) {
  SlowFloors floors;
  after(floors, 11, 0.5, 0.2);
  after(floors, 1, 40, 39);
  const auto slow = after(floors, 2, 40, 39);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_LT(slow[0].usual_own_seconds, 0.0003);
}

TEST(SlowFloors, with_too_few_ios_has_no_proof_and_remembers_what_is_usual) {
  SlowFloors floors;
  after(floors, 12, 0.5, 0.2);
  after(floors, 1, 40, 39);
  EXPECT_TRUE(floors.observe({}, std::chrono::seconds(5)).empty());
  EXPECT_TRUE(floors.observe({}, std::chrono::seconds(5)).empty());
  EXPECT_TRUE(after(floors, 1, 40, 39).empty());
  EXPECT_EQ(after(floors, 1, 40, 39).size(), 1U);
}

TEST(SlowFloors, may_be_not_judged_in_one_interval_between_two_proofs) {
  SlowFloors floors;
  const auto not_judged = [&] { return floors.observe({}, std::chrono::seconds(5)); };
  after(floors, 12, 0.5, 0.2);
  after(floors, 1, 40, 39);
  EXPECT_TRUE(not_judged().empty());
  auto slow = after(floors, 1, 40, 39);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].slow_for, std::chrono::seconds(15));
  EXPECT_TRUE(not_judged().empty()) << "what was proved before is no proof of now";
  slow = after(floors, 1, 40, 39);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].slow_for, std::chrono::seconds(5)) << "what was published before has ended";
  not_judged();
  EXPECT_TRUE(after(floors, 1, 0.5, 0.2).empty());
  EXPECT_TRUE(after(floors, 1, 40, 39).empty()) << "it was not slow in between";
  EXPECT_TRUE(floors.observe({}, std::chrono::seconds(11)).empty());
  EXPECT_TRUE(after(floors, 1, 40, 39).empty()) << "nobody knows what was in a long interval";
  floors.forget_proofs(floor(40, 39));
  EXPECT_TRUE(not_judged().empty());
  EXPECT_TRUE(after(floors, 1, 40, 39).empty()) << "something else held it up";
  EXPECT_EQ(after(floors, 1, 40, 39).size(), 1U);
}

TEST(SlowFloors, above_a_layer_that_changed_are_learned_again_and_no_proof_of_others_counts) {
  SlowFloors floors;
  after(floors, 12, 0.5, 0.2);
  after(floors, 1, 40, 39);
  floors.forget({"sdb1"});
  EXPECT_TRUE(after(floors, 1, 40, 39).empty());
  EXPECT_EQ(after(floors, 1, 40, 39).size(), 1U);
  floors.forget({"sda1"});
  EXPECT_TRUE(after(floors, 5, 40, 39).empty());
}

TEST(SlowFloors, larger_bios_take_longer) {
  SlowFloors floors;
  const auto observe = [&](double own_ms, double bytes) {
    model::FloorTime one = floor(own_ms + 0.1, own_ms);
    one.mean_bytes = bytes;
    return floors.observe({one}, std::chrono::seconds(5)).size();
  };
  for (int i = 0; i < 12; ++i) {
    observe(0.2, 4096);
  }
  observe(3, 64 << 10);
  EXPECT_EQ(observe(3, 64 << 10), 0U);
  observe(3, 4096);
  EXPECT_EQ(observe(3, 4096), 1U);
}

TEST(SlowFloors, that_stays_slow_for_an_hour_is_usual) {
  SlowFloors floors;
  after(floors, 12, 0.5, 0.2);
  EXPECT_EQ(after(floors, 720, 40, 39).size(), 1U);
  EXPECT_TRUE(after(floors, 10, 40, 39).empty());
}

TEST(Floors, name_the_volume_that_has_nearly_all_of_the_ios_and_of_their_time) {
  const auto heaviest = [](std::uint64_t ios_of_second, double of_first, double of_second) {
    return figures({{"dm-0", Operation::read, 1000 - ios_of_second, of_first},
                    {"dm-1", Operation::read, ios_of_second, of_second},
                    {"sda1", Operation::read, 1000, 0.5}},
                   {layer("dm-0", {"sda1"}, LayerKind::linear), layer("dm-1", {"sda1"}, LayerKind::linear)})
        .floors.at(0)
        .heaviest;
  };
  EXPECT_EQ(heaviest(950, 0.5, 40), "dm-1");
  EXPECT_EQ(heaviest(950, 1000, 40), "") << "most of the time is the other's";
  EXPECT_EQ(heaviest(500, 0.5, 40), "") << "the mean is not that of either";
}

TEST(Floors, are_none_of_striped_writes_that_share_flushes) {
  const auto of = [](std::uint64_t flushes) {
    return figures({{"md0", Operation::write, 1000, 2.2},
                    {"sda", Operation::write, 1000, 0.2},
                    {"sda", Operation::flush, flushes, 1}},
                   {layer("md0", {"sda"}, LayerKind::raid0)})
        .floors.size();
  };
  EXPECT_EQ(of(0), 1U);
  EXPECT_EQ(of(100), 0U) << "several writes may have waited for each";
}

/// A drive sda, with a partition, below a LUKS volume; what may hold up its bios changes from tick to tick.
class Ticks {
 public:
  Ticks() {
    disk_->name = "sda";
    auto inventory = std::make_shared<model::Inventory>();
    inventory->volumes = {{"sda", 8, 0, "sda"}, {"sda1", 8, 1, "sda"}};
    inventory->memberships = {{"dm-0", "sda", "dm", "luks"}};
    inventory->layers = {layer("dm-0", {"sda1"}, LayerKind::linear)};
    tick.inventory = inventory;
    tick.tenants = std::make_shared<const model::Tenants>();
    before.devices.resize(1);
    before.devices[0].device = disk_;
    before.devices[0].utilisation = {100, 0.5};
  }
  model::Tick& next() {
    tick.at += std::chrono::seconds(1);
    tick.host = std::make_shared<const model::HostSignals>(signals);
    tick.before = std::make_shared<const model::Snapshot>(before);
    model::DeviceTick device;
    device.block.device = disk_;
    device.interval = std::make_shared<const model::DeviceInterval>(interval);
    tick.devices.clear();
    if (is_measured) {
      tick.devices.push_back(device);
    }
    return tick;
  }

  model::Tick tick;
  model::Snapshot before;
  model::HostSignals signals;
  model::DeviceInterval interval;
  bool is_measured = true;

 private:
  std::shared_ptr<model::Device> disk_ = std::make_shared<model::Device>();
};

/// Whether something may have held up reads, and writes, in the last second, and in the second before the last.
struct HeldUp {
  bool reads, writes, before;
  bool operator==(const HeldUp&) const = default;
};

std::vector<model::LatencySpike> spike_of(const std::string& device, double peak_seconds = 0.02) {
  std::vector<model::LatencySpike> spikes(1);
  spikes[0].device = device;
  spikes[0].peak_seconds = peak_seconds;
  return spikes;
}

HeldUp held_up(const std::function<void(Ticks&)>& change) {
  Ticks ticks;
  HoldUps subject;
  subject.observe(ticks.next());
  const auto begin = ticks.tick.at + std::chrono::milliseconds(1);
  change(ticks);
  subject.observe(ticks.next());
  model::FloorTime reads = floor(1, 1), writes = floor(1, 1);
  reads.operation = Operation::read;
  const auto any_since = [&](model::SteadyTime time, const model::FloorTime& of) {
    return subject.since(time, of) != HoldUp::none;
  };
  return {any_since(begin, reads), any_since(begin, writes),
          any_since(ticks.tick.at + std::chrono::milliseconds(1), writes)};
}

TEST(HoldUps, are_what_may_hold_up_bios_below_a_layer) {
  const auto nothing = [](Ticks&) {};
  EXPECT_EQ(held_up(nothing), (HeldUp{false, false, false}));
  EXPECT_EQ(held_up([](Ticks& ticks) {
              ticks.before.devices[0].utilisation = {100, 0.95};
            }),
            (HeldUp{false, true, false}))
      << "a busy drive";
  EXPECT_EQ(held_up([](Ticks& ticks) { ticks.before.devices[0].utilisation.reset(); }), (HeldUp{false, true, false}))
      << "nobody knows how busy it is";
  EXPECT_EQ(held_up([](Ticks& ticks) { ticks.interval.operations[0].queue_full_ns = 1; }), (HeldUp{true, true, false}));
  EXPECT_EQ(held_up([](Ticks& ticks) { ticks.before.spikes_going_on = spike_of("sda"); }), (HeldUp{true, true, false}));
  EXPECT_EQ(held_up([](Ticks& ticks) { ticks.before.spikes_going_on = spike_of("sdb"); }),
            (HeldUp{false, false, false}));
  EXPECT_EQ(held_up([](Ticks& ticks) {
              ticks.signals.limits = {{"/a", "a", "sda", model::IoLimitKind::riops, 50, 7, {}, "io.max"}};
            }),
            (HeldUp{true, true, false}));
  EXPECT_EQ(held_up([](Ticks& ticks) {
              ticks.signals.volumes.resize(1);
              ticks.signals.volumes[0].volume = "dm-0";
              ticks.signals.volumes[0].suspended = true;
            }),
            (HeldUp{true, true, false}));
  EXPECT_EQ(held_up([](Ticks& ticks) { ticks.tick.tenants = nullptr; }), (HeldUp{false, false, false}))
      << "there are no cgroups";
  EXPECT_EQ(held_up([](Ticks& ticks) {
              ticks.tick.tenants = nullptr;
              ticks.signals.cgroups_unified = true;
            }),
            (HeldUp{true, true, true}))
      << "limits are not known";
  EXPECT_EQ(held_up([](Ticks& ticks) { ticks.is_measured = false; }), (HeldUp{true, true, true}));
}

TEST(HoldUps, a_drive_whose_own_ios_are_much_faster_holds_up_no_reads) {
  using model::EvidenceKey;
  const auto during = [](LayerKind kind, double peak_seconds, const model::SpikeEvidence& evidence) {
    return held_up([&](Ticks& ticks) {
      auto inventory = std::make_shared<model::Inventory>(*ticks.tick.inventory);
      inventory->layers = {layer("dm-0", {"sda1"}, kind)};
      ticks.tick.inventory = inventory;
      ticks.before.spikes_unjudged = spike_of("sda", peak_seconds);
      ticks.before.spikes_unjudged[0].evidence = evidence;
    });
  };
  // Reads wait 1 ms.
  EXPECT_EQ(during(LayerKind::linear, 0.0003, {}), (HeldUp{false, true, false})) << "writes may wait for many others";
  EXPECT_EQ(during(LayerKind::linear, 0.0004, {}), (HeldUp{true, true, false}));
  EXPECT_EQ(during(LayerKind::linear, 0.0003, {{EvidenceKey::longest_standstill_seconds, 0.5}}),
            (HeldUp{true, true, false}));
  EXPECT_EQ(during(LayerKind::linear, 0.0003, {{EvidenceKey::errors, 0}}), (HeldUp{false, true, false}));
  EXPECT_EQ(during(LayerKind::linear, 0.0003, {{EvidenceKey::errors, 1}}), (HeldUp{true, true, false}));
  EXPECT_EQ(during(LayerKind::raid1, 0.0003, {}), (HeldUp{true, true, false})) << "it may send them again";
}

TEST(HoldUps, know_for_each_tick_how_slow_a_drive_was) {
  Ticks ticks;
  HoldUps subject;
  model::FloorTime reads = floor(1, 1);
  reads.operation = Operation::read;
  const auto observe = [&](double peak_seconds) {
    ticks.before.spikes_going_on = spike_of("sda", peak_seconds);
    subject.observe(ticks.next());
    return ticks.tick.at;
  };
  const auto slow = observe(0.02);
  const auto begin = observe(0.0003);
  observe(0.0003);
  EXPECT_EQ(subject.since(slow, reads), HoldUp::spike);
  EXPECT_EQ(subject.since(begin, reads), HoldUp::none);
}

TEST(HoldUps, may_be_anything_below_a_layer_whose_own_thread_sends_writes_on) {
  for (const LayerKind kind : {LayerKind::crypt, LayerKind::dm}) {
    EXPECT_EQ(held_up([&](Ticks& ticks) {
                auto inventory = std::make_shared<model::Inventory>(*ticks.tick.inventory);
                inventory->layers = {layer("dm-0", {"sda1"}, kind)};
                ticks.tick.inventory = inventory;
              }),
              (HeldUp{false, true, true}));
  }
}

/// 100 more bios of 4 KiB have ended, each after `ns`.
void end_100(model::BioIo& io, Operation operation, std::int64_t ns) {
  model::BioOperation& of = io.operations[model::index(operation)];
  of.bytes += 100 * 4096;
  of.latency.words[latency_word(ns)] += 100;
  of.latency.sum_ns += 100 * static_cast<std::uint64_t>(ns);
}

/// Seconds in which a layer is named whose I/Os take 40 ms from second 91 on, if `change`, which says whether I/Os end,
/// is called before each. Its slow intervals end with the seconds 95, 100 and 105.
int seconds_named(Operation operation, int seconds, const std::function<bool(Ticks&, int second)>& change) {
  Ticks ticks;
  Volumes stage;
  model::BioIo above = *host({{"dm-0", operation, 0, 0.3}}).front(),
               below = *host({{"sda1", operation, 0, 0.1}}).front();
  int named = 0;
  for (int second = 0; second < seconds; ++second) {
    const bool ends = change(ticks, second);
    model::Tick& tick = ticks.next();
    if (ends) {
      end_100(above, operation, second > 90 ? 40'000'000 : 300'000);
      end_100(below, operation, 100'000);
    }
    tick.bios = {std::make_shared<const model::BioIo>(above), std::make_shared<const model::BioIo>(below)};
    model::Snapshot snapshot;
    stage.observe(tick).values(snapshot);
    named += snapshot.volume_figures && !snapshot.volume_figures->slow.empty() ? 1 : 0;
  }
  return named;
}

TEST(Volumes, publish_a_floor_that_becomes_slow_unless_something_holds_it_up) {
  const auto beside = [](double busy_ratio) {
    return seconds_named(Operation::write, 120, [=](Ticks& ticks, int second) {
      ticks.before.devices[0].utilisation = {100, second > 90 ? busy_ratio : 0.5};
      return true;
    });
  };
  EXPECT_GE(beside(0.5), 15);
  EXPECT_EQ(beside(0.95), 0);
}

TEST(Volumes, a_spike_between_two_proofs_delays_the_answer_and_anything_else_forbids_it) {
  const auto named = [](const std::function<bool(Ticks&, int)>& change) {
    return seconds_named(Operation::read, 107, change);
  };
  const auto is_idle = [](int second) { return second > 95 && second <= 100; };
  const auto suspend = [](Ticks& ticks, int second) {
    ticks.signals.volumes.clear();
    if (second == 97 || second == 98) {
      ticks.signals.volumes.resize(1);
      ticks.signals.volumes[0].volume = "dm-0";
      ticks.signals.volumes[0].suspended = true;
    }
  };
  EXPECT_EQ(named([](Ticks&, int) { return true; }), 7) << "from the end of the second interval";
  EXPECT_EQ(named([](Ticks& ticks, int second) {
              ticks.before.spikes_going_on = second == 97 ? spike_of("sda") : std::vector<model::LatencySpike>();
              return true;
            }),
            2)
      << "from the end of the third";
  EXPECT_EQ(named([&](Ticks&, int second) { return !is_idle(second); }), 2);
  EXPECT_EQ(named([&](Ticks& ticks, int second) {
              suspend(ticks, second);
              return true;
            }),
            0)
      << "it may have been suspended before, too";
  EXPECT_EQ(named([&](Ticks& ticks, int second) {
              suspend(ticks, second);
              return !is_idle(second);
            }),
            0)
      << "and so may one whose I/Os did not end";
}

}  // namespace
}  // namespace ssdpulse::volumes
