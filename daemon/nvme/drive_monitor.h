// SPDX-License-Identifier: Apache-2.0
// DriveMonitor: the NVMe drives of the host, each polled in turn. Keeps one PolledDrive per subsystem, carries its
// requests to the reader process and the answers back, and never waits for any of it. Owned by the daemon's one thread.
// Commands that exit at once call poll_once() instead.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/base/result.h"
#include "daemon/model/snapshot.h"
#include "daemon/nvme/polled_drive.h"
#include "daemon/nvme/reader_client.h"

namespace ssdpulse::nvme {

class DriveMonitor {
 public:
  /// Starts the reader process, which inherits the right to send admin commands: call this before the daemon gives up
  /// its own, and before it has threads. A host without NVMe drives has a reader too, for drives added later.
  /// Or uses the reader that a service manager keeps at `reader_socket`, whenever it is there.
  static util::Result<std::unique_ptr<DriveMonitor>> start(std::chrono::nanoseconds poll_interval,
                                                           const std::string& reader_socket);
  /// With a reader that is already started, and another sysfs. `reconnect_pause`: between two attempts to reach a
  /// reader that is a separate service.
  DriveMonitor(std::unique_ptr<ReaderClient> reader, std::chrono::nanoseconds poll_interval,
               std::string sys_root = "/sys", std::chrono::nanoseconds reconnect_pause = std::chrono::seconds(5));

  void set_poll_interval(std::chrono::nanoseconds interval) { interval_ = interval; }

  /// Readable when an answer has arrived; -1 when there is no reader any more.
  [[nodiscard]] int descriptor() const;
  /// When advance() must be called before the next tick.
  [[nodiscard]] std::optional<SteadyTime> deadline() const;

  /// Drives were added or removed, or may have been.
  void refresh_drives();
  /// Takes answers, begins polls that are due, sends requests that are waiting. Cheap when there is nothing to do.
  void advance(BlockLayer& block);

  /// The drive of this controller (nvme0) is polled early: see PolledDrive::poll_soon.
  void poll_soon(const std::string& controller);

  /// The drive of this key is asked for its write counters again: see PolledDrive::read_counters_again.
  void read_counters_again(const std::string& key);

  /// What is known about the drives, sorted by controller, and what was read since the last call.
  std::vector<model::DriveTick> sample(SteadyTime now);
  /// How well the drives can be read as a whole.
  [[nodiscard]] const model::SourceStatus& status() const { return status_; }

 private:
  void receive(BlockLayer& block);
  void send(PolledDrive& drive, const std::string& key, BlockLayer& block);
  void abandon(PolledDrive& drive, const std::string& key, BlockLayer& block);
  void note_garbage();
  void note_other_version();
  void reconnect(SteadyTime now);
  void note_that_it_serves(SteadyTime now);

  std::unique_ptr<ReaderClient> reader_;
  std::chrono::nanoseconds interval_{};
  std::chrono::nanoseconds reconnect_pause_;
  DriveLessons lessons_;
  std::map<std::string, PolledDrive> drives_;         // by subsystem and serial number
  std::map<std::uint64_t, std::string> outstanding_;  // request -> drive
  SteadyTime refusals_forgotten_at_ = std::chrono::steady_clock::now();
  std::optional<SteadyTime> reconnected_at_;  // or tried to
  bool may_ask_;                              // there is a reader, or something that accepts connections for one
  bool answered_ = false;                     // anything, since reconnected_at_
  std::uint64_t garbage_ = 0;                 // invalid messages of the reader, as last counted
  model::SourceStatus status_;
  log::Limiter limiter_{std::chrono::minutes(10)};
};

/// What a drive reports when asked once.
struct DriveAnswer {
  NvmeSubsystem subsystem;
  std::optional<DriveReading> reading;  // of a drive that identified itself
  std::string failure;                  // why there is none, as text
};

/// Asks every live drive, and waits up to 5 s, as long as a healthy drive may take. An error if sysfs cannot be read.
util::Result<std::vector<DriveAnswer>> poll_once();

}  // namespace ssdpulse::nvme
