// SPDX-License-Identifier: Apache-2.0
// FedPast: a RecentPast that is fed as the daemon does it: each snapshot has what its devices did since the one before.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/history/recent_past.h"
#include "daemon/model/device_interval.h"

namespace ssdpulse::test {

class FedPast : public history::RecentPast {
 public:
  using RecentPast::RecentPast;

  void observe(model::Snapshot snapshot, std::optional<std::chrono::steady_clock::time_point> at = std::nullopt) {
    const auto before = std::exchange(before_, {});
    for (model::DeviceSnapshot& device : snapshot.devices) {
      const auto was = before.find(device.device->name);
      if (was != before.end() && was->second && device.io && was->second->since == device.io->since) {
        if (auto interval = model::between(*was->second, *device.io, std::chrono::seconds(1))) {
          device.interval = std::make_shared<const model::DeviceInterval>(std::move(*interval));
        }
      }
      before_[device.device->name] = device.io;
    }
    RecentPast::observe(snapshot, at);
  }

 private:
  std::map<std::string, std::shared_ptr<const model::DeviceIo>> before_;
};

}  // namespace ssdpulse::test
