// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/publisher.h"

#include <utility>

#include "daemon/base/log.h"
#include "daemon/runtime/all_stages.h"

namespace ssdpulse::runtime {
namespace {

void describe_history(const history::History& history, model::Snapshot& snapshot) {
  const history::Status status = history.status();
  model::SourceStatus source;
  source.name = "history";
  source.up = status.up;
  source.reason = status.reason;
  source.errors = {{"failure", status.failures},
                   {"dropped_row", status.rows_dropped()},
                   {"unreadable_row", status.rows_unreadable},
                   {"file_set_aside", status.files_set_aside},
                   {"contradiction", status.corrections}};
  if (!status.up) {
    source.remedy = history::remedy(status.obstacle);
    source.starting = status.obstacle == history::Obstacle::opening;
  }
  snapshot.sources.push_back(std::move(source));
  model::HistoryFigures figures{
      {}, {}, {}, status.unreadable, status.bytes_on_disk, status.reach.minutes, status.reach.hours};
  for (const auto& [table, given] : status.given) {
    figures.rows[{table, "written"}] = given.written;
    figures.rows[{table, "replaced"}] = given.replaced;
    figures.rows[{table, "refused"}] = given.refused;
    figures.rows[{table, "surplus"}] = given.surplus;
    figures.rows_waiting[table] = given.waiting;
  }
  for (const auto& [table, rows] : status.rows.tables()) {
    for (std::size_t why = 0; why < rows.removed.size(); ++why) {
      figures.rows_deleted[{table, history::kRemovalNames.at(why)}] = rows.removed.at(why);
    }
  }
  snapshot.history = std::move(figures);
}

/// How well each drive can be read: not at all without a reader.
void describe_polling(const model::SourceStatus& reader, model::Snapshot& snapshot) {
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    snapshot.sources.push_back({"nvme", reader.up && drive.polling.up, reader.up ? drive.polling.reason : reader.reason,
                                drive.polling.failures, drive.identity->controller});
  }
}

}  // namespace

Publisher::Publisher(const Parts& parts) : parts_(parts), stages_(all_stages()) {}

model::Tick Publisher::sample(const model::AnalysisSettings& settings) {
  model::Tick tick = parts_.sampler.sample();
  if (auto outcome = parts_.audit.outcome(); outcome != audit_) {
    tick.settings_read.push_back(outcome->settings);
    audit_ = std::move(outcome);
  }
  tick.drives = parts_.drives.sample(tick.at);
  tick.pasts = take_pasts(tick);
  tick.keeps_history = parts_.history != nullptr;
  tick.settings = settings;
  tick.before = parts_.current.get();
  join_drives(tick);
  keys_.set_history_keys(tick);
  intervals_.set_intervals(tick);
  return tick;
}

void Publisher::publish(const model::AnalysisSettings& settings, std::uint64_t missed_ticks) {
  const model::Tick tick = sample(settings);
  auto snapshot = describe(tick, missed_ticks);
  constexpr std::uint64_t kTicksBetweenReports = 60;
  if (snapshot->number % kTicksBetweenReports == 0) {
    log::report_left_out();
  }
  for (const auto& stage : stages_) {
    model::Findings findings = stage->observe(tick);
    if (findings.values) {
      findings.values(*snapshot);
    }
    carry_out(std::move(findings.effects), tick);
  }
  feed_models(tick);
  snapshot->flash = parts_.models == nullptr ? nullptr : parts_.models->figures();
  snapshot->audit =
      audit_ == nullptr ? nullptr : std::shared_ptr<const AuditWatch::Findings>(audit_, &audit_->findings);
  parts_.past.observe(*snapshot, tick.at);
  parts_.finding_ages.observe(*snapshot);
  keep_seconds(*snapshot);
  write_rows();
  parts_.current.publish(std::move(snapshot));
  parts_.audit.observe(tick.inventory);  // after that: the first check needs the measurements
}

void Publisher::finish(const model::AnalysisSettings& settings) {
  model::Tick tick = sample(settings);
  tick.last = true;
  for (const auto& stage : stages_) {
    carry_out(stage->observe(tick).effects, tick);
  }
  feed_models(tick);
  write_rows();
}

void Publisher::keep_seconds(const model::Snapshot& snapshot) {
  for (spikes::SpikeSeconds& seconds : spikes_.due(snapshot, parts_.past.ring())) {
    rows_.spike_seconds.push_back({std::move(seconds.device), seconds.begin, seconds.end, seconds.excess_seconds,
                                   model::Bytes(seconds.bytes.begin(), seconds.bytes.end())});
  }
}

/// All rows of one tick become one transaction: each transaction costs the disk two flushes.
void Publisher::write_rows() {
  model::Batch rows = std::exchange(rows_, {});
  if (parts_.history != nullptr && !rows.empty()) {
    parts_.history->add(std::move(rows));
  }
}

void Publisher::feed_models(const model::Tick& tick) {
  if (parts_.models == nullptr) {
    return;
  }
  parts_.models->observe({tick.at.time_since_epoch(), tick.wall, flash::drives_of(tick), tick.flash, sampling_, {}});
  if (auto wanted = parts_.models->sampling(); wanted != sampling_) {
    parts_.sampler.set_sampling(*wanted);
    sampling_ = std::move(wanted);
  }
}

/// The pasts that have arrived by now; a drive that is gone does not get its past.
std::map<std::string, Publisher::Past> Publisher::take_pasts(const model::Tick& tick) {
  std::map<std::string, Past> pasts;
  std::map<std::string, std::future<Past>> waiting = std::exchange(recalls_, {});
  for (const model::DriveTick& seen : tick.drives) {
    auto asked = waiting.extract(seen.key);
    if (asked.empty()) {
      continue;
    }
    if (asked.mapped().wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      pasts.emplace(seen.key, asked.mapped().get());
    } else {
      recalls_.insert(std::move(asked));
    }
  }
  return pasts;
}

std::shared_ptr<model::Snapshot> Publisher::describe(const model::Tick& tick, std::uint64_t missed_ticks) {
  auto snapshot = parts_.sampler.describe(tick, missed_ticks);
  snapshot->sources.push_back(parts_.drives.status());
  if (parts_.history != nullptr) {
    describe_history(*parts_.history, *snapshot);
  }
  describe_polling(parts_.drives.status(), *snapshot);
  snapshot->sources.push_back(parts_.audit.status());
  parts_.web.describe(*snapshot);
  snapshot->configuration = parts_.configuration;
  snapshot->log_lines_left_out = log::lines_left_out();
  return snapshot;
}

void Publisher::carry_out(model::Effects effects, const model::Tick& tick) {
  model::append(rows_, std::move(effects.rows));
  rows_.at = tick.wall;
  for (const log::Line& line : effects.lines) {
    log::write(line);
  }
  if (parts_.history != nullptr) {
    for (const model::Recall& wanted : effects.recalls) {
      recalls_[wanted.key] = parts_.history->recall(wanted.drive, wanted.since);
    }
  }
  for (const std::string& key : effects.read_counters_again) {
    parts_.drives.read_counters_again(key);
  }
  for (const std::string& controller : effects.poll_soon) {
    parts_.drives.poll_soon(controller);
  }
  if (effects.effort) {
    parts_.sampler.set_effort(*effects.effort);
  }
  if (effects.write_preferences) {
    parts_.sampler.set_write_preferences(std::move(*effects.write_preferences));
  }
}

}  // namespace ssdpulse::runtime
