// SPDX-License-Identifier: Apache-2.0
// Publisher: what the daemon does each second. The observations become a Tick, each analysis looks at it, the findings
// are put into a Snapshot and published, and the requested effects are carried out: here and nowhere else. Owned by one
// thread.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/doctor/finding_ages.h"
#include "daemon/drives/monitor.h"
#include "daemon/flash/model_runner.h"
#include "daemon/history/history.h"
#include "daemon/live/recent_past.h"
#include "daemon/live/spike_context.h"
#include "daemon/runtime/audit_watch.h"
#include "daemon/runtime/sampler.h"
#include "daemon/stages/history_keys.h"
#include "daemon/stages/intervals.h"
#include "daemon/stages/stage.h"
#include "daemon/web/current_snapshot.h"
#include "daemon/web/server.h"

namespace ssdpulse::runtime {

/// Not owned; all of them outlive the Publisher.
struct Parts {
  Sampler& sampler;
  drives::DriveMonitor& drives;
  history::History* history;  // null if none is kept
  web::WebServer& web;
  live::RecentPast& past;
  doctor::FindingAges& finding_ages;
  web::CurrentSnapshot& current;
  const model::ConfigurationFigures& configuration;
  flash::ModelRunner* models;  // null if they are switched off
  AuditWatch& audit;
};

class Publisher {
 public:
  explicit Publisher(const Parts& parts);

  /// `missed_ticks`: since the start.
  void publish(const stages::AnalysisSettings& settings, std::uint64_t missed_ticks);

  /// A last tick, for the rows that are still to be kept.
  void finish(const stages::AnalysisSettings& settings);

 private:
  using Past = util::Result<history::Recalled>;
  stages::Tick sample(const stages::AnalysisSettings& settings);
  std::map<std::string, Past> take_pasts(const stages::Tick& tick);
  std::shared_ptr<model::Snapshot> describe(const stages::Tick& tick, std::uint64_t missed_ticks);
  void keep(history::Batch rows, const stages::Tick& tick);
  void keep_seconds(const model::Snapshot& snapshot);
  void write_rows();
  void carry_out(stages::Effects effects);
  void feed_models(const stages::Tick& tick);

  Parts parts_;
  stages::HistoryKeys keys_;
  stages::Intervals intervals_;
  std::vector<std::unique_ptr<stages::Stage>> stages_;
  std::map<std::string, std::future<Past>> recalls_;  // by key of the drive
  std::shared_ptr<const AuditWatch::Outcome> seen_;   // as of the last tick; null before the audit's first check
  std::shared_ptr<const flash::Sampling> sampling_;   // in force for the models; null: none
  history::Batch rows_;                               // of this tick
  live::SpikeContext spikes_;
};

}  // namespace ssdpulse::runtime
