// SPDX-License-Identifier: Apache-2.0
// Figures of the samples between two readings of a cumulative latency histogram. Words are those of
// bpf/abi/latency_buckets.h. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "daemon/model/snapshot.h"

namespace ssdpulse::model {

using LatencyWords = std::vector<std::uint64_t>;

/// Device times of these operations, whatever else was in flight.
LatencyWords device_time_words(const DeviceIo& io, std::initializer_list<Operation> operations);

void add(LatencyWords& sum, const LatencyWords& more);
std::uint64_t count(const LatencyWords& words);

/// What was added between two cumulative counts; nothing if a count decreased (a device was reset).
std::optional<LatencyWords> added(const LatencyWords& before, const LatencyWords& after);

/// The word in which this share (0..1) of the samples ends. There must be samples.
std::size_t quantile_word(const LatencyWords& words, double share);

/// The upper bound of a word, in seconds; 0 for the word of differences that were not positive, 64 for the last.
double upper_bound_seconds(std::size_t word);

}  // namespace ssdpulse::model
