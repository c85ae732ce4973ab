// SPDX-License-Identifier: Apache-2.0
// AuditWatch: judges by the rules of the audit every few minutes, on a thread of its own, because asking a file system
// how full it is may wait for that file system. It keeps what is in danger or advised, and nobody has accepted.
// The thread ends with the AuditWatch, unless it waits for a file system that does not answer: then it is left behind,
// so that nothing else waits for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/history/reader.h"
#include "daemon/model/device.h"
#include "daemon/model/finding.h"
#include "daemon/model/settings.h"
#include "daemon/model/snapshot.h"
#include "daemon/web/current_snapshot.h"

namespace ssdpulse::runtime {

/// Thread-safe.
class AuditWatch {
 public:
  /// Between two looks: some fifty small files for each device, and one rendering of the metrics.
  static constexpr std::chrono::minutes kInterval{5};
  /// The second look: by then the drives' log pages were read for the first time.
  static constexpr std::chrono::seconds kSecond{20};
  /// From the end of a look that was asked for to the next one: every local user may ask.
  static constexpr std::chrono::seconds kApart{10};

  /// A look that takes longer waits for something that does not answer.
  static constexpr std::chrono::minutes kOverdue{1};

  /// Between two readings of the history, unless a spike has ended: a week of a busy disk takes a tenth of a second.
  static constexpr std::chrono::minutes kPastInterval{60};

  /// How long the end waits for a look that is under way; it takes milliseconds.
  static constexpr std::chrono::seconds kPatience{2};

  using Findings = std::vector<model::Finding>;

  struct Seen {
    Findings findings;
    model::RecordedSettings settings;  // of the host, in files on a disk, which nothing else may wait for
  };

  using Clock = std::chrono::steady_clock;
  /// May wait for ever; `snapshot` may be null. Called by the thread alone.
  using Look =
      std::function<Seen(const model::Inventory& inventory, const std::shared_ptr<const model::Snapshot>& snapshot)>;

  /// By the rules, of this host. `history` may be null: then evidence is what the snapshot has alone.
  static Look by_the_rules(std::shared_ptr<history::Reader> history);

  /// `current` must live longer.
  AuditWatch(const web::CurrentSnapshot& current, Look look, Clock::duration apart = kApart);
  ~AuditWatch();
  AuditWatch(const AuditWatch&) = delete;
  AuditWatch& operator=(const AuditWatch&) = delete;

  /// What is on the host from now on; the first call, when a Snapshot was published, starts the first look. Never
  /// waits.
  void observe(std::shared_ptr<const model::Inventory> inventory);

  /// Somebody has changed something: looks now, or kApart after the last look that was asked for, and once more after a
  /// look that is under way. Never waits. On any thread.
  void look_again();

  /// Of the newest look, its findings sorted as the audit sorts them; null before the first one.
  [[nodiscard]] std::shared_ptr<const Seen> seen() const;

  /// The source `audit`: down while a look is overdue.
  [[nodiscard]] model::SourceStatus status(Clock::time_point now = Clock::now()) const;

 private:
  // Outlives the AuditWatch where its thread is left behind.
  struct State {
    std::mutex mutex;  // never held during a look
    std::condition_variable wake;
    std::shared_ptr<const model::Inventory> inventory;
    std::shared_ptr<const Seen> seen;
    std::optional<Clock::time_point> looking_since;  // nothing between two looks
    bool again = false;
    bool stop = false;
    bool ended = false;
  };

  static void work(State& state, const web::CurrentSnapshot& current, const Look& look, Clock::duration apart);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace ssdpulse::runtime
