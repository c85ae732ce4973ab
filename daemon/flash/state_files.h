// SPDX-License-Identifier: Apache-2.0
// StateFiles: the state of the flash models, kept across restarts of the daemon.
// One file for each drive, flash-HASH.state in the directory of the history, written under another name and renamed:
// there is either the old state or the new one. What is read is not trusted: the reader of the bytes has to check it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::flash {

class StateFiles {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{32} << 20;  // of a file: twice what a model may take
  static constexpr std::size_t kMaxFiles = 256;                    // of drives present or gone; the oldest are removed

  /// `directory` empty: nothing is kept. `most_bytes`: of all files; the oldest are removed.
  explicit StateFiles(std::string directory, std::uint64_t most_bytes = UINT64_MAX)
      : directory_(std::move(directory)), most_bytes_(most_bytes) {}

  /// `key`: FlashDrive::key. Absent: there is no state.
  [[nodiscard]] util::Result<std::optional<std::string>> read(const std::string& key) const;
  /// The first one for a drive also calls tidy().
  [[nodiscard]] util::Result<void> write(const std::string& key, const std::string& bytes) const;
  /// Removes the oldest files beyond kMaxFiles and `most_bytes`, and those that were never renamed.
  void tidy() const;

  [[nodiscard]] bool keeps() const { return !directory_.empty(); }
  [[nodiscard]] std::string path_of(const std::string& key) const;

 private:
  std::string directory_;
  std::uint64_t most_bytes_;
};

}  // namespace ssdpulse::flash
