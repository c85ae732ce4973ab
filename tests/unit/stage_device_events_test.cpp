// SPDX-License-Identifier: Apache-2.0
// Does the log report each disk that appears, disappears or returns errors, once each?
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/block/device_events.h"

namespace ssdpulse::block {
namespace {

using model::IoError;
using model::Operation;

class Host {
 public:
  Host() { tick_.at = model::SteadyTime(std::chrono::hours(1)); }

  /// A disk whose counters begin now.
  void add(const std::string& name) {
    auto device = std::make_shared<model::Device>();
    device->name = name;
    device->model = "Example";
    model::DeviceIo io;
    io.since = model::WallTime(tick_.at.time_since_epoch());
    tick_.devices.push_back({{device, std::make_shared<model::DeviceIo>(io), {}, 0}});
  }

  void remove(const std::string& name) {
    std::erase_if(tick_.devices, [&](const model::DeviceTick& device) { return device.block.device->name == name; });
  }

  void fail(Operation operation, IoError error) {
    auto io = std::make_shared<model::DeviceIo>(*tick_.devices.at(0).block.io);
    ++io->operations[model::index(operation)].errors[static_cast<std::size_t>(error)];
    tick_.devices[0].block.io = io;
  }

  std::vector<std::string> observe(std::chrono::seconds later = std::chrono::seconds(1)) {
    tick_.at += later;
    std::vector<std::string> lines;
    for (const log::Line& line : stage_.observe(tick_).effects.lines) {
      lines.push_back(line.text);
    }
    return lines;
  }

 private:
  model::Tick tick_;
  DeviceEvents stage_;
};

using Lines = std::vector<std::string>;

TEST(DeviceEvents, WhatIsThereFromTheStartDidNotCome) {
  Host host;
  host.add("sda");
  EXPECT_EQ(host.observe(), Lines{});
  EXPECT_EQ(host.observe(), Lines{});
}

TEST(DeviceEvents, ADiskComesAndGoes) {
  Host host;
  host.observe();
  host.add("sda");
  EXPECT_EQ(host.observe(), Lines{"device came device=sda model=\"Example\" serial=\"\" size_bytes=0"});
  EXPECT_EQ(host.observe(), Lines{});
  host.remove("sda");
  EXPECT_EQ(host.observe(), Lines{"device gone device=sda model=\"Example\" serial=\"\""});
  EXPECT_EQ(host.observe(), Lines{});
}

TEST(DeviceEvents, ADifferentDiskWithTheSameName) {
  Host host;
  host.add("sda");
  host.observe();
  host.remove("sda");
  host.add("sda");
  EXPECT_EQ(host.observe().size(), 1U);
}

TEST(DeviceEvents, TheFirstErrorIsReportedAtOnceAndMoreOfThemSeldom) {
  Host host;
  host.add("sda");
  host.observe();
  host.fail(Operation::read, IoError::medium);
  EXPECT_EQ(host.observe(), Lines{"I/O errors device=sda new=1 total=1 kinds=read/medium runbook=SsdpulseIoErrors "
                                  "suppressed=0"});
  host.fail(Operation::write, IoError::io);
  EXPECT_EQ(host.observe(), Lines{});
  host.fail(Operation::write, IoError::io);
  EXPECT_EQ(host.observe(std::chrono::minutes(10)),
            Lines{"I/O errors device=sda new=1 total=3 kinds=read/medium,write/io runbook=SsdpulseIoErrors "
                  "suppressed=1"});
}

TEST(DeviceEvents, AnAnswerIsNotAFailure) {
  Host host;
  host.add("sda");
  host.observe();
  host.fail(Operation::read, IoError::again);
  host.fail(Operation::discard, IoError::unsupported);
  EXPECT_EQ(host.observe(), Lines{});
}

}  // namespace
}  // namespace ssdpulse::block
