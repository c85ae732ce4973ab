// SPDX-License-Identifier: Apache-2.0
// DriveReading: the values that one poll of a drive returned. The poller sets them, the choice of counters reads them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/pages/page.h"

namespace ssdpulse::nvme {

inline constexpr std::uint8_t kSmartLid = 0x02;  // SMART / Health Information (NVMe Base Specification)

struct PageReading {
  const LogPage* page = nullptr;
  std::uint16_t endurance_group = 0;  // 0 where the page is the controller's
  std::chrono::nanoseconds at{};      // CLOCK_MONOTONIC, when its reading was complete
  PageContent content;
};

/// One finished poll.
struct DriveReading {
  std::shared_ptr<const model::NvmeIdentity> identity;    // null if the drive has not identified itself
  std::vector<PageReading> pages;                         // those that were read and understood
  std::optional<PageReading> smart_again;                 // SMART, read again after the pages that count media writes
  std::map<const LogPage*, std::size_t> asked;            // for how many endurance groups; 1 for the controller's pages
  std::chrono::nanoseconds spent{};                       // time that the drive took for all commands
  std::map<std::string, unsigned> failures;               // by kind: refused, garbage, short, error, not_live, gone,
                                                          // timeout, reader, io
  std::map<std::string_view, std::string> refused_pages;  // not asked for (again): why, in words
  std::map<const LogPage*, std::string> not_understood;   // what came instead of the page, in words
  std::string impossible;                                 // the last page that cannot be true, in words; empty: none
  bool media_asked = false;                               // also for the pages that count media writes
  std::string reason;                                     // why the poll failed, in words; empty where SMART was read

  [[nodiscard]] const PageReading* smart() const;
  /// Data units (512000 bytes) that the host has written according to SMART, read before and after the media counters;
  /// nothing where SMART does not report them.
  [[nodiscard]] std::optional<model::ByteCounter> host_before_media() const;
  [[nodiscard]] std::optional<model::ByteCounter> host_after_media() const;
};

}  // namespace ssdpulse::nvme
