// SPDX-License-Identifier: Apache-2.0
// What happens each second? What is seen becomes a Tick, each analysis looks at it, what they find is put into a
// Snapshot and published, and what they ask for is done: here and nowhere else. Owned by one thread.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/doctor/onsets.h"
#include "daemon/drives/monitor.h"
#include "daemon/flash/model_runner.h"
#include "daemon/history/history.h"
#include "daemon/live/recent_past.h"
#include "daemon/live/spike_context.h"
#include "daemon/runtime/audit_watch.h"
#include "daemon/runtime/sampler.h"
#include "daemon/stages/stage.h"
#include "daemon/web/current_snapshot.h"
#include "daemon/web/server.h"

namespace ssdpulse::runtime {

/// Owned by somebody else, and there for as long as the Publisher.
struct Parts {
  Sampler& sampler;
  drives::DriveMonitor& drives;
  history::History* history;  // null where none is kept
  web::WebServer& web;
  live::RecentPast& past;
  doctor::Onsets& onsets;
  web::CurrentSnapshot& current;
  const model::ConfigurationFigures& configuration;
  flash::ModelRunner* models;  // null where they are switched off
  AuditWatch& audit;
};

class Publisher {
 public:
  explicit Publisher(const Parts& parts);

  /// `missed_ticks`: so far.
  void publish(const stages::AnalysisSettings& settings, std::uint64_t missed_ticks);

  /// A last look, for the sake of what is to be kept.
  void finish(const stages::AnalysisSettings& settings);

 private:
  using Past = util::Result<history::Recalled>;
  stages::Tick look(const stages::AnalysisSettings& settings);
  std::map<std::string, Past> take_pasts(const stages::Tick& tick);
  std::shared_ptr<model::Snapshot> describe(const stages::Tick& tick, std::uint64_t missed_ticks);
  void keep(history::Batch rows, const stages::Tick& tick);
  void keep_seconds(const model::Snapshot& snapshot);
  void write_rows();
  void carry_out(stages::Effects effects);
  void feed_models(const stages::Tick& tick);

  Parts parts_;
  std::vector<std::unique_ptr<stages::Stage>> stages_;
  std::map<std::string, std::future<Past>> recalls_;  // by key of the drive
  std::shared_ptr<const AuditWatch::Seen> seen_;      // of the last tick; null before the audit's first look
  std::shared_ptr<const flash::Sampling> sampling_;   // for the models, that is in force; null: none
  history::Batch rows_;                               // of this tick
  live::SpikeContext spikes_;
};

}  // namespace ssdpulse::runtime
