// SPDX-License-Identifier: Apache-2.0
// Is the kernel's account read alongside ours, trusted only when it may be, and never taken for another disk's?
#include "daemon/runtime/kernel_account.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/fixtures/sysfs_host.h"

namespace ssdpulse::runtime {
namespace {

using model::index;
using model::Operation;

class Rig {
 public:
  Rig() {
    host.disk("pci", "sda", "8:0");
    device.name = "sda";
    device.paths = {{"sda", 1, 64, 3}};
    ours.device = std::make_shared<const model::Device>(device);
    kernel(0, 0);
  }
  void kernel(std::uint64_t reads, std::uint64_t in_flight) const {
    const std::string count = std::to_string(reads);
    host.tree().file("sys/devices/pci/sda/stat", count + " 0 0 0 0 0 0 0 " + std::to_string(in_flight) + " 0 0\n");
    host.tree().file("sys/devices/pci/sda/inflight", "       " + std::to_string(in_flight) + "        0\n");
  }
  void count(std::uint64_t reads, std::int64_t in_flight) {
    model::DeviceIo io;
    io.since = since;
    io.operations[index(Operation::read)].completions = reads;
    io.operations[index(Operation::read)].issues = reads + static_cast<std::uint64_t>(in_flight);
    io.operations[index(Operation::read)].in_flight = in_flight;
    ours.io = std::make_shared<const model::DeviceIo>(io);
  }
  [[nodiscard]] std::optional<KernelAccount> open() const { return KernelAccount::open(host.roots(), device, 1); }

  tests::SysfsHost host;
  model::Device device;
  model::DeviceSample ours;
  model::WallTime since;  // of our counters
};

TEST(KernelAccount, IsOfTheDiskThatItWasOpenedFor) {
  Rig rig;
  const auto account = rig.open();
  ASSERT_TRUE(account);
  EXPECT_TRUE(account->is_of(rig.device));
  model::Device other = rig.device;
  other.paths[0].diskseq = 4;
  EXPECT_FALSE(account->is_of(other));
  rig.device.iostats = false;
  EXPECT_FALSE(account->is_of(rig.device));
  EXPECT_FALSE(rig.open());
  rig.device.iostats = true;
  rig.device.paths.push_back({"sdb", 1, 64, 9});
  EXPECT_FALSE(rig.open()) << "a sum without one of its parts";
}

TEST(KernelAccount, AReadingHasBothSidesInOrder) {
  Rig rig;
  auto account = rig.open();
  rig.count(5, 0);
  rig.kernel(100, 0);
  auto after = rig.ours;
  const auto result = account->compare(rig.ours, [&] { return std::optional(after); });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ours_before.io->operation(Operation::read).completions, 5U);
  EXPECT_EQ(result->kernel_before.reads, 100U);
  EXPECT_EQ(result->kernel_after.reads, 100U);
  EXPECT_FALSE(account->compare(rig.ours, [] { return std::nullopt; })) << "the device has gone meanwhile";
  rig.host.tree().file("sys/devices/pci/sda/stat", "nonsense\n");
  EXPECT_FALSE(account->compare(rig.ours, [&] { return std::optional(after); }));
}

TEST(KernelAccount, DriftIsOurExcessSinceTheFirstReading) {
  Rig rig;
  auto account = rig.open();
  const auto drift = [&](std::uint64_t ours, std::uint64_t kernel) {
    rig.count(ours, 0);
    rig.kernel(kernel, 0);
    account->compare(rig.ours, [&] { return std::optional(rig.ours); });
    return account->drift().ios[index(Operation::read)];
  };
  EXPECT_FALSE(account->drift().ios[index(Operation::read)]) << "nobody looked";
  EXPECT_EQ(drift(10, 1000), 0);
  EXPECT_EQ(drift(25, 1013), 2);
  rig.since += std::chrono::seconds(1);
  EXPECT_EQ(drift(40, 1050), 0) << "our counters have begun again";
  EXPECT_EQ(drift(41, 1050), 1);
  account = rig.open();
  EXPECT_EQ(drift(41, 5000), 0) << "another account: a new path, whose counters were not in the sum";
}

TEST(KernelAccount, RequestsAbsentFromTwoReadingsHaveEnded) {
  Rig rig;
  auto account = rig.open();
  rig.count(5, 0);
  rig.kernel(5, 0);
  account->compare(rig.ours, [&] { return std::optional(rig.ours); });
  EXPECT_FALSE(account->find_missed(rig.ours).kernel) << "nothing is in flight: nobody asks";
  rig.count(5, 1);
  rig.kernel(5, 1);
  auto result = account->find_missed(rig.ours);
  ASSERT_TRUE(result.kernel);
  EXPECT_EQ(result.kernel->reads, 1);
  EXPECT_FALSE(result.ended.reads);
  rig.kernel(6, 0);
  EXPECT_FALSE(account->find_missed(rig.ours).ended.reads) << "the first look";
  result = account->find_missed(rig.ours);
  EXPECT_TRUE(result.ended.reads);
  EXPECT_FALSE(result.ended.writes);
}

TEST(KernelAccount, BeforeTheFirstComparisonNothingHasEndedUnseen) {
  Rig rig;
  auto account = rig.open();
  rig.count(0, 1);
  rig.kernel(0, 0);
  for (int tick = 0; tick < 3; ++tick) {
    const auto result = account->find_missed(rig.ours);
    EXPECT_FALSE(result.kernel) << "it may wait to be issued again";
    EXPECT_FALSE(result.ended.reads);
  }
  EXPECT_FALSE(account->compared());
  account->compare(rig.ours, [&] { return std::optional(rig.ours); });
  EXPECT_TRUE(account->compared());
  (void)account->find_missed(rig.ours);
  EXPECT_FALSE(account->find_missed(rig.ours).ended.reads) << "diskstats have not ended it since";
  rig.kernel(1, 0);
  (void)account->find_missed(rig.ours);
  EXPECT_TRUE(account->find_missed(rig.ours).ended.reads) << "now they have, although the device was never at rest";
}

TEST(KernelAccount, ARequestThatWaitsToBeIssuedAgainHasNotEnded) {
  Rig rig;
  auto account = rig.open();
  rig.count(5, 0);
  rig.kernel(5, 0);
  account->compare(rig.ours, [&] { return std::optional(rig.ours); });
  (void)account->find_missed(rig.ours);
  rig.count(5, 1);
  for (int tick = 0; tick < 5; ++tick) {
    const auto result = account->find_missed(rig.ours);
    EXPECT_FALSE(result.kernel) << "diskstats show no end of it";
    EXPECT_FALSE(result.ended.reads);
  }
}

/// A volume, second by second: our count and the kernel's.
class VolumeRig {
 public:
  VolumeRig() {
    inventory.devices.emplace_back();
    inventory.devices.back().name = "dm-0";
    inventory.devices.back().iostats = true;
    inventory.layers = {{"dm-0", "data", model::LayerKind::lvm, {"sda"}, 7}};
    accounts.update(inventory);
  }

  /// What its drift of bytes written is then; nothing: there is none.
  std::optional<std::int64_t> drift(std::uint64_t our_bytes, std::uint64_t kernel_sectors, std::int64_t in_flight = 0,
                                    bool moves_meanwhile = false) {
    model::DiskStats stats;
    stats.writes = 9;
    stats.written_sectors = kernel_sectors;
    stats.in_flight = kernel_in_flight;
    auto io = std::make_shared<model::BioIo>();
    io->device = "dm-0";
    io->is_volume = true;
    io->since = since;
    io->operations[index(Operation::write)].submitted = our_bytes / 4096 + static_cast<std::uint64_t>(in_flight);
    io->operations[index(Operation::write)].bytes = our_bytes;
    io->operations[index(Operation::write)].in_flight = in_flight;
    const VolumeAccounts::Bios bios{io};
    const VolumeAccounts::Bios again{moves_meanwhile ? std::make_shared<model::BioIo>(*io) : io};
    accounts.compare(bios, {{"dm-0", stats}}, [&] { return again; });
    const auto found = accounts.drift().find("dm-0");
    return found == accounts.drift().end() ? std::nullopt : std::optional(found->second.written_bytes);
  }
  void see_volume(std::uint64_t diskseq) {
    inventory.layers[0].diskseq = diskseq;
    accounts.update(inventory);
  }

  model::Inventory inventory;
  model::WallTime since;  // of our counters
  std::uint64_t kernel_in_flight = 0;
  VolumeAccounts accounts;
};

TEST(VolumeAccounts, DriftIsOurExcessSinceItWasTwiceTheSame) {
  VolumeRig rig;
  EXPECT_FALSE(rig.drift(4096, 100)) << "the kernel may still add to it";
  EXPECT_FALSE(rig.drift(4096, 108));
  EXPECT_EQ(rig.drift(4096, 108), 0);
  EXPECT_EQ(rig.drift(8192, 116), 0);
  EXPECT_EQ(rig.drift(12288, 116), 4096);
}

TEST(VolumeAccounts, WhatIsLostOfTheFirstIoIsDrift) {
  VolumeRig rig;
  EXPECT_EQ(rig.drift(0, 100), 0);
  EXPECT_EQ(rig.drift(3 * 4096, 100 + 4 * 8), -4096) << "three of four were counted";
  VolumeRig busy;
  busy.kernel_in_flight = 1;
  EXPECT_FALSE(busy.drift(0, 100)) << "what is in flight was submitted before we counted";
  busy.kernel_in_flight = 0;
  EXPECT_EQ(busy.drift(0, 108), 0);
}

TEST(VolumeAccounts, OfAVolumeThatAppearedLaterCountFromItsFirstIo) {
  VolumeRig rig;
  rig.drift(0, 100);
  rig.see_volume(8);
  rig.since += std::chrono::seconds(1);
  EXPECT_EQ(rig.drift(0, 16), -8192) << "done before it had a row";
  EXPECT_EQ(rig.drift(4096, 24), -8192);
  rig.see_volume(8);
  rig.since += std::chrono::seconds(1);
  EXPECT_EQ(rig.drift(0, 24), 0) << "the same volume: only our counters have begun again";
}

TEST(VolumeAccounts, OfAVolumeThatIsNotCountedAtFirstBeginWhenItIs) {
  VolumeRig rig;
  rig.inventory.devices.back().iostats = false;
  rig.see_volume(8);
  EXPECT_FALSE(rig.drift(4096, 16));
  rig.inventory.devices.back().iostats = true;
  rig.see_volume(8);
  rig.drift(8192, 16);
  EXPECT_EQ(rig.drift(8192, 16), 0);
}

TEST(VolumeAccounts, NothingIsComparedWhileItMoves) {
  VolumeRig rig;
  EXPECT_EQ(rig.drift(0, 100), 0);
  EXPECT_EQ(rig.drift(8192, 100, 1), 0) << "a bio is in flight";
  EXPECT_EQ(rig.drift(8192, 100, 0, true), 0) << "it went on between the two readings";
  EXPECT_EQ(rig.drift(8192, 100), 8192);
}

TEST(VolumeAccounts, BeginAgainWithOurCountersAndEndWithTheVolume) {
  VolumeRig rig;
  rig.drift(0, 100);
  EXPECT_EQ(rig.drift(4096, 100), 4096);
  rig.since += std::chrono::seconds(1);
  EXPECT_EQ(rig.drift(0, 100), 0);
  rig.accounts.compare({}, {}, [] { return VolumeAccounts::Bios(); });
  EXPECT_TRUE(rig.accounts.drift().empty());
}

TEST(VolumeAccounts, StandStillWhileNothingEnds) {
  VolumeAccounts accounts;
  const auto still = [&](std::uint64_t submitted, std::int64_t in_flight) {
    auto io = std::make_shared<model::BioIo>();
    io->device = "dm-0";
    io->is_volume = true;
    io->operations[index(Operation::write)].submitted = submitted;
    io->operations[index(Operation::write)].in_flight = in_flight;
    return !accounts.standing_still({io}).empty();
  };
  EXPECT_FALSE(still(5, 2)) << "not known yet";
  EXPECT_TRUE(still(9, 6)) << "more are submitted, none ends";
  EXPECT_FALSE(still(9, 5));
  EXPECT_FALSE(still(9, 0));
  EXPECT_FALSE(still(9, 0)) << "there is nothing to wait for";
}

TEST(VolumeAccounts, AreNoneWhereTheKernelCountsNothing) {
  VolumeRig rig;
  rig.inventory.devices.back().iostats = false;
  rig.accounts.update(rig.inventory);
  rig.drift(0, 100);
  EXPECT_FALSE(rig.drift(0, 100));
}

}  // namespace
}  // namespace ssdpulse::runtime
