// SPDX-License-Identifier: Apache-2.0
// Publisher: what the daemon does each second. The observations become a Tick, each stage observes it, the findings are
// put into a Snapshot and published, and the requested effects are carried out: here and nowhere else. Owned by one
// thread.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/advice/doctor.h"
#include "daemon/flash/model_runner.h"
#include "daemon/history/history.h"
#include "daemon/history/recent_past.h"
#include "daemon/model/device_identity.h"
#include "daemon/model/device_interval.h"
#include "daemon/model/stage.h"
#include "daemon/nvme/drive_monitor.h"
#include "daemon/runtime/audit_watch.h"
#include "daemon/runtime/sampler.h"
#include "daemon/serve/current_snapshot.h"
#include "daemon/serve/web_server.h"
#include "daemon/spikes/past_spikes.h"

namespace ssdpulse::runtime {

/// Not owned; all of them outlive the Publisher.
struct Parts {
  Sampler& sampler;
  nvme::DriveMonitor& drives;
  history::History* history;  // null if none is kept
  serve::WebServer& web;
  history::RecentPast& past;
  advice::FindingAges& finding_ages;
  serve::CurrentSnapshot& current;
  const model::ConfigurationFigures& configuration;
  flash::ModelRunner* models;  // null if they are switched off
  AuditWatch& audit;
};

class Publisher {
 public:
  explicit Publisher(const Parts& parts);

  /// `missed_ticks`: since the start.
  void publish(const model::AnalysisSettings& settings, std::uint64_t missed_ticks);

  /// A last tick, for the rows that are still to be kept.
  void finish(const model::AnalysisSettings& settings);

 private:
  using Past = util::Result<model::Recalled>;
  model::Tick sample(const model::AnalysisSettings& settings);
  std::map<std::string, Past> take_pasts(const model::Tick& tick);
  std::shared_ptr<model::Snapshot> describe(const model::Tick& tick, std::uint64_t missed_ticks);
  void keep_seconds(const model::Snapshot& snapshot);
  void write_rows();
  void carry_out(model::Effects effects, const model::Tick& tick);
  void feed_models(const model::Tick& tick);

  Parts parts_;
  model::HistoryKeys keys_;
  model::Intervals intervals_;
  std::vector<std::unique_ptr<model::Stage>> stages_;
  std::map<std::string, std::future<Past>> recalls_;  // by key of the drive
  std::shared_ptr<const AuditWatch::Outcome> audit_;  // as of the last tick; null before the audit's first check
  std::shared_ptr<const flash::Sampling> sampling_;   // in force for the models; null: none
  model::Batch rows_;                                 // of this tick
  spikes::SpikeContext spikes_;
};

}  // namespace ssdpulse::runtime
