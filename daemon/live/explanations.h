// SPDX-License-Identifier: Apache-2.0
// Explanation: why a spike happened and what to do about it, in words. One table by operation, cause and load, from
// which the first line, the page, `top` and the history take their sentences. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/live/recent_past.h"
#include "daemon/model/incidents.h"

namespace ssdpulse::live {

/// Of what the cause is about: for `flush`, whether more flushes than usual were sent; for `error`, whether I/Os failed
/// (else they were only sent again); for `unknown`, whether it may be anything but the drive; otherwise whether there
/// was more I/O.
enum class Load : std::uint8_t { usual, more };
inline constexpr std::size_t kLoads = 2;

enum class Tense : std::uint8_t { present, past };

struct Explanation {
  std::string because;       // "because the drive is collecting garbage"
  std::string next;          // what to do
  std::string_view runbook;  // name of the page with more about it
};

/// In a text of the table, [is|was] stands for a word in the present or the past.
struct ExplanationRow {
  std::string_view operations;  // letters: r reads, w writes, f flushes, c commits
  model::SpikeCause cause;
  std::string_view loads;  // letters: u usual, m more
  std::string_view because;
  std::string_view next;
  std::string_view runbook;
};
std::span<const ExplanationRow> explanation_rows();
/// What to do, without a writer to limit where not more is written than usual.
std::string next_for_load(std::string next, const model::LatencySpike& spike);
/// What to do, where it is known who should do less: for whoever "sends most" or "calls fsync so often", the name.
std::string next_for_culprit(std::string next, const std::string& culprit);
/// The only row for these.
const ExplanationRow& explanation_row(model::SpikeOperation operation, model::SpikeCause cause, Load load);

inline constexpr double kStandstillSeconds = 3;  // in which nothing completes: worth a sentence of its own

Load load_of(const model::LatencySpike& spike);
/// For a column: "too much load by backup.service". `load`: as for explain().
std::string short_words(const model::LatencySpike& spike, std::optional<Load> load = std::nullopt);
/// Of all spikes of the headline's device that have its cause: one sentence has one load.
Load load_of(const model::Incident& incident);

/// `bursts`: of discards; one of the same device and time names who trims. `load`: of the incident that it belongs to;
/// absent: its own.
Explanation explain(const model::LatencySpike& spike, const std::vector<Burst>& bursts, Tense tense,
                    std::optional<Load> load = std::nullopt);

}  // namespace ssdpulse::live
