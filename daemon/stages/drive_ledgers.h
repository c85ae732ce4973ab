// SPDX-License-Identifier: Apache-2.0
// DriveLedgers: how much one drive has written, by which of its counters, including what was known before this process.
// One ledger for each source that the drive ever had: a page may fail for a while, and what its counters reported
// before must not be lost. Readings go into the ledgers at once; when the history arrives, however late, the ledgers
// continue from it and the readings of this process are observed again. Each epoch of the counters is a log line.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/analysis/write_amplification/checked_ledger.h"
#include "daemon/history/rows.h"
#include "daemon/model/drive_tick.h"
#include "daemon/model/nvme.h"
#include "daemon/stages/drive_past.h"
#include "daemon/stages/stage.h"
#include "daemon/util/log.h"

namespace ssdpulse::stages {

class DriveLedgers {
 public:
  using Time = std::chrono::nanoseconds;
  using Lines = std::vector<log::Line>;

  /// `limiter`: for lines that one drive could cause all the time.
  explicit DriveLedgers(log::Limiter& limiter) : limiter_(limiter) {}

  /// `interval`: between two such readings; `now`: of the tick.
  void observe(const model::CounterReading& reading, Time interval, model::SteadyTime now, Lines& lines);

  /// A reading waits for the next one to confirm it.
  [[nodiscard]] bool in_doubt() const;

  void recall(const history::Recalled& recalled, Time interval, const Tick& now, Lines& lines);
  [[nodiscard]] bool knows_past() const { return knows_past_; }

  [[nodiscard]] const std::string& source() const { return source_; }
  /// Why no better source, and what is wrong with this one.
  [[nodiscard]] std::string reason() const;
  /// What the ledger of the source reports; `at`: now, CLOCK_BOOTTIME.
  [[nodiscard]] model::WriteAmplification amplification(Time at) const;

  /// Fills in the counters of the row's minute; nothing if no reading had any.
  void fill(history::DriveMinute& row) const;
  /// All ledgers, to be stored; nothing before the history is known, because it would be overwritten.
  [[nodiscard]] std::optional<history::Bytes> state() const;

 private:
  struct Counters {
    explicit Counters(analysis::CheckedLedger from) : ledger(std::move(from)) {}
    analysis::CheckedLedger ledger;
    std::vector<analysis::WriteSample> waiting;  // for the history
    std::optional<Time> first_epoch_logged;      // its time
  };

  bool settle_source(const model::CounterReading& reading, Lines& lines);
  void report_epoch(const std::string& source, const analysis::WriteLedger::Epoch& epoch, model::SteadyTime now,
                    Lines& lines);
  [[nodiscard]] const Counters* counters() const;

  log::Limiter& limiter_;
  std::map<std::string, Counters> by_source_;
  std::string controller_;
  std::string source_;
  std::string reason_;
  bool chosen_ = false;
  unsigned other_source_ = 0;  // readings in a row for which a source other than ours was the best
  bool knows_past_ = false;
  unsigned epochs_logged_ = 0;
};

}  // namespace ssdpulse::stages
