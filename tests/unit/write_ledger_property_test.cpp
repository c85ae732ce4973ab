// SPDX-License-Identifier: Apache-2.0
// Do the ledger's bounds contain the truth, whatever a drive's counters do?
// A million random drives (twenty in the long tier; few under sanitizers), each polled some times; the truth is kept in
// GMP integers beside them. SSDPULSE_TEST_SEED repeats a run. RapidCheck plays fewer, but can shorten what fails.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

#include "tests/unit/write_drive_simulation.h"

namespace ssdpulse::analysis {
namespace {

using model::WriteAmplification;
using simulation::Dice;
using simulation::Drive;
using simulation::Fate;
using simulation::kPoll;
using simulation::Nanoseconds;
using simulation::to_mpz;
using simulation::Truth;

struct Counts {
  std::uint64_t samples = 0;
  std::map<std::string, std::uint64_t> ratios;
  std::uint64_t lagging = 0;     // ratios of drives whose counters lag
  std::uint64_t unverified = 0;  // lifetimes beyond what the ledger promises
  std::uint64_t after_falls = 0;
  std::uint64_t epochs = 0;
  std::uint64_t unusable = 0;
  std::uint64_t hidden = 0;
  std::uint64_t restarts = 0;
  std::uint64_t idle = 0;
  std::uint64_t drifts = 0;

  void add(const Counts& other) {
    samples += other.samples;
    for (const auto& [window, count] : other.ratios) {
      ratios[window] += count;
    }
    lagging += other.lagging, unverified += other.unverified, after_falls += other.after_falls;
    epochs += other.epochs, unusable += other.unusable, hidden += other.hidden, restarts += other.restarts;
    idle += other.idle, drifts += other.drifts;
  }
};

/// Plays one drive. What is wrong is thrown as text: the tests catch it.
class Play {
 public:
  Play(Dice& dice, Counts& counts) : dice_(dice), counts_(counts), drive_(dice) {}

  void run() {
    auto polls = 3 + dice_.roll(10);
    if (dice_.once_in(4)) {
      polls += dice_.roll(30);
    }
    if (dice_.once_in(200)) {
      polls += dice_.roll(600);
    }
    for (; polls > 0 && !stopped_; --polls) {
      poll();
      if (!stopped_ && dice_.once_in(64)) {
        restart_daemon();
      }
    }
  }

 private:
  struct Record {
    Nanoseconds at;
    mpz_class host;
    mpz_class media;
    mpz_class life_host;
    mpz_class life_media;
  };

  [[noreturn]] static void wrong(const std::string& what) { throw std::runtime_error(what); }

  void poll() {
    Truth truth;
    const WriteSample sample = drive_.poll(truth);
    ++counts_.samples;
    if (last_ && sample.serial != last_->serial) {
      meet_another_drive();
    }
    host_fate_ = both(host_fate_, truth.host_fate);
    media_fate_ = both(media_fate_, truth.media_fate);
    const bool full = ~sample.media->count == 0 || ~sample.host_before->count == 0 || ~sample.host_after->count == 0;
    const bool usable = !full && sample.host_after->count >= sample.host_before->count;
    if (usable) {
      live_through(sample, truth);
    }
    if (stopped_) {
      return;
    }
    ledger_.observe(sample);
    if (dice_.once_in(4)) {
      history_.push_back(sample);
    }
    if (!usable) {
      ++counts_.unusable;
      interrupted_ = true;
      lost_ = lost_ || full;
      records_.clear();
      drift_from_.reset();
      if (full && !ledger_.amplification().ratios.empty()) {
        wrong("a saturated counter tells a ratio");
      }
      last_serial(sample);
      return;
    }
    check(ledger_.amplification(), sample, truth);
    last_ = sample;
    last_truth_ = truth;
    usable_seen_ = true;
  }

  void last_serial(const WriteSample& sample) {
    if (!last_) {
      last_ = sample;
    }
    last_->serial = sample.serial;
  }

  void meet_another_drive() {
    records_.clear();
    history_.clear();
    base_host_ = base_media_ = 0;
    host_fate_ = media_fate_ = Fate::none;
    epochs_ = 0;
    host_total_ = media_total_ = idle_total_ = 0;
    drift_from_.reset();
    interrupted_ = lost_ = fell_ = usable_seen_ = false;
  }

  /// Brings the truth up to date with a usable sample.
  void live_through(const WriteSample& sample, const Truth& truth) {
    if (usable_seen_) {
      const bool host_fell = sample.host_before->count < last_->host_after->count;
      const bool media_fell = sample.media->count < last_->media->count;
      if (host_fell || media_fell || interrupted_ || sample.firmware != last_->firmware) {
        ++epochs_;
        ++counts_.epochs;
        records_.clear();
        drift_from_.reset();
        lost_ = lost_ || (interrupted_ && !host_fell && !media_fell);
      } else if (host_fate_ != Fate::none || media_fate_ != Fate::none) {
        ++counts_.hidden;  // beyond what counters can tell
        stopped_ = true;
        return;
      }
      fell_ = fell_ || host_fell || media_fell;
      // Different fates at a time, or one that can't be seen: the readings of the fall do not promise to hold it.
      const bool different = host_fate_ != media_fate_ && host_fate_ != Fate::none && media_fate_ != Fate::none;
      lost_ = lost_ || different || host_fate_ == Fate::several || media_fate_ == Fate::several ||
              (host_fate_ == Fate::restarted && !host_fell) || (media_fate_ == Fate::restarted && !media_fell);
      settle(base_host_, host_fate_, last_truth_.host_shown_after, truth.host_shown_after);
      settle(base_media_, media_fate_, last_truth_.media_shown, truth.media_shown);
    }
    host_fate_ = media_fate_ = Fate::none;
    interrupted_ = false;
    records_.push_back(
        {sample.at.count(), truth.host, truth.media, base_host_ + truth.host, base_media_ + truth.media});
  }

  static void settle(mpz_class& base, Fate fate, const mpz_class& before, const mpz_class& now) {
    if (fate == Fate::restarted) {
      base += before;
    } else if (fate == Fate::rolled_back && now < before) {
      base += before - now;
    }
  }

  [[nodiscard]] const Record& at(double at_seconds_before_newest) const {
    const Nanoseconds at = records_.back().at - std::llround(at_seconds_before_newest * 1e9);
    const auto found = std::lower_bound(records_.begin(), records_.end(), at,
                                        [](const Record& record, Nanoseconds time) { return record.at < time; });
    if (found == records_.end() || found->at != at) {
      wrong("a window begins or ends where there is no sample of this epoch");
    }
    return *found;
  }

  /// bytes * ratio, as an integer: rounded down. (Of integers, a * r < b if and only if floor(a * r) < b.)
  static mpz_class times(const mpz_class& bytes, double ratio) {
    int exponent = 0;
    const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(ratio, &exponent), 53));
    const mpz_class product = bytes * mantissa;
    exponent -= 53;
    return exponent >= 0 ? mpz_class(product << static_cast<unsigned>(exponent))
                         : mpz_class(product >> static_cast<unsigned>(-exponent));
  }

  static void check_bounds(const model::WriteAmplificationRatio& said, const mpz_class& host, const mpz_class& media) {
    if (!(std::isfinite(said.upper) && said.lower >= 0 && said.ratio > 0 && said.lower <= said.ratio &&
          said.ratio <= said.upper && said.upper - said.lower <= 0.2000001 * said.ratio)) {
      wrong("absurd ratio of " + said.window);
    }
    if (host <= 0) {
      wrong("a ratio though the host wrote nothing: " + said.window);
    }
    if (-times(-host, said.lower) > media || times(host, said.upper) < media) {
      std::ostringstream text;
      text.precision(17);
      text << "the truth of " << said.window << " is " << mpq_class(media, host).get_d() << ", not in [" << said.lower
           << ", " << said.upper << "]";
      wrong(text.str());
    }
  }

  void check(const WriteAmplification& said, const WriteSample& sample, const Truth& truth) {
    static const std::map<std::string, double> kWidths{{"5m", 300}, {"1h", 3600}, {"24h", 86400}, {"7d", 604800}};
    if (said.epochs != epochs_) {
      wrong("epochs: " + std::to_string(said.epochs) + ", not " + std::to_string(epochs_));
    }
    for (const auto& one : said.ratios) {
      ++counts_.ratios[one.window];
      counts_.lagging += one.age_seconds > 0 ? 1 : 0;
      const Record& end = at(one.age_seconds);
      if (one.window == "lifetime") {
        counts_.unverified += lost_ ? 1 : 0;
        counts_.after_falls += fell_ && !lost_ ? 1 : 0;
        if (!lost_) {
          check_bounds(one, end.life_host, end.life_media);
        }
        continue;
      }
      if (!(one.covered_seconds > 0 && one.covered_seconds <= kWidths.at(one.window))) {
        wrong("covered seconds of " + one.window);
      }
      const Record& begin = at(one.age_seconds + one.covered_seconds);
      check_bounds(one, end.host - begin.host, end.media - begin.media);
    }
    check_total(said.host_written_bytes, *sample.host_after, host_total_);
    check_total(said.media_written_bytes, *sample.media, media_total_);
    check_idle(said.idle_media_written_bytes, sample, truth);
    check_drift(said, sample, truth);
  }

  void check_total(const std::optional<double>& said, const model::ByteCounter& counter, double& before) const {
    if (said.has_value() != (counter.unit_bytes != 0)) {
      wrong("a total of an unknown unit, or none of a known one");
    }
    if (!said) {
      return;
    }
    if (!(*said >= before)) {
      wrong("a total fell");
    }
    const mpz_class bytes = to_mpz(counter.count) * counter.unit_bytes;
    if (epochs_ == 0 && bytes < mpz_class(1) << 128 && std::abs(*said - bytes.get_d()) > 1e-15 * *said) {
      wrong("a total is not what the counter says");
    }
    before = *said;
  }

  void check_idle(double said, const WriteSample& sample, const Truth& truth) {
    if (!drive_.block_layer_sees_all() || !usable_seen_ || !truth.idle) {
      idle_from_ = truth.media;
      idle_before_ = said;
      if (said > idle_total_ && drive_.block_layer_sees_all()) {
        wrong("idle writes while the host wrote");
      }
    } else if (said > idle_total_) {
      ++counts_.idle;
      const mpz_class most = truth.media - idle_from_ + 2 * mpz_class(sample.media->unit_bytes);
      if (epochs_ == idle_epoch_ && mpq_class(said - idle_before_) > most + mpq_class(said * 1e-15)) {
        wrong("more idle writes than writes");
      }
    }
    if (epochs_ != idle_epoch_) {
      idle_epoch_ = epochs_;
      idle_from_ = truth.media;
      idle_before_ = said;
    }
    if (said < idle_total_) {
      wrong("idle writes fell");
    }
    idle_total_ = said;
  }

  void check_drift(const WriteAmplification& said, const WriteSample& sample, const Truth& truth) {
    if (!sample.block_written_bytes_before || sample.host_before->unit_bytes == 0) {
      if (said.host_written_drift_bytes) {
        wrong("a drift out of nothing");
      }
      return;
    }
    const mpz_class here = truth.host_shown - truth.block;
    if (!drift_from_) {
      drift_from_ = here;
    }
    const double lower = said.host_written_drift_lower_bytes.value();
    const double upper = said.host_written_drift_upper_bytes.value();
    const double exact = mpz_class(here - *drift_from_).get_d();
    const double rounding = 1e-15 * (std::abs(lower) + std::abs(upper));
    ++counts_.drifts;
    if (lower - rounding > exact || upper + rounding < exact || !(lower <= *said.host_written_drift_bytes) ||
        !(*said.host_written_drift_bytes <= upper)) {
      wrong("drift");
    }
  }

  /// With as much of the history as chance leaves.
  void restart_daemon() {
    if (!last_ || !usable_seen_) {
      return;
    }
    ++counts_.restarts;
    auto restored = WriteLedger::restore(
        ledger_.save(), std::chrono::nanoseconds(kPoll),
        std::chrono::nanoseconds(records_.empty() ? last_->at.count() : records_.back().at), last_->wall);
    if (!restored) {
      wrong(restored.error().message);
    }
    ledger_ = std::move(*restored);
    for (const WriteSample& sample : history_) {
      ledger_.remember(sample);
    }
    drive_.restart_block_layer();
    drift_from_.reset();
  }

  Dice& dice_;
  Counts& counts_;
  Drive drive_;
  WriteLedger ledger_{std::chrono::nanoseconds(kPoll)};
  std::vector<WriteSample> history_;
  std::vector<Record> records_;  // of this epoch
  std::optional<WriteSample> last_;
  Truth last_truth_;
  bool usable_seen_ = false;
  bool interrupted_ = false;
  bool lost_ = false;  // the lifetime is not promised any more
  bool fell_ = false;
  bool stopped_ = false;
  Fate host_fate_ = Fate::none;
  Fate media_fate_ = Fate::none;
  mpz_class base_host_;  // beyond what the counters show
  mpz_class base_media_;
  std::uint64_t epochs_ = 0;
  double host_total_ = 0;
  double media_total_ = 0;
  double idle_total_ = 0;
  double idle_before_ = 0;
  std::uint64_t idle_epoch_ = 0;
  mpz_class idle_from_;
  std::optional<mpz_class> drift_from_;
};

std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::uint64_t sequences() {
#ifdef SSDPULSE_SANITIZED
  constexpr std::uint64_t kSequences = 40'000;
#else
  constexpr std::uint64_t kSequences = 1'000'000;
#endif
  return environment_number("SSDPULSE_TEST_LONG", 0) == 1 ? 20 * kSequences : kSequences;
}

TEST(WriteLedgerProperty, BoundsContainTheTruthOfAMillionDrives) {
  const std::uint64_t seed = environment_number("SSDPULSE_TEST_SEED", std::random_device()());
  const std::uint64_t wanted = sequences();
  std::printf("seed: %llu\n", static_cast<unsigned long long>(seed));
  std::atomic<std::uint64_t> next{0};
  std::atomic<int> failures{0};
  std::mutex mutex;
  Counts all;
  const auto work = [&] {
    Counts counts;
    for (std::uint64_t i = next++; i < wanted && failures < 10; i = next++) {
      Dice dice((seed << 32) + i * 0xD1B54A32D192ED03U);
      try {
        Play(dice, counts).run();
      } catch (const std::exception& what) {
        ++failures;
        const std::lock_guard lock(mutex);
        ADD_FAILURE() << "drive " << i << " of seed " << seed << ": " << what.what();
      }
    }
    const std::lock_guard lock(mutex);
    all.add(counts);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "%llu drives, %llu samples, %llu epochs, %llu restarts of the daemon, %llu unusable samples, %llu ended by "
      "what no counter can show\n",
      number(wanted), number(all.samples), number(all.epochs), number(all.restarts), number(all.unusable),
      number(all.hidden));
  for (const auto& [window, count] : all.ratios) {
    std::printf("ratios of %s: %llu\n", window.c_str(), number(count));
    EXPECT_GT(count, wanted / 4) << window;
  }
  std::printf(
      "%llu ratios of lagging counters, %llu lifetimes after falls, %llu beyond promise, %llu idle, %llu drifts\n",
      number(all.lagging), number(all.after_falls), number(all.unverified), number(all.idle), number(all.drifts));
  EXPECT_EQ(all.ratios.size(), 5U);
  EXPECT_GT(all.lagging, wanted / 10);
  EXPECT_GT(all.after_falls, wanted / 100);
  EXPECT_GT(all.idle, wanted / 100);
  EXPECT_GT(all.drifts, wanted);
}

RC_GTEST_PROP(WriteLedgerProperty, ShrinksWhatFails, ()) {
  const auto script = *rc::gen::scale(10, rc::gen::arbitrary<std::vector<std::uint32_t>>());
  Dice dice(script);
  Counts counts;
  Play(dice, counts).run();
}

}  // namespace
}  // namespace ssdpulse::analysis
