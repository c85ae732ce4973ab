// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/explanations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "daemon/model/incidents.h"

namespace ssdpulse::live {
namespace {

using model::end_of;
using model::LatencySpike;
using model::SpikeCause;

constexpr std::string_view kTrimLater = "Run trims in quiet hours, or in smaller pieces (discard_max_bytes).";
constexpr std::string_view kCheckFlush =
    "The number of fsyncs has not risen, so the drive has become slow to flush: check its temperature, health and "
    "write "
    "amplification. A drive with power-loss protection flushes at no cost.";
constexpr std::string_view kFewerFlushes =
    "Find out who calls fsync so often, and commit in groups. A drive with power-loss protection flushes at no cost.";
constexpr std::string_view kCheckDrive =
    "Check whether the drive has become slower (temperature, health, write amplification); if not, limit what sends "
    "most.";
constexpr std::string_view kLessLoad =
    "Limit what sends most (systemd: IOReadBandwidthMax=, IOWriteBandwidthMax=), spread it over time, or add devices.";

constexpr std::string_view kLessQueue = "Limit or spread what sends most; check the I/O scheduler and nr_requests.";
constexpr std::string_view kCompare =
    "Compare with what ran on the host at that time; `ssdpulse why --verbose` lists what was measured.";

constexpr ExplanationRow kExplanations[] = {
    // The reason of discards names who trims: see kTriggers.
    {"rwfc", SpikeCause::discard, "um", "because discards (trim) [are|were] in flight at the same time", kTrimLater,
     "SsdpulseTailLiftedByDiscard"},
    {"rw", SpikeCause::flush, "u",
     "because flushes of its cache (fsync) [take|took] up more of the time than usual, and [hold|held] up other I/O",
     kCheckFlush, "SsdpulseCommitsSlow"},
    {"rw", SpikeCause::flush, "m", "because more flushes of its cache (fsync) than usual [are|were] in flight",
     kFewerFlushes, "SsdpulseTailLiftedByFlush"},
    {"fc", SpikeCause::flush, "u",
     "because the drive itself [is|was] slow to flush its cache, although it [gets|got] no more flushes than usual",
     kCheckFlush, "SsdpulseCommitsSlow"},
    {"fc", SpikeCause::flush, "m", "because more flushes (fsync) than usual [are|were] sent to it", kFewerFlushes,
     "SsdpulseCommitsSlow"},
    {"rwfc", SpikeCause::gc, "um", "because the drive [is|was] collecting garbage",
     "Leave part of the drive unused and trimmed, and check its write amplification.",
     "SsdpulseTailLiftedByGarbageCollection"},
    {"rw", SpikeCause::queue, "um", "because requests [wait|waited] on the host before they [reach|reached] the drive",
     kLessQueue, "SsdpulseTailLiftedByQueueing"},
    {"fc", SpikeCause::queue, "um",
     "because their writes [wait|waited] on the host before they [reach|reached] the drive", kLessQueue,
     "SsdpulseTailLiftedByQueueing"},
    {"rw", SpikeCause::saturation, "m", "because the drive [is|was] given more work than it can handle", kLessLoad,
     "SsdpulseTailLatencyHigh"},
    {"fc", SpikeCause::saturation, "m", "because the drive [is|was] given more work than it can handle", kLessLoad,
     "SsdpulseCommitsSlow"},
    {"rw", SpikeCause::saturation, "u",
     "because all its queue slots [are|were] in use, although the load [is|was] as usual", kCheckDrive,
     "SsdpulseTailLatencyHigh"},
    {"fc", SpikeCause::saturation, "u",
     "because all its queue slots [are|were] in use, although the load [is|was] as usual", kCheckDrive,
     "SsdpulseCommitsSlow"},
    {"rwfc", SpikeCause::thermal, "um", "because the drive [is|was] throttling to cool down",
     "Check the airflow and the drive's temperature.", "SsdpulseThermalThrottling"},
    {"rwfc", SpikeCause::error, "m", "because I/Os [fail|failed]",
     "Read the kernel's log, and be ready to replace the drive.", "SsdpulseIoErrors"},
    {"rwfc", SpikeCause::error, "u", "because the driver [gives|gave] I/Os back, to be sent again",
     "Read the kernel's log: the driver may be short of resources, or the drive may have been reset.",
     "SsdpulseIoErrors"},
    {"rw", SpikeCause::unknown, "um", "for a reason that this host does not show", kCompare,
     "SsdpulseTailSpikeUnexplained"},
    {"fc", SpikeCause::unknown, "um", "for a reason that this host does not show", kCompare, "SsdpulseCommitsSlow"},
};

struct TriggerRow {
  std::string_view because;
  std::string_view next;
};
constexpr std::array<TriggerRow, model::kDiscardTriggers> kTriggers{{
    {"because fstrim [is|was] trimming a file system on it", kTrimLater},
    {"because its file system, mounted with discard, [trims|trimmed] what was deleted",
     "Mount it without discard, and trim in quiet hours instead (fstrim.timer)."},
    {"because blkdiscard [is|was] discarding space on it", kTrimLater},
    {"because mkfs [is|was] discarding space on it",
     "Create file systems without discarding (mkfs.ext4 -E nodiscard, "
     "mkfs.xfs -K), or in quiet hours."},
    {"because a program [is|was] discarding space on it", kTrimLater},
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

/// The trigger of a burst on the device that overlaps the spike; nothing if none does.
std::optional<model::DiscardTrigger> trigger_of(const LatencySpike& spike, const std::vector<Burst>& bursts) {
  constexpr std::chrono::seconds kNear{2};
  const Burst* largest = nullptr;
  for (const Burst& burst : bursts) {
    if (burst.device == spike.device && burst.begin <= end_of(spike) + kNear &&
        (!burst.end || *burst.end >= spike.begin - kNear) && (largest == nullptr || largest->bytes < burst.bytes)) {
      largest = &burst;
    }
  }
  return largest == nullptr ? std::nullopt : std::optional(largest->trigger);
}

}  // namespace

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
  constexpr double kMoreLoad = 1.25;
  const auto has = [&spike](const char* key, double least) {
    const auto found = spike.evidence.find(key);
    return found != spike.evidence.end() && found->second >= least;
  };
  const bool more = spike.cause == SpikeCause::flush ? has("flushes_to_usual", model::kMoreFlushes)
                    : spike.cause == SpikeCause::error
                        ? has("errors", 1) || has("failovers", 1) || has("other_errors", 1)
                        : has("load_to_usual", kMoreLoad);
  return more ? Load::more : Load::usual;
}

Explanation explain(const LatencySpike& spike, const std::vector<Burst>& bursts, Tense tense) {
  const ExplanationRow& row = explanation_row(spike.operation, spike.cause, load_of(spike));
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
