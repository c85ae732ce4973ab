// SPDX-License-Identifier: Apache-2.0
// LatencySpike: when a device's reads, writes, flushes or commits were slower than usual, and why. A spike keeps its
// numbers, so that its cause can be checked. One table has all of these numbers: the name of one in evidence
// (`device_share=0.97`) is that of its enumerator. Values only.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/spike_cause.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::model {

/// From this part of a commit on, its flushes explain it: it waits for the flush that is under way, for its own, and,
/// where the drive has no FUA, for one after the data. And buckets are 9 % wide.
inline constexpr double kFlushPartOfCommit = 0.2;

/// Times the usual number of flushes, from which on there are too many: fewer are chance.
inline constexpr double kMoreFlushes = 2;

/// How a value reads in a sentence. `flag`: not at all, the sentence is true. `hidden`: there is no sentence.
enum class EvidenceForm : std::uint8_t { share, times, number, bytes, seconds, flag, hidden };

struct EvidenceRow {
  std::string_view name;
  EvidenceForm form;
  const char* sentence;  // `{}` stands for the value
  SpikeCause cause;      // that it speaks for
  double against;        // a value below it speaks against that cause; -1: no value does
};

// ROW(name, form, sentence, cause, against), in the order of the sentences.
// clang-format off
#define SSDPULSE_EVIDENCE(ROW) \
  ROW(outliers, number, "Far slower than all others: {} I/Os.", unknown, -1) \
  ROW(longest_device_standstill_seconds, seconds, "Nothing completed for {}.", unknown, -1) \
  ROW(during_discards_share, share, "{} of the slow time in the device overlapped discards.", discard, 0.3) \
  ROW(discards_to_baseline, times, "There were {} discards.", discard, 1.25) \
  ROW(during_flushes_share, share, "{} of the slow time in the device overlapped flushes.", flush, 0.3) \
  ROW(flushes_to_baseline, times, "There were {} flushes.", flush, kMoreFlushes) \
  ROW(flush_to_commit, share, "A slow flush takes {} as long as a slow commit (99th percentiles).", flush, \
      kFlushPartOfCommit) \
  ROW(queue_share, share, "{} of the slow time was spent waiting on the host.", queue, 0.3) \
  ROW(device_share, share, "{} of the slow time was spent in the device.", unknown, -1) \
  ROW(load_to_baseline, times, "There was {} I/O.", saturation, 1.25) \
  ROW(depth_to_baseline, times, "There were {} I/Os of this kind in flight.", saturation, -1) \
  ROW(queue_full_share, share, "All queue slots were in use for {} of the time.", saturation, 0.1) \
  ROW(full_speed_share, share, "The device went on at full speed for {} of the time.", saturation, -1) \
  ROW(errors, number, "I/Os that failed: {}.", error, -1) \
  ROW(failovers, number, "I/Os that moved to another path: {}.", error, -1) \
  ROW(requeues, number, "I/Os that the driver gave back, to be sent again: {}.", error, -1) \
  ROW(other_errors, number, "I/Os of other operations that failed: {}.", error, -1) \
  ROW(other_requeues, number, "I/Os of other operations that the driver gave back: {}.", error, -1) \
  ROW(retry_share, share, "{} of the slow time was spent on sending I/Os again.", error, -1) \
  ROW(host_written_bytes, bytes, "According to the drive, the host wrote {}.", gc, -1) \
  ROW(media_written_bytes, bytes, "According to the drive, it wrote {} to its media.", gc, -1) \
  ROW(baseline_write_amplification, number, "Its usual write amplification is {}.", gc, -1) \
  ROW(gc_events, number, "Garbage collections that the drive reports: {}.", gc, -1) \
  ROW(free_blocks, share, "The drive has {} of its free blocks left.", gc, -1) \
  ROW(thermal_events, number, "Times that the drive throttled to cool down: {}.", thermal, -1) \
  ROW(thermal_warning, flag, "The drive warns about its temperature.", thermal, -1) \
  ROW(accepted_as_baseline, flag, "It lasted so long that it now counts as usual.", unknown, -1) \
  /* What the sentence about the spike is made of */ \
  ROW(standstill_seconds, hidden, "", unknown, -1) /* for so long, none of its operation has completed */ \
  ROW(longest_standstill_seconds, hidden, "", unknown, -1) \
  ROW(standstill_waited_seconds, hidden, "", unknown, -1) /* by all that wait, together */ \
  ROW(device_standstill_seconds, hidden, "", unknown, -1) /* for so long, nothing at all has completed */ \
  ROW(heaviest_written_share, hidden, "", unknown, -1) /* of the bytes of the heaviest tenant; the rest was read */ \
  /* How well each cause that can be claimed explains the spike, 0 to 1; in the order of SpikeCause */ \
  ROW(discard_score, hidden, "", discard, -1) \
  ROW(flush_score, hidden, "", flush, -1) \
  ROW(gc_score, hidden, "", gc, -1) \
  ROW(queue_score, hidden, "", queue, -1) \
  ROW(saturation_score, hidden, "", saturation, -1) \
  ROW(thermal_score, hidden, "", thermal, -1) \
  ROW(error_score, hidden, "", error, -1)
// clang-format on

#define SSDPULSE_ENUMERATOR(name, form, sentence, cause, against) name,
#define SSDPULSE_ROW(name, form, sentence, cause, against) \
  EvidenceRow{#name, EvidenceForm::form, sentence, SpikeCause::cause, against},
enum class EvidenceKey : std::uint8_t { SSDPULSE_EVIDENCE(SSDPULSE_ENUMERATOR) };
inline constexpr std::array kEvidence{SSDPULSE_EVIDENCE(SSDPULSE_ROW)};  // by EvidenceKey
#undef SSDPULSE_ROW
#undef SSDPULSE_ENUMERATOR
#undef SSDPULSE_EVIDENCE

/// `unknown` is what remains where no cause can be claimed.
inline constexpr std::size_t kClaimableCauses = kSpikeCauses - 1;
static_assert(index(SpikeCause::unknown) == kClaimableCauses, "it comes last");

/// The score of a cause that can be claimed.
constexpr EvidenceKey score_of(SpikeCause cause) {
  return static_cast<EvidenceKey>(index(EvidenceKey::discard_score) + index(cause));
}
static_assert(kEvidence.size() == index(score_of(SpikeCause::unknown)), "a score for each cause, at the end");

constexpr const EvidenceRow& evidence_row(EvidenceKey key) { return kEvidence[index(key)]; }

using SpikeEvidence = std::map<EvidenceKey, double>;

/// 0 where it is not known.
inline double amount(const SpikeEvidence& evidence, EvidenceKey key) {
  const auto found = evidence.find(key);
  return found == evidence.end() ? 0 : found->second;
}

/// A tenant's part in a spike; see tenant_io.h.
struct SpikeTenant {
  std::string name;
  std::uint64_t bytes = 0;    // read and written in it; discarded, where the cause is discards
  std::uint64_t commits = 0;  // flushes and FUA writes
  /// By its I/Os together beyond what is usual: reads and writes in the device, and before it if it sent nearly all of
  /// them; commits in all.
  double waited_seconds = 0;
  bool operator==(const SpikeTenant&) const = default;
};
inline constexpr std::size_t kMaxSpikeTenants = 3;

struct LatencySpike {
  std::string device;
  Operation operation = Operation::read;
  std::chrono::system_clock::time_point begin;  // by the clock at the time it was seen; the end is begin + duration
  std::chrono::nanoseconds duration{};
  double peak_seconds = 0;      // in the worst second: 99th percentile of total latency, or the few that waited longest
  double baseline_seconds = 0;  // what the 99th percentile was before
  double excess_seconds = 0;    // waited in it beyond the usual, by all I/Os together
  std::uint64_t ios = 0;        // slower than the limit
  SpikeCause cause = SpikeCause::unknown;
  SpikeEvidence evidence;            // what the cause was derived from
  std::vector<std::string> missing;  // what could not be known
  // Tenants, the first most, at most kMaxSpikeTenants each:
  std::vector<SpikeTenant> heaviest = {};    // with most bytes beyond their own usual
  std::vector<SpikeTenant> committers = {};  // with most commits beyond their own usual
  std::vector<SpikeTenant> slowed = {};      // that waited longest beyond their own usual
  std::uint64_t active_tenants = 0;          // with an I/O per second or more, without the root; 0: not known
};

/// I/Os that wait longer than this in a layer above the device, on average, do not wait for what is slow in the spike:
/// three times as long as it takes itself, as they may wait for one that waits for another. Infinite if I/Os were sent
/// again, which a layer may wait for in ways that are not seen.
inline double longest_wait_seconds(const LatencySpike& spike) {
  constexpr double kTimes = 3;
  constexpr std::array kSentAgain{EvidenceKey::errors, EvidenceKey::failovers, EvidenceKey::requeues,
                                  EvidenceKey::other_errors, EvidenceKey::other_requeues};
  if (spike.cause == SpikeCause::error || std::any_of(kSentAgain.begin(), kSentAgain.end(), [&](EvidenceKey key) {
        return amount(spike.evidence, key) > 0;
      })) {
    return std::numeric_limits<double>::infinity();
  }
  return kTimes * std::max({spike.peak_seconds, amount(spike.evidence, EvidenceKey::longest_standstill_seconds),
                            amount(spike.evidence, EvidenceKey::longest_device_standstill_seconds)});
}

/// name=value, separated by blanks. Of tenants, NAME:BYTES, NAME:COMMITS or NAME:SECONDS, separated by commas.
inline std::string evidence_text(const LatencySpike& spike) {
  std::ostringstream text;
  const auto key = [&text](std::string_view what) -> std::ostream& {
    return text << (text.tellp() > 0 ? " " : "") << what << '=';
  };
  const auto tenants = [&](std::string_view what, const std::vector<SpikeTenant>& list, auto value) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      (i > 0 ? text << ',' : key(what)) << list[i].name << ':' << list[i].*value;
    }
  };
  for (const auto& [what, value] : spike.evidence) {
    key(evidence_row(what).name) << value;
  }
  if (spike.active_tenants > 0) {
    key("active_tenants") << spike.active_tenants;
  }
  tenants("heaviest", spike.heaviest, &SpikeTenant::bytes);
  tenants("committers", spike.committers, &SpikeTenant::commits);
  tenants("slowed", spike.slowed, &SpikeTenant::waited_seconds);
  return text.str();
}

inline std::string missing_text(const LatencySpike& spike) {
  std::string text;
  for (const std::string& what : spike.missing) {
    text += (text.empty() ? "" : "; ") + what;
  }
  return text;
}

/// How slow one operation of one device is when nothing is wrong: what everything shows as usual.
struct SpikeBaseline {
  double p99_seconds = 0;      // of total latency
  double learned_seconds = 0;  // of healthy load that it rests on
  bool operator==(const SpikeBaseline&) const = default;
};

/// One operation of one device.
struct SpikeFigures {
  std::array<std::uint64_t, kSpikeCauses> spikes{};  // that are over, by their final cause; like the next
  std::array<double, kSpikeCauses> seconds{};
  std::array<double, kSpikeCauses>
      excess_seconds{};               // waited beyond the usual, in spikes that are over; outside: unknown
  double pending_excess_seconds = 0;  // the same in ongoing spikes, or whose cause is not final: not yet counted above
  std::optional<SpikeCause> active;   // the best cause so far of an ongoing one
  std::optional<SpikeBaseline> baseline = {};  // absent until it is known
};

}  // namespace ssdpulse::model
