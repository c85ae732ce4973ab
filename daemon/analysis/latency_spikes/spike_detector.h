// SPDX-License-Identifier: Apache-2.0
// SpikeDetector: from when to when one operation of one device was slower than usual.
//
// Asks the signals about each window. A spike opens with two windows of evidence close together, or with one that is
// enough alone (anything that was slow earlier and had passed is then not part of it). It ends after kQuietSeconds
// without evidence (kRareQuietSeconds for rare outliers; kIdleSeconds if nothing has completed that would show its
// end). Windows with few I/Os are pooled; if that is still too few, they are not evidence. Nothing is known until the
// first healthy seconds have shown what is usual. Knows nothing about causes.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "daemon/analysis/latency_spikes/excess_signal.h"
#include "daemon/analysis/latency_spikes/outlier_signal.h"
#include "daemon/analysis/latency_spikes/signal.h"
#include "daemon/analysis/latency_spikes/stall_signal.h"
#include "daemon/analysis/latency_spikes/tail_signal.h"

namespace ssdpulse::analysis {

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
  bool well_since_ = false;               // something completed in a window without evidence
  SteadyTime last_over_;                  // when the last spike ended
  std::optional<SteadyTime> last_stall_;  // when what may have been a short stall was last seen
};

}  // namespace ssdpulse::analysis
