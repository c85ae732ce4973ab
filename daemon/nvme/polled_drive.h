// SPDX-License-Identifier: Apache-2.0
// PolledDrive: one NVMe drive from its first poll to its removal, with what is known about it; DrivePoller: the
// commands of one poll. Neither talks to a drive: the monitor carries requests and answers. Used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/model/nvme_drive.h"
#include "daemon/model/source_samples.h"
#include "daemon/nvme/drive_io.h"
#include "daemon/nvme/nvme_identity.h"
#include "daemon/nvme_pages/drive_reading.h"
#include "daemon/nvme_pages/kept_pages.h"
#include "daemon/nvme_pages/log_page.h"
#include "daemon/nvme_reader/reader_protocol.h"

namespace ssdpulse::nvme {

using nvme_reader::Request;
using nvme_reader::RequestKind;
using nvme_reader::Response;

/// The next request for one controller, and the meaning of its answers. One command at a time, because the host
/// counter, the media counter and the host counter again must be read in this order to be one sample. Reads no clock.
class DrivePoller {
 public:
  DrivePoller(NvmeSubsystem subsystem, RefusedPages& refused) : subsystem_(std::move(subsystem)), refused_(&refused) {}

  enum class Extent : std::uint8_t {
    wear,   // only SMART: nothing was written to the drive, so its media counter can wait
    media,  // all pages
    all,    // and identifies the drive again
  };
  /// Not while a poll is under way.
  void begin(Extent extent);
  [[nodiscard]] bool busy() const { return busy_; }

  /// The next command to send (its id is left to the sender); nothing while a command is unanswered or none is left.
  std::optional<Request> next();
  void answer(const Response& response);

  /// The poll that has just finished; returned only once.
  std::optional<DriveReading> take();

  [[nodiscard]] const NvmeSubsystem& subsystem() const { return subsystem_; }

 private:
  struct Step {
    RequestKind kind = RequestKind::identify_controller;
    const LogPage* page = nullptr;
    std::uint16_t endurance_group = 0;
    std::uint32_t nsid = 0;
    bool again = false;
  };

  void finish();
  void plan_identification();
  void finish_identification();
  void plan_pages();
  void plan_page(const LogPage& page, bool again = false);
  void understand(const Step& step, const Response& response);
  void understand_page(const Step& step, const Response& response);
  void fail(const std::string& kind, const std::string& reason);
  void refuse(const Step& step, unsigned status);
  [[nodiscard]] bool is_refused(const LogPage& page) const;
  [[nodiscard]] std::uint8_t uuid_index(const LogPage& page) const;

  NvmeSubsystem subsystem_;
  RefusedPages* refused_;
  std::shared_ptr<model::NvmeIdentity> identity_;  // changed while it is put together; then shared
  bool identified_ = false;
  bool busy_ = false;
  bool finished_ = false;
  bool wants_media_ = false;
  std::optional<Step> outstanding_;
  std::deque<Step> steps_;
  std::map<const LogPage*, unsigned> misunderstood_;  // how often in a row, while never understood
  std::set<const LogPage*> understood_;
  DriveReading reading_;
};

/// What the drives of a host learn from each other.
struct DriveLessons {
  RefusedPages refused;
  PollBackoff backoff;
  std::string sys_root = "/sys";
  log::Limiter limiter{std::chrono::minutes(10)};  // for lines that one drive could cause all the time
};

/// Keeps the drive's schedule and passes its answers on: to the values, the back-off, and the readings for the stages.
class PolledDrive {
 public:
  /// `stagger`: how much later than one interval the drive's second poll is, so that drives are spread out.
  PolledDrive(NvmeSubsystem subsystem, DriveLessons& lessons, SteadyTime first_poll, std::chrono::nanoseconds stagger);

  /// What sysfs reports about the drive now; its controller may be another one of the same subsystem.
  void update(NvmeSubsystem subsystem);

  /// Begins a poll if it is due and the drive can be asked.
  void advance(SteadyTime now, std::chrono::nanoseconds interval, BlockLayer& block);
  /// Someone needs more than the last poll reported: polls early, but never sooner after the last poll than the
  /// shortest interval that may be configured.
  void poll_soon() { soon_ = true; }
  /// The next command; the caller reports with sent() that it is on its way.
  std::optional<Request> next() { return poller_.next(); }
  void sent(SteadyTime now);
  void answer(const Response& response, SteadyTime now, BlockLayer& block);

  /// When advance() has something to do before the next tick.
  [[nodiscard]] std::optional<SteadyTime> deadline() const { return watch_.near_until(); }
  /// The outstanding command will never be answered: no drive takes that long, so the answer was lost.
  [[nodiscard]] bool timed_out(SteadyTime now) const;
  /// Another drive now has the controller's number: sysfs must be read again.
  [[nodiscard]] bool replaced() const { return replaced_; }

  /// The newest reading of its write counters needs another reading to confirm it, however idle the drive is.
  void read_counters_again() { counters_in_doubt_ = true; }

  /// Includes the readings since the last call.
  model::DriveTick sample(SteadyTime now);
  [[nodiscard]] std::string name() const { return "nvme" + std::to_string(subsystem_.controller); }

 private:
  [[nodiscard]] model::NvmeDrive describe(SteadyTime now) const;
  void notice_silence(SteadyTime now);
  void log_state(SteadyTime now);
  bool can_be_asked();
  void keep_interval(std::chrono::nanoseconds interval, SteadyTime now);
  void begin_poll(SteadyTime now, bool early, bool asked_for, BlockLayer& block);
  void finish_poll(SteadyTime now, BlockLayer& block);
  void cannot_be_read(const char* kind, const std::string& reason);
  void doubt_page(const std::string& what, SteadyTime now);
  [[nodiscard]] std::chrono::nanoseconds pace() const;
  [[nodiscard]] std::chrono::nanoseconds slack(SteadyTime now) const;
  [[nodiscard]] bool known_now(SteadyTime now) const;
  void take_counters(const DriveReading& reading, const DriveWrites& after, SteadyTime now);

  NvmeSubsystem subsystem_;
  DriveLessons& lessons_;
  DrivePoller poller_;
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
  SettledUnits units_;
  std::string units_of_;  // serial and firmware that the units were settled for
  std::vector<model::CounterReading> readings_;
  bool counters_in_doubt_ = false;
  LogReadWatch watch_;
};

}  // namespace ssdpulse::nvme
