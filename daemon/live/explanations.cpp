// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/explanations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/model/incidents.h"
#include "daemon/model/tenant_title.h"

namespace ssdpulse::live {
namespace {

using model::end_of;
using model::EvidenceKey;
using model::LatencySpike;
using model::SpikeCause;

constexpr std::string_view kTrimLater =
    "Stop the trim if it can wait, and run it in quiet hours, or in smaller pieces (discard_max_bytes).";
constexpr std::string_view kSlowFlush =
    "If much is written at the same time (backup, checkpoint), limit that. Otherwise check the drive: temperature, "
    "health, cache and power-loss protection, and the path to it (controller, SAN, cloud volume).";
constexpr std::string_view kFewerFlushes = "Find out who calls fsync so often, and have it commit in groups.";
constexpr std::string_view kCheckDrive =
    "Check whether the drive has become slower (temperature, health, write amplification); if not, limit what sends "
    "most.";
constexpr std::string_view kLessLoad =
    "Limit what sends most (systemctl set-property UNIT IOReadBandwidthMax=, IOWriteBandwidthMax=; for small I/Os "
    "IOReadIOPSMax=, IOWriteIOPSMax=), spread it over time, or add devices.";
constexpr std::string_view kLessQueue =
    "Limit or spread what sends most; check the I/O scheduler and nr_requests (/sys/block/DEVICE/queue).";
constexpr std::string_view kCheckQueue =
    "The load has not risen: check the I/O scheduler and nr_requests (/sys/block/DEVICE/queue), and whether "
    "the host is short of CPU.";
constexpr std::string_view kCheckPath =
    "Check journalctl -k (timeouts, resets), the drive's health (smartctl), and the path to it: controller, RAID, "
    "SAN, or the limits of a cloud volume.";
constexpr std::string_view kCompare =
    "Compare with what else ran on the host; `ssdpulse why --verbose` lists what was measured.";

constexpr double kMoreLoad = 1.25;  // times the usual
constexpr std::array<std::string_view, 3> kUnits{".service", ".slice", ".scope"};

constexpr ExplanationRow kExplanations[] = {
    // The reason of discards names who trims: see kTriggers.
    {"rwfc", SpikeCause::discard, "um", "because discards (trim) [are|were] in flight at the same time", kTrimLater,
     "SsdpulseTailLiftedByDiscard"},
    {"rw", SpikeCause::flush, "u",
     "because flushes of the drive's cache (fsync) [take|took] up more of the time than usual, and "
     "[hold|held] up other I/O",
     kSlowFlush, "SsdpulseTailLiftedByFlush"},
    {"rw", SpikeCause::flush, "m", "because more fsyncs than usual [make|made] the drive flush its cache",
     kFewerFlushes, "SsdpulseTailLiftedByFlush"},
    {"fc", SpikeCause::flush, "u",
     "because each flush of the drive's cache [takes|took] longer than usual, although there [are|were] not "
     "many more of them",
     kSlowFlush, "SsdpulseCommitsSlow"},
    {"fc", SpikeCause::flush, "m", "because there [are|were] more flushes and commits than usual", kFewerFlushes,
     "SsdpulseCommitsSlow"},
    {"rwfc", SpikeCause::gc, "um", "because the drive's own figures [show|showed] garbage collection",
     "Slow down bulk writes now (backup, restore, compaction). Later, trim free space, and leave 10 to 20 % "
     "of the drive unused.",
     "SsdpulseTailLiftedByGarbageCollection"},
    {"rw", SpikeCause::queue, "m", "because requests [wait|waited] on the host before they [reach|reached] the drive",
     kLessQueue, "SsdpulseTailLiftedByQueueing"},
    {"rw", SpikeCause::queue, "u", "because requests [wait|waited] on the host before they [reach|reached] the drive",
     kCheckQueue, "SsdpulseTailLiftedByQueueing"},
    {"fc", SpikeCause::queue, "m", "because I/O [waits|waited] on the host before it [reaches|reached] the drive",
     kLessQueue, "SsdpulseTailLiftedByQueueing"},
    {"fc", SpikeCause::queue, "u", "because I/O [waits|waited] on the host before it [reaches|reached] the drive",
     kCheckQueue, "SsdpulseTailLiftedByQueueing"},
    {"rw", SpikeCause::saturation, "m", "because there [is|was] too much load for the drive", kLessLoad,
     "SsdpulseTailLatencyHigh"},
    {"fc", SpikeCause::saturation, "m", "because there [is|was] too much load for the drive", kLessLoad,
     "SsdpulseCommitsSlow"},
    {"rw", SpikeCause::saturation, "u",
     "because the drive's queue slots [are|were] all in use more of the time than usual, although the load [has|had] "
     "hardly risen",
     kCheckDrive, "SsdpulseTailLatencyHigh"},
    {"fc", SpikeCause::saturation, "u",
     "because the drive's queue slots [are|were] all in use more of the time than usual, although the load [has|had] "
     "hardly risen",
     kCheckDrive, "SsdpulseCommitsSlow"},
    {"rwfc", SpikeCause::thermal, "um", "because the drive [is|was] throttling to cool down",
     "Check its temperature and that of its neighbours: all hot means airflow, one alone its slot or its load.",
     "SsdpulseThermalThrottling"},
    {"rwfc", SpikeCause::error, "m", "because I/Os [fail|failed]",
     "See what failed (journalctl -k): a path, cable or controller, or the drive itself. Check that there are other "
     "copies of the data.",
     "SsdpulseIoErrors"},
    {"rwfc", SpikeCause::error, "u",
     "because I/Os [are|were] sent again, over another path or after the driver gave them back",
     "Read the kernel's log (journalctl -k) for a path, a link or a reset, or a driver short of resources.",
     "SsdpulseIoErrors"},
    {"rwfc", SpikeCause::unknown, "u",
     "because the drive itself, or the path to it, [takes|took] longer, although the load [is|was] as usual",
     kCheckPath, "SsdpulseTailSpikeUnexplained"},
    {"rw", SpikeCause::unknown, "m", "for a reason that nothing measured here explains", kCompare,
     "SsdpulseTailSpikeUnexplained"},
    {"fc", SpikeCause::unknown, "m", "for a reason that nothing measured here explains", kCompare,
     "SsdpulseCommitsSlow"},
};

struct TriggerRow {
  std::string_view because;
  std::string_view next;
};
constexpr std::array<TriggerRow, model::kDiscardTriggers> kTriggers{{
    {"because fstrim [is|was] trimming a file system on it",
     "It can be stopped (systemctl stop fstrim.service) and run again later: in quiet hours, or in smaller pieces "
     "(discard_max_bytes)."},
    {"because its file system, mounted with discard, [trims|trimmed] what was deleted",
     "Mount it with nodiscard, and trim in quiet hours instead (fstrim.timer)."},
    {"because blkdiscard [is|was] discarding space on it", "Stop it, or discard in steps (blkdiscard --step)."},
    {"because mkfs [is|was] discarding space on it",
     "Create file systems without discarding (mkfs.ext4 -E nodiscard, "
     "mkfs.xfs -K), or in quiet hours."},
    {"because something other than fstrim, blkdiscard and mkfs [is|was] discarding space on it", kTrimLater},
}};

std::string in_tense(std::string_view text, Tense tense) {
  std::string words;
  while (!text.empty()) {
    const auto open = text.find('[');
    words += text.substr(0, open);
    if (open == std::string_view::npos) {
      break;
    }
    const auto middle = text.find('|', open);
    const auto close = text.find(']', open);
    words += tense == Tense::present ? text.substr(open + 1, middle - open - 1)
                                     : text.substr(middle + 1, close - middle - 1);
    text.remove_prefix(close + 1);
  }
  return words;
}

/// The trigger of the burst on the device that overlaps the spike longest; nothing if none does.
std::optional<model::DiscardTrigger> trigger_of(const LatencySpike& spike, const std::vector<Burst>& bursts) {
  constexpr std::chrono::seconds kNear{2};
  const Burst* longest = nullptr;
  auto longest_overlap = -kNear - kNear;
  for (const Burst& burst : bursts) {
    if (burst.device != spike.device) {
      continue;
    }
    const auto overlap = std::chrono::duration_cast<std::chrono::seconds>(
        std::min(burst.end.value_or(end_of(spike)), end_of(spike)) - std::max(burst.begin, spike.begin));
    if (overlap >= -kNear &&
        (longest == nullptr || std::pair(overlap, burst.bytes) > std::pair(longest_overlap, longest->bytes))) {
      longest = &burst;
      longest_overlap = overlap;
    }
  }
  return longest == nullptr ? std::nullopt : std::optional(longest->trigger);
}

}  // namespace

std::string next_for_load(std::string next, const LatencySpike& spike) {
  constexpr std::string_view kDrive = "Otherwise check the drive:";
  const auto load = spike.evidence.find(EvidenceKey::load_to_baseline);
  if (next != kSlowFlush || load == spike.evidence.end() || load->second >= kMoreLoad) {
    return next;
  }
  return "Check the drive:" + next.substr(next.find(kDrive) + kDrive.size());
}

std::string next_for_culprit(std::string next, const std::string& culprit) {
  const std::string title = model::tenant_title(culprit);
  const bool is_unit = std::any_of(kUnits.begin(), kUnits.end(), [&](std::string_view kind) {
    return culprit.size() > kind.size() && culprit.compare(culprit.size() - kind.size(), kind.size(), kind) == 0;
  });
  const auto replace = [&next](std::string_view words, const std::string& by) {
    if (const auto at = next.find(words); at != std::string::npos) {
      next.replace(at, words.size(), by);
    }
  };
  replace("Find out who calls fsync so often, and have it commit", "Have " + title + " commit");
  replace("what sends most", title);
  if (culprit != "fstrim.service") {
    replace("systemctl stop fstrim.service", "it runs in " + title);
  }
  if (is_unit) {
    replace("set-property UNIT", "set-property " + title);
  }
  return next;
}

std::span<const ExplanationRow> explanation_rows() { return kExplanations; }

const ExplanationRow& explanation_row(model::SpikeOperation operation, SpikeCause cause, Load load) {
  const char letter = std::string_view("rwfc")[index(operation)];
  const char of_load = load == Load::more ? 'm' : 'u';
  return *std::find_if(std::begin(kExplanations), std::end(kExplanations), [&](const ExplanationRow& row) {
    return row.cause == cause && row.operations.find(letter) != std::string_view::npos &&
           row.loads.find(of_load) != std::string_view::npos;
  });
}

Load load_of(const LatencySpike& spike) {
  const auto has = [&spike](EvidenceKey key, double least) { return amount(spike.evidence, key) >= least; };
  // Nearly all of the time was measured to be the drive's, and nothing else happened.
  constexpr double kNearlyAll = 0.9;
  const auto part = [&spike](EvidenceKey key) { return amount(spike.evidence, key); };
  const bool drive_alone = part(EvidenceKey::device_share) >= kNearlyAll && part(EvidenceKey::load_to_baseline) > 0 &&
                           part(EvidenceKey::load_to_baseline) < kMoreLoad &&
                           part(EvidenceKey::during_flushes_share) < 1 - kNearlyAll &&
                           part(EvidenceKey::during_discards_share) < 1 - kNearlyAll;
  const bool more = spike.cause == SpikeCause::unknown ? !drive_alone
                    : spike.cause == SpikeCause::flush ? has(EvidenceKey::flushes_to_baseline, model::kMoreFlushes)
                    : spike.cause == SpikeCause::error
                        ? has(EvidenceKey::errors, 1) || has(EvidenceKey::other_errors, 1)
                        : has(EvidenceKey::load_to_baseline, kMoreLoad);
  return more ? Load::more : Load::usual;
}

Load load_of(const model::Incident& incident) {
  const LatencySpike& headline = incident.headline();
  return std::any_of(incident.spikes.begin(), incident.spikes.end(),
                     [&](const LatencySpike& spike) {
                       return spike.device == headline.device && spike.cause == headline.cause &&
                              load_of(spike) == Load::more;
                     })
             ? Load::more
             : Load::usual;
}

std::string short_words(const LatencySpike& spike, std::optional<Load> load) {
  constexpr std::array<std::string_view, model::kSpikeCauses> kWords{
      "trim",          "",           "garbage collection", "queueing on the host",
      "too much load", "throttling", "I/O errors",         "unexplained"};
  const bool more = load.value_or(load_of(spike)) == Load::more;
  std::string words(spike.cause == SpikeCause::flush              ? (more ? "many fsyncs" : "slow flushes")
                    : spike.cause == SpikeCause::unknown && !more ? "the drive itself"
                                                                  : model::name(spike.cause, kWords));
  if (amount(spike.evidence, EvidenceKey::standstill_seconds) >= kStandstillSeconds) {
    words = "nothing completes";
  }
  const model::SpikeTenant* culprit = model::culprit_of(spike);
  return culprit == nullptr ? words : words + " by " + culprit->name;
}

Explanation explain(const LatencySpike& spike, const std::vector<Burst>& bursts, Tense tense,
                    std::optional<Load> load) {
  const ExplanationRow& row = explanation_row(spike.operation, spike.cause, load.value_or(load_of(spike)));
  const auto trigger = spike.cause == SpikeCause::discard ? trigger_of(spike, bursts) : std::nullopt;
  if (trigger) {
    const TriggerRow& by = kTriggers.at(static_cast<std::size_t>(*trigger));
    return {in_tense(by.because, tense), std::string(by.next), row.runbook};
  }
  std::string because = in_tense(row.because, tense);
  if (spike.cause == SpikeCause::unknown && !spike.missing.empty()) {
    because += fmt::format(" ({})", fmt::join(spike.missing, "; "));
  }
  return {std::move(because), std::string(row.next), row.runbook};
}

}  // namespace ssdpulse::live
