// SPDX-License-Identifier: Apache-2.0
// RefusedPages: the pages that are not requested again, and why. Many drives log each refused command as an error. A
// page that one drive lacks is missing from all drives of its kind, unless one of them had it. Any other error concerns
// only that drive, which may be faulty; a page that is switched off is off only in one endurance group.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/pages/page.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::nvme {

class RefusedPages {
 public:
  /// The drive reports that there is no such page.
  void add_missing(const model::NvmeIdentity& identity, const LogPage& page);
  /// Only for this drive.
  void add(const model::NvmeIdentity& identity, const LogPage& page, std::uint16_t endurance_group = kWholeDrive);
  /// Only for this drive: it has something else there; `what`: in words.
  void add_other(const model::NvmeIdentity& identity, const LogPage& page, std::string what);
  /// A drive of this kind has the page.
  void understood(const model::NvmeIdentity& identity, const LogPage& page);
  /// Whether the page is refused by the drive, or by its kind.
  [[nodiscard]] bool contains(const model::NvmeIdentity& identity, const LogPage& page) const;
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

}  // namespace ssdpulse::nvme
