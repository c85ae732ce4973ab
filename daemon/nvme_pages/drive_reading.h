// SPDX-License-Identifier: Apache-2.0
// DriveReading: the values that one poll of a drive returned, and what they are worth: which of them cannot be true, in
// which unit a vendor's counters count, and which counters give the write amplification. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/nvme_drive.h"
#include "daemon/nvme_pages/log_page.h"

namespace ssdpulse::nvme {

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
  std::map<std::string_view, std::string> refused_pages;  // not asked for (again): why, as text
  std::map<const LogPage*, std::string> not_understood;   // what came instead of the page, as text
  std::string impossible;                                 // the last page that cannot be true, as text; empty: none
  bool media_asked = false;                               // also for the pages that count media writes
  std::string reason;                                     // why the poll failed, as text; empty where SMART was read

  [[nodiscard]] const PageReading* smart() const;
  /// Data units (512000 bytes) that the host has written according to SMART, read before and after the media counters;
  /// nothing where SMART does not report them.
  [[nodiscard]] std::optional<model::ByteCounter> host_before_media() const;
  [[nodiscard]] std::optional<model::ByteCounter> host_after_media() const;
};

/// The metric and label of a value, as errors name it.
std::string series_name(const model::NvmeValue& value);

/// The first value that a standard or physics rules out, as text; nothing if all are possible. A drive that shows one
/// has returned something else than its page, so nothing of it is accepted. Limits are what a drive could reach in a
/// hundred years, and temperatures between -100 and 200 degrees Celsius.
std::optional<std::string> find_impossible(const PageContent& content);

/// Removes temperatures out of range: drives leave anything in the fields of sensors that they do not have.
void drop_missing_sensors(PageContent& content);

// The unit of a drive's counters whose vendor does not publish it is found by comparison with the health page's data
// units of 512000 bytes, over the drive's life or over a window: counts and differences of counts both work. The caller
// remembers the answer.
// A page whose host and media counters both have unit 0 counts both in the same unit: their ratio is known at once, the
// bytes only if unit_of_host_counter() finds the unit. A page with only a media counter and
// LogPage::media_in_bytes_or_data_units has neither ratio nor bytes until unit_of_media_counter() finds it.

/// The unit in bytes of a vendor page's host counter, or 0 while none is certain: the only one with which the counters
/// can agree within 10 % or, if two can (a million bytes and a mebibyte), within 1 %, and certainly do, whatever their
/// rounding hides.
std::uint64_t unit_of_host_counter(model::Uint128 host_count, model::Uint128 data_units_written);

/// 1 or 512000, or 0 while neither is certain: the one that gives a write amplification between 0.3 and 1000.
/// They are so far apart that only one can fit. For counts over the drive's life only.
std::uint64_t unit_of_media_counter(model::Uint128 media_count, model::Uint128 data_units_written);

/// The unit of page 09h, which firmware has been known to count in data units: 10^9 or 512000, or 0 while neither fits.
/// `group_data_units`: summed over all endurance groups.
std::uint64_t unit_of_endurance_groups(model::Uint128 group_data_units, model::Uint128 data_units_written);

/// By source: the unit that its counters were found to count in, if the page does not state it, or may state it
/// wrongly. A unit once found is kept, because the counters that settled it drift apart with time.
using SettledUnits = std::map<std::string, std::uint64_t, std::less<>>;

/// The reason if nothing speaks against the source and there is none better.
inline constexpr std::string_view kBestOffered = "the best it offers";

struct SourceChoice {
  std::string source;                             // empty: none
  std::string reason;                             // why nothing better, or why nothing at all
  std::optional<model::ByteCounter> host_before;  // the host counter read before the media counter,
  std::optional<model::ByteCounter> host_after;   // and after it; the same if both are on one page
  std::optional<model::ByteCounter> media;
  std::optional<model::ByteCounter> endurance_estimate;
  bool since_birth = true;        // both counters have counted since the drive's first day
  std::chrono::nanoseconds at{};  // CLOCK_MONOTONIC, when the media counter had been read
  SettledUnits units;             // what is settled now
};

/// Chooses the counters behind a drive's write amplification: the best page, by precedence, that counts media writes,
/// and the host counter that goes with it. A page whose counters contradict SMART is not a source. Names any better
/// page that could not be used. For a reading that asked for media pages. `settled`: from earlier readings of this
/// drive.
SourceChoice choose_source(const DriveReading& reading, const SettledUnits& settled = {});

/// The values of a page; those in a unit that is not settled are left out.
std::vector<model::NvmeValue> settled_values(const PageReading& entry, const SettledUnits& units);

}  // namespace ssdpulse::nvme
