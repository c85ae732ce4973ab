// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/why.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/live/words.h"

namespace ssdpulse::live {
namespace {

using model::LatencySpike;
using model::SpikeCause;
using model::WallTime;
using Seconds = std::chrono::duration<double>;

constexpr std::chrono::seconds kTooEarly{15};  // what is usual takes the detectors so long to learn
constexpr std::chrono::minutes kLately{15};    // a slow time that is over is still worth a word
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

/// The one by which most was waited; null where there is none.
const LatencySpike* worst_of(const std::vector<LatencySpike>& spikes) {
  const auto worst = std::max_element(spikes.begin(), spikes.end(), [](const LatencySpike& a, const LatencySpike& b) {
    return a.excess_seconds < b.excess_seconds;
  });
  return worst == spikes.end() ? nullptr : &*worst;
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

/// What keeps the answer from being whole: drives whose latency nobody records.
std::string blind_words(const model::Snapshot& now) {
  std::vector<std::string> names;
  for (const model::DeviceSnapshot& device : now.devices) {
    if (!device.device->iostats) {
      names.push_back(device.device->name);
    }
  }
  return names.empty() ? ""
                       : fmt::format(" Of {} nothing can be said: the kernel records no times (iostats is 0).",
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
  std::vector<LatencySpike> lately;
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

Why at_time(const Situation& situation, WallTime at) {
  const model::Snapshot& now = *situation.now;
  if (at > now.taken_at + kNear) {
    return unknown(clock_words(at) + " is yet to come.");
  }
  if (!situation.known_since || at < *situation.known_since - kNear) {
    return unknown(fmt::format("Nothing is known of {}: memory reaches back to {}.", clock_words(at),
                               situation.known_since ? clock_words(*situation.known_since) : "no time at all"));
  }
  std::vector<LatencySpike> then;
  const auto take = [&](const LatencySpike& spike) {
    if (spike.begin - kNear <= at && at <= end_of(spike) + kNear) {
      then.push_back(spike);
    }
  };
  std::for_each(situation.ended.begin(), situation.ended.end(), take);
  std::for_each(now.spikes_going_on.begin(), now.spikes_going_on.end(), take);
  if (const LatencySpike* spike = worst_of(then)) {
    return slow(*spike,
                fmt::format("{}: {} at worst, from {} on for {}, {}.{}{}", spike->device,
                            slowness_words(*spike, "took"), clock_words(spike->begin),
                            duration_words(Seconds(spike->duration).count()), cause_words(*spike, situation.bursts),
                            tenants_words(*spike), others_words(then, spike->device, "were")));
  }
  return {Verdict::usual, fmt::format("No drive was slower than usual at {}.{}", clock_words(at), blind_words(now)), "",
          "", ""};
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
      return "because the drive is given more than it can do";
    case SpikeCause::thermal:
      return "because the drive slows itself down to cool";
    case SpikeCause::error:
      return "because I/Os fail and are tried again";
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
  sentences.push_back(fmt::format("{} I/Os were slow; together they waited {} beyond what is usual.", spike.ios,
                                  latency_words(spike.excess_seconds)));
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
  say("retry_share", share("the slow time was spent trying again"));
  say("host_written_bytes", bytes("The drive says that the host wrote"));
  say("media_written_bytes", bytes("The drive says that it wrote to its media"));
  say("normal_write_amplification", number("Its usual write amplification"));
  say("gc_events", number("Garbage collections that it reports"));
  say("free_blocks", number("Free blocks that it has left"));
  say("thermal_events", number("Times that it slowed itself down to cool"));
  say("thermal_warning", [](double) { return std::string("It warns of its temperature."); });
  say("accepted_as_baseline", [](double) { return std::string("It lasted so long that it counts as usual now."); });
  return sentences;
}

Why why(const Situation& situation, std::optional<WallTime> at) {
  const model::Snapshot& now = *situation.now;
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
  return at ? at_time(situation, *at) : right_now(situation);
}

}  // namespace ssdpulse::live
