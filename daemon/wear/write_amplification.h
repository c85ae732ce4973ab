// SPDX-License-Identifier: Apache-2.0
// WriteAmplification: the stage that determines how much each NVMe drive writes to its media for what the host writes,
// across restarts; DriveLedgers: the same for one drive. Keeps each drive's ledgers, asks for their past, and makes the
// history's rows of each minute.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/model/history_rows.h"
#include "daemon/model/nvme_drive.h"
#include "daemon/model/source_samples.h"
#include "daemon/model/stage.h"
#include "daemon/wear/checked_ledger.h"

namespace ssdpulse::wear {

/// Adds a ledger to the state to keep, with the name of its source, because another source's counters cannot continue
/// from it.
void add_kept_ledger(model::Bytes& bytes, const std::string& source, const CheckedLedger& ledger);

/// By source: each continues where the last process stopped, or else from what the minutes contain. `until`, on
/// CLOCK_BOOTTIME: readings from then on do not belong to the past.
std::map<std::string, CheckedLedger> ledgers_of_the_past(const model::Recalled& recalled,
                                                         std::chrono::nanoseconds interval,
                                                         std::chrono::nanoseconds until, const model::Tick& now,
                                                         std::vector<log::Line>& lines);

/// How much one drive has written, by which of its counters, including what was known before this process.
/// One ledger for each source that the drive ever had: a page may fail for a while, and what its counters reported
/// before must not be lost. Readings go into the ledgers at once; when the history arrives, however late, the ledgers
/// continue from it and the readings of this process are observed again. Each epoch of the counters is a log line.
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

  void recall(const model::Recalled& recalled, Time interval, const model::Tick& now, Lines& lines);
  [[nodiscard]] bool knows_past() const { return knows_past_; }

  [[nodiscard]] const std::string& source() const { return source_; }
  /// Why no better source, and what is wrong with this one.
  [[nodiscard]] std::string reason() const;
  /// What the ledger of the source reports; `at`: now, CLOCK_BOOTTIME.
  [[nodiscard]] model::WriteAmplification amplification(Time at) const;

  /// Fills in the counters of the row's minute; nothing if no reading had any.
  void fill(model::DriveMinute& row) const;
  /// All ledgers, to be stored; nothing before the history is known, because it would be overwritten.
  [[nodiscard]] std::optional<model::Bytes> state() const;

 private:
  struct Counters {
    explicit Counters(CheckedLedger from) : ledger(std::move(from)) {}
    CheckedLedger ledger;
    std::vector<WriteSample> waiting;        // for the history
    std::optional<Time> first_epoch_logged;  // its time
  };

  bool settle_source(const model::CounterReading& reading, Lines& lines);
  void report_epoch(const std::string& source, const WriteLedger::Epoch& epoch, model::SteadyTime now, Lines& lines);
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

class WriteAmplification final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  struct Drive {
    explicit Drive(log::Limiter& limiter) : ledgers(limiter) {}
    DriveLedgers ledgers;
    std::uint64_t discarded_bytes = 0;             // when the last minute ended
    std::optional<model::SteadyTime> accepted_at;  // the last reading of counters that was accepted
    std::optional<model::SteadyTime> asked_at;     // for its past; waiting for the answer
    model::SteadyTime asks_again_at;
    bool without_past = false;  // that takes long: what is known without it is reported
  };
  void forget_others(const model::Tick& tick);
  void observe_drive(const model::DriveTick& seen, Drive& drive, const model::Tick& tick, model::Effects& effects);
  static void take_past(const model::DriveTick& seen, Drive& drive, const model::Tick& tick, model::Effects& effects);
  static void ask_for_past(const model::DriveTick& seen, Drive& drive, const model::Tick& tick,
                           model::Effects& effects);
  static void begin_without_past(const model::DriveTick& seen, Drive& drive, const std::string& why,
                                 model::Effects& effects);
  void end_minute(model::Minute minute, const model::Tick& tick, model::Effects& effects);

  std::map<std::string, Drive> drives_;  // by key
  std::optional<model::Minute> minute_;
  log::Limiter limiter_{std::chrono::minutes(10)};  // for lines that one drive could cause all the time
};

}  // namespace ssdpulse::wear
