// SPDX-License-Identifier: Apache-2.0
// Which pages are not asked for again? Many drives count each refused command as an error in their log.
// What a drive does not have, its whole kind has not; what is switched off is so in one endurance group of one drive.
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
  void add(const model::NvmeIdentity& identity, const LogPage& page);
  void add(const model::NvmeIdentity& identity, const LogPage& page, std::uint16_t endurance_group);
  [[nodiscard]] bool contains(const model::NvmeIdentity& identity, const LogPage& page) const;
  [[nodiscard]] bool contains(const model::NvmeIdentity& identity, const LogPage& page,
                              std::uint16_t endurance_group) const;
  /// Everything may be asked once more: FDP can be switched on, firmware can learn.
  void forget() { *this = {}; }

 private:
  std::set<std::tuple<std::uint16_t, std::string, std::string, std::string_view>> of_kind_;
  std::set<std::tuple<std::string, std::string, std::uint16_t, std::string_view>> of_group_;
};

}  // namespace ssdpulse::nvme
