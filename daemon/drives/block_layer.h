// SPDX-License-Identifier: Apache-2.0
// BlockLayer: what the block layer reports about a device right now, for those who cannot wait for the next snapshot.
// Implemented by the sampler; tests have their own.
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

  /// Counted up to this moment, all zero before the first I/O; null where the device is not measured, or has no place.
  virtual std::shared_ptr<const model::DeviceIo> device(const std::string& name) = 0;

  /// Bytes that one request to the device can have at most; nothing where that is not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> largest_request_bytes(const std::string& name) const = 0;

  /// Runs of our programs that the kernel has skipped so far, whatever device they were for.
  [[nodiscard]] virtual std::uint64_t skipped_runs() const = 0;
};

}  // namespace ssdpulse::drives
