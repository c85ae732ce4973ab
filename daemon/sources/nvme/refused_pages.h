// SPDX-License-Identifier: Apache-2.0
// Which pages are not asked for again? Many drives count each refused command as an error in their log.
// What a drive does not have, its whole kind has not, unless one of them had it. Whatever else is wrong with a page is
// so of one drive, as it may be sick; what is switched off is so in one of its endurance groups.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/pages/page.h"

namespace ssdpulse::nvme {

class RefusedPages {
 public:
  /// The drive says that there is no such page.
  void add_missing(const model::NvmeIdentity& identity, const LogPage& page);
  /// Of this drive alone.
  void add(const model::NvmeIdentity& identity, const LogPage& page, std::uint16_t endurance_group = kWholeDrive);
  /// A drive of this kind has the page.
  void understood(const model::NvmeIdentity& identity, const LogPage& page);
  /// By the drive, or by its kind.
  [[nodiscard]] bool contains(const model::NvmeIdentity& identity, const LogPage& page) const;
  [[nodiscard]] bool contains(const model::NvmeIdentity& identity, const LogPage& page,
                              std::uint16_t endurance_group) const;
  /// Everything may be asked once more: FDP can be switched on, firmware can learn. What a kind has, it keeps.
  void forget();

 private:
  static constexpr std::uint16_t kWholeDrive = 0;  // no endurance group has this number

  using OfKind = std::set<std::tuple<std::uint16_t, std::string, std::string, std::string_view>>;
  OfKind missing_;
  OfKind understood_;
  std::set<std::tuple<std::string, std::string, std::string, std::uint16_t, std::string_view>> of_group_;
};

}  // namespace ssdpulse::nvme
