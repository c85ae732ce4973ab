// SPDX-License-Identifier: Apache-2.0
// Are hints, streams and classes what the kernel's words contain, and is the latency of writes without a hint the rest?
// Cells are plain memory here, written in the kernel's order.
#include <gtest/gtest.h>
#include <linux/types.h>
#include <rapidcheck.h>

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/block/end_functions.h"
#include "daemon/block/write_cells.h"
#include "daemon/block/write_hints.h"

namespace {

using namespace ssdpulse;
using namespace ssdpulse::block;
using model::WriteClass;
using model::WriteHint;

TEST(SlotTime, IsTheNearestOneForHalfAYear) {
  EXPECT_TRUE(rc::check("what was stored comes back, whatever class and path stand above it", [] {
    const auto now = *rc::gen::arbitrary<std::uint64_t>() >> 2U;
    const auto ago = *rc::gen::inRange<std::int64_t>(-1'000'000, std::int64_t{1} << 54U);
    const std::uint64_t issued = now - static_cast<std::uint64_t>(ago);
    const std::uint64_t word =
        slot_issued(*rc::gen::inRange<std::uint32_t>(0, 16), *rc::gen::inRange<std::uint32_t>(0, PATH_CODES), issued);
    RC_ASSERT(slot_time(word, now) == issued);
  }));
  // Around the moment when 55 bits overflow: 417 days of uptime.
  const std::uint64_t wrap = 1ULL << SLOT_PATH_SHIFT;
  EXPECT_EQ(slot_time((wrap - 5) & (wrap - 1), wrap + 7), wrap - 5);
  EXPECT_EQ(slot_time(2, wrap + 1), wrap + 2) << "clocks of two CPUs may differ a little";
}

/// One write under a hint code, as the two programs record it; the completion may be missing.
void issue(write_cell& cell, std::size_t code, std::uint64_t bytes) {
  cell.class_bytes[WRITE_DIRECT] += bytes;
  cell.hint_bytes[code] += bytes;
  cell.hint_ios[code] += 1;
}

void complete_hinted(tagged_cell& cell, std::size_t code, std::size_t word) {
  cell.latency_sum_ns[code] += 1000;
  cell.latency[code][word] += 1;
}

void complete(model::OperationIo& all, std::size_t word) {
  all.device_latency[0].words.resize(LATENCY_OVER_WORD + 1);
  all.device_latency[0].words[word] += 1;
  all.device_latency[0].sum_ns += 1000;
}

TEST(WriteReader, NoHintIsNotSetOnlyWhereBiosBringHints) {
  for (const bool bios_have_hints : {true, false}) {
    std::vector<write_cell> cells(2);
    std::vector<tagged_cell> tagged(1);
    issue(cells[0], HINT_DEFAULT, 1);  // of an earlier device
    WriteReader reader(cells, tagged);
    issue(cells[0], HINT_DEFAULT, 512);
    issue(cells[1], HINT_NOT_SET, 1024);
    issue(cells[1], 5, 4096);
    model::WriteDetails writes;
    decode_writes(reader.read(), default_hint(bios_have_hints), writes);
    const auto bytes = [&](WriteHint hint) { return writes.hint_bytes[model::index(hint)]; };
    EXPECT_EQ(bytes(WriteHint::not_set), bios_have_hints ? 1536U : 1024U);
    EXPECT_EQ(bytes(WriteHint::unknown), bios_have_hints ? 0U : 512U);
    EXPECT_EQ(bytes(WriteHint::extreme), 4096U);
    EXPECT_EQ(writes.class_bytes[model::index(WriteClass::direct)], 5632U);
  }
}

TEST(WriteReader, StreamsCountFromTheBaseline) {
  std::vector<write_cell> cells(1);
  std::vector<tagged_cell> tagged(2);
  tagged[0].stream_bytes[3] = 77;
  WriteReader reader(cells, tagged);
  tagged[0].stream_bytes[3] += 4096;
  tagged[1].stream_bytes[3] += 8192;
  cells[0].stream_bytes += 12288;
  model::WriteDetails writes;
  decode_writes(reader.read(), WriteHint::not_set, writes);
  decode_writes(reader.read(), WriteHint::not_set, writes);
  EXPECT_EQ(writes.stream_bytes, (std::map<std::uint8_t, std::uint64_t>{{3, 12288}}));
}

TEST(WriteReader, LatencyWithoutHintIsTheRest) {
  EXPECT_TRUE(rc::check("it never falls, and is exact at rest", [] {
    std::vector<write_cell> cells(2);
    std::vector<tagged_cell> tagged(2);
    complete_hinted(tagged[1], 4, 9);  // of an earlier device
    WriteReader reader(cells, tagged);
    model::OperationIo all;
    model::WriteDetails writes;
    std::vector<std::uint64_t> plain(LATENCY_OVER_WORD + 1);
    std::uint64_t plain_before = 0;
    std::size_t late = 0;  // the last hinted write's word, not yet in the sum of all writes when we read
    const auto observe = [&] {
      decode_writes(reader.read(), WriteHint::not_set, writes);
      complete_latency(all, WriteHint::not_set, writes);
      const auto& rest = writes.hint_latency[model::index(WriteHint::not_set)];
      RC_ASSERT(rest.count() >= plain_before);
      plain_before = rest.count();
      for (std::size_t i = 0; i < rest.words.size(); ++i) {
        RC_ASSERT(rest.words[i] <= plain[i]);
      }
    };
    const auto writes_to_do = *rc::gen::inRange(1, 200);
    for (int i = 0; i < writes_to_do; ++i) {
      if (late != 0) {
        complete(all, std::exchange(late, 0));
      }
      const auto code = *rc::gen::inRange<std::size_t>(0, 6);
      const auto word = *rc::gen::inRange<std::size_t>(1, 4);
      issue(cells[static_cast<std::size_t>(i) % 2], code, 4096);
      if (code == HINT_DEFAULT) {
        complete(all, word);
        ++plain[word];
      } else {
        complete_hinted(tagged[static_cast<std::size_t>(i) % 2], code, word);
        late = word;
      }
      if (*rc::gen::inRange(0, 3) == 0) {
        observe();
      }
    }
    if (late != 0) {
      complete(all, late);
    }
    observe();
    const auto& rest = writes.hint_latency[model::index(WriteHint::not_set)];
    RC_ASSERT(rest.empty() || rest.words == plain);
    RC_ASSERT(!rest.empty() || plain_before == 0);
    std::uint64_t count = 0;
    for (const auto& latency : writes.hint_latency) {
      count += latency.count();
      RC_ASSERT(latency.sum_ns == latency.count() * 1000);
    }
    RC_ASSERT(count == static_cast<std::uint64_t>(writes_to_do));
  }));
}

constexpr std::string_view kSymbols =
    "ffffffff8171e090 t bio_endio\n"
    "ffffffff817e1a50 t ext4_end_bio\n"
    "ffffffff817e1a40 t __pfx_ext4_end_bio\n"
    "ffffffff81aeda00 t blkdev_bio_end_io_async\n"
    "ffffffff81aedaa0 t blkdev_bio_end_io\n"
    "ffffffff99999999 r xlog_bio_end_io\n"
    "ffffffffc0123450 t xlog_bio_end_io\t[xfs]\n"
    "ffffffffc0223450 T super_written\t[md_mod]\n";

std::uint8_t shows(std::uint32_t end, std::uint32_t write_class) {
  return static_cast<std::uint8_t>(end << END_PATH_SHIFT | (write_class + 1));
}

TEST(EndFunctions, AreFoundAmongTheKernelsAndItsModules) {
  EXPECT_EQ(find_end_functions(kSymbols), (EndFunctions{{0xffffffff817e1a50, shows(END_PAGES, WRITE_WRITEBACK)},
                                                        {0xffffffff81aeda00, shows(END_BLKDEV_ASYNC, WRITE_DIRECT)},
                                                        {0xffffffff81aedaa0, shows(END_BLKDEV_DIO, WRITE_DIRECT)},
                                                        {0xffffffffc0123450, shows(END_JOURNAL, WRITE_JOURNAL)},
                                                        {0xffffffffc0223450, shows(END_STACKED, WRITE_OTHER)}}));
  EXPECT_TRUE(find_end_functions("0000000000000000 t ext4_end_bio\n").empty()) << "addresses are hidden";
  EXPECT_TRUE(find_end_functions("").empty());
  EXPECT_TRUE(find_end_functions("\n\nx\nffffffff8171e090\nffffffff8171e090 t \n").empty());
}

/// As the program looks one up.
std::uint32_t look_up(const std::vector<end_function_set>& table, std::uint64_t address) {
  const auto low = static_cast<std::uint32_t>(address);
  for (const __u64 entry : table[end_function_hash(low)].entry) {
    if (entry >> 8U == low) {
      return static_cast<std::uint32_t>(entry & 0xffU);
    }
  }
  return 0;
}

TEST(EndFunctions, AreLookedUpAndForgottenAgain) {
  std::vector<end_function_set> table(END_FUNCTION_SETS);
  EndFunctions functions = find_end_functions(kSymbols);
  EXPECT_EQ(publish_end_functions(functions, table), 0U);
  for (const auto& [address, shown] : functions) {
    EXPECT_EQ(look_up(table, address), shown);
  }
  EXPECT_EQ(look_up(table, 0xffffffff8171e090), 0U);
  functions.erase(0xffffffffc0123450);
  publish_end_functions(functions, table);
  EXPECT_EQ(look_up(table, 0xffffffffc0123450), 0U);
  EXPECT_EQ(look_up(table, 0xffffffff81aeda00) & END_WRITE_MASK, WRITE_DIRECT + 1U);
}

TEST(EndFunctions, TheCommonOnesAreKnownBeforeTheLoad) {
  const CommonFunctions common = common_functions(
      find_end_functions("ffffffff81aeda00 t blkdev_bio_end_io_async\nffffffff81700040 t iomap_dio_bio_end_io\n"
                         "ffffffff81800040 t io_complete_rw\nffffffff81800140 t io_complete_rw_iopoll\n"));
  EXPECT_EQ(common.end_blkdev_async, 0x81aeda00U);
  EXPECT_EQ(common.end_iomap_dio, 0x81700040U);
  EXPECT_EQ(common.ki_io_uring, 0x81800040U);
  EXPECT_EQ(common.ki_libaio, 1U) << "no function is there";
}

TEST(WriteHintPath, JoinsKernelDeviceAndDrive) {
  using model::DriveSeparation;
  using model::HintReach;
  model::Device device;
  model::NvmeIdentity drive;
  const auto path = [&](HintReach kernel) { return block::write_hint_path(kernel, device, &drive); };
  EXPECT_EQ(block::write_hint_path(HintReach::dropped, device, nullptr),
            (model::WriteHintPath{HintReach::dropped, DriveSeparation::unknown}));
  EXPECT_EQ(path(HintReach::block_layer), (model::WriteHintPath{HintReach::block_layer, DriveSeparation::none}));
  drive.admin_commands = 1U << 5U;
  EXPECT_EQ(path(HintReach::dropped).drive, DriveSeparation::directives);
  drive.controller_attributes = 1U << 19U;
  device.write_streams = 6;
  EXPECT_EQ(path(HintReach::block_layer), (model::WriteHintPath{HintReach::drive, DriveSeparation::fdp}));
}

TEST(WriteHintPath, DirectivesAreNoStreams) {
  constexpr auto kDirectives = model::DriveSeparation::directives;
  EXPECT_EQ(model::kDriveSeparationNames[static_cast<std::size_t>(kDirectives)], "directives");
  EXPECT_NE(model::kDriveSeparationWords[model::index(kDirectives)].find("may have streams"), std::string::npos);
}

}  // namespace
