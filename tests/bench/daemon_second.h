// SPDX-License-Identifier: Apache-2.0
// DaemonSecond: what the daemon does each second, stage by stage, on the tables of a MadeUpHost: the source, the joins,
// the stages, the last 15 minutes, and what scrapers and a viewer of the page then ask for. All of it is the daemon's
// own code, in the order of runtime::Publisher. What asks the kernel, or runs on threads of its own, is left out: files
// of sysfs, /proc and the cgroups, log pages of drives, the flash models, and the history's file.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/advice/doctor.h"
#include "daemon/block/block_source.h"
#include "daemon/history/device_minutes.h"
#include "daemon/history/recent_past.h"
#include "daemon/model/device_identity.h"
#include "daemon/model/device_interval.h"
#include "daemon/model/stage.h"
#include "daemon/spikes/past_spikes.h"
#include "exporters/page/page_site.h"
#include "exporters/prometheus/metrics_page.h"
#include "tests/bench/large_host.h"

namespace ssdpulse::bench {

/// The last part of its type's name.
std::string name_of(const model::Stage& stage);

/// CPU time of this process.
double cpu_milliseconds();

/// How long each step took in each of some seconds, by name, in the order of the steps.
class Times {
 public:
  template <typename Work>
  void measure(const std::string& what, Work work) {
    const double began = cpu_milliseconds();
    work();
    add(what, cpu_milliseconds() - began);
  }
  void add(const std::string& what, double ms);
  [[nodiscard]] std::vector<std::pair<std::string, double>> medians() const;
  [[nodiscard]] std::map<std::string, double> most() const;

 private:
  std::vector<std::pair<std::string, std::vector<double>>> times_;
};

class DaemonSecond {
 public:
  explicit DaemonSecond(const MadeUpHost& host);

  /// What the host did since the last call. Its steps begin with "tick: ", and add up to "tick".
  void tick(Times& times);
  /// As if as many seconds as memory keeps had passed, all of them like the last one.
  void remember();
  void scrape(Times& times);
  void view(Times& times);

  [[nodiscard]] const model::Snapshot& snapshot() const { return *snapshot_; }
  /// Bytes of the last answers, by what was asked.
  [[nodiscard]] const std::map<std::string, std::size_t>& bytes() const { return bytes_; }

 private:
  model::Tick read(Times& times);
  std::shared_ptr<model::Snapshot> describe(const model::Tick& tick) const;
  std::size_t ask(const std::string& path, const std::string& query);

  const MadeUpHost& host_;
  std::unique_ptr<block::BlockSource> source_;
  std::shared_ptr<const model::Inventory> inventory_;
  std::shared_ptr<const model::Tenants> tenants_;
  std::shared_ptr<const model::HostSignals> signals_;
  std::vector<model::DriveTick> drives_;
  std::vector<std::unique_ptr<model::Stage>> stages_;
  model::HistoryKeys keys_;
  model::Intervals intervals_;
  history::RecentPast past_;
  advice::FindingAges ages_;
  spikes::SpikeContext spikes_;
  page::Site site_{past_, ages_};
  std::map<std::string, exposition::MetricsPage> pages_;
  std::shared_ptr<const model::Snapshot> snapshot_;
  std::uint64_t number_ = 0;
  std::uint64_t seen_ = 0;  // by the viewer
  model::SteadyTime at_;
  model::WallTime wall_;
  std::map<std::string, std::size_t> bytes_;
};

}  // namespace ssdpulse::bench
