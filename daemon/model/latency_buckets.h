// SPDX-License-Identifier: Apache-2.0
// Figures of the samples between two readings of a cumulative latency histogram. Buckets are those of
// bpf/abi/latency_buckets.h. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "daemon/model/snapshot.h"

namespace ssdpulse::model {

using LatencyBuckets = std::vector<std::uint64_t>;

/// Device times of these operations, whatever else was in flight.
LatencyBuckets device_time_buckets(const DeviceIo& io, std::initializer_list<Operation> operations);

void add(LatencyBuckets& sum, const LatencyBuckets& more);
std::uint64_t count(const LatencyBuckets& buckets);

/// What was added between two cumulative counts; nothing if a count decreased (a device was reset).
std::optional<LatencyBuckets> added(const LatencyBuckets& before, const LatencyBuckets& after);

/// The bucket in which this share (0..1) of the samples ends. There must be samples.
std::size_t quantile_bucket(const LatencyBuckets& buckets, double share);

/// The upper bound of a bucket, in seconds; 0 for the bucket of differences that were not positive, 64 for the last.
double upper_bound_seconds(std::size_t bucket);

}  // namespace ssdpulse::model
