// SPDX-License-Identifier: Apache-2.0
// TickRecording: what the block layer showed in each second of an incident, in a file, so that all analyses can be run
// on it again without a kernel. Written by ssdpulse_tick_recorder and read by incident_replay_test.
//
// Lines of text, compressed by gzip. The first letter says what a line holds:
//   I JSON    the inventory, and U JSON the tenants by cgroup: at first, and whenever they changed
//   D NAME .. the measured devices
//   N NAME    gives the next number, from 0, to a counter
//   S KEY TEXT  a program that submitted discards
//   T WALL STEADY BOOT NUMBER CHANGE ..  one second: microseconds since the last one, then the counters that changed
// Counters have names and start at 0, so that a recording outlives changes of the model's layout.
// Times within a tick are whole microseconds. Drives' log pages, settings and flash samples are not recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/model/stage.h"

namespace ssdpulse::ticks {

class Writer {
 public:
  explicit Writer(const std::string& file);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Throws std::runtime_error if it cannot be written.
  void add(const model::Tick& tick);

 private:
  void line(const std::string& text);
  void line_if_new(const std::string& key, const std::string& text);

  struct Counter {
    std::size_t number;
    std::int64_t value = 0;
  };
  void* file_;
  std::map<std::string, Counter> counters_;
  std::map<std::string, std::string> lines_;                  // the last of each key
  std::map<std::string, std::set<model::CgroupId>> cgroups_;  // by device: also those whose counts have moved on
  std::int64_t wall_us_ = 0;
  std::int64_t steady_us_ = 0;
  std::int64_t boot_us_ = 0;
};

/// All ticks of a file, without settings and the Snapshot of before. Throws std::runtime_error if it cannot be read.
std::vector<model::Tick> read(const std::string& file);

}  // namespace ssdpulse::ticks
