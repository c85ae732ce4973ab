// SPDX-License-Identifier: Apache-2.0
// SpikeDetector: from when to when one operation of one device was slower than usual. Asks the signals (tail, excess,
// outlier, stall) about each window of the operation; each decides whether the window is evidence that something was
// slow, and learns from healthy windows separately. Baseline: how slow the operation is when nothing is wrong.
//
// Durations are in seconds, by a clock that is never set. Pure; knows nothing about causes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "daemon/spikes/io_window.h"

namespace ssdpulse::spikes {

/// The upper envelope of one statistic of the operation's windows (99th percentile, mean or median), in octaves. It
/// follows a slow rise within seconds, so that a growing load is not a spike, and a fall over tens of minutes, so that
/// a quiet night does not turn the morning into one. Each window is held back for a few seconds before it counts: those
/// just before a spike may be part of it, and are dropped when it opens. Windows within a spike never count.
class Baseline {
 public:
  static constexpr double kRiseSeconds = 15;  // time constants
  static constexpr double kFallSeconds = 1200;
  static constexpr double kHoldSeconds = 6;
  static constexpr double kMinSeconds = 5;  // of healthy windows, at least two; with less, nothing is known

  explicit Baseline(double fall_seconds = kFallSeconds) : fall_seconds_(fall_seconds) {}

  /// Learns a healthy window's figure. A long window (after missed ticks) counts for more.
  void learn(SteadyTime begin, SteadyTime end, double figure_seconds);
  /// Call when a spike opens.
  void forget_held() { held_.clear(); }
  /// Call when what was a spike has become the new normal.
  void accept(double figure_seconds);

  [[nodiscard]] std::optional<double> seconds() const;
  /// Of healthy windows, together.
  [[nodiscard]] double learned_seconds() const { return learned_seconds_; }

 private:
  struct Held {
    SteadyTime end;
    double seconds;
    double octave;
  };
  void take(const Held& held);

  double fall_seconds_;
  std::deque<Held> held_;
  double octave_ = 0;
  double learned_seconds_ = 0;
  std::size_t windows_ = 0;
};

/// What else is happening on the device.
struct Surroundings {
  // Relative to the usual, by I/Os, bytes or I/O size, whichever is highest; 0: unknown.
  double load = 0;              // of the operation, of reads and of writes, whoever sends them
  double own_load = 0;          // the same without what other senders bring, as far as they are known
  double senders_just_now = 0;  // what those who usually send the operation sent in the last two windows
  double operation_load = 0;    // of the operation alone
  // Of reads and writes:
  double ios_per_second = 0;
  double bytes_per_second = 0;
  double usual_rate = 0;         // I/Os of the operation per second; 0: unknown
  bool others_long = false;      // I/Os of another operation ended after kLongSeconds or more
  bool others_in_spike = false;  // another operation has a spike of more than outliers
  bool unseen_lately = false;    // completions were missed, for an operation that the kernel does not count
  std::optional<std::int64_t> kernel_in_flight = {};  // see model::KernelInFlight; at least those of this operation
};

struct SignalWindow {
  SteadyTime begin;
  SteadyTime end;
  const OperationInterval& io;
  const SparseBuckets& pooled;  // of this window, and of as many before it as it takes to have enough I/Os
  bool enough = false;          // `pooled` has enough I/Os
  bool in_spike = false;        // a spike is open
  Surroundings around;

  [[nodiscard]] double seconds() const { return seconds_between(begin, end); }
};

/// What kind of evidence opened a spike: it decides how the spike continues and ends.
enum class EvidenceKind : std::uint8_t {
  clear,  // tail, stall, or a second whose waiting was due to a few long I/Os
  broad,  // all I/Os are somewhat slower
  rare    // one I/O in hundreds is far slower
};

struct Evidence {
  SteadyTime begin;
  SteadyTime end;
  EvidenceKind kind = EvidenceKind::clear;
  bool alone = false;     // no second window is needed
  double limit = 0;       // seconds; an I/O beyond it is slow
  std::uint64_t ios = 0;  // beyond the limit
  double tail = 0;
  double slowest = 0;
  double share = 0;                      // of the I/Os that completed
  std::optional<SteadyTime> since = {};  // set if the signal itself knows when the slowness began
};

inline constexpr double kTail = 0.99;
inline constexpr std::uint64_t kMinIos = 10;  // needed in a pool
inline constexpr double kLongSeconds = 0.5;
inline constexpr double kAloneSeconds = 1;  // for one window to be enough

/// Evidence from the I/Os of the window that are beyond the limit.
Evidence evidence_beyond(const SignalWindow& now, double limit);

/// Whether the 99th percentile of total latency is beyond its limit: kTimesBaseline times the baseline, and never below
/// the floor.
///
/// There are two baselines. The recent one falls within minutes: a bulk load is a load, not what is usual afterwards.
/// The one of busy times falls within tens of minutes, and counts only while there is more load than recently, about as
/// much as when it was learned: load that returns is not a spike.
class TailSignal {
 public:
  static constexpr double kTimesBaseline = 4;
  static constexpr double kRecentFallSeconds = 60;  // time constant
  static constexpr double kMoreLoad = 1.25;         // than recently
  static constexpr double kAsBusy = 0.25;           // of the I/Os and of the bytes of busy times

  [[nodiscard]] std::optional<Evidence> evaluate(const SignalWindow& now, double limit) const;

  /// Call first for each window: the load decides which baseline counts. In a spike, it stays the one of its begin.
  void choose(const SignalWindow& now);
  void learn(const SignalWindow& healthy);
  /// Call while what was seen last may be part of a spike of another operation.
  void forget_held();
  /// Call when a spike opens; if it lasts, its own windows show the new normal.
  void open();
  void learn_changed(const SignalWindow& slow);
  /// The spike has lasted. False if too few windows were seen to know the new normal.
  bool accept();

  [[nodiscard]] double limit(double floor_seconds) const;
  [[nodiscard]] std::optional<double> baseline_seconds() const { return chosen().seconds(); }
  [[nodiscard]] std::optional<model::SpikeBaseline> baseline() const;

 private:
  [[nodiscard]] const Baseline& chosen() const { return is_busy_ ? busy_ : recent_; }

  Baseline recent_{kRecentFallSeconds};
  Baseline busy_;
  double busy_ios_per_second_ = 0;  // when it was learned
  double busy_bytes_per_second_ = 0;
  bool is_busy_ = true;
  Baseline changed_;
};

/// Whether more time was spent waiting than usual.
///
/// Either long I/Os account for most of a second's waiting, as after a freeze: there are many of them, or the work of
/// that time is missing. Or all I/Os are somewhat slower for a while: median and mean are both kTimesUsual times their
/// usual value, without more load or larger I/Os. If others bring more load, kTimesWithOthers is needed; where those
/// who usually send the operation also get less done, kTimesUsual again, for a shorter time. (A few I/Os move a mean; a
/// different mix of sizes moves a median.)
class ExcessSignal {
 public:
  static constexpr double kMaxWaiting = 0.5;  // of a second's waiting is due to long I/Os
  static constexpr double kFewShare = 0.01;   // of a second's I/Os: fewer are outliers, unless they took kAloneSeconds
  static constexpr double kStoodStill = 0.5;  // of the usual work in the slowest I/O's time is missing
  static constexpr double kMoreLoad = 1.25;   // this much more load may make I/Os somewhat slower
  static constexpr double kMuchMoreLoad = 2.5;  // the same, within a spike
  static constexpr double kTimesUsual = 2;
  static constexpr double kTimesWithOthers = 3;
  // Time constant. It is short, so that a few bad seconds do not stay usual; mornings stay silent because more load is
  // excluded.
  static constexpr double kUsualFallSeconds = 60;
  static constexpr double kBroadSeconds = 5;      // for at least this long, and two windows
  static constexpr double kStarvedShare = 0.7;    // of the usual work: with less, they are held up
  static constexpr double kHardlyAnyShare = 0.3;  // of the usual work: then kTimesStarved is enough
  static constexpr double kStoppedShare = 0.03;   // with less, they may have stopped by themselves
  static constexpr double kTimesStarved = 1.5;
  static constexpr double kStarvedSeconds = 3;

  [[nodiscard]] std::optional<Evidence> evaluate(const SignalWindow& now, double limit, double floor_seconds);

  void learn(const SignalWindow& healthy);
  void forget_held();
  void open();
  void learn_changed(const SignalWindow& slow);
  void accept();

 private:
  struct Usual {
    Baseline mean{kUsualFallSeconds};
    Baseline median{kUsualFallSeconds};
    void learn(const SignalWindow& now);
  };
  [[nodiscard]] std::optional<Evidence> find_long(const SignalWindow& now, double limit) const;
  [[nodiscard]] static bool gets_less_done(const SignalWindow& now);
  [[nodiscard]] bool stood_still(const SignalWindow& now, double slowest) const;
  [[nodiscard]] std::optional<Evidence> find_broad(const SignalWindow& now, double floor_seconds);

  Usual usual_;
  Usual changed_;
  std::optional<Evidence> run_;  // all I/Os are somewhat slower, but not yet for long enough
  double last_seconds_ = 0;      // of the previous window, with its I/Os below
  double last_ios_ = 0;
};

/// Whether a few I/Os, too few for the 99th percentile, account for much of the waiting time of the last minute: single
/// slow I/Os are normal, and on a healthy drive account for a few hundredths of it. Where they account for less because
/// all others wait, too, they count if they are long, and far more numerous than usual. The share of a few is
/// uncertain, as chance could have made fewer of them: the fewer they are, the larger it must be.
class OutlierSignal {
 public:
  static constexpr double kPoolSeconds = 60;
  static constexpr std::uint64_t kMinOutliers = 3;
  static constexpr std::uint64_t kMinAllIos = 300;  // I/Os; out of fewer, three are not rare
  static constexpr double kMinShare = 0.15;         // of the waiting time, of many outliers
  static constexpr double kErrors = 3;            // relative standard errors of their number that it must be above that
  static constexpr double kTimesUsual = 2;        // a share that has become normal must double
  static constexpr double kMinLongShare = 0.001;  // of the I/Os: the 99.9th percentile is long
  static constexpr double kTimesUsualLong = 8;    // as many long ones as usual
  static constexpr double kUsualLongSeconds = 1200;  // time constant

  [[nodiscard]] std::optional<Evidence> evaluate(const SignalWindow& now, double limit);

  /// Call when a spike opens: what was slow is part of it.
  void open();
  void accept();

 private:
  struct Part {
    SteadyTime begin;
    SteadyTime end;
    std::uint64_t ios = 0;
    std::uint64_t outliers = 0;
    std::uint64_t long_outliers = 0;  // beyond kLongSeconds
    double waited = 0;
    double outliers_waited = 0;
  };
  [[nodiscard]] Part sum_up(SteadyTime end);
  [[nodiscard]] bool too_many_long(const Part& all) const;
  void learn(const Part& left);

  std::deque<Part> parts_;
  double last_share_ = 0;
  double usual_share_ = 0;
  double usual_ios_ = 0;  // before the last minute
  double usual_long_ = 0;
};

/// Whether something is in flight all through a window in which nothing completes.
///
/// In our count, a missed completion leaves its I/O in flight forever, so that every pause in the load would look like
/// a stall. So the kernel's own count is read: a stall is plausible while the kernel has I/Os in flight, and I/Os that
/// are missing from its count at two readings have leaked. No leak is assumed before the second reading. Where the
/// kernel does not count (flushes, and everything where iostats is 0), I/Os in flight all through a stall have leaked
/// if the stall lasts for kStallSeconds, or if the first I/Os that complete after it are all fast. They turn out not to
/// have leaked once fewer are in flight, or once an I/O completes that was in flight then.
class StallSignal {
 public:
  static constexpr double kLongestSeconds = 60;  // longer latencies share a bucket with these
  static constexpr double kStallSeconds = 180;   // an I/O in flight for longer was missed by us, not by the device

  [[nodiscard]] std::optional<Evidence> evaluate(const SignalWindow& now, double limit);
  /// The previous window was part of a stall, plausible or not.
  [[nodiscard]] bool just_over() const { return just_over_; }

 private:
  void correct_leaks(const SignalWindow& now, double slowest);
  void end(const SignalWindow& now, double slowest);
  [[nodiscard]] bool plausible(const SignalWindow& now);

  std::optional<SteadyTime> since_;
  bool just_over_ = false;
  bool confirmed_ = false;              // the kernel had I/Os in flight
  std::optional<std::int64_t> absent_;  // how many the kernel did not have in flight when last asked
  std::int64_t stalled_ = 0;            // in flight all through the stall
  std::int64_t leaked_ = 0;             // in flight forever
  SteadyTime leaked_since_;             // when the stall that showed it began
};

/// A spike that is open or has just ended.
struct SpikeSpan {
  SteadyTime began;
  SteadyTime ended;  // while it is open: so far
  EvidenceKind kind = EvidenceKind::clear;
  double limit = 0;  // seconds; an I/O beyond it is slow
  double baseline = 0;
  double peak = 0;
  std::uint64_t ios = 0;
  bool accepted = false;  // it ended because it lasted so long that it is the new normal
};

/// A spike opens with two windows of evidence close together, or with one that is enough alone (anything that was slow
/// earlier and had passed is then not part of it). It ends after kQuietSeconds without evidence (kRareQuietSeconds for
/// rare outliers; kIdleSeconds if nothing has completed that would show its end). Windows with few I/Os are pooled; if
/// that is still too few, they are not evidence. Nothing is known until the first healthy seconds have shown what is
/// usual.
class SpikeDetector {
 public:
  static constexpr double kPoolSeconds = 5;
  static constexpr double kTogetherSeconds = 2;  // two windows no farther apart open a spike, and so does one this long
  static constexpr double kQuietSeconds = 3;
  static constexpr double kIdleSeconds = 10;
  static constexpr double kRareQuietSeconds = 30;
  static constexpr double kAcceptSeconds = 600;    // a permanent change is accepted
  static constexpr double kAgainSeconds = 60;      // so long after a stall, one window is enough for the next
  static constexpr std::uint64_t kMinStalled = 5;  // I/Os of such a window

  enum class Event : std::uint8_t { none, began, ended };

  explicit SpikeDetector(double pool_seconds = kPoolSeconds) : pool_seconds_(pool_seconds) {}

  Event observe(SteadyTime begin, SteadyTime end, const OperationInterval& window, double floor_seconds,
                const Surroundings& around = {});

  /// The open spike; after Event::ended, until the next observe(), the one that ended.
  [[nodiscard]] const std::optional<SpikeSpan>& span() const { return span_; }
  [[nodiscard]] bool open() const { return span_ && !over_; }
  [[nodiscard]] std::optional<double> baseline_seconds() const { return tail_.baseline_seconds(); }
  [[nodiscard]] std::optional<model::SpikeBaseline> baseline() const { return tail_.baseline(); }
  /// An I/O beyond it is slow, whether there is a spike or not. Absent until a baseline is known.
  [[nodiscard]] std::optional<double> limit_seconds(double floor_seconds) const;

 private:
  struct Part {
    SteadyTime end;
    SparseBuckets total;
  };
  [[nodiscard]] SparseBuckets pool(SteadyTime end, const SparseBuckets& total);
  [[nodiscard]] std::optional<Evidence> evaluate(const SignalWindow& now, double floor_seconds);
  Event watch(const SignalWindow& now, const std::optional<Evidence>& slow);
  [[nodiscard]] bool again(const SignalWindow& now, const Evidence& slow);
  void open(const Evidence& first);
  Event go_on(const SignalWindow& now, std::optional<Evidence> slow);
  [[nodiscard]] bool accept();
  [[nodiscard]] SteadyTime begin_of(const Evidence& slow) const;
  void add(const Evidence& slow);

  double pool_seconds_;
  TailSignal tail_;
  ExcessSignal excess_;
  OutlierSignal outlier_;
  StallSignal stall_;
  std::deque<Part> parts_;              // the windows before this one that may be pooled
  std::optional<Evidence> first_slow_;  // evidence that needs a second window
  std::optional<SpikeSpan> span_;
  bool over_ = false;
  SteadyTime last_slow_end_;
  bool healthy_since_ = false;            // something completed in a window without evidence
  SteadyTime last_over_;                  // when the last spike ended
  std::optional<SteadyTime> last_stall_;  // when what may have been a short stall was last seen
};

}  // namespace ssdpulse::spikes
