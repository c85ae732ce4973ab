// SPDX-License-Identifier: Apache-2.0
// AttributionAccount: the I/O of one device by cgroup and path, as many as the device's own counts tell.
//
// A device's own cells are read first, then the attributed ones: those hold what ended in between, too, and it must not
// be in the one sum and not in the other. So what is more than the device's own count waits for the next look. What is
// still more then, although the device's count stood still, is published all the same: a true difference stays visible.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "daemon/model/attribution.h"
#include "daemon/sources/block/attribution_reader.h"

namespace ssdpulse::block {

class AttributionAccount {
 public:
  void add(const AttributedIncrement& increment);

  /// The device's own counts of one operation since the start: ends that were timed, strays, and bytes. Once a look.
  void settle(model::AttributedOperation operation, std::uint64_t ios, std::uint64_t bytes);

  /// The same while nothing is attributed: what the device counts meanwhile is nobody's, then and later.
  void leave_out(model::AttributedOperation operation, std::uint64_t ios, std::uint64_t bytes);

  /// What was counted for the cgroup goes to those that departed.
  void depart(model::CgroupId cgroup);

  /// The same one while nothing changed.
  std::shared_ptr<const model::DeviceAttribution> published();

 private:
  /// No cgroup: there was no room for it. kDeparted: any that departed.
  using Owner = std::optional<model::CgroupId>;
  using Path = std::uint32_t;  // PATH_*, with PATH_RAW
  struct Operation {
    std::map<std::pair<Owner, Path>, model::AttributedTotals> waiting;
    model::AttributedTotals target{};     // the device's own, at the last look
    model::AttributedTotals published{};  // of all owners
    model::AttributedTotals left_out{};   // of the device's own
    bool waited = false;                  // some of it since the last look
  };

  void publish_all(std::size_t operation, model::AttributedTotals room);
  void publish(std::size_t operation, const Owner& owner, Path path, const model::AttributedTotals& totals);

  model::DeviceAttribution totals_;
  std::array<Operation, model::kAttributedOperations> operations_;
  std::shared_ptr<const model::DeviceAttribution> published_;
};

}  // namespace ssdpulse::block
