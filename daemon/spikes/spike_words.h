// SPDX-License-Identifier: Apache-2.0
// Explanation: why a spike happened and what to do about it, in words: the sentence of its cause for its operation and
// load, which the first line, the page, `top` and the history show. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/history/recent_past.h"
#include "daemon/model/incident.h"
#include "daemon/model/latency_spike.h"

namespace ssdpulse::spikes {

using model::Load;

enum class Tense : std::uint8_t { present, past };

struct Explanation {
  std::string because;       // "because the drive is collecting garbage"
  std::string next;          // what to do
  std::string_view runbook;  // name of the page with more about it
};

/// What to do, without a writer to limit where not more is written than usual.
std::string next_for_load(std::string next, const model::LatencySpike& spike);
/// What to do, where it is known who should do less: for whoever "sends most" or "calls fsync so often", the name.
std::string next_for_culprit(std::string next, const std::string& culprit);

inline constexpr double kStandstillSeconds = 3;  // in which nothing completes: worth a sentence of its own

Load load_of(const model::LatencySpike& spike);
/// For a column: "too much load by backup.service". `load`: as for explain().
std::string short_words(const model::LatencySpike& spike, std::optional<Load> load = std::nullopt);
/// Of all spikes of the headline's device that have its cause: one sentence has one load.
Load load_of(const model::Incident& incident);

/// `bursts`: of discards; one of the same device and time names who trims. `load`: of the incident that it belongs to;
/// absent: its own.
Explanation explain(const model::LatencySpike& spike, const std::vector<history::Burst>& bursts, Tense tense,
                    std::optional<Load> load = std::nullopt);

// EvidenceWords: what was measured in a spike, in sentences: what decided its cause, what other causes it ruled out,
// and the rest. Pure.

struct EvidenceWords {
  std::vector<std::string> decided;    // how much was slow, who did and who waited; what speaks for the cause
  std::vector<std::string> ruled_out;  // what speaks against other causes
  std::vector<std::string> other;
};

EvidenceWords evidence_words(const model::LatencySpike& spike);

}  // namespace ssdpulse::spikes
