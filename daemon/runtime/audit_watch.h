// SPDX-License-Identifier: Apache-2.0
// AuditWatch: applies the rules of the audit every few minutes, on a thread of its own, because asking a file system
// how full it is may block on that file system. It keeps the findings of danger and advice that nobody has accepted.
// The thread ends with the AuditWatch, unless it is waiting for a file system that does not answer: then it is left
// behind, so that nothing else has to wait for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/history/history_reader.h"
#include "daemon/model/device.h"
#include "daemon/model/finding.h"
#include "daemon/model/host_settings.h"
#include "daemon/model/snapshot.h"
#include "daemon/serve/current_snapshot.h"

namespace ssdpulse::runtime {

/// Thread-safe.
class AuditWatch {
 public:
  /// Between two checks: each reads some fifty small files per device.
  static constexpr std::chrono::minutes kInterval{5};
  /// From the first check to the second: by then the drives' log pages have been read for the first time.
  static constexpr std::chrono::seconds kFirstRecheckDelay{20};
  /// From the end of a requested check to the next one: every local user may request them.
  static constexpr std::chrono::seconds kMinRecheckInterval{10};

  /// A check that takes longer is waiting for something that does not answer.
  static constexpr std::chrono::minutes kStuckAfter{1};

  /// Between two readings of the history, unless a spike has ended: a week of a busy disk takes a tenth of a second.
  static constexpr std::chrono::minutes kHistoryInterval{60};

  /// How long the destructor waits for a check that is under way, which usually takes milliseconds.
  static constexpr std::chrono::seconds kShutdownTimeout{2};

  using Findings = std::vector<model::Finding>;

  struct Outcome {
    Findings findings;
    model::RecordedSettings settings;  // of the host; read from files on a disk, which no other thread may wait for
  };

  using Clock = std::chrono::steady_clock;
  /// May block forever; `snapshot` may be null. Called only by the thread.
  using Check =
      std::function<Outcome(const model::Inventory& inventory, const std::shared_ptr<const model::Snapshot>& snapshot)>;

  /// Applies the rules to this host. `history` may be null: then the snapshot is the only evidence.
  static Check by_the_rules(std::shared_ptr<history::Reader> history);

  /// `current` must outlive the AuditWatch.
  AuditWatch(const serve::CurrentSnapshot& current, Check check, Clock::duration min_interval = kMinRecheckInterval);
  ~AuditWatch();
  AuditWatch(const AuditWatch&) = delete;
  AuditWatch& operator=(const AuditWatch&) = delete;

  /// The host's inventory from now on; the first call, made after a Snapshot was published, starts the first check.
  /// Never waits.
  void observe(std::shared_ptr<const model::Inventory> inventory);

  /// Somebody has changed something: checks now, or kMinRecheckInterval after the last requested check, and again after
  /// a check that is under way. Never waits. May be called on any thread.
  void recheck();

  /// The result of the newest check, its findings sorted as the audit sorts them; null before the first check.
  [[nodiscard]] std::shared_ptr<const Outcome> outcome() const;

  /// The source `audit`: down while a check is overdue.
  [[nodiscard]] model::SourceStatus status(Clock::time_point now = Clock::now()) const;

 private:
  // Outlives the AuditWatch if its thread is left behind.
  struct State {
    std::mutex mutex;  // never held during a check
    std::condition_variable wake;
    std::shared_ptr<const model::Inventory> inventory;
    std::shared_ptr<const Outcome> outcome;
    std::optional<Clock::time_point> checking_since;  // empty between two checks
    bool again = false;
    bool stop = false;
    bool ended = false;
  };

  static void work(State& state, const serve::CurrentSnapshot& current, const Check& check,
                   Clock::duration min_interval);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace ssdpulse::runtime
