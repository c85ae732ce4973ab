// SPDX-License-Identifier: Apache-2.0
// Is drift zero exactly when every I/O, or its loss, was counted? A small model of both sides, the kernel's accounting
// and what our hooks would see of it, plays random events; the kernel's side is written from its rules, not from our
// formula.
#include "daemon/block/accounting_drift.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

namespace ssdpulse::block {
namespace {

using model::DiskStats;
using model::index;
using model::Operation;

DiskStats kernel_counts(std::uint64_t reads, std::uint64_t writes = 0, std::uint64_t in_flight = 0) {
  DiskStats stats;
  stats.reads = reads;
  stats.writes = writes;
  stats.in_flight = in_flight;
  stats.discards = 0;
  stats.flushes = 0;
  return stats;
}

OurCounts our_counts(std::uint64_t reads, std::uint64_t writes = 0, std::int64_t in_flight = 0) {
  return {reads, writes, 0, 0, in_flight};
}

std::optional<std::int64_t> reads_of(const AccountingDrift& drift) { return drift.value().ios[index(Operation::read)]; }

void observe_at_rest(AccountingDrift& drift, const OurCounts& ours, const DiskStats& kernel) {
  drift.observe(ours, kernel, kernel, ours);
}

TEST(AccountingDrift, AbsentUntilTheFirstRest) {
  AccountingDrift drift;
  EXPECT_FALSE(reads_of(drift));
  drift.observe(our_counts(1), kernel_counts(5), kernel_counts(6), our_counts(1));              // the kernel moved
  drift.observe(our_counts(2), kernel_counts(6), kernel_counts(6), our_counts(3));              // we moved
  drift.observe(our_counts(3, 0, 1), kernel_counts(6), kernel_counts(6), our_counts(3, 0, 1));  // in flight on our side
  observe_at_rest(drift, our_counts(3), kernel_counts(6, 0, 1));                                // in flight there
  EXPECT_FALSE(reads_of(drift));
  observe_at_rest(drift, our_counts(3), kernel_counts(6));
  EXPECT_EQ(reads_of(drift), 0);
}

TEST(AccountingDrift, IsSignedPerOperationAndStaysUntilTheNextRest) {
  AccountingDrift drift;
  observe_at_rest(drift, our_counts(100, 10), kernel_counts(7, 3));
  observe_at_rest(drift, our_counts(110, 25), kernel_counts(20, 13));
  EXPECT_EQ(reads_of(drift), -3);
  EXPECT_EQ(drift.value().ios[index(Operation::write)], 5);
  EXPECT_EQ(drift.value().ios[index(Operation::flush)], 0);
  EXPECT_EQ(drift.value().ios[index(Operation::discard)], 0);
  for (const Operation never :
       {Operation::write_zeroes, Operation::secure_erase, Operation::zone, Operation::passthrough}) {
    EXPECT_FALSE(drift.value().ios[index(never)]);
  }
  drift.observe(our_counts(110, 25), kernel_counts(21, 13), kernel_counts(21, 13), our_counts(111, 25));
  EXPECT_EQ(reads_of(drift), -3);
}

TEST(AccountingDrift, CountersThatRunBackwardsStartAllOver) {
  AccountingDrift drift;
  observe_at_rest(drift, our_counts(10), kernel_counts(4000));
  observe_at_rest(drift, our_counts(20), kernel_counts(4005));
  EXPECT_EQ(reads_of(drift), -(-10 + 5));
  // Above the baseline, below the last reading: only the last reading can show it.
  observe_at_rest(drift, our_counts(21), kernel_counts(4002));
  EXPECT_EQ(reads_of(drift), 0);
  // It must be noticed when not at rest, too.
  drift.observe(our_counts(30, 0, 1), kernel_counts(1), kernel_counts(1), our_counts(30, 0, 1));
  EXPECT_FALSE(reads_of(drift));
  observe_at_rest(drift, our_counts(30), kernel_counts(9));
  EXPECT_EQ(reads_of(drift), 0);
  observe_at_rest(drift, our_counts(2), kernel_counts(10));
  EXPECT_EQ(reads_of(drift), 0);
  drift.observe(our_counts(2), kernel_counts(10), kernel_counts(3), our_counts(2));
  EXPECT_FALSE(reads_of(drift));
  observe_at_rest(drift, our_counts(2), kernel_counts(3));
  drift.restart();
  EXPECT_FALSE(reads_of(drift));
}

TEST(AccountingDrift, LeadIsWhatTheKernelHasEndedMoreSinceTheLastRest) {
  AccountingDrift drift;
  EXPECT_FALSE(drift.lead(our_counts(1), kernel_counts(5)));
  observe_at_rest(drift, our_counts(1), kernel_counts(5));
  EXPECT_EQ(drift.lead(our_counts(1), kernel_counts(5))->reads, 0);
  EXPECT_EQ(drift.lead(our_counts(3, 4, 2), kernel_counts(9, 4))->reads, 2);
  EXPECT_EQ(drift.lead(our_counts(3, 4, 2), kernel_counts(9, 4))->writes, 0);
  DiskStats with_discards = kernel_counts(5, 3);
  with_discards.discards = 4;
  EXPECT_EQ(drift.lead(our_counts(1), with_discards)->writes, 7) << "a discard is a write in flight";
  // Unexplained I/Os that were there at a rest are not a lead afterwards.
  observe_at_rest(drift, our_counts(1), kernel_counts(6));
  EXPECT_EQ(drift.lead(our_counts(1), kernel_counts(7))->reads, 1);
  EXPECT_FALSE(drift.lead(our_counts(1), kernel_counts(2))) << "it ran backwards";
}

TEST(AccountingDrift, BeforeAnyRestTheLeadIsSinceTheFirstReading) {
  AccountingDrift drift;
  // One ends between our two readings: by the kernel's counts it may have ended before.
  drift.observe(our_counts(10, 0, 3), kernel_counts(70), kernel_counts(71), our_counts(11, 0, 2));
  EXPECT_FALSE(reads_of(drift)) << "that is no drift";
  ASSERT_TRUE(drift.lead(our_counts(11, 0, 2), kernel_counts(71)));
  EXPECT_EQ(drift.lead(our_counts(11, 0, 2), kernel_counts(71))->reads, -1);
  EXPECT_EQ(drift.lead(our_counts(11, 0, 2), kernel_counts(73))->reads, 1) << "two have ended, of one we know it";
  drift.observe(our_counts(12, 0, 1), kernel_counts(73), kernel_counts(73), our_counts(12, 0, 1));
  EXPECT_EQ(drift.lead(our_counts(12, 0, 1), kernel_counts(73))->reads, 0) << "still since the first";
  observe_at_rest(drift, our_counts(13), kernel_counts(75));
  EXPECT_EQ(drift.lead(our_counts(13), kernel_counts(75))->reads, 0) << "since the rest";
  drift.restart();
  EXPECT_FALSE(drift.lead(our_counts(13), kernel_counts(75)));
}

TEST(AccountingDrift, OldKernelsLeaveWhatTheyDoNotReportAbsent) {
  AccountingDrift drift;
  DiskStats kernel = kernel_counts(1);
  kernel.flushes.reset();
  observe_at_rest(drift, our_counts(1), kernel);
  EXPECT_EQ(reads_of(drift), 0);
  EXPECT_EQ(drift.value().ios[index(Operation::discard)], 0);
  EXPECT_FALSE(drift.value().ios[index(Operation::flush)]);
}

TEST(SumOfPaths, AddsFieldsAndLacksWhatOneLacks) {
  DiskStats a = kernel_counts(1, 2, 3);
  DiskStats b = kernel_counts(10, 20, 30);
  a.discards = 5;
  b.discards = 50;
  b.flushes.reset();
  const DiskStats total = sum_of_paths({a, b});
  EXPECT_EQ(total.reads, 11U);
  EXPECT_EQ(total.writes, 22U);
  EXPECT_EQ(total.in_flight, 33U);
  EXPECT_EQ(total.discards, 55U);
  EXPECT_FALSE(total.flushes);
}

/// One disk as both sides see it. Each event is a whole I/O, except for those kept in flight.
struct World {
  model::DeviceIo io;
  model::OperationEvents unseen;
  DiskStats kernel;
  std::map<Operation, std::int64_t> skipped;  // neither counted nor noticed by us: what drift is for
  std::vector<Operation> in_flight;

  World() {
    kernel.discards = 0;
    kernel.flushes = 0;
  }

  model::OperationIo& ours(Operation operation) { return io.operations[index(operation)]; }

  void kernel_ends(Operation operation) {
    switch (operation) {
      case Operation::read:
        ++kernel.reads;
        return;
      case Operation::write:
      case Operation::write_zeroes:
      case Operation::secure_erase:
      case Operation::zone:
        ++kernel.writes;
        return;
      case Operation::discard:
        ++*kernel.discards;
        return;
      case Operation::flush:
        ++*kernel.flushes;
        return;
      case Operation::passthrough:
      case Operation::commit:
        return;
    }
  }

  void begin(Operation operation) {
    ++ours(operation).in_flight;
    kernel.in_flight += operation == Operation::passthrough || operation == Operation::flush ? 0 : 1;
    in_flight.push_back(operation);
  }

  void end_oldest() {
    if (in_flight.empty()) {
      return;
    }
    const Operation operation = in_flight.front();
    in_flight.erase(in_flight.begin());
    --ours(operation).in_flight;
    ++ours(operation).completions;
    kernel.in_flight -= operation == Operation::passthrough || operation == Operation::flush ? 0 : 1;
    kernel_ends(operation);
  }

  /// A write on a drive with a volatile cache: flush, data, flush; `with_data` false is a plain fsync.
  void flush_sequence(bool with_data) {
    ++ours(Operation::flush).completions;
    kernel_ends(Operation::flush);
    if (with_data) {
      ++ours(Operation::write).completions;
      ++unseen.flush_data_stages;
      ++ours(Operation::flush).completions;
      kernel_ends(Operation::flush);
    }
    ++ours(Operation::write).unissued_completions;
    kernel_ends(Operation::write);
  }

  void failover(Operation operation) {
    ++ours(operation).requeues[index(model::RequeueReason::failover)];
    kernel_ends(operation);  // on the path that failed
  }

  void play(int event, Operation operation) {
    switch (event) {
      case 0:
      case 1:
        return begin(operation);
      case 2:
      case 3:
        return end_oldest();
      case 4:
        return flush_sequence(true);
      case 5:
        return flush_sequence(false);
      case 6:
        ++unseen.missed[index(operation)];
        return kernel_ends(operation);
      case 7:
        ++unseen.strays[index(operation)];
        return kernel_ends(operation);
      case 8:
        ++ours(operation).requeues[index(model::RequeueReason::driver)];  // the same I/O again
        return;
      case 9:
        return failover(operation == Operation::read ? Operation::read : Operation::write);
      case 10:  // from request-based dm, which has the sequence
        ++ours(Operation::flush).completions;
        ++unseen.lone_flushes;
        return kernel_ends(Operation::read);
      default:
        ++skipped[operation == Operation::read ? Operation::read : Operation::flush];
        return kernel_ends(operation == Operation::read ? Operation::read : Operation::flush);
    }
  }

  [[nodiscard]] OurCounts counts() const { return compose_counts(io, unseen); }
};

RC_GTEST_PROP(AccountingDrift, IsWhatWasSkippedSinceTheBaselineAndNothingElse, ()) {
  constexpr int kSkip = 11;
  World world;
  AccountingDrift drift;
  std::optional<std::map<Operation, std::int64_t>> skipped_at_baseline;
  const bool with_skips = *rc::gen::arbitrary<bool>();
  const auto steps = *rc::gen::inRange(1, 400);
  for (int step = 0; step < steps; ++step) {
    const auto play = [&] {
      const int event = *rc::gen::inRange(0, with_skips ? kSkip + 1 : kSkip);
      world.play(event, static_cast<Operation>(*rc::gen::inRange(0, static_cast<int>(model::kOperations))));
    };
    play();
    if (*rc::gen::inRange(0, 4) != 0) {
      continue;
    }
    if (*rc::gen::arbitrary<bool>()) {
      while (!world.in_flight.empty()) {
        world.end_oldest();
      }
    }
    const OurCounts before = world.counts();
    const DiskStats kernel_before = world.kernel;
    const bool disturbed = *rc::gen::arbitrary<bool>();
    if (disturbed) {
      play();
    }
    drift.observe(before, kernel_before, world.kernel, world.counts());

    // Not every event between the two readings changes a counter; a reading without a change may be used or not.
    bool only_passthrough = true;
    for (const Operation operation : world.in_flight) {
      only_passthrough = only_passthrough && operation == Operation::passthrough;
    }
    if (only_passthrough && !disturbed && !skipped_at_baseline) {
      skipped_at_baseline = world.skipped;
    }
    if (!drift.value().ios[index(Operation::read)]) {
      RC_ASSERT(disturbed || !only_passthrough);
    } else if (!disturbed && only_passthrough) {
      for (const Operation operation : {Operation::read, Operation::write, Operation::discard, Operation::flush}) {
        const std::int64_t missing = world.skipped[operation] - (*skipped_at_baseline)[operation];
        RC_ASSERT(drift.value().ios[index(operation)] == -missing);
      }
    } else if (!skipped_at_baseline) {
      skipped_at_baseline = world.skipped;  // an event that changed nothing: this reading was at rest after all
    }
    if (!with_skips) {
      for (const auto& ios : drift.value().ios) {
        RC_ASSERT(ios.value_or(0) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace ssdpulse::block
