// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/filesystem_discards.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace ssdpulse::analysis {
namespace {

std::uint64_t trimmed_bytes(const model::FilesystemDiscards& figures) {
  return figures.bytes[static_cast<std::size_t>(model::DiscardTrigger::fstrim)];
}

/// Of those with a journal, or a log: what was deleted must reach the disk before it is discarded, so a thread of the
/// kernel does that afterwards.
bool waits_for_a_thread(const model::Filesystem& filesystem) {
  const auto& options = filesystem.options;
  if (filesystem.fstype == "ext4" || filesystem.fstype == "ext3" || filesystem.fstype == "ext2") {
    return filesystem.unshown.journal != false && options.count("data=writeback") == 0;
  }
  if (filesystem.fstype == "btrfs") {
    return options.count("discard") == 0;  // discard=async; the other one is done by whoever commits
  }
  return filesystem.fstype == "xfs" || filesystem.fstype == "bcachefs";
}

}  // namespace

bool callers_discard(const model::Filesystem& filesystem) {
  return filesystem.discard && !waits_for_a_thread(filesystem);
}

std::vector<model::FilesystemDiscards> FilesystemDiscardCounter::observe(
    const std::vector<model::Filesystem>& filesystems, const std::map<std::string, model::DiscardSubmitters>& submitted,
    std::chrono::system_clock::time_point now) {
  std::map<Key, Entry> before = std::exchange(entries_, {});
  std::vector<model::FilesystemDiscards> trimmed_twice;
  for (const model::Filesystem& filesystem : filesystems) {
    for (const std::string& volume : filesystem.volumes) {
      const auto sent = submitted.find(volume);
      const Key key{volume, filesystem.mountpoint, filesystem.discard};
      // A file system on an array is listed for each of the array's drives.
      if (sent == submitted.end() || entries_.count(key) != 0) {
        continue;
      }
      Entry& entry = entries_[key];
      if (const auto known = before.find(key); known != before.end()) {
        entry = std::move(known->second);
      } else {
        entry.figures = {volume, filesystem.mountpoint, filesystem.discard, {}, now};
        entry.cursor.advance(sent->second);
      }
      entry.callers_discard = callers_discard(filesystem);
      const bool was_trimmed = trimmed_bytes(entry.figures) > 0;
      add(sent->second, entry);
      if (filesystem.discard && !was_trimmed && trimmed_bytes(entry.figures) > 0) {
        trimmed_twice.push_back(entry.figures);
      }
    }
  }
  return trimmed_twice;
}

void FilesystemDiscardCounter::add(const model::DiscardSubmitters& submitted, Entry& entry) {
  const auto increments = entry.cursor.advance(submitted);
  for (std::size_t i = 0; i < increments.size(); ++i) {
    const auto trigger =
        static_cast<std::size_t>(trigger_of(i, entry.figures.mounted_with_discard, entry.callers_discard));
    entry.figures.bytes[trigger] += increments[i].bytes;
  }
}

std::vector<model::FilesystemDiscards> FilesystemDiscardCounter::figures() const {
  std::vector<model::FilesystemDiscards> figures;
  std::transform(entries_.begin(), entries_.end(), std::back_inserter(figures),
                 [](const auto& entry) { return entry.second.figures; });
  return figures;
}

}  // namespace ssdpulse::analysis
