// SPDX-License-Identifier: Apache-2.0
// Reader: answers questions about the past from ssdpulse.db, while the History writes to it.
//
// It never holds up the writer: it has a thread and a connection of its own, which reads in slices of at most kSlice
// and releases the file in between. Each question has a deadline; more than kMaxQuestions at once are refused. Without
// a daemon it reads the same file from another process.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/model/history_answers.h"
#include "daemon/model/write_ladder.h"

namespace ssdpulse::history {

/// The device that a question is about.
struct Which {
  // NOLINTBEGIN(google-explicit-constructor): a name or a device is passed as it is
  Which(const char* name) : text(name) {}
  Which(std::string name) : text(std::move(name)) {}  // kernel's name, serial number or WWID; the last to have it
  Which(const model::PastDevice& one)
      : text(one.identity.raw()), by_identity(true) {}  // this one, whatever its name is now
  // NOLINTEND(google-explicit-constructor)

  std::string text;
  bool by_identity = false;
};

class Reader {
 public:
  static constexpr std::chrono::milliseconds kSlice{25};
  static constexpr std::chrono::milliseconds kDeadline{8000};  // the web server allows ten seconds
  static constexpr std::size_t kMaxQuestions = 8;
  static constexpr std::size_t kMaxPoints = 2000;
  static constexpr std::size_t kMaxSeconds = 8;  // a mebibyte at most each
  /// Of spikes, bursts of each trigger, waits of each cause, setting changes and marks.
  static constexpr std::size_t kMaxMarks = 2000;

  /// Starts the thread; the file is opened for each question, and may appear later. `path`: of ssdpulse.db. `on_damage`
  /// is called by the thread when the file is not as it was written.
  static util::Result<std::unique_ptr<Reader>> open(const std::string& path, std::function<void()> on_damage = {});
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Whether a question missed its deadline and the thread still reads for it: the disk hangs. Any thread.
  [[nodiscard]] bool is_stuck() const;

  // All of these wait for their answer, from any thread. An error explains what to do: no file, busy, too late, or
  // (ENOENT) no such device.

  /// By name; of more than kMaxDevices, those that were measured last. `left_out`: how many others there are.
  static constexpr std::size_t kMaxDevices = 1000;
  util::Result<std::vector<model::PastDevice>> devices(std::uint64_t* left_out = nullptr);
  /// For each of these names the device that had it last, if there is one.
  util::Result<std::vector<model::PastDevice>> devices_called(std::set<std::string> names);

  /// The minutes of a window in order; hours where minutes are no longer kept. An hour that lies only partly in it is
  /// left out. Calls `each` on the reader's thread.
  util::Result<void> minutes(const Which& device, const model::Window& window,
                             const std::function<void(model::MinuteOf&&)>& each);
  util::Result<std::vector<model::MinuteOf>> minutes(const Which& device, const model::Window& window);

  /// The sum of all minutes of a window.
  util::Result<model::DeviceInterval> load(const Which& device, const model::Window& window);

  /// At most `points` points, of equal and round length; at most kMaxPoints.
  util::Result<model::Series> series(const Which& device, const model::Window& window, std::size_t points = kMaxPoints);

  /// What was written on each rung of the write ladder; hours that lie only partly in the window are left out.
  util::Result<model::PastLadder> ladder(const model::Window& window);

  /// The seconds around spikes that touch the window, in the encoding of whatever recorded them; by their end. At most
  /// kMaxSeconds of them.
  util::Result<std::vector<std::vector<std::uint8_t>>> seconds(const Which& device, const model::Window& window);

  /// What is known about the minute that holds `at`.
  util::Result<model::PastMoment> moment(model::PastTime at);

  /// The 24 hours up to the end of the quarter-hour that holds `at`, for all devices, and the hour before `at`.
  util::Result<model::PastDay> day(model::PastTime at);

  /// Marks and changes of settings (of the host and of all devices), ascending; the newest kMaxMarks of each.
  util::Result<std::vector<model::Mark>> marks(const model::Window& window);
  util::Result<std::vector<model::SettingChange>> settings(const model::Window& window);

 private:
  struct Implementation;
  explicit Reader(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

/// In how many of a window's minutes something was measured: of the disk that has most.
std::size_t minutes_kept(Reader& history, const model::Window& window);

}  // namespace ssdpulse::history
