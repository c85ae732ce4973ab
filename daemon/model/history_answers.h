// SPDX-License-Identifier: Apache-2.0
// Series, PastMoment, PastDay: what the history knows about a window of time, as history/history_reader.h answers it.
// Values only.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/model/device_interval.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::model {

using PastTime = std::chrono::sys_time<std::chrono::minutes>;

/// What a device did from `start` on, for a minute, or for an hour where the minutes are no longer kept. A missing time
/// was not measured; it never means a load of zero.
struct MinuteOf {
  std::string device;  // the kernel's name when it was last seen
  PastTime start;
  std::chrono::minutes length{1};
  DeviceInterval load;
};

/// `from` is included, `to` is not.
struct Window {
  PastTime from;
  PastTime to;
  bool operator==(const Window&) const = default;
};

/// A device that the history knows, whatever name it had.
struct PastDevice {
  std::string name;  // the last one
  util::OutsideText model;
  util::OutsideText serial;
  PastTime first;                   // that is kept
  PastTime last;                    // ignoring rows stamped while the clock was ahead
  util::OutsideText identity = {};  // unique in the history: DeviceKey::identity
};

/// How far back the history goes. Before `minutes` there are only hours, before those nothing. Absent: there are none.
struct PastReach {
  std::optional<PastTime> minutes;
  std::optional<PastTime> hours;
};

/// Something that somebody did to the host and wanted to find again later: `ssdpulse mark`.
struct Mark {
  WallTime at;
  util::OutsideText text;
  bool clock_ahead = false;  // stamped while the clock was ahead; it was set back later. Likewise below
  /// Chosen by the sender, so that sending it again makes no second mark. Empty: it can be sent only once.
  std::string id = {};
};

/// A setting that was seen to have changed. `before` absent: it was seen for the first time.
struct SettingChange {
  WallTime at;
  util::OutsideText device;  // its name, or its identity if no device has that now; empty: of the host
  util::OutsideText name;
  std::optional<util::OutsideText> before;
  util::OutsideText value;
  util::OutsideText identity = {};  // as PastDevice::identity; empty: of the host
  bool clock_ahead = false;
};

/// A LatencySpike as the history keeps it.
struct PastSpike {
  WallTime begin;
  std::string device;
  util::OutsideText operation;  // of kSpikeOperations
  double duration_seconds = 0;
  double peak_seconds = 0;
  double baseline_seconds = 0;
  std::uint64_t ios = 0;
  util::OutsideText cause;     // kSpikeCauseNames
  util::OutsideText evidence;  // see evidence_text()
  util::OutsideText missing;   // see missing_text()
  bool has_columns = false;    // the seconds around it are kept
  double excess_seconds = 0;   // waited in it beyond the baseline
  bool clock_ahead = false;
};

/// A HostWait as the history keeps it.
struct PastWait {
  WallTime begin;
  util::OutsideText cause;  // kHostWaitCauseNames
  util::OutsideText subject;
  std::string device;
  std::string tenant;
  double duration_seconds = 0;
  util::OutsideText evidence;  // name=value ..., where each value is a number but kWaitCommand's
  util::OutsideText file;
  bool clock_ahead = false;
};
inline constexpr std::string_view kWaitCommand = "command";

struct PastBurst {
  WallTime begin;
  std::string device;
  util::OutsideText trigger;  // kDiscardTriggerNames
  double duration_seconds = 0;
  std::uint64_t bytes = 0;  // discarded
  bool clock_ahead = false;
};

/// What is known about one minute, for all devices.
struct PastMoment {
  /// What one device did in `window`.
  struct Measured {
    std::string device;  // the kernel's name when it was last seen
    std::uint64_t measured_ms = 0;
    std::uint64_t ios = 0;
  };
  Window window;                           // the minute; the hour that holds it where minutes are no longer kept
  std::vector<Measured> devices;           // none: nothing was recorded then
  std::vector<PastSpike> spikes;           // that touch the minute, however coarse the window
  std::vector<PastBurst> bursts;           // that touch one of those spikes
  std::vector<PastWait> waits;             // that touch the minute
  std::optional<PastTime> recorded_until;  // where nothing was recorded: the end of what came before,
  std::optional<PastTime> recorded_from;   // and the beginning of what came after
  PastReach reach;
};

/// The last 24 hours of every device in slots of equal length, and its last hour.
struct PastDay {
  static constexpr std::chrono::minutes kSlot{15};
  static constexpr std::size_t kSlots = 96;

  /// The spike with the most waiting; among equals, the one with the highest peak.
  struct Worst {
    WallTime begin;
    util::OutsideText operation;
    util::OutsideText cause;
    double duration_seconds = 0;
    double peak_seconds = 0;
    double excess_seconds = 0;
  };
  struct Slot {
    std::uint32_t measured_minutes = 0;  // 0: nothing was recorded, so no spike or burst does not mean none
    std::uint64_t spikes = 0;            // that touch the slot, like the next
    std::uint64_t bursts = 0;
    std::optional<Worst> worst = {};  // of its spikes
  };
  struct Device {
    std::string name;  // the kernel's; of the device that had it last
    std::array<Slot, kSlots> slots{};
    std::uint64_t spikes = 0;  // each once, however many slots it touches; like the next
    std::uint64_t bursts = 0;
    std::uint64_t hour_measured_ms = 0;  // of the last hour; 0: nothing is known about it
    SparseHistogram hour_reads;          // total latency, like the next
    SparseHistogram hour_writes;
  };
  Window window;                // of the slots; the last one is not over
  Window hour;                  // the last 60 whole minutes
  std::vector<Device> devices;  // that were there in the window, by name
  PastReach reach;
};

/// What a drive reported, and what was computed from it.
struct PastWear {
  PastTime at;
  std::optional<double> percentage_used;  // 0.01 is one percent, like the spare
  std::optional<double> available_spare;
  std::optional<double> temperature_celsius;
  std::optional<double> host_bytes;   // written since the previous point, by the drive's own counters
  std::optional<double> media_bytes;  // likewise: media / host is the write amplification
  util::OutsideText source;           // of both
  double host_unit_bytes = 0;         // in which the drive counts: a difference is off by less than one; 0: unknown
  double media_unit_bytes = 0;
};

/// One stretch of a series, and what was measured in it.
struct SeriesPoint {
  PastTime start;
  DeviceInterval load;
};

/// Everything to be shown about a device in a window.
struct Series {
  PastDevice device;
  Window window;  // as far as it is known: there is nothing outside it
  std::chrono::minutes step{1};
  std::vector<SeriesPoint> points;               // ascending; gaps were not measured
  std::vector<std::vector<TenantLoad>> tenants;  // one for each point, each may be empty; or none at all
  std::vector<PastWear> wear;
  std::vector<PastSpike> spikes;
  std::vector<PastBurst> bursts;
  std::vector<PastWait> waits;  // those without a device may be of a volume or a file system on another
  std::vector<SettingChange> settings;
  std::vector<Mark> marks;
  /// Where something was stamped by a clock that was ahead, and is not in the points: by the minute, or by the hour.
  std::vector<Window> clock_ahead;
  bool cut = false;  // there are more spikes, bursts, waits, changes or marks than fit: the newest are here
  PastReach reach;
};

}  // namespace ssdpulse::model
