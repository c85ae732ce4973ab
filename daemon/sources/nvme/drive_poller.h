// SPDX-License-Identifier: Apache-2.0
// DrivePoller: the next request for one drive, and the meaning of its answers.
// The state machine of one controller: it neither talks to a drive nor reads a clock. One command at a time, because
// host counter, media counter and host counter must be read in this order to be one sample.
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
#include "daemon/sources/nvme/controllers.h"
#include "daemon/sources/nvme/pages/page.h"
#include "daemon/sources/nvme/reader_protocol.h"
#include "daemon/sources/nvme/refused_pages.h"

namespace ssdpulse::nvme {

inline constexpr std::uint8_t kSmartLid = 0x02;

struct PageReading {
  const LogPage* page = nullptr;
  std::uint16_t endurance_group = 0;  // 0 where the page is the controller's
  std::chrono::nanoseconds at{};      // CLOCK_MONOTONIC, when it had been read
  PageContent content;
};

/// One finished poll.
struct DriveReading {
  std::shared_ptr<const model::NvmeIdentity> identity;    // null while the drive did not identify itself
  std::vector<PageReading> pages;                         // that were read and understood
  std::optional<PageReading> smart_again;                 // behind the pages that count media writes
  std::map<const LogPage*, std::size_t> asked;            // of how many endurance groups; 1 for the controller's pages
  std::chrono::nanoseconds spent{};                       // by the drive on all commands
  std::map<std::string, unsigned> failures;               // by kind: refused, garbage, short, error, not_live, gone,
                                                          // timeout, reader, io
  std::map<std::string_view, std::string> refused_pages;  // not asked for (again): why, in words
  std::map<const LogPage*, std::string> not_understood;   // what was read in the place of a page, in words
  bool media_asked = false;                               // for the pages that count media writes, too
  std::string reason;                                     // why the poll failed, in words; empty where SMART was read

  [[nodiscard]] const PageReading* smart() const;
  /// Data units (512000 bytes) that SMART says were written; nothing where it does not say.
  [[nodiscard]] std::optional<model::ByteCounter> host_before_media() const;
  [[nodiscard]] std::optional<model::ByteCounter> host_after_media() const;
};

class DrivePoller {
 public:
  DrivePoller(NvmeSubsystem subsystem, RefusedPages& refused) : subsystem_(std::move(subsystem)), refused_(&refused) {}

  enum class Extent : std::uint8_t {
    wear,   // SMART alone: nothing was written to the drive, so its media counter can wait
    media,  // all pages
    all,    // identify again, too
  };
  /// Not while a poll is under way.
  void begin(Extent extent);
  [[nodiscard]] bool busy() const { return busy_; }

  /// The next command to send (its id is left to the sender); nothing while one is unanswered or none is left.
  std::optional<Request> next();
  void answer(const Response& response);

  /// The poll that has just finished, once.
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
  std::shared_ptr<model::NvmeIdentity> identity_;  // while it is put together; then shared as it is
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
