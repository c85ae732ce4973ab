// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/spike_causes.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

namespace ssdpulse::spikes {
namespace {

using model::During;
using model::EvidenceKey;
using model::SpikeCause;
using Sum = SpikeTally::Sum;

/// A second with this share of the usual throughput was not a stall.
constexpr double kFullSpeed = 0.8;

bool at_full_speed(const IoWindow& window, const UsualLoad& usual) {
  const double seconds = window.seconds();
  return static_cast<double>(window.ios()) / seconds >= kFullSpeed * usual.ios_per_second() ||
         static_cast<double>(window.bytes()) / seconds >= kFullSpeed * usual.bytes_per_second();
}

/// I/Os of a window, split by whether they overlapped discards (or flushes).
struct Split {
  std::uint64_t slow = 0;  // that overlapped one
  std::uint64_t others = 0;
  std::uint64_t slow_others = 0;
};

Split split(const OperationInterval& window, model::During only, double limit) {
  Split parts;
  for (std::size_t during = 0; during < model::kDurings; ++during) {
    const SparseBuckets& buckets = window.device[during].words;
    if (during == index(only) || during == index(During::both)) {
      parts.slow += count_above(buckets, limit);
    } else {
      parts.others += count(buckets);
      parts.slow_others += count_above(buckets, limit);
    }
  }
  return parts;
}

/// Whether, within this window alone, I/Os that overlapped discards (or flushes) were slow and enough others were not.
bool shows_contrast(const Split& split, std::uint64_t min_others) {
  return split.slow > 0 && split.others >= min_others && split.slow_others * 10 <= split.others;
}

}  // namespace

void SpikeTally::add(const IoWindow& window, const UsualLoad& usual) {
  using model::Operation;
  const OperationInterval& own = window.operation(measured_by());
  sum_.seconds += window.seconds();
  sum_.stalled_seconds += own.stalled() ? window.seconds() : 0;
  const bool nothing = own.stalled() && window.ios() + window.operation(Operation::flush).ios == 0;
  sum_.standstill_seconds = own.stalled() ? sum_.standstill_seconds + window.seconds() : 0;
  sum_.standstill_waited_seconds =
      own.stalled() ? sum_.standstill_waited_seconds + window.seconds() * static_cast<double>(own.least_in_flight())
                    : 0;
  sum_.device_standstill_seconds = nothing ? sum_.device_standstill_seconds + window.seconds() : 0;
  sum_.longest_standstill_seconds = std::max(sum_.longest_standstill_seconds, sum_.standstill_seconds);
  sum_.longest_device_standstill_seconds =
      std::max(sum_.longest_device_standstill_seconds, sum_.device_standstill_seconds);
  sum_.ios += own.ios;
  sum_.errors += own.device_errors;
  sum_.failovers += own.failovers;
  sum_.requeues += own.requeues;
  const bool of_writes = measured_by() == Operation::write;
  const OperationInterval& other = window.operation(of_writes ? Operation::read : Operation::write);
  sum_.other_errors += other.device_errors + other.failovers;
  sum_.other_requeues += other.requeues;
  sum_.busy_seconds += seconds_of(own.device_ns());
  sum_.queue_full_seconds += seconds_of(own.queue_full_ns);
  sum_.all_ios += window.ios();
  sum_.all_bytes += window.bytes();
  sum_.full_speed_seconds += window.ios() > 0 && at_full_speed(window, usual) ? window.seconds() : 0;
  sum_.commits += window.operation(Operation::commit).ios;
  const auto interference = [&](Interference& sum, const OperationInterval& now, model::During only) {
    constexpr std::uint64_t kMinOthers = 3;
    Split parts = split(own, only, part_limit_);
    sum.issues += now.issues;
    sum.in_flight = now.in_flight_after;
    sum.busy_seconds += seconds_of(now.device_ns());
    sum.contrast_seconds += shows_contrast(parts, kMinOthers) ? window.seconds() : 0;
    const Split of_other = split(other, only, part_limit_);
    parts.others += of_other.others;
    parts.slow_others += of_other.slow_others;
    sum.any_contrast_seconds += shows_contrast(parts, 1) ? window.seconds() : 0;
  };
  interference(sum_.discards, window.operation(Operation::discard), During::discard);
  interference(sum_.flushes, window.operation(Operation::flush), During::flush);
  for (std::size_t during = 0; during < model::kDurings; ++during) {
    DuringSums& sums = sum_.device[during];
    sums.ios += count(own.device[during].words);
    sums.slow_ios += count_above(own.device[during].words, part_limit_);
    sums.slow_seconds += seconds_above(own.device[during].words, part_limit_);
    spikes::add(sum_.device_buckets, own.device[during].words);
  }
  sum_.slow_total_seconds += seconds_above(own.total.words, part_limit_);
  sum_.slow_queue_seconds += seconds_above(own.queue.words, part_limit_);
  spikes::add(sum_.queue_buckets, own.queue.words);
  spikes::add(sum_.total_buckets, window.operation(operation_).total.words);
  spikes::add(sum_.flush_buckets, window.operation(Operation::flush).total.words);
}

namespace {

constexpr double kCauseTail = 0.99;
constexpr double kQueueAlone = 2;            // queue time is a cause of its own if its tail is this much longer
constexpr std::uint64_t kMinToCompare = 10;  // I/Os that did not overlap the interference
constexpr double kMoreLoad = 1.25;
constexpr double kMore = 2;  // discards or flushes, times the usual number
constexpr double kDeeper = 1.5;
constexpr double kMoreFull = 0.2;
constexpr double kSteady = 0.7;
constexpr double kSure = 0.9;
constexpr double kSlowerFlush = 1.5;  // times the usual time of a flush
constexpr double kSurer = 0.95;       // heat also explains what garbage collection would

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
/// Unless there was none.
void note(CauseVerdict& verdict, EvidenceKey key, double value) {
  if (value > 0) {
    verdict.evidence[key] = value;
  }
}
double share(std::uint64_t part, std::uint64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}
double tail(const SparseBuckets& buckets) {
  return count(buckets) > 0 ? upper_bound_seconds(quantile_bucket(buckets, kCauseTail)) : 0;
}

SpikeTally::DuringSums sums_during(const Sum& sum, std::initializer_list<During> durings) {
  SpikeTally::DuringSums all;
  for (const During during : durings) {
    all.ios += sum.device[index(during)].ios;
    all.slow_ios += sum.device[index(during)].slow_ios;
    all.slow_seconds += sum.device[index(during)].slow_seconds;
  }
  return all;
}

/// The number of discards (or flushes) that is usual for what the host reads and writes: a busy host sends more of
/// them.
double expected_issues(const Sum& sum, const UsualInterference& usual, double load) {
  return usual.per_second * std::max(1.0, load) * sum.seconds;
}

/// Whether the excess is more than chance: if few are expected, twice as many are nothing unusual.
bool is_more(double issues, double expected) { return issues >= kMore * expected + std::sqrt(expected); }

/// How much of the device's slow time overlaps discards (or flushes), 0..1.
///
/// A slow I/O overlaps a lot just because it takes long. So there must be more discards (or flushes) than usual. A less
/// certain sign is that they take up more of the time than usual (a process that waits for each flush sends fewer when
/// they become slow), and that second by second the I/Os that overlap none were fast while those that do were not. Few
/// I/Os overlap none when one is under way most of the time; then reads and writes are taken together.
double interference(const Sum& sum, During only, const SpikeTally::Interference& seen, double expected,
                    const UsualInterference& usual) {
  constexpr double kClearlyMore = 1.25;
  constexpr double kMostly = 0.5;
  constexpr double kLessSure = 0.4;
  const auto all = sums_during(sum, {During::none, During::discard, During::flush, During::both});
  const auto with = sums_during(sum, {only, During::both});
  const auto others = all.ios - with.ios;
  const double slow_share = ratio(with.slow_seconds, all.slow_seconds);
  if (others >= kMinToCompare && share(all.slow_ios - with.slow_ios, others) > share(with.slow_ios, with.ios) / 2) {
    return 0;  // I/Os that overlap none suffer just as much
  }
  if (seen.issues > 0 && is_more(static_cast<double>(seen.issues), expected)) {
    return slow_share;
  }
  const double depth = ratio(seen.busy_seconds, sum.seconds);
  // If there is only one at a time, it can take up no more than all of the time.
  const double more = std::max(kClearlyMore * usual.depth, std::min(kMore * usual.depth, (1 + usual.depth) / 2));
  const bool more_of_the_time = depth > 0 && depth >= more;
  const bool contrast =
      seen.contrast_seconds >= sum.seconds / 2 || (depth >= kMostly && seen.any_contrast_seconds >= sum.seconds / 2);
  return more_of_the_time && contrast ? slow_share * kLessSure : 0;
}

/// The load relative to the usual load, in I/Os or in bytes.
double load_of(const Sum& sum, const UsualLoad& usual) {
  const double bytes = ratio(static_cast<double>(sum.all_bytes), sum.seconds);
  const double ios = ratio(static_cast<double>(sum.all_ios), sum.seconds);
  return std::max(ratio(bytes, usual.bytes_per_second()), ratio(ios, usual.ios_per_second()));
}

/// The device is at its ceiling: its load is higher than usual or all its tags are taken, it has more in flight, and it
/// makes steady progress. A device that stalls also has more in flight, but does less.
double saturation(const SpikeTally& tally, const UsualLoad& usual, CauseVerdict& verdict) {
  const Sum& sum = tally.sum();
  const UsualOperation& own = usual.operation(tally.measured_by());
  const double load = load_of(sum, usual);
  const double depth = ratio(ratio(sum.busy_seconds, sum.seconds), own.depth);
  const double full = ratio(sum.queue_full_seconds, sum.seconds);
  const double steady = ratio(sum.full_speed_seconds, sum.seconds);
  verdict.evidence[EvidenceKey::load_to_baseline] = load;
  verdict.evidence[EvidenceKey::depth_to_baseline] = depth;
  verdict.evidence[EvidenceKey::queue_full_share] = full;
  verdict.evidence[EvidenceKey::full_speed_share] = steady;
  const bool at_ceiling = load >= kMoreLoad || full >= own.queue_full_share + kMoreFull;
  return at_ceiling && steady >= kSteady && depth >= kDeeper ? kSure : 0;
}

/// A commit is slow because the device's flushes are slow: those within it took most of its time.
double flushes_within(const Sum& sum, const UsualLoad& usual, CauseVerdict& verdict) {
  const double part = std::min(1.0, ratio(tail(sum.flush_buckets), tail(sum.total_buckets)));
  verdict.evidence[EvidenceKey::flush_to_commit] = part;
  const UsualOperation& before = usual.operation(model::Operation::flush);
  const double usual_seconds = ratio(before.depth, before.ios_per_second);
  const double seconds = ratio(sum.flushes.busy_seconds, static_cast<double>(sum.flushes.issues));
  const bool slower = usual_seconds <= 0 || seconds >= kSlowerFlush * usual_seconds;
  const bool more =
      is_more(static_cast<double>(sum.commits), usual.operation(model::Operation::commit).ios_per_second * sum.seconds);
  return part >= model::kFlushPartOfCommit && (slower || more) ? kSure : 0;
}

/// Errors are rare enough that any of them in a spike means something; their number shows how much.
double errors(const Sum& sum, std::uint64_t slow_ios, double device_seconds, CauseVerdict& verdict) {
  const double own = static_cast<double>(sum.errors + sum.failovers);
  const double slow = std::max(1.0, static_cast<double>(slow_ios));
  note(verdict, EvidenceKey::errors, static_cast<double>(sum.errors));
  note(verdict, EvidenceKey::failovers, static_cast<double>(sum.failovers));
  note(verdict, EvidenceKey::requeues, static_cast<double>(sum.requeues));
  note(verdict, EvidenceKey::other_errors, static_cast<double>(sum.other_errors));
  note(verdict, EvidenceKey::other_requeues, static_cast<double>(sum.other_requeues));
  if (sum.requeues + sum.failovers > 0) {
    // Between the first issue and the last: neither queue nor device time.
    const double again =
        ratio(std::max(0.0, sum.slow_total_seconds - sum.slow_queue_seconds - device_seconds), sum.slow_total_seconds);
    verdict.evidence[EvidenceKey::retry_share] = again;
    if (again > 0.5) {
      return again;
    }
  }
  if (own > 0) {
    return 0.5 + 0.5 * std::min(1.0, own / slow);
  }
  if (sum.other_errors > 0) {
    return 0.4;
  }
  return 0.5 * std::min(1.0, static_cast<double>(sum.requeues) / slow);
}

/// Nothing that was slow has completed yet: all there is to go by is what else is in flight. Discards or flushes that
/// come in any such period are in flight only because everything is.
SpikeCause cause_of_stall(const Sum& sum, const UsualLoad& usual) {
  const auto in_flight = [&sum](const SpikeTally::Interference& seen, const UsualInterference& before) {
    return seen.in_flight > 0 && is_more(static_cast<double>(seen.in_flight), expected_issues(sum, before, 1));
  };
  if (in_flight(sum.discards, usual.discards())) {
    return SpikeCause::discard;
  }
  return in_flight(sum.flushes, usual.flushes()) ? SpikeCause::flush : SpikeCause::unknown;
}

/// How many flushes and discards there were, relative to the usual, and how long nothing completed.
void note_amounts(const Sum& sum, const UsualLoad& usual, CauseVerdict& verdict) {
  constexpr double kMaxRatio = 1000;  // also where there are usually none
  const auto note_times = [&](EvidenceKey key, std::uint64_t issues, double usual_per_second) {
    if (issues > 0 || usual_per_second > 0) {
      const double expected = usual_per_second * sum.seconds;
      const double times = static_cast<double>(issues) / std::max(expected, 1 / kMaxRatio);
      verdict.evidence[key] = std::max(verdict.evidence[key], std::min(kMaxRatio, times));
    }
  };
  // The kernel sends one flush for the commits that wait together: the more of them there are, the fewer flushes each
  // has.
  note_times(EvidenceKey::flushes_to_baseline, sum.flushes.issues, usual.flushes().per_second);
  note_times(EvidenceKey::flushes_to_baseline, sum.commits, usual.operation(model::Operation::commit).ios_per_second);
  note_times(EvidenceKey::discards_to_baseline, sum.discards.issues, usual.discards().per_second);
  note(verdict, EvidenceKey::standstill_seconds, sum.standstill_seconds);
  note(verdict, EvidenceKey::standstill_waited_seconds, sum.standstill_waited_seconds);
  note(verdict, EvidenceKey::longest_standstill_seconds, sum.longest_standstill_seconds);
  note(verdict, EvidenceKey::device_standstill_seconds, sum.device_standstill_seconds);
  note(verdict, EvidenceKey::longest_device_standstill_seconds, sum.longest_device_standstill_seconds);
}

std::vector<std::string> missing_for(bool measured, const DriveVerdict* drive) {
  std::vector<std::string> missing;
  if (!measured) {
    missing.emplace_back("device and queue time are not measured");
  }
  if (drive == nullptr) {
    missing.emplace_back("no log pages of this drive");
  } else if (drive->missing.empty()) {
    missing.emplace_back("the drive's logs show neither garbage collection nor heat");
  } else {
    missing.insert(missing.end(), drive->missing.begin(), drive->missing.end());
  }
  return missing;
}

/// What comes first in an incident: the higher, the surer is it that the others are consequences.
double weight_of(const SpikeVerdict& spike) {
  constexpr double kSureError = 0.5;
  const bool more_load = spike.load_to_baseline >= kMoreLoad;
  switch (spike.cause) {
    case SpikeCause::discard:
    case SpikeCause::gc:
    case SpikeCause::thermal:
      return 3 + spike.proof;
    case SpikeCause::error:
      return (spike.proof >= kSureError ? 3 : 1) + spike.proof;
    case SpikeCause::flush:
      // More flushes bring more writes with them; without more, slow flushes make writes wait, too.
      return spike.flushes_to_baseline >= model::kMoreFlushes ? 2 + spike.proof : 0.95 * spike.proof;
    case SpikeCause::saturation:
      return 1 + spike.proof;
    case SpikeCause::queue:
      return more_load ? 1 + spike.proof : 0.8 * spike.proof;
    case SpikeCause::unknown:
      break;
  }
  return 0;
}

}  // namespace

CauseVerdict find_cause(const SpikeTally& tally, const UsualLoad& usual, const DriveVerdict* drive) {
  const Sum& sum = tally.sum();
  CauseVerdict verdict;
  const auto all = sums_during(sum, {During::none, During::discard, During::flush, During::both});
  const double parts = all.slow_seconds + sum.slow_queue_seconds;

  const bool commits = tally.operation() == model::Operation::commit;
  // If the device is slow too, the wait in the queue is a consequence.
  const bool queue_alone = tail(sum.queue_buckets) >= kQueueAlone * tail(sum.device_buckets);
  // Within a commit, a write waits for the flush before it.
  const double within = commits ? flushes_within(sum, usual, verdict) : 0;
  const double queue = queue_alone && within == 0 ? ratio(sum.slow_queue_seconds, parts) : 0;
  // What is in flight is at the device.
  const bool stalled = parts <= 0 && sum.stalled_seconds > 0;
  const double device = parts > 0 ? 1 - queue : stalled || commits ? 1 : 0;
  const auto overlap = [&](During only, const SpikeTally::Interference& seen, const UsualInterference& before) {
    return device * interference(sum, only, seen, expected_issues(sum, before, load_of(sum, usual)), before);
  };
  const double discard = overlap(During::discard, sum.discards, usual.discards());
  const double flush = std::max(overlap(During::flush, sum.flushes, usual.flushes()), within);
  const double rest = std::max(0.0, device - std::max(discard, flush));

  std::array<double, model::kSpikeCauses> scores{};
  scores[index(SpikeCause::discard)] = discard;
  scores[index(SpikeCause::flush)] = flush;
  scores[index(SpikeCause::queue)] = queue;
  scores[index(SpikeCause::saturation)] = rest * saturation(tally, usual, verdict);
  scores[index(SpikeCause::error)] = errors(sum, all.slow_ios, all.slow_seconds, verdict);
  scores[index(SpikeCause::unknown)] = kMinScore;
  const auto best_of = [&scores] {
    return static_cast<SpikeCause>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  };
  verdict.host_side = best_of() != SpikeCause::unknown && scores[index(best_of())] >= rest * kSure;
  if (drive != nullptr) {
    scores[index(SpikeCause::gc)] = drive->gc ? rest * kSure : 0;
    scores[index(SpikeCause::thermal)] = drive->thermal ? rest * kSurer : 0;
    verdict.evidence.insert(drive->evidence.begin(), drive->evidence.end());
  }
  verdict.cause = best_of();
  verdict.proof = scores[index(verdict.cause)];
  verdict.only_within = verdict.cause == SpikeCause::flush && within > 0;
  // As they were measured, whatever the scores make of them.
  if (parts > 0) {
    verdict.evidence[EvidenceKey::device_share] = all.slow_seconds / parts;
    verdict.evidence[EvidenceKey::queue_share] = sum.slow_queue_seconds / parts;
  }
  if (all.slow_seconds > 0) {
    verdict.evidence[EvidenceKey::during_discards_share] =
        sums_during(sum, {During::discard, During::both}).slow_seconds / all.slow_seconds;
    if (tally.operation() != model::Operation::flush) {
      verdict.evidence[EvidenceKey::during_flushes_share] =
          sums_during(sum, {During::flush, During::both}).slow_seconds / all.slow_seconds;
    }
  }
  note_amounts(sum, usual, verdict);
  for (std::size_t cause = 0; cause < model::kClaimableCauses; ++cause) {
    note(verdict, score_of(static_cast<SpikeCause>(cause)), scores[cause]);
  }
  if (verdict.cause == SpikeCause::unknown) {
    verdict.missing = missing_for(device > 0 || queue > 0, drive);
    verdict.cause = stalled ? cause_of_stall(sum, usual) : SpikeCause::unknown;
    verdict.proof = verdict.cause == SpikeCause::unknown ? 0 : kMinScore;
  }
  return verdict;
}

SpikeCause cause_of_incident(const std::vector<SpikeVerdict>& spikes) {
  constexpr double kSmallPart = 0.1;  // of the longest waiting with a known cause: its own is not that of the incident
  double longest = 0;
  double unexplained = 0;  // seconds that reads or writes waited for an unknown reason, and commits for their flushes
  double within = 0;
  for (const SpikeVerdict& spike : spikes) {
    longest = spike.cause == SpikeCause::unknown ? longest : std::max(longest, spike.excess_seconds);
    const bool data = spike.operation == model::Operation::read || spike.operation == model::Operation::write;
    unexplained += data && spike.cause == SpikeCause::unknown ? spike.excess_seconds : 0;
    within += spike.only_within ? spike.excess_seconds : 0;
  }
  const SpikeVerdict* best = nullptr;
  for (const SpikeVerdict& spike : spikes) {
    const bool explains_nothing = spike.only_within && spike.flushes_to_baseline < model::kMoreFlushes &&
                                  unexplained >= within && unexplained > 0;
    if (spike.cause == SpikeCause::unknown || spike.excess_seconds < kSmallPart * longest || explains_nothing) {
      continue;
    }
    if (best == nullptr ||
        std::pair(weight_of(spike), spike.excess_seconds) > std::pair(weight_of(*best), best->excess_seconds)) {
      best = &spike;
    }
  }
  return best == nullptr ? SpikeCause::unknown : best->cause;
}

}  // namespace ssdpulse::spikes
