// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/sibling_simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bpf/abi/latency_buckets.h"
#include "daemon/siblings/sibling_stage.h"

namespace ssdpulse::test {
namespace {

using model::Operation;

constexpr double kService = 0.02;     // seconds, the median: fewer I/Os to simulate than on fast drives
constexpr double kMeanOfTimes = 1.5;  // about, of times()
constexpr double kJiffy = 0.004;      // of the kernel's busy time
constexpr std::uint64_t kBytes = 16384;

}  // namespace

SiblingSimulation::SiblingSimulation(SiblingScene scene, std::uint64_t seed)
    : scene_(scene), random_(seed), table_(1 << 15) {
  std::normal_distribution<> normal;
  for (double& value : table_) {
    value = std::exp(0.6 * normal(random_));
    const double luck = std::uniform_real_distribution<>(0, 1)(random_);
    value *= luck < 0.02 ? std::min(200.0, 3 * std::pow(luck / 0.02, -0.7)) : 1;  // a tail without a mean to speak of
  }
  in_bursts_ = std::uniform_real_distribution<>(0.2, 0.95)(random_);
  for (int i = 0; i < 8; ++i) {
    Drive drive;
    auto device = std::make_shared<model::Device>();
    device->name = "nvme" + std::to_string(i) + "n1";
    device->model = "Example SSD";
    device->firmware = "1";
    device->transport = "nvme";
    drive.device = std::move(device);
    drive.io.since = model::WallTime(std::chrono::hours(1));
    drive.own = std::exp(0.08 * normal(random_));
    drives_.push_back(std::move(drive));
  }
}

double SiblingSimulation::times() { return table_[random_() % table_.size()]; }

void SiblingSimulation::change_load(Drive& drive, double now) {
  if (scene_.unequal && now >= drive.change_at) {
    drive.factor = std::exp2(std::uniform_real_distribution<>(-1, 1)(random_));
    drive.change_at = now + std::uniform_real_distribution<>(60, 240)(random_);
  }
  const double luck = std::uniform_real_distribution<>(0, 1)(random_);
  if (scene_.collects_garbage && now >= drive.garbage_until && luck < 1.0 / 900) {
    drive.garbage_until = now + std::uniform_real_distribution<>(60, 120)(random_);
  }
}

/// `depth`: that each finds; `burst`: I/Os that come at once, 1: they come singly.
void SiblingSimulation::serve(Drive& drive, Operation operation, double ios, double service, double depth,
                              double burst) {
  const auto count = std::poisson_distribution<std::uint64_t>(ios)(random_);
  auto& io = drive.io.operations[index(operation)];
  auto& times_of = io.device_latency[index(model::During::none)];
  times_of.words.resize(LATENCY_OVER_WORD + 1);
  io.size.words.resize(SIZE_WORDS);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double ahead = burst > 1 ? std::floor(std::uniform_real_distribution<>(0, burst)(random_)) : depth - 1;
    const double waits = std::max(0.0, std::floor(ahead / scene_.parallel));
    const double own = service * times();
    const double seconds = burst > 1 ? own + waits * service : own * std::max(1.0, depth / scene_.parallel);
    const auto ns = static_cast<std::int64_t>(seconds * 1e9);
    ++times_of.words[latency_word(ns)];
    times_of.sum_ns += static_cast<std::uint64_t>(ns);
    drive.in_flight += seconds;
  }
  io.active = true;
  io.issues += count;
  io.completions += count;
  io.bytes += count * kBytes;
  io.size.words[size_word(kBytes)] += count;
  io.size.sum_bytes += count * kBytes;
}

/// I/Os in flight on each drive if `all` of them are, and each next one goes to any drive: those that keep up complete
/// as many as each other, and the rest gathers on one that does not.
std::array<double, 8> SiblingSimulation::shared_depths(double all, const std::array<double, 8>& service) const {
  double low = 0;
  double high = 1e9;  // I/Os a second
  std::array<double, 8> depths{};
  for (int halving = 0; halving < 80; ++halving) {
    const double rate = (low + high) / 2;
    double sum = 0;
    bool possible = true;
    for (std::size_t i = 0; i < depths.size(); ++i) {
      depths[i] = rate * service[i];
      sum += depths[i];
      possible = possible && depths[i] <= scene_.parallel;
    }
    (possible && sum <= all ? low : high) = rate;
  }
  const auto slowest = static_cast<std::size_t>(std::max_element(service.begin(), service.end()) - service.begin());
  depths[slowest] += all - std::accumulate(depths.begin(), depths.end(), 0.0);
  return depths;
}

void SiblingSimulation::second(double now) {
  std::array<double, 8> services{};
  for (std::size_t i = 0; i < drives_.size(); ++i) {
    change_load(drives_[i], now);
    services[i] = kService * drives_[i].own * (now >= scene_.slow_after ? scene_.slowdown[i] : 1) *
                  (now < drives_[i].garbage_until ? 3 : 1);
  }
  const auto shared = shared_depths(scene_.shared * drives_[0].factor, services);
  const auto happens = [&](double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; };
  for (std::size_t i = 0; i < drives_.size(); ++i) {
    Drive& drive = drives_[i];
    const double service = services[i];
    drive.in_flight = 0;
    drive.busy_ratio = 0;
    drive.io.operations[index(Operation::read)].in_flight = 0;
    if (i == 3 && now >= scene_.idle_from && now < scene_.idle_until) {
      continue;
    }
    double busy = 1;
    double found = 0;  // in flight when the tick looks
    switch (scene_.load) {
      case SiblingLoad::light: {
        const double rate = 3 * drive.factor;
        serve(drive, Operation::read, rate, service, 1, 1);
        serve(drive, Operation::write, rate / 3, service / 2, 1, 1);
        busy = 1 - std::exp(-rate * (service * kMeanOfTimes + kJiffy) * 1.33);
        found = happens(rate * service * kMeanOfTimes) ? 1 : 0;
        break;
      }
      case SiblingLoad::heavy:
      case SiblingLoad::shared: {
        const double depth = scene_.load == SiblingLoad::shared ? shared[i] : scene_.depth[i] * drive.factor;
        serve(drive, Operation::read, depth / (service * kMeanOfTimes * std::max(1.0, depth / scene_.parallel)),
              service, depth, 1);
        busy = scene_.load == SiblingLoad::shared ? 1 - std::exp(-depth) : 1;
        found = happens(busy) ? std::ceil(depth) : 0;
        break;
      }
      case SiblingLoad::bursty: {
        const double rate = 40 * drive.factor;
        const double in_bursts = i == 3 ? in_bursts_ : 0;
        serve(drive, Operation::read, rate * (1 - in_bursts), service, 1, 1);
        if (in_bursts > 0) {
          serve(drive, Operation::read, rate * in_bursts, service, 1, 32);
        }
        const double busy_alone = 1 - std::exp(-rate * (1 - in_bursts) * (service * kMeanOfTimes + kJiffy));
        const double busy_in_bursts = rate * in_bursts / scene_.parallel * service;
        busy = busy_alone + busy_in_bursts;
        found = happens(busy_in_bursts) ? 16 : happens(busy_alone) ? 1 : 0;
        break;
      }
    }
    drive.busy_ratio = std::clamp(busy, 0.01, 1.0);
    drive.io.operations[index(Operation::read)].in_flight = static_cast<std::int64_t>(found);
  }
}

std::shared_ptr<const model::Snapshot> SiblingSimulation::snapshot() const {
  auto made = std::make_shared<model::Snapshot>();
  for (const Drive& drive : drives_) {
    model::DeviceSnapshot& device = made->devices.emplace_back();
    device.device = drive.device;
    device.utilisation = model::Utilisation{0, drive.busy_ratio};
  }
  return made;
}

SiblingSimulation::Outcome SiblingSimulation::run(double seconds) {
  siblings::Siblings stage;
  model::Intervals intervals;
  auto inventory = std::make_shared<model::Inventory>();
  for (std::size_t i = 0; scene_.array && i < drives_.size(); ++i) {
    inventory->memberships.push_back({"md0", drives_[i].device->name, "md", {}});
  }
  Outcome outcome;
  for (double now = 0; now < seconds; ++now) {
    if (now == scene_.replaced_at) {
      drives_[3].io = {};
      drives_[3].io.since = drives_[0].io.since + std::chrono::hours(1);
    }
    second(now);
    model::Tick tick;
    tick.at = model::SteadyTime(std::chrono::seconds(1000 + static_cast<int>(now)));
    tick.inventory = inventory;
    tick.before = snapshot();
    auto host = std::make_shared<model::HostSignals>();
    model::VolumeSignals md0;
    md0.volume = "md0";
    if (now >= scene_.rebuild_from) {
      md0.resync = model::Resync{"recover", 0.1, 1 << 20};
    }
    host->volumes.push_back(md0);
    tick.host = host;
    for (const Drive& drive : drives_) {
      model::DeviceTick& device = tick.devices.emplace_back();
      device.block.device = drive.device;
      device.block.io = std::make_shared<const model::DeviceIo>(drive.io);
    }
    intervals.set_intervals(tick);
    model::Snapshot found;
    stage.observe(tick).values(found);
    if (!found.siblings) {
      continue;
    }
    outcome.last = found.siblings;
    for (const model::SiblingRatio& ratio : found.siblings->ratios) {
      const auto drive = static_cast<std::size_t>(ratio.device[4] - '0');
      if (ratio.slow && outcome.named.insert(ratio.device).second) {
        outcome.named_at[drive] = now - scene_.slow_after;
      }
      outcome.named_for[drive] += ratio.slow && ratio.operation == Operation::read ? 1 : 0;
    }
  }
  return outcome;
}

}  // namespace ssdpulse::test
