// SPDX-License-Identifier: Apache-2.0
// LogPage: where a log page is requested, which drives may have it, and a pure function from its bytes to values. The
// pages are defined by kind in the *_pages.cpp of this folder, and listed in log_page.cpp. Nothing here talks to a
// drive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/model/nvme_drive.h"

namespace ssdpulse::nvme {

using Bytes = std::span<const std::uint8_t>;
using Uuid = std::array<std::uint8_t, 16>;

/// Largest page that any decoder asks for; the reader's messages have room for this many bytes.
inline constexpr std::size_t kMaxPageBytes = 4096;
inline constexpr std::size_t kIdentifyBytes = 4096;  // every Identify data structure
inline constexpr std::uint8_t kSmartLid = 0x02;      // SMART / Health Information (NVMe Base Specification)

/// What a page contained.
struct PageContent {
  std::vector<model::NvmeValue> values;
  model::WriteCounters writes;                           // both absent on pages that count no writes
  std::optional<model::ByteCounter> endurance_estimate;  // bytes that the media is rated for
  std::optional<double> percentage_used;                 // 0.01 = one percent; may exceed 1
  bool media_includes_slc = false;
};

/// Which namespace identifier the command carries.
enum class Scope : std::uint8_t { controller, no_namespace, first_namespace };  // FFFFFFFFh, 0, 1

/// A page states what differs from the defaults.
struct LogPage {
  std::string_view name;         // of the page, in metrics and logs: smart, fdp_statistics, ocp_smart, ...
  std::string_view source = "";  // name as a source of write amplification (label `source`); empty: none
  std::uint8_t lid = 0;
  std::uint8_t lsp = 0;
  std::uint16_t bytes = 512;  // a multiple of 4, at most kMaxPageBytes
  Scope scope = Scope::controller;
  bool per_endurance_group = false;  // log specific identifier = endurance group
  const Uuid* uuid = nullptr;        // ask with this UUID's index where the drive lists it; null: index 0
  /// Whether the drive may have it, by what it claims to support, its vendor and its model. Never by trial alone.
  bool (*offered)(const model::NvmeIdentity&) = nullptr;
  /// `page`: as long as `bytes` says. Never trusts a count in it. An error says what the page is not.
  util::Result<PageContent> (*decode_whole)(Bytes page, const model::NvmeIdentity&) = nullptr;
  /// The media counter is in bytes or in data units of 512000, and no host counter next to it shows which:
  /// unit_of_media_counter() may settle it.
  bool media_in_bytes_or_data_units = false;

  /// The content of what was read; an error if that is too short or another page. What lies beyond the page is ignored.
  [[nodiscard]] util::Result<PageContent> decode(Bytes read, const model::NvmeIdentity& identity) const;
};

/// All pages; those with a source in the order of precedence.
std::span<const LogPage> log_pages();

/// Adds to a drive's values those that no earlier page had: a drive may report the same on two pages, and one series
/// has one value. Call it in the order of log_pages().
void add_values(std::vector<model::NvmeValue>& drive, const std::vector<model::NvmeValue>& page);

}  // namespace ssdpulse::nvme
