// SPDX-License-Identifier: Apache-2.0
// SpikeCause: the causes of latency spikes: one entry for each, with all texts about it, from which C++, the page, the
// dashboards and the documents take them. An entry that lacks a part, or a sentence for some operation, does not
// compile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "daemon/base/complete.h"
#include "daemon/model/block_io.h"  // index(), name()

namespace ssdpulse::model {

enum class SpikeCause : std::uint8_t { discard, flush, gc, queue, saturation, thermal, error, unknown };
inline constexpr std::size_t kSpikeCauses = util::count_of<SpikeCause>();

/// Of what the cause is about: for `flush`, whether more flushes than usual were sent; for `error`, whether I/Os failed
/// (else they were only sent again); for `unknown`, whether it may be anything but the drive; otherwise whether there
/// was more I/O.
enum class Load : std::uint8_t { usual, more };
inline constexpr std::size_t kLoads = util::count_of<Load>();

/// The texts about a spike of these operations under this load. In them, [is|was] stands for a word in the present
/// or the past.
struct SpikeSentence {
  util::Text operations;  // letters: r reads, w writes, f flushes, c commits
  util::Text loads;       // letters: u usual, m more
  util::Text title;       // for a column: "slow flushes"
  util::Text because;     // "because the drive [is|was] throttling to cool down"
  util::Text next;        // what to do
  util::Text runbook;     // name of the page with more about it

  [[nodiscard]] constexpr bool is_about(Operation operation, Load load) const {
    return operations.view().find("rwfc"[index_in(kSpikeOperations, operation)]) != std::string_view::npos &&
           loads.view().find("um"[index(load)]) != std::string_view::npos;
  }
};

/// Of one cause: exactly one sentence for each operation and load.
class SpikeSentences {
 public:
  consteval SpikeSentences(std::initializer_list<SpikeSentence> sentences) {
    for (const SpikeSentence& sentence : sentences) {
      list_.at(size_++) = sentence;
    }
    for (const Operation operation : kSpikeOperations) {
      for (std::size_t load = 0; load < kLoads; ++load) {
        std::size_t fits = 0;
        for (std::size_t i = 0; i < size_; ++i) {
          fits += list_[i]->is_about(operation, static_cast<Load>(load)) ? 1U : 0U;
        }
        if (fits != 1) {
          throw "a cause has no sentence, or more than one, for some operation and load";
        }
      }
    }
  }

  [[nodiscard]] constexpr std::size_t size() const { return size_; }
  [[nodiscard]] constexpr const SpikeSentence& operator[](std::size_t i) const { return *list_[i]; }
  [[nodiscard]] constexpr const SpikeSentence& of(Operation operation, Load load) const {
    std::size_t i = 0;
    while (!list_[i]->is_about(operation, load)) {
      ++i;
    }
    return *list_[i];
  }

 private:
  std::array<std::optional<SpikeSentence>, kSpikeOperations.size() * kLoads> list_{};
  std::size_t size_ = 0;
};

struct SpikeCauseInfo {
  SpikeCause cause;
  util::Text name;      // in metrics, the history and the API: a contract
  util::Text noun;      // "a spike by discards"
  util::Text letter;    // of its marks on the page
  util::Text legend;    // what the letter stands for
  util::Text colour;    // of its series on the dashboards
  util::Text shown_by;  // when it is claimed, in Markdown
  SpikeSentences sentences;
};

inline constexpr util::Text kTrimLater =
    "Stop the trim if it can wait, and run it in quiet hours, or in smaller pieces (discard_max_bytes).";
inline constexpr util::Text kSlowFlush =
    "If much is written at the same time (backup, checkpoint), limit that. Otherwise check the drive: temperature, "
    "health, cache and power-loss protection, and the path to it (controller, SAN, cloud volume).";
inline constexpr util::Text kFewerFlushes = "Find out who calls fsync so often, and have it commit in groups.";
inline constexpr util::Text kCheckDrive =
    "Check whether the drive has become slower (temperature, health, write amplification); if not, limit what sends "
    "most.";
inline constexpr util::Text kLessLoad =
    "Limit what sends most (systemctl set-property --runtime UNIT 'IOReadBandwidthMax=/dev/DEVICE 50M'; likewise "
    "IOWriteBandwidthMax, IOReadIOPSMax, IOWriteIOPSMax), spread it over time, or add devices.";
inline constexpr util::Text kLessQueue =
    "Limit or spread what sends most; check the I/O scheduler and nr_requests (/sys/block/DEVICE/queue).";
inline constexpr util::Text kCheckQueue =
    "The load has not risen: check the I/O scheduler and nr_requests (/sys/block/DEVICE/queue), and whether "
    "the host is short of CPU.";

/// In the order of the enumeration.
inline constexpr auto kSpikeCauseTable = std::to_array<SpikeCauseInfo>({
    {.cause = SpikeCause::discard,
     .name = "discard",
     .noun = "discards",
     .letter = "D",
     .legend = "slow because of discards (trim)",
     .colour = "#F2495C",
     .shown_by = "the slow I/Os overlap discards, those that overlap none are fast, and there are more discards "
                 "than usual at this load, or they take up more of the time",
     // The reason of discards names who trims, where that is known.
     .sentences = {{.operations = "rwfc",
                    .loads = "um",
                    .title = "trim",
                    .because = "because discards (trim) [are|were] in flight at the same time",
                    .next = kTrimLater,
                    .runbook = "SsdpulseTailLiftedByDiscard"}}},
    {.cause = SpikeCause::flush,
     .name = "flush",
     .noun = "flushes",
     .letter = "F",
     .legend = "slow because of flushes (fsync)",
     .colour = "#B877D9",
     .shown_by = "the same for flushes",
     .sentences = {{.operations = "rw",
                    .loads = "u",
                    .title = "slow flushes",
                    .because = "because flushes of the drive's cache (fsync) [take|took] up more of the time than "
                               "usual, and [hold|held] up other I/O",
                    .next = kSlowFlush,
                    .runbook = "SsdpulseTailLiftedByFlush"},
                   {.operations = "rw",
                    .loads = "m",
                    .title = "many fsyncs",
                    .because = "because more fsyncs than usual [make|made] the drive flush its cache",
                    .next = kFewerFlushes,
                    .runbook = "SsdpulseTailLiftedByFlush"},
                   {.operations = "fc",
                    .loads = "u",
                    .title = "slow flushes",
                    .because = "because each flush of the drive's cache [takes|took] longer than usual, although "
                               "there [are|were] not many more of them",
                    .next = kSlowFlush,
                    .runbook = "SsdpulseCommitsSlow"},
                   {.operations = "fc",
                    .loads = "m",
                    .title = "many fsyncs",
                    .because = "because there [are|were] more flushes and commits than usual",
                    .next = kFewerFlushes,
                    .runbook = "SsdpulseCommitsSlow"}}},
    {.cause = SpikeCause::gc,
     .name = "gc",
     .noun = "garbage collection",
     .letter = "G",
     .legend = "slow because the drive collects garbage",
     .colour = "#E0B400",
     .shown_by = "the log pages around the spike show media writes that outrun host writes (1.5 times what the "
                 "drive's usual ratio and its usual background writes explain, even allowing for the granularity of "
                 "its counters), garbage collection events, or free blocks running low",
     .sentences = {{.operations = "rwfc",
                    .loads = "um",
                    .title = "garbage collection",
                    .because = "because the drive's own figures [show|showed] garbage collection",
                    .next = "Slow down bulk writes now (backup, restore, compaction). Later, trim free space, and "
                            "leave 10 to 20 % of the drive unused.",
                    .runbook = "SsdpulseTailLiftedByGarbageCollection"}}},
    {.cause = SpikeCause::queue,
     .name = "queue",
     .noun = "queueing on the host",
     .letter = "Q",
     .legend = "slow because of queueing on the host",
     .colour = "#8AB8FF",
     .shown_by = "the time was spent before the device, and the device itself was fast",
     .sentences = {{.operations = "rw",
                    .loads = "m",
                    .title = "queueing on the host",
                    .because = "because requests [wait|waited] on the host before they [reach|reached] the drive",
                    .next = kLessQueue,
                    .runbook = "SsdpulseTailLiftedByQueueing"},
                   {.operations = "rw",
                    .loads = "u",
                    .title = "queueing on the host",
                    .because = "because requests [wait|waited] on the host before they [reach|reached] the drive",
                    .next = kCheckQueue,
                    .runbook = "SsdpulseTailLiftedByQueueing"},
                   {.operations = "fc",
                    .loads = "m",
                    .title = "queueing on the host",
                    .because = "because I/O [waits|waited] on the host before it [reaches|reached] the drive",
                    .next = kLessQueue,
                    .runbook = "SsdpulseTailLiftedByQueueing"},
                   {.operations = "fc",
                    .loads = "u",
                    .title = "queueing on the host",
                    .because = "because I/O [waits|waited] on the host before it [reaches|reached] the drive",
                    .next = kCheckQueue,
                    .runbook = "SsdpulseTailLiftedByQueueing"}}},
    {.cause = SpikeCause::saturation,
     .name = "saturation",
     .noun = "too much load",
     .letter = "S",
     .legend = "slow because of too much load",
     .colour = "#1F60C4",
     .shown_by = "the device steadily does more than usual, or all its tags are in use, and more I/Os than usual "
                 "are in flight",
     .sentences = {{.operations = "rw",
                    .loads = "m",
                    .title = "too much load",
                    .because = "because there [is|was] too much load for the drive",
                    .next = kLessLoad,
                    .runbook = "SsdpulseTailLatencyHigh"},
                   {.operations = "fc",
                    .loads = "m",
                    .title = "too much load",
                    .because = "because there [is|was] too much load for the drive",
                    .next = kLessLoad,
                    .runbook = "SsdpulseCommitsSlow"},
                   {.operations = "rw",
                    .loads = "u",
                    .title = "queue slots full",
                    .because = "because the drive's queue slots [are|were] all in use more of the time than usual, "
                               "although the load [has|had] hardly risen",
                    .next = kCheckDrive,
                    .runbook = "SsdpulseTailLatencyHigh"},
                   {.operations = "fc",
                    .loads = "u",
                    .title = "queue slots full",
                    .because = "because the drive's queue slots [are|were] all in use more of the time than usual, "
                               "although the load [has|had] hardly risen",
                    .next = kCheckDrive,
                    .runbook = "SsdpulseCommitsSlow"}}},
    {.cause = SpikeCause::thermal,
     .name = "thermal",
     .noun = "heat",
     .letter = "T",
     .legend = "slow because the drive throttles for heat",
     .colour = "#FF780A",
     .shown_by = "between the last log page before the spike and the first after it, the drive slowed itself down, "
                 "or began to warn of heat: in two readings, or with a rise of 3 degrees, and unless its own "
                 "counters of throttling stand still",
     .sentences = {{.operations = "rwfc",
                    .loads = "um",
                    .title = "throttling",
                    .because = "because the drive [is|was] throttling to cool down",
                    .next =
                        "Compare its temperature with its neighbours': if all are hot, check the airflow; if only this "
                        "one, its slot or load.",
                    .runbook = "SsdpulseThermalThrottling"}}},
    {.cause = SpikeCause::error,
     .name = "error",
     .noun = "errors",
     .letter = "E",
     .legend = "slow because of errors",
     .colour = "#AD0317",
     .shown_by = "errors or failovers within the spike, or time spent on retries",
     .sentences = {{.operations = "rwfc",
                    .loads = "m",
                    .title = "I/O errors",
                    .because = "because I/Os [fail|failed]",
                    .next = "See what failed (journalctl -k): a path, cable or controller, or the drive itself. "
                            "Check that there are other copies of the data.",
                    .runbook = "SsdpulseIoErrors"},
                   {.operations = "rwfc",
                    .loads = "u",
                    .title = "I/Os sent again",
                    .because = "because I/Os [are|were] sent again, over another path or after the driver gave them "
                               "back",
                    .next = "Read the kernel's log (journalctl -k) for a path, a link or a reset, or a driver short "
                            "of resources.",
                    .runbook = "SsdpulseIoErrors"}}},
    {.cause = SpikeCause::unknown,
     .name = "unknown",
     .noun = "an unknown cause",
     .letter = "?",
     .legend = "slow, and nothing measured here explains it",
     .colour = "#8E8E8E",
     .shown_by = "none of these; the log line says what is missing. A stall is never `gc` unless the drive's log "
                 "pages say so",
     .sentences = {{.operations = "rwfc",
                    .loads = "u",
                    .title = "the drive or its path",
                    .because = "because the drive itself, or the path to it, [takes|took] longer, although the load "
                               "[is|was] as usual",
                    .next = "Check journalctl -k (timeouts, resets), the drive's health (smartctl), and the path to "
                            "it: controller, RAID, SAN, or the limits of a cloud volume.",
                    .runbook = "SsdpulseTailSpikeUnexplained"},
                   {.operations = "rw",
                    .loads = "m",
                    .title = "unexplained",
                    .because = "for a reason that nothing measured here explains",
                    .next = "Compare with what else ran on the host; `ssdpulse why --verbose` lists what was "
                            "measured.",
                    .runbook = "SsdpulseTailSpikeUnexplained"},
                   {.operations = "fc",
                    .loads = "m",
                    .title = "unexplained",
                    .because = "for a reason that nothing measured here explains",
                    .next = "Compare with what else ran on the host; `ssdpulse why --verbose` lists what was "
                            "measured.",
                    .runbook = "SsdpulseCommitsSlow"}}},
});

static_assert(util::is_table_of<SpikeCause>(kSpikeCauseTable, &SpikeCauseInfo::cause),
              "each cause has one entry, in the order of the enumeration");

inline constexpr auto kSpikeCauseNames = util::column(kSpikeCauseTable, &SpikeCauseInfo::name);

constexpr const SpikeCauseInfo& info(SpikeCause cause) { return kSpikeCauseTable[index(cause)]; }

}  // namespace ssdpulse::model
