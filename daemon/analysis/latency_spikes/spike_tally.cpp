// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/spike_tally.h"

#include <algorithm>

namespace ssdpulse::analysis {
namespace {

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
    if (during == index(only) || during == index(model::During::both)) {
      parts.slow += count_above(buckets, limit);
    } else {
      parts.others += count(buckets);
      parts.slow_others += count_above(buckets, limit);
    }
  }
  return parts;
}

/// Within this window alone, I/Os that overlapped discards (or flushes) were slow and the others, of which there were
/// some, were not.
bool shows_contrast(const Split& split, std::uint64_t least_others) {
  return split.slow > 0 && split.others >= least_others && split.slow_others * 10 <= split.others;
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
  interference(sum_.discards, window.operation(Operation::discard), model::During::discard);
  interference(sum_.flushes, window.operation(Operation::flush), model::During::flush);
  for (std::size_t during = 0; during < model::kDurings; ++during) {
    DuringSums& sums = sum_.device[during];
    sums.ios += count(own.device[during].words);
    sums.slow_ios += count_above(own.device[during].words, part_limit_);
    sums.slow_seconds += seconds_above(own.device[during].words, part_limit_);
    analysis::add(sum_.device_buckets, own.device[during].words);
  }
  sum_.slow_total_seconds += seconds_above(own.total.words, part_limit_);
  sum_.slow_queue_seconds += seconds_above(own.queue.words, part_limit_);
  analysis::add(sum_.queue_buckets, own.queue.words);
  analysis::add(sum_.total_buckets, window.operation(operation_).total.words);
  analysis::add(sum_.flush_buckets, window.operation(Operation::flush).total.words);
}

}  // namespace ssdpulse::analysis
