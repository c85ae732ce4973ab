// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/write_amplification/sample_gate.h"

#include <initializer_list>
#include <utility>

namespace ssdpulse::analysis {
namespace {

constexpr Uint128 kGrains = 2;  // by which whole units can be off at either end

using Counter = std::optional<model::ByteCounter>;
using Time = std::chrono::nanoseconds;

/// A unit that is not known yet is the one that will be.
bool comparable(const Counter& from, const Counter& to) {
  return from && to && (from->unit_bytes == to->unit_bytes || from->unit_bytes == 0 || to->unit_bytes == 0);
}

bool fell(const Counter& from, const Counter& to) { return comparable(from, to) && to->count < from->count; }

bool leaps(const Counter& from, const Counter& to, Time time) {
  if (!comparable(from, to)) {
    return false;
  }
  const Uint128 most = most_bytes_in(time) + multiply(kGrains, to->unit_bytes);
  return to->count > from->count &&
         (to->count == kUnbounded || multiply(to->count - from->count, to->unit_bytes) > most);
}

bool leaps(const WriteSample& from, const WriteSample& to, Time time) {
  return leaps(from.host_after, to.host_after, time) || leaps(from.media, to.media, time);
}

bool goes_on(const WriteSample& from, const WriteSample& to) {
  return !fell(from, to) && !leaps(from, to, to.at - from.at);
}

/// Tells nothing of a counter that the other has.
bool lacks_counter(const WriteSample& sample, const WriteSample& other) {
  return !sample.host_before || !sample.host_after || (other.media && !sample.media);
}

/// One sample between two.
struct Between {
  const WriteSample& before;
  Time since_before;
  const WriteSample& held;
  const WriteSample& after;
  bool after_certain;
};

/// Whether one counter fell to what is held of it, from there, or between the two reads of it. A count that takes a
/// leap is none.
bool may_have_fallen(const Between& samples, const Counter& before, std::initializer_list<Counter> held,
                     const Counter& after) {
  Counter previous = before;
  bool possible = false;
  for (const Counter& count : held) {
    const bool absurd = leaps(before, count, samples.since_before) ||
                        (samples.after_certain && leaps(count, after, samples.after.at - samples.held.at));
    if (!absurd && fell(previous, count)) {
      return true;
    }
    possible = possible || !absurd;
    previous = absurd ? previous : count;
  }
  return possible && fell(previous, after);
}

bool may_have_fallen(const Between& samples) {
  const auto& [before, since_before, held, after, after_certain] = samples;
  return may_have_fallen(samples, before.host_after, {held.host_before, held.host_after}, after.host_before) ||
         may_have_fallen(samples, before.media, {held.media}, after.media);
}

}  // namespace

bool fell(const WriteSample& from, const WriteSample& to) {
  return fell(from.host_after, to.host_before) || fell(to.host_before, to.host_after) || fell(from.media, to.media);
}

SampleGate::Verdict SampleGate::judge(const std::optional<WriteSample>& last, bool timed, const WriteSample& sample) {
  Verdict verdict;
  const bool same_drive = last && last->serial == sample.serial;
  if (!same_drive || lacks_counter(sample, *last)) {
    verdict.believed.push_back(sample);
    held_ = same_drive ? held_ : std::nullopt;
    return verdict;
  }
  const bool from_last = goes_on(*last, sample);
  if (const auto held = std::exchange(held_, std::nullopt)) {
    constexpr Time kLongestAbsence = std::chrono::hours(24 * 3650);
    const Time since_last = timed ? held->at - last->at : kLongestAbsence;
    const bool from_held = goes_on(*held, sample);
    const bool grew = !fell(*last, *held) && !fell(*held, sample);
    if (!from_last && (from_held || grew)) {
      verdict.leapt = !from_held || leaps(*last, *held, since_last);
      if (from_held) {
        verdict.believed.push_back(*held);
      }
      verdict.believed.push_back(sample);
      return verdict;
    }
    if (may_have_fallen({*last, since_last, *held, sample, from_last})) {
      verdict.doubted = held;
      verdict.fell_further = !from_held;
    }
  }
  if (from_last) {
    verdict.believed.push_back(sample);
  } else {
    held_ = sample;
  }
  return verdict;
}

}  // namespace ssdpulse::analysis
