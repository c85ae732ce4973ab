// SPDX-License-Identifier: Apache-2.0
// Why: one sentence that says which drive is slow, since when, by how much, why, and what to do next: the first line of
// the page, of `top` and of `ssdpulse why`. It speaks of incidents: of the worst one now, otherwise of the one that
// ended last. Pure: it reports what the newest snapshot, the recent past and the history contain, no more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/history/recent_past.h"
#include "daemon/model/discard_values.h"
#include "daemon/model/history_answers.h"
#include "daemon/model/incident.h"

namespace ssdpulse::spikes {

enum class Verdict : std::uint8_t {
  ok,       // no drive is slower than usual
  slow,     // one is, at the time that was asked for
  unknown,  // nothing can be said; the answer explains why
};
inline constexpr auto kVerdictNames = util::names<Verdict>({"ok", "slow", "unknown"});

/// What is known about a time. Zero I/Os, no data and out of range are always distinguished.
enum class Coverage : std::uint8_t {
  recorded,
  no_data,       // nobody measured then, or it could not be kept
  out_of_range,  // before everything that is kept
  to_come,       // in the future
};
inline constexpr auto kCoverageNames = util::names<Coverage>({"recorded", "no_data", "out_of_range", "to_come"});

/// The time that an answer is about: the whole minute, whatever second of it was asked for, as in tables of the past.
struct Moment {
  Coverage coverage = Coverage::recorded;
  model::WallTime begin;
  std::chrono::minutes step{1};  // of the figures kept for then: an hour where minutes are no longer kept
};

/// When the incident was that the sentence is about.
enum class When : std::uint8_t {
  now,
  ended,    // within the last kJustNow: nothing is slow any more
  earlier,  // before that
  then,     // at the time that was asked for
};
inline constexpr auto kWhenNames = util::names<When>({"now", "ended", "earlier", "then"});
inline constexpr std::chrono::minutes kJustNow{2};

struct Why {
  Verdict verdict = Verdict::ok;
  std::string sentence = {};  // plain text; names of devices come from the kernel
  /// The sentence in parts, of an answer about now; each may be empty.
  struct Parts {
    std::string summary;  // what is slow, since when and why; or that nothing is
    std::string remarks;  // what else is so
    std::string past;     // what was, and is over
  };
  Parts parts = {};
  std::string next = {};              // what to do; empty: nothing
  std::string runbook = {};           // name of the page with more about it; empty: none
  std::string device = {};            // the slow one; empty: none
  std::optional<Moment> moment = {};  // absent: the answer is about now
  /// The incident that the sentence is about; its headline() is the spike that the other members describe.
  std::optional<model::Incident> incident = {};
  std::optional<model::HostWait> wait = {};  // the same of what holds up I/O above the drives
  std::string wait_words = {};               // what does: a sentence without time and full stop
  std::optional<When> when = {};
  std::string culprit = {};  // tenant; empty: nobody can be named
  std::string victim = {};   // tenant that was slowed most; empty: not known
};

/// What the answer is based on.
struct Situation {
  const model::Snapshot* now = nullptr;  // required
  std::vector<model::LatencySpike> ended;
  std::vector<model::Burst> bursts;
  std::optional<model::WallTime> known_since;            // when measuring began
  std::optional<model::WallTime> remembered_since = {};  // no spike after it was forgotten; absent: as known_since
  std::optional<model::PastMoment> past = {};            // what the history has about the minute asked for
  std::string no_past = "no history is kept";            // why it has nothing
  std::vector<model::HostWait> ended_waits = {};
};

/// What memory knows; nothing of the history. The snapshot must outlive it.
Situation situation_of(const model::Snapshot& snapshot, const history::RecentPast& past);

/// About the newest snapshot, or the minute that holds `at`.
Why why(const Situation& situation, std::optional<model::WallTime> at = std::nullopt);

}  // namespace ssdpulse::spikes
