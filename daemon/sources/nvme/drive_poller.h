// SPDX-License-Identifier: Apache-2.0
// DrivePoller: the next request for one drive, and the meaning of its answers.
// The state machine of one controller: it neither talks to a drive nor reads a clock. One command at a time, because
// the host counter, the media counter and the host counter again must be read in this order to be one sample.
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

#include "daemon/model/nvme.h"
#include "daemon/nvme_reader/protocol.h"
#include "daemon/sources/nvme/controllers.h"
#include "daemon/sources/nvme/pages/drive_reading.h"
#include "daemon/sources/nvme/pages/page.h"
#include "daemon/sources/nvme/refused_pages.h"

namespace ssdpulse::nvme {

using nvme_reader::Request;
using nvme_reader::RequestKind;
using nvme_reader::Response;

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

  /// The next command to send (its id is left to the sender); nothing while one is unanswered or none is left.
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

}  // namespace ssdpulse::nvme
