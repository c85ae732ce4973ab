// SPDX-License-Identifier: Apache-2.0
// Which drive is slow, since when, by how much, why, and what to do next? One sentence, the first line wherever people
// look. Pure: it says what the newest snapshot and the recent past hold, and no more.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/live/recent_past.h"

namespace ssdpulse::live {

enum class Verdict : std::uint8_t {
  usual,    // no drive is slower than usual
  slow,     // one is, at the time that was asked for
  unknown,  // nothing can be said, and why
};
inline constexpr std::array<std::string_view, 3> kVerdictNames{"usual", "slow", "unknown"};

struct Why {
  Verdict verdict = Verdict::usual;
  std::string sentence;  // plain text; names of devices come from the kernel
  std::string next;      // what to do; empty: nothing
  std::string runbook;   // name of the page that says more; empty: none
  std::string device;    // the slow one; empty: none
};

/// What the answer goes by. `known_since`: when measuring began, or how far back memory reaches for times past.
struct Situation {
  const model::Snapshot* now = nullptr;
  std::vector<model::LatencySpike> ended;
  std::vector<Burst> bursts;
  std::optional<model::WallTime> known_since;
};

/// Of the newest snapshot, or of the time `at`.
Why why(const Situation& situation, std::optional<model::WallTime> at = std::nullopt);

/// The parts that explain one spike, for lists of them.
std::string cause_words(const model::LatencySpike& spike, const std::vector<Burst>& bursts);
std::string next_step(model::SpikeCause cause);
std::string_view runbook_of(model::SpikeCause cause);
/// The evidence as sentences: what was measured, and what it means.
std::vector<std::string> evidence_sentences(const model::LatencySpike& spike);

}  // namespace ssdpulse::live
