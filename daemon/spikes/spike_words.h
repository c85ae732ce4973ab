// SPDX-License-Identifier: Apache-2.0
// Explanation: why a spike happened and what to do about it, as text: the sentence of its cause for its operation and
// load, which the first line, the page, `top` and the history show. EvidenceWords: what was measured in a spike, as
// sentences. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/discard_values.h"
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

/// `next` without the advice to limit a writer if the load is as usual.
std::string next_for_load(std::string next, const model::LatencySpike& spike);
/// `next` with the culprit's name where it says who "sends most" or "calls fsync so often".
std::string next_for_culprit(std::string next, const std::string& culprit);

inline constexpr double kStandstillSeconds = 3;  // without a completion: worth a sentence of its own

Load load_of(const model::LatencySpike& spike);
/// For a column: "too much load by backup.service". `load`: as for explain().
std::string short_words(const model::LatencySpike& spike, std::optional<Load> load = std::nullopt);
/// Of all spikes of the headline's device that have its cause: one sentence has one load.
Load load_of(const model::Incident& incident);

/// `bursts`: of discards; one of the same device and time names who trims. `load`: of the incident that it belongs to;
/// absent: its own.
Explanation explain(const model::LatencySpike& spike, const std::vector<model::Burst>& bursts, Tense tense,
                    std::optional<Load> load = std::nullopt);

struct EvidenceWords {
  std::vector<std::string> decided;    // how much was slow, who did and who waited; what speaks for the cause
  std::vector<std::string> ruled_out;  // what speaks against other causes
  std::vector<std::string> other;
};

EvidenceWords evidence_words(const model::LatencySpike& spike);

}  // namespace ssdpulse::spikes
