// SPDX-License-Identifier: Apache-2.0
// PolledDrive: one drive from its first poll to its removal, with what is known about it. Keeps the drive's schedule
// and passes its answers to the code that interprets them: values, back-off, readings for the stages. Holds no
// descriptor and sends nothing itself: the monitor carries requests and answers. Used by one thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/analysis/write_amplification/source_choice.h"
#include "daemon/drives/back_off.h"
#include "daemon/drives/block_layer.h"
#include "daemon/drives/drive_io.h"
#include "daemon/drives/page_values.h"
#include "daemon/model/drive_tick.h"
#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/drive_poller.h"
#include "daemon/util/log.h"

namespace ssdpulse::drives {

/// What the drives of a host learn from each other.
struct DriveLessons {
  nvme::RefusedPages refused;
  PollBackoff backoff;
  std::string sys_root = "/sys";
  log::Limiter limiter{std::chrono::minutes(10)};  // for lines that one drive could cause all the time
};

class PolledDrive {
 public:
  /// `stagger`: how much later than one interval the drive's second poll is, so that drives are spread out.
  PolledDrive(nvme::NvmeSubsystem subsystem, DriveLessons& lessons, SteadyTime first_poll,
              std::chrono::nanoseconds stagger);

  /// What sysfs reports about the drive now; its controller may be another one of the same subsystem.
  void update(nvme::NvmeSubsystem subsystem);

  /// Begins a poll if one is due and the drive can be asked.
  void advance(SteadyTime now, std::chrono::nanoseconds interval, BlockLayer& block);
  /// Someone needs more than the last poll reported: polls early, but never sooner after the last poll than the
  /// shortest interval that may be configured.
  void poll_soon() { soon_ = true; }
  /// The next command; the caller reports with sent() that it is on its way.
  std::optional<nvme::Request> next() { return poller_.next(); }
  void sent(SteadyTime now);
  void answer(const nvme::Response& response, SteadyTime now, BlockLayer& block);

  /// When advance() has something to do before the next tick.
  [[nodiscard]] std::optional<SteadyTime> deadline() const { return watch_.near_until(); }
  /// The outstanding command will never be answered: no drive takes that long, so the answer was lost.
  [[nodiscard]] bool given_up(SteadyTime now) const;
  /// Another drive now has the controller's number: sysfs must be read again.
  [[nodiscard]] bool replaced() const { return replaced_; }

  /// The newest reading of its write counters needs another one to confirm it, however idle the drive is.
  void read_counters_again() { counters_in_doubt_ = true; }

  /// Includes the readings since the last call.
  model::DriveTick sample(SteadyTime now);
  [[nodiscard]] std::string name() const { return "nvme" + std::to_string(subsystem_.controller); }

 private:
  [[nodiscard]] model::NvmeDrive describe(SteadyTime now) const;
  void notice_silence(SteadyTime now);
  void tell_state(SteadyTime now);
  bool can_be_asked();
  void keep_interval(std::chrono::nanoseconds interval, SteadyTime now);
  void begin_poll(SteadyTime now, bool early, bool asked_for, BlockLayer& block);
  void finish_poll(SteadyTime now, BlockLayer& block);
  void cannot_be_read(const char* kind, const std::string& reason);
  void doubt_page(const std::string& what, SteadyTime now);
  [[nodiscard]] std::chrono::nanoseconds pace() const;
  [[nodiscard]] std::chrono::nanoseconds slack(SteadyTime now) const;
  [[nodiscard]] bool known_now(SteadyTime now) const;
  [[nodiscard]] std::vector<model::NvmeValue> values(SteadyTime now) const;
  void take_counters(const nvme::DriveReading& reading, const DriveWrites& after, SteadyTime now);

  nvme::NvmeSubsystem subsystem_;
  DriveLessons& lessons_;
  nvme::DrivePoller poller_;
  bool changed_ = false;   // since poller_ was made
  bool replaced_ = false;  // and not updated yet
  std::chrono::nanoseconds interval_{};
  std::chrono::nanoseconds former_slack_{};  // of a longer interval; valid until the drive could be polled again
  SteadyTime former_slack_until_;
  SteadyTime due_;
  SteadyTime polled_at_;
  bool soon_ = false;  // asked for early
  std::chrono::nanoseconds stagger_;
  SteadyTime identified_at_;
  SteadyTime media_read_at_;            // last reading of the pages that count media writes
  DriveWrites before_;                  // block layer, when the poll began
  DriveWrites at_media_;                // when the last reading of those pages began
  std::optional<SteadyTime> asked_at_;  // of the outstanding command
  bool silence_noticed_ = false;        // of that command
  bool logged_up_ = false;              // what the log last reported

  std::shared_ptr<const model::NvmeIdentity> identity_;
  model::NvmePolling polling_;
  std::optional<SteadyTime> succeeded_at_;
  PageValues values_;
  analysis::SettledUnits units_;
  std::string units_of_;  // serial and firmware that the units were settled for
  std::vector<model::CounterReading> readings_;
  bool counters_in_doubt_ = false;
  LogReadWatch watch_;
};

}  // namespace ssdpulse::drives
