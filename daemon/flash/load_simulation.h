// SPDX-License-Identifier: Apache-2.0
// simulate(): what drives of a given size would relocate under a recorded load, the answer of `ssdpulse simulate`.
// LoadLog reads the load. One line per I/O of the drive, in the order of time:
//   W,OFFSET,BYTES[,HINT]     a write; the hint as its name or its number in the kernel (0 to 5)
//   D,OFFSET,BYTES            a discard
// Empty lines and comments, which begin with #, are skipped, as are I/Os of no bytes (flushes). Memory is bounded
// whatever the input.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/flash/offline_model.h"

namespace ssdpulse::flash {

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
  [[nodiscard]] std::string position() const { return name_ + ":" + std::to_string(lines_); }

  std::istream& input_;
  std::string name_;
  std::uint64_t size_bytes_;
  std::uint64_t lines_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::string buffer_;
  std::size_t at_ = 0;  // in the buffer
  bool ended_ = false;
};

/// As given on the command line.
struct SimulateArguments {
  std::string input;                                    // a file, or - for standard input
  std::uint64_t size_bytes = 0;                         // of the drive
  std::uint64_t page_bytes = 4096;                      // what it maps as one: a power of two from 512 to 1 MiB
  std::vector<double> overprovisioning{7, 12, 28, 50};  // percent
  std::vector<std::string> policies{"greedy", "greedy_gc_frontier", "cost_benefit"};
  std::vector<std::string> placements{"none"};
  std::string discards = "honoured";          // or ignored
  bool full = false;                          // follow every page, not a sample
  std::optional<std::uint64_t> sample_pages;  // about this many are followed; absent: PageSample::kUsualPages
  std::string start = "full";                 // or empty
  std::string window = "50-100";              // percent of what is written
  std::uint32_t seed = 1;                     // which pages are followed
  bool json = false;
};

/// Parses 4096, 960GB (1000^3), 1.92TB or 894GiB (1024^3); upper and lower case alike, below 2^64.
util::Result<std::uint64_t> size_in_bytes(std::string_view text);

struct SimulatePlan {
  OfflineSettings settings;
  OfflineModel::Window window;
};
/// What was requested, or what is wrong with it.
util::Result<SimulatePlan> plan_simulation(const SimulateArguments& arguments);

/// Results go to `out`; problems, and progress if it takes longer than two seconds, go to `err`. `usage`: wrong
/// arguments or input; `no_data`: too little is written in the window.
util::ExitCode simulate(const SimulateArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace ssdpulse::flash
