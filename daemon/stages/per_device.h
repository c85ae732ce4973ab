// SPDX-License-Identifier: Apache-2.0
// PerDevice: what a stage remembers about each device: one State while it is the same device (see model/incarnation.h).
// The State is dropped with the device, and another device of the same name gets a new one.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "daemon/stages/tick.h"

namespace ssdpulse::stages {

/// A State is constructed from nothing, or from the name of its device.
template <typename State>
class PerDevice {
 public:
  /// Calls visit(number, device, state) for each device of the tick.
  template <typename Visit>
  void observe(const Tick& tick, Visit visit) {
    std::map<std::string, Entry> before = std::exchange(kept_, {});
    for (std::size_t number = 0; number < tick.devices.size(); ++number) {
      const DeviceTick& device = tick.devices[number];
      const std::string& name = device.block.device->name;
      auto known = before.extract(name);
      const bool same = !known.empty() && is_same(known.mapped(), device);
      Entry& kept = (same ? kept_.insert(std::move(known)).position : kept_.emplace(name, make(name)).first)->second;
      if (device.block.io) {
        kept.since = device.block.io->since;
      }
      visit(number, device, kept.state);
    }
  }

  /// The state of a device of the last tick; null if it was not in it.
  [[nodiscard]] const State* find(const std::string& device) const {
    const auto found = kept_.find(device);
    return found == kept_.end() ? nullptr : &found->second.state;
  }

 private:
  struct Entry {
    State state;
    std::optional<model::WallTime> since = {};  // of the counters; absent while there are none
  };
  static bool is_same(const Entry& kept, const DeviceTick& now) {
    return !kept.since || !now.block.io || kept.since == now.block.io->since;
  }
  static Entry make(const std::string& name) {
    if constexpr (std::is_constructible_v<State, std::string>) {
      return Entry{State(name)};
    } else {
      return Entry{State{}};
    }
  }

  std::map<std::string, Entry> kept_;
};

}  // namespace ssdpulse::stages
