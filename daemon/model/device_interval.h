// SPDX-License-Identifier: Apache-2.0
// DeviceInterval: what a device did between two readings of its cumulative counters: one tick, a minute, an hour, or
// any other window. Exact sums: the interval of an hour is that of its minutes added up, bucket by bucket. Intervals:
// that of each device in each tick.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/model/block_io.h"
#include "daemon/model/clock.h"
#include "daemon/model/latency_buckets.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::model {

struct Tick;  // stage.h

/// What one operation did. Commits have only `ios` and `total`.
struct OperationInterval {
  std::uint64_t ios = 0;  // final completions
  std::uint64_t bytes = 0;
  std::uint64_t sequential_bytes = 0;  // see OperationIo, like the next
  std::uint64_t queue_full_ns = 0;
  std::uint64_t errors = 0;  // of all kinds

  // Of one tick: add() and the history leave them out.
  std::uint64_t device_errors = 0;  // errors that say something about the device
  std::uint64_t issues = 0;
  std::uint64_t failovers = 0;  // to another path
  std::uint64_t requeues = 0;   // by the driver: retries, or a device that is busy
  std::int64_t in_flight_before = 0;
  std::int64_t in_flight_after = 0;

  // Of reads, writes, flushes and discards.
  SparseHistogram total = {};                         // allocation to final completion
  SparseHistogram queue = {};                         // allocation to first issue
  std::array<SparseHistogram, kDurings> device = {};  // last issue to final completion, by what else was in flight

  bool operator==(const OperationInterval&) const = default;
  /// Any of the counts that the history keeps.
  [[nodiscard]] bool any() const { return (ios | bytes | sequential_bytes | queue_full_ns | errors) != 0; }
  /// Device times, whatever else was in flight.
  [[nodiscard]] SparseHistogram in_device() const;
  [[nodiscard]] std::uint64_t device_ns() const;
  [[nodiscard]] std::int64_t least_in_flight() const {
    return std::max<std::int64_t>(0, std::min(in_flight_before, in_flight_after));
  }
  /// Something was in flight all the time, apart from what leaked, and nothing completed.
  [[nodiscard]] bool stalled(std::int64_t leaked = 0) const { return ios == 0 && least_in_flight() > leaked; }
};

/// The histograms that are kept for long. The history and the API depend on this order and these names: add at the end.
/// `flush` and `discard`: OperationInterval::device[0], see kept().
enum class Latency : std::uint8_t {
  read_total,
  write_total,
  read_device_none,  // by During, like the next ones
  read_device_discard,
  read_device_flush,
  read_device_both,
  write_device_none,
  write_device_discard,
  write_device_flush,
  write_device_both,
  read_queue,
  write_queue,
  flush,
  commit,
  discard
};
inline constexpr std::size_t kLatencies = util::count_of<Latency>();
inline constexpr auto kLatencyNames =
    util::names<Latency>({"read_total", "write_total", "read_device_none", "read_device_discard", "read_device_flush",
                          "read_device_both", "write_device_none", "write_device_discard", "write_device_flush",
                          "write_device_both", "read_queue", "write_queue", "flush", "commit", "discard"});

struct DeviceInterval {
  std::uint64_t measured_ms = 0;  // of the interval: less if the daemon or the device was absent for part of it
  std::array<OperationInterval, util::count_of<Operation>()> operations{};
  std::array<std::uint64_t, kLosses> losses{};

  bool operator==(const DeviceInterval&) const = default;
  [[nodiscard]] const OperationInterval& operation(Operation which) const { return operations[index(which)]; }
  [[nodiscard]] const SparseHistogram& latency(Latency wanted) const;
  [[nodiscard]] SparseHistogram& latency(Latency wanted);
};

void add(DeviceInterval& sum, const DeviceInterval& more);

/// Nothing if a count went backwards: the device's counters restarted. `measured`: the time between the two.
std::optional<DeviceInterval> between(const DeviceIo& before, const DeviceIo& after, std::chrono::nanoseconds measured);

/// Takes the interval of each device once, for all stages. Must see every tick; for one thread.
class Intervals {
 public:
  /// Sets DeviceTick::interval of each device.
  void set_intervals(Tick& tick);

 private:
  std::map<std::string, std::shared_ptr<const DeviceIo>> before_;  // of the devices of the last tick
  SteadyTime at_;
};

/// What the history keeps of it. Of flushes and discards that is the device time where it was measured, else the total.
DeviceInterval kept(DeviceInterval interval);

/// What one tenant did. The heaviest keep their names; all others together are kOtherTenants.
struct TenantLoad {
  std::string name;
  TotalsByOperation totals{};
  bool operator==(const TenantLoad&) const = default;
};
inline constexpr std::size_t kHeaviestTenants = 8;
inline constexpr std::string_view kOtherTenants = "other";

/// Keeps the heaviest, by device time or, where there is none, by bytes; the rest becomes kOtherTenants. Exact: the
/// sums over all do not change.
std::vector<TenantLoad> heaviest(std::vector<TenantLoad> tenants, std::size_t max_names = kHeaviestTenants);
void add(std::vector<TenantLoad>& sum, const std::vector<TenantLoad>& more);

}  // namespace ssdpulse::model
