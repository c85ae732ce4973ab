// SPDX-License-Identifier: Apache-2.0
// PolicyFit: the collection policies and over-provisionings that explain what a drive counted; CollectionWatch: a bound
// from when its garbage collection began; and the functions that find the over-provisioning by a curve.
// The same load runs through miniature drives with several over-provisionings; what the drive measured lies between two
// of them. A wrong policy explains a uniform load as well as the right one does, but a skewed one only with an
// over-provisioning that is off by a factor of 0.1 to 2.8 (deploy/docs/flash-model.md, "The fit"). So a fit is valid
// only for the load it was made from. Over-provisionings are ratios as in model::WhatIf: 0.12 = 12 %. Values only; no
// thread, no clock.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "daemon/model/flash_values.h"

namespace ssdpulse::flash {

/// Doubt about an interpolated value, as a share of the write amplification: at 7, 12, 28 and 50 %, the curve of a
/// uniform load stays within it of the exact value (unit.flash_fit_test).
inline constexpr double kInterpolationDoubt = 0.02;

/// What one miniature drive relocated. A curve is a series of them, with rising over-provisioning.
struct CurvePoint {
  double overprovisioning;
  model::Estimate estimate;
};

/// A number that is known up to some doubt: an over-provisioning, or a ratio of bytes. `lower` <= `likely` <= `upper`.
struct BoundedValue {
  double likely;
  double lower;
  double upper;
  bool operator==(const BoundedValue&) const = default;
};

/// Interpolates between two points of the curve; absent beyond its ends. The curve is nearly straight if the
/// over-provisioning at which a uniform load would have that write amplification is plotted against the
/// over-provisioning, both as logarithms. The bounds widen by kInterpolationDoubt between points.
std::optional<model::Estimate> interpolate(std::span<const CurvePoint> curve, double overprovisioning);

/// Over-provisionings that agree with a measurement.
struct OverprovisioningMatch {
  std::optional<double> likely;  // absent beyond the curve
  double lower;                  // 0: the bound lies before the curve
  double upper;                  // infinity: it lies beyond the curve
};

/// Where the curve has the write amplification that was measured. Where all drives relocate about the same (a
/// sequential load), and of a curve of fewer than two points, that is anything from 0 to infinity.
OverprovisioningMatch matching_overprovisioning(std::span<const CurvePoint> curve, const model::Estimate& measured);

/// The curve of another policy, of which only the point `known` was modelled. `on_curve`: the point of `curve` at the
/// same over-provisioning. The ratio of the over-provisionings at which a uniform load would have those two write
/// amplifications is assumed to be the same everywhere. That is off by up to 30 % of the over-provisioning at a factor
/// of e from that point: measured with zipf, hot and cold, and log loads from 4 to 50 %.
std::vector<CurvePoint> through_point(std::span<const CurvePoint> curve, const CurvePoint& on_curve,
                                      const CurvePoint& known);

/// Like matching_overprovisioning(), for showing: a bound beyond the curve is set to its end. Absent if the likely
/// value is beyond.
std::optional<BoundedValue> fit_overprovisioning(std::span<const CurvePoint> curve, const model::Estimate& measured);

/// Media writes over host writes of a drive that relocates nothing: maps, parity and padding. Two drives whose counters
/// were published have 1.035 and 1.06 (deploy/docs/flash-model.md).
inline constexpr BoundedValue kUsualOverhead{1.04, 1.00, 1.08};

/// The write amplification without kUsualOverhead; at least 1.
model::Estimate without_overhead(const model::Estimate& measured);

/// The policy that is modelled with several over-provisionings, and that the first what-if has.
inline constexpr model::CollectionPolicy kMiddlePolicy = model::CollectionPolicy::greedy_gc_frontier;

/// Sorted by over-provisioning: the runs of a window that differ in nothing else. Empty if the window is silent.
std::vector<CurvePoint> curve_of(const model::FlashReport& report, model::FlashWindow window);

/// The estimate for a drive with this over-provisioning and its bounds.
std::optional<model::Estimate> at_overprovisioning(std::span<const CurvePoint> curve,
                                                   const BoundedValue& overprovisioning);

/// The base, with bounds that hold for each policy that was modelled at its over-provisioning.
std::optional<model::Estimate> band_of_policies(const model::FlashReport& report, model::FlashWindow window);

/// The policies that are modelled for every drive: see default_what_ifs().
inline constexpr std::array kFittedPolicies{model::CollectionPolicy::greedy,
                                            model::CollectionPolicy::greedy_gc_frontier,
                                            model::CollectionPolicy::cost_benefit};

/// The collection policies, each with its over-provisioning, that explain everything that a drive counted.
/// Under one load, every policy explains the counter with some over-provisioning. Under another load, the right policy
/// needs the same over-provisioning again, and a wrong policy a different one: by a factor of 0.1 to 2.8 between a
/// uniform and a skewed load. So for each policy, the range that explains every day so far is kept; a policy whose days
/// contradict each other is excluded. A drive that always has the same load keeps all policies.
class PolicyFit {
 public:
  /// Over-provisionings that explain every day so far; contradictory days leave lower > upper. No day: 0 to infinity.
  struct Range {
    double lower;
    double upper;
    double likely;  // from the newest day that had one; 0: none had
    bool operator==(const Range&) const = default;
  };
  using Ranges = std::array<Range, kFittedPolicies.size()>;

  /// Two ranges that miss each other by less count as touching: a real drive follows its policy to a few percent.
  static constexpr double kSlack = 0.05;
  /// The share by which each bound widens for each day that is added: drives lose spare flash as they wear.
  static constexpr double kForgotten = 0.002;
  /// What is exported if nothing bounds it: no drive has as much spare flash as the host sees.
  static constexpr double kMaxOverprovisioning = 1;

  /// A day with less write amplification shows mostly the drive's overhead, which is not known exactly: left out.
  static constexpr double kMinRelocated = 1.1;

  PolicyFit();
  explicit PolicyFit(const Ranges& kept) : ranges_(kept) {}

  /// Adds one day: what each policy relocates in it, and what the drive counted, minus its overhead. Days must not
  /// overlap. False: no policy explains both this day and those before, and only this one counts from now on.
  [[nodiscard]] bool add(const model::FlashReport& report, model::FlashWindow window, const model::Estimate& measured);

  /// No policy has more than this, by what else is known about the drive (CollectionWatch). False: as for add().
  [[nodiscard]] bool limit(double max_overprovisioning);

  /// Whether the policy still explains all days.
  [[nodiscard]] bool possible(model::CollectionPolicy policy) const;
  /// The only one that does. Absent: several do.
  [[nodiscard]] std::optional<model::CollectionPolicy> policy() const;
  /// The one to answer with: the only one, or the middle one, or the first that is possible.
  [[nodiscard]] model::CollectionPolicy best() const;
  /// That of best(), with bounds that hold whichever of the possible policies the drive has. Absent: nothing was
  /// measured yet within the curve.
  [[nodiscard]] std::optional<BoundedValue> overprovisioning() const;
  /// What the drive relocates: that of best(), with bounds of all possible policies, each at its own over-provisioning.
  [[nodiscard]] std::optional<model::Estimate> estimate(const model::FlashReport& report,
                                                        model::FlashWindow window) const;

  [[nodiscard]] const Ranges& ranges() const { return ranges_; }

 private:
  [[nodiscard]] std::optional<BoundedValue> fitted(std::size_t policy) const;

  Ranges ranges_;
};

/// Finds, by a drive's own counters, how soon after a full discard garbage collection costs writes.
/// Until the host has written all the flash, nothing is relocated. So when a drive's media counter outruns the host's,
/// it has no more flash than was written by then, whatever its policy. It may have less: if whole blocks die,
/// collection costs nothing at first. On two real drives under random writes, the cost was seen at 0.98 to 1.02 of the
/// flash.
class CollectionWatch {
 public:
  /// Shares of the drive: how far the host's counter must move between two steps, and how much may be written between
  /// the discard and the first reading.
  static constexpr double kStep = 0.02;
  static constexpr double kLatest = 0.02;
  /// How much the ratio must rise above its value before the drive was first full.
  static constexpr double kCost = 0.1;
  /// Drive writes after which nothing more is learned: no drive on the market has more flash than that.
  static constexpr double kMaxDriveWrites = 1.6;

  /// Bytes, by the drive's counters.
  struct State {
    double host_then = -1;  // at the discard; negative: nothing is being watched
    double media_then = 0;
    double host = 0;  // at the last step
    double media = 0;
    double free_ratio = 0;  // media over host writes before the drive was first full, at most: its overhead
    bool operator==(const State&) const = default;
  };

  CollectionWatch() = default;
  explicit CollectionWatch(const State& kept) : state_(kept) {}

  /// The drive's own counters, in bytes.
  struct Counters {
    double host;
    double media;
    double host_doubt = 0;  // how far off a difference of two readings may be: counters count whole units
    double media_doubt = 0;
  };

  /// Call at every reading. `since_discard`: bytes that the host wrote since a full discard, as the model counts them;
  /// absent: there was none. Returns, once, the most over-provisioning that the drive can have, as a share of
  /// `drive_bytes`. Coarse counters show it later, never too early.
  std::optional<double> observe(std::optional<double> since_discard, const Counters& now, double drive_bytes);

  [[nodiscard]] const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace ssdpulse::flash
