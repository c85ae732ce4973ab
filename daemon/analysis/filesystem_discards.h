// SPDX-License-Identifier: Apache-2.0
// What discards on each mounted file system, and which ones are trimmed by fstrim although they are mounted with
// discard. Pure: one call per tick. A file system that is remounted, or mounted with other options, counts from 0.
#pragma once

#include <chrono>
#include <compare>
#include <map>
#include <string>
#include <vector>

#include "daemon/analysis/submission_cursor.h"
#include "daemon/model/device.h"
#include "daemon/model/discards.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::analysis {

/// Whether the file system, mounted with discard, also discards in the context of programs that delete something. The
/// kernel refuses BLKDISCARD on what is mounted, so nobody else discards there but what calls FITRIM.
bool callers_discard(const model::Filesystem& filesystem);

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
  static void add(const model::DiscardSubmitters& submitted, Entry& entry);

  std::map<Key, Entry> entries_;
};

}  // namespace ssdpulse::analysis
