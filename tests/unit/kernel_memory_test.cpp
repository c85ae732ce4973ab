// SPDX-License-Identifier: Apache-2.0
// Do the kernel's tables stay within the design's budget, and does every disk get what it needs?
#include "daemon/block/kernel_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/types.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "bpf/abi/block_abi.h"

namespace {

using namespace ssdpulse::block;

/// A large data-centre drive: a hardware queue for each CPU (at most 128), with 1023 tags each.
std::vector<SlotDemand> nvme_drives(std::size_t count, std::uint32_t cpus) {
  return std::vector<SlotDemand>(count, SlotDemand{std::min(cpus, 128U), 1023});
}

void print(const char* what, const MemoryPlan& plan) {
  std::printf("%s: %u devices x %u CPUs: cells %.1f MB, slots %.1f MiB, tables %.1f MB\n", what, plan.devices,
              plan.cpus, static_cast<double>(plan.cell_bytes()) / 1e6,
              static_cast<double>(plan.slot_bytes()) / (1 << 20), static_cast<double>(plan.table_bytes()) / 1e6);
}

TEST(KernelMemory, EightDevicesBySixtyFourCpus) {
  const MemoryPlan plan = plan_memory(nvme_drives(8, 64), 64);
  print("8 x 64", plan);
  // By hand: (8 + 4 spare) x (64 x 2 + 6) cells of 5376 bytes, 64 of 256, 8 of 8896 for hints and streams (as 1.5 MB
  // allow), and 64 of 896 for commits; 12 regions of 64 x 1024 slots of 16 bytes.
  EXPECT_EQ(plan.cell_bytes(), 12ULL * ((64 * 2 + 6) * 5376 + 64 * 256 + 8 * 8896 + 64 * 896));
  EXPECT_EQ(plan.slot_bytes(), 12ULL * 65536 * 16);
  EXPECT_LE(plan.cell_bytes(), 16'000'000U);
  EXPECT_LE(plan.slot_bytes(), 16ULL << 20);
}

TEST(KernelMemory, SixtyFourDevicesByTwoHundredFiftySixCpus) {
  const MemoryPlan plan = plan_memory(nvme_drives(64, 256), 256);
  print("64 x 256", plan);
  EXPECT_EQ(plan.cell_bytes(), 70ULL * ((256 * 2 + 6) * 5376 + 256 * 256 + 2 * 8896 + 16 * 896))
      << "commits share what 202 MB leave";
  EXPECT_LE(plan.cell_bytes(), 202'000'000U);
  EXPECT_LE(plan.slot_bytes(), 128ULL << 20);
}

/// Everything is on; the kernel's tables are charged to the service. The rest of the daemon takes 12 MB on a host with
/// few drives (tests/bench); 64 MiB are ample for many.
TEST(KernelMemory, AQuarterOfTheUnitsMemoryStaysFreeAtSixtyFourDrives) {
  MemoryPlan plan = plan_memory(nvme_drives(64, 256), 256);
  plan_attribution(plan, 64);
  plan.discard_rows = 2 * 64;
  constexpr std::uint64_t kModels = 128ULL << 20;
  constexpr std::uint64_t kRest = 64ULL << 20;
  std::ifstream unit(std::string(SSDPULSE_SOURCE_DIR) + "/deploy/systemd/ssdpulse.service");
  std::uint64_t allowed = 0;
  for (std::string line; std::getline(unit, line);) {
    const std::string key = "MemoryMax=";
    allowed = line.rfind(key, 0) == 0 ? std::stoull(line.substr(key.size())) << 20 : allowed;
  }
  ASSERT_GT(allowed, 0U);
  EXPECT_LE(plan.total_bytes() + kModels + kRest, allowed / 4 * 3);
}

TEST(KernelMemory, AllInOneAnswersForEveryTable) {
  const MemoryPlan plan = plan_memory(nvme_drives(2, 4), 4);
  EXPECT_EQ(plan.total_bytes(), plan.cell_bytes() + plan.slot_bytes() + plan.table_bytes() + (1U << 20));
  EXPECT_EQ(plan.table_bytes(), 1024 * 256 + plan.devices * (sizeof(device_events) + sizeof(stream_ends)) +
                                    KNOWN_DISKS * 48 + QUEUE_IDS * 32 + sizeof(host_state) + END_FUNCTION_SETS * 32);
}

TEST(KernelMemory, AttributionFollowsWhatHappens) {
  MemoryPlan plan = plan_memory(nvme_drives(8, 64), 64);
  EXPECT_EQ(plan.attribution_bytes(), 0U) << "switched off";
  plan_attribution(plan, 64);
  std::printf("attribution of 64 cgroups, 8 drives x 64 CPUs: %.1f MB\n",
              static_cast<double>(plan.attribution_bytes()) / 1e6);
  // By hand: 16 cells of 32 bytes for 64 cgroups and 12 devices, 128 announcements of 288 bytes after 1152 bytes of
  // their own, on each CPU; for I/O without a cell, 3136 bytes per device on 32 CPUs (as 2 MB allow).
  EXPECT_EQ(plan.attribution_bytes(), 64ULL * (16 * (64 + 12) * 32 + 1152 + 128 * 288) + 12ULL * 32 * 3136);
  MemoryPlan large = plan_memory(nvme_drives(21, 384), 384);
  plan_attribution(large, 64);
  std::printf("21 drives x 384 CPUs: %.1f MB\n", static_cast<double>(large.attribution_bytes()) / 1e6);
  EXPECT_LE(large.attribution_bytes(), 32'000'000U);
  plan_attribution(large, 4096);
  EXPECT_LE(large.attribution_bytes(), 33'000'000U) << "however many are asked for";
}

/// What deploy/docs/overhead.md says about a large host.
TEST(KernelMemory, TwentyOneDrivesByThreeHundredEightyFourCpusAsDocumented) {
  MemoryPlan plan = plan_memory(nvme_drives(21, 384), 384);
  plan_attribution(plan, 64);
  print("21 x 384", plan);
  const auto megabytes = [](std::uint64_t bytes) { return std::lround(static_cast<double>(bytes) / 1e6); };
  std::ifstream document(std::string(SSDPULSE_SOURCE_DIR) + "/deploy/docs/overhead.md");
  const std::string text((std::istreambuf_iterator<char>(document)), std::istreambuf_iterator<char>());
  const std::string sentence = fmt::format(
      "{} MB at 21 drives and 384 CPUs, of which {} MB are counters, {} MB slots of requests in flight, and "
      "{} MB I/O by cgroup and path",
      megabytes(plan.total_bytes()), megabytes(plan.cell_bytes()), megabytes(plan.slot_bytes()),
      megabytes(plan.attribution_bytes()));
  EXPECT_NE(text.find(sentence), std::string::npos) << "overhead.md does not say: " << sentence;
}

TEST(KernelMemory, CommitCellsAreOnePerCpuWhereTheBudgetAllowsIt) {
  EXPECT_EQ(plan_memory(nvme_drives(2, 6), 6).commit_cells, 8U) << "indexed by the CPU number's low bits";
  EXPECT_EQ(plan_memory(nvme_drives(32, 256), 256).commit_cells, 256U);
  EXPECT_EQ(plan_memory(nvme_drives(400, 256), 256).commit_cells, 1U) << "beyond the budget already";
}

TEST(KernelMemory, DisksWithoutATableRowTakeNoMemory) {
  const MemoryPlan plan = plan_memory(nvme_drives(3000, 64), 2);
  EXPECT_EQ(plan.devices, kMaxDevices);
  EXPECT_EQ(plan.slots, kMaxDevices * 65536U);
  EXPECT_EQ(plan_memory(nvme_drives(1020, 64), 2).devices, kMaxDevices);
}

TEST(KernelMemory, NoDiskAtAllStillLeavesRoomForNewOnes) {
  const MemoryPlan plan = plan_memory({}, 2);
  EXPECT_EQ(plan.devices, 4U);
  EXPECT_EQ(plan.slots, 4 * kMinSlotsPerDevice);
}

TEST(KernelMemory, Properties) {
  EXPECT_TRUE(rc::check("slots of a disk are a power of two, and exact when they hold all its tags", [] {
    const SlotDemand demand{*rc::gen::inRange(0U, 300U), *rc::gen::inRange(0U, 20'000U)};
    const std::uint32_t slots = slots_for(demand);
    RC_ASSERT((slots & (slots - 1)) == 0U);
    RC_ASSERT(slots >= kMinSlotsPerDevice && slots <= kMaxSlotsPerDevice);
    const std::uint64_t wanted = std::uint64_t{std::max(1U, demand.hardware_queues)} * demand.queue_depth;
    RC_ASSERT(slots_are_exact(demand, slots) == (wanted > 0 && wanted <= slots));
  }));
  EXPECT_TRUE(rc::check("the slots of all disks stay within 2 MiB each", [] {
    const auto count = *rc::gen::inRange<std::size_t>(0, 200);
    std::vector<SlotDemand> demands;
    for (std::size_t i = 0; i < count; ++i) {
      demands.push_back({*rc::gen::inRange(1U, 300U), *rc::gen::inRange(1U, 4096U)});
    }
    const MemoryPlan plan = plan_memory(demands, 64);
    RC_ASSERT(plan.slot_bytes() <= (std::uint64_t{2} << 20) * std::max<std::size_t>(8, count));
    RC_ASSERT(plan.devices > count);
  }));
}

}  // namespace
