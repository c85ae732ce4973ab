// SPDX-License-Identifier: Apache-2.0
// Do the block programs send exactly the events that the flash model's sampling rule selects?
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "tests/unit/fake_attribution.h"
#include "tests/unit/fake_io.h"

namespace {

using namespace ssdpulse;
using namespace ssdpulse::test;

/// Which pages a device's I/O holds, page by page: by the definition's wording, without the programs' arithmetic.
class Pages {
 public:
  explicit Pages(const page_sampling& sampling) : sampling_(sampling) {}

  /// The followed page of a group, as published: MurmurHash3's fmix32 of the group, keyed.
  [[nodiscard]] std::uint64_t followed(std::uint64_t group) const {
    std::uint32_t h = static_cast<std::uint32_t>(group) ^ sampling_.seed;
    h ^= h >> 16;
    h *= 0x85ebca6b;
    h ^= h >> 13;
    h *= 0xc2b2ae35;
    h ^= h >> 16;
    const std::uint64_t each = std::uint64_t{1} << sampling_.rate_bits;
    return group * each + h % each;
  }

  /// What must be sent for a range of sectors; nothing if there is no followed page in it.
  [[nodiscard]] std::optional<sample_event> expected(std::uint64_t sector, std::uint32_t bytes, std::uint8_t kind) {
    const std::uint64_t sectors = (std::uint64_t{1} << sampling_.page_bits) / 512;
    const std::uint64_t begin = sector, end = sector + bytes / 512;
    sample_event event{0, 0, sampling_.sampling, 0, kind, 0};
    for (std::uint64_t page = begin / sectors; page * sectors < end; ++page) {
      const bool whole = page * sectors >= begin && (page + 1) * sectors <= end;
      if (kind != SAMPLE_WRITE && !whole) {
        continue;
      }
      touched += kind == SAMPLE_WRITE ? 1 : 0;
      const std::uint64_t of_drive = sampling_.first_page + page;
      const std::uint64_t group = of_drive >> sampling_.rate_bits;
      if (group < sampling_.groups && followed(group) == of_drive) {
        event.first = event.count == 0 ? static_cast<std::uint32_t>(group) : event.first;
        ++event.count;
      }
    }
    return event.count > 0 ? std::optional(event) : std::nullopt;
  }

  std::uint64_t touched = 0;  // by writes so far

 private:
  page_sampling sampling_;
};

using Event = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, int, int>;
Event as_tuple(const sample_event& event) { return {event.first, event.count, event.sampling, event.kind, event.hint}; }

/// Random I/Os of a sampled device, in one of the two modes.
class SampledStory {
 public:
  SampledStory(std::uint32_t seed, bool completion_only)
      : rng_(seed), complete_(completion_only ? fake_kernel_complete_only : fake_kernel_complete), pages_(sampling()) {}

  /// Also counts by cgroup and by path.
  void attribute() {
    static constexpr std::array<const char*, 4> kNames{"", "a", "b", "c"};
    for (std::uint32_t place = 1; place < kNames.size(); ++place) {
      fake_cgroups[place] = {place * 7, place + 1000, 1, kNames[place]};
    }
    fake_kernel_attribute(FAKE_SETS, 1);
  }

  void play(int ios) {
    for (int i = 0; i < ios; ++i) {
      one_io();
    }
  }

  /// What should have been sent, sorted.
  std::vector<Event> expected() {
    std::sort(expected_.begin(), expected_.end());
    return expected_;
  }
  [[nodiscard]] std::uint64_t touched() const { return pages_.touched; }

 private:
  page_sampling sampling() {
    fake_kernel_boot();
    page_sampling& sampling = fake_state->sampling;
    sampling.first_page = random() % 3 * (random() % 100'000);
    sampling.seed = random();
    sampling.sampling = random();
    sampling.page_bits = static_cast<std::uint8_t>(9 + random() % 8);
    sampling.rate_bits = static_cast<std::uint8_t>(random() % 10);
    sampling.groups = 1 + random() % 5000;
    return sampling;
  }

  /// Sectors around the sampled part of the drive, including some beyond its end.
  std::uint64_t somewhere() {
    const page_sampling& sampling = fake_state->sampling;
    return random() % ((((std::uint64_t{sampling.groups} << sampling.rate_bits) + 99) << sampling.page_bits) / 512);
  }

  void expect(std::uint64_t sector, std::uint32_t bytes, std::uint8_t kind) {
    if (const auto event = pages_.expected(sector, bytes, kind)) {
      expected_.push_back(as_tuple(*event));
    }
  }

  void one_io() {
    static constexpr std::array<std::uint32_t, 5> kOperations{kRead, kWrite, kWrite, kDiscard, kZeroes};
    fake_request request = io(kOperations[random() % kOperations.size()]);
    request.sector = somewhere();
    request.bytes = 512 * static_cast<std::uint32_t>(1 + (random() % 4 == 0 ? random() % 4096 : random() % 64));
    request.cgroup = static_cast<std::uint32_t>(request.sector / 8 % 4);
    request.way = static_cast<std::uint8_t>(request.sector % FAKE_WAYS);
    request.keeps_space = request.operation == kZeroes && random() % 2 == 0;
    if (request.operation == kDiscard && random() % 2 == 0) {
      discard_ranges(request);
      return;
    }
    const auto kind = static_cast<std::uint8_t>(request.operation == kWrite     ? SAMPLE_WRITE
                                                : request.operation == kDiscard ? SAMPLE_DISCARD
                                                : request.keeps_space           ? SAMPLE_ZEROES_KEPT
                                                                                : SAMPLE_ZEROES);
    if (random() % 8 != 0) {
      issue(request);  // otherwise it is a stray
    }
    request.started = request.had_before = 1;
    while (request.bytes > 0) {
      const bool fails = random() % 10 == 0;
      const std::uint32_t part =
          random() % 4 == 0 ? 512 * static_cast<std::uint32_t>(1 + random() % (request.bytes / 512)) : request.bytes;
      complete_(&request, fails ? -5 : 0, part);
      if (!fails && request.operation != kRead) {
        expect(request.sector, part, kind);
      }
      request.sector += part / 512;
      request.bytes -= part;
    }
  }

  void discard_ranges(fake_request& request) {
    request.ranges = 2 + random() % (FAKE_RANGES - 1);
    request.bytes = 0;
    for (std::uint32_t i = 0; i < request.ranges; ++i) {
      request.range[i] = {somewhere(), 512 * static_cast<std::uint32_t>(1 + random() % 3000)};
      request.bytes += request.range[i].bytes;
    }
    issue(request);
    // Possibly only its first part ends.
    std::uint32_t left =
        random() % 4 == 0 ? 512 * static_cast<std::uint32_t>(1 + random() % (request.bytes / 512)) : request.bytes;
    complete_(&request, 0, left);
    for (std::uint32_t i = 0; i < request.ranges && left > 0; ++i) {
      const std::uint32_t bytes = std::min(left, request.range[i].bytes);
      expect(request.range[i].sector, bytes, SAMPLE_DISCARD);
      left -= bytes;
    }
  }

  std::uint32_t random() { return static_cast<std::uint32_t>(rng_()); }

  std::mt19937 rng_;
  void (*complete_)(const fake_request*, int, std::uint32_t);
  std::vector<Event> expected_;
  Pages pages_;
};

std::vector<Event> sent() {
  std::vector<Event> events;
  std::transform(fake_events, fake_events + fake_events_sent, std::back_inserter(events), as_tuple);
  std::sort(events.begin(), events.end());
  return events;
}

TEST(BlockProgramSamples, EventsAreWhatTheDefinitionSays) {
  std::size_t events = 0;
  std::uint64_t pages = 0;
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    const bool completion_only = seed % 2 == 0, attributes = seed / 2 % 2 == 0;
    SampledStory story(seed, completion_only);
    if (attributes) {
      story.attribute();
    }
    story.play(120);
    ASSERT_EQ(sent(), story.expected());
    ASSERT_EQ(fake_writes.hint_pages[HINT_DEFAULT], story.touched());
    ASSERT_EQ(std::accumulate(std::begin(fake_state->samples_lost), std::end(fake_state->samples_lost), 0ULL), 0U);
    for (std::uint32_t operation = 0; attributes && operation < ATTRIBUTED_COMMIT; ++operation) {
      ASSERT_EQ(test::attributed_to_all(operation), test::counted(operation, completion_only)) << operation;
      ASSERT_GT(test::counted(operation, completion_only).ios, 0U);
    }
    events += fake_events_sent;
    pages += story.touched();
  }
  std::printf("%zu events, %llu pages written\n", events, static_cast<unsigned long long>(pages));
  EXPECT_GT(events, 5'000U);
}

TEST(BlockProgramSamples, WhatFindsNoRoomIsCountedByKind) {
  std::array<std::uint64_t, SAMPLE_KINDS> all{};
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    SampledStory story(seed, false);
    fake_events_room = 10;
    story.play(300);
    std::array<std::uint64_t, SAMPLE_KINDS> lost{};
    for (const Event& event : story.expected()) {
      ++lost[static_cast<std::size_t>(std::get<3>(event))];
    }
    for (const Event& event : sent()) {
      --lost[static_cast<std::size_t>(std::get<3>(event))];
    }
    ASSERT_TRUE(std::equal(lost.begin(), lost.end(), std::begin(fake_state->samples_lost))) << seed;
    ASSERT_EQ(fake_writes.hint_pages[HINT_DEFAULT], story.touched()) << "exactly, whatever was lost";
    std::transform(lost.begin(), lost.end(), all.begin(), all.begin(), std::plus<>());
  }
  EXPECT_GT(*std::min_element(all.begin(), all.end()), 50U) << "some of each kind";
}

TEST(BlockProgramSamples, NothingFromAnUnsampledDevice) {
  SampledStory story(6, false);
  fake_state->sampling.groups = 0;
  story.play(100);
  EXPECT_EQ(fake_events_sent, 0U);
  EXPECT_EQ(fake_writes.hint_pages[HINT_DEFAULT], 0U);
}

TEST(BlockProgramSamples, AFlushSequenceWritesItsDataOnce) {
  SampledStory story(7, false);
  fake_state->sampling.page_bits = 12;
  fake_request write = io(kWrite), parent = write;
  write.sector = parent.sector = 803;
  issue(write);
  fake_kernel_complete(&write, 0, write.bytes);
  parent.bytes = 0;
  fake_kernel_complete(&parent, 0, 0);
  EXPECT_EQ(fake_writes.hint_pages[HINT_DEFAULT], 2U);
}

}  // namespace
