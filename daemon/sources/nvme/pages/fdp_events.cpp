// SPDX-License-Identifier: Apache-2.0
// 23h, FDP Events (NVM Express Base 2.x, 5.1.12.1.31): what violated the host's placement. Two logs, by what caused the
// events. They are only counted by kind: those in the log now, not all that ever occurred.
#include <algorithm>
#include <array>
#include <string_view>

#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::size_t kHeader = 64;
constexpr std::size_t kEvent = 64;
constexpr std::size_t kMaxEvents = (kMaxPageBytes - kHeader) / kEvent;

struct Kind {
  std::uint8_t type;
  std::string_view name;
};
constexpr Kind kHostKinds[] = {{0x00, "reclaim_unit_not_fully_written"},
                               {0x01, "reclaim_unit_time_limit_exceeded"},
                               {0x02, "controller_reset"},
                               {0x03, "invalid_placement_identifier"}};
constexpr Kind kControllerKinds[] = {{0x80, "media_reallocated"}, {0x81, "implicit_handle_change"}};

util::Result<PageContent> count(Bytes page, std::span<const Kind> kinds, std::string_view other) {
  std::array<std::size_t, 256> events{};
  const auto in_log = std::min<std::size_t>(read_number(page, 0, 4), kMaxEvents);
  for (std::size_t event = 0; event < in_log; ++event) {
    ++events.at(page[kHeader + kEvent * event]);
  }
  PageContent content;
  std::size_t unknown = in_log;
  for (const auto& kind : kinds) {
    const auto of_kind = events.at(kind.type);
    unknown -= of_kind;
    content.values.push_back({F::fdp_events, std::string(kind.name), static_cast<double>(of_kind)});
  }
  content.values.push_back({F::fdp_events, std::string(other), static_cast<double>(unknown)});
  return content;
}

bool offered(const model::NvmeIdentity& identity) { return (identity.controller_attributes & kHasDataPlacement) != 0; }

constexpr LogPage events_page(std::string_view name, std::uint8_t lsp,
                              util::Result<PageContent> (*decode)(Bytes, const model::NvmeIdentity&)) {
  return {.name = name,
          .lid = 0x23,
          .lsp = lsp,
          .bytes = kMaxPageBytes,
          .scope = Scope::no_namespace,
          .per_endurance_group = true,
          .offered = offered,
          .decode_whole = decode};
}

}  // namespace

extern const LogPage kFdpHostEvents = events_page(
    "fdp_host_events", 1, [](Bytes page, const model::NvmeIdentity&) { return count(page, kHostKinds, "other_host"); });
extern const LogPage kFdpControllerEvents = events_page(
    "fdp_controller_events", 0,
    [](Bytes page, const model::NvmeIdentity&) { return count(page, kControllerKinds, "other_controller"); });

}  // namespace ssdpulse::nvme
