// SPDX-License-Identifier: Apache-2.0
// The bytes in which a device's load is kept in the file, and its tenants. Exact both ways. Pure.
//
// Numbers are variable-length: seven bits a byte, the lowest first, the eighth bit says that more follow. A load is
//   1                            the layout
//   milliseconds measured
//   mask of operations           bit i: operation i of model::Operation did something; for each of them
//     ios, bytes, sequential bytes, ns with a full queue, errors
//   mask of losses               by bit of model::Loss; a number for each
//   mask of histograms           by bit of model::Latency; for each of them
//     how many words, the sum in ns, and for each word: how far behind the one before, and how many I/Os
// Tenants are: how many, and for each its id in the file, a mask of model::AttributedOperation, and for each of those
// ios, bytes, ns in the device.
// What comes from a file is believed only as far as it is whole: anything else is nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/model/device_load.h"

namespace ssdpulse::history {

std::vector<std::uint8_t> encode(const model::DeviceLoad& load);
std::optional<model::DeviceLoad> decode(std::span<const std::uint8_t> bytes);

/// A tenant as it stands in the file, where names have numbers.
struct NumberedTenant {
  std::int64_t id = 0;
  model::TotalsByOperation totals{};
  bool operator==(const NumberedTenant&) const = default;
};
inline constexpr std::size_t kMostTenantsOfARow = 64;
std::vector<std::uint8_t> encode(const std::vector<NumberedTenant>& tenants);
std::optional<std::vector<NumberedTenant>> decode_tenants(std::span<const std::uint8_t> bytes);

}  // namespace ssdpulse::history
