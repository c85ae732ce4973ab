// SPDX-License-Identifier: Apache-2.0
// What is kept between polls: RefusedPages, which are not requested again; PageValues, the newest value of each field.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/model/nvme_drive.h"
#include "daemon/nvme_pages/drive_reading.h"
#include "daemon/nvme_pages/log_page.h"

namespace ssdpulse::nvme {

/// The pages that are not requested again, and why. Many drives log each refused command as an error. A page that one
/// drive lacks is missing from all drives of its kind, unless one of them had it. Any other error concerns only that
/// drive, which may be faulty; a page that is switched off is off only in one endurance group.
class RefusedPages {
 public:
  /// The drive reports that there is no such page.
  void add_missing(const model::NvmeIdentity& identity, const LogPage& page);
  /// Only for this drive.
  void add(const model::NvmeIdentity& identity, const LogPage& page, std::uint16_t endurance_group = kWholeDrive);
  /// Only for this drive: it has something else there; `what`: as text.
  void add_other(const model::NvmeIdentity& identity, const LogPage& page, std::string what);
  /// A drive of this kind has the page.
  void understood(const model::NvmeIdentity& identity, const LogPage& page);
  /// Whether the page is refused by the drive, or by its kind.
  [[nodiscard]] bool contains(const model::NvmeIdentity& identity, const LogPage& page) const;
  /// Whether it is refused in this endurance group: says nothing of what the whole drive or its kind lacks.
  [[nodiscard]] bool contains(const model::NvmeIdentity& identity, const LogPage& page,
                              std::uint16_t endurance_group) const;
  /// Why a page is not asked for: "refused", or what it is instead.
  [[nodiscard]] std::string reason(const model::NvmeIdentity& identity, const LogPage& page) const;
  /// Everything may be asked again: FDP can be switched on, firmware can gain pages. What a kind has, it keeps.
  void forget();

 private:
  static constexpr std::uint16_t kWholeDrive = 0;  // no endurance group has this number

  using Text = util::OutsideText;
  using OfKind = std::set<std::tuple<std::uint16_t, Text, Text, std::string_view>>;
  OfKind missing_;
  OfKind understood_;
  std::map<std::tuple<Text, Text, Text, std::uint16_t, std::string_view>, std::string> of_group_;
};

/// What a drive's pages contained when each was last read and accepted. Values of a page that is no longer read expire
/// after a while, and at once with new firmware. A page whose values no drive can have reached since the last one (a
/// counter that falls or leaps, a temperature that jumps) waits for the next reading: it is accepted only if that goes
/// on from it. Until then the page keeps its values.
class PageValues {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Pages of the reading that wait for the next one: why, as text.
  using Waiting = std::map<const LogPage*, std::string>;
  Waiting take(const DriveReading& reading, const SettledUnits& units, Time now);

  /// Values of the pages that were read since then; each series once.
  [[nodiscard]] std::vector<model::NvmeValue> since(Time oldest) const;

 private:
  struct Page {
    Time read_at;
    std::vector<model::NvmeValue> values;
  };
  struct PageState {
    std::optional<Page> accepted;
    std::optional<Page> waiting;
    unsigned waited = 0;  // readings in a row
  };
  static std::optional<std::string> accept(PageState& kept, Page page);

  std::map<const LogPage*, PageState> pages_;  // in the order of log_pages()
  util::OutsideText firmware_;
};

}  // namespace ssdpulse::nvme
