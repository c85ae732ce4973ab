// SPDX-License-Identifier: Apache-2.0
// Does a ledger report only what is true of a simulated drive? Plays one drive against its ledger. The oracle is what
// the drive has really written, whatever its counters showed: each ratio must contain it, no window may span a fall
// that some reading showed or rest on an absurd page, and no absurd page may change a total. Errors are thrown as text:
// the tests catch it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/wear/checked_ledger.h"
#include "tests/unit/write_drive_simulation.h"

namespace ssdpulse::wear {

/// Counts of what happened, so that a test can check that it was enough.
struct PlayCounts {
  std::uint64_t samples = 0;
  std::map<std::string, std::uint64_t> ratios;
  std::uint64_t lagging = 0;       // ratios of drives whose counters lag
  std::uint64_t refreshed = 0;     // of those: true between two refreshes of both, if not between the readings
  std::uint64_t by_chance = 0;     // of those: wrong, of counters that only happened to move in the same polls
  std::uint64_t unverified = 0;    // lifetimes beyond what the ledger promises
  std::uint64_t after_falls = 0;   // lifetimes that are verified
  std::uint64_t after_absurd = 0;  // the same of drives that showed an absurd page
  std::uint64_t falls = 0;         // shown by some reading
  std::uint64_t made_up = 0;       // of those: the next reading was not below the earlier value
  std::uint64_t epochs = 0;
  std::uint64_t absurd = 0;          // pages
  std::uint64_t absurd_doubted = 0;  // of those: they cost the windows
  std::uint64_t unusable = 0;
  std::uint64_t hidden = 0;  // plays ended by something that no counter can show
  std::uint64_t restarts = 0;
  std::uint64_t idle = 0;
  std::uint64_t drifts = 0;

  void add(const PlayCounts& other);
};

class Play {
 public:
  Play(simulation::Dice& dice, PlayCounts& counts) : dice_(dice), counts_(counts), drive_(dice) {}

  void run();

 private:
  using Nanoseconds = simulation::Nanoseconds;

  struct Record {
    Nanoseconds at = 0;
    mpz_class host;  // written
    mpz_class media;
    mpz_class life_host;
    mpz_class life_media;
    mpz_class host_shown;  // at the last refresh
    mpz_class media_shown;
    mpz_class beyond_block;  // counted by the host's counter but not by the block layer
    bool absurd = false;
    bool held = false;
    bool after_fall = false;  // no window may span it and the record before
  };

  void poll();
  void meet_another_drive();
  bool garble(WriteSample& sample, const simulation::Truth& truth);
  void live_through(const WriteSample& sample, const simulation::Truth& truth, Record& record);
  [[nodiscard]] std::size_t find(double seconds_before_newest) const;
  void check(const WriteSample& sample, const simulation::Truth& truth);
  void check_epochs(const model::WriteAmplification& said);
  void check_ratio(const model::WriteAmplificationRatio& said);
  void check_window(const model::WriteAmplificationRatio& said, const Record& from, const Record& to);
  void check_totals(const model::WriteAmplification& said, const WriteSample& sample);
  void check_total(const std::optional<double>& said, const model::ByteCounter& counter, std::uint64_t epochs,
                   double& before) const;
  void check_idle(double said, const WriteSample& sample, const simulation::Truth& truth);
  void check_drift(const model::WriteAmplification& said, const WriteSample& sample);
  void restart_daemon();

  simulation::Dice& dice_;
  PlayCounts& counts_;
  simulation::Drive drive_;
  CheckedLedger ledger_{drive_.poll_interval()};
  std::optional<CheckedLedger> spared_;  // the same without absurd pages, from the first one on
  std::vector<WriteSample> history_;
  std::vector<Record> records_;
  std::size_t newest_ = 0;                  // the record that is believed
  std::optional<WriteSample> last_;         // usable, and not absurd
  std::optional<WriteSample> fallen_from_;  // before the fall to `last_`, if some reading showed it
  simulation::Truth last_truth_;
  bool usable_seen_ = false;
  bool interrupted_ = false;
  bool full_seen_ = false;  // a counter at its maximum
  bool lost_ = false;       // the lifetime is no longer guaranteed
  bool fell_ = false;
  bool stopped_ = false;
  std::uint64_t calm_polls_ = 0;          // since something happened to a counter
  std::uint64_t since_absurd_ = 1 << 20;  // polls
  simulation::Fate host_fate_ = simulation::Fate::none;
  simulation::Fate media_fate_ = simulation::Fate::none;
  mpz_class base_host_;  // beyond what the counters show
  mpz_class base_media_;
  std::uint64_t causes_ = 0;  // of epochs
  std::uint64_t sure_epochs_ = 0;
  std::optional<std::uint64_t> more_epochs_;  // there must be more than this many, once there is no doubt
  double host_total_ = 0;
  double media_total_ = 0;
  double idle_total_ = 0;
  double idle_before_ = 0;
  std::uint64_t epochs_checked_ = 0;
  bool idle_since_checked_ = false;
  bool single_step_ = true;  // no poll since the last check went unchecked
  mpz_class idle_from_;
  std::vector<Record> drift_from_;  // the drift counts from one of these
};

}  // namespace ssdpulse::wear
