// SPDX-License-Identifier: Apache-2.0
// NumberedTenant, and how a device's load, its tenants and a drive's counters are encoded as bytes in the file. Exact
// both ways. Pure.
//
// Numbers are those of base/varints.h. A load is
//   1                            the layout
//   milliseconds measured
//   mask of operations           bit i: operation i of model::Operation did something; for each of them
//     ios, bytes, sequential bytes, ns with a full queue, errors
//   mask of losses               by bit of model::Loss; a number for each
//   mask of histograms           by bit of model::Latency; for each of them
//     the sum in ns, and its buckets as put() of model/latency_buckets.h writes them
// Tenants are: how many, and for each its id in the file, a mask of model::Operation, and for each of those
// ios, bytes, ns in the device. A counter is 16 bytes, big-endian.
// What comes from a file is accepted only if it is complete: anything else decodes to nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/model/device_interval.h"
#include "daemon/model/nvme_drive.h"

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
void add(std::vector<NumberedTenant>& sum, const std::vector<NumberedTenant>& more);

using CounterBytes = std::array<std::uint8_t, 16>;
CounterBytes encode_counter(model::Uint128 count);
std::optional<model::Uint128> decode_counter(std::span<const std::uint8_t> bytes);

}  // namespace ssdpulse::history
