// SPDX-License-Identifier: Apache-2.0
// DeviceLoad: what a device did in a stretch of time. Exact sums: the load of an hour, or of any other window, is that
// of its minutes added up, word for word. Values only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/attribution.h"
#include "daemon/model/latency_buckets.h"
#include "daemon/model/operation.h"
#include "daemon/model/snapshot.h"
#include "daemon/util/complete.h"

namespace ssdpulse::model {

/// What has a latency histogram. `total`: allocation to final completion. `device`: last issue to final completion, by
/// what else was in flight on the drive. `queue`: allocation to first issue. Flushes and discards: device time where it
/// is measured, else total time. Commits: what a caller of fsync waits for. Files depend on this order: add at the end.
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

struct OperationLoad {
  std::uint64_t ios = 0;  // final completions
  std::uint64_t bytes = 0;
  std::uint64_t sequential_bytes = 0;  // see OperationIo, like the next
  std::uint64_t queue_full_ns = 0;
  std::uint64_t errors = 0;  // of all kinds
  bool operator==(const OperationLoad&) const = default;
};

struct DeviceLoad {
  std::uint64_t measured_ms = 0;  // of the stretch: less if the daemon or the device was absent for part of it
  std::array<OperationLoad, kOperations> operations{};
  std::array<std::uint64_t, kLosses> losses{};
  std::array<SparseHistogram, kLatencies> latencies;

  bool operator==(const DeviceLoad&) const = default;
  [[nodiscard]] const SparseHistogram& latency(Latency wanted) const { return latencies[index(wanted)]; }
  /// Device times, whatever else was in flight.
  [[nodiscard]] SparseHistogram device(Operation read_or_write) const;
};

void add(DeviceLoad& sum, const DeviceLoad& more);

/// Nothing if a count went backwards: the device's counters restarted. `measured`: the time between the two.
std::optional<DeviceLoad> load_between(const DeviceIo& before, const DeviceIo& after,
                                       std::chrono::milliseconds measured);

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
std::vector<TenantLoad> heaviest(std::vector<TenantLoad> tenants, std::size_t most = kHeaviestTenants);
void add(std::vector<TenantLoad>& sum, const std::vector<TenantLoad>& more);

}  // namespace ssdpulse::model
