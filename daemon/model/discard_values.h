// SPDX-License-Identifier: Apache-2.0
// DiscardSubmissions and DiscardBursts: what submits them, how much each submitter sent, and the bursts that discards
// form. Values only.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/base/complete.h"
#include "daemon/base/outside_text.h"

namespace ssdpulse::model {

/// Determined by what submitted a discard, never by what dispatched it. `online`: a file system that is mounted with
/// discard, by a kernel thread or in the context of the program that deleted something.
enum class DiscardTrigger : std::uint8_t { fstrim, online, blkdiscard, mkfs, other };
inline constexpr std::size_t kDiscardTriggers = util::count_of<DiscardTrigger>();
inline constexpr auto kDiscardTriggerNames =
    util::names<DiscardTrigger>({"fstrim", "online", "blkdiscard", "mkfs", "other"});

/// What one kind of submitter sent to one volume (a disk or a partition), cumulative. Times are CLOCK_MONOTONIC.
struct DiscardSubmissions {
  std::uint64_t ranges = 0;
  std::uint64_t bytes = 0;
  std::uint64_t first_ns = 0;  // the first one after a second without any
  std::uint64_t last_ns = 0;
  util::OutsideText submitter;  // name of the last one
};

/// The kernel distinguishes its own threads from programs; only the mounts show whether they work for a mount option.
enum class DiscardSubmitter : std::uint8_t { fstrim, kernel, blkdiscard, mkfs, other };
inline constexpr std::size_t kDiscardSubmitters = util::count_of<DiscardSubmitter>();
using DiscardSubmitters = std::array<DiscardSubmissions, kDiscardSubmitters>;

/// Bursts of one device and trigger, cumulative, including those still running.
struct DiscardBursts {
  std::uint64_t bursts = 0;
  std::uint64_t bytes = 0;  // completed
  std::uint64_t duration_ns = 0;
  bool active = false;
};
using DiscardBurstsByTrigger = std::array<DiscardBursts, kDiscardTriggers>;

/// One of them: discards of one trigger, close together.
struct Burst {
  std::string device;
  DiscardTrigger trigger{};
  std::chrono::system_clock::time_point begin;               // within a snapshot's interval
  std::optional<std::chrono::system_clock::time_point> end;  // nothing: it is ongoing
  std::uint64_t bytes = 0;                                   // completed so far
};

/// What was submitted to the volume under a mounted file system, since it was first seen mounted like this.
struct FilesystemDiscards {
  std::string volume;  // the partition or disk that it lies directly on: dm-0 rather than the drive below
  util::OutsideText mountpoint;
  bool mounted_with_discard = false;
  std::array<std::uint64_t, kDiscardTriggers> bytes{};
  std::chrono::system_clock::time_point since;
};

/// Whether members of an md or dm device currently have a burst that was submitted to that device.
struct ArrayDiscards {
  std::string array;
  std::array<bool, kDiscardTriggers> active{};
};

}  // namespace ssdpulse::model
