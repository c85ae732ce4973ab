// SPDX-License-Identifier: Apache-2.0
// BioIo: what the bios of a block device did: of a volume (dm, md and the like, which take bios without making requests
// of them), or of a disk or partition that lies directly below one. VolumeDrift: how far that is from the kernel's own
// count. Values only.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/block_io.h"

namespace ssdpulse::model {

/// Those that a bio can have: all but passthrough.
inline constexpr std::size_t kBioOperations = index(Operation::passthrough);

/// Cumulative. At rest, submitted = ended (latency.count()) + untimed + missed.
struct BioOperation {
  std::uint64_t submitted = 0;  // as their submitters made them: one bio, whatever it was split into below
  std::uint64_t bytes = 0;      // of these
  std::uint64_t errors = 0;     // of those that ended
  std::uint64_t untimed = 0;    // no room to remember them, not done (EAGAIN), ended in pieces or unreported
  std::uint64_t missed = 0;     // they are gone, and no end was seen
  std::int64_t in_flight = 0;
  LatencyHistogram latency;  // from the submission, after throttling, to the end

  [[nodiscard]] bool active() const { return submitted != 0; }
};

struct BioIo {
  std::string device;
  bool is_volume = false;  // takes bios itself; false: its requests are measured, too
  std::array<BioOperation, kBioOperations> operations;
  std::chrono::system_clock::time_point since;  // when counting began
};

/// What the bios of a device did lately.
struct RecentBios {
  struct Latency {
    std::uint64_t ended = 0;
    double mean_seconds = 0;
    double p50_seconds = 0;  // upper bounds of their buckets
    double p99_seconds = 0;
  };
  std::string device;
  double read_bytes_per_second = 0;
  double written_bytes_per_second = 0;
  std::optional<Latency> read = {};  // absent: none ended
  std::optional<Latency> write = {};
};

/// How much of a bio's time on a volume is spent in the volume itself: not below it, on what it lies on. Only of kinds
/// that pass each bio on as it is (LVM, LUKS, reads of a mirror), while nothing about them changes, where nearly all
/// bios below were timed, and nothing was seen that may have held bios up on their way down.
struct FloorTime {
  std::vector<std::string> volumes;  // several, if they share members: their bios cannot be told apart there
  std::vector<std::string> members;
  Operation operation;
  std::uint64_t ended = 0;  // bios of the volumes
  double mean_seconds = 0;  // of these
  /// Mean. Every bio of the members is taken for one after another and for this volume's, so it is at least this.
  double own_seconds = 0;
  bool exact = false;         // each bio became one bio below: it is this
  std::string heaviest = {};  // of the volumes, the one whose bios took nearly all of the time; empty: none
  double mean_bytes = 0;
};

/// Less is not worth a sentence: of the mean, and of all that a bio takes.
inline constexpr double kMinOwnSeconds = 0.001;
inline constexpr double kMinOwnShare = 0.5;

/// A floor that has become slow by itself: for some seconds, much more time is spent in it than is usual for it, and at
/// least half of what its bios take.
struct SlowFloor {
  FloorTime time;                   // of the last seconds
  double usual_own_seconds = 0;     // of bios as large as these
  std::chrono::seconds slow_for{};  // with the interval between two proofs, if nothing is known of it
};

/// Of about the last minute.
struct VolumeFigures {
  double seconds = 0;               // length of that time
  std::vector<RecentBios> devices;  // as BioIo: volumes and members; sorted
  std::vector<FloorTime> floors;
  std::vector<SlowFloor> slow = {};
};

/// Bytes of a volume by our count less those in the kernel's diskstats, since both were first at rest. Absent where the
/// kernel does not count them.
struct VolumeDrift {
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;  // with those of write zeroes
  std::optional<std::int64_t> discarded_bytes;
  bool operator==(const VolumeDrift&) const = default;
};

}  // namespace ssdpulse::model
