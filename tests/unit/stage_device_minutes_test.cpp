// SPDX-License-Identifier: Apache-2.0
// Is what each tenant did in a minute recorded correctly, including those who came and went meanwhile?
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "daemon/history/device_minutes.h"
#include "daemon/model/device_identity.h"

namespace ssdpulse::history {
namespace {

using namespace std::chrono_literals;

class Host {
 public:
  Host() {
    device_->name = "sda";
    io_->since = model::WallTime(1h);
    tick_.at = model::SteadyTime(1h);
    tick_.wall = model::WallTime(500'000h);
    tick_.devices.resize(1);
  }

  /// Cumulative reads of tenants and of departed ones, as reported by the tenants' stage one second earlier.
  void observe(const std::map<std::string, std::uint64_t>& tenants, std::uint64_t departed,
               std::chrono::seconds later = 1s) {
    auto said = std::make_shared<model::DeviceTenants>();
    for (const auto& [name, ios] : tenants) {
      model::TenantIo one;
      one.tenant.name = name;
      one.totals[0].ios = ios;
      said->tenants.push_back(one);
    }
    said->departed[0].ios = departed;
    auto before = std::make_shared<model::Snapshot>();
    before->devices.push_back({device_, io_, {}, {}, {}});
    before->devices[0].tenants = said;
    tick_.before = before;
    tick_.at += later;
    tick_.wall += later;
    io_ = std::make_shared<model::DeviceIo>(*io_);
    io_->operations[0].active = true;
    ++io_->operations[0].issues;
    ++io_->operations[0].completions;
    tick_.devices[0].block = {device_, io_, {}, 0};
    keys_.set_history_keys(tick_);
    rows_ = stage_.observe(tick_).effects.rows;
  }

  /// A tick at which the counters are not read.
  void look_away(std::chrono::seconds later) {
    tick_.at += later;
    tick_.wall += later;
    tick_.devices[0].block.io = nullptr;
    rows_ = stage_.observe(tick_).effects.rows;
  }
  [[nodiscard]] std::uint64_t ios() const {
    std::uint64_t ios = 0;
    for (const model::DeviceMinute& row : rows_.device_minutes) {
      ios += row.load.operations[0].ios;
    }
    return ios;
  }

  [[nodiscard]] std::map<std::string, std::uint64_t> minute() const {
    std::map<std::string, std::uint64_t> ios;
    for (const model::DeviceMinute& row : rows_.device_minutes) {
      for (const model::TenantLoad& tenant : row.tenants) {
        ios[tenant.name] += tenant.totals[0].ios;
      }
    }
    return ios;
  }

 private:
  std::shared_ptr<model::Device> device_ = std::make_shared<model::Device>();
  std::shared_ptr<model::DeviceIo> io_ = std::make_shared<model::DeviceIo>();
  model::Tick tick_;
  model::HistoryKeys keys_;
  DeviceMinutes stage_;
  model::Batch rows_;
};

using Minute = std::map<std::string, std::uint64_t>;

TEST(DeviceMinutes, EachTenantOfTheMinute) {
  Host host;
  host.observe({{"db", 10}, {"web", 5}}, 0);
  host.observe({{"db", 25}, {"web", 5}}, 0, 60s);
  EXPECT_EQ(host.minute(), (Minute{{"db", 25}, {"web", 5}}));
  host.observe({{"db", 30}, {"web", 5}}, 0, 60s);
  EXPECT_EQ(host.minute(), (Minute{{"db", 5}}));
}

TEST(DeviceMinutes, WhoWentCountsWithTheRestForWhatItDidSince) {
  Host host;
  host.observe({{"db", 10}, {"job", 100}}, 7);
  host.observe({{"db", 10}, {"job", 100}}, 7, 60s);
  host.observe({{"db", 12}, {"new", 3}}, 7 + 130, 60s);
  EXPECT_EQ(host.minute(), (Minute{{"db", 2}, {"new", 3}, {"other", 30}}));
}

TEST(DeviceMinutes, WhatWasCountedIsNotCountedAgainAfterATickWithoutCounters) {
  Host host;
  host.observe({}, 0);  // one I/O each time
  host.observe({}, 0, 59s);
  EXPECT_EQ(host.ios(), 2U);
  host.look_away(1s);
  EXPECT_EQ(host.ios(), 0U);
  host.look_away(59s);
  EXPECT_EQ(host.ios(), 0U);
  host.observe({}, 0, 1s);
  host.observe({}, 0, 60s);
  EXPECT_EQ(host.ios(), 2U);
}

}  // namespace
}  // namespace ssdpulse::history
