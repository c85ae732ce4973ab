// SPDX-License-Identifier: Apache-2.0
// One NVMe drive of the daemon, with the test's own drive, block layer, sysfs and clock.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "daemon/nvme/polled_drive.h"
#include "daemon/wear/write_amplification.h"
#include "tests/fixtures/fake_nvme_drive.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::nvme {

using namespace std::chrono_literals;
using model::Operation;
using tests::FakeDrive;
using tests::fill_fdp;
using tests::fill_ocp;
using tests::put;

inline constexpr auto kInterval = 30s;

inline std::size_t times(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    ++found;
  }
  return found;
}

class FakeBlockLayer final : public BlockLayer {
 public:
  std::shared_ptr<const model::DeviceIo> device(const std::string& name) override {
    const auto found = devices.find(name);
    return found == devices.end() ? nullptr : std::make_shared<const model::DeviceIo>(found->second);
  }
  [[nodiscard]] std::optional<std::uint64_t> largest_request_bytes(const std::string& /*name*/) const override {
    return largest;
  }
  [[nodiscard]] std::uint64_t skipped_runs() const override { return skipped; }

  model::OperationIo& operation(Operation op) { return devices["nvme3n1"].operations[model::index(op)]; }

  std::map<std::string, model::DeviceIo> devices{{"nvme3n1", {}}};
  std::optional<std::uint64_t> largest = 512 << 10;
  std::uint64_t skipped = 0;
};

class Rig {
 public:
  Rig() {
    lessons.sys_root = tree.path();
    show_serial("S1");
  }

  NvmeSubsystem subsystem() {
    NvmeSubsystem found;
    found.controller = 3;
    found.state = "live";
    found.nqn = "nqn.2014-08.org:S1";
    found.model = fake.model;
    found.serial = "S1";
    found.firmware = fake.firmware;
    found.namespaces = {{"nvme3n1", 1, 0}};
    return found;
  }

  void show_serial(const std::string& serial) const { tree.file("class/nvme/nvme3/serial", serial + "   \n"); }

  void pass(std::chrono::nanoseconds time) {
    now += time;
    drive.advance(now, interval, block);
  }

  /// The drive answers everything it is asked.
  void answer_all() {
    while (const auto request = drive.next()) {
      drive.sent(now);
      fake.clock = now.time_since_epoch();
      drive.answer(fake.answer(*request), now, block);
    }
  }

  /// One interval and its poll; returns what the drive was asked for.
  std::vector<std::string> poll(std::chrono::nanoseconds time = kInterval) {
    fake.asked.clear();
    pass(time);
    answer_all();
    pass(50ms);
    tick();
    return fake.asked;
  }

  void write(std::uint64_t bytes) {
    block.operation(Operation::write).bytes += bytes;
    fake.data_units += bytes / 512'000;
  }

  /// What the daemon does with the drive every second; `last`: when the daemon ends.
  void tick(bool last = false) {
    model::Tick tick;
    tick.last = last;
    tick.keeps_history = keeps_history;
    tick.at = now;
    tick.wall = wall;
    tick.boot = model::boot_time(now);
    tick.drives = {drive.sample(now)};
    tick.drives[0].key = "S1";
    if (past_) {
      tick.pasts.emplace("S1", *std::exchange(past_, std::nullopt));
    }
    for (const auto& [name, io] : block.devices) {
      auto device = std::make_shared<model::Device>();
      device->name = name;
      tick.devices.emplace_back();
      tick.devices.back().block = {device, std::make_shared<const model::DeviceIo>(io), {}, 0};
    }
    join_drives(tick);
    const model::Findings findings = analysis.observe(tick);
    model::Snapshot snapshot;
    snapshot.nvme_drives = {*tick.drives[0].drive};
    findings.values(snapshot);
    told_ = snapshot.nvme_drives[0];
    rows_ = findings.effects.rows;
    asked_for_past_ = asked_for_past_ || !findings.effects.recalls.empty();
    if (!findings.effects.read_counters_again.empty()) {
      drive.read_counters_again();
    }
    for (const log::Line& line : findings.effects.lines) {
      lines += line.text + '\n';
    }
  }

  [[nodiscard]] model::NvmeDrive told() {
    tick();
    return told_;
  }
  [[nodiscard]] std::optional<double> value(model::NvmeField field) { return value_of(told().values, field); }
  /// What is kept of a minute that ends now.
  model::Batch minute() {
    tick(true);
    return rows_;
  }
  /// Rows from the last tick.
  [[nodiscard]] const model::Batch& rows() const { return rows_; }

  /// Whether the past has been requested since the last call.
  bool asks() {
    tick();
    return std::exchange(asked_for_past_, false);
  }
  void remember(util::Result<model::Recalled> past) {
    past_ = std::move(past);
    tick();
  }

  tests::TemporaryTree tree;
  FakeDrive fake;
  FakeBlockLayer block;
  DriveLessons lessons;
  SteadyTime now = std::chrono::steady_clock::now();
  std::chrono::nanoseconds interval = kInterval;
  PolledDrive drive{subsystem(), lessons, now, 0ns};
  wear::WriteAmplification analysis;
  model::WallTime wall = std::chrono::system_clock::now();
  bool keeps_history = true;
  std::string lines;  // of the log

 private:
  model::NvmeDrive told_;
  model::Batch rows_;
  bool asked_for_past_ = false;
  std::optional<util::Result<model::Recalled>> past_;
};

}  // namespace ssdpulse::nvme
