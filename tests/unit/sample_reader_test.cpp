// SPDX-License-Identifier: Apache-2.0
// What does the flash model get from the kernel's events and counts?
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "daemon/block/write_cells.h"
#include "daemon/model/block_io.h"

namespace ssdpulse::block {
namespace {

using model::FlashEventKind;
using model::WriteHint;

TEST(SampleReader, PagesAndLossesSinceTheLastRead) {
  std::vector<write_cell> cells(3);
  device_state state{};
  cells[1].hint_pages[HINT_DEFAULT] = 1000;
  state.samples_lost[SAMPLE_DISCARD] = 7;
  SampleReader reader(cells, state);
  model::DeviceFlashSamples totals;
  cells[0].hint_pages[HINT_DEFAULT] += 5;
  cells[1].hint_pages[HINT_DEFAULT] += 6;
  cells[2].hint_pages[2] += 8;
  cells[2].hint_pages[HINT_NOT_SET] += 9;
  state.samples_lost[SAMPLE_ZEROES_KEPT] += 2;
  reader.read(WriteHint::unknown, totals);
  reader.read(WriteHint::unknown, totals);
  model::PagesByHint expected{};
  expected[model::index(WriteHint::unknown)] = 11;
  expected[model::index(WriteHint::short_lived)] = 8;
  expected[model::index(WriteHint::not_set)] = 9;
  EXPECT_EQ(totals.written, expected);
  EXPECT_EQ(totals.lost, (std::array<std::uint64_t, 4>{0, 0, 0, 2}));
  cells[0].hint_pages[HINT_DEFAULT] += 1;
  reader.read(WriteHint::not_set, totals);
  EXPECT_EQ(totals.written[model::index(WriteHint::not_set)], 10U);
}

TEST(SampleReader, EventsFindTheirDevice) {
  const std::vector<sample_event> events{{1, 2, 70, 0, SAMPLE_WRITE, 4},  {3, 4, 71, 0, SAMPLE_DISCARD, 4},
                                         {5, 6, 69, 0, SAMPLE_WRITE, 0},  {7, 8, 70, 0, SAMPLE_WRITE, 0},
                                         {9, 1, 70, 0, SAMPLE_KINDS, 0},  {9, 1, 70, 0, SAMPLE_ZEROES, 0},
                                         {9, 1, 71, 0, SAMPLE_WRITE, 255}};
  const auto decoded = decode_samples(events, {{70, 1}, {71, 0}}, WriteHint::not_set);
  const auto hint = [](WriteHint of) { return static_cast<std::uint8_t>(of); };
  const std::vector<model::FlashEvent> expected{
      {1, 2, 1, FlashEventKind::write, hint(WriteHint::long_lived)}, {3, 4, 0, FlashEventKind::discard, 0},
      {7, 8, 1, FlashEventKind::write, hint(WriteHint::not_set)},    {9, 1, 1, FlashEventKind::zeroes, 0},
      {9, 1, 0, FlashEventKind::write, hint(WriteHint::unknown)},
  };
  EXPECT_EQ(decoded, expected) << "those of parameters that are no more are left out, and what nobody knows";
}

TEST(SampleReader, StartAndStop) {
  page_sampling sampling{};
  start_sampling({16, 9, 0x1234, 4000, 77}, 5, sampling);
  EXPECT_EQ(sampling.first_page, 77U);
  EXPECT_EQ(sampling.groups, 4000U);
  EXPECT_EQ(sampling.seed, 0x1234U);
  EXPECT_EQ(sampling.sampling, 5U);
  EXPECT_EQ(sampling.page_bits, 16);
  EXPECT_EQ(sampling.rate_bits, 9);
  stop_sampling(sampling);
  EXPECT_EQ(sampling.groups, 0U);
}

}  // namespace
}  // namespace ssdpulse::block
