// SPDX-License-Identifier: Apache-2.0
// From two estimates to a change, and from many changes to verdicts. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/analysis/comparison/estimate.h"
#include "daemon/util/complete.h"

namespace ssdpulse::analysis::comparison {

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

}  // namespace ssdpulse::analysis::comparison
