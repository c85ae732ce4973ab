// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "daemon/base/figure_text.h"
#include "daemon/model/device_title.h"
#include "daemon/model/tenant_io.h"
#include "daemon/spikes/host_wait_words.h"
#include "daemon/spikes/past_spikes.h"
#include "daemon/spikes/sibling_words.h"
#include "daemon/spikes/spike_words.h"

namespace ssdpulse::spikes {
namespace {

using model::end_of;
using model::EvidenceKey;
using model::Incident;
using model::LatencySpike;
using model::Operation;
using model::SpikeCause;
using model::SpikeTenant;
using model::WallTime;
using Seconds = std::chrono::duration<double>;

constexpr std::chrono::seconds kTooEarly{15};      // the detectors take this long to learn what is usual
constexpr std::chrono::minutes kLately{15};        // a slow time that is over is still worth mentioning
constexpr std::chrono::seconds kTimeTolerance{2};  // people name a time to the second, spikes begin in between

std::string_view operation_name(Operation operation) {
  constexpr model::ByOperation<util::Text, model::kSpikeOperations> kNames{"reads", "writes", "flushes", "commits"};
  return kNames[operation];
}

/// `remarks` and `past` begin with a space, as they do in the sentence.
void say(Why& answer, std::string summary, const std::string& remarks, const std::string& past = "") {
  const auto alone = [](const std::string& part) { return part.substr(std::min<std::size_t>(1, part.size())); };
  answer.sentence = summary + remarks + past;
  answer.parts = {std::move(summary), alone(remarks), alone(past)};
}

/// "a, b and c"
std::string list_words(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    list += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  }
  return list;
}

/// The operations of the incident's first device, in the order of the enum. Flushes are a part of commits.
std::vector<std::string> operations_of(const Incident& incident) {
  std::set<Operation> operations;
  for (const LatencySpike& spike : incident.spikes) {
    if (spike.device == incident.headline().device) {
      operations.insert(spike.operation);
    }
  }
  if (operations.contains(Operation::commit)) {
    operations.erase(Operation::flush);
  }
  std::vector<std::string> words;
  for (const Operation operation : operations) {
    words.emplace_back(operation_name(operation));
  }
  return words;
}

/// "nothing has completed for 11 s (reads and commits wait)", or "no reads have completed for 11 s"; empty if something
/// did. A commit is not a request by itself, and has no standstill of its own.
std::string standstill_words(const Incident& incident, Tense tense) {
  const bool now = tense == Tense::present;
  double of_device = 0;
  double longest = 0;
  std::vector<std::string> still;
  for (const LatencySpike& spike : incident.spikes) {
    if (spike.device != incident.headline().device || spike.operation == Operation::commit) {
      continue;
    }
    of_device = std::max(of_device, amount(spike.evidence, now ? EvidenceKey::device_standstill_seconds
                                                               : EvidenceKey::longest_device_standstill_seconds));
    const double seconds =
        amount(spike.evidence, now ? EvidenceKey::standstill_seconds : EvidenceKey::longest_standstill_seconds);
    if (seconds >= kStandstillSeconds && 2 * seconds >= Seconds(spike.duration).count()) {
      longest = std::max(longest, seconds);
      still.emplace_back(operation_name(spike.operation));
    }
  }
  if (still.empty()) {
    return "";
  }
  if (of_device >= kStandstillSeconds) {
    return fmt::format("nothing {}completed for {} ({} {})", now ? "has " : "", util::format_duration(of_device),
                       list_words(operations_of(incident)), now ? "wait" : "waited");
  }
  return fmt::format("no {} {}completed for {}", list_words(still), now ? "have " : "", util::format_duration(longest));
}

/// "reads take up to 24 ms, 12 times longer than usual (2 ms)"
std::string slowness_words(const Incident& incident, Tense tense) {
  if (auto words = standstill_words(incident, tense); !words.empty()) {
    return words;
  }
  const LatencySpike& spike = incident.headline();
  std::string words =
      fmt::format("{}{}{} {} up to {}", spike.evidence.contains(EvidenceKey::outliers) ? "some " : "",
                  operation_name(spike.operation), spike.operation == Operation::commit ? " (fsync)" : "",
                  tense == Tense::present ? "take" : "took", util::format_latency(spike.peak_seconds));
  if (spike.baseline_seconds > 0 && spike.peak_seconds > spike.baseline_seconds) {
    words +=
        fmt::format(", {} longer than usual ({})", util::format_factor(spike.peak_seconds / spike.baseline_seconds),
                    util::format_latency(spike.baseline_seconds));
  }
  return words;
}

std::string title_of(const model::Snapshot& now, const std::string& device) {
  return model::device_title(now, device).full;
}

/// " 2 other drives are slow too: sdb, sdc."
std::string others_words(const model::Snapshot& now, const std::vector<Incident>& incidents, const std::string& device,
                         Tense tense) {
  std::vector<std::string> names;
  for (const Incident& incident : incidents) {
    for (const LatencySpike& spike : incident.spikes) {
      if (spike.device != device && std::find(names.begin(), names.end(), spike.device) == names.end()) {
        names.push_back(spike.device);
      }
    }
  }
  if (names.empty()) {
    return "";
  }
  constexpr std::size_t kNamed = 3;
  const std::size_t count = names.size();
  names.resize(std::min(count, kNamed));
  std::transform(names.begin(), names.end(), names.begin(), [&](const std::string& one) { return title_of(now, one); });
  const std::string more = count > kNamed ? fmt::format(" and {} more", count - kNamed) : "";
  const char* verb = tense == Tense::present ? (count > 1 ? "are" : "is") : (count > 1 ? "were" : "was");
  return fmt::format(" {} {} slow too: {}{}.",
                     count == 1 ? (device.empty() ? "A drive" : "Another drive")
                                : fmt::format("{} {}drives", count, device.empty() ? "" : "other "),
                     verb, fmt::join(names, ", "), more);
}

/// "wrote", "read" or "read and wrote"; the last where it is not known.
std::string_view transfer_words(const LatencySpike& spike) {
  constexpr double kOneSided = 0.9;
  const auto share = spike.evidence.find(EvidenceKey::heaviest_written_share);
  if (share == spike.evidence.end() || std::abs(share->second - 0.5) < kOneSided - 0.5) {
    return "read and wrote";
  }
  return share->second > 0.5 ? "wrote" : "read";
}

/// What the culprit did: "wrote 1.2 GB, more than usual".
std::string culprit_words(const LatencySpike& spike, const SpikeTenant& culprit) {
  if (spike.cause == SpikeCause::flush && culprit.commits > 0) {
    return fmt::format("sent {}, more than usual", util::format_count(culprit.commits, "commit", "commits"));
  }
  const std::string bytes = util::format_size(static_cast<double>(culprit.bytes));
  return spike.cause == SpikeCause::discard
             ? fmt::format("discarded {}", bytes)
             : fmt::format("{} {}, more than usual", spike.cause == SpikeCause::flush ? "wrote" : transfer_words(spike),
                           bytes);
}

/// "extra wait over all I/Os: commits 24 s, reads 3 s"
std::string waits_words(const Incident& incident, const std::string& victim) {
  std::map<Operation, double> waited;
  for (const LatencySpike& spike : incident.spikes) {
    const bool within = spike.operation == Operation::flush &&
                        std::any_of(incident.spikes.begin(), incident.spikes.end(),
                                    [](const LatencySpike& one) { return one.operation == Operation::commit; });
    for (const SpikeTenant& tenant : spike.slowed) {
      if (tenant.name == victim && spike.device == incident.headline().device && !within) {
        waited[spike.operation] += tenant.waited_seconds;
      }
    }
  }
  std::vector<std::string> waits;
  for (const auto& [operation, seconds] : waited) {
    waits.push_back(fmt::format("{} {}", operation_name(operation), util::format_latency(seconds)));
  }
  return waits.empty() ? "" : fmt::format("extra wait over all I/Os: {}", fmt::join(waits, ", "));
}

/// " backup.service read 1.2 GB, more than usual; db.service was slowed most (extra wait over all I/Os: reads
/// 3.1 s)." What has not completed yet has no amount.
std::string tenants_words(const Incident& incident) {
  const LatencySpike* named = incident.with_culprit();
  const SpikeTenant* victim = incident.victim();
  std::string words;
  if (named != nullptr) {
    const SpikeTenant& culprit = *model::culprit_of(*named);
    words = fmt::format("{} {}", model::tenant_title(culprit.name), culprit_words(*named, culprit));
    if (victim != nullptr && victim->name == culprit.name) {
      return fmt::format(" {}, and slowed itself ({}).", words, waits_words(incident, victim->name));
    }
  }
  if (victim != nullptr) {
    const bool stands_still = incident.going_on && !standstill_words(incident, Tense::present).empty();
    const std::string waits = stands_still ? "" : waits_words(incident, victim->name);
    words += fmt::format("{}{} was slowed most{}", words.empty() ? "" : "; ", model::tenant_title(victim->name),
                         waits.empty() ? "" : fmt::format(" ({})", waits));
  }
  if (words.empty()) {
    return words;
  }
  words.front() = words.rfind("the system", 0) == 0 ? 'T' : words.front();
  return " " + words + ".";
}

/// `next` and `runbook` help only with what is, or was just, slow.
Why answer_about(When when, const std::string& device, std::string next, std::string_view runbook) {
  Why answer;
  answer.verdict = when == When::now || when == When::then ? Verdict::slow : Verdict::ok;
  answer.next = when == When::earlier ? "" : std::move(next);
  answer.runbook = when == When::earlier ? "" : runbook;
  answer.device = device;
  answer.when = when;
  return answer;
}

/// All of the answer that follows from the incident, except the sentence.
Why about(const Incident& incident, const std::vector<model::Burst>& bursts, When when) {
  const LatencySpike& spike = incident.headline();
  const Explanation explanation = explain(spike, bursts, Tense::present, load_of(incident));
  constexpr std::string_view kHung =
      "Check journalctl -k (timeouts, resets) and the path to the drive: multipath -ll, controller, SAN, cloud volume. "
      "Tasks that wait for it cannot be killed.";
  constexpr std::string_view kOwnWork =
      "Find what it does (checkpoint, bulk load, vacuum, backup), and spread that over time or limit it.";
  Why answer = answer_about(when, spike.device, next_for_load(explanation.next, spike), explanation.runbook);
  answer.incident = incident;
  if (const LatencySpike* named = incident.with_culprit()) {
    answer.culprit = model::culprit_of(*named)->name;
  }
  answer.victim = incident.victim() == nullptr ? "" : incident.victim()->name;
  if (!answer.next.empty() && spike.cause == SpikeCause::unknown &&
      !standstill_words(incident, incident.going_on ? Tense::present : Tense::past).empty()) {
    answer.next = kHung;
  } else if (!answer.next.empty() && !answer.culprit.empty() && answer.culprit == answer.victim) {
    answer.next = kOwnWork;
  } else if (!answer.next.empty() && !answer.culprit.empty()) {
    answer.next = next_for_culprit(answer.next, answer.culprit);
  }
  return answer;
}

/// What makes the answer incomplete: drives whose latency is not recorded.
std::string unmeasured_words(const model::Snapshot& now) {
  std::vector<std::string> untimed;
  std::vector<std::string> unseen;
  for (const model::DeviceSnapshot& device : now.devices) {
    if (device.unseen) {
      unseen.push_back(device.device->name);
    } else if (!device.device->iostats) {
      untimed.push_back(device.device->name);
    }
  }
  std::string words;
  if (!untimed.empty()) {
    words += fmt::format(" Nothing is known about {}: the kernel records no times (iostats is 0).",
                         fmt::join(untimed, ", "));
  }
  if (!unseen.empty()) {
    words += fmt::format(" Nothing is known about {}: no request of it is seen.", fmt::join(unseen, ", "));
  }
  return words;
}

Why unknown(std::string sentence, std::string next = "", std::string runbook = "") {
  return {.verdict = Verdict::unknown,
          .sentence = std::move(sentence),
          .next = std::move(next),
          .runbook = std::move(runbook)};
}

/// A sender whose own backlog slows nobody else is not an incident, but explains why its drive is busy.
std::string backlog_words(const model::Snapshot& now) {
  for (const LatencySpike& spike : now.spikes_going_on) {
    const SpikeTenant* sender = model::is_harmful(spike) ? nullptr : model::culprit_of(spike);
    if (sender != nullptr) {
      return fmt::format(" {} keeps {} busy, and slows nobody else.", model::tenant_title(sender->name),
                         title_of(now, spike.device));
    }
  }
  return "";
}

const std::vector<model::FloorTime>& floors_of(const model::Snapshot& now) {
  static const std::vector<model::FloorTime> none;
  return now.volume_figures ? now.volume_figures->floors : none;
}

/// The layer in which most of its I/Os' time is spent, if that is much.
std::string floor_words(const model::Snapshot& now) {
  const model::FloorTime* worst = nullptr;
  for (const model::FloorTime& floor : floors_of(now)) {
    if (floor.own_seconds >= model::kMinOwnSeconds && floor.own_seconds >= model::kMinOwnShare * floor.mean_seconds &&
        (worst == nullptr || floor.own_seconds > worst->own_seconds)) {
      worst = &floor;
    }
  }
  if (worst == nullptr) {
    return "";
  }
  constexpr std::size_t kMaxTitles = 3;
  std::string titles, kind = "these volumes";
  for (std::size_t i = 0; i < std::min(worst->volumes.size(), kMaxTitles); ++i) {
    const std::string& volume = worst->volumes[i];
    const model::Layer* layer = model::layer_of(now.layers, volume);
    const bool has_title = layer != nullptr && !layer->title.empty();
    titles += (titles.empty() ? "" : ", ") +
              (has_title ? fmt::format("{} ({})", util::for_json(layer->title), volume) : volume);
    if (layer != nullptr && worst->volumes.size() == 1) {
      kind = fmt::format("the {} layer itself", name(layer->kind, model::kLayerKindNames));
    }
  }
  if (worst->volumes.size() > kMaxTitles) {
    titles += fmt::format(" and {} more", worst->volumes.size() - kMaxTitles);
  }
  return fmt::format(" Of {} that {} on {} take, {}{} are spent in {}, not in what is below.",
                     util::format_latency(worst->mean_seconds),
                     worst->operation == model::Operation::read ? "reads" : "writes", titles,
                     worst->exact ? "" : "at least ", util::format_latency(worst->own_seconds), kind);
}

/// Drives that have no time left, before they are slow.
std::string busy_words(const model::Snapshot& now) {
  constexpr double kBusyRatio = 0.9;
  for (const model::DeviceSnapshot& device : now.devices) {
    if (device.utilisation && device.utilisation->busy_ratio.value_or(0) >= kBusyRatio) {
      return fmt::format(" {} is busy {:.0f} % of the time.", title_of(now, device.device->name),
                         100 * *device.utilisation->busy_ratio);
    }
  }
  return "";
}

/// File systems that will soon be full.
std::string filling_words(const model::Snapshot& now) {
  constexpr double kSoonSeconds = 4 * 3600;
  if (!now.host.signals) {
    return "";
  }
  for (const model::FilesystemRoom& room : now.host.signals->rooms) {
    const auto left = model::seconds_until_full(now.host, room);
    if (left && room.available_bytes > 0 && *left < kSoonSeconds) {
      return fmt::format(" {} will be full in {} at this rate.", util::for_json(room.mountpoint),
                         util::format_duration(*left));
    }
  }
  return "";
}

/// " It is one of the 8 drives of md0.": of the array with most.
std::string member_words(const model::Snapshot& now, const std::string& device) {
  std::map<std::string, std::size_t> members;
  for (const model::Membership& one : now.memberships) {
    members[one.array] += one.kind == "md" ? 1 : 0;
  }
  std::string largest;
  for (const model::Membership& one : now.memberships) {
    if (one.device == device && members[one.array] > std::max<std::size_t>(1, members[largest])) {
      largest = one.array;
    }
  }
  return largest.empty() ? "" : fmt::format(" It is one of the {} drives of {}.", members[largest], largest);
}

/// " md0, which it is part of, is being checked (34 %)": for a device, or without one of any array.
std::string resync_words(const model::Snapshot& now, const std::string& device) {
  if (!now.host.signals) {
    return "";
  }
  for (const model::VolumeSignals& volume : now.host.signals->volumes) {
    const bool below = std::any_of(now.memberships.begin(), now.memberships.end(), [&](const model::Membership& one) {
      return one.array == volume.volume && one.device == device;
    });
    if (volume.resync && (device.empty() || below)) {
      const std::string& action = volume.resync->action;
      const std::string_view done = action == "check"     ? "checked"
                                    : action == "repair"  ? "checked and repaired"
                                    : action == "reshape" ? "reshaped"
                                                          : "rebuilt";
      return fmt::format(
          " {}{} is being {}{}.", volume.volume, device.empty() ? "" : ", which it is part of,", done,
          volume.resync->progress_ratio ? fmt::format(" ({:.0f} %)", 100 * *volume.resync->progress_ratio) : "");
    }
  }
  return "";
}

/// Capitalised, unless it begins with a name.
std::string sentence_of(const model::HostWait& wait, const model::Snapshot& now, Tense tense) {
  std::string words = host_wait_words(wait, now, tense).what;
  if (wait.cause == model::HostWaitCause::layer || wait.cause == model::HostWaitCause::dirty_throttling ||
      wait.cause == model::HostWaitCause::pressure) {
    words.front() = static_cast<char>(words.front() - 'a' + 'A');
  }
  return words;
}

/// All of the answer except the sentence.
Why about(const model::HostWait& wait, const model::Snapshot& now, When when) {
  Why answer = answer_about(when, wait.device, std::string(model::info(wait.cause).next), kHostWaitRunbook);
  answer.wait = wait;
  answer.wait_words = sentence_of(wait, now, when == When::now ? Tense::present : Tense::past);
  answer.victim = wait.tenant;
  return answer;
}

bool stops_io(const model::HostWait& wait) {
  return wait.cause == model::HostWaitCause::suspended || wait.cause == model::HostWaitCause::frozen;
}

/// Whether reads wait in a layer for longer than any of these drives explains. Of writes, and of layers that send reads
/// again, that is never proven while a drive below is slow: it is from before.
bool is_slower_than(const model::HostWait& layer, const std::vector<Incident>& incidents) {
  const auto is = [&](const char* key, auto value) {
    const auto found = layer.evidence.find(key);
    return found != layer.evidence.end() && found->second == static_cast<double>(value);
  };
  if (!is("operation", Operation::read) || std::any_of(model::kSendAgain.begin(), model::kSendAgain.end(),
                                                       [&](model::LayerKind kind) { return is("layer_kind", kind); })) {
    return false;
  }
  const double own_seconds = evidence_amount(layer, "own_seconds");
  return std::all_of(incidents.begin(), incidents.end(), [&](const Incident& one) {
    return std::all_of(one.spikes.begin(), one.spikes.end(),
                       [&](const LatencySpike& spike) { return own_seconds > model::longest_wait_seconds(spike); });
  });
}

/// What stops I/O altogether comes before slow drives, what only slows it after them, as does a file system that has
/// been full for long. A layer comes before drives that do not explain how slow it is.
bool is_before_drives(const model::HostWait& wait, const std::vector<Incident>& incidents) {
  return stops_io(wait) || (wait.cause == model::HostWaitCause::full && wait.duration < kLately) ||
         (wait.cause == model::HostWaitCause::layer && is_slower_than(wait, incidents));
}

/// The first by cause, then by its begin, of those that come before these drives; null: none does.
const model::HostWait* first_of(const std::vector<model::HostWait>& waits, const std::vector<Incident>& slow_drives) {
  const model::HostWait* first = nullptr;
  for (const model::HostWait& wait : waits) {
    if ((slow_drives.empty() || is_before_drives(wait, slow_drives)) &&
        (first == nullptr || std::pair(wait.cause, wait.begin) < std::pair(first->cause, first->begin))) {
      first = &wait;
    }
  }
  return first;
}

Why about_current(const model::HostWait& wait, const model::Snapshot& now, const std::string& slow_drives) {
  Why answer = about(wait, now, When::now);
  const auto duration = Seconds(wait.duration).count();
  const std::string siblings = sibling_words(now);
  const bool explained =
      stops_io(wait) || wait.cause == model::HostWaitCause::full || !slow_drives.empty() || !siblings.empty();
  std::string remarks = (explained ? "" : " No drive is slow.") + slow_drives + siblings;
  if (wait.cause == model::HostWaitCause::layer) {
    constexpr double kMuchCpuPressure = 0.3;
    const auto cpu = wait.evidence.find("cpu_pressure_ratio");
    remarks += cpu == wait.evidence.end() || cpu->second < kMuchCpuPressure
                   ? ""
                   : fmt::format(" Tasks wait for a CPU {:.0f} % of the time.", 100 * cpu->second);
    remarks += resync_words(now, "");
  }
  say(answer,
      fmt::format("{}, since {} ({}).", sentence_of(wait, now, Tense::present), util::format_clock(wait.begin),
                  util::format_duration(duration)),
      remarks);
  return answer;
}

/// The wait that ended last; null if that was too long ago.
const model::HostWait* last_wait(const Situation& situation) {
  const model::HostWait* last = nullptr;
  for (const model::HostWait& wait : situation.ended_waits) {
    if (situation.now->taken_at - end_of(wait) < kLately && (last == nullptr || end_of(wait) >= end_of(*last))) {
      last = &wait;
    }
  }
  return last;
}

/// What is slow all the time is more urgent than what is over.
void advise_on_siblings(Why& answer, const model::Snapshot& now) {
  if (!sibling_words(now).empty()) {
    answer.next = kSiblingNext;
    answer.runbook = kSiblingRunbook;
  }
}

Why about_ended(const model::HostWait& wait, const model::Snapshot& now, const std::string& calm,
                const std::string& remarks) {
  const auto ago = now.taken_at - end_of(wait);
  Why answer = about(wait, now, ago < kJustNow ? When::ended : When::earlier);
  const std::string what = host_wait_words(wait, now, Tense::past).what;
  const std::string lasted = util::format_duration(Seconds(wait.duration).count());
  advise_on_siblings(answer, now);
  say(answer, calm, remarks,
      answer.when == When::ended
          ? fmt::format(" From {} until {} ago: {}, for {}.", util::format_clock(wait.begin),
                        util::format_duration(Seconds(ago).count()), what, lasted)
          : fmt::format(" Earlier, at {}: {}, for {}.", util::format_clock(wait.begin), what, lasted));
  return answer;
}

Why right_now(const Situation& situation) {
  const model::Snapshot& now = *situation.now;
  std::vector<LatencySpike> lately = now.spikes_unjudged;
  std::copy_if(situation.ended.begin(), situation.ended.end(), std::back_inserter(lately),
               [&](const LatencySpike& spike) { return now.taken_at - end_of(spike) < kLately; });
  const auto incidents = model::incidents_of(lately, now.spikes_going_on, model::DeviceGroups(now.memberships));
  std::vector<Incident> slow;
  std::copy_if(incidents.begin(), incidents.end(), std::back_inserter(slow),
               [](const Incident& one) { return one.going_on; });
  std::vector<model::HostWait> waits;
  std::copy_if(now.host.waits.begin(), now.host.waits.end(), std::back_inserter(waits),
               [](const model::HostWait& one) { return !one.over; });
  if (const model::HostWait* wait = first_of(waits, slow)) {
    return about_current(*wait, now, others_words(now, slow, "", Tense::present));
  }
  if (!slow.empty()) {
    const Incident& incident = slow.front();
    const LatencySpike& spike = incident.headline();
    Why answer = about(incident, situation.bursts, When::now);
    const std::string lasts =
        standstill_words(incident, Tense::present).empty()
            ? fmt::format(" ({})", util::format_duration(Seconds(now.taken_at - incident.begin).count()))
            : "";
    say(answer,
        fmt::format("{}: {}, since {}{}, {}.", title_of(now, spike.device), slowness_words(incident, Tense::present),
                    util::format_clock(incident.begin), lasts,
                    explain(spike, situation.bursts, Tense::present, load_of(incident)).because),
        member_words(now, spike.device) + sibling_words(now, spike.device) + tenants_words(incident) +
            resync_words(now, spike.device) + others_words(now, slow, spike.device, Tense::present));
    return answer;
  }
  if (const auto since = situation.known_since; !since || now.taken_at - *since < kTooEarly) {
    const double seconds = since ? Seconds(now.taken_at - *since).count() : 0;
    return unknown(
        fmt::format("Measuring began {} ago: too early to say what is usual.", util::format_duration(seconds)));
  }
  const std::string calm = "No drive is slower than usual.";
  const std::string backlog = backlog_words(now);
  const model::HostWait* last_held_up = last_wait(situation);
  // Figures of the last minute still show what has just ended.
  const bool layer_ended = last_held_up != nullptr && last_held_up->cause == model::HostWaitCause::layer;
  const std::string remarks = (layer_ended ? "" : floor_words(now)) + (backlog.empty() ? busy_words(now) : backlog) +
                              sibling_words(now) + resync_words(now, "") + filling_words(now) + unmeasured_words(now);
  if (last_held_up != nullptr && (incidents.empty() || end_of(*last_held_up) >= incidents.front().end)) {
    return about_ended(*last_held_up, now, calm, remarks);
  }
  if (incidents.empty()) {
    Why answer;
    advise_on_siblings(answer, now);
    say(answer, calm, remarks);
    return answer;
  }
  const Incident& last = incidents.front();
  const auto ago = now.taken_at - last.end;
  Why answer = about(last, situation.bursts, ago < kJustNow ? When::ended : When::earlier);
  const bool stood_still = !standstill_words(last, Tense::past).empty();
  const std::string was =
      fmt::format("{}{}, {}.{}", slowness_words(last, Tense::past),
                  stood_still ? "" : ", for " + util::format_duration(Seconds(last.end - last.begin).count()),
                  explain(last.headline(), situation.bursts, Tense::past, load_of(last)).because, tenants_words(last));
  const std::string title = title_of(now, last.headline().device);
  advise_on_siblings(answer, now);
  say(answer, calm, remarks,
      answer.when == When::ended
          ? fmt::format(" {} was slow from {} until {} ago: {}", title, util::format_clock(last.begin),
                        util::format_duration(Seconds(ago).count()), was)
          : fmt::format(" Earlier, at {}: {}: {}", util::format_clock(last.begin), title, was));
  return answer;
}

bool is_same_event(const LatencySpike& a, const LatencySpike& b) {
  return a.device == b.device && a.operation == b.operation && std::chrono::abs(a.begin - b.begin) < kTimeTolerance;
}

bool is_same_event(const model::HostWait& a, const model::HostWait& b) {
  return a.cause == b.cause && a.subject == b.subject && a.device == b.device &&
         std::chrono::abs(a.begin - b.begin) < kTimeTolerance;
}

/// Adds the events that touch the minute and are not there yet.
template <typename Event>
void add_events(std::vector<Event>& events, const std::vector<Event>& more, const Moment& moment) {
  for (const Event& event : more) {
    const bool known =
        std::any_of(events.begin(), events.end(), [&](const Event& other) { return is_same_event(event, other); });
    if (!known && event.begin < moment.begin + std::chrono::minutes(1) && end_of(event) >= moment.begin) {
      events.push_back(event);
    }
  }
}

/// Spikes of the minute: those in memory, and those that only the history has.
std::vector<LatencySpike> spikes_of(const Situation& situation, const Moment& moment) {
  std::vector<LatencySpike> spikes;
  add_events(spikes, situation.ended, moment);
  add_events(spikes, situation.now->spikes_unjudged, moment);
  add_events(spikes, situation.now->spikes_going_on, moment);
  if (situation.past) {
    for (const model::PastSpike& past : situation.past->spikes) {
      add_events(spikes, {spike_of(past)}, moment);
    }
  }
  return spikes;
}

/// Waits of the minute, likewise.
std::vector<model::HostWait> waits_of(const Situation& situation, const Moment& moment) {
  std::vector<model::HostWait> waits;
  add_events(waits, situation.ended_waits, moment);
  add_events(waits, situation.now->host.waits, moment);
  if (situation.past) {
    for (const model::PastWait& past : situation.past->waits) {
      if (const auto wait = wait_of(past)) {
        add_events(waits, {*wait}, moment);
      }
    }
  }
  return waits;
}

std::vector<model::Burst> bursts_of(const Situation& situation) {
  std::vector<model::Burst> bursts = situation.bursts;
  if (situation.past) {
    for (const model::PastBurst& burst : situation.past->bursts) {
      bursts.push_back(burst_of(burst));
    }
  }
  return bursts;
}

std::optional<WallTime> oldest_of(const model::PastReach& reach) {
  std::optional<WallTime> oldest;
  for (const auto& first : {reach.minutes, reach.hours}) {
    oldest = first ? std::min(oldest.value_or(*first), WallTime(*first)) : oldest;
  }
  return oldest;
}

/// Why nothing was recorded in that minute.
Why not_recorded(const Situation& situation, Moment& moment) {
  const WallTime now = situation.now->taken_at;
  const auto oldest = situation.past ? oldest_of(situation.past->reach) : std::nullopt;
  if (!oldest) {
    const auto since = situation.remembered_since ? situation.remembered_since : situation.known_since;
    moment.coverage = Coverage::out_of_range;
    return unknown(
        fmt::format("Out of range: {}, and {}.",
                    since ? "memory reaches back to " + util::format_clock(*since, now) : "nothing is in memory yet",
                    situation.past ? "the history has nothing yet" : situation.no_past));
  }
  const model::PastMoment& past = *situation.past;
  if (moment.begin < *oldest) {
    moment.coverage = Coverage::out_of_range;
    return unknown(fmt::format("Out of range: the history reaches back to {}; nothing older is kept.",
                               util::format_clock(*oldest, now)));
  }
  std::string sentence = fmt::format("No data: nothing was recorded {}", util::format_minute(moment.begin, now));
  if (past.recorded_until || past.recorded_from) {
    sentence += ", only";
    sentence += past.recorded_until ? " until " + util::format_clock(*past.recorded_until, now) : "";
    sentence += past.recorded_until && past.recorded_from ? " and" : "";
    sentence += past.recorded_from ? " from " + util::format_clock(*past.recorded_from, now) + " on" : "";
  }
  moment.coverage = Coverage::no_data;
  return unknown(sentence + ". The daemon was not running, or its history could not be written.");
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
    words +=
        fmt::format(" Only {} of that {} were measured.", util::format_duration(static_cast<double>(longest) / 1000),
                    length > 60'000 ? "hour" : "minute");
  }
  return words;
}

/// Also sets what is known about the time.
Why at_time(const Situation& situation, WallTime at, Moment& moment) {
  const model::Snapshot& now = *situation.now;
  moment.begin = std::chrono::floor<std::chrono::minutes>(at);
  if (at > now.taken_at + kTimeTolerance) {
    moment.coverage = Coverage::to_come;
    return unknown(util::format_clock(at, now.taken_at) + " is in the future.");
  }
  if (situation.past) {
    moment.step = situation.past->window.to - situation.past->window.from;
  }
  const auto incidents = model::incidents_of(spikes_of(situation, moment), {}, model::DeviceGroups(now.memberships));
  const auto worst = std::max_element(incidents.begin(), incidents.end(), [](const Incident& a, const Incident& b) {
    return a.harm_seconds() < b.harm_seconds();
  });
  const auto waits = waits_of(situation, moment);
  if (const model::HostWait* wait = first_of(waits, incidents)) {
    Why answer = about(*wait, now, When::then);
    answer.sentence = fmt::format(
        "{}, from {} for {}.{}", sentence_of(*wait, now, Tense::past), util::format_clock(wait->begin, now.taken_at),
        util::format_duration(Seconds(wait->duration).count()), others_words(now, incidents, "", Tense::past));
    return answer;
  }
  if (worst != incidents.end()) {
    const auto bursts = bursts_of(situation);
    const LatencySpike& spike = worst->headline();
    Why answer = about(*worst, bursts, When::then);
    answer.sentence = fmt::format("{}: {}, from {} for {}, {}.{}{}", title_of(now, spike.device),
                                  slowness_words(*worst, Tense::past), util::format_clock(worst->begin, now.taken_at),
                                  util::format_duration(Seconds(worst->end - worst->begin).count()),
                                  explain(spike, bursts, Tense::past, load_of(*worst)).because, tenants_words(*worst),
                                  others_words(now, incidents, spike.device, Tense::past));
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
  return {.verdict = Verdict::ok,
          .sentence = fmt::format("{} {}.{}", idle ? "No drive had any I/O" : "No drive was slower than usual",
                                  util::format_minute(moment.begin, now.taken_at),
                                  remembered ? unmeasured_words(now) : gaps_words(situation))};
}

}  // namespace

Situation situation_of(const model::Snapshot& snapshot, const history::RecentPast& past) {
  return {&snapshot, past.ended_spikes(),  past.bursts(),     past.since(), past.remembered_since(),
          {},        "no history is kept", past.ended_waits()};
}

Why why(const Situation& situation, std::optional<WallTime> at) {
  const model::Snapshot& now = *situation.now;
  if (at) {
    Moment moment;
    Why answer = at_time(situation, *at, moment);
    answer.moment = moment;
    return answer;
  }
  if (now.devices.empty()) {
    return unknown("No drive is measured.", "ssdpulse devices shows each disk and why it is not measured.",
                   "SsdpulseSourceDown");
  }
  for (const model::SourceStatus& source : now.sources) {
    if (source.name == "block" && !source.up) {
      return unknown("Nothing can be measured: " + source.reason + ".", "See the daemon's log: journalctl -u ssdpulse.",
                     "SsdpulseSourceDown");
    }
  }
  return right_now(situation);
}

}  // namespace ssdpulse::spikes
