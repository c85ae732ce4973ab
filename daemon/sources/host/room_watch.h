// SPDX-License-Identifier: Apache-2.0
// RoomWatch: how much room is left in file systems, asked with statfs(2) every kInterval by a thread of its own, as one
// may not answer for as long as its drive hangs. That one is then left out until it does, and another thread asks the
// others. The function below never waits; for one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/clock.h"
#include "daemon/model/host_signals.h"

namespace ssdpulse::host {

/// Asks the kernel. Nothing for what is not the root of a mount here (a confined process may see other mounts than the
/// host), for what is read-only or has no size, and if it may not be asked.
std::optional<model::FilesystemRoom> room_of(const std::string& mountpoint);

class RoomWatch {
 public:
  static constexpr std::chrono::seconds kInterval{2};
  static constexpr std::chrono::seconds kLongestAge{10};  // an answer that is no longer given out
  static constexpr std::size_t kMaxMounts = 256;          // asked
  static constexpr std::size_t kMaxThreads = 8;  // that wait for an answer; then nobody is asked until one has it

  /// `ask` is called by threads that may outlive this.
  using Ask = std::optional<model::FilesystemRoom> (*)(const std::string& mountpoint);
  explicit RoomWatch(Ask ask = room_of);

  /// The newest answers of these file systems, in their order. They are also asked from now on: they must be local.
  std::vector<model::FilesystemRoom> latest(const std::vector<std::string>& mountpoints, model::SteadyTime now);

 private:
  struct Answers;
  Ask ask_;
  std::shared_ptr<Answers> answers_;
  std::optional<model::SteadyTime> asked_at_;
};

}  // namespace ssdpulse::host
