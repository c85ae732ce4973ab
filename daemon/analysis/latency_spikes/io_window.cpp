// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/io_window.h"

#include <algorithm>
#include <numeric>

#include "bpf/abi/latency_buckets.h"

namespace ssdpulse::analysis {
namespace {

using model::Difference;
using model::IoError;
using model::Operation;
using model::OperationIo;
using model::RequeueReason;

/// A full file system, an unsupported command and a request not to wait say nothing about the device.
std::uint64_t device_errors(const OperationIo& io) {
  const auto all = std::accumulate(io.errors.begin(), io.errors.end(), std::uint64_t{0});
  return all - io.errors[index(IoError::again)] - io.errors[index(IoError::nospace)] -
         io.errors[index(IoError::unsupported)];
}

std::uint64_t device_ns(const OperationIo& io) {
  return std::accumulate(io.device_latency.begin(), io.device_latency.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& histogram) { return sum + histogram.sum_ns; });
}

double seconds_of(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

OperationWindow operation_between(const OperationIo& before, const OperationIo& after, Difference& difference) {
  OperationWindow window;
  window.total = difference.of(before.total_latency.words, after.total_latency.words);
  window.total_seconds = seconds_of(difference.of(before.total_latency.sum_ns, after.total_latency.sum_ns));
  window.queue = difference.of(before.queue_latency.words, after.queue_latency.words);
  for (std::size_t during = 0; during < model::kDurings; ++during) {
    window.device[during] = difference.of(before.device_latency[during].words, after.device_latency[during].words);
  }
  window.ios = difference.of(before.completions, after.completions);
  window.bytes = difference.of(before.bytes, after.bytes);
  window.errors = difference.of(device_errors(before), device_errors(after));
  window.failovers =
      difference.of(before.requeues[index(RequeueReason::failover)], after.requeues[index(RequeueReason::failover)]);
  window.requeues =
      difference.of(before.requeues[index(RequeueReason::driver)], after.requeues[index(RequeueReason::driver)]);
  window.busy_seconds = seconds_of(difference.of(device_ns(before), device_ns(after)));
  window.queue_full_seconds = seconds_of(difference.of(before.queue_full_ns, after.queue_full_ns));
  window.in_flight_before = before.in_flight;
  window.in_flight_after = after.in_flight;
  return window;
}

OperationWindow commits_between(const model::LatencyHistogram& before, const model::LatencyHistogram& after,
                                Difference& difference) {
  OperationWindow window;
  window.total = difference.of(before.words, after.words);
  window.total_seconds = seconds_of(difference.of(before.sum_ns, after.sum_ns));
  window.ios = count(window.total);
  return window;
}

}  // namespace

std::optional<IoWindow> window_between(const model::DeviceIo& before, SteadyTime begin, const model::DeviceIo& after,
                                       SteadyTime end) {
  if (end <= begin || before.since != after.since) {
    return std::nullopt;
  }
  Difference difference;
  IoWindow window;
  window.begin = begin;
  window.end = end;
  for (const Operation operation : {Operation::read, Operation::write, Operation::flush}) {
    window.operations[operation] =
        operation_between(before.operation(operation), after.operation(operation), difference);
  }
  window.operations[model::Operation::commit] =
      commits_between(before.commit_latency, after.commit_latency, difference);
  window.missed = difference.of(before.losses[index(model::Loss::completion_missed)],
                                after.losses[index(model::Loss::completion_missed)]);
  const auto interference = [&](Operation operation) {
    const OperationIo& was = before.operation(operation);
    const OperationIo& now = after.operation(operation);
    return InterferenceWindow{difference.of(was.issues, now.issues), now.in_flight,
                              seconds_of(difference.of(device_ns(was), device_ns(now)))};
  };
  window.discards = interference(Operation::discard);
  window.flushes = interference(Operation::flush);
  return difference.good() ? std::optional(std::move(window)) : std::nullopt;
}

std::size_t first_word_above(double limit) {
  const double ns = std::clamp(limit * 1e9, 0.0, 100e9);
  return latency_word(static_cast<std::int64_t>(ns)) + std::size_t{1};
}

std::uint64_t count_above(const SparseBuckets& words, double limit) {
  const std::size_t first = first_word_above(limit);
  return std::accumulate(words.begin(), words.end(), std::uint64_t{0}, [first](std::uint64_t sum, const auto& one) {
    return sum + (one.first >= first ? one.second : 0);
  });
}

double seconds_above(const SparseBuckets& words, double limit) {
  const std::size_t first = first_word_above(limit);
  double sum = 0;
  for (const auto& [word, ios] : words) {
    sum += word < first ? 0 : static_cast<double>(ios) * upper_bound_seconds(word);
  }
  return sum;
}

double excess_above(const SparseBuckets& words, double limit, double usual) {
  constexpr double kToMiddle = 0.957603;  // 2^(-1/16): there are eight words to an octave
  const std::size_t first = first_word_above(limit);
  double sum = 0;
  for (const auto& [word, ios] : words) {
    const double over = word < first ? 0 : upper_bound_seconds(word) * kToMiddle - usual;
    sum += static_cast<double>(ios) * std::max(0.0, over);
  }
  return sum;
}

double slowest_seconds(const SparseBuckets& words) {
  return words.empty() ? 0 : upper_bound_seconds(words.back().first);
}

double slowest_seconds(const OperationWindow& window) {
  const double bound = slowest_seconds(window.total);
  const bool any_beyond = !window.total.empty() && window.total.back().first == LATENCY_OVER_WORD;
  const double beyond = any_beyond ? static_cast<double>(window.total.back().second) : 0;
  const double others = seconds_above(window.total, 0) - beyond * bound;
  return beyond > 0 ? std::max(bound, (window.total_seconds - others) / beyond) : bound;
}

}  // namespace ssdpulse::analysis
