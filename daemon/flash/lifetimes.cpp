// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/lifetimes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "daemon/model/write_details.h"

namespace ssdpulse::flash {
namespace {

constexpr double kNormal95 = 1.96;
constexpr int kMaxRounds = 500;  // of the fixed-point iteration, which converges geometrically

std::uint64_t total(const LifetimeHistogram& histogram) {
  return std::accumulate(histogram.counts.begin(), histogram.counts.end(), std::uint64_t{0});
}

/// The share that lives longer, at the ends of buckets, and its relative variance.
struct SurvivalCurve {
  double survivors = 1;
  double greenwood = 0;

  void pass(double deaths, double at_risk) {
    if (at_risk > 0) {
      survivors *= 1 - deaths / at_risk;
      greenwood += at_risk > deaths ? deaths / (at_risk * (at_risk - deaths)) : 0;
    }
  }
  [[nodiscard]] double error() const { return survivors * std::sqrt(greenwood); }
};

/// Where a curve that falls from `before` to `after` within the bucket passes `level`.
double crossing(std::size_t bucket, double before, double after, double level) {
  const double begin = LifetimeHistogram::lower_bound(bucket);
  const double width = LifetimeHistogram::lower_bound(bucket + 1) - begin;
  return begin + (before > after ? width * std::clamp((before - level) / (before - after), 0.0, 1.0) : width);
}

/// The integral of floor(t / lap) from 0 to `end`.
double laps_until(double end, double lap) {
  const double whole = std::floor(end / lap);
  return lap * whole * (whole - 1) / 2 + whole * (end - whole * lap);
}

/// Lifetimes are spread evenly over their bucket: with steps in it, the iteration would stop at one of them.
double relocations(const LifetimeHistogram& histogram, double lap) {
  double result = 0;
  for (std::size_t bucket = 0; bucket < LifetimeHistogram::kBuckets; ++bucket) {
    const double begin = LifetimeHistogram::lower_bound(bucket);
    const double end = LifetimeHistogram::lower_bound(bucket + 1);
    if (histogram.counts[bucket] != 0 && end > lap) {
      result += static_cast<double>(histogram.counts[bucket]) * (laps_until(end, lap) - laps_until(begin, lap)) /
                (end - begin);
    }
  }
  return result;
}

constexpr std::array kDeclared{model::WriteHint::short_lived, model::WriteHint::medium, model::WriteHint::long_lived,
                               model::WriteHint::extreme};

std::optional<LifetimeQuantile> median_of(const Lifetimes& lifetimes, model::WriteHint hint) {
  const auto survival = lifetimes.survival(static_cast<std::uint8_t>(hint));
  return survival.pages >= kMinDistinctPages && survival.ended >= kMinDeaths ? survival.quantile(0.5) : std::nullopt;
}

}  // namespace

std::size_t LifetimeHistogram::bucket_of(std::uint32_t lifetime) {
  if (lifetime < 16) {
    return lifetime;
  }
  const auto octave = static_cast<unsigned>(std::bit_width(lifetime)) - 5;
  return 16 * octave + (lifetime >> octave);
}

double LifetimeHistogram::lower_bound(std::size_t bucket) {
  const std::size_t octave = bucket < 16 ? 0 : bucket / 16 - 1;
  return std::ldexp(static_cast<double>(bucket - 16 * octave), static_cast<int>(octave));
}

Lifetimes::Lifetimes(std::uint32_t pages, std::uint64_t drive_pages)
    : drive_pages_(std::max<std::uint64_t>(drive_pages, 1)),
      unit_pages_(std::max<std::uint64_t>(drive_pages_ / static_cast<std::uint64_t>(kUnitsPerDriveWrite), 1)),
      unknown_(pages),
      birth_(pages),
      hint_(pages, kUnknown),
      died_(pages) {}

std::optional<std::uint32_t> Lifetimes::end(std::uint32_t page) {
  const std::uint8_t hint = hint_[page];
  const std::uint32_t lifetime = now() - birth_[page];
  if (hint == kUnmapped) {
    --unmapped_;
    return std::nullopt;
  }
  if (hint == kUnknown) {
    --unknown_;
    unknown_deaths_.add(lifetime);
    return std::nullopt;
  }
  deaths_[hint].add(lifetime);
  const auto bit = static_cast<std::uint8_t>(1U << hint);
  pages_[hint] += (died_[page] & bit) == 0 ? 1 : 0;
  died_[page] |= bit;
  return lifetime;
}

std::optional<std::uint32_t> Lifetimes::write(std::uint32_t page, std::uint8_t hint) {
  const auto ended = end(page);
  birth_[page] = now();
  hint_[page] = hint;
  return ended;
}

void Lifetimes::discard(std::uint32_t page) {
  end(page);
  hint_[page] = kUnmapped;
  ++unmapped_;
}

void Lifetimes::forget_all() {
  for (std::uint32_t page = 0; page < hint_.size(); ++page) {
    discard(page);
  }
}

Lifetimes::Survival Lifetimes::survival(std::uint8_t hint) const {
  Survival result;
  result.deaths = deaths_[hint];
  for (std::size_t page = 0; page < hint_.size(); ++page) {
    if (hint_[page] == hint) {
      result.alive.add(now() - birth_[page]);
    }
  }
  result.ended = total(result.deaths);
  result.living = total(result.alive);
  result.pages = pages_[hint];
  return result;
}

std::optional<LifetimeQuantile> Lifetimes::Survival::quantile(double quantile) const {
  const double level = 1 - quantile;
  SurvivalCurve curve;
  std::array<std::optional<double>, 3> at;  // where the lower, the likely and the upper curve pass the level
  auto at_risk = static_cast<double>(ended + living);
  double before = 1;
  double error = 0;
  for (std::size_t bucket = 0; bucket < LifetimeHistogram::kBuckets && at_risk > 0; ++bucket) {
    const auto died = static_cast<double>(deaths.counts[bucket]);
    const auto left = static_cast<double>(alive.counts[bucket]);
    curve.pass(died, std::max(at_risk - left / 2, died));
    const double error_after = curve.error();
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double side = static_cast<double>(i) - 1;
      auto& found = at[i];
      const double after = curve.survivors + side * kNormal95 * error_after;
      if (!found && after <= level) {
        found = crossing(bucket, before + side * kNormal95 * error, after, level) / kUnitsPerDriveWrite;
      }
    }
    before = curve.survivors;
    error = error_after;
    at_risk -= died + left;
  }
  if (!at[1]) {
    return std::nullopt;
  }
  return LifetimeQuantile{*at[1], *at[0], at[2].value_or(LifetimeHistogram::lower_bound(LifetimeHistogram::kBuckets))};
}

Lifetimes::Laps Lifetimes::laps() const {
  Laps result;
  result.ended = unknown_deaths_;
  for (const LifetimeHistogram& deaths : deaths_) {
    for (std::size_t bucket = 0; bucket < LifetimeHistogram::kBuckets; ++bucket) {
      result.ended.counts[bucket] += deaths.counts[bucket];
    }
  }
  for (std::size_t page = 0; page < hint_.size(); ++page) {
    if (hint_[page] != kUnmapped) {
      result.ages.add(now() - birth_[page]);
    }
  }
  result.volume = volume_;
  return result;
}

std::optional<double> Lifetimes::fifo_write_amplification(const Laps& from, const Laps& to,
                                                          double overprovisioning) const {
  // In followed pages: in one drive write, the host writes as many of them as there are.
  const double host = static_cast<double>(to.volume - from.volume) / static_cast<double>(drive_pages_) *
                      static_cast<double>(hint_.size());
  if (host <= 0) {
    return std::nullopt;
  }
  double result = 1;
  for (int round = 0; round < kMaxRounds; ++round) {
    const double lap = (1 + overprovisioning) * kUnitsPerDriveWrite / result;
    const double moved = relocations(to.ended, lap) - relocations(from.ended, lap) + relocations(to.ages, lap) -
                         relocations(from.ages, lap);
    const double next = std::max(result, 1 + moved / host);
    if (next - result < 1e-6) {
      break;
    }
    result = next;
  }
  return result;
}

double Lifetimes::drive_writes() const { return static_cast<double>(volume_) / static_cast<double>(drive_pages_); }

std::size_t Lifetimes::memory_bytes() const {
  return sizeof *this + birth_.size() * (sizeof(std::uint32_t) + 2) +
         (kHints + 1) * LifetimeHistogram::kBuckets * sizeof(std::uint64_t);
}

void Lifetimes::save(BinaryWriter& out) const {
  out(volume_, birth_, hint_, died_);
  for (std::size_t hint = 0; hint < kHints; ++hint) {
    out(pages_[hint], deaths_[hint].counts);
  }
  out(unknown_deaths_.counts);
}

bool Lifetimes::restore(BinaryReader& in) {
  in(volume_, birth_, hint_, died_);
  for (std::size_t hint = 0; hint < kHints; ++hint) {
    in(pages_[hint], deaths_[hint].counts);
  }
  in(unknown_deaths_.counts);
  unknown_ = static_cast<std::uint32_t>(std::count(hint_.begin(), hint_.end(), kUnknown));
  unmapped_ = static_cast<std::uint32_t>(std::count(hint_.begin(), hint_.end(), kUnmapped));
  return in.good() &&
         std::all_of(hint_.begin(), hint_.end(), [](std::uint8_t hint) { return hint < kHints || hint >= kUnknown; });
}

std::uint32_t LifetimeClasses::next(std::optional<std::uint32_t> lifetime) {
  if (lifetime) {
    recent_.add(*lifetime);
  } else {
    ++unknown_;
  }
  if (++seen_ % kLearnEvery == 0) {
    learn();
  }
  const std::uint32_t longest = lifetime.value_or(UINT32_MAX);
  const auto above =
      std::find_if(limits_.begin(), limits_.end(), [longest](std::uint32_t limit) { return longest < limit; });
  return static_cast<std::uint32_t>(above - limits_.begin());
}

void LifetimeClasses::learn() {
  auto& counts = recent_.counts;
  const std::uint64_t all = std::accumulate(counts.begin(), counts.end(), unknown_);
  std::uint64_t below = 0;
  std::size_t limit = 0;
  for (std::size_t bucket = 0; bucket < LifetimeHistogram::kBuckets; ++bucket) {
    below += counts[bucket];
    while (limit < limits_.size() && below * kClasses >= all * (limit + 1)) {
      limits_[limit++] =
          static_cast<std::uint32_t>(std::min<double>(LifetimeHistogram::lower_bound(bucket + 1), UINT32_MAX));
    }
    counts[bucket] /= 2;
  }
  std::fill(limits_.begin() + static_cast<std::ptrdiff_t>(limit), limits_.end(), UINT32_MAX);
  unknown_ /= 2;
}

void LifetimeClasses::save(BinaryWriter& out) const {
  out(recent_.counts, unknown_, seen_, limits_[0], limits_[1], limits_[2]);
}

bool LifetimeClasses::restore(BinaryReader& in) {
  in(recent_.counts, unknown_, seen_, limits_[0], limits_[1], limits_[2]);
  return in.good();
}

std::vector<model::HintOrderViolation> hint_order_violations(const Lifetimes& lifetimes, double drive_bytes) {
  std::vector<model::HintOrderViolation> result;
  if (lifetimes.drive_writes() < kMinObserved) {
    return result;
  }
  std::array<std::optional<LifetimeQuantile>, kDeclared.size()> medians;
  for (std::size_t i = 0; i < kDeclared.size(); ++i) {
    medians[i] = median_of(lifetimes, kDeclared[i]);
  }
  for (std::size_t i = 0; i < kDeclared.size(); ++i) {
    for (std::size_t j = i + 1; j < kDeclared.size(); ++j) {
      const auto& shorter = medians[i];
      const auto& longer = medians[j];
      if (shorter && longer && shorter->lifetime > kMinDisorder * longer->lifetime && shorter->lower > longer->upper) {
        result.push_back({static_cast<std::uint8_t>(kDeclared[i]), static_cast<std::uint8_t>(kDeclared[j]),
                          shorter->lifetime * drive_bytes, longer->lifetime * drive_bytes});
      }
    }
  }
  return result;
}

}  // namespace ssdpulse::flash
