// SPDX-License-Identifier: Apache-2.0
// One NVMe drive of the daemon, with a drive, a block layer, a sysfs and a clock of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "daemon/drives/drive.h"
#include "tests/fixtures/fake_nvme_drive.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::drives {

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

  nvme::NvmeSubsystem subsystem() {
    nvme::NvmeSubsystem found;
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

  /// The drive answers all that it is asked.
  void answer_all() {
    while (const auto request = drive.next()) {
      drive.sent(now);
      fake.clock = now.time_since_epoch();
      drive.answer(fake.answer(*request), now, block);
    }
  }

  /// One interval, and its poll; what the drive was asked for.
  std::vector<std::string> poll(std::chrono::nanoseconds time = kInterval) {
    fake.asked.clear();
    pass(time);
    answer_all();
    pass(50ms);
    return fake.asked;
  }

  void write(std::uint64_t bytes) {
    block.operation(Operation::write).bytes += bytes;
    fake.data_units += bytes / 512'000;
  }

  [[nodiscard]] model::NvmeDrive told() const { return drive.describe(now); }
  [[nodiscard]] std::optional<double> value(model::NvmeField field) const { return value_of(told().values, field); }
  history::Batch minute(history::Minute number = history::Minute(29'000'000min)) {
    history::Batch batch;
    drive.end_minute(number, batch, now, block);
    return batch;
  }

  tests::TemporaryTree tree;
  FakeDrive fake;
  FakeBlockLayer block;
  DriveLessons lessons;
  SteadyTime now = std::chrono::steady_clock::now();
  std::chrono::nanoseconds interval = kInterval;
  PolledDrive drive{subsystem(), lessons, now, 0ns};
};

}  // namespace ssdpulse::drives
