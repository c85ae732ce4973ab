// SPDX-License-Identifier: Apache-2.0
// AttributionAccount: the I/O of one device by cgroup and path, as much of it as the device's own counts show.
//
// A device's own cells are read first, then the attributed ones, which therefore include what ended in between. That
// must not be in only one of the sums, so what exceeds the device's own count waits for the next reading. If there is
// still more then, although the device's count stood still, it is published anyway: a true difference stays visible.
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

  /// The device's own counts of an operation since the start: timed and untimed ends, strays, bytes. Once per reading.
  void settle(model::Operation operation, std::uint64_t ios, std::uint64_t bytes);

  /// The same while nothing is attributed: what the device counts meanwhile belongs to nobody, then and later.
  void leave_out(model::Operation operation, std::uint64_t ios, std::uint64_t bytes);

  /// Moves what was counted for the cgroup to the departed ones.
  void depart(model::CgroupId cgroup);

  /// Returns the same object while nothing changes.
  std::shared_ptr<const model::DeviceAttribution> published();

 private:
  /// No cgroup: there was no room for it. kDeparted: any that departed.
  using Owner = std::optional<model::CgroupId>;
  using Path = std::uint32_t;  // PATH_*, with PATH_RAW
  struct Operation {
    std::map<std::pair<Owner, Path>, model::AttributedTotals> waiting;
    model::AttributedTotals target{};     // the device's own counts, at the last reading
    model::AttributedTotals published{};  // of all owners
    model::AttributedTotals left_out{};   // of the device's own counts
    bool waited = false;                  // some of it has waited since the last reading
  };

  void publish_all(std::size_t operation, model::AttributedTotals room);
  void publish(std::size_t operation, const Owner& owner, Path path, const model::AttributedTotals& totals);

  model::DeviceAttribution totals_;
  model::ByOperation<Operation, model::kAttributedOperations> operations_;
  std::shared_ptr<const model::DeviceAttribution> published_;
};

}  // namespace ssdpulse::block
