// SPDX-License-Identifier: Apache-2.0
// Verdict: from two estimates to a change, and from many changes to verdicts; and how far two short windows differ by
// chance. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/compare/window_estimate.h"
#include "daemon/model/history_answers.h"

namespace ssdpulse::compare {

enum class Verdict : std::uint8_t { better, worse, same, cannot_tell, not_comparable, too_few, no_data };
inline constexpr auto kVerdictNames =
    util::names<Verdict>({"better", "worse", "same", "cannot tell", "not comparable", "too few", "no data"});
constexpr std::string_view name(Verdict verdict) { return kVerdictNames[static_cast<std::size_t>(verdict)]; }

/// Two windows no further apart than this are the same to users of the disk.
inline constexpr double kMargin = 0.10;
inline constexpr double kConfidence = 0.95;

/// after / before.
struct Change {
  double ratio = 1;
  double lower = 1;  // of the interval at kConfidence, for this row alone
  double upper = 1;
  double p_value = 1;  // of a ratio this far beyond what `resolution` allows, if nothing has changed
  double resolution = 0;
  double error = 0;  // of the logarithm; 0: the bounds are certain
  double degrees = 0;
};

struct Interval {
  double lower = 1;
  double upper = 1;
};

/// `resolution`: a smaller change cannot be seen at all (0.044 for quantiles).
Change change_between(const Estimate& before, const Estimate& after, double resolution);
Change change_by(double log_ratio, double variance, double degrees, double resolution);

/// From bounds that are certain: no chance is involved.
Change change_within(double ratio, double lower, double upper);

/// For each change, the p-value up to which it is real, by Holm's method over all of them: at most 5 in 100 reports
/// call any row better or worse that is not. Absent changes do not count.
std::vector<double> holm(const std::vector<std::optional<Change>>& changes);

/// The interval that holds 1 exactly if the p-value is above `level`: at 1 - level, and as much wider as `resolution`.
Interval corrected(const Change& change, double level);

/// `level`: from holm(). Less is better in every row.
Verdict verdict_of(const Change& change, double level, double margin = kMargin);

/// How many times longer both windows must be for a verdict; the interval shrinks with the square root of time.
double times_longer(const Change& change, double resolution, double margin = kMargin);

// Student's distribution: how far off a mean of few values can be.

/// Probability of a value beyond t, on that side only: 0.5 down to 0. t >= 0; degrees_of_freedom > 0, also fractional.
double student_tail(double t, double degrees_of_freedom);

/// The t beyond which the probability is `tail`, 0 < tail <= 0.5. At most about 1e9.
double student_quantile(double tail, double degrees_of_freedom);

// How far two short windows differ by chance, as seen on the device's last day. A few minutes know neither their own
// variance nor how alike neighbours are. The day before them does: two stretches of it, as long as the windows and as
// far apart, differ by nothing but chance, correlation and bursts included.

struct WindowPair {
  std::size_t minutes_before = 0;  // measured
  std::size_t minutes_after = 0;
  std::size_t apart = 0;  // minutes from the beginning of one to that of the other
};

/// Of the difference of two log_values.
struct UsualDifferences {
  double variance = 0;
  double degrees = 0;  // of freedom of the variance
};

/// `day`: sums of the minutes that begin at `starts`. Stretches with fewer than `min_samples` do not count. Absent if
/// what is left is too short to say.
std::optional<UsualDifferences> usual_differences(const MinuteSums& day, const std::vector<model::PastTime>& starts,
                                                  const Figure& figure, double min_samples, const WindowPair& windows);

}  // namespace ssdpulse::compare
