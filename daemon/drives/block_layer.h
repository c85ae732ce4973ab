// SPDX-License-Identifier: Apache-2.0
// BlockLayer: what the block layer reports about a device right now, for callers that cannot wait for the next
// snapshot. Implemented by the sampler; tests have their own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/model/snapshot.h"

namespace ssdpulse::drives {

class BlockLayer {
 public:
  BlockLayer() = default;
  BlockLayer(const BlockLayer&) = delete;
  BlockLayer& operator=(const BlockLayer&) = delete;
  virtual ~BlockLayer() = default;

  /// Counted up to this moment, all zero before the first I/O; null if the device is not measured, or has no place.
  virtual std::shared_ptr<const model::DeviceIo> device(const std::string& name) = 0;

  /// The largest size of one request to the device, in bytes; nothing if it is not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> largest_request_bytes(const std::string& name) const = 0;

  /// Runs of our programs that the kernel has skipped so far, whatever device they were for.
  [[nodiscard]] virtual std::uint64_t skipped_runs() const = 0;
};

}  // namespace ssdpulse::drives
