// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/spike_simulation.h"

#include <algorithm>
#include <cmath>

#include "bpf/abi/latency_buckets.h"

namespace ssdpulse::test {
namespace {

using model::Operation;

constexpr double kStep = 0.001;  // how often new I/Os of a depth are begun

void count(model::LatencyHistogram& histogram, double seconds) {
  histogram.words.resize(LATENCY_OVER_WORD + 1);
  // Bucket i holds (2^((i-1)/8), 2^(i/8)] seconds.
  const double i = std::ceil(std::log2(std::max(seconds, 1e-6)) * 8);
  const auto word =
      static_cast<std::size_t>(LATENCY_FIRST_NATIVE_WORD + static_cast<int>(i) - LATENCY_FIRST_NATIVE_INDEX);
  ++histogram.words.at(std::min<std::size_t>(word, LATENCY_OVER_WORD));
  histogram.sum_ns += static_cast<std::uint64_t>(seconds * 1e9);
}

model::SteadyTime steady(double seconds) {
  return model::SteadyTime(std::chrono::nanoseconds(static_cast<std::int64_t>((seconds + 1000) * 1e9)));
}

}  // namespace

model::WallTime Simulation::wall(double seconds) {
  return model::WallTime(std::chrono::microseconds(static_cast<std::int64_t>((seconds + 1e9) * 1e6)));
}

void Simulation::interfere(Operation operation, double begin, double end) {
  const auto later = [](double at, const Interval& other) { return at < other.begin; };
  others_.insert(std::upper_bound(others_.begin(), others_.end(), begin, later), {operation, begin, end});
  longest_other_ = std::max(longest_other_, end - begin);
}

bool Simulation::beside(double begin, double end, Operation operation) const {
  const auto earlier = [](const Interval& other, double at) { return other.begin < at; };
  auto other = std::lower_bound(others_.begin(), others_.end(), begin - longest_other_, earlier);
  for (; other != others_.end() && other->begin <= end; ++other) {
    if (other->operation == operation && begin <= other->end) {
      return true;
    }
  }
  return false;
}

void Simulation::issue(std::size_t load, double now) {
  const Operation operation = loads[load].operation;
  auto& io = io_.operations[index(operation)];
  const Service service = law(now, operation, static_cast<double>(in_flight_.size()));
  io.active = true;
  ++io.issues;
  ++io.in_flight;
  ++running_[load];
  in_flight_.push({now + service.queue + service.device, now, load, service});
}

void Simulation::complete(const Io& done) {
  auto& io = io_.operations[index(loads[done.load].operation)];
  const double issued = done.begin + done.service.queue;
  const bool discard = beside(issued, done.end, Operation::discard);
  const bool flush = beside(issued, done.end, Operation::flush);
  const auto during = discard ? (flush ? model::During::both : model::During::discard)
                              : (flush ? model::During::flush : model::During::none);
  count(io.device_latency[index(during)], done.service.device);
  count(io.queue_latency, done.service.queue);
  count(io.total_latency, done.end - done.begin);
  ++io.completions;
  --io.in_flight;
  io.bytes += loads[done.load].bytes;
  io.errors[index(model::IoError::medium)] += done.service.error ? 1 : 0;
  if (loads[done.load].commits) {
    count(io_.commit_latency, done.end - done.begin);
  }
  if (const Load& load = loads[done.load]; !load.tenant.empty()) {
    model::AttributedTotals& totals = done_[load.tenant].totals[load.operation == Operation::read ? 0 : 1];
    ++totals.ios;
    totals.bytes += load.bytes;
    totals.device_ns += static_cast<std::uint64_t>(done.service.device * 1e9);
  }
  thinking_.push({now_ + loads[done.load].think, done.load});
}

void Simulation::advance(double until) {
  next_arrival_.resize(loads.size(), 0);
  running_.resize(loads.size(), 0);
  for (; now_ < until; now_ += kStep) {
    while (!in_flight_.empty() && in_flight_.top().end <= now_) {
      complete(in_flight_.top());
      in_flight_.pop();
    }
    while (!thinking_.empty() && thinking_.top().first <= now_) {
      --running_[thinking_.top().second];
      thinking_.pop();
    }
    for (std::size_t load = 0; load < loads.size(); ++load) {
      const Load& offered = loads[load];
      if (offered.depth) {
        while (running_[load] < offered.depth(now_)) {
          issue(load, now_);
        }
        continue;
      }
      const double rate = offered.rate(now_);
      while (rate > 0 && next_arrival_[load] <= now_) {
        issue(load, now_);
        next_arrival_[load] =
            std::max(next_arrival_[load], now_ - kStep) + std::exponential_distribution<>(rate)(random_);
      }
    }
    while (first_other_ < others_.size() && others_[first_other_].ended) {
      ++first_other_;
    }
    for (std::size_t next = first_other_; next < others_.size() && others_[next].begin <= now_; ++next) {
      Interval& other = others_[next];
      auto& io = io_.operations[index(other.operation)];
      if (!other.issued) {
        other.issued = true;
        ++io.issues;
        ++io.in_flight;
      }
      if (other.issued && !other.ended && other.end <= now_) {
        other.ended = true;
        ++io.completions;
        --io.in_flight;
        count(io.device_latency[index(model::During::none)], other.end - other.begin);
        if (other.operation == Operation::flush) {
          count(io.total_latency, other.end - other.begin);
          count(io_.commit_latency, other.end - other.begin + 1e-4);
        }
      }
    }
    io_.operations[0].queue_full_ns += static_cast<std::uint64_t>(queue_full_share(now_) * kStep * 1e9);
  }
}

void Simulation::tick(double now) {
  if (drive &&
      (polls.empty() || now - polls.back() >= poll_interval || (subject.wants_logs() && now - polls.back() >= 10))) {
    last_drive_ = drive(now);
    last_drive_.polling.up = true;
    last_drive_.polling.read_at = last_drive_.write_amplification.read_at = steady(now);
    polls.push_back(now);
  }
  spikes::SpikeTick tick;
  tick.at = steady(now);
  tick.wall = wall(now + wall_offset(now));
  if (before_) {
    tick.interval =
        std::make_shared<const model::DeviceInterval>(model::between(*before_, io_, tick.at - ticked_).value());
  }
  before_ = io_;
  ticked_ = tick.at;
  tick.drive = drive ? &last_drive_ : nullptr;
  const std::uint64_t completed = io_.operations[0].completions + io_.operations[1].completions;
  if (std::exchange(completed_, completed) == completed) {
    tick.kernel_in_flight = kernel(now);
  }
  tick.floor_seconds = floor;
  tick.tenants = std::exchange(done_, {});
  for (model::LatencySpike& spike : subject.observe(tick)) {
    begins.push_back(std::chrono::duration<double>(spike.begin - wall(0)).count());
    spikes.push_back(std::move(spike));
  }
  figures.push_back(subject.figures());
  for (const auto& figure : subject.figures()) {
    if (figure.active) {
      active_seen.emplace_back(model::kSpikeCauseNames[index(*figure.active)]);
    }
  }
}

void Simulation::run(double seconds) {
  const double until = now_ + seconds;
  while (now_ < until) {
    const double jitter = tick_jitter * uniform();
    advance(std::floor(now_ + 1 - 1e-9) + jitter);
    if (!tick_missing(ticks_++)) {
      tick(now_);
    }
  }
}

}  // namespace ssdpulse::test
