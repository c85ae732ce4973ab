// SPDX-License-Identifier: Apache-2.0
// Is a completion that nobody saw distinguished from a request that is really in flight, and counted once? A small
// kernel plays all orders of events: its tags and diskstats follow its own rules, what our programs see of them theirs.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "daemon/block/accounting_drift.h"
#include "daemon/block/io_cells.h"

namespace {

using namespace ssdpulse;
using block::KernelLead;
using block::MissedCompletions;
using block::plausible;
using model::index;
using model::KernelInFlight;
using model::Operation;

constexpr KernelInFlight kNone{0, 0};

model::DeviceIo in_flight(Operation operation, std::int64_t requests, std::uint64_t ended = 0) {
  model::DeviceIo io;
  model::OperationIo& one = io.operations[index(operation)];
  one.in_flight = requests;
  one.issues = ended + static_cast<std::uint64_t>(requests);
  one.completions = ended;
  return io;
}

TEST(MissedCompletions, WhatTheKernelTwiceHasNotHasEnded) {
  for (const Operation operation :
       {Operation::read, Operation::write, Operation::discard, Operation::write_zeroes, Operation::secure_erase}) {
    MissedCompletions missed;
    const auto io = in_flight(operation, 3);
    EXPECT_TRUE(missed.stands_still(io));
    auto ended = missed.observe(io, kNone);
    EXPECT_FALSE(ended.reads || ended.writes) << "once may be between the end and our count of it";
    ended = missed.observe(io, kNone);
    EXPECT_EQ(ended.reads, operation == Operation::read);
    EXPECT_EQ(ended.writes, operation != Operation::read);
  }
}

TEST(MissedCompletions, TheKernelDoesNotCountThese) {
  for (const Operation operation : {Operation::flush, Operation::zone, Operation::passthrough}) {
    MissedCompletions missed;
    const auto io = in_flight(operation, 3);
    EXPECT_FALSE(missed.stands_still(io));
    (void)missed.observe(io, kNone);
    const auto ended = missed.observe(io, kNone);
    EXPECT_FALSE(ended.reads || ended.writes) << name(operation);
  }
}

TEST(MissedCompletions, AStallIsNotMissed) {
  MissedCompletions missed;
  for (int round = 0; round < 5; ++round) {
    EXPECT_FALSE(missed.observe(in_flight(Operation::read, 3), KernelInFlight{1, 0}).reads) << "it has one of them";
    EXPECT_FALSE(missed.observe(in_flight(Operation::read, 3), std::nullopt).reads) << "not asked";
  }
  EXPECT_TRUE(missed.stands_still(in_flight(Operation::read, 3)));
}

TEST(MissedCompletions, AnythingInBetweenBeginsItAgain) {
  const auto before = in_flight(Operation::read, 2, 10);
  auto another = in_flight(Operation::read, 2, 11);
  auto reissued = before;
  reissued.operations[index(Operation::read)].requeues[index(model::RequeueReason::driver)] = 1;
  auto failed_over = in_flight(Operation::read, 2, 10);
  failed_over.operations[index(Operation::read)].issues += 1;
  failed_over.operations[index(Operation::read)].requeues[index(model::RequeueReason::failover)] = 1;
  for (const model::DeviceIo& now : {another, reissued, failed_over, in_flight(Operation::read, 3, 10)}) {
    MissedCompletions missed;
    EXPECT_FALSE(missed.observe(before, kNone).reads);
    EXPECT_FALSE(missed.observe(now, kNone).reads);
    EXPECT_TRUE(missed.observe(now, kNone).reads);
  }
  MissedCompletions missed;
  EXPECT_FALSE(missed.observe(before, kNone).reads);
  EXPECT_FALSE(missed.observe(before, KernelInFlight{2, 0}).reads);
  EXPECT_FALSE(missed.observe(before, kNone).reads) << "not twice in a row";
}

TEST(MissedCompletions, ReadsThatFlowDoNotHideAWrite) {
  MissedCompletions missed;
  auto io = in_flight(Operation::read, 7);
  io.operations[index(Operation::write)] = in_flight(Operation::write, 1).operation(Operation::write);
  (void)missed.observe(io, KernelInFlight{7, 0});
  io.operations[index(Operation::read)].issues += 1000;
  io.operations[index(Operation::read)].completions += 1000;
  EXPECT_TRUE(missed.stands_still(io));
  const auto ended = missed.observe(io, KernelInFlight{7, 0});
  EXPECT_TRUE(ended.writes);
  EXPECT_FALSE(ended.reads);
}

TEST(Plausible, OnlyIfDiskstatsShowTheCompletions) {
  const auto three = in_flight(Operation::write, 3);
  EXPECT_FALSE(plausible(kNone, three, std::nullopt)) << "nothing shows that they have ended";
  EXPECT_TRUE(plausible(KernelInFlight{0, 1}, three, std::nullopt)) << "a stall needs no proof";
  EXPECT_TRUE(plausible(kNone, three, KernelLead{0, 3}));
  EXPECT_TRUE(plausible(kNone, three, KernelLead{0, 4})) << "it saw more that we did not";
  EXPECT_FALSE(plausible(kNone, three, KernelLead{0, 2})) << "one waits to be issued again";
  EXPECT_FALSE(plausible(kNone, three, KernelLead{3, 0})) << "of the other direction";
  EXPECT_TRUE(plausible(KernelInFlight{0, 1}, three, KernelLead{0, 0})) << "a stall, by its own word";
  EXPECT_TRUE(plausible(kNone, in_flight(Operation::flush, 3), KernelLead{0, -1})) << "nothing to judge";
}

TEST(InFlight, MissedRequestsAreNotMissedAgain) {
  block::InFlight flying;
  block::EventIncrements nothing;
  flying.add(5, 2, nothing);
  EXPECT_EQ(flying.requests(), 3);
  EXPECT_EQ(flying.mark_missed(), 3U);
  EXPECT_EQ(flying.mark_missed(), 0U);
  EXPECT_EQ(flying.requests(), 0);
  // Two of the three slots are taken by others; one more has been lost since.
  block::EventIncrements events;
  events.count[EVENT_COMPLETION_MISSED] = 2;
  flying.add(4, 1, events);
  EXPECT_EQ(events.count[EVENT_COMPLETION_MISSED], 0U);
  EXPECT_EQ(flying.requests(), 3);
  events.count[EVENT_SLOT_COLLISION] = 2;
  flying.add(0, 0, events);
  EXPECT_EQ(events.count[EVENT_SLOT_COLLISION], 1U) << "the third, and a new one";
  EXPECT_EQ(flying.requests(), 2);
}

TEST(InFlight, WhatWasGivenUpTooEarlyEndsAllTheSame) {
  block::InFlight flying;
  block::EventIncrements nothing;
  flying.add(2, 0, nothing);
  EXPECT_EQ(flying.mark_missed(), 2U);
  flying.add(1, 2, nothing);
  EXPECT_EQ(flying.requests(), 0) << "one by one, as others are under way";
  flying.add(0, 1, nothing);
  EXPECT_EQ(flying.requests(), 0);
}

/// One device with a few tags, reads only: what the kernel does, what it counts, and what our programs count.
class Disk {
 public:
  enum class State : std::uint8_t { free, flying, given_back };

  void start(std::size_t tag) {
    if (tags_[tag].state != State::free) {
      return;
    }
    tags_[tag].state = State::flying;
    events_.count[EVENT_COMPLETION_MISSED] += tags_[tag].slot_taken ? 1 : 0;
    tags_[tag].slot_taken = true;
    ++issues_;
  }
  void end(std::size_t tag, bool seen) {
    if (tags_[tag].state != State::flying) {
      return;
    }
    tags_[tag].state = State::free;
    ++kernel_.reads;
    if (seen) {
      tags_[tag].slot_taken = false;
      ++completions_;
    } else {
      ++unseen_;
    }
  }
  /// The driver returns it, or gets it again.
  void requeue(std::size_t tag) {
    if (tags_[tag].state == State::flying) {
      tags_[tag].state = State::given_back;
    } else if (tags_[tag].state == State::given_back) {
      tags_[tag].state = State::flying;
      ++reissues_;
    }
  }
  void tick(bool compare) {
    take_up();
    std::optional<KernelInFlight> kernel;
    if (missed_.stands_still(io_)) {
      kernel = plausible(KernelInFlight{count(State::flying), 0}, io_, drift_.lead(ours(), kernel_));
    }
    if (missed_.observe(io_, kernel).reads) {
      found_ += flying_.mark_missed();
      read().in_flight = flying_.requests();
    }
    if (compare) {
      kernel_.in_flight = static_cast<std::uint64_t>(count(State::flying));
      drift_.observe(ours(), kernel_, kernel_, ours());
    }
  }
  [[nodiscard]] std::int64_t in_flight() const { return io_.operation(Operation::read).in_flight; }
  [[nodiscard]] std::int64_t under_way() const { return count(State::flying) + count(State::given_back); }
  [[nodiscard]] std::uint64_t found() const { return found_; }
  [[nodiscard]] std::uint64_t unseen() const { return unseen_; }
  static constexpr std::size_t kTags = 4;

 private:
  struct Tag {
    State state = State::free;
    bool slot_taken = false;  // by a request whose end we have not seen
  };
  model::OperationIo& read() { return io_.operations[index(Operation::read)]; }
  void take_up() {
    flying_.add(issues_, completions_, events_);
    read().issues += std::exchange(issues_, 0);
    read().completions += std::exchange(completions_, 0);
    read().requeues[index(model::RequeueReason::driver)] += std::exchange(reissues_, 0);
    found_ += events_.count[EVENT_COMPLETION_MISSED];
    events_ = {};
    read().in_flight = flying_.requests();
  }
  [[nodiscard]] std::int64_t count(State state) const {
    return std::count_if(tags_.begin(), tags_.end(), [&](const Tag& tag) { return tag.state == state; });
  }
  [[nodiscard]] block::OurCounts ours() const {
    model::OperationEvents unseen;
    unseen.missed[index(Operation::read)] = found_;
    return block::compose_counts(io_, unseen);
  }

  std::array<Tag, kTags> tags_;
  model::DiskStats kernel_{0, 0, 0, 0, 0, 0, 0, 0};
  std::uint64_t unseen_ = 0;
  // Since the last tick.
  std::uint64_t issues_ = 0;
  std::uint64_t completions_ = 0;
  std::uint64_t reissues_ = 0;
  block::EventIncrements events_;
  // Ours.
  std::uint64_t found_ = 0;
  model::DeviceIo io_;
  block::InFlight flying_;
  block::AccountingDrift drift_;
  MissedCompletions missed_;
};

/// `compares`: whether a tick also reads diskstats.
template <typename Compares>
void any_event(Disk& disk, Compares compares) {
  const auto tag = *rc::gen::inRange<std::size_t>(0, Disk::kTags);
  switch (*rc::gen::inRange(0, 8)) {
    case 0:
    case 1:
      disk.start(tag);
      break;
    case 2:
      disk.end(tag, true);
      break;
    case 3:
      disk.end(tag, false);
      break;
    case 4:
      disk.requeue(tag);
      break;
    default:
      disk.tick(compares());
      RC_ASSERT(disk.in_flight() >= disk.under_way());
      RC_ASSERT(disk.found() <= disk.unseen());
  }
}

TEST(MissedCompletions, AllOrdersOfEvents) {
  EXPECT_TRUE(rc::check("what is under way is never given up, what ended unseen is found once", [] {
    Disk disk;
    disk.tick(true);  // at rest: from here on diskstats are compared
    const auto events = *rc::gen::inRange(1, 200);
    for (int event = 0; event < events; ++event) {
      any_event(disk, [&] { return *rc::gen::arbitrary<bool>(); });
    }
    for (std::size_t tag = 0; tag < Disk::kTags; ++tag) {
      disk.end(tag, true);
      disk.requeue(tag);
      disk.end(tag, true);
    }
    for (int round = 0; round < 3; ++round) {
      disk.tick(false);
    }
    RC_ASSERT(disk.in_flight() == 0);
    RC_ASSERT(disk.found() == disk.unseen());
  }));
}

TEST(MissedCompletions, IoInFlightBeforeTheFirstComparisonIsNotMissed) {
  EXPECT_TRUE(rc::check("whenever diskstats are compared first, or never", [] {
    Disk disk;
    const auto events = *rc::gen::inRange(1, 200);
    const auto first_comparison = *rc::gen::inRange(0, 300);
    for (int event = 0; event < events; ++event) {
      any_event(disk, [&] { return event >= first_comparison; });
    }
  }));
}

}  // namespace
