// SPDX-License-Identifier: Apache-2.0
// How the words of a histogram are encoded as bytes, in memory and in the file: how many, and for each its distance
// from the one before, and how many samples it has. Exact both ways. Pure.
#pragma once

#include "daemon/model/latency_buckets.h"
#include "daemon/util/varints.h"

namespace ssdpulse::model {

void put(util::VarintWriter& out, const SparseBuckets& words);

/// Words that are not ascending, out of range or without samples are as little good as missing bytes.
SparseBuckets take_words(util::VarintReader& in);

}  // namespace ssdpulse::model
