// SPDX-License-Identifier: Apache-2.0
// Are increments exact, whatever the 32-bit words, the CPUs and the quiet cells do? The oracle counts every event
// separately in 64 bits; cells are plain memory here, written as the kernel would.
#include <gtest/gtest.h>
#include <linux/types.h>
#include <rapidcheck.h>

#include <memory>
#include <vector>

#include "daemon/block/io_cells.h"
#include "daemon/block/program_control.h"

namespace {

using namespace ssdpulse;
using namespace ssdpulse::block;

void complete_one(io_cell& cell, std::uint32_t word, std::uint32_t during, std::uint32_t times) {
  cell.issues += times;
  cell.completions += times;
  cell.bytes += std::uint64_t{4096} * times;
  cell.device[during][word] += times;  // wraps at 2^32, as in the kernel
  cell.device_sum_ns[during] += std::uint64_t{1000} * times;
}

TEST(CellReader, IncrementsAreExactAcrossCpusWrapsAndQuietCells) {
  EXPECT_TRUE(rc::check("sum of increments == sum of events", [] {
    const auto cpus = *rc::gen::inRange<std::size_t>(1, 6);
    std::vector<io_cell> cells(cpus * HOT_CLASSES);
    for (io_cell& cell : cells) {
      // Left behind by an earlier device, close to wrapping.
      complete_one(cell, 7, 0, *rc::gen::inRange<std::uint32_t>(0xffff0000U, 0xffffffffU));
    }
    CellReader reader(cells, CLASS_WRITE, HOT_CLASSES, cpus);
    std::uint64_t expected = 0;
    std::uint64_t expected_sum_ns = 0;
    model::OperationIo io;
    const auto rounds = *rc::gen::inRange(1, 120);
    const auto busy_percent = *rc::gen::inRange(0, 100);
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t cpu = 0; cpu < cpus; ++cpu) {
        if (*rc::gen::inRange(0, 100) < busy_percent) {
          const auto times = *rc::gen::inRange<std::uint32_t>(1, 0x7fffffff) / static_cast<std::uint32_t>(cpus);
          complete_one(cells[cpu * HOT_CLASSES + CLASS_WRITE], 7, 2, times);
          expected += times;
          expected_sum_ns += std::uint64_t{1000} * times;
        }
        complete_one(cells[cpu * HOT_CLASSES + CLASS_READ], 7, 2, 1);  // of the neighbour: not ours
      }
      if (const CellWords* words = reader.read(); words != nullptr) {
        decode_cell(*words, io);
      }
      RC_ASSERT(io.device_latency[2].count() == expected);
    }
    RC_ASSERT(io.completions == expected);
    RC_ASSERT(io.bytes == expected * 4096);
    RC_ASSERT(io.device_latency[2].sum_ns == expected_sum_ns);
    RC_ASSERT(io.device_latency[0].empty());
  }));
}

TEST(CellReader, AnUnchangedCellIsNotRead) {
  std::vector<io_cell> cells(1);
  CellReader reader(cells, 0, 1, 1);
  EXPECT_EQ(reader.read(), nullptr);
  complete_one(cells[0], 3, 0, 1);
  EXPECT_NE(reader.read(), nullptr);
  EXPECT_NE(reader.read(), nullptr) << "once more, for what was half written";
  EXPECT_EQ(reader.read(), nullptr);
}

TEST(CellReader, WordsWrittenAfterTheStampAreFoundAtTheNextReading) {
  std::vector<io_cell> cells(1);
  CellReader reader(cells, 0, 1, 1);
  model::OperationIo io;
  cells[0].issues += 1;  // the program is between its timestamp and its histogram
  decode_cell(*reader.read(), io);
  EXPECT_TRUE(io.queue_latency.empty());
  cells[0].queue[9] += 1;
  const CellWords* words = reader.read();
  ASSERT_NE(words, nullptr);
  decode_cell(*words, io);
  EXPECT_EQ(io.queue_latency.count(), 1U);
}

TEST(CellReader, WhatTookNoTimeDuringADiscardIsCountedBesidesWhatTookSome) {
  std::vector<io_cell> cells(2);
  CellReader reader(cells, 0, 1, 2);
  model::OperationIo io;
  const auto count = [&] {
    decode_cell(*reader.read(), io);
    return io.device_latency[model::index(model::During::discard)].count();
  };
  cells[1].completions += 1;
  cells[1].device[1][LATENCY_ZERO_WORD] += 1;  // the sum of times stays 0
  EXPECT_EQ(count(), 1U);
  complete_one(cells[0], 9, 1, 3);
  EXPECT_EQ(count(), 4U);
  complete_one(cells[1], 9, 1, 2);
  EXPECT_EQ(count(), 6U);
}

TEST(CellDecoder, EveryWordLandsWhereItBelongs) {
  // Each word of a cell has a distinct value; the layout is written out by hand here.
  auto cell = std::make_unique<io_cell>();
  auto* counters = reinterpret_cast<__u64*>(cell.get());
  for (std::uint64_t i = 0; i < kCounterWords; ++i) {
    counters[i] = 1000 + i;
  }
  cell->size[13] = 5;
  cell->queue[20] = 6;
  cell->total[30] = 7;
  cell->device[0][40] = 8;
  cell->device[1][41] = 9;
  cell->device[2][42] = 10;
  cell->device[3][LATENCY_OVER_WORD] = 11;
  CellWords words;
  words.add(*cell);
  model::OperationIo io;
  decode_cell(words, io);
  EXPECT_EQ(io.issues, 1000U);
  EXPECT_EQ(io.requeues[model::index(model::RequeueReason::driver)], 1011U);
  EXPECT_EQ(io.size.sum_bytes, 1003U);
  EXPECT_EQ(io.sequential_bytes, 1004U);
  EXPECT_EQ(io.queue_latency.sum_ns, 1005U);
  EXPECT_EQ(io.completions, 1001U + 1013U) << "with those that were not timed";
  EXPECT_EQ(io.untimed, 1013U);
  EXPECT_EQ(io.bytes, 1002U);
  EXPECT_EQ(io.total_latency.sum_ns, 1006U);
  EXPECT_EQ(io.queue_full_ns, 1012U);
  EXPECT_EQ(io.size.words.at(13), 5U);
  EXPECT_EQ(io.queue_latency.words.at(20), 6U);
  EXPECT_EQ(io.total_latency.words.at(30), 7U);
  for (std::size_t during = 0; during < 3; ++during) {
    EXPECT_EQ(io.device_latency[during].sum_ns, 1007U + during);
    EXPECT_EQ(io.device_latency[during].words.at(40 + during), 8U + during);
    EXPECT_EQ(io.device_latency[during].count(), 8U + during);
  }
  EXPECT_EQ(io.device_latency[3].words.at(LATENCY_OVER_WORD), 11U);
}

TEST(CellDecoder, StatusesAreNormalised) {
  using model::IoError;
  const std::pair<std::size_t, IoError> kExpected[] = {
      {1, IoError::unsupported}, {2, IoError::timeout}, {3, IoError::nospace}, {4, IoError::transport},
      {5, IoError::target},      {6, IoError::other},   {7, IoError::medium},  {8, IoError::protection},
      {9, IoError::other},       {10, IoError::io},     {12, IoError::again},  {16, IoError::offline},
      {17, IoError::offline},    {31, IoError::other},
  };
  for (const auto& [status, error] : kExpected) {
    EXPECT_EQ(error_of_status(status), error) << status;
  }
}

TEST(CellDecoder, EventsBecomeLossesRequeuesAndErrors) {
  operation_events before{};
  operation_events now{};
  before.count[EVENT_STRAY] = now.count[EVENT_STRAY] = ~0ULL;  // wraps, as any u64 may
  now.count[EVENT_STRAY] += 3;
  now.count[EVENT_UNISSUED] = 4;
  now.count[EVENT_FAILOVER] = 5;
  now.errors[7] = 6;
  const EventIncrements events = increments(now, before);
  EXPECT_TRUE(events.any);
  model::DeviceIo device;
  model::OperationIo io;
  decode_events(events, device, io);
  EXPECT_EQ(device.losses[model::index(model::Loss::stray)], 3U);
  EXPECT_EQ(io.unissued_completions, 4U);
  EXPECT_EQ(io.requeues[model::index(model::RequeueReason::failover)], 5U);
  EXPECT_EQ(io.errors[model::index(model::IoError::medium)], 6U);
  EXPECT_FALSE(increments(now, now).any);
}

/// The kernel's lookup, on the same table.
std::uint32_t look_up(const std::vector<known_disk>& table, const std::string& name, std::uint64_t identity) {
  __u64 words[DISK_NAME_WORDS] = {};
  std::copy(name.begin(), name.end(), reinterpret_cast<char*>(words));
  const std::uint32_t hash = known_disk_hash(words);
  for (std::uint32_t probe = 0; probe < KNOWN_DISK_PROBES; ++probe) {
    const known_disk& disk = table[(hash + probe) & (KNOWN_DISKS - 1)];
    if (disk.device == 0) {
      return 0;
    }
    if (std::equal(std::begin(words), std::end(words), std::begin(disk.name)) &&
        (disk.identity == 0 || disk.identity == identity)) {
      return disk.device;
    }
  }
  return 0;
}

TEST(KnownDisks, EveryDecisionIsFoundAndOldOnesAreForgotten) {
  EXPECT_TRUE(rc::check("publish, then look up", [] {
    std::vector<known_disk> table(KNOWN_DISKS);
    std::vector<queue_entry> queues(QUEUE_IDS);
    for (int round = 0; round < 3; ++round) {
      std::vector<DiskDecision> decisions;
      const auto count = *rc::gen::inRange(0U, 300U);
      for (std::uint32_t i = 0; i < count; ++i) {
        const bool excluded = *rc::gen::arbitrary<bool>();
        decisions.push_back({"disk" + std::to_string(i * 7 + static_cast<std::uint32_t>(round)), 1 + i,
                             excluded ? DEVICE_EXCLUDED : i + 1, false});
      }
      queues[5].disk = std::uint64_t{77} << QUEUE_ENTRY_DEVICE_BITS | 400;  // a device without a decision
      const std::size_t unplaced = publish_decisions(decisions, table, queues);
      std::size_t missing = 0;
      for (const DiskDecision& decision : decisions) {
        missing += look_up(table, decision.disk_name, decision.identity) == decision.device ? 0 : 1;
        RC_ASSERT(look_up(table, decision.disk_name, decision.identity + 1000) == 0U);
      }
      RC_ASSERT(missing == unplaced);
      RC_ASSERT(unplaced <= count / 20);
      RC_ASSERT(queues[5].disk == 0U);
    }
  }));
}

TEST(KnownDisks, WhatRetiresIsNotLookedUpButItsQueueIsRemembered) {
  std::vector<known_disk> table(KNOWN_DISKS);
  std::vector<queue_entry> queues(QUEUE_IDS);
  queues[9].disk = std::uint64_t{41} << QUEUE_ENTRY_DEVICE_BITS | 3;
  publish_decisions({{"sda", 41, 3, true}}, table, queues);
  EXPECT_EQ(look_up(table, "sda", 41), 0U);
  EXPECT_NE(queues[9].disk, 0U);
  publish_decisions({}, table, queues);
  EXPECT_EQ(queues[9].disk, 0U);
}

TEST(KnownDisks, WithoutIdentitiesTheSuccessorOfADiskGetsItsQueue) {
  std::vector<known_disk> table(KNOWN_DISKS);
  std::vector<queue_entry> queues(QUEUE_IDS);
  queues[9].disk = std::uint64_t{41} << QUEUE_ENTRY_DEVICE_BITS | 3;
  publish_decisions({{"sda", 0, 3, true}, {"sdb", 0, 4}}, table, queues);
  EXPECT_NE(queues[9].disk, 0U);
  publish_decisions({{"sda", 0, 3, true}, {"sda", 0, DEVICE_EXCLUDED}}, table, queues);
  EXPECT_NE(queues[9].disk, 0U) << "excluded with its requests in flight";
  publish_decisions({{"sda", 0, 3, true}, {"sda", 0, 5}}, table, queues);
  EXPECT_EQ(queues[9].disk, 0U);
  EXPECT_EQ(look_up(table, "sda", 41), 5U);
}

TEST(KnownDisks, AClosedEntryIsNotLookedUp) {
  std::vector<known_disk> table(KNOWN_DISKS);
  std::vector<queue_entry> queues(QUEUE_IDS);
  publish_decisions({{"sda", 41, 3}, {"sdb", 42, 4}}, table, queues);
  close_entries_of(3, table);
  EXPECT_EQ(look_up(table, "sda", 41), 0U);
  EXPECT_EQ(look_up(table, "sdb", 42), 4U);
}

TEST(KnownDisks, AReassignedRowIsForgottenByItsQueuesOnly) {
  std::vector<queue_entry> queues(QUEUE_IDS);
  queues[9].disk = std::uint64_t{41} << QUEUE_ENTRY_DEVICE_BITS | 3;
  queues[10].disk = std::uint64_t{41} << QUEUE_ENTRY_DEVICE_BITS | 4;
  forget_queues_of(3, queues);
  EXPECT_EQ(queues[9].disk, 0U);
  EXPECT_NE(queues[10].disk, 0U);
}

}  // namespace
