// SPDX-License-Identifier: Apache-2.0
// PolicyFit: the collection policies, each with its over-provisioning, that explain everything that a drive counted.
// Under one load, every policy explains the counter with some over-provisioning. Under another load, the right policy
// needs the same over-provisioning again, and a wrong one a different one: by a factor of 0.1 to 2.8 between a uniform
// and a skewed load. So for each policy, the range that explains every day so far is kept; a policy whose days
// contradict each other is excluded. A drive that always has the same load keeps all policies.
// Values only; not thread-safe.
#pragma once

#include <array>
#include <optional>

#include "daemon/analysis/flash_model/overprovisioning_fit.h"
#include "daemon/model/flash.h"

namespace ssdpulse::analysis {

/// The policies that are modelled for every drive: see default_what_ifs().
inline constexpr std::array kFittedPolicies{model::CollectionPolicy::greedy,
                                            model::CollectionPolicy::greedy_gc_frontier,
                                            model::CollectionPolicy::cost_benefit};

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
  bool add(const model::FlashReport& report, model::FlashWindow window, const model::Estimate& measured);

  /// No policy has more than this, by what else is known about the drive (CollectionWatch). False: as for add().
  bool limit(double most_overprovisioning);

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

}  // namespace ssdpulse::analysis
