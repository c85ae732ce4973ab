// SPDX-License-Identifier: Apache-2.0
// When disks appear and disappear a million times, do they get room that nobody else uses, and is all of it returned?
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <random>

#include "daemon/block/block_programs.h"
#include "daemon/block/io_cells.h"
#include "daemon/block/kernel_memory.h"

namespace {

using namespace ssdpulse::block;
using std::chrono::seconds;

constexpr std::uint32_t kDevices = 12;
constexpr std::uint32_t kSlots = 40 << 10;
constexpr seconds kSlowestIo{120};

/// A disk, and what the kernel itself knows about its requests.
struct Disk {
  Allocation allocation;
  std::int64_t truly_in_flight = 0;
  Retirement::Time last_issue;
  InFlight told;  // what the programs saw
  std::optional<Retirement> retirement;
};

bool overlap(const Allocation& one, const Allocation& other) {
  return one.device == other.device ||
         (one.slot_base < other.slot_base + other.slots && other.slot_base < one.slot_base + one.slots);
}

/// Disks appear, do I/O and disappear; some ends are seen by no program.
class Host {
 public:
  Host(std::uint32_t seed, double unseen) : rng_(seed), unseen_(unseen) {}

  void step() {
    now_ += std::chrono::milliseconds(rng_() % 20000);
    const unsigned what = rng_() % 8;
    if (what == 0 || disks_.empty()) {
      arrive();
    } else if (what == 1) {
      any().retirement.emplace(now_);
    } else {
      do_io(any());
    }
    release_finished();
  }

  /// All disks go, and everything in flight ends.
  void end() {
    for (Disk& disk : disks_) {
      end_io(disk, disk.truly_in_flight);
      disk.retirement.emplace(now_);
    }
    now_ += kEndedUnseenAfter;
    release_finished();
  }

  [[nodiscard]] const TableAllocator& allocator() const { return allocator_; }
  std::size_t arrivals = 0, refused = 0, shared = 0, given_up = 0;

 private:
  Disk& any() { return *std::next(disks_.begin(), static_cast<std::ptrdiff_t>(rng_() % disks_.size())); }

  void arrive() {
    const auto allocation =
        allocator_.allocate({1 + static_cast<std::uint32_t>(rng_() % 4), static_cast<std::uint32_t>(rng_() % 4096)});
    refused += allocation ? 0 : 1;
    if (!allocation) {
      return;
    }
    ++arrivals;
    for (const Disk& other : disks_) {
      shared += overlap(*allocation, other.allocation) ? 1 : 0;
    }
    disks_.push_back({*allocation, 0, now_, {}, std::nullopt});
  }

  void do_io(Disk& disk) {
    if (disk.truly_in_flight > 0 && (rng_() % 2 == 0 || disk.retirement)) {
      end_io(disk, 1);
    } else if (!disk.retirement) {
      ++disk.truly_in_flight;
      disk.last_issue = now_;
      EventIncrements none;
      disk.told.add(1, 0, none);
    }
  }

  void end_io(Disk& disk, std::int64_t requests) {
    disk.truly_in_flight -= requests;
    for (; requests > 0; --requests) {
      EventIncrements none;
      const bool seen = std::uniform_real_distribution<>(0, 1)(rng_) >= unseen_;
      disk.told.add(0, seen ? 1 : 0, none);
      if (disk.retirement) {
        disk.retirement->observe(disk.told.requests(), now_);
      }
    }
  }

  void release_finished() {
    for (auto disk = disks_.begin(); disk != disks_.end();) {
      // No driver lets a request wait longer.
      if (disk->truly_in_flight > 0 && now_ - disk->last_issue > kSlowestIo) {
        end_io(*disk, disk->truly_in_flight);
      }
      if (!disk->retirement || !disk->retirement->over(disk->told.requests() != 0, now_)) {
        ++disk;
        continue;
      }
      EXPECT_EQ(disk->truly_in_flight, 0) << "released with I/O in flight";
      given_up += disk->told.requests() != 0 ? 1 : 0;
      allocator_.release(disk->allocation);
      disk = disks_.erase(disk);
    }
  }

  TableAllocator allocator_{kDevices, kSlots};
  std::list<Disk> disks_;
  Retirement::Time now_;
  std::mt19937 rng_;
  double unseen_;
};

void nothing_leaks(double unseen) {
  Host host(20260, unseen);
  for (int step = 0; step < 1'000'000; ++step) {
    host.step();
  }
  EXPECT_EQ(host.shared, 0U) << "two disks share a device or a slot";
  EXPECT_GT(host.arrivals, 50'000U);
  EXPECT_GT(host.refused, 100U) << "the tables were full at times";
  host.end();
  EXPECT_EQ(host.allocator().free_devices(), kDevices);
  EXPECT_EQ(host.allocator().free_slots(), kSlots);
  EXPECT_EQ(host.allocator().free_regions(), 1U) << "it has grown together again";
  EXPECT_EQ(host.given_up > 0, unseen > 0);
}

TEST(TableAllocator, NothingLeaksInAMillionSteps) { nothing_leaks(0); }

TEST(TableAllocator, NorWhereOneEndInAHundredIsNotSeen) { nothing_leaks(0.01); }

TEST(TableAllocator, ASmallerRegionRatherThanNone) {
  TableAllocator allocator(3, 3 << 10);
  EXPECT_EQ(allocator.allocate({1, 2048})->slots, 2048U);
  const auto small = allocator.allocate({1, 2048});
  EXPECT_EQ(small->slots, 1024U);
  EXPECT_FALSE(slots_are_exact({1, 2048}, small->slots));
  EXPECT_FALSE(allocator.allocate({1, 1})) << "no slots are left";
  allocator.release(*small);
  EXPECT_TRUE(allocator.allocate({1, 1}));
}

TEST(TableAllocator, TheTightestRegionIsTaken) {
  TableAllocator allocator(4, 8 << 10);
  const auto first = allocator.allocate({1, 1024}), second = allocator.allocate({1, 1024});
  allocator.release(*first);
  EXPECT_EQ(allocator.allocate({1, 4096})->slot_base, 2048U);
  EXPECT_EQ(allocator.allocate({1, 1024})->slot_base, first->slot_base)
      << "not from the large one behind " << second->slot_base;
}

TEST(Retirement, PendingRequestsKeepTheRow) {
  const Retirement::Time start{};
  Retirement retirement(start);
  EXPECT_TRUE(retirement.over(false, start));
  EXPECT_FALSE(retirement.over(true, start + kEndedUnseenAfter - seconds(1)));
  retirement.observe(7, start);
  retirement.observe(6, start + seconds(200));
  EXPECT_FALSE(retirement.over(true, start + kEndedUnseenAfter));
  retirement.observe(6, start + seconds(400));
  EXPECT_TRUE(retirement.over(true, start + seconds(200) + kEndedUnseenAfter));
}

TEST(ForgottenRequests, DisturbTheirDriveNoMore) {
  std::array<device_state, 2> states{};
  std::array<issue_slot, 8> slots{};
  Tables tables;
  tables.issue_slots = slots;
  tables.writable_states = states;
  const Allocation path{1, 4, 4};
  states[1].geometry.drive = 0;
  states[0].discards_started = 2;  // one from each path
  states[0].flushes_started = 1;
  states[0].others_in_flight = 3;
  slots[0].held = slots[4].held = held_by(CLASS_DISCARD);
  slots[6].held = held_by(CLASS_FLUSH);
  slots[5].held = held_by(CLASS_WRITE);
  tables.forget_requests(path);
  EXPECT_EQ(states[0].discards_ended, 1U) << "that of the other path goes on";
  EXPECT_EQ(states[0].flushes_ended, 1U);
  EXPECT_EQ(states[0].others_in_flight, 1U);
  EXPECT_NE(slots[0].held, 0U);
  EXPECT_TRUE(std::all_of(slots.begin() + 4, slots.end(), [](const issue_slot& slot) { return slot.held == 0; }));
}

}  // namespace
