// SPDX-License-Identifier: Apache-2.0
// An NVMe drive: its identity, what it reports, and the wear that follows from it.
// Values only. Counters keep the drive's own unit and all 128 bits; everything else is in base units.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/nvme_fields.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::model {

/// A namespace of the drive that this host sees as a block device.
struct NvmeNamespace {
  std::string device;                          // nvme0n1: the head, never a path
  std::uint32_t nsid = 0;                      // 1..FFFFFFFEh
  std::uint16_t endurance_group = 0;           // Identify Namespace bytes 103:102; 0: none
  std::uint32_t write_granularity_blocks = 0;  // NPWG, NPWA: preferred, in logical blocks; 0: unknown
  std::uint32_t write_alignment_blocks = 0;
  std::optional<double> used_share = {};  // NUSE of NSZE: blocks in use, 0 to 1; many drives always report 1
  /// Bytes of a logical block -> RP of its format: 0 best, 3 degraded. Only formats without metadata; empty if the
  /// format in use has metadata.
  std::map<std::uint32_t, std::uint8_t> block_sizes = {};
  bool operator==(const NvmeNamespace&) const = default;
};

/// What the drive is and can do, as it reports: sysfs and the Identify data structures (NVM Express Base 2.x, 5.1.13).
struct NvmeIdentity {
  std::string controller;  // nvme0: the lowest live one of its subsystem
  util::OutsideText subsystem_nqn;
  std::string transport;  // pcie, tcp, rdma, fc, loop
  std::uint16_t vendor_id = 0;
  std::uint16_t subsystem_vendor_id = 0;
  util::OutsideText serial;  // leading and trailing blanks removed, as of the next two
  util::OutsideText model;
  util::OutsideText firmware;
  std::uint32_t version = 0;                // VER, e.g. 0x10400
  std::uint32_t controller_attributes = 0;  // CTRATT: bit 4 endurance groups, bit 9 UUID list, bit 19 FDP
  std::uint16_t endurance_group_max = 0;    // ENDGIDMAX
  std::uint16_t admin_commands = 0;         // OACS: bit 5 directives, which include streams
  std::vector<std::uint16_t> endurance_groups;
  std::vector<std::array<std::uint8_t, 16>> uuids;           // UUID list; the UUID index of the first is 1
  std::array<std::uint8_t, 1024> vendor_specific{};          // Identify Controller bytes 4095:3072
  std::optional<std::uint64_t> host_memory_preferred_bytes;  // HMPRE: for its own use; 0: it requests none
  std::optional<std::uint64_t> host_memory_minimum_bytes;    // HMMIN
  std::vector<NvmeNamespace> namespaces;
};

/// Drives that write less the better the data compresses: only their media may receive less than the host writes.
inline bool compresses(std::uint16_t vendor_id, const util::OutsideText& model) {
  constexpr std::uint16_t kScaleFlux = 0xCC53;
  return vendor_id == kScaleFlux || model.contains("ScaleFlux") || model.contains("CSD-");
}

/// How a drive rounds a counter of whole units.
enum class Rounding : std::uint8_t {
  exact,    // the true value, in units of one byte
  up,       // units begun
  unknown,  // off by less than one unit, either way
};

using Uint128 = unsigned __int128;

/// More than any drive writes in that time, to its media or for the host. The rate is more than four lanes of PCI
/// Express 7 carry. A fraction of a second counts as a whole one, because two counters of a sample are not read at the
/// same time.
constexpr Uint128 most_bytes_in(std::chrono::nanoseconds time) {
  constexpr Uint128 kMaxBytesPerSecond = 64'000'000'000;
  const auto whole = std::chrono::ceil<std::chrono::seconds>(time).count();
  return kMaxBytesPerSecond * static_cast<Uint128>(whole < 1 ? 1 : whole);
}

/// A counter of bytes as the drive keeps it: `count` units of `unit_bytes` each.
struct ByteCounter {
  Uint128 count = 0;
  std::uint64_t unit_bytes = 1;  // 0: the unit is not known (see analysis/write_amplification/unit_calibration.h)
  Rounding rounding = Rounding::exact;
};

/// What one page reports about writes. A counter that the drive does not report (0 where a standard says so) is absent.
struct WriteCounters {
  std::optional<ByteCounter> host;   // written by the host
  std::optional<ByteCounter> media;  // written to the media: host, garbage collection, refresh, metadata
};

/// The best estimate of one window, and the bounds that hold whatever the counters' granularity hid.
struct WriteAmplificationRatio {
  std::string window;          // 5m, 1h, 24h, 7d, lifetime
  double covered_seconds = 0;  // of the window; 0 for lifetime
  double age_seconds = 0;      // of the window's end at the newest reading: more than 0 where counters lag
  double ratio = 0;
  double lower = 0;
  double upper = 0;
};

/// Seconds until the drive's rated endurance is used up, at the rate of the window.
struct LifeRemaining {
  std::string basis;  // percentage_used, endurance_estimate
  double window_seconds = 0;
  double seconds = 0;
};

/// What is known about a drive's write amplification, and from which source.
struct WriteAmplification {
  std::string source;                        // fdp, ocp, a vendor page, endurance_group; empty: none
  std::string reason;                        // why no better source, or why none
  std::optional<double> host_written_bytes;  // cumulative, across resets of the drive's counters
  std::optional<double> media_written_bytes;
  double idle_media_written_bytes = 0;             // written to the media while the host wrote nothing
  std::optional<double> host_written_drift_bytes;  // the drive's host counter less the block layer's
  std::optional<double> host_written_drift_lower_bytes;
  std::optional<double> host_written_drift_upper_bytes;
  std::chrono::system_clock::time_point since;
  std::uint64_t epochs = 0;                                      // how often the counters were reset
  double host_doubt_bytes = 0;                                   // how far a difference of bytes written may be off,
  double media_doubt_bytes = 0;                                  // because counters count whole units
  std::optional<std::chrono::steady_clock::time_point> read_at;  // of the newest reading of counters that was accepted
  std::vector<WriteAmplificationRatio> ratios;                   // those whose bounds are narrow enough
  std::string withheld;  // why ratios with narrow bounds are not among them; empty: all are
  std::vector<LifeRemaining> life_remaining;
};

/// How polling a drive goes.
struct NvmePolling {
  bool up = false;
  std::string reason;       // why not, in words
  std::uint64_t polls = 0;  // begun
  // By kind: refused, timeout, short, garbage, gone, impossible (a page that cannot be true), unconfirmed (a page that
  // waits for another reading), ...
  std::map<std::string, std::uint64_t> failures;
  std::string doubted;                               // the last impossible or unconfirmed page, in words
  std::optional<double> last_success_seconds;        // since the epoch
  double last_duration_seconds = 0;                  // of all the commands of one poll
  double interval_seconds = 0;                       // between polls: longer than configured where reading logs hurts
  std::map<std::string, std::string> refused_pages;  // pages that are not requested again: why, in words
  std::optional<std::chrono::steady_clock::time_point> read_at;  // last_success_seconds by the monotonic clock
  std::optional<double> read_effect_ratio;  // p99 of reads and writes near a log read, over that of the others
};

struct NvmeDrive {
  std::shared_ptr<const NvmeIdentity> identity;
  std::vector<NvmeValue> values;  // of the newest successful reading of each page
  WriteAmplification write_amplification;
  NvmePolling polling;
};

}  // namespace ssdpulse::model
