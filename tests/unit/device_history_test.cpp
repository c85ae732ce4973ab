// SPDX-License-Identifier: Apache-2.0
// Does the history return for any window of time exactly what went in, whatever has happened to its minutes meanwhile?
// The oracle counts each I/O separately, in plain arrays of prefix sums, and shares nothing with the code under test.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/history/device_minutes.h"
#include "daemon/history/event_rows.h"
#include "daemon/history/history_reader.h"
#include "daemon/history/ladder_minutes.h"
#include "daemon/history/load_codec.h"
#include "daemon/history/past_reader.h"
#include "daemon/history/store.h"
#include "daemon/model/device_identity.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::history {
namespace {

using namespace std::chrono_literals;
using model::Latency;
using model::Operation;
using model::Window;
using Random = std::mt19937_64;

const bool kInMemory = ::setenv("TMPDIR", "/dev/shm", 0) == 0;
constexpr model::Minute kBegin{std::chrono::minutes(29'000'040)};  // a whole hour

bool long_tier() {
  const char* value = std::getenv("SSDPULSE_TEST_LONG");
  return value != nullptr && *value == '1';
}

Random seeded() {
  const char* seed = std::getenv("SSDPULSE_TEST_SEED");
  return Random(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
}

std::uint64_t below(Random& random, std::uint64_t end) {
  return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random);
}

// ---- bytes

model::SparseHistogram some_histogram(Random& random, std::size_t words) {
  model::LatencyBuckets dense(LATENCY_OVER_WORD + 1);
  for (std::size_t i = 0; i < words; ++i) {
    dense[below(random, dense.size())] = below(random, 8) == 0 ? random() : below(random, 3000);
  }
  return {model::sparse(dense), random()};
}

model::DeviceInterval some_load(Random& random) {
  model::DeviceInterval load;
  load.measured_ms = below(random, 3) == 0 ? random() : 60'000;
  for (auto& one : load.operations) {
    if (below(random, 2) == 0) {
      one = {random() >> below(random, 64), random() >> below(random, 64), below(random, 9), 0, below(random, 2)};
    }
  }
  load.losses.at(below(random, load.losses.size())) = below(random, 3);
  for (std::size_t i = 0; i < model::kLatencies; ++i) {
    load.latency(static_cast<model::Latency>(i)) =
        below(random, 3) == 0 ? model::SparseHistogram{} : some_histogram(random, below(random, 70));
  }
  return load;
}

TEST(LoadCodec, gives_back_what_it_was_given) {
  Random random = seeded();
  EXPECT_EQ(decode(encode(model::DeviceInterval{})), model::DeviceInterval{});
  for (int i = 0; i < 2000; ++i) {
    const auto load = some_load(random);
    ASSERT_EQ(decode(encode(load)), load);
  }
}

TEST(LoadCodec, writes_nothing_of_what_there_was_none) {
  model::DeviceInterval load;
  EXPECT_EQ(encode(load), (std::vector<std::uint8_t>{1, 0, 0, 0, 0})) << "layout, time, operations, losses, latencies";
  load.latency(static_cast<Latency>(1)) = {{{3, 2}}, 7};
  EXPECT_EQ(encode(load), (std::vector<std::uint8_t>{1, 0, 0, 0, 1 << 1, 7, 1, 3, 2}));
}

TEST(LoadCodec, rejects_what_is_not_whole) {
  Random random = seeded();
  for (int i = 0; i < 300; ++i) {
    const auto bytes = encode(some_load(random));
    for (std::size_t length = 0; length < bytes.size(); length += 1 + below(random, 20)) {
      ASSERT_FALSE(decode({bytes.data(), length})) << length << " of " << bytes.size();
    }
    auto more = bytes;
    more.push_back(0);
    ASSERT_FALSE(decode(more));
  }
}

TEST(LoadCodec, survives_any_bytes_and_accepts_only_what_it_writes) {
  Random random = seeded();
  std::uint64_t accepted = 0;
  for (int i = 0; i < (long_tier() ? 1'000'000 : 10'000); ++i) {
    auto bytes = i % 3 == 0 ? std::vector<std::uint8_t>(below(random, 200)) : encode(some_load(random));
    for (std::uint64_t changes = i % 3 == 0 ? bytes.size() : 1 + below(random, 4); changes > 0; --changes) {
      bytes[below(random, bytes.size())] = static_cast<std::uint8_t>(random());
    }
    if (const auto load = decode(bytes)) {
      ++accepted;
      for (std::size_t latency = 0; latency < model::kLatencies; ++latency) {
        const auto& histogram = load->latency(static_cast<model::Latency>(latency));
        for (std::size_t word = 0; word < histogram.words.size(); ++word) {
          ASSERT_LE(histogram.words[word].first, LATENCY_OVER_WORD);
          ASSERT_GT(histogram.words[word].second, 0U);
          ASSERT_TRUE(word == 0 || histogram.words[word - 1].first < histogram.words[word].first);
        }
      }
    }
    (void)decode_tenants(bytes);
  }
  EXPECT_GT(accepted, 100U) << "changed counts are still counts";
}

TEST(Tenants, the_rest_is_exact) {
  Random random = seeded();
  for (int i = 0; i < 200; ++i) {
    std::vector<model::TenantLoad> all;
    model::AttributedTotals sum;
    for (std::uint64_t k = below(random, 30); k > 0; --k) {
      all.push_back({"t" + std::to_string(k), {}});
      auto& totals = all.back().totals[below(random, 3)];
      totals = {below(random, 100), below(random, 100'000), below(random, 1000)};
      sum += totals;
    }
    const std::size_t given = all.size();
    const auto kept = model::heaviest(std::move(all));
    ASSERT_EQ(kept.size(), std::min<std::size_t>(given, 9));
    for (const auto& tenant : kept) {
      for (const auto& totals : tenant.totals) {
        sum -= totals;
      }
    }
    ASSERT_EQ(sum, model::AttributedTotals{});
  }
}

// ---- windows

/// Every count that a window may be asked for, in the oracle's own order.
constexpr std::size_t kWords = LATENCY_OVER_WORD + 1;
constexpr std::size_t kCounts = model::kLatencies * kWords + model::kLatencies + 2 * model::kOperations;
using Counts = std::vector<std::uint64_t>;

Counts counts_of(const model::DeviceInterval& load) {
  Counts counts(kCounts);
  for (std::size_t i = 0; i < model::kLatencies; ++i) {
    for (const auto& [word, ios] : load.latency(static_cast<model::Latency>(i)).words) {
      counts[i * kWords + word] += ios;
    }
    counts[model::kLatencies * kWords + i] = load.latency(static_cast<model::Latency>(i)).sum_ns;
  }
  for (std::size_t i = 0; i < model::kOperations; ++i) {
    counts[model::kLatencies * (kWords + 1) + 2 * i] = load.operations[i].ios;
    counts[model::kLatencies * (kWords + 1) + 2 * i + 1] = load.operations[i].bytes;
  }
  return counts;
}

/// A device that does I/O, counted twice: cumulatively like in the kernel, and in the oracle's minutes.
class BusyDevice {
 public:
  BusyDevice(std::string name, std::size_t minutes) : prefix_(minutes + 1, Counts(kCounts)), now_(kCounts) {
    device_.name = std::move(name);
    device_.wwid = "wwid of " + device_.name;
    restart();
  }

  void restart() {  // its counters start again
    io_ = model::DeviceIo{};
    io_.since = model::WallTime(std::chrono::seconds(++lives_));
    const auto fill = [](model::LatencyHistogram& histogram) { histogram.words.assign(kWords, 0); };
    for (auto& operation : io_.operations) {
      fill(operation.total_latency);
      fill(operation.queue_latency);
      std::for_each(operation.device_latency.begin(), operation.device_latency.end(), fill);
    }
    fill(io_.commit_latency);
  }

  void do_something(Random& random) {
    for (std::uint64_t ios = below(random, 12); ios > 0; --ios) {
      const bool read = below(random, 2) == 0;
      model::OperationIo& io = io_.operations[read ? 0 : 1];
      const auto during = below(random, model::kDurings);
      count(io.total_latency, static_cast<std::size_t>(read ? Latency::read_total : Latency::write_total), random);
      count(io.device_latency[during],
            static_cast<std::size_t>(read ? Latency::read_device_none : Latency::write_device_none) + during, random);
      count(io.queue_latency, static_cast<std::size_t>(read ? Latency::read_queue : Latency::write_queue), random);
      const std::uint64_t bytes = 4096 * (1 + below(random, 256));
      ++io.completions;
      io.bytes += bytes;
      now_[model::kLatencies * (kWords + 1) + (read ? 0 : 2)] += 1;
      now_[model::kLatencies * (kWords + 1) + (read ? 1 : 3)] += bytes;
    }
    if (below(random, 4) == 0) {
      count(io_.commit_latency, static_cast<std::size_t>(Latency::commit), random);
    }
  }
  void end_minute(std::size_t minute) { prefix_[minute + 1] = now_; }

  [[nodiscard]] model::DeviceTick tick() const {
    model::DeviceTick tick;
    tick.block = {std::make_shared<const model::Device>(device_), std::make_shared<const model::DeviceIo>(io_), {}, 0};
    return tick;
  }
  [[nodiscard]] const std::string& name() const { return device_.name; }
  [[nodiscard]] Counts between(std::size_t from, std::size_t to) const {
    Counts counts(kCounts);
    for (std::size_t i = 0; i < kCounts; ++i) {
      counts[i] = prefix_[to][i] - prefix_[from][i];
    }
    return counts;
  }

 private:
  void count(model::LatencyHistogram& histogram, std::size_t which, Random& random) {
    const std::size_t word = 40 + below(random, 60);
    const std::uint64_t ns = below(random, 1'000'000'000);
    ++histogram.words[word];
    histogram.sum_ns += ns;
    ++now_[which * kWords + word];
    now_[model::kLatencies * kWords + which] += ns;
  }

  model::Device device_;
  model::DeviceIo io_;
  std::vector<Counts> prefix_;  // before each minute
  Counts now_;
  int lives_ = 0;
};

/// Hours of load, minute by minute through the stage into the file.
class Rig {
 public:
  explicit Rig(StoreLimits limits = {}) : limits_(limits) {
    std::optional<FileIdentity> checked;
    auto store = Store::open(file(), limits_, checked, stop_);
    EXPECT_TRUE(store.has_value());
    store_.emplace(std::move(*store));
  }
  [[nodiscard]] std::string file() const { return tree_.path("ssdpulse.db"); }
  Store& store() { return *store_; }

  void observe(std::vector<BusyDevice>& devices, model::WallTime wall, bool last = false) {
    model::Tick tick;
    tick.wall = wall;
    tick.at = model::SteadyTime(wall.time_since_epoch());
    tick.last = last;
    tick.inventory = std::make_shared<const model::Inventory>();
    for (const BusyDevice& device : devices) {
      tick.devices.push_back(device.tick());
    }
    keys_.set_history_keys(tick);
    auto findings = stage_.observe(tick);
    if (!findings.effects.rows.empty()) {
      write(findings.effects.rows, std::chrono::floor<std::chrono::minutes>(wall));
    }
    if (last) {
      stage_.~DeviceMinutes();  // the next daemon knows nothing
      new (&stage_) DeviceMinutes;
    }
  }
  model::PastReach write(const model::Batch& batch, model::Minute now) {
    const auto elapsed = now - std::exchange(now_, now).value_or(now);
    const auto written = store_->write(batch, {now, std::max<std::chrono::milliseconds>(elapsed, 0ms)});
    EXPECT_TRUE(written.has_value()) << written.error().message;
    return written ? written->reach : model::PastReach{};
  }
  model::DeviceInterval load(const std::string& device, const Window& window) {
    auto past = PastReader::open(file(), 25ms, std::chrono::steady_clock::now() + 60s);
    EXPECT_TRUE(past.has_value()) << past.error().message;
    model::DeviceInterval sum;
    const auto read = past->minutes(device, window, [&](const model::MinuteOf& one) { model::add(sum, one.load); });
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return sum;
  }

 private:
  tests::TemporaryTree tree_;
  StoreLimits limits_;
  std::atomic<bool> stop_ = false;
  std::optional<Store> store_;
  model::HistoryKeys keys_;
  DeviceMinutes stage_;
  std::optional<model::Minute> now_;
};

/// A few hours, with daemons that restart and devices whose counters restart in the middle of minutes; then some of the
/// minutes become hours; queries in between are compared with the oracle.
std::uint64_t one_life(Random& random, std::uint64_t windows) {
  const std::size_t hours = 2 + below(random, 8);
  const std::size_t minutes = hours * 60;
  std::vector<BusyDevice> devices;
  for (std::uint64_t i = 1 + below(random, 3); i > 0; --i) {
    devices.emplace_back("sd" + std::string(1, static_cast<char>('a' + i)), minutes);
  }
  Rig rig;
  for (std::size_t minute = 0; minute < minutes; ++minute) {
    const model::WallTime begin = kBegin + std::chrono::minutes(minute);
    // At the very beginning of a minute, the stage ends the previous one.
    for (std::uint64_t second = 0; second < 60; second += 1 + below(random, 40)) {
      const bool restart = below(random, 100) == 0;
      if (second > 0 || minute == 0) {
        for (BusyDevice& device : devices) {
          device.do_something(random);
        }
      }
      rig.observe(devices, begin + std::chrono::seconds(second), restart);
      for (BusyDevice& device : devices) {
        if (restart || below(random, 100) == 0) {
          device.restart();
        }
      }
    }
    for (BusyDevice& device : devices) {
      device.end_minute(minute);
    }
  }
  rig.observe(devices, kBegin + std::chrono::minutes(minutes), true);
  // Fourteen days after one of these minutes, one hour at a time.
  const auto thinned = static_cast<std::int64_t>(below(random, hours)) * 60;
  for (std::int64_t i = 0; i <= thinned / 60; ++i) {
    rig.write({}, kBegin + std::chrono::minutes(thinned) + std::chrono::days(14));
  }
  for (std::uint64_t i = 0; i < windows; ++i) {
    std::int64_t from = static_cast<std::int64_t>(below(random, minutes));
    std::int64_t to = from + 1 + static_cast<std::int64_t>(below(random, minutes - static_cast<std::uint64_t>(from)));
    from -= from < thinned ? from % 60 : 0;  // only hours are left
    to += to < thinned ? (60 - to % 60) % 60 : 0;
    const BusyDevice& device = devices[below(random, devices.size())];
    const Window window{kBegin + std::chrono::minutes(from), kBegin + std::chrono::minutes(to)};
    const auto found = counts_of(rig.load(device.name(), window));
    if (found != device.between(static_cast<std::size_t>(from), static_cast<std::size_t>(to))) {
      ADD_FAILURE() << device.name() << " from minute " << from << " to " << to << " of " << minutes << ", thinned to "
                    << thinned;
      return i;
    }
  }
  return windows;
}

TEST(Windows, hold_exactly_what_went_in) {
  Random random = seeded();
  const std::uint64_t wanted = long_tier() ? 100'000 : 300;
  std::uint64_t compared = 0;
  while (compared < wanted && !HasFailure()) {
    compared += one_life(random, 100);
  }
  std::cout << compared << " windows of " << kCounts << " counts, equal word for word\n";
  EXPECT_GE(compared, wanted);
}

TEST(Windows, what_comes_late_is_in_the_minute_and_in_the_hour) {
  Rig rig;
  Random random = seeded();
  model::DeviceInterval sum;
  const auto put = [&](std::int64_t minute, std::int64_t now) {
    const auto load = some_load(random);
    model::add(sum, load);
    rig.write({.minutes = {},
               .states = {},
               .device_minutes = {{{"w", "sda", "m", "s"}, kBegin + std::chrono::minutes(minute), load}}},
              kBegin + std::chrono::minutes(now));
  };
  put(5, 6);
  put(70, 71);  // the first hour is created
  put(5, 72);   // the clock was set back
  put(6, 73);
  const auto hour = rig.load("sda", {kBegin, kBegin + 1h});
  rig.write({}, kBegin + 71min + std::chrono::days(14));
  rig.write({}, kBegin + 71min + std::chrono::days(14));
  EXPECT_EQ(rig.load("sda", {kBegin, kBegin + 1h}), hour) << "minutes and their hour";
  EXPECT_EQ(rig.load("sda", {kBegin, kBegin + 5min}), model::DeviceInterval{})
      << "a part of an hour is not known any more";
  put(7, 200);  // into an hour whose minutes are gone
  EXPECT_EQ(rig.load("sda", {kBegin, kBegin + 2h}), sum);
}

TEST(Windows, a_forgotten_device_leaves_nothing_behind) {
  Rig rig({std::chrono::hours(24), std::uint64_t{64} << 20U});
  model::DeviceInterval load;
  load.operations[0].ios = 1;
  const auto row = [&](const std::string& name, model::Minute minute) {
    return model::DeviceMinute{{name, name, "m", name}, minute, load, {{"tenant of " + name, {}}}};
  };
  model::Batch old;
  for (int hour = 0; hour < 100; ++hour) {
    old.device_minutes.push_back(row("old", kBegin + std::chrono::hours(hour)));
  }
  rig.write(old, kBegin + 100h);
  const model::Minute later = kBegin + 24h * 30;  // a month without writes
  for (int minute = 0; minute < 200; ++minute) {
    model::Batch batch;
    batch.device_minutes.push_back(row("new", later + std::chrono::minutes(minute)));
    rig.write(batch, later + std::chrono::minutes(minute + 1));
    ASSERT_EQ(rig.load("new", {kBegin, later + 24h}).operations[0].ios, static_cast<std::uint64_t>(minute) + 1);
  }
  auto connection = Connection::open_to_read(rig.file());
  EXPECT_EQ(connection->number("SELECT count(*) FROM device"), 1);
  EXPECT_EQ(connection->number("SELECT count(*) FROM device_hour"), 3);
  EXPECT_EQ(connection->number("SELECT count(*) FROM device_minute"), 200);
  EXPECT_EQ(connection->number("SELECT count(*) FROM tenant"), 1);
}

// ---- the write ladder

model::WriteLadder ladder_at(double times, bool gap) {
  using model::Rung;
  using model::RungClass;
  model::WriteLadder ladder;
  ladder.rungs = {{Rung::application, "", RungClass::page_cache, 1000 + 100 * times, {}, {}},
                  {Rung::file_system, "md0", RungClass::other, 130 * times, model::WallTime(1s), 0},
                  {Rung::file_system, "sda", RungClass::journal, 30 * times, model::WallTime(1s), 0},
                  {Rung::file_system, "sda", RungClass::swap, 0, model::WallTime(1s), 0},
                  {Rung::drive, "sda", {}, 300 * times, model::WallTime(1s), 0},
                  {Rung::reported, "nvme0", {}, 5000 + 200 * times, {}, 0},
                  {Rung::media, "nvme0", {}, 9000 + 260 * times, {}, 0},
                  {Rung::reported, "nvme1", {}, 5000 + 90 * times, {}, 0}};  // which counts no media
  const auto bytes = [&](std::uint64_t each) { return each * static_cast<std::uint64_t>(times); };
  ladder.passed_on = {{"md0", {0, bytes(130), bytes(200), bytes(260)}}, {"dm-0", {0, bytes(130)}}};
  ladder.gaps = {{Rung::media, "sda", model::RungGapReason::no_counter, 0},
                 {Rung::media, "sdb", model::RungGapReason::no_counter, 0}};
  if (gap) {
    ladder.gaps.push_back({Rung::application, "md0", model::RungGapReason::direct_unknown, 0});
  }
  return ladder;
}

TEST(Ladder, is_kept_by_minutes_and_hours_and_is_no_device) {
  using model::Rung;
  using model::RungClass;
  Rig rig;
  rig.write({.minutes = {}, .states = {}, .device_minutes = {{{"sda", "sda", "m", "S"}, kBegin, {}}}}, kBegin);
  for (int minute = 0; minute < 180; ++minute) {
    model::Batch batch;
    batch.device_minutes =
        ladder_rows(ladder_at(minute, minute >= 60), {}, ladder_at(minute + 1, minute >= 60), 60'000);
    for (model::DeviceMinute& row : batch.device_minutes) {
      row.minute = kBegin + std::chrono::minutes(minute);
    }
    rig.write(batch, kBegin + std::chrono::minutes(minute + 1));
  }
  auto past = PastReader::open(rig.file(), 25ms, std::chrono::steady_clock::now() + 60s);
  const auto devices = past->devices(nullptr).value();
  ASSERT_EQ(devices.size(), 1U) << "a rung is no device";
  EXPECT_EQ(devices[0].name, "sda");
  const auto ladder = past->ladder({kBegin + 30min, kBegin + 90min}).value();
  EXPECT_NEAR(ladder.hours, 1, 1e-9);
  const std::map<std::pair<Rung, std::optional<RungClass>>, double> bytes{
      {{Rung::application, RungClass::page_cache}, 6000},
      {{Rung::file_system, RungClass::other}, 7800},
      {{Rung::file_system, RungClass::journal}, 1800},
      {{Rung::drive, std::nullopt}, 18000},
      {{Rung::reported, std::nullopt}, 12000},
      {{Rung::media, std::nullopt}, 15600}};
  EXPECT_EQ(ladder.bytes, bytes) << "what is received by a drive that counts no media has nothing to compare with";
  ASSERT_EQ(ladder.volumes.size(), 1U) << "members of dm-0 are not known";
  EXPECT_EQ(ladder.volumes.at("md0").written_bytes, 7800);
  EXPECT_EQ(ladder.volumes.at("md0").members_written_bytes, 15600);
  EXPECT_EQ(ladder.volumes.at("md0").members_read_bytes, 12000);
  ASSERT_EQ(ladder.gap_hours.size(), 2U) << "sdb, which got nothing, does not matter";
  EXPECT_NEAR((ladder.gap_hours.at({Rung::application, model::RungGapReason::direct_unknown})), 0.5, 1e-9);
  EXPECT_NEAR((ladder.gap_hours.at({Rung::media, model::RungGapReason::no_counter})), 1, 1e-9);
  EXPECT_EQ(past->ladder({kBegin - 90min, kBegin}).value().bytes.size(), 0U);
}

TEST(Ladder, each_minute_has_what_was_written_in_it) {
  LadderMinutes stage;
  model::Tick tick;
  const auto rows_at = [&](std::chrono::seconds second, std::uint64_t written, bool last = false) {
    model::Device device;
    device.name = "sda";
    model::DeviceIo io;
    io.operations[index(Operation::write)].bytes = written;
    auto snapshot = std::make_shared<model::Snapshot>();
    snapshot->devices.resize(1);
    snapshot->devices[0].device = std::make_shared<const model::Device>(device);
    snapshot->devices[0].io = std::make_shared<const model::DeviceIo>(io);
    tick.before = snapshot;
    tick.wall = kBegin + second;
    tick.at = model::SteadyTime(tick.wall.time_since_epoch());
    tick.last = last;
    model::PastLadder ladder;
    for (const model::DeviceMinute& row : stage.observe(tick).effects.rows.device_minutes) {
      EXPECT_EQ(row.minute, kBegin + std::chrono::floor<std::chrono::minutes>(second - 1s));
      add(ladder, row.device.identity, row.load);
    }
    return std::pair(std::llround(3600 * ladder.hours), ladder.bytes[{model::Rung::drive, std::nullopt}]);
  };
  using Seen = std::pair<long long, double>;  // seconds, bytes
  EXPECT_EQ(rows_at(10s, 1000), (Seen{0, 0})) << "from here on";
  EXPECT_EQ(rows_at(59s, 1500), (Seen{0, 0}));
  EXPECT_EQ(rows_at(60s, 1700), (Seen{50, 700}));
  EXPECT_EQ(rows_at(61s, 1900), (Seen{0, 0}));
  EXPECT_EQ(rows_at(120s, 1900), (Seen{60, 200}));
  EXPECT_EQ(rows_at(130s, 2000, true), (Seen{10, 100})) << "the daemon ends";
}

TEST(Ladder, volumes_of_dm_have_the_lane_of_their_name_not_of_their_number) {
  LadderMinutes stage;
  model::Tick tick;
  std::set<std::string> volumes;
  const auto take = [&](int minute, const char* device, const char* title, std::uint64_t written, int made) {
    auto snapshot = std::make_shared<model::Snapshot>();
    snapshot->layers = {{device, title, model::LayerKind::lvm, {"sda"}}};
    for (const char* name : {device, "sda"}) {
      auto io = std::make_shared<model::BioIo>();
      io->device = name;
      io->is_volume = name == device;
      io->since = model::WallTime(std::chrono::seconds(io->is_volume ? made : 0));
      io->operations[index(Operation::write)].bytes = written;
      snapshot->bios.push_back(io);
    }
    tick.before = snapshot;
    tick.wall = kBegin + std::chrono::minutes(minute);
    tick.at = model::SteadyTime(tick.wall.time_since_epoch());
    model::PastLadder ladder;
    for (const model::DeviceMinute& row : stage.observe(tick).effects.rows.device_minutes) {
      add(ladder, row.device.identity, row.load);
    }
    for (const auto& [volume, passed] : ladder.volumes) {
      volumes.insert(fmt::format("{} {}", volume, passed.members_written_bytes));
    }
  };
  take(0, "dm-3", "vg-data", 100, 1);
  take(1, "dm-3", "vg-data", 150, 1);
  take(2, "dm-3", "vg-other", 1000, 2);
  take(3, "dm-3", "vg-other", 1070, 2);
  take(4, "dm-4", "vg-other", 1080, 3);  // the two have changed their names
  take(5, "dm-3", "strange name", 10, 4);
  take(6, "dm-3", "strange name", 20, 4);
  EXPECT_EQ(volumes, (std::set<std::string>{"mapper/vg-data 50", "mapper/vg-other 70", "dm-3 10"}))
      << "what was the first one's is not the second one's";
}

TEST(Ladder, counters_that_begin_or_go_back_add_what_is_certain) {
  auto before = ladder_at(3, false);
  auto now = ladder_at(4, false);
  before.rungs.erase(before.rungs.begin() + 4, before.rungs.begin() + 7);  // sda and nvme0 are new
  now.rungs[1].bytes = 50;                                                 // md0 was made again
  now.rungs[1].since = model::WallTime(9s);
  now.passed_on.at("md0") = {0, 50, 0, 100};
  model::PastLadder ladder;
  for (const model::DeviceMinute& row : ladder_rows(before, {}, now, 60'000)) {
    add(ladder, row.device.identity, row.load);
  }
  EXPECT_EQ((ladder.bytes.at({model::Rung::file_system, model::RungClass::other})), 50);
  EXPECT_EQ((ladder.bytes.at({model::Rung::drive, std::nullopt})), 1200) << "from its beginning";
  EXPECT_FALSE(ladder.bytes.contains({model::Rung::media, std::nullopt})) << "it counts since it was made";
  EXPECT_TRUE(ladder.volumes.empty());
  // The same, where all of these began long before: what was not there may have been counted on another rung.
  model::PastLadder later;
  for (const model::DeviceMinute& row : ladder_rows(before, model::WallTime(1h), now, 60'000)) {
    add(later, row.device.identity, row.load);
  }
  EXPECT_EQ((later.bytes.at({model::Rung::drive, std::nullopt})), 0);
  EXPECT_FALSE(later.bytes.contains({model::Rung::file_system, model::RungClass::other}));
  // md0 went: what it was sent after the first reading is not known, but the drive's bytes have it.
  now = ladder_at(4, false);
  std::erase_if(now.rungs, [](const model::RungBytes& one) { return one.device == "md0"; });
  now.passed_on.erase("md0");
  model::PastLadder gone;
  for (const model::DeviceMinute& row : ladder_rows(ladder_at(3, false), {}, now, 60'000)) {
    add(gone, row.device.identity, row.load);
  }
  EXPECT_NEAR((gone.gap_hours[{model::Rung::file_system, model::RungGapReason::volume_not_measured}]), 1.0 / 60, 1e-9);
  // Another md0 that has done more than the first one.
  before = ladder_at(3, false);
  now = ladder_at(4, false);
  now.passed_on.at("md0").since = model::WallTime(30s);
  model::PastLadder other;
  for (const model::DeviceMinute& row : ladder_rows(before, {}, now, 60'000)) {
    add(other, row.device.identity, row.load);
  }
  EXPECT_TRUE(other.volumes.empty());
  for (const char* lane :
       {"rung/", "rung/x", "rung/drive/x", "rung/gap/drive/x", "rung/gap", "rung/gap/x/no_counter", ""}) {
    add(ladder, lane, {});  // whoever can write the file
  }
  EXPECT_EQ(ladder.bytes.size(), 4U);
  EXPECT_FALSE(is_ladder_lane("rung/drive | serial S")) << "a drive chose that model";
  EXPECT_FALSE(is_ladder_lane("rung/volume/<b>")) << "no kernel chose that name";
}

// ---- readers and the writer

model::DeviceMinute minute_of_sda(std::int64_t minute) {
  model::DeviceInterval load;
  load.measured_ms = 60'000;
  load.operations[0].ios = static_cast<std::uint64_t>(minute) + 1;
  return {{"w", "sda", "m", "s"}, kBegin + std::chrono::minutes(minute), load};
}

model::Batch batch_of(std::int64_t from, std::int64_t to) {
  model::Batch batch;
  for (std::int64_t minute = from; minute < to; ++minute) {
    batch.device_minutes.push_back(minute_of_sda(minute));
  }
  return batch;
}

TEST(Reading, holds_up_no_writer_and_sees_each_minute_once) {
  constexpr std::int64_t kMinutes = 700;
  Rig rig;
  rig.write(batch_of(0, kMinutes), kBegin + std::chrono::minutes(kMinutes));
  std::atomic<bool> reading = true;
  std::uint64_t rows = 0;
  std::uint64_t ios = 0;
  std::thread reader([&] {
    auto past = PastReader::open(rig.file(), 25ms, std::chrono::steady_clock::now() + 60s);
    const auto read =
        past->minutes("sda", {kBegin, kBegin + std::chrono::minutes(kMinutes)}, [&](const model::MinuteOf& one) {
          ++rows;
          ios += one.load.operations[0].ios;
          std::this_thread::sleep_for(1ms);  // much slower than any real reader
        });
    EXPECT_TRUE(read.has_value()) << read.error().message;
    reading = false;
  });
  int written = 0;
  while (reading) {
    rig.write(batch_of(kMinutes + written, kMinutes + written + 1),
              kBegin + std::chrono::minutes(kMinutes + written + 1));
    written += reading ? 1 : 0;
    std::this_thread::sleep_for(10ms);
  }
  reader.join();
  EXPECT_EQ(rows, kMinutes);
  EXPECT_EQ(ios, kMinutes * (kMinutes + 1) / 2);
  EXPECT_GE(written, 4) << "commits while one query ran";
}

TEST(Reading, ends_at_its_deadline) {
  Rig rig;
  rig.write(batch_of(0, 1000), kBegin + std::chrono::minutes(1000));
  auto past = PastReader::open(rig.file(), 5ms, std::chrono::steady_clock::now() + 100ms);
  const auto read = past->minutes("sda", {kBegin, kBegin + std::chrono::minutes(1000)},
                                  [](const model::MinuteOf&) { std::this_thread::sleep_for(1ms); });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message, "took too long: ask for less at once, or later");
}

TEST(Reading, a_series_has_round_steps_and_the_sum_of_all) {
  Rig rig;
  rig.write(batch_of(0, 1000), kBegin + std::chrono::minutes(1000));
  auto reader = Reader::open(rig.file());
  ASSERT_TRUE(reader.has_value());
  const Window window{kBegin, kBegin + std::chrono::minutes(1000)};
  for (const std::size_t points : {2U, 10U, 100U, 2000U}) {
    const auto series = (*reader)->series("sda", window, points);
    ASSERT_TRUE(series.has_value()) << series.error().message;
    EXPECT_LE(series->points.size(), points);
    std::uint64_t ios = 0;
    for (const model::SeriesPoint& point : series->points) {
      ios += point.load.operations[0].ios;
      EXPECT_EQ(point.start.time_since_epoch() % series->step, 0min);
    }
    EXPECT_EQ(ios, 1000U * 1001 / 2) << points;
  }
  EXPECT_EQ((*reader)->series("w", window)->points.size(), 1000U) << "by its identity";
  EXPECT_FALSE((*reader)->series("sdb", window).has_value());
  EXPECT_EQ((*reader)->load("s", window)->operations[0].ios, 1000U * 1001 / 2) << "by its serial number";
  EXPECT_FALSE(Reader::open("/nowhere/ssdpulse.db").value()->devices().has_value());
}

TEST(Reading, minutes_that_are_kept_are_those_of_the_window_not_all_since_the_first) {
  Rig rig;
  model::Batch batch = batch_of(0, 10);
  batch.device_minutes.push_back(minute_of_sda(101));
  batch.device_minutes.push_back({{"v", "sdb", "m", "t"}, kBegin + 101min, minute_of_sda(0).load});
  rig.write(batch, kBegin + 102min);
  auto reader = Reader::open(rig.file());
  EXPECT_EQ(minutes_kept(**reader, {kBegin + 98min, kBegin + 102min}), 1U) << "a daemon has just been started again";
  EXPECT_EQ(minutes_kept(**reader, {kBegin + 8min, kBegin + 12min}), 2U);
  EXPECT_EQ(minutes_kept(**reader, {kBegin + 200min, kBegin + 204min}), 0U);
}

model::LatencySpike spike_at(const char* device, model::WallTime begin, std::chrono::seconds duration) {
  model::LatencySpike spike;
  spike.device = device;
  spike.begin = begin;
  spike.duration = duration;
  return spike;
}

TEST(Reading, a_moment_has_what_touches_its_minute_and_says_what_is_missing) {
  Rig rig({std::chrono::hours(90 * 24), std::uint64_t{64} << 20U});
  model::Batch batch;
  for (const int minute : {0, 1, 2, 10, 11}) {
    model::DeviceInterval load;
    load.measured_ms = minute == 2 ? 20'000 : 60'000;
    load.operations[0].ios = 7;
    batch.device_minutes.push_back({{"w", "sda", "m", "s"}, kBegin + std::chrono::minutes(minute), load});
  }
  batch.spikes = {spike_at("sda", kBegin + 50s, 75s), spike_at("sdb", kBegin + 119s, 1s),
                  spike_at("sda", kBegin + 121s, 1s), spike_at("sda", kBegin + 5s, 10s)};
  batch.bursts = {{kBegin + 40s, "sda", "fstrim", 30, 4096}, {kBegin + 40s, "sdz", "mkfs", 30, 4096}};
  batch.waits = {{kBegin - 10h, "frozen", "/srv/pg", "", "", 11 * 3600.0, "command=fsfreeze", "freeze_super"},
                 {kBegin + 40s, "cgroup_limit", "db.slice", "sdz", "pg.service", 60, "limit_per_second=40", "io.max"},
                 {kBegin + 10s, "full", "/srv/pg", "", "", 5, "", "statfs(2)"}};
  rig.write(batch, kBegin + 12min);
  const auto ask = [&](model::Minute at) {
    auto past = PastReader::open(rig.file(), 25ms, std::chrono::steady_clock::now() + 60s);
    auto moment = past->moment(at);
    EXPECT_TRUE(moment.has_value()) << moment.error().message;
    return *moment;
  };
  const auto second = ask(kBegin + 1min);
  EXPECT_EQ(second.window, (Window{kBegin + 1min, kBegin + 2min}));
  ASSERT_EQ(second.devices.size(), 1U);
  EXPECT_EQ(second.devices[0].ios, 7U);
  ASSERT_EQ(second.spikes.size(), 2U);
  EXPECT_EQ(second.spikes[0].begin, kBegin + 50s) << "it began a minute earlier";
  EXPECT_EQ(second.spikes[1].device, "sdb");
  ASSERT_EQ(second.bursts.size(), 1U);
  EXPECT_EQ(second.bursts[0].trigger, "fstrim");
  ASSERT_EQ(second.waits.size(), 2U);
  EXPECT_EQ(second.waits[0].evidence, "command=fsfreeze") << "it began ten hours earlier";
  EXPECT_EQ(second.waits[1].device, "sdz");
  EXPECT_EQ(ask(kBegin + 2min).devices[0].measured_ms, 20'000U);
  const auto gap = ask(kBegin + 5min);
  EXPECT_TRUE(gap.devices.empty());
  EXPECT_EQ(gap.recorded_until, kBegin + 3min);
  EXPECT_EQ(gap.recorded_from, kBegin + 10min);
  EXPECT_EQ(gap.reach.minutes, kBegin);
  EXPECT_EQ(ask(kBegin - 5min).recorded_until, std::nullopt);

  // Fifteen days later only the hours are left; its spikes still have their seconds.
  for (int i = 0; i < 4; ++i) {
    rig.write({}, kBegin + std::chrono::days(15));
  }
  const auto hour = ask(kBegin + 1min);
  EXPECT_EQ(hour.window.to - hour.window.from, std::chrono::minutes(60));
  ASSERT_EQ(hour.devices.size(), 1U);
  EXPECT_EQ(hour.spikes.size(), 2U);

  // A series includes what touches its window: the table and the first line describe the same spikes.
  auto past = PastReader::open(rig.file(), 25ms, std::chrono::steady_clock::now() + 60s);
  const auto series = past->series("sda", Window{kBegin + 1min, kBegin + 2min}, 2);
  ASSERT_TRUE(series.has_value());
  ASSERT_EQ(series->spikes.size(), 1U);
  EXPECT_EQ(series->spikes[0].begin, kBegin + 50s);
  EXPECT_EQ(series->bursts.size(), 1U) << "it ended within";
  ASSERT_EQ(series->waits.size(), 1U) << "the limit is for another disk";
  EXPECT_EQ(series->waits[0].subject, "/srv/pg");
}

/// What a day has in the slots that the next test fills.
void expect_slot(const model::PastDay::Slot& slot, std::uint32_t minutes, std::uint64_t spikes, std::uint64_t bursts,
                 const std::string& worst) {
  EXPECT_EQ(slot.measured_minutes, minutes);
  EXPECT_EQ(slot.spikes, spikes);
  EXPECT_EQ(slot.bursts, bursts);
  EXPECT_EQ(slot.worst ? slot.worst->cause : "", worst);
}

TEST(Reading, a_day_has_its_slots_its_marks_and_its_last_hour) {
  Rig rig({std::chrono::hours(90 * 24), std::uint64_t{64} << 20U});
  const model::Minute at = kBegin + 24h + 7min;  // so the first slot begins a quarter of an hour after kBegin
  model::Batch batch;
  const auto measure = [&](const std::string& identity, const std::string& name, model::Minute start,
                           std::uint64_t reads) {
    model::DeviceInterval load;
    load.measured_ms = 60'000;
    load.latency(model::Latency::read_total) = {{{100, reads}}, 1};
    load.latency(model::Latency::write_total) = {{{120, 2 * reads}}, 1};
    batch.device_minutes.push_back({{identity, name, "m", "s"}, start, load});
  };
  for (const auto start : {kBegin + 14min, kBegin + 15min, kBegin + 29min, kBegin + 30min}) {
    measure("w", "sda", start, 1000);
  }
  measure("w", "sda", at - 61min, 1000);
  measure("w", "sda", at - 60min, 1);
  measure("w", "sda", at - 1min, 2);
  measure("w", "sda", at, 1000);
  measure("w2", "sda", kBegin + 40min, 1000);  // had the name earlier
  measure("w3", "sdz", kBegin + 14min, 1000);  // was gone by then
  const auto spike = [&](const char* device, model::WallTime begin, std::chrono::seconds length, double excess,
                         model::SpikeCause cause) {
    batch.spikes.push_back(spike_at(device, begin, length));
    batch.spikes.back().excess_seconds = excess;
    batch.spikes.back().cause = cause;
  };
  spike("sda", kBegin + 10min, 1s, 50, model::SpikeCause::error);
  spike("sda", kBegin + 14min + 50s, 20s, 1, model::SpikeCause::flush);
  spike("sda", kBegin + 29min + 50s, 20s, 5, model::SpikeCause::gc);
  spike("sda", kBegin + 31min, 1s, 9, model::SpikeCause::discard);
  spike("sdb", kBegin + 32min, 1s, 90, model::SpikeCause::thermal);
  batch.bursts = {{kBegin + 20min, "sda", "fstrim", 1800, 4096}, {kBegin + 20min, "sdb", "mkfs", 30, 4096}};
  rig.write(batch, at + 1min);
  const auto ask = [&] {
    auto past = PastReader::open(rig.file(), 25ms, std::chrono::steady_clock::now() + 60s);
    auto day = past->day(at);
    EXPECT_TRUE(day.has_value()) << day.error().message;
    return *day;
  };
  const auto day = ask();
  EXPECT_EQ(day.window, (Window{kBegin + 15min, kBegin + 24h + 15min}));
  EXPECT_EQ(day.hour, (Window{at - 1h, at}));
  ASSERT_EQ(day.devices.size(), 1U);
  const auto& device = day.devices[0];
  EXPECT_EQ(device.name, "sda");
  expect_slot(device.slots[0], 2, 2, 1, "gc");
  expect_slot(device.slots[1], 1, 2, 1, "discard");
  expect_slot(device.slots[2], 0, 0, 1, "");
  expect_slot(device.slots[3], 0, 0, 0, "");
  expect_slot(device.slots[91], 2, 0, 0, "");
  expect_slot(device.slots[95], 2, 0, 0, "");
  EXPECT_EQ(device.slots[1].worst->excess_seconds, 9.0);
  EXPECT_EQ(device.slots[1].worst->begin, kBegin + 31min);
  EXPECT_EQ(device.spikes, 3U) << "each once";
  EXPECT_EQ(device.bursts, 1U);
  EXPECT_EQ(device.hour_measured_ms, 120'000U);
  EXPECT_EQ(device.hour_reads.count(), 3U);
  EXPECT_EQ(device.hour_writes.count(), 6U);

  // Sixteen days later only the hours are left; which minutes of a partly recorded hour are missing is no longer known.
  for (int i = 0; i < 40; ++i) {
    rig.write({}, kBegin + std::chrono::days(16));
  }
  const auto later = ask();
  ASSERT_EQ(later.devices.size(), 1U);
  EXPECT_EQ(later.devices[0].slots[0].measured_minutes, 15U);
  EXPECT_EQ(later.devices[0].slots[2].measured_minutes, 15U);
  EXPECT_EQ(later.devices[0].slots[3].measured_minutes, 0U);
  EXPECT_EQ(later.devices[0].slots[95].measured_minutes, 15U) << "of an hour that ends after the day";
  EXPECT_EQ(later.devices[0].slots[1].spikes, 2U);
  EXPECT_EQ(later.devices[0].hour_measured_ms, 0U) << "not known";
}

TEST(Reading, a_disk_that_was_replaced_keeps_its_own_numbers) {
  Rig rig;
  model::Batch batch = batch_of(0, 1);
  batch.device_minutes.push_back(minute_of_sda(5));
  batch.device_minutes.back().device = {"sda", "sda", "m2", ""};  // its successor; the first has another identity
  batch.settings = {{"w", "scheduler", "none"}, {"sda", "scheduler", "bfq"}};
  batch.at = kBegin;
  rig.write(batch, kBegin + 6min);
  const auto reader = Reader::open(rig.file()).value();
  const Window window{kBegin, kBegin + 10min};
  EXPECT_EQ(reader->load("sda", window)->operations[0].ios, 6U) << "by the name: who had it last";
  const auto devices = reader->devices();
  ASSERT_EQ(devices->size(), 2U);
  for (const model::PastDevice& device : *devices) {
    EXPECT_EQ(device.name, "sda");
    EXPECT_EQ(reader->load(device, window)->operations[0].ios, device.identity == "w" ? 1U : 6U);
    EXPECT_EQ(reader->series(device, window)->device.model, device.model);
    EXPECT_EQ(reader->series(device, window)->settings.at(0).value, device.identity == "w" ? "none" : "bfq");
  }
  const auto settings = reader->settings(window);
  ASSERT_EQ(settings->size(), 2U);
  EXPECT_EQ(settings->at(0).identity, "sda");
  EXPECT_EQ(settings->at(1).identity, "w");
}

TEST(Reading, a_name_that_is_an_older_devices_identity_is_of_who_has_it_now) {
  Rig rig;
  model::Batch batch = batch_of(5, 6);
  batch.device_minutes.push_back(minute_of_sda(0));
  batch.device_minutes.back().device = {"sda", "sda", "m2", ""};
  rig.write(batch, kBegin + 6min);
  const auto reader = Reader::open(rig.file()).value();
  const Window window{kBegin, kBegin + 10min};
  EXPECT_EQ(reader->load("sda", window)->operations[0].ios, 6U);
  model::PastDevice older;
  older.identity = "sda";
  EXPECT_EQ(reader->load(older, window)->operations[0].ios, 1U);
}

// ---- what happened

TEST(Events, a_setting_is_a_row_when_it_is_another_one_also_after_a_restart) {
  Rig rig;
  const auto set = [&](const std::string& value, std::int64_t minute) {
    model::Batch batch;
    batch.at = kBegin + std::chrono::minutes(minute);
    batch.settings.push_back({"w", "scheduler", value});
    rig.write(batch, kBegin + std::chrono::minutes(minute));
  };
  rig.write(batch_of(0, 1), kBegin + 1min);
  set("none", 1);
  set("none", 2);
  set("bfq", 3);
  set("bfq", 4);
  set("none", 5);
  const auto changes = (*Reader::open(rig.file()))->settings({kBegin, kBegin + 10min});
  ASSERT_TRUE(changes.has_value());
  ASSERT_EQ(changes->size(), 3U);
  EXPECT_FALSE((*changes)[0].before);
  EXPECT_EQ((*changes)[1].before, "none");
  EXPECT_EQ((*changes)[1].value, "bfq");
  EXPECT_EQ((*changes)[1].device, "sda");
  EXPECT_EQ((*changes)[1].at, model::WallTime(kBegin + 3min));
  EXPECT_EQ((*changes)[2].value, "none");
}

TEST(Events, of_many_settings_the_newest_are_shown) {
  Rig rig;
  rig.write(batch_of(0, 1), kBegin + 1min);
  for (int i = 0; i < 2001; ++i) {
    model::Batch batch;
    batch.at = kBegin + std::chrono::milliseconds(i);
    batch.settings.push_back({"w", "nr_requests", std::to_string(i)});
    rig.write(batch, kBegin + 1min);
    if (i < 1999) {
      continue;
    }
    const auto series = (*Reader::open(rig.file()))->series("sda", {kBegin, kBegin + 10min});
    ASSERT_TRUE(series.has_value());
    ASSERT_EQ(series->settings.size(), 2000U);
    EXPECT_EQ(series->settings.back().value, std::to_string(i));
    EXPECT_EQ(series->settings.back().before, std::to_string(i - 1));
    EXPECT_EQ(series->settings.front().value, std::to_string(i - 1999));
    EXPECT_EQ(series->cut, i >= 2000);
  }
}

TEST(Events, settings_are_bounded_and_those_that_are_in_force_stay_longest) {
  Rig rig;
  model::Batch batch;
  batch.at = kBegin;
  for (std::int64_t i = 0; i < kMaxSettings; ++i) {
    batch.settings.push_back({"w", "mount /run/" + std::to_string(i), "ext4"});
  }
  rig.write(batch, kBegin);
  batch.at = kBegin + 1min;
  batch.settings.resize(100);
  for (model::Setting& unmounted : batch.settings) {
    unmounted.value.clear();
  }
  batch.settings.push_back({"w", "scheduler", "none"});
  rig.write(batch, kBegin + 1min);
  rig.write({}, kBegin + 2min);
  auto connection = Connection::open_to_read(rig.file());
  EXPECT_EQ(connection->number("SELECT count(*) FROM setting"), kMaxSettings - 100 + 1) << "all that are in force";
  EXPECT_EQ(connection->number("SELECT count(*) FROM setting WHERE name IN ('mount /run/100', 'scheduler')"), 2);
  EXPECT_EQ(connection->number("SELECT count(*) FROM setting WHERE value = ''"), 0);
  rig.write({}, kBegin + std::chrono::days(100));
  EXPECT_EQ(connection->number("SELECT count(*) FROM setting WHERE value = ''"), 0);
  EXPECT_EQ(connection->number("SELECT count(*) FROM setting"), kMaxSettings - 100 + 1) << "however old";
}

TEST(Events, marks_of_one_moment_are_all_kept) {
  Rig rig;
  model::Batch batch;
  batch.marks = {{kBegin, "a"}, {kBegin, "b"}, {kBegin + 1ms, "c"}};
  rig.write(batch, kBegin);
  const auto marks = (*Reader::open(rig.file()))->marks({kBegin, kBegin + 10min});
  ASSERT_TRUE(marks.has_value());
  ASSERT_EQ(marks->size(), 3U);
  EXPECT_EQ((*marks)[2].text, "c");
}

TEST(Events, a_flood_of_marks_of_one_moment_stops_nothing) {
  Rig rig;
  model::Batch batch;
  batch.marks.assign(3000, {kBegin, "flood"});
  rig.write(batch, kBegin);
  batch.marks.assign(1, {kBegin + 500ms, "in the middle of it"});
  rig.write(batch, kBegin);
  auto connection = Connection::open_to_read(rig.file());
  EXPECT_EQ(connection->number("SELECT count(*) FROM mark"), 3001);
  EXPECT_EQ(connection->number("SELECT max(at_ms) - min(at_ms) FROM mark"), 3000);
}

TEST(Events, the_seconds_around_the_worst_spikes_are_kept_longest) {
  Rig rig({std::chrono::hours(24), std::uint64_t{8} << 20U});  // 1 MiB for them
  for (int i = 0; i < 40; ++i) {
    model::Batch batch;
    const auto at = kBegin + std::chrono::minutes(i);
    batch.spike_seconds.push_back({"sda", at, at + 1min, static_cast<double>(i % 10), model::Bytes(100'000, 1)});
    rig.write(batch, at);
  }
  auto connection = Connection::open_to_read(rig.file());
  EXPECT_EQ(connection->number("SELECT count(*) FROM spike_seconds"), 10);
  EXPECT_GE(connection->number("SELECT min(CAST(excess_seconds AS INTEGER)) FROM spike_seconds").value(), 7);
}

// ---- room

TEST(Room, goes_to_hours_first_and_tenants_have_a_fifth) {
  Rig rig({std::chrono::hours(90 * 24), std::uint64_t{2} << 20U});
  Random random = seeded();
  std::uint64_t ios = 0;
  model::PastReach reach;
  constexpr std::int64_t kMinutes = 3 * 24 * 60;
  for (std::int64_t minute = 0; minute < kMinutes; minute += 10) {
    model::Batch batch;
    for (std::int64_t i = minute; i < minute + 10; ++i) {
      auto row = minute_of_sda(i);
      ios += row.load.operations[0].ios;
      row.load.latency(model::Latency::read_total) = some_histogram(random, 300);
      for (int tenant = 0; tenant < 12; ++tenant) {
        row.tenants.push_back({"tenant " + std::to_string(tenant), {{{{1, 4096, random() % 1'000'000}}}}});
      }
      batch.device_minutes.push_back(std::move(row));
    }
    reach = rig.write(batch, kBegin + std::chrono::minutes(minute + 10));
  }
  EXPECT_LE(std::filesystem::file_size(rig.file()), std::uint64_t{2} << 20U);
  auto connection = Connection::open_to_read(rig.file());
  const auto bytes = [&](const char* table) {
    return connection->number("SELECT coalesce(sum(length(tenants)), 0) FROM " + std::string(table)).value();
  };
  EXPECT_EQ(connection->number("SELECT tenant_bytes FROM account"), bytes("tenant_minute") + bytes("tenant_hour"));
  EXPECT_LE(bytes("tenant_minute") + bytes("tenant_hour"), (std::int64_t{2} << 20U) / 5 + 10'000);
  ASSERT_TRUE(reach.minutes && reach.hours);
  EXPECT_GT(*reach.minutes, kBegin + 1h) << "there was no room for all";
  EXPECT_EQ(*reach.hours, kBegin) << "and enough for each hour";
  EXPECT_EQ(rig.load("sda", {kBegin, kBegin + std::chrono::minutes(kMinutes)}).operations[0].ios, ios);
  std::cout << "2 MiB: minutes of " << (kBegin + std::chrono::minutes(kMinutes) - *reach.minutes).count() / 60
            << " hours, hours of all " << kMinutes / 60 << "\n";
}

TEST(Room, tenants_have_a_fifth_also_where_nothing_else_needs_the_rest) {
  constexpr std::uint64_t kBytes = std::uint64_t{2} << 20U;
  Rig rig({std::chrono::hours(90 * 24), kBytes});
  Random random = seeded();
  constexpr std::int64_t kMinutes = 6 * 24 * 60;
  for (std::int64_t minute = 0; minute < kMinutes; minute += 10) {
    model::Batch batch;
    for (std::int64_t i = minute; i < minute + 10; ++i) {
      auto row = minute_of_sda(i);
      for (int tenant = 0; tenant < 12; ++tenant) {
        row.tenants.push_back({"tenant " + std::to_string(tenant), {{{{1, 4096, random() % 1'000'000}}}}});
      }
      batch.device_minutes.push_back(std::move(row));
    }
    const auto reach = rig.write(batch, kBegin + std::chrono::minutes(minute + 10));
    ASSERT_EQ(reach.minutes, kBegin) << "minute " << minute << " needed the room of others";
  }
  auto connection = Connection::open_to_read(rig.file());
  const auto bytes = connection->number("SELECT tenant_bytes FROM account").value();
  EXPECT_LE(bytes, static_cast<std::int64_t>(kBytes / 5) + 10'000);
  EXPECT_GE(bytes, static_cast<std::int64_t>(kBytes / 6)) << "and most of it is used";
}

}  // namespace
}  // namespace ssdpulse::history
