// SPDX-License-Identifier: Apache-2.0
// A device whose latencies the test chooses, I/O by I/O, and what a tick would have seen of it. Shares no code with
// what it tests: overlap, percentiles and depths are computed from the list of I/Os.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "daemon/spikes/device_spikes.h"
#include "daemon/spikes/spike_tenants.h"

namespace ssdpulse::test {

struct Service {
  double queue = 0;  // seconds
  double device = 0.001;
  bool error = false;
};

/// Offered I/Os: a rate (they come whatever the device does), or a depth (the next one comes when one has ended).
struct Load {
  model::Operation operation;
  std::function<double(double)> rate;
  std::function<double(double)> depth;
  std::uint64_t bytes = 4096;
  double think = 0;         // seconds, for a depth: after each answer
  bool commits = false;     // FUA writes
  std::string tenant = {};  // who sends them; empty: not known
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : random_(seed) {}

  /// How long an I/O takes that comes at `now`, with `depth` I/Os at the device.
  std::function<Service(double now, model::Operation operation, double depth)> law;
  std::vector<Load> loads;
  /// The drive's own counters; none: not an NVMe drive.
  std::function<model::NvmeDrive(double now)> drive;
  double poll_interval = 30;
  /// The kernel's count of I/Os in flight; asked for if nothing has completed since the last tick.
  std::function<std::optional<model::KernelInFlight>(double now)> kernel = [](double) { return std::nullopt; };
  std::function<double(double)> queue_full_share = [](double) { return 0.0; };
  double floor = 0.002;
  double tick_jitter = 0.02;
  std::function<bool(int)> tick_missing = [](int) { return false; };
  std::function<double(double)> wall_offset = [](double) { return 0.0; };

  /// A discard or a flush is in flight during this time; a flush is the whole of its commit.
  void interfere(model::Operation operation, double begin, double end);
  /// The median latency, with the spread of a real drive.
  double around(double median) { return median * std::exp(0.2 * normal_(random_)); }
  [[nodiscard]] bool beside(double begin, double end, model::Operation operation) const;
  double uniform() { return std::uniform_real_distribution<>(0, 1)(random_); }

  void run(double seconds);

  /// The wall clock at a given second of the simulation, and now.
  static model::WallTime wall(double seconds);
  [[nodiscard]] model::WallTime wall_now() const { return wall(now_); }

  std::vector<model::LatencySpike> spikes;
  std::vector<double> begins;  // of spikes, in seconds of the simulation
  std::vector<std::string> active_seen;
  std::vector<double> polls;
  spikes::DeviceSpikes subject{"nvme0n1"};
  std::vector<spikes::DeviceSpikes::Figures> figures;

 private:
  struct Interval {
    model::Operation operation;
    double begin;
    double end;
    bool issued = false;
    bool ended = false;
  };
  struct Io {
    double end;
    double begin;
    std::size_t load;
    Service service;
    bool operator>(const Io& other) const { return end > other.end; }
  };
  void issue(std::size_t load, double now);
  void complete(const Io& io);
  void advance(double until);
  void tick(double now);

  std::mt19937_64 random_;
  std::normal_distribution<> normal_;
  std::priority_queue<Io, std::vector<Io>, std::greater<>> in_flight_;
  std::vector<double> next_arrival_;
  std::vector<double> running_;
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, std::greater<>>
      thinking_;
  std::optional<model::DeviceIo> before_;  // at the last tick
  model::SteadyTime ticked_;
  std::vector<Interval> others_;  // in the order of their begins
  double longest_other_ = 0;
  std::size_t first_other_ = 0;  // which may not have ended
  model::DeviceIo io_;
  spikes::TenantWork done_;  // since the last tick
  model::NvmeDrive last_drive_;
  double now_ = 0;
  int ticks_ = 0;
  std::uint64_t completed_ = 0;  // reads and writes, at the last tick
};

}  // namespace ssdpulse::test
