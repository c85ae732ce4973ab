// SPDX-License-Identifier: Apache-2.0
// DiscardBurstFinder, FilesystemDiscardCounter: which bursts of discards there were on a device, what caused them, and
// what discards on each mounted file system. Pure: one call per tick. Figures passed in are cumulative and may restart
// at 0.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/model/device.h"
#include "daemon/model/discard_values.h"

namespace ssdpulse::discards {

/// `submitter`: a model::DiscardSubmitter. Kernel threads act for a file system's mount option, or for an unknown
/// reason; so do programs if `callers_discard` (see there).
model::DiscardTrigger trigger_of(std::size_t submitter, bool mounted_with_discard, bool callers_discard);

struct SubmissionIncrement {
  std::uint64_t bytes = 0;
  std::uint64_t ranges = 0;
};

/// How far one volume's submitters have been counted.
class SubmissionCursor {
 public:
  /// By submitter, since the last call; at the first call, everything.
  std::array<SubmissionIncrement, model::kDiscardSubmitters> advance(const model::DiscardSubmitters& now);

 private:
  std::array<SubmissionIncrement, model::kDiscardSubmitters> counted_{};
};

/// Cumulative; read before the submissions, so that no completion is seen before its submission.
struct DiscardRequests {
  std::uint64_t issues = 0;
  std::uint64_t completions = 0;
  std::uint64_t bytes = 0;
  std::int64_t in_flight = 0;
  std::uint64_t last_end_ns = 0;  // 0: unknown
};

/// Where the discards of the device are submitted: the device itself, a partition of it, or an array above it.
struct DiscardVolume {
  const model::DiscardSubmitters* submitters = nullptr;
  bool is_array = false;
  bool mounted_with_discard = false;  // its kernel threads count as `online`
  bool carries_array = false;         // its kernel threads pass down an array's discards, and submit none themselves
  bool callers_discard = false;       // so do programs, for which its file system discards in their own context
};

struct DiscardTick {
  std::uint64_t now_ns = 0;  // CLOCK_MONOTONIC, like all times here
  std::uint64_t gap_ns = 0;  // silence that ends a burst
  DiscardRequests requests;
  std::map<std::string, DiscardVolume> volumes;  // by name; absent: not known
};

struct DiscardBurst {
  model::DiscardTrigger trigger{};
  std::uint64_t begin_ns = 0;  // first submission
  std::uint64_t end_ns = 0;    // last completion so far
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  std::optional<std::uint64_t> ranges;  // submitted; unknown once an array has passed down some of the bytes
  util::OutsideText submitter;          // the last one's name; empty if none was seen
  std::set<std::string> volumes;        // that it was submitted to; of stacked volumes, the uppermost
};

/// For one device. Matches submissions (by whom; to this device, its partitions or an array above it) with what the
/// device completed. Bytes are always the device's own completed bytes, each in exactly one trigger; when several are
/// active, they share those bytes in proportion to what is outstanding, in whole sectors.
///
/// Submissions make a trigger's bytes pending; completions reduce them. Bytes that complete without a submission to the
/// device go to the triggers that submit to the arrays above it, or else to `other`. An array that passes discards down
/// on its own threads (dm-thin's pool) is not a submitter: its bytes would be counted twice.
class DiscardBurstFinder {
 public:
  /// Returns the bursts that ended.
  std::vector<DiscardBurst> observe(const DiscardTick& tick);

  [[nodiscard]] const model::DiscardBurstsByTrigger& figures() const { return figures_; }
  [[nodiscard]] const std::optional<DiscardBurst>& running(std::size_t trigger) const {
    return triggers_[trigger].burst;
  }

 private:
  using Bytes = std::array<std::uint64_t, model::kDiscardTriggers>;
  struct Trigger {
    std::uint64_t pending = 0;   // bytes submitted to the device and not completed
    std::uint64_t above = 0;     // bytes submitted to arrays, however many reach the device
    std::uint64_t first_ns = 0;  // the submission that began the next or the running burst; 0: none
    std::uint64_t last_ns = 0;
    std::uint64_t ranges = 0;  // submitted to the device
    bool passed_down = false;  // bytes of this burst were submitted to an array
    util::OutsideText submitter;
    std::set<std::string> volumes;   // that are submitted to
    std::set<std::string> carriers;  // the same, with an array on top
    std::uint64_t ended_ns = 0;      // of the last burst
    std::uint64_t finished_ns = 0;   // duration of all bursts that ended
    std::optional<DiscardBurst> burst;
    bool is_new = false;  // the burst began with this tick: it is shown as active once, however short it was
  };

  void take(const std::string& name, const DiscardVolume& volume, const DiscardTick& tick);
  Bytes divide(std::uint64_t bytes, const DiscardTick& tick);
  Bytes divide_requests(const Bytes& bytes);
  void count(std::size_t number, std::uint64_t bytes, std::uint64_t requests, const DiscardTick& tick);
  void settle(std::vector<DiscardBurst>& ended, const DiscardTick& tick);
  [[nodiscard]] bool may_be_below(const Trigger& trigger, const DiscardTick& tick) const;

  DiscardRequests last_;
  std::uint64_t last_tick_ns_ = 0;
  std::uint64_t idle_ns_ = 0;                        // everything submitted before this had left the device
  std::uint64_t moved_ns_ = 0;                       // when the requests last changed
  std::uint64_t uncounted_requests_ = 0;             // completed, not assigned to a trigger yet
  std::map<std::string, SubmissionCursor> cursors_;  // by volume
  std::array<Trigger, model::kDiscardTriggers> triggers_;
  model::DiscardBurstsByTrigger figures_{};
};

/// Whether the file system, mounted with discard, also discards in the context of programs that delete something. The
/// kernel refuses BLKDISCARD on what is mounted, so nobody else discards there but what calls FITRIM.
bool callers_discard(const model::Filesystem& filesystem);

/// Also finds file systems that are trimmed by fstrim although they are mounted with discard. One that is remounted, or
/// mounted with other options, counts from 0.
class FilesystemDiscardCounter {
 public:
  /// `submitted` is by volume. Returns those now seen to be trimmed twice: each once while it is mounted.
  std::vector<model::FilesystemDiscards> observe(const std::vector<model::Filesystem>& filesystems,
                                                 const std::map<std::string, model::DiscardSubmitters>& submitted,
                                                 std::chrono::system_clock::time_point now);

  /// For all file systems whose volume is in `submitted`, sorted by volume.
  [[nodiscard]] std::vector<model::FilesystemDiscards> figures() const;

 private:
  struct Key {
    std::string volume;
    util::OutsideText mountpoint;
    bool mounted_with_discard;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    model::FilesystemDiscards figures;
    SubmissionCursor cursor;
    bool callers_discard = false;
  };

  std::map<Key, Entry> entries_;
};

}  // namespace ssdpulse::discards
