// SPDX-License-Identifier: Apache-2.0
// NvmeMonitor: the host's NVMe drives, and when each is polled.
// Keeps one NvmeDrive per subsystem, carries its requests to the reader process and the answers back, and never waits
// for any of it. Owned by the daemon's one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/snapshot.h"
#include "daemon/runtime/history/history.h"
#include "daemon/runtime/nvme/drive.h"
#include "daemon/sources/nvme/reader_client.h"
#include "daemon/util/log.h"
#include "daemon/util/result.h"

namespace ssdpulse::runtime {

class NvmeMonitor {
 public:
  /// Starts the reader process, which takes along the right to send admin commands: before the daemon gives up its own,
  /// and before it has threads. A host without NVMe drives has a reader too, for those that will come.
  /// Or asks the one that a service manager keeps at `reader_socket`, whenever it is there.
  static util::Result<std::unique_ptr<NvmeMonitor>> start(std::chrono::nanoseconds poll_interval,
                                                          const std::string& reader_socket);
  /// With a reader that was started already, and another sysfs. `reconnect_pause`: between two attempts to reach one
  /// that is a service of its own.
  NvmeMonitor(std::unique_ptr<nvme::ReaderClient> reader, std::chrono::nanoseconds poll_interval,
              std::string sys_root = "/sys", std::chrono::nanoseconds reconnect_pause = std::chrono::seconds(5));

  /// Where drives' history is found and kept; without one, every start begins from scratch.
  void keep(std::unique_ptr<history::History> history) { history_ = std::move(history); }

  void set_poll_interval(std::chrono::nanoseconds interval) { interval_ = interval; }

  /// Readable when an answer has come; -1 when there is no reader any more.
  [[nodiscard]] int descriptor() const;
  /// When advance() wants to be called before the next tick.
  [[nodiscard]] std::optional<SteadyTime> deadline() const;

  /// Drives came or went, or may have.
  void refresh_drives();
  /// Takes answers, begins polls that are due, sends what there is to send. Cheap when there is nothing.
  void advance(BlockLayer& block, model::WallTime wall = std::chrono::system_clock::now());

  /// Hands the minute that has begun to the history: before the end.
  void save(BlockLayer& block);

  /// The drive of this device is asked early: see NvmeDrive::poll_soon.
  void poll_soon(const std::string& device);

  /// Null where none is kept.
  [[nodiscard]] history::History* history() const { return history_.get(); }

  /// Adds the drives and how well they can be read.
  void describe(model::Snapshot& snapshot) const;

 private:
  struct Recall {
    std::future<util::Result<history::Recalled>> answer;
    SteadyTime asked_at;
  };

  void recall(NvmeDrive& drive, const std::string& key, SteadyTime now);
  void receive(BlockLayer& block);
  void send(NvmeDrive& drive, const std::string& key, BlockLayer& block);
  void give_up(NvmeDrive& drive, const std::string& key, BlockLayer& block);
  void note_garbage();
  void note_other_version();
  void reconnect(SteadyTime now);
  void note_that_it_serves(SteadyTime now);

  std::unique_ptr<nvme::ReaderClient> reader_;
  std::chrono::nanoseconds interval_{};
  std::chrono::nanoseconds reconnect_pause_;
  NvmeLessons lessons_;
  std::map<std::string, NvmeDrive> drives_;           // by subsystem and serial number
  std::map<std::uint64_t, std::string> outstanding_;  // request -> drive
  std::map<std::string, Recall> recalls_;
  std::unique_ptr<history::History> history_;
  history::Minute minute_;  // of the wall clock, that has begun
  SteadyTime refusals_forgotten_at_ = std::chrono::steady_clock::now();
  std::optional<SteadyTime> reconnected_at_;  // or tried to
  bool may_ask_;                              // there is a reader, or something that takes connections for one
  bool answered_ = false;                     // anything, since then
  std::uint64_t garbage_ = 0;                 // messages of the reader, that were logged
  model::SourceStatus status_;
  log::Limiter limiter_{std::chrono::minutes(10)};
};

}  // namespace ssdpulse::runtime
