// SPDX-License-Identifier: Apache-2.0
// From when to when is one operation of one device slower than it uses to be?
//
// A window is evidence when its 99th percentile of total latency is beyond the limit (kTimesBaseline times the
// baseline, and never below the floor), or when something was in flight all through it and nothing completed. A spike
// opens with two such windows close together, or with one whose tail or stall is as long as a window, and ends when
// there was none for kQuietSeconds. Windows of few I/Os are pooled; too few are no evidence. Says nothing of causes.
//
// A completion that was missed leaves its I/O in flight for ever, and each pause of the load would look like a stall.
// So what is in flight all through a stall has leaked if the stall goes on for kStallSeconds, or if the first I/Os that
// complete after it are all quick; and it has not once less is in flight, or an I/O completes that was in flight then.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "daemon/analysis/latency_spikes/baseline.h"
#include "daemon/analysis/latency_spikes/io_window.h"

namespace ssdpulse::analysis {

/// One that goes on, or has just ended.
struct SpikeSpan {
  SteadyTime began;
  SteadyTime ended;  // up to now, while it goes on
  double limit = 0;  // seconds: what is beyond it is slow
  double baseline = 0;
  double peak = 0;
  std::uint64_t ios = 0;
  bool accepted = false;  // it ended because it went on for so long that it is the new normal
};

class SpikeDetector {
 public:
  static constexpr double kTimesBaseline = 4;
  static constexpr std::uint64_t kLeastIos = 10;
  static constexpr double kPoolSeconds = 5;
  static constexpr double kLongSeconds = 0.5;
  static constexpr double kAloneSeconds = 1;     // so slow, one window is enough
  static constexpr double kTogetherSeconds = 2;  // two windows no farther apart open a spike, and so does one as long
  static constexpr double kQuietSeconds = 3;
  static constexpr double kAcceptSeconds = 600;  // a permanent change is accepted
  static constexpr double kLongestSeconds = 60;  // latencies beyond are in one word with these
  static constexpr double kStallSeconds = 180;   // what is in flight for longer was missed by us, not by the device

  enum class Event : std::uint8_t { none, began, ended };
  Event observe(SteadyTime begin, SteadyTime end, const OperationWindow& window, double floor_seconds);

  /// The one that goes on; after Event::ended, until the next observe(), the one that ended.
  [[nodiscard]] const std::optional<SpikeSpan>& span() const { return span_; }
  [[nodiscard]] bool open() const { return span_ && !over_; }
  [[nodiscard]] std::optional<double> baseline_seconds() const { return baseline_.seconds(); }

 private:
  struct Slow {  // a window that is evidence
    SteadyTime begin;
    SteadyTime end;
    std::uint64_t ios = 0;
    double tail = 0;
    double slowest = 0;
    double share = 0;  // of the I/Os that completed
  };
  struct Part {
    SteadyTime end;
    LatencyWords total;
  };
  [[nodiscard]] LatencyWords pool(SteadyTime end, const LatencyWords& total);
  [[nodiscard]] std::optional<Slow> look(SteadyTime begin, SteadyTime end, const OperationWindow& window, double limit,
                                         const LatencyWords& pooled);
  [[nodiscard]] bool stalls(SteadyTime begin, SteadyTime end, const OperationWindow& window);
  Event watch(SteadyTime begin, const std::optional<Slow>& slow, double limit);
  Event go_on(SteadyTime end, const std::optional<Slow>& slow);
  [[nodiscard]] SteadyTime begin_of(const Slow& slow) const;
  void add(const Slow& slow);

  Baseline baseline_;
  std::deque<Part> parts_;          // the windows before this one that may be pooled
  std::optional<Slow> first_slow_;  // evidence that waits for a second
  std::optional<SpikeSpan> span_;
  bool over_ = false;
  SteadyTime last_slow_end_;
  SteadyTime last_over_;  // when the last spike ended
  std::optional<SteadyTime> stall_since_;
  std::int64_t stalled_ = 0;           // in flight all through the stall
  std::int64_t leaked_ = 0;            // in flight for ever
  SteadyTime leaked_since_;            // when the stall began that told so
  std::optional<Baseline> candidate_;  // what the spike's own windows would teach
};

}  // namespace ssdpulse::analysis
