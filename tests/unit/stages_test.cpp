// SPDX-License-Identifier: Apache-2.0
// What do the smaller stages make of a Tick: drift, losses, hints? And what do they keep when a device is replaced?
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "daemon/block/accounting_drift.h"
#include "daemon/block/device_events.h"
#include "daemon/block/write_hints.h"
#include "daemon/runtime/all_stages.h"

namespace ssdpulse::block {
namespace {

using namespace std::chrono_literals;
using model::index;
using model::Operation;

model::Tick tick_of(const std::vector<std::string>& devices) {
  model::Tick tick;
  tick.at = model::SteadyTime(1h);
  tick.inventory = std::make_shared<const model::Inventory>();
  for (const std::string& name : devices) {
    auto device = std::make_shared<model::Device>();
    device->name = name;
    device->logical_block_bytes = 512;
    tick.devices.emplace_back();
    tick.devices.back().block = {device, std::make_shared<const model::DeviceIo>(), {}, 0};
  }
  return tick;
}

model::Snapshot snapshot_of(const model::Tick& tick, const model::Findings& findings) {
  model::Snapshot snapshot;
  snapshot.devices.resize(tick.devices.size());
  if (findings.values) {
    findings.values(snapshot);
  }
  return snapshot;
}

std::optional<std::int64_t> read_drift(Drift& stage, const model::Tick& tick, std::size_t device = 0) {
  return snapshot_of(tick, stage.observe(tick)).devices[device].drift.ios[index(Operation::read)];
}

TEST(Drift, is_that_of_each_device_in_the_tick) {
  Drift stage;
  model::Tick tick = tick_of({"sda", "sdb"});
  EXPECT_FALSE(read_drift(stage, tick)) << "nobody looked";
  tick.devices[0].drift.ios[index(Operation::read)] = 2;
  EXPECT_EQ(read_drift(stage, tick), 2);
  EXPECT_FALSE(read_drift(stage, tick, 1)) << "of another device";
}

TEST(Losses, a_minute_of_them_is_one_line) {
  Losses stage;
  std::size_t lines = 0;
  model::DeviceIo io;
  for (int second = 0; second <= 400; ++second) {
    model::Tick tick = tick_of({"sda"});
    tick.at += std::chrono::seconds(second);
    io.operations[index(Operation::read)].completions += 100;
    io.losses[index(model::Loss::stray)] += 1;
    tick.devices[0].block.io = std::make_shared<const model::DeviceIo>(io);
    for (const log::Line& line : stage.observe(tick).effects.lines) {
      ++lines;
      EXPECT_EQ(line.level, log::Level::warning);
      EXPECT_EQ(line.text,
                "I/Os were not measured device=sda completion_missed=0 stray=60 slot_collision=0 of=6060 seconds=60 "
                "runbook=SsdpulseLosingEvents suppressed=0");
    }
  }
  EXPECT_EQ(lines, 1U) << "in ten minutes";
}

TEST(Losses, those_of_another_disk_of_the_name_are_its_own) {
  Losses stage;
  model::DeviceIo io;
  const auto run = [&](int seconds) {
    std::size_t lines = 0;
    static int second = 0;
    for (int i = 0; i < seconds; ++i) {
      model::Tick tick = tick_of({"sda"});
      tick.at += std::chrono::seconds(++second);
      io.losses[index(model::Loss::stray)] += 10;
      tick.devices[0].block.io = std::make_shared<const model::DeviceIo>(io);
      lines += stage.observe(tick).effects.lines.size();
    }
    return lines;
  };
  EXPECT_EQ(run(40), 0U);
  io = {};
  io.since = model::WallTime(7s);
  EXPECT_EQ(run(60), 0U) << "its first minute is not over";
  EXPECT_EQ(run(2), 1U);
}

TEST(WriteHints, a_drive_that_answered_is_asked_for_the_other_half) {
  WriteHints stage;
  model::Tick tick = tick_of({"nvme0n1", "sda"});
  tick.hint_reach = model::HintReach::block_layer;
  auto identity = std::make_shared<model::NvmeIdentity>();
  identity->namespaces = {{"nvme0n1", 1, 0, 8, 16}};
  identity->controller_attributes = 1U << 19U;
  auto drive = std::make_shared<model::NvmeDrive>();
  drive->identity = identity;
  tick.drives = {{drive}};
  model::join_drives(tick);
  model::Findings findings = stage.observe(tick);
  EXPECT_EQ(snapshot_of(tick, findings).devices[0].hint_path->drive, model::DriveSeparation::unknown);
  EXPECT_TRUE(findings.effects.write_preferences->empty()) << "all that is known is from sysfs";

  identity->version = 0x10400;
  findings = stage.observe(tick);
  const model::Snapshot snapshot = snapshot_of(tick, findings);
  EXPECT_EQ(snapshot.devices[0].hint_path->drive, model::DriveSeparation::fdp);
  EXPECT_EQ(snapshot.devices[1].hint_path->drive, model::DriveSeparation::unknown);
  EXPECT_EQ(snapshot.devices[1].hint_path->kernel, model::HintReach::block_layer);
  const std::map<std::string, model::WritePreference> wanted{{"nvme0n1", {16 * 512, 8 * 512}}};
  EXPECT_EQ(findings.effects.write_preferences, wanted);
}

TEST(Stages, none_asks_for_anything_of_an_empty_tick) {
  for (const auto& stage : runtime::all_stages()) {
    const model::Tick tick = tick_of({});
    const model::Findings findings = stage->observe(tick);
    EXPECT_TRUE(findings.effects.lines.empty());
    EXPECT_TRUE(findings.effects.rows.empty());
    EXPECT_TRUE(findings.effects.poll_soon.empty());
  }
}

}  // namespace
}  // namespace ssdpulse::block
