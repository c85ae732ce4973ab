// SPDX-License-Identifier: Apache-2.0
// Eight drives whose device times the test chooses, I/O by I/O, and what the ticks of a host would have seen of them.
// Shares no code with what it tests: what an I/O takes follows from a law of service and waiting, and the truth is what
// the test put in.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "daemon/model/device_interval.h"
#include "daemon/model/sibling_latency.h"
#include "daemon/model/stage.h"

namespace ssdpulse::test {

/// How the host uses its drives.
enum class SiblingLoad : std::uint8_t {
  light,   // I/Os come at random, and rarely meet
  heavy,   // on each drive, so many I/Os are always in flight
  bursty,  // most I/Os come in bursts on one drive, and singly on the others
  shared,  // so many I/Os are in flight on all drives together: they gather on the slowest
};

struct SiblingScene {
  SiblingLoad load = SiblingLoad::light;
  bool unequal = false;  // each drive has a rate or depth of its own, which changes every few minutes
  std::array<double, 8> slowdown{1, 1, 1, 1, 1, 1, 1, 1};
  double slow_after = 300;                              // seconds
  double parallel = 8;                                  // I/Os that a drive serves at once; more have to wait
  std::array<double, 8> depth{8, 8, 8, 8, 8, 8, 8, 8};  // of heavy loads that are equal
  double shared = 64;                                   // I/Os in flight on all drives together
  double idle_from = 1e9;                               // seconds; nvme3n1 alone
  double idle_until = 1e9;
  double replaced_at = 1e9;       // seconds; nvme3n1, by another drive that is called so
  double rebuild_from = 1e9;      // seconds; until the end
  bool array = true;              // they are members of md0; otherwise only of one model
  bool collects_garbage = false;  // every drive is three times slower for a minute or two, now and then
};

class SiblingSimulation {
 public:
  SiblingSimulation(SiblingScene scene, std::uint64_t seed);

  struct Outcome {
    std::set<std::string> named;       // ever
    std::array<double, 8> named_at{};  // seconds after the slowdown began; 0: never
    std::array<double, 8> named_for{};
    std::shared_ptr<const model::SiblingFigures> last;
  };
  /// nvme0n1 to nvme7n1.
  Outcome run(double seconds);

 private:
  struct Drive {
    std::shared_ptr<const model::Device> device;
    model::DeviceIo io;
    double own = 1;     // what it differs by from its siblings although it is healthy
    double factor = 1;  // of its load
    double change_at = 0;
    double garbage_until = 0;
    double in_flight = 0;   // on average, in this second
    double busy_ratio = 0;  // in this second
  };
  void second(double now);
  [[nodiscard]] std::array<double, 8> shared_depths(double all, const std::array<double, 8>& service) const;
  void change_load(Drive& drive, double now);
  void serve(Drive& drive, model::Operation operation, double ios, double service, double depth, double burst);
  double times();  // of the usual service: heavy-tailed
  [[nodiscard]] std::shared_ptr<const model::Snapshot> snapshot() const;

  SiblingScene scene_;
  std::mt19937_64 random_;
  std::vector<double> table_;
  double in_bursts_ = 0;  // of the I/Os of nvme3n1, where some come in bursts
  std::vector<Drive> drives_;
};

}  // namespace ssdpulse::test
