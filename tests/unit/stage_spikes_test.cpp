// SPDX-License-Identifier: Apache-2.0
// Does a spike become a line, a row, counters and an early poll, for its own device and no other?
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "bpf/abi/latency_buckets.h"
#include "daemon/model/device_interval.h"
#include "daemon/spikes/spike_stage.h"

namespace ssdpulse::history {
namespace {

using namespace std::chrono_literals;
using model::Operation;

/// Two drives, in steps of a second; sda has no logs, nvme0n1 is a namespace of nvme0.
class Rig {
 public:
  Rig() {
    tick_.at = model::SteadyTime(1h);
    tick_.wall = model::WallTime(500'000h);
    auto identity = std::make_shared<model::NvmeIdentity>();
    identity->controller = "nvme0";
    identity->namespaces = {{"nvme0n1", 1, 0}};
    auto drive = std::make_shared<model::NvmeDrive>();
    drive->identity = identity;
    drive->polling.up = true;
    tick_.drives = {{drive}};
    for (std::size_t i = 0; i < 2; ++i) {
      auto device = std::make_shared<model::Device>();
      device->name = i == 0 ? "nvme0n1" : "sda";
      tick_.devices.emplace_back();
      tick_.devices.back().block.device = device;
    }
    model::join_drives(tick_);
  }

  /// One second of reads that take this long each.
  void second(std::size_t number, double slow_seconds) {
    for (std::size_t i = 0; i < 2; ++i) {
      count(io_[i].operations[index(Operation::read)], i == number ? slow_seconds : 0.0001);
      tick_.devices[i].block.io = std::make_shared<const model::DeviceIo>(io_[i]);
    }
    if (tenants) {
      share_out(number == 1 ? slow_seconds : 0.0001);
    }
    tick_.at += 1s;
    tick_.wall += 1s;
    intervals_.set_intervals(tick_);
    model::Findings findings = stage_.observe(tick_);
    snapshot_.devices.resize(2);
    findings.values(snapshot_);
    effects.lines.insert(effects.lines.end(), findings.effects.lines.begin(), findings.effects.lines.end());
    for (const auto& spike : findings.effects.rows.spikes) {
      effects.rows.spikes.push_back(spike);
    }
    for (const auto& controller : findings.effects.poll_soon) {
      effects.poll_soon.push_back(controller);
    }
  }
  void quiet(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      second(0, 0.0001);
    }
  }
  void spike(std::size_t number) {
    quiet(120);
    for (int i = 0; i < 5; ++i) {
      second(number, 0.05);
    }
  }
  /// Another disk takes the first one's name.
  void replace() {
    io_[0] = {};
    io_[0].since = tick_.wall;
  }
  [[nodiscard]] bool active(std::size_t number) const {
    return snapshot_.devices[number].spikes[model::Operation::read].active.has_value();
  }
  [[nodiscard]] std::uint64_t over(std::size_t number) const {
    std::uint64_t sum = 0;
    for (const std::uint64_t spikes : snapshot_.devices[number].spikes[model::Operation::read].spikes) {
      sum += spikes;
    }
    return sum;
  }

  [[nodiscard]] const model::Snapshot& snapshot() const { return snapshot_; }

  model::Effects effects;
  std::shared_ptr<const model::Tenants> tenants;  // of sda, if they are to be reported

 private:
  /// For sda's I/O: a.service does all reads, backup.service writes, and floods the disk when reads are slow.
  void share_out(double seconds) {
    const bool flood = seconds > 0.001;
    const std::uint64_t writes = flood ? 5000 : 10;
    attribution_.cgroups[5][0] += {1000, 1000 * 4096, static_cast<std::uint64_t>(seconds * 1e12)};
    attribution_.cgroups[6][1] += {writes, writes << 20, writes * 400'000};
    attribution_.cgroups[7][1] += {1, 512, 400'000};
    if (flood) {  // a newcomer has no usual rate
      attribution_.cgroups[8][0] += {10, 40'960, 5'000'000'000};
    }
    tick_.devices[1].block.attribution = std::make_shared<const model::DeviceAttribution>(attribution_);
    tick_.tenants = tenants;
  }

  static void count(model::OperationIo& io, double seconds) {
    constexpr std::uint64_t kIos = 1000;
    const auto word = static_cast<std::size_t>(
        LATENCY_FIRST_NATIVE_WORD + static_cast<int>(std::ceil(std::log2(seconds) * 8)) - LATENCY_FIRST_NATIVE_INDEX);
    for (model::LatencyHistogram* histogram : {&io.device_latency[0], &io.total_latency, &io.queue_latency}) {
      histogram->words.resize(LATENCY_OVER_WORD + 1);
      histogram->words[histogram == &io.queue_latency ? LATENCY_FIRST_NATIVE_WORD : word] += kIos;
      histogram->sum_ns += static_cast<std::uint64_t>(seconds * 1e9) * kIos;
    }
    io.issues += kIos;
    io.completions += kIos;
    io.bytes += kIos * 4096;
    io.active = true;
  }

  model::Tick tick_;
  model::Intervals intervals_;
  std::array<model::DeviceIo, 2> io_;
  model::DeviceAttribution attribution_;
  spikes::Spikes stage_;
  model::Snapshot snapshot_;
};

TEST(Spikes, one_of_a_disk_without_logs_is_a_line_a_row_and_a_count) {
  Rig rig;
  rig.spike(1);
  EXPECT_TRUE(rig.active(1));
  EXPECT_FALSE(rig.active(0));
  rig.quiet(60);
  EXPECT_EQ(rig.over(1), 1U);
  EXPECT_EQ(rig.over(0), 0U);
  ASSERT_EQ(rig.effects.rows.spikes.size(), 1U);
  EXPECT_EQ(rig.effects.rows.spikes[0].device, "sda");
  ASSERT_EQ(rig.effects.lines.size(), 2U) << "the spike as a detail, then the incident";
  EXPECT_EQ(rig.effects.lines[0].level, log::Level::info);
  EXPECT_EQ(rig.effects.lines[1].level, log::Level::warning);
  EXPECT_EQ(rig.effects.lines[1].text.rfind("latency incident device=sda operation=read cause=unknown begin=", 0), 0U)
      << rig.effects.lines[1].text;
  EXPECT_EQ(rig.effects.lines[0].text.rfind("latency spike device=sda operation=read cause=unknown begin=", 0), 0U)
      << rig.effects.lines[0].text;
  EXPECT_NE(rig.effects.lines[0].text.find(" begin=2027-01-15T08:0"), std::string::npos) << rig.effects.lines[0].text;
  EXPECT_NE(rig.effects.lines[0].text.find("Z seconds="), std::string::npos) << "as the log writes its own time";
  EXPECT_TRUE(rig.effects.poll_soon.empty());
}

TEST(Spikes, one_names_who_moved_most_and_who_was_slowed) {
  Rig rig;
  rig.tenants = std::make_shared<const model::Tenants>(model::Tenants{{5, {"a.service", {}, ""}},
                                                                      {6, {"backup.service", {}, ""}},
                                                                      {7, {"log.service", {}, ""}},
                                                                      {8, {"new.service", {}, ""}}});
  rig.spike(1);
  rig.quiet(60);
  ASSERT_EQ(rig.effects.rows.spikes.size(), 1U);
  const model::LatencySpike& spike = rig.effects.rows.spikes[0];
  ASSERT_EQ(spike.heaviest.size(), 3U);
  EXPECT_EQ(spike.heaviest[0].name, "backup.service");
  EXPECT_NEAR(static_cast<double>(spike.heaviest[0].bytes), 5.0 * 5000 * (1 << 20), 20 << 20);
  EXPECT_EQ(spike.evidence.at(model::EvidenceKey::heaviest_written_share), 1) << "it only writes";
  EXPECT_EQ(spike.heaviest[1].name, "new.service") << "a.service reads far more, but no more than usual";
  EXPECT_EQ(spike.active_tenants, 2U) << "the others do next to nothing";
  ASSERT_EQ(spike.slowed.size(), 1U);
  EXPECT_EQ(spike.slowed[0].name, "a.service");
  EXPECT_NEAR(spike.slowed[0].waited_seconds, 5 * 1000 * (0.05 - 0.0001), 1);
  const std::string& line = rig.effects.lines.at(0).text;
  EXPECT_NE(line.find(" slowed=a.service:249."), std::string::npos) << line;
  EXPECT_NE(line.find(" heaviest=backup.service:262"), std::string::npos) << line;
  EXPECT_NE(line.find(",new.service:204800,"), std::string::npos) << line;
}

TEST(Spikes, without_names_nobody_is_named) {
  Rig rig;
  rig.spike(1);
  rig.quiet(60);
  EXPECT_TRUE(rig.effects.rows.spikes.at(0).heaviest.empty());
  EXPECT_EQ(rig.effects.lines.at(0).text.find("heaviest"), std::string::npos);
}

TEST(Spikes, a_drive_that_may_know_the_cause_is_polled_early) {
  Rig rig;
  rig.spike(0);
  ASSERT_FALSE(rig.effects.poll_soon.empty());
  EXPECT_EQ(rig.effects.poll_soon.front(), "nvme0");
}

TEST(Spikes, one_that_is_over_and_waits_for_its_drive_is_in_a_list_all_the_time) {
  Rig rig;
  rig.spike(0);
  EXPECT_EQ(rig.snapshot().spikes_going_on.size(), 1U);
  bool waited = false;
  for (int second = 0; second < 200; ++second) {
    rig.quiet(1);
    const model::Snapshot& now = rig.snapshot();
    waited = waited || !now.spikes_unjudged.empty();
    const auto known = now.spikes_going_on.size() + now.spikes_unjudged.size() + rig.effects.rows.spikes.size();
    ASSERT_EQ(known, 1U) << "after " << second << " s";
  }
  EXPECT_TRUE(waited) << "its drive was never read";
  EXPECT_EQ(rig.effects.rows.spikes.size(), 1U) << "judged without it in the end";
}

TEST(Spikes, a_different_disk_of_the_same_name_starts_over) {
  Rig rig;
  rig.spike(0);
  EXPECT_TRUE(rig.active(0));
  rig.replace();
  rig.second(0, 0.05);
  EXPECT_FALSE(rig.active(0));
  EXPECT_EQ(rig.over(0), 0U);
}

}  // namespace
}  // namespace ssdpulse::history
