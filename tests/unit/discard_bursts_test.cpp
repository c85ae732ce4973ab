// SPDX-License-Identifier: Apache-2.0
// Is every completed discard byte in exactly one burst, with the right trigger? A small simulated disk submits and
// completes on its own clock; the oracle is what it was told to do.
#include "daemon/discards/discard_bursts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ssdpulse::discards {
namespace {

using model::DiscardSubmitter;
using model::DiscardTrigger;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kMiB = 1 << 20;

template <typename Enum>
std::size_t at(Enum value) {
  return static_cast<std::size_t>(value);
}

/// A disk with a queue, a partition of it that carries a pool, and an array over that; all counts are cumulative, as
/// from the kernel.
class Disk {
 public:
  std::uint64_t now = 100 * kSecond;
  std::uint64_t gap = kSecond;
  bool mounted_with_discard = false;

  void submit(DiscardSubmitter who, std::uint64_t bytes, const std::string& name = "somebody") {
    add(own_[at(who)], bytes, name);
  }
  void submit_above(DiscardSubmitter who, std::uint64_t bytes) { add(above_[at(who)], bytes, "above"); }
  void submit_to_pool(DiscardSubmitter who, std::uint64_t bytes) { add(pool_[at(who)], bytes, "pool"); }
  void submit_to_carrier(DiscardSubmitter who, std::uint64_t bytes) { add(carrier_[at(who)], bytes, "carrier"); }
  void issue(std::uint64_t bytes) {
    queue_.push_back(bytes);
    ++requests_.issues;
    ++requests_.in_flight;
  }
  void complete() {
    requests_.bytes += queue_.front();
    queue_.pop_front();
    ++requests_.completions;
    --requests_.in_flight;
    requests_.last_end_ns = now;
  }
  [[nodiscard]] bool busy() const { return !queue_.empty(); }
  [[nodiscard]] std::uint64_t completed_bytes() const { return requests_.bytes; }
  [[nodiscard]] std::uint64_t submitted(DiscardSubmitter who) const { return own_[at(who)].bytes; }

  /// All of it at once.
  void discard(DiscardSubmitter who, std::uint64_t bytes) {
    submit(who, bytes);
    issue(bytes);
    complete();
  }

  std::vector<DiscardBurst> tick(DiscardBurstFinder& finder, std::uint64_t later = kSecond) {
    now += later;
    DiscardTick tick;
    tick.now_ns = now;
    tick.gap_ns = gap;
    tick.requests = requests_;
    tick.volumes["sda"] = {&own_, false, mounted_with_discard, false};
    tick.volumes["sda1"] = {&carrier_, false, false, true};
    tick.volumes["dm-0"] = {&pool_, true, false, true};
    tick.volumes["dm-1"] = {&above_, true, mounted_with_discard, false};
    return finder.observe(tick);
  }

 private:
  void add(model::DiscardSubmissions& cell, std::uint64_t bytes, const std::string& name) {
    if (cell.last_ns == 0 || now - cell.last_ns > kSecond) {
      cell.first_ns = now;
    }
    cell.last_ns = now;
    cell.bytes += bytes;
    ++cell.ranges;
    cell.submitter = name;
  }

  DiscardRequests requests_;
  model::DiscardSubmitters own_;
  model::DiscardSubmitters carrier_;
  model::DiscardSubmitters pool_;
  model::DiscardSubmitters above_;
  std::deque<std::uint64_t> queue_;
};

struct Rig {
  Disk disk;
  DiscardBurstFinder finder;

  const model::DiscardBursts& of(DiscardTrigger trigger) { return finder.figures()[at(trigger)]; }
};

std::uint64_t all_bytes(const DiscardBurstFinder& finder) {
  return std::accumulate(finder.figures().begin(), finder.figures().end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& one) { return sum + one.bytes; });
}

TEST(Burst, has_the_times_of_its_first_submission_and_its_last_completion) {
  Rig rig;
  rig.disk.tick(rig.finder);
  const std::uint64_t begin = rig.disk.now += kSecond / 4;
  rig.disk.submit(DiscardSubmitter::fstrim, 3 * kMiB, "fstrim");
  rig.disk.submit(DiscardSubmitter::fstrim, kMiB, "fstrim");
  rig.disk.issue(3 * kMiB);
  rig.disk.issue(kMiB);
  EXPECT_TRUE(rig.disk.tick(rig.finder).empty());
  EXPECT_TRUE(rig.of(DiscardTrigger::fstrim).active);
  EXPECT_EQ(rig.of(DiscardTrigger::fstrim).duration_ns, kSecond);  // counted while it is running
  rig.disk.complete();
  const std::uint64_t end = rig.disk.now += kSecond / 8;
  rig.disk.complete();
  EXPECT_TRUE(rig.disk.tick(rig.finder, kSecond / 2).empty());
  const auto ended = rig.disk.tick(rig.finder);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].trigger, DiscardTrigger::fstrim);
  EXPECT_EQ(ended[0].begin_ns, begin);
  EXPECT_EQ(ended[0].end_ns, end);
  EXPECT_EQ(ended[0].bytes, 4 * kMiB);
  EXPECT_EQ(ended[0].requests, 2U);
  EXPECT_EQ(ended[0].ranges, 2U);
  EXPECT_EQ(ended[0].submitter, "fstrim");
  EXPECT_EQ(ended[0].volumes, (std::set<std::string>{"sda"}));
  EXPECT_EQ(rig.of(DiscardTrigger::fstrim).duration_ns, end - begin);
  EXPECT_FALSE(rig.of(DiscardTrigger::fstrim).active);
}

TEST(Burst, ends_after_the_gap_and_not_before) {
  Rig rig;
  rig.disk.gap = 5 * kSecond;
  for (int i = 0; i < 3; ++i) {
    rig.disk.discard(DiscardSubmitter::blkdiscard, kMiB);
    EXPECT_TRUE(rig.disk.tick(rig.finder, 4 * kSecond).empty());
  }
  EXPECT_EQ(rig.of(DiscardTrigger::blkdiscard).bursts, 1U);
  EXPECT_TRUE(rig.disk.tick(rig.finder).empty());  // 5 s exactly
  const auto ended = rig.disk.tick(rig.finder);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].bytes, 3 * kMiB);
  EXPECT_EQ(ended[0].end_ns - ended[0].begin_ns, 8 * kSecond);
  rig.disk.discard(DiscardSubmitter::blkdiscard, kMiB);
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.of(DiscardTrigger::blkdiscard).bursts, 2U);
}

TEST(Burst, goes_on_while_a_request_is_in_flight) {
  Rig rig;
  rig.disk.submit(DiscardSubmitter::mkfs, kMiB);
  rig.disk.issue(kMiB);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(rig.disk.tick(rig.finder).empty());
    EXPECT_TRUE(rig.of(DiscardTrigger::mkfs).active);
  }
  rig.disk.complete();
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.disk.tick(rig.finder).size(), 1U);
  EXPECT_EQ(rig.of(DiscardTrigger::mkfs).duration_ns, 20 * kSecond);
}

TEST(Burst, is_seen_under_way_however_late_the_tick_is) {
  Rig rig;
  rig.disk.tick(rig.finder);
  rig.disk.discard(DiscardSubmitter::fstrim, kMiB);
  EXPECT_TRUE(rig.disk.tick(rig.finder, 10 * kSecond).empty());
  EXPECT_TRUE(rig.of(DiscardTrigger::fstrim).active);
  EXPECT_EQ(rig.disk.tick(rig.finder).size(), 1U);
  EXPECT_FALSE(rig.of(DiscardTrigger::fstrim).active);
}

TEST(Burst, needs_io) {
  Rig rig;
  rig.disk.submit(DiscardSubmitter::fstrim, kMiB);  // refused on its way to the disk
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(rig.disk.tick(rig.finder).empty());
  }
  EXPECT_EQ(rig.of(DiscardTrigger::fstrim).bursts, 0U);
  rig.disk.issue(kMiB);
  rig.disk.complete();
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.of(DiscardTrigger::other).bytes, kMiB) << "what was refused long ago has no part in what comes later";
}

TEST(Trigger, of_kernel_threads_depends_on_the_mount) {
  Rig rig;
  rig.disk.discard(DiscardSubmitter::kernel, kMiB);
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.of(DiscardTrigger::other).bytes, kMiB);
  rig.disk.mounted_with_discard = true;
  rig.disk.discard(DiscardSubmitter::kernel, 2 * kMiB);
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.of(DiscardTrigger::online).bytes, 2 * kMiB);
}

TEST(Trigger, is_other_where_no_submitter_was_seen) {
  Rig rig;
  rig.disk.issue(kMiB);
  rig.disk.complete();
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.of(DiscardTrigger::other).bytes, kMiB);
  EXPECT_EQ(rig.of(DiscardTrigger::other).bursts, 1U);
}

TEST(Trigger, two_at_once_have_what_each_submitted) {
  Rig rig;
  rig.disk.mounted_with_discard = true;
  rig.disk.submit(DiscardSubmitter::fstrim, 30 * kMiB);
  rig.disk.submit(DiscardSubmitter::kernel, 10 * kMiB);
  for (int i = 0; i < 40; ++i) {
    rig.disk.issue(kMiB);
  }
  for (int i = 0; i < 20; ++i) {
    rig.disk.complete();
  }
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.of(DiscardTrigger::fstrim).bytes, 15 * kMiB);
  EXPECT_EQ(rig.of(DiscardTrigger::online).bytes, 5 * kMiB);
  while (rig.disk.busy()) {
    rig.disk.complete();
  }
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.of(DiscardTrigger::fstrim).bytes, 30 * kMiB);
  EXPECT_EQ(rig.of(DiscardTrigger::online).bytes, 10 * kMiB);
}

TEST(Array, gives_its_shares_to_members_that_saw_no_submission) {
  Rig rig;
  rig.disk.submit_above(DiscardSubmitter::fstrim, 300 * kMiB);
  rig.disk.submit_above(DiscardSubmitter::blkdiscard, 100 * kMiB);
  for (int i = 0; i < 100; ++i) {
    rig.disk.issue(kMiB);
    rig.disk.complete();
  }
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.of(DiscardTrigger::fstrim).bytes, 75 * kMiB);
  EXPECT_EQ(rig.of(DiscardTrigger::blkdiscard).bytes, 25 * kMiB);
  EXPECT_EQ(rig.of(DiscardTrigger::other).bytes, 0U);
}

TEST(Array, shares_are_whole_sectors) {
  Rig rig;
  rig.disk.submit_above(DiscardSubmitter::fstrim, 512 * 1001);
  rig.disk.submit_above(DiscardSubmitter::blkdiscard, 512 * 499);
  rig.disk.submit_above(DiscardSubmitter::mkfs, 512 * 7);
  std::uint64_t left = 512 * 1507;
  for (const std::uint64_t sectors : {3U, 1U, 100U, 401U, 1002U}) {
    const std::uint64_t part = 512 * sectors;
    rig.disk.issue(part);
    rig.disk.complete();
    rig.disk.tick(rig.finder);
    left -= part;
    for (const auto& figures : rig.finder.figures()) {
      EXPECT_EQ(figures.bytes % 512, 0U);
    }
    EXPECT_EQ(all_bytes(rig.finder) + left, 512U * 1507);
  }
  EXPECT_EQ(rig.of(DiscardTrigger::other).bytes, 0U);
}

/// As in dm-thin: its pool discards what is freed, in a kernel thread, and its data device sees clones.
TEST(Array, that_hands_discards_down_is_no_submitter) {
  for (const bool pool_is_seen_first : {false, true}) {
    Rig rig;
    rig.disk.tick(rig.finder);
    if (pool_is_seen_first) {
      rig.disk.submit_to_pool(DiscardSubmitter::kernel, 64 * kMiB);
      rig.disk.tick(rig.finder, kSecond / 4);
    }
    rig.disk.submit_above(DiscardSubmitter::fstrim, 200 * kMiB);
    rig.disk.submit_to_pool(DiscardSubmitter::kernel, 64 * kMiB);
    rig.disk.submit_to_carrier(DiscardSubmitter::kernel, 64 * kMiB);  // as raid0 submits to its members
    rig.disk.issue(64 * kMiB);
    rig.disk.complete();
    rig.disk.tick(rig.finder, kSecond / 2);
    EXPECT_EQ(rig.of(DiscardTrigger::fstrim).bytes, 64 * kMiB);
    EXPECT_EQ(rig.of(DiscardTrigger::other).bursts, 0U);
  }
}

TEST(Array, that_lies_on_another_is_the_one_that_was_submitted_to) {
  Rig rig;
  rig.disk.submit_above(DiscardSubmitter::fstrim, 4 * kMiB);
  rig.disk.submit_to_pool(DiscardSubmitter::fstrim, 4 * kMiB);
  rig.disk.submit_to_carrier(DiscardSubmitter::fstrim, 4 * kMiB);
  rig.disk.issue(4 * kMiB);
  rig.disk.complete();
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.finder.running(at(DiscardTrigger::fstrim))->volumes, (std::set<std::string>{"dm-1"}));
  rig.disk.tick(rig.finder, 3 * kSecond);
  rig.disk.submit_to_pool(DiscardSubmitter::other, 4 * kMiB);  // as LVM discards a removed volume's space
  rig.disk.issue(4 * kMiB);
  rig.disk.complete();
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.finder.running(at(DiscardTrigger::other))->volumes, (std::set<std::string>{"dm-0"}));
}

TEST(Ranges, are_reported_where_all_were_seen) {
  Rig rig;
  rig.disk.discard(DiscardSubmitter::fstrim, kMiB);
  rig.disk.discard(DiscardSubmitter::fstrim, kMiB);
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.finder.running(at(DiscardTrigger::fstrim))->ranges, 2U);
  rig.disk.submit_above(DiscardSubmitter::fstrim, kMiB);
  rig.disk.issue(kMiB);
  rig.disk.complete();
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.finder.running(at(DiscardTrigger::fstrim))->ranges, std::nullopt);
  ASSERT_EQ(rig.disk.tick(rig.finder, 3 * kSecond).size(), 1U);
  rig.disk.discard(DiscardSubmitter::fstrim, kMiB);
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.finder.running(at(DiscardTrigger::fstrim))->ranges, 1U);
  rig.disk.issue(kMiB);
  rig.disk.complete();
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.finder.running(at(DiscardTrigger::other))->ranges, std::nullopt);
}

TEST(Array, has_no_say_where_members_saw_who_submitted) {
  Rig rig;
  rig.disk.submit_above(DiscardSubmitter::fstrim, 4 * kMiB);
  rig.disk.submit_above(DiscardSubmitter::mkfs, 4 * kMiB);
  rig.disk.discard(DiscardSubmitter::fstrim, kMiB);
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.of(DiscardTrigger::fstrim).bytes, kMiB);
  EXPECT_EQ(rig.of(DiscardTrigger::mkfs).bytes, 0U);
}

TEST(Array, that_was_sent_a_slow_discard_has_its_part_when_that_ends) {
  Rig rig;
  rig.disk.mounted_with_discard = true;
  rig.disk.tick(rig.finder);
  const std::uint64_t begin = rig.disk.now;
  rig.disk.submit_above(DiscardSubmitter::fstrim, 64 * kMiB);
  rig.disk.issue(64 * kMiB);
  for (int second = 0; second < 4; ++second) {
    rig.disk.tick(rig.finder);
    rig.disk.submit_above(DiscardSubmitter::kernel, kMiB);
    rig.disk.issue(kMiB);
  }
  rig.disk.complete();
  rig.disk.tick(rig.finder);
  EXPECT_GT(rig.of(DiscardTrigger::fstrim).bytes, 58 * kMiB);
  ASSERT_TRUE(rig.finder.running(at(DiscardTrigger::fstrim)));
  EXPECT_EQ(rig.finder.running(at(DiscardTrigger::fstrim))->begin_ns, begin);
  while (rig.disk.busy()) {
    rig.disk.complete();
  }
  rig.disk.tick(rig.finder);
  const std::uint64_t bytes = rig.of(DiscardTrigger::fstrim).bytes;
  rig.disk.submit_above(DiscardSubmitter::kernel, kMiB);
  rig.disk.issue(kMiB);
  rig.disk.complete();
  rig.disk.tick(rig.finder);
  EXPECT_EQ(rig.of(DiscardTrigger::fstrim).bytes, bytes) << "the device was idle meanwhile";
}

TEST(Array, that_is_new_brings_no_past) {
  Rig rig;
  rig.disk.submit(DiscardSubmitter::mkfs, 100 * kMiB);
  rig.disk.submit_above(DiscardSubmitter::mkfs, 100 * kMiB);
  rig.disk.now += 60 * kSecond;
  rig.disk.issue(kMiB);
  rig.disk.complete();
  rig.disk.tick(rig.finder);  // the first reading of this disk
  EXPECT_EQ(rig.of(DiscardTrigger::mkfs).bytes, 0U);
  EXPECT_EQ(rig.of(DiscardTrigger::other).bytes, kMiB);
}

/// Random submitters, queue depths, pauses and ticks.
RC_GTEST_PROP(Property, every_byte_once_and_nothing_ever_falls, ()) {
  Rig rig;
  rig.disk.mounted_with_discard = *rc::gen::arbitrary<bool>();
  rig.disk.gap = *rc::gen::inRange<std::uint64_t>(1, 6) * kSecond;
  rig.disk.tick(rig.finder);  // discards before the first reading are not counted
  model::DiscardBurstsByTrigger before{};
  std::uint64_t ended = 0;
  const int steps = *rc::gen::inRange(1, 200);
  for (int i = 0; i < steps; ++i) {
    switch (*rc::gen::inRange(0, 4)) {
      case 0: {
        const auto who = static_cast<DiscardSubmitter>(*rc::gen::inRange<int>(0, model::kDiscardSubmitters));
        const auto bytes = *rc::gen::inRange<std::uint64_t>(1, 1 << 20) * 512;
        rig.disk.submit(who, bytes);
        rig.disk.issue(bytes);
        break;
      }
      case 1:
        if (rig.disk.busy()) {
          rig.disk.complete();
        }
        break;
      case 2:
        rig.disk.now += *rc::gen::inRange<std::uint64_t>(0, kSecond / 2);
        break;
      default:
        ended += rig.disk.tick(rig.finder, *rc::gen::inRange<std::uint64_t>(kSecond / 2, 4 * kSecond)).size();
        RC_ASSERT(all_bytes(rig.finder) == rig.disk.completed_bytes());
        for (std::size_t t = 0; t < before.size(); ++t) {
          const auto& now = rig.finder.figures()[t];
          RC_ASSERT(now.bursts >= before[t].bursts);
          RC_ASSERT(now.bytes >= before[t].bytes);
          RC_ASSERT(now.duration_ns >= before[t].duration_ns);
          RC_ASSERT(now.bursts > 0 || (now.bytes == 0 && now.duration_ns == 0));
        }
        before = rig.finder.figures();
    }
  }
  while (rig.disk.busy()) {
    rig.disk.complete();
  }
  std::uint64_t begun = 0;
  for (int i = 0; i < 10; ++i) {
    ended += rig.disk.tick(rig.finder).size();
  }
  for (std::size_t t = 0; t < before.size(); ++t) {
    RC_ASSERT(!rig.finder.figures()[t].active);
    begun += rig.finder.figures()[t].bursts;
  }
  RC_ASSERT(begun == ended);
  RC_ASSERT(rig.of(DiscardTrigger::fstrim).bytes == rig.disk.submitted(DiscardSubmitter::fstrim));
  RC_ASSERT(rig.of(DiscardTrigger::blkdiscard).bytes == rig.disk.submitted(DiscardSubmitter::blkdiscard));
  RC_ASSERT(rig.of(DiscardTrigger::mkfs).bytes == rig.disk.submitted(DiscardSubmitter::mkfs));
  RC_ASSERT(rig.of(DiscardTrigger::online).bytes ==
            (rig.disk.mounted_with_discard ? rig.disk.submitted(DiscardSubmitter::kernel) : 0));
}

}  // namespace
}  // namespace ssdpulse::discards
