// SPDX-License-Identifier: Apache-2.0
// LoadLog: reads a recorded load. One line per I/O of the drive, in the order of time:
//   W,OFFSET,BYTES[,HINT]     a write; the hint as its name or its number in the kernel (0 to 5)
//   D,OFFSET,BYTES            a discard
// Empty lines and those that begin with # are skipped, as are I/Os of no bytes (flushes). Memory is bounded whatever
// the input.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/util/result.h"

namespace ssdpulse::simulation {

struct LoadLine {
  bool discard = false;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint8_t hint = 0;  // model::WriteHint
};

/// Absent: nothing to do for this line. An I/O beyond `size_bytes`, the size of the drive, is an error.
util::Result<std::optional<LoadLine>> parse_load_line(std::string_view line, std::uint64_t size_bytes);

class LoadLog {
 public:
  static constexpr std::size_t kLongestLine = 1024;

  /// `name`: for messages. The stream must outlive this object.
  LoadLog(std::istream& input, std::string name, std::uint64_t size_bytes)
      : input_(input), name_(std::move(name)), size_bytes_(size_bytes) {}

  /// The next I/O; absent: the end. Errors begin with NAME:LINE.
  util::Result<std::optional<LoadLine>> next();

  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  util::Result<std::optional<std::string_view>> next_line();
  bool refill();
  [[nodiscard]] std::string place() const { return name_ + ":" + std::to_string(lines_); }

  std::istream& input_;
  std::string name_;
  std::uint64_t size_bytes_;
  std::uint64_t lines_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::string buffer_;
  std::size_t at_ = 0;  // in the buffer
  bool ended_ = false;
};

}  // namespace ssdpulse::simulation
