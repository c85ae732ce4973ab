// SPDX-License-Identifier: Apache-2.0
#include "daemon/wear/checked_ledger.h"

#include <initializer_list>

namespace ssdpulse::wear {
namespace {

constexpr Uint128 kGrains = 2;  // whole units can be off by one at either end

using Counter = std::optional<model::ByteCounter>;
using Time = std::chrono::nanoseconds;

/// A unit that is not known yet is assumed to be the one that will be found.
bool comparable(const Counter& from, const Counter& to) {
  return from && to && (from->unit_bytes == to->unit_bytes || from->unit_bytes == 0 || to->unit_bytes == 0);
}

bool fell(const Counter& from, const Counter& to) { return comparable(from, to) && to->count < from->count; }

bool leaps(const Counter& from, const Counter& to, Time time) {
  if (!comparable(from, to)) {
    return false;
  }
  const Uint128 limit = most_bytes_in(time) + multiply(kGrains, to->unit_bytes);
  return to->count > from->count &&
         (to->count == kUnbounded || multiply(to->count - from->count, to->unit_bytes) > limit);
}

/// No fall, and no growth beyond what a drive can do. (A late counter may show more: the next sample confirms it.)
bool continues(const WriteSample& from, const WriteSample& to) {
  const Time time = to.at - from.at;
  return !fell(from, to) && !leaps(from.host_after, to.host_after, time) && !leaps(from.media, to.media, time);
}

/// Lacks a counter that the other has.
bool lacks_counter(const WriteSample& sample, const WriteSample& other) {
  return !sample.host_before || !sample.host_after || (other.media && !sample.media);
}

/// The held sample, between the newest accepted sample and the next.
struct Trio {
  const WriteLedger::Newest& newest;
  const WriteSample& held;
  const WriteSample& next;

  [[nodiscard]] Time until_held() const { return newest.timed ? held.at - newest.sample.at : kLongestAbsence; }
  [[nodiscard]] Time until_next() const { return next.at - held.at; }

  /// Leaps that no drive can take, however late its counters are.
  [[nodiscard]] bool leaps_to_held() const {
    return leaps(newest.sample.host_after, held.host_after, until_held() + newest.behind.host) ||
           leaps(newest.sample.media, held.media, until_held() + newest.behind.media);
  }
  [[nodiscard]] bool leaps_from_held() const {
    return leaps(held.host_after, next.host_after, until_next() + newest.behind.host) ||
           leaps(held.media, next.media, until_next() + newest.behind.media);
  }
};

/// Whether one counter fell to its held value, from that value, or between its two reads. A count that leaps is
/// ignored. `certain`: the value after it is true.
bool may_have_fallen(const Trio& samples, Time behind, const Counter& before, std::initializer_list<Counter> held,
                     const Counter& after, bool certain) {
  Counter previous = before;
  bool possible = false;
  for (const Counter& count : held) {
    const bool absurd = leaps(before, count, samples.until_held() + behind) ||
                        (certain && leaps(count, after, samples.until_next() + behind));
    if (!absurd && fell(previous, count)) {
      return true;
    }
    possible = possible || !absurd;
    previous = absurd ? previous : count;
  }
  return possible && fell(previous, after);
}

bool may_have_fallen(const Trio& samples, bool certain) {
  const auto& [newest, held, next] = samples;
  const WriteSample& before = newest.sample;
  return may_have_fallen(samples, newest.behind.host, before.host_after, {held.host_before, held.host_after},
                         next.host_before, certain) ||
         may_have_fallen(samples, newest.behind.media, before.media, {held.media}, next.media, certain);
}

}  // namespace

bool fell(const WriteSample& from, const WriteSample& to) {
  return fell(from.host_after, to.host_before) || fell(to.host_before, to.host_after) || fell(from.media, to.media);
}

SampleGate::Verdict SampleGate::judge(const std::optional<WriteLedger::Newest>& newest, const WriteSample& sample) {
  Verdict verdict;
  const bool same_drive = newest && newest->sample.serial == sample.serial;
  if (!same_drive || lacks_counter(sample, newest->sample)) {
    verdict.accepted.push_back(sample);
    held_ = same_drive ? held_ : std::nullopt;
    return verdict;
  }
  const bool from_newest = continues(newest->sample, sample);
  if (const auto held = std::exchange(held_, std::nullopt)) {
    const Trio samples{*newest, *held, sample};
    const bool from_held = continues(*held, sample);
    const bool grew = !fell(newest->sample, *held) && !fell(*held, sample);
    if (!from_newest && (from_held || (grew && !samples.leaps_from_held()))) {
      verdict.leapt = samples.leaps_to_held();
      verdict.accepted = {*held, sample};
      return verdict;
    }
    if (may_have_fallen(samples, from_newest)) {
      verdict.doubted = held;
      verdict.fell_further = !from_held;
    }
  }
  if (from_newest) {
    verdict.accepted.push_back(sample);
  } else {
    held_ = sample;
  }
  return verdict;
}

void CheckedLedger::observe(const WriteSample& sample) {
  const SampleGate::Verdict verdict = gate_.judge(ledger_.newest(), sample);
  if (verdict.doubted) {
    ledger_.doubt(*verdict.doubted, verdict.fell_further);
  }
  if (verdict.leapt) {
    ledger_.interrupt();
  }
  for (const WriteSample& accepted : verdict.accepted) {
    ledger_.observe(accepted);
    newest_ = accepted;
  }
}

std::string CheckedLedger::save() const {
  if (!in_doubt()) {
    return ledger_.save();
  }
  WriteLedger doubting = ledger_;
  doubting.doubt(*gate_.held(), true);
  return doubting.save();
}

util::Result<CheckedLedger> CheckedLedger::restore(std::string_view text, Time poll_interval, Time at,
                                                   std::chrono::system_clock::time_point wall) {
  return WriteLedger::restore(text, poll_interval, at, wall).map([&](WriteLedger&& ledger) {
    CheckedLedger checked(poll_interval);
    checked.ledger_ = std::move(ledger);
    return checked;
  });
}

}  // namespace ssdpulse::wear
