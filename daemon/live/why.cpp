// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/why.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/live/past_spikes.h"
#include "daemon/live/words.h"

namespace ssdpulse::live {
namespace {

using model::LatencySpike;
using model::SpikeCause;
using model::WallTime;
using Seconds = std::chrono::duration<double>;

constexpr std::chrono::seconds kTooEarly{15};  // the detectors take this long to learn what is usual
constexpr std::chrono::minutes kLately{15};    // a slow time that is over is still worth mentioning
constexpr std::chrono::seconds kNear{2};       // people name a time to the second, spikes begin in between

WallTime end_of(const LatencySpike& spike) {
  return spike.begin + std::chrono::duration_cast<WallTime::duration>(spike.duration);
}

std::string_view operation_words(model::SpikeOperation operation) {
  constexpr std::array<std::string_view, model::kSpikeOperations> kWords{"reads", "writes", "flushes",
                                                                         "commits (fsync)"};
  return name(operation, kWords);
}

/// "reads take up to 24 ms, 12 times longer than usual (2 ms)"
std::string slowness_words(const LatencySpike& spike, std::string_view verb) {
  std::string words =
      fmt::format("{} {} {}", operation_words(spike.operation), verb, latency_words(spike.peak_seconds));
  if (spike.baseline_seconds > 0 && spike.peak_seconds > spike.baseline_seconds) {
    words += fmt::format(", {} longer than usual ({})", factor_words(spike.peak_seconds / spike.baseline_seconds),
                         latency_words(spike.baseline_seconds));
  }
  return words;
}

/// The waiting beyond the usual; if that was not kept, an estimate from the worst second.
double cost_of(const LatencySpike& spike) {
  return spike.excess_seconds > 0
             ? spike.excess_seconds
             : std::max(0.0, spike.peak_seconds - spike.baseline_seconds) * static_cast<double>(spike.ios);
}

/// Flushes that made commits slow at the same time: the spike of the commits shows that, and commits are what a caller
/// of fsync waits for.
bool is_part_of_a_commit(const LatencySpike& spike, const std::vector<LatencySpike>& spikes) {
  return spike.operation == model::SpikeOperation::flush &&
         std::any_of(spikes.begin(), spikes.end(), [&](const LatencySpike& other) {
           return other.operation == model::SpikeOperation::commit && other.device == spike.device &&
                  other.begin < end_of(spike) && spike.begin < end_of(other);
         });
}

/// The one with the most waiting; null if there is none.
const LatencySpike* worst_of(const std::vector<LatencySpike>& spikes) {
  const LatencySpike* worst = nullptr;
  for (const LatencySpike& spike : spikes) {
    if (!is_part_of_a_commit(spike, spikes) && (worst == nullptr || cost_of(*worst) < cost_of(spike))) {
      worst = &spike;
    }
  }
  return worst;
}

/// " 2 other drives are slow too: sdb, sdc."
std::string others_words(const std::vector<LatencySpike>& spikes, const std::string& device, std::string_view verb) {
  std::vector<std::string> names;
  for (const LatencySpike& spike : spikes) {
    if (spike.device != device && std::find(names.begin(), names.end(), spike.device) == names.end()) {
      names.push_back(spike.device);
    }
  }
  if (names.empty()) {
    return "";
  }
  constexpr std::size_t kNamed = 3;
  const std::size_t count = names.size();
  names.resize(std::min(count, kNamed));
  const std::string more = count > kNamed ? fmt::format(" and {} more", count - kNamed) : "";
  return fmt::format(" {} {} slow too: {}{}.", count == 1 ? "Another drive" : fmt::format("{} other drives", count),
                     count > 1 ? verb : (verb == "are" ? "is" : "was"), fmt::join(names, ", "), more);
}

/// " backup.service moved most (1.2 GB), db.service was slowed most (by 3.1 s)."
std::string tenants_words(const LatencySpike& spike) {
  std::string words;
  if (!spike.heaviest.empty()) {
    words += fmt::format(" {} {} most ({})", spike.heaviest[0].name,
                         spike.cause == SpikeCause::discard ? "discarded" : "moved",
                         size_words(static_cast<double>(spike.heaviest[0].bytes)));
  }
  if (!spike.slowed.empty()) {
    words += fmt::format("{} {} was slowed most (by {})", words.empty() ? "" : ",", spike.slowed[0].name,
                         latency_words(spike.slowed[0].waited_seconds));
  }
  return words.empty() ? words : words + ".";
}

Why slow(const LatencySpike& spike, std::string sentence) {
  return {Verdict::slow, std::move(sentence), next_step(spike.cause), std::string(runbook_of(spike.cause)),
          spike.device};
}

/// What makes the answer incomplete: drives whose latency nobody records.
std::string blind_words(const model::Snapshot& now) {
  std::vector<std::string> names;
  for (const model::DeviceSnapshot& device : now.devices) {
    if (!device.device->iostats) {
      names.push_back(device.device->name);
    }
  }
  return names.empty() ? ""
                       : fmt::format(" Nothing is known about {}: the kernel records no times (iostats is 0).",
                                     fmt::join(names, ", "));
}

Why unknown(std::string sentence, std::string next = "", std::string runbook = "") {
  return {Verdict::unknown, std::move(sentence), std::move(next), std::move(runbook), ""};
}

Why right_now(const Situation& situation) {
  const model::Snapshot& now = *situation.now;
  if (const LatencySpike* spike = worst_of(now.spikes_going_on)) {
    return slow(*spike,
                fmt::format("{}: {}, since {} ({}), {}.{}{}", spike->device, slowness_words(*spike, "take up to"),
                            clock_words(spike->begin), duration_words(Seconds(spike->duration).count()),
                            cause_words(*spike, situation.bursts), tenants_words(*spike),
                            others_words(now.spikes_going_on, spike->device, "are")));
  }
  if (const auto since = situation.known_since; !since || now.taken_at - *since < kTooEarly) {
    const double seconds = since ? Seconds(now.taken_at - *since).count() : 0;
    return unknown(fmt::format("Measuring began {} ago: too early to say what is usual.", duration_words(seconds)));
  }
  std::vector<LatencySpike> lately = now.spikes_unjudged;
  std::copy_if(situation.ended.begin(), situation.ended.end(), std::back_inserter(lately),
               [&](const LatencySpike& spike) { return now.taken_at - end_of(spike) < kLately; });
  Why usual{Verdict::usual, "No drive is slower than usual." + blind_words(now), "", "", ""};
  if (const LatencySpike* spike = worst_of(lately)) {
    const double ago = Seconds(now.taken_at - end_of(*spike)).count();
    usual.sentence +=
        fmt::format(" {} was, until {} ago: {} at worst, for {}, {}.{}", spike->device, duration_words(ago),
                    slowness_words(*spike, "took"), duration_words(Seconds(spike->duration).count()),
                    cause_words(*spike, situation.bursts), tenants_words(*spike));
    usual.next = next_step(spike->cause);
    usual.runbook = runbook_of(spike->cause);
  }
  return usual;
}

/// Spikes of the minute: those in memory, and those that only the history has.
std::vector<LatencySpike> spikes_of(const Situation& situation, const Moment& moment) {
  std::vector<LatencySpike> then;
  const auto take = [&](const LatencySpike& spike) {
    const bool known = std::any_of(then.begin(), then.end(), [&](const LatencySpike& one) {
      return one.device == spike.device && one.operation == spike.operation &&
             std::chrono::abs(one.begin - spike.begin) < kNear;
    });
    if (!known && spike.begin < moment.begin + std::chrono::minutes(1) && end_of(spike) >= moment.begin) {
      then.push_back(spike);
    }
  };
  const model::Snapshot& now = *situation.now;
  std::for_each(situation.ended.begin(), situation.ended.end(), take);
  std::for_each(now.spikes_unjudged.begin(), now.spikes_unjudged.end(), take);
  std::for_each(now.spikes_going_on.begin(), now.spikes_going_on.end(), take);
  if (situation.past) {
    for (const model::PastSpike& spike : situation.past->spikes) {
      take(spike_of(spike));
    }
  }
  return then;
}

std::vector<Burst> bursts_of(const Situation& situation) {
  std::vector<Burst> bursts = situation.bursts;
  if (situation.past) {
    for (const model::PastBurst& burst : situation.past->bursts) {
      bursts.push_back(burst_of(burst));
    }
  }
  return bursts;
}

std::optional<WallTime> oldest_of(const model::PastReach& reach) {
  std::optional<WallTime> oldest;
  for (const auto& one : {reach.minutes, reach.hours, reach.quantiles}) {
    if (one) {
      oldest = std::min(oldest.value_or(*one), WallTime(*one));
    }
  }
  return oldest;
}

/// Nothing was recorded in that minute: why not?
Why not_recorded(const Situation& situation, Moment moment) {
  const WallTime now = situation.now->taken_at;
  const auto told = [&](Coverage coverage, std::string sentence) {
    Why answer = unknown(std::move(sentence));
    moment.coverage = coverage;
    answer.moment = moment;
    return answer;
  };
  const auto oldest = situation.past ? oldest_of(situation.past->reach) : std::nullopt;
  if (!oldest) {
    const auto since = situation.remembered_since ? situation.remembered_since : situation.known_since;
    return told(Coverage::out_of_range,
                fmt::format("Out of range: memory reaches back to {}, and {}.",
                            since ? clock_words(*since, now) : "no time at all",
                            situation.past ? "the history has nothing yet" : situation.no_past));
  }
  const model::PastMoment& past = *situation.past;
  if (moment.begin < *oldest) {
    return told(
        Coverage::out_of_range,
        fmt::format("Out of range: the history reaches back to {}; nothing older is kept.", clock_words(*oldest, now)));
  }
  std::string sentence = fmt::format("No data: nothing was recorded {}", minute_words(moment.begin, now));
  if (past.recorded_until || past.recorded_from) {
    sentence += ", only";
    sentence += past.recorded_until ? " until " + clock_words(*past.recorded_until, now) : "";
    sentence += past.recorded_until && past.recorded_from ? " and" : "";
    sentence += past.recorded_from ? " from " + clock_words(*past.recorded_from, now) + " on" : "";
  }
  return told(Coverage::no_data, sentence + ". The daemon was not running, or its history could not be written.");
}

/// What makes the answer incomplete: drives that were not measured then, or not all the time.
std::string gaps_words(const Situation& situation) {
  if (!situation.past || situation.past->devices.empty()) {
    return "";
  }
  const model::PastMoment& past = *situation.past;
  std::uint64_t longest = 0;
  for (const auto& one : past.devices) {
    longest = std::max(longest, one.measured_ms);
  }
  std::vector<std::string> names;
  for (const model::DeviceSnapshot& device : situation.now->devices) {
    const bool there = std::any_of(past.devices.begin(), past.devices.end(),
                                   [&](const auto& one) { return one.device == device.device->name; });
    if (!there) {
      names.push_back(device.device->name);
    }
  }
  std::string words = names.empty() ? "" : fmt::format(" There is no data for {} from then.", fmt::join(names, ", "));
  const auto length = std::chrono::milliseconds(past.window.to - past.window.from).count();
  if (static_cast<double>(longest) < 0.9 * static_cast<double>(length)) {
    words += fmt::format(" Only {} of that {} were measured.", duration_words(static_cast<double>(longest) / 1000),
                         length > 60'000 ? "hour" : "minute");
  }
  return words;
}

Why at_time(const Situation& situation, WallTime at) {
  const model::Snapshot& now = *situation.now;
  Moment moment{Coverage::recorded, std::chrono::floor<std::chrono::minutes>(at), std::chrono::minutes(1)};
  if (at > now.taken_at + kNear) {
    moment.coverage = Coverage::to_come;
    Why answer = unknown(clock_words(at, now.taken_at) + " is in the future.");
    answer.moment = moment;
    return answer;
  }
  if (situation.past) {
    moment.step = situation.past->window.to - situation.past->window.from;
  }
  const auto then = spikes_of(situation, moment);
  if (const LatencySpike* spike = worst_of(then)) {
    Why answer = slow(
        *spike, fmt::format("{}: {} at worst, from {} on for {}, {}.{}{}", spike->device,
                            slowness_words(*spike, "took"), clock_words(spike->begin, now.taken_at),
                            duration_words(Seconds(spike->duration).count()), cause_words(*spike, bursts_of(situation)),
                            tenants_words(*spike), others_words(then, spike->device, "were")));
    answer.moment = moment;
    return answer;
  }
  const auto since = situation.remembered_since ? situation.remembered_since : situation.known_since;
  const bool remembered = since && std::chrono::floor<std::chrono::minutes>(*since) <= moment.begin;
  const bool recorded = situation.past && !situation.past->devices.empty();
  if (!remembered && !recorded) {
    return not_recorded(situation, moment);
  }
  const bool idle = recorded && std::all_of(situation.past->devices.begin(), situation.past->devices.end(),
                                            [](const auto& one) { return one.ios == 0; });
  return {Verdict::usual,
          fmt::format("{} {}.{}", idle ? "No drive had any I/O" : "No drive was slower than usual",
                      minute_words(moment.begin, now.taken_at), remembered ? blind_words(now) : gaps_words(situation)),
          "",
          "",
          "",
          moment};
}

/// The trigger of a burst on the device that overlaps the spike; nothing if none does.
std::optional<model::DiscardTrigger> trigger_of(const LatencySpike& spike, const std::vector<Burst>& bursts) {
  for (const Burst& burst : bursts) {
    if (burst.device == spike.device && burst.begin <= end_of(spike) + kNear &&
        (!burst.end || *burst.end >= spike.begin - kNear)) {
      return burst.trigger;
    }
  }
  return std::nullopt;
}

std::string discard_words(const LatencySpike& spike, const std::vector<Burst>& bursts) {
  const auto trigger = trigger_of(spike, bursts);
  if (!trigger) {
    return "because discards (trim) are in flight at the same time";
  }
  constexpr std::array<std::string_view, model::kDiscardTriggers> kWords{
      "because fstrim is trimming a file system on it",
      "because its file system, mounted with discard, trims what was deleted",
      "because blkdiscard is discarding space on it",
      "because mkfs is discarding space on it",
      "because a program is discarding space on it",
  };
  return std::string(name(*trigger, kWords));
}

}  // namespace

std::string cause_words(const LatencySpike& spike, const std::vector<Burst>& bursts) {
  switch (spike.cause) {
    case SpikeCause::discard:
      return discard_words(spike, bursts);
    case SpikeCause::flush:
      return "because flushes of its cache (fsync) are in flight at the same time";
    case SpikeCause::gc:
      return "because the drive is collecting garbage";
    case SpikeCause::queue:
      return "because requests wait on the host before they reach the drive";
    case SpikeCause::saturation:
      return "because the drive is given more work than it can handle";
    case SpikeCause::thermal:
      return "because the drive is throttling to cool down";
    case SpikeCause::error:
      return "because I/Os fail and are retried";
    case SpikeCause::unknown:
      break;
  }
  std::string words = "for a reason that this host does not show";
  if (!spike.missing.empty()) {
    words += fmt::format(" ({})", fmt::join(spike.missing, "; "));
  }
  return words;
}

std::string next_step(SpikeCause cause) {
  switch (cause) {
    case SpikeCause::discard:
      return "Let trims run in quiet hours, or in smaller pieces (discard_max_bytes).";
    case SpikeCause::flush:
      return "Find out who calls fsync so often; drives with power-loss protection flush at no cost.";
    case SpikeCause::gc:
      return "Leave part of the drive unused and trimmed, and look at its write amplification.";
    case SpikeCause::queue:
      return "Look at the scheduler, at nr_requests, and at who sends so many requests.";
    case SpikeCause::saturation:
      return "Find out who sends so much, and spread or limit it.";
    case SpikeCause::thermal:
      return "Look at the airflow and at the drive's temperature.";
    case SpikeCause::error:
      return "Read the kernel's log, and be ready to replace the drive.";
    case SpikeCause::unknown:
      break;
  }
  return "Compare with what ran on the host at that time; the evidence lists what was measured.";
}

std::string_view runbook_of(SpikeCause cause) {
  constexpr std::array<std::string_view, model::kSpikeCauses> kRunbooks{"SsdpulseTailLiftedByDiscard",
                                                                        "SsdpulseTailLiftedByFlush",
                                                                        "SsdpulseTailLiftedByGarbageCollection",
                                                                        "SsdpulseTailLiftedByQueueing",
                                                                        "SsdpulseTailLatencyHigh",
                                                                        "SsdpulseThermalThrottling",
                                                                        "SsdpulseIoErrors",
                                                                        "SsdpulseTailSpikeUnexplained"};
  return name(cause, kRunbooks);
}

std::vector<std::string> evidence_sentences(const LatencySpike& spike) {
  std::vector<std::string> sentences;
  const auto say = [&](const char* key, auto words) {
    if (const auto found = spike.evidence.find(key); found != spike.evidence.end()) {
      sentences.push_back(words(found->second));
    }
  };
  const auto share = [](const char* text) {
    return [text](double value) { return fmt::format("{:.0f} % of {}.", value * 100, text); };
  };
  const auto times = [](const char* text) {
    return [text](double value) {
      return fmt::format("{} {} times the usual.", text,
                         value < 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value));
    };
  };
  const auto number = [](const char* text) {
    return [text](double value) { return fmt::format("{}: {:g}.", text, value); };
  };
  const auto bytes = [](const char* text) {
    return [text](double value) { return fmt::format("{}: {}.", text, size_words(value)); };
  };
  sentences.push_back(spike.excess_seconds > 0
                          ? fmt::format("{} I/Os were slow; together they waited {} beyond what is usual.", spike.ios,
                                        latency_words(spike.excess_seconds))
                          : fmt::format("{} I/Os were slow.", spike.ios));
  std::vector<std::string> heaviest;
  for (const model::SpikeTenant& tenant : spike.heaviest) {
    heaviest.push_back(fmt::format("{} ({})", tenant.name, size_words(static_cast<double>(tenant.bytes))));
  }
  if (!heaviest.empty()) {
    sentences.push_back(fmt::format("Most was {} by {}.",
                                    spike.cause == SpikeCause::discard ? "discarded" : "read and written",
                                    fmt::join(heaviest, ", ")));
  }
  std::vector<std::string> slowed;
  for (const model::SpikeTenant& tenant : spike.slowed) {
    slowed.push_back(fmt::format("{} ({})", tenant.name, latency_words(tenant.waited_seconds)));
  }
  if (!slowed.empty()) {
    sentences.push_back(fmt::format("Slowed most beyond their own usual: {}.", fmt::join(slowed, ", ")));
  }
  say("device_share", share("the slow time was spent in the device"));
  say("queue_share", share("the slow time was spent waiting on the host"));
  say("beside_discards_share", share("the slow device time overlapped a discard"));
  say("beside_flushes_share", share("the slow device time overlapped a flush"));
  say("flush_to_commit", share("what a commit took was its flushes"));
  say("load_to_usual", times("The load was"));
  say("depth_to_usual", times("The depth was"));
  say("queue_full_share", share("the time all tags of the queue were taken"));
  say("full_speed_share", share("the time the device went on at full speed"));
  say("errors", number("I/Os that failed"));
  say("requeues", number("I/Os given back by the driver"));
  say("retry_share", share("the slow time was spent on retries"));
  say("host_written_bytes", bytes("According to the drive, the host wrote"));
  say("media_written_bytes", bytes("According to the drive, it wrote to its media"));
  say("normal_write_amplification", number("Its usual write amplification"));
  say("gc_events", number("Garbage collections that the drive reports"));
  say("free_blocks", number("Free blocks that the drive has left"));
  say("thermal_events", number("Times that the drive throttled to cool down"));
  say("thermal_warning", [](double) { return std::string("The drive warns about its temperature."); });
  say("accepted_as_baseline", [](double) { return std::string("It lasted so long that it now counts as usual."); });
  return sentences;
}

Why why(const Situation& situation, std::optional<WallTime> at) {
  const model::Snapshot& now = *situation.now;
  if (at) {
    return at_time(situation, *at);
  }
  if (now.devices.empty()) {
    return unknown("No drive is measured.", "ssdpulse devices shows each disk and why it is not measured.",
                   "SsdpulseSourceDown");
  }
  for (const model::SourceStatus& source : now.sources) {
    if (source.name == "block" && !source.up) {
      return unknown("Nothing can be measured: " + source.reason + ".", "See the log of the daemon.",
                     "SsdpulseSourceDown");
    }
  }
  return right_now(situation);
}

}  // namespace ssdpulse::live
