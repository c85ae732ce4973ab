// SPDX-License-Identifier: Apache-2.0
// Does memory keep each second as it was while it has room, and never take more?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "daemon/history/recent_past.h"
#include "daemon/spikes/past_spikes.h"
#include "tests/unit/fed_past.h"
#include "tests/unit/prometheus_snapshots.h"

namespace ssdpulse::history {
namespace {

using model::index;
using model::Operation;
using test::at;
using test::FedPast;

/// Grows by I/Os of the given words; every histogram that a real drive has grows along.
class Drive {
 public:
  explicit Drive(std::string name) { device_.name = std::move(name); }

  void read(std::size_t word, std::uint64_t ios) {
    auto& read = io_.operations[index(Operation::read)];
    for (auto* histogram : {&read.total_latency, &read.device_latency[0], &read.queue_latency}) {
      histogram->words.resize(LATENCY_OVER_WORD + 1);
      histogram->words[word] += ios;
    }
    read.bytes += 4096 * ios;
  }
  void begin_anew() { io_ = {}; }

  [[nodiscard]] model::DeviceSnapshot snapshot() const {
    model::DeviceSnapshot result;
    result.device = std::make_shared<const model::Device>(device_);
    result.io = std::make_shared<const model::DeviceIo>(io_);
    return result;
  }

 private:
  model::Device device_;
  model::DeviceIo io_;
};

/// Snapshot `number`, one second after the previous one.
model::Snapshot second(std::uint64_t number, std::vector<model::DeviceSnapshot> devices) {
  model::Snapshot snapshot;
  snapshot.number = number;
  snapshot.taken_at = at(1'700'000'000'000 + static_cast<std::int64_t>(number) * 1000);
  snapshot.devices = std::move(devices);
  return snapshot;
}

RC_GTEST_PROP(live_column, is_what_it_was_after_its_bytes, ()) {
  Column column;
  for (OperationColumn& kind : column.operations) {
    if (*rc::gen::arbitrary<bool>()) {
      kind.ios = *rc::gen::arbitrary<std::uint64_t>();
      kind.bytes = *rc::gen::arbitrary<std::uint64_t>();
      kind.in_flight = *rc::gen::arbitrary<std::int64_t>();
      kind.total = {*rc::gen::inRange<std::uint64_t>(1, 1'000'000), 3, 200, 210};
      kind.queue = {*rc::gen::inRange<std::uint64_t>(1, 1'000'000), 0, 1, 2};
      for (std::uint8_t word = 0; word <= LATENCY_OVER_WORD; ++word) {
        if (*rc::gen::inRange(0, 8) == 0) {
          kind.buckets.emplace_back(word, *rc::gen::inRange<std::uint64_t>(1, 1ULL << 40));
        }
      }
    }
  }
  column.during[1][2] = {7, 1, 2, 3};
  const bool busy = std::any_of(column.operations.begin(), column.operations.end(),
                                [](const OperationColumn& kind) { return kind != OperationColumn{}; });
  if (busy) {
    column.reads_during_discard = {{0, 1}, {LATENCY_OVER_WORD, 300}};
    column.reads_during_flush = column.operations[4].buckets;
    column.queue_ns = *rc::gen::arbitrary<std::uint64_t>();
    column.device_ns = *rc::gen::arbitrary<std::uint64_t>();
  }
  column.errors = *rc::gen::arbitrary<std::uint64_t>();
  column.bursts = *rc::gen::arbitrary<std::uint8_t>();
  column.in_spike = true;
  const auto bytes = encode(column);
  RC_ASSERT(decode(bytes) == column);
}

TEST(live_column, that_is_not_whole_is_none) {
  Column column;
  column.operations[0].ios = 7;
  column.operations[0].buckets = {{3, 7}};
  column.operations[4].buckets = {{200, 1}};
  const auto bytes = encode(column);
  EXPECT_EQ(decode(bytes), column);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode(std::string_view(bytes).substr(0, length))) << length << " of " << bytes.size();
  }
  EXPECT_FALSE(decode(bytes + '\0'));
}

TEST(live_column, has_reads_by_what_was_beside_them_and_where_time_was_spent) {
  using model::During;
  model::DeviceIo before;
  auto& read = before.operations[index(Operation::read)];
  for (auto& histogram : read.device_latency) {
    histogram.words.resize(LATENCY_OVER_WORD + 1);
  }
  read.queue_latency.sum_ns = 7;
  model::DeviceIo now = before;
  auto& reads = now.operations[index(Operation::read)];
  const auto grow = [&](During during, std::size_t word, std::uint64_t ios, std::uint64_t sum_ns) {
    reads.device_latency[index(during)].words[word] += ios;
    reads.device_latency[index(during)].sum_ns += sum_ns;
  };
  grow(During::none, 90, 1000, 400);
  grow(During::discard, 100, 3, 300);
  grow(During::flush, 120, 4, 200);
  grow(During::both, 140, 5, 100);
  reads.queue_latency.sum_ns = 1007;
  auto& writes = now.operations[index(Operation::write)];
  writes.queue_latency.sum_ns = 50;
  writes.device_latency[index(During::flush)].sum_ns = 5;
  const auto interval = model::between(before, now, std::chrono::seconds(1));
  ASSERT_TRUE(interval);
  const std::optional column = column_of(*interval, {});
  EXPECT_EQ(column->reads_during_discard, (SparseBuckets{{100, 3}, {140, 5}}));
  EXPECT_EQ(column->reads_during_flush, (SparseBuckets{{120, 4}, {140, 5}}));
  EXPECT_EQ(column->queue_ns, 1050U);
  EXPECT_EQ(column->device_ns, 1005U);
  EXPECT_EQ(decode(encode(*column)), *column);
}

ColumnSummary brief(std::uint64_t number) {
  const auto low = static_cast<std::uint8_t>(number % 200);
  return {static_cast<std::uint8_t>(number % 8), {{low, 1, 2, 3, 4}}};
}

RC_GTEST_PROP(live_ring, keeps_the_newest_frames_whole, ()) {
  const auto capacity = *rc::gen::inRange<std::size_t>(64, 2000);
  Ring ring(capacity);
  std::vector<std::pair<std::uint64_t, std::string>> pushed;
  const auto frames = *rc::gen::inRange<std::uint64_t>(1, 200);
  for (std::uint64_t number = 1; number <= frames; ++number) {
    const auto column =
        std::string(*rc::gen::inRange<std::size_t>(0, capacity / 2), static_cast<char>('a' + number % 26));
    Ring::Frame frame{number, at(static_cast<std::int64_t>(number)), std::chrono::milliseconds(1), {}};
    if (*rc::gen::inRange(0, 5) > 0) {
      frame.entries = {{"other", {}, "x"}, {"sda", brief(number), column}};
      if (number % 3 == 0) {
        std::swap(frame.entries[0], frame.entries[1]);
      }
      pushed.emplace_back(number, column);
    }
    ring.push(frame);
  }
  RC_ASSERT(ring.capacity() == capacity);
  RC_ASSERT(ring.reach().last == frames);
  const auto kept = ring.after(0, "sda");
  RC_ASSERT(kept.back().number == frames);
  std::uint64_t expected = ring.reach().first;
  std::size_t bytes = 0;
  for (const Second& second : kept) {
    RC_ASSERT((bytes += second.bytes.value_or("").size()) <= capacity);
    RC_ASSERT(second.number == expected++);
    const auto found =
        std::find_if(pushed.begin(), pushed.end(), [&](const auto& one) { return one.first == second.number; });
    RC_ASSERT(second.bytes.has_value() == (found != pushed.end()));
    RC_ASSERT((!second.bytes || *second.bytes == found->second));
  }
  const std::uint64_t newest = *rc::gen::inRange<std::uint64_t>(0, frames + 2);
  const Ring::Summaries summaries = ring.summaries(newest);
  const auto of_sda = std::find_if(summaries.devices.begin(), summaries.devices.end(),
                                   [](const auto& one) { return one.name == "sda"; });
  std::size_t i = 0;
  for (const Second& second : kept) {
    if (second.number <= newest) {
      RC_ASSERT(summaries.numbers.at(i) == second.number);
      RC_ASSERT(summaries.ends.at(i) == second.end);
      const auto seen = of_sda == summaries.devices.end() ? std::nullopt : of_sda->columns.at(i);
      RC_ASSERT(seen == (second.bytes ? std::optional(brief(second.number)) : std::nullopt));
      ++i;
    }
  }
  RC_ASSERT(summaries.numbers.size() == i);
  RC_ASSERT((of_sda == summaries.devices.end() || of_sda->columns.size() == i));
  // Nothing is dropped before its room is needed: two frames of less than half the ring are both there.
  RC_ASSERT((frames == 1 || capacity < 1000 || !kept.empty()));
}

TEST(live_ring, forgets_after_15_minutes_of_idle_drives) {
  Ring ring;
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    ring.push({number, at(0), std::chrono::seconds(1), {}});
  }
  EXPECT_EQ(ring.reach().first, 101U);
  EXPECT_EQ(ring.after(995, "sda").size(), 5U);
}

TEST(live_past, has_what_was_added_between_two_snapshots) {
  FedPast past;
  Drive drive("sda");
  drive.read(100, 7);
  past.observe(second(1, {drive.snapshot()}));
  drive.read(100, 98);
  drive.read(150, 2);
  past.observe(second(2, {drive.snapshot()}));
  past.observe(second(3, {drive.snapshot()}));
  const auto seconds = past.ring().after(0, "sda");
  ASSERT_EQ(seconds.size(), 2U);
  EXPECT_EQ(seconds[0].number, 2U);
  EXPECT_EQ(seconds[0].length, std::chrono::seconds(1));
  const auto column = decode(*seconds[0].bytes).value();
  EXPECT_EQ(column.operations[Operation::read].buckets, (SparseBuckets{{100, 98}, {150, 2}}));
  EXPECT_EQ(column.operations[Operation::read].bytes, 409'600U);
  EXPECT_EQ(column.operations[Operation::read].total, (Tail{100, 100, 150, 150}));
  EXPECT_EQ(column.operations[Operation::read].queue.ios, 100U);
  EXPECT_EQ(column.operations[Operation::write], OperationColumn{});
  EXPECT_EQ(decode(*seconds[1].bytes), Column{});
}

TEST(live_past, has_no_column_where_a_drive_was_not_there_or_restarted) {
  FedPast past;
  Drive drive("sda");
  drive.read(100, 7);
  past.observe(second(1, {drive.snapshot()}));
  past.observe(second(2, {}));
  past.observe(second(3, {drive.snapshot()}));
  drive.begin_anew();
  drive.read(90, 1);
  past.observe(second(4, {drive.snapshot()}));
  drive.read(90, 1);
  past.observe(second(5, {drive.snapshot()}));
  const auto seconds = past.ring().after(0, "sda");
  ASSERT_EQ(seconds.size(), 4U);
  EXPECT_FALSE(seconds[0].bytes);
  EXPECT_FALSE(seconds[1].bytes);
  EXPECT_FALSE(seconds[2].bytes);
  EXPECT_TRUE(seconds[3].bytes);
}

TEST(live_past, knows_bursts_by_their_begin_end_and_bytes) {
  FedPast past;
  Drive drive("sda");
  const auto observe = [&](std::uint64_t number, bool active, std::uint64_t bytes) {
    auto snapshot = drive.snapshot();
    snapshot.discards[index(model::DiscardTrigger::fstrim)] = {1, bytes, 0, active};
    past.observe(second(number, {snapshot}));
  };
  observe(1, false, 1000);
  observe(2, true, 1500);
  observe(3, true, 4000);
  ASSERT_EQ(past.bursts().size(), 1U);
  EXPECT_FALSE(past.bursts()[0].end);
  observe(4, false, 5000);
  observe(5, true, 5100);
  const auto bursts = past.bursts();
  ASSERT_EQ(bursts.size(), 2U);
  EXPECT_EQ(bursts[0].trigger, model::DiscardTrigger::fstrim);
  EXPECT_EQ(bursts[0].begin, at(1'700'000'001'000));
  EXPECT_EQ(bursts[0].end, at(1'700'000'004'000));
  EXPECT_EQ(bursts[0].bytes, 4000U);
  EXPECT_EQ(bursts[1].bytes, 100U);
}

TEST(live_past, a_burst_ends_with_its_drive) {
  FedPast past;
  Drive drive("sda");
  auto active = drive.snapshot();
  active.discards[index(model::DiscardTrigger::fstrim)] = {1, 1500, 0, true};
  past.observe(second(1, {drive.snapshot()}));
  past.observe(second(2, {active}));
  past.observe(second(3, {}));
  past.observe(second(4, {drive.snapshot()}));  // another device with that name
  ASSERT_EQ(past.bursts().size(), 1U);
  EXPECT_EQ(past.bursts()[0].end, at(1'700'000'003'000));
}

TEST(spike_seconds, are_those_from_a_minute_before_to_a_minute_after) {
  FedPast past{1U << 20};
  Drive sda("sda");
  spikes::SpikeContext context;
  std::vector<spikes::SpikeSeconds> kept;
  for (std::uint64_t number = 1; number <= 200; ++number) {
    sda.read(number == 92 ? 150 : 60, 7);
    auto snapshot = second(number, {sda.snapshot()});
    past.observe(snapshot);
    if (number == 100) {
      model::LatencySpike spike;
      spike.device = "sda";
      spike.begin = at(1'700'000'090'000);
      spike.duration = std::chrono::seconds(5);
      spike.excess_seconds = 3;
      snapshot.spikes_ended = {spike};
    }
    for (spikes::SpikeSeconds& one : context.due(snapshot, past.ring())) {
      kept.push_back(std::move(one));
    }
  }
  ASSERT_EQ(kept.size(), 1U);
  const auto seconds = spikes::seconds_in(kept[0].bytes);
  ASSERT_EQ(seconds.size(), 126U);
  EXPECT_EQ(seconds.front().end, at(1'700'000'030'000));
  EXPECT_EQ(seconds.back().end, at(1'700'000'155'000));
  const Second& worst = seconds[92 - 30];
  EXPECT_EQ(worst.number, 92U);
  EXPECT_EQ(worst.length, std::chrono::seconds(1));
  EXPECT_EQ(decode(*worst.bytes).value().operations[Operation::read].buckets, (SparseBuckets{{150, 7}}));
  const std::string cut = kept[0].bytes.substr(0, kept[0].bytes.size() - 1);
  EXPECT_EQ(spikes::seconds_in(cut).size(), 125U) << "what is not whole is left out";
}

RC_GTEST_PROP(spike_seconds, of_any_bytes_are_sound_or_nothing, ()) {
  const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  for (const Second& second : spikes::seconds_in(bytes)) {
    if (second.bytes) {
      const auto column = decode(*second.bytes).value();
      for (const OperationColumn& kind : column.operations) {
        for (std::size_t i = 0; i < kind.buckets.size(); ++i) {
          RC_ASSERT(kind.buckets[i].first <= LATENCY_OVER_WORD);
          RC_ASSERT(i == 0 || kind.buckets[i - 1].first < kind.buckets[i].first);
        }
      }
    }
  }
}

TEST(live_past, a_clock_that_was_set_makes_no_wide_column) {
  using namespace std::chrono_literals;
  FedPast past{1U << 16};
  Drive sda("sda");
  const std::chrono::steady_clock::time_point begin{1h};
  const auto observe = [&](std::uint64_t number, std::chrono::milliseconds wall, std::chrono::milliseconds steady) {
    auto snapshot = second(number, {sda.snapshot()});
    snapshot.taken_at = at(1'700'000'000'000) + wall;
    past.observe(snapshot, begin + steady);
  };
  observe(1, 0ms, 0ms);
  observe(2, 1000ms, 1000ms);
  observe(3, 3'602'000ms, 2000ms);  // set forward by an hour, or the host slept
  observe(4, 3'606'100ms, 6100ms);  // the daemon had no CPU for four seconds
  observe(5, 3'607'250ms, 7100ms);  // slewed a little
  observe(6, 7'250ms, 8100ms);      // set back by an hour
  const auto seconds = past.ring().after(0, "sda");
  ASSERT_EQ(seconds.size(), 5U);
  std::vector<std::chrono::milliseconds> lengths;
  for (const Second& one : seconds) {
    lengths.push_back(one.length);
  }
  EXPECT_EQ(lengths, (std::vector<std::chrono::milliseconds>{1000ms, 1000ms, 4100ms, 1150ms, 1000ms}));
  EXPECT_EQ(seconds[1].end - seconds[1].length - seconds[0].end, 3'600'000ms) << "the time between belongs to nobody";
}

TEST(live_past, spikes_that_were_forgotten_bound_what_is_remembered) {
  FedPast past{1U << 16};
  auto first = second(1, {});
  past.observe(first);
  auto many = second(2, {});
  for (std::size_t i = 0; i < RecentPast::kMarks + 1; ++i) {
    model::LatencySpike spike;
    spike.begin = first.taken_at + std::chrono::milliseconds(i);
    spike.duration = std::chrono::milliseconds(500);
    many.spikes_ended.push_back(spike);
  }
  EXPECT_EQ(past.remembered_since(), first.taken_at);
  past.observe(many);
  EXPECT_EQ(past.ended_spikes().size(), RecentPast::kMarks);
  EXPECT_EQ(past.remembered_since(), first.taken_at + std::chrono::milliseconds(500));
}

TEST(live_past, a_clock_that_was_set_back_makes_no_column_of_less_than_nothing) {
  FedPast past;
  Drive drive("sda");
  past.observe(second(5000, {drive.snapshot()}));
  past.observe(second(100, {drive.snapshot()}));
  EXPECT_EQ(past.since(), at(1'700'000'100'000)) << "or nothing is said of the drives until the clock has caught up";
  const auto frames = past.ring().after(0, "sda");
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].length, std::chrono::seconds(1));
}

TEST(live_past, keeps_the_newest_spikes_and_no_more) {
  FedPast past;
  for (std::uint64_t number = 1; number <= RecentPast::kMarks + 10; ++number) {
    auto snapshot = second(number, {});
    snapshot.spikes_ended.resize(1);
    snapshot.spikes_ended[0].ios = number;
    past.observe(snapshot);
  }
  const auto spikes = past.ended_spikes();
  ASSERT_EQ(spikes.size(), RecentPast::kMarks);
  EXPECT_EQ(spikes.front().ios, 11U);
}

// 16 drives, each as busy as one with 20,000 reads and 10,000 writes per second and fsync, for 15 minutes.
TEST(live_past, has_room_for_15_minutes_of_16_busy_drives) {
  Column column;
  for (const Operation operation : {Operation::read, Operation::write, Operation::commit, Operation::flush}) {
    auto& busy = column.operations[operation];
    busy = {20'000, 81'920'000, {20'000, 90, 120, 140}, {20'000, 90, 120, 140}, {20'000, 90, 120, 140}, 3, {}};
    for (std::uint8_t word = 70; word < 110; ++word) {
      busy.buckets.emplace_back(word, word < 85 ? 1000 : 90);
    }
  }
  Ring ring;
  for (std::uint64_t number = 1; number <= 900; ++number) {
    Ring::Frame frame{number, at(0), std::chrono::seconds(1), {}};
    for (int drive = 0; drive < 16; ++drive) {
      frame.entries.push_back({"nvme" + std::to_string(drive) + "n1", summarize(column), encode(column)});
    }
    ring.push(frame);
  }
  EXPECT_EQ(ring.reach().first, 1U) << encode(column).size() << " bytes a column";
}

}  // namespace
}  // namespace ssdpulse::history
