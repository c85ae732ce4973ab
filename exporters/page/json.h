// SPDX-License-Identifier: Apache-2.0
// Values of the model as JSON. Only for the files of this folder. Times are seconds since the epoch, to the
// millisecond; all else is in base units. Unknown values are null.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/doctor/finding_ages.h"
#include "daemon/live/explanations.h"
#include "daemon/live/recent_past.h"
#include "daemon/live/what_if.h"
#include "daemon/live/why.h"
#include "daemon/model/device_interval.h"
#include "daemon/model/past.h"
#include "daemon/model/snapshot.h"
#include "daemon/util/outside_text.h"
#include "exporters/page/object.h"

namespace ssdpulse::page {

double seconds_of(model::WallTime time);
Json rounded(double value);         // to four digits: words are 9 % apart
Json latency_of(std::size_t word);  // upper bound of the word, in seconds
Json bounds_json();                 // of all words
/// Upper bound of the word in which this share of the I/Os has ended; null without I/Os.
Json quantile_of(const model::SparseHistogram& histogram, double share);

/// One column of a heatmap, "FIRST:LEVELS": the word of the first level, and one level per word. '0': none, '1': one
/// I/O, '2': two or three, '3': four to seven, and so on. Empty without I/Os.
std::string heat_text(const model::SparseBuckets& buckets);
/// One of those that have histograms. Empty: reads; nothing: there is no such operation.
std::optional<model::Operation> operation_in(const std::string& name);

/// The run of the daemon, and the number and time of its snapshot: the head of every answer.
Json head_of(const model::Snapshot& snapshot);
std::string run_of(const model::Snapshot& snapshot);

using model::drive_of;

Json sentences_json(const std::vector<std::string>& sentences);
/// `over`: the spike has ended.
Json spike_json(const model::LatencySpike& spike, bool over, const std::vector<live::Burst>& bursts,
                std::optional<live::Load> load = std::nullopt);
Json burst_json(const live::Burst& burst);
/// What held up I/O above the drives, as a mark. `now`: to name volumes and disks as people know them.
/// `clock_ahead`: of the history, whether the clock was that stamped it.
Json wait_mark_json(const model::HostWait& wait, const model::Snapshot& now, std::optional<bool> clock_ahead = {});
Json why_json(const live::Why& why, const std::vector<live::Burst>& bursts);
Json heat_json(const std::string& operation, Json levels);
Json attributed_json(const model::AttributedTotals& totals);
live::Situation situation_of(const model::Snapshot& snapshot, const live::RecentPast& past);

// The answers of /api/v1, each documented in api.schema.json.
Json devices_json(const model::Snapshot& snapshot, const live::RecentPast& past);
Json why_answer_json(const model::Snapshot& snapshot, const live::Why& why, const std::vector<live::Burst>& bursts);
/// The columns after the snapshot `since`; 0: all in memory.
Json live_json(const model::Snapshot& snapshot, const live::RecentPast& past, const std::string& device,
               std::uint64_t since, model::Operation heat);
Json column_json(const model::Snapshot& snapshot, const live::RecentPast& past, const std::string& device,
                 std::uint64_t number);  // null if memory does not reach that far
Json tenants_json(const model::DeviceSnapshot& device, const model::Snapshot& snapshot);
Json what_if_json(const model::Snapshot& snapshot, const std::string& device, const live::WhatIfQuestion& question);
/// `past` null: nothing is known, for this `reason`.
Json day_json(const model::PastDay* past, std::string_view reason);
Json status_json(const model::Snapshot& snapshot, const live::RecentPast& past);
Json doctor_json(const model::Snapshot& snapshot, const doctor::FindingAges& finding_ages);

// The objects that each file makes, for the schema.
Definitions mark_definitions();
Definitions device_definitions();
Definitions day_definitions();
Definitions what_if_definitions();
Definitions live_definitions();
Definitions history_definitions();
Definitions tenant_definitions();
Definitions status_definitions();

}  // namespace ssdpulse::page
