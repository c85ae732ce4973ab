// SPDX-License-Identifier: Apache-2.0
// How a device's load and its tenants are encoded as bytes in the file. Exact both ways. Pure.
//
// Numbers are those of util/varints.h. A load is
//   1                            the layout
//   milliseconds measured
//   mask of operations           bit i: operation i of model::Operation did something; for each of them
//     ios, bytes, sequential bytes, ns with a full queue, errors
//   mask of losses               by bit of model::Loss; a number for each
//   mask of histograms           by bit of model::Latency; for each of them
//     the sum in ns, and its words as in model/sparse_codec.h
// Tenants are: how many, and for each its id in the file, a mask of model::Operation, and for each of those
// ios, bytes, ns in the device.
// What comes from a file is accepted only if it is complete: anything else decodes to nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/model/device_interval.h"

namespace ssdpulse::history {

std::vector<std::uint8_t> encode(const model::DeviceInterval& load);
std::optional<model::DeviceInterval> decode(std::span<const std::uint8_t> bytes);

/// A tenant as stored in the file, where names have numbers.
struct NumberedTenant {
  std::int64_t id = 0;
  model::TotalsByOperation totals{};
  bool operator==(const NumberedTenant&) const = default;
};
inline constexpr std::size_t kMaxTenantsOfARow = 64;
std::vector<std::uint8_t> encode(const std::vector<NumberedTenant>& tenants);
std::optional<std::vector<NumberedTenant>> decode_tenants(std::span<const std::uint8_t> bytes);

}  // namespace ssdpulse::history
