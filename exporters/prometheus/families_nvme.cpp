// SPDX-License-Identifier: Apache-2.0
// NVMe drives: what they report, how fast they wear, and how well they can be polled.
// The fields of log pages come from model/nvme_drive.h, one family each; everything else has an entry in kFamilies. A
// figure that is not known is absent.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::NvmeDrive;
using model::Snapshot;

/// For each drive: visit(drive, {{"controller", NAME}}).
template <typename Visit>
void for_each_drive(const Snapshot& snapshot, Visit visit) {
  for (const auto& drive : snapshot.nvme_drives) {
    visit(drive, Labels{{"controller", drive.identity->controller}});
  }
}

/// For each drive whose writes to the media are known, with the label `source`.
template <typename Visit>
void for_each_source(const Snapshot& snapshot, Visit visit) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    if (const auto& waf = drive.write_amplification; !waf.source.empty()) {
      visit(waf, with(std::move(labels), {{"source", waf.source}}));
    }
  });
}

/// 0: none, or the whole drive.
Label endurance_group_label(std::uint16_t group) {
  return {"endurance_group", group == 0 ? "" : std::to_string(group)};
}

void nvme_info(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& labels) {
    const auto& identity = *drive.identity;
    const std::string version =
        identity.version == 0
            ? ""
            : fmt::format("{}.{}.{}", identity.version >> 16, (identity.version >> 8) & 0xff, identity.version & 0xff);
    out.add_info(with(labels, {{"model", util::for_label(identity.model)},
                               {"serial", util::for_label(identity.serial)},
                               {"firmware", util::for_label(identity.firmware)},
                               {"transport", identity.transport},
                               {"vendor_id", fmt::format("{:#06x}", identity.vendor_id)},
                               {"nvme_version", version},
                               {"subsystem_nqn", util::for_label(identity.subsystem_nqn)}}));
  });
}

void namespace_info(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    for (const auto& entry : drive.identity->namespaces) {
      out.add_info({{"device", entry.device},
                    controller.front(),
                    {"nsid", std::to_string(entry.nsid)},
                    endurance_group_label(entry.endurance_group)});
    }
  });
}

void block_sizes(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    for (const auto& entry : drive.identity->namespaces) {
      for (const auto& [bytes, rank] : entry.block_sizes) {
        out.add({{"device", entry.device}, controller.front(), {"block_bytes", std::to_string(bytes)}}, rank);
      }
    }
  });
}

void host_memory(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    const model::NvmeIdentity& identity = *drive.identity;
    for (const auto& [amount, bytes] : {std::pair("preferred", identity.host_memory_preferred_bytes),
                                        {"minimum", identity.host_memory_minimum_bytes}}) {
      if (bytes) {
        out.add({controller.front(), {"amount", amount}}, to_double(*bytes));
      }
    }
  });
}

void host_written(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    const auto& waf = drive.write_amplification;
    // Every drive has the health page; without a source of media writes, the host's counter is from that page.
    out.add(with(controller, {{"source", waf.source.empty() ? "smart" : waf.source}}), waf.host_written_bytes);
  });
}

void media_written(const Snapshot& snapshot, Samples& out) {
  for_each_source(snapshot, [&](const model::WriteAmplification& waf, Labels labels) {
    out.add(std::move(labels), waf.media_written_bytes);
  });
}

template <double model::WriteAmplificationRatio::*Member>
void by_window(const Snapshot& snapshot, Samples& out) {
  for_each_source(snapshot, [&](const model::WriteAmplification& waf, const Labels& source) {
    for (const auto& entry : waf.ratios) {
      out.add(with(source, {{"window", entry.window}}), entry.*Member);
    }
  });
}

void covered_window(const Snapshot& snapshot, Samples& out) {
  for_each_source(snapshot, [&](const model::WriteAmplification& waf, const Labels& source) {
    for (const auto& entry : waf.ratios) {
      if (entry.covered_seconds > 0) {
        out.add(with(source, {{"window", entry.window}}), entry.covered_seconds);
      }
    }
  });
}

void source_info(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    const auto& waf = drive.write_amplification;
    if (!waf.reason.empty()) {  // else the drive has not yet reported what it has
      out.add_info(with(controller, {{"source", waf.source.empty() ? "none" : waf.source}, {"reason", waf.reason}}));
    }
  });
}

void idle_media_written(const Snapshot& snapshot, Samples& out) {
  for_each_source(snapshot, [&](const model::WriteAmplification& waf, const Labels& source) {
    if (waf.media_written_bytes) {
      out.add({source.front()}, waf.idle_media_written_bytes, waf.since);
    }
  });
}

template <std::optional<double> model::WriteAmplification::*Member>
void drift(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels controller) {
    out.add(std::move(controller), drive.write_amplification.*Member);
  });
}

template <double model::LifeRemaining::*Seconds>
void life_remaining(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    for (const auto& entry : drive.write_amplification.life_remaining) {
      out.add(with(controller, {{"basis", entry.basis}}), entry.*Seconds);
    }
  });
}

void epochs(const Snapshot& snapshot, Samples& out) {
  for_each_source(snapshot, [&](const model::WriteAmplification& waf, const Labels& source) {
    if (waf.since != decltype(waf.since){}) {  // else there is no recent enough reading
      out.add({source.front()}, to_double(waf.epochs), waf.since);
    }
  });
}

void polls(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels controller) {
    out.add(std::move(controller), to_double(drive.polling.polls), daemon_start(snapshot));
  });
}

void last_poll(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels controller) {
    out.add(std::move(controller), drive.polling.last_success_seconds);
  });
}

void poll_duration(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels controller) {
    if (drive.polling.last_success_seconds) {
      out.add(std::move(controller), drive.polling.last_duration_seconds);
    }
  });
}

void poll_interval(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels controller) {
    if (drive.polling.interval_seconds > 0) {
      out.add(std::move(controller), drive.polling.interval_seconds);
    }
  });
}

void read_effect(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels controller) {
    out.add(std::move(controller), drive.polling.read_effect_ratio);
  });
}

void refused_pages(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    for (const auto& [page, reason] : drive.polling.refused_pages) {
      out.add_info(with(controller, {{"page", page}, {"reason", reason}}));
    }
  });
}

constexpr std::string_view kNoReading = "the drive has not been read yet";
constexpr std::string_view kNoMediaWrites = "the drive has no counter of media writes, or it has not been read yet";
constexpr std::string_view kWideBounds =
    "the bounds are more than 20 % apart, or fewer than three readings with writes between them are in the window";
constexpr std::string_view kNoDrift = "not all namespaces of the drive are measured, or there are not two readings yet";
constexpr std::string_view kNoWear = "the drive does not report what it is based on, or it has not changed yet";

constexpr auto kWindows = std::to_array<std::string_view>({"5m", "1h", "24h", "7d", "lifetime"});
constexpr auto kWindowsOfTime = std::to_array<std::string_view>({"5m", "1h", "24h", "7d"});
constexpr auto kBases = std::to_array<std::string_view>({"percentage_used", "endurance_estimate"});

constexpr LabelDescription kSource{"source", "the counters that are used: fdp, ocp, a vendor's page, endurance_group"};
constexpr LabelDescription kHostSourceLabels[] = {
    kController, {"source", "the counters that are used: the same as for media writes, or smart if there are none"}};
constexpr LabelDescription kSourceLabels[] = {kController, kSource};
constexpr LabelDescription kWindowLabels[] = {
    kController, kSource, {"window", "the period; lifetime: since the drive's first day", kWindows}};
constexpr LabelDescription kCoveredLabels[] = {kController, kSource, {"window", "the period", kWindowsOfTime}};
constexpr LabelDescription kSourceInfoLabels[] = {
    kController,
    {"source", "the counters that are used; none: the drive has none of media writes"},
    {"reason", "why no better one, or what is wrong with it"}};
constexpr LabelDescription kBasisLabels[] = {kController, {"basis", "what the drive reports about its wear", kBases}};
constexpr LabelDescription kRefusedLabels[] = {
    kController, {"page", "the log page"}, {"reason", "what the drive answered, or what it has instead"}};
constexpr LabelDescription kIdentity[] = {kController,
                                          {"model", "as the drive reports it"},
                                          {"serial", "as the drive reports it"},
                                          {"firmware", "as the drive reports it"},
                                          {"transport", "pcie, tcp, rdma, fc or loop"},
                                          {"vendor_id", "the PCI vendor, in hexadecimal"},
                                          {"nvme_version", "the version of the NVMe specification"},
                                          {"subsystem_nqn", "the name of its subsystem"}};
constexpr LabelDescription kEnduranceGroup{"endurance_group", "the endurance group; empty: none, or the whole drive"};
constexpr LabelDescription kNamespace[] = {
    {"device", "the namespace's block device"}, kController, {"nsid", "the namespace's number"}, kEnduranceGroup};

constexpr LabelDescription kBlockSize[] = {
    {"device", "the namespace's block device"}, kController, {"block_bytes", "of one logical block"}};
constexpr auto kAmounts = std::to_array<std::string_view>({"preferred", "minimum"});
constexpr LabelDescription kHostMemory[] = {kController, {"amount", "what the drive asks for", kAmounts}};

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_nvme_info", "An NVMe drive and its identity; always 1.", nvme_info, kIdentity},
    {"ssdpulse_nvme_namespace_info", "A namespace of an NVMe drive, as a block device; always 1.", namespace_info,
     kNamespace},
    {"ssdpulse_nvme_block_size_rank",
     "How the drive ranks its own performance if formatted with blocks of this size and no metadata. 0: best, 3: "
     "degraded.",
     block_sizes, kBlockSize, "the drive has not been read yet, or it is formatted with metadata"},
    {"ssdpulse_nvme_host_memory_buffer_bytes", "Host memory that the drive requests for its own use; 0: none.",
     host_memory, kHostMemory, kNoReading},
    {"ssdpulse_nvme_host_written_bytes_total",
     "Bytes that hosts wrote to the drive over its life, by the drive's own counter. Continues when that counter is "
     "reset. With source fdp: since placement was set up.",
     host_written, kHostSourceLabels, kNoReading},
    {"ssdpulse_nvme_media_written_bytes_total",
     "Bytes that the drive wrote to its media over its life: for hosts, garbage collection, refresh, metadata. "
     "Continues when the drive's counter is reset. With source fdp: since placement was set up.",
     media_written, kSourceLabels, kNoMediaWrites},
    {"ssdpulse_write_amplification_ratio", "Media writes per host write in the window.",
     by_window<&model::WriteAmplificationRatio::ratio>, kWindowLabels, kWideBounds},
    {"ssdpulse_write_amplification_lower_ratio",
     "Lower bound of the write amplification, allowing for the granularity of the drive's counters.",
     by_window<&model::WriteAmplificationRatio::lower>, kWindowLabels, kWideBounds},
    {"ssdpulse_write_amplification_upper_ratio",
     "Upper bound of the write amplification, allowing for the granularity of the drive's counters.",
     by_window<&model::WriteAmplificationRatio::upper>, kWindowLabels, kWideBounds},
    {"ssdpulse_write_amplification_covered_seconds",
     "How much of the window the write amplification covers: less than the window after a start.", covered_window,
     kCoveredLabels, kWideBounds},
    {"ssdpulse_write_amplification_age_seconds",
     "How long before the newest reading the window ends: more than 0 if the drive's counters lag.",
     by_window<&model::WriteAmplificationRatio::age_seconds>, kWindowLabels, kWideBounds},
    {"ssdpulse_write_amplification_source_info", "Which of the drive's counters is used; always 1.", source_info,
     kSourceInfoLabels, "the drive has not been read yet"},
    {"ssdpulse_nvme_write_epochs_total",
     "Number of times that the drive's write counters fell: they were reset or rolled back, or the firmware was "
     "replaced.",
     epochs, kControllerLabels, kNoMediaWrites},
    {"ssdpulse_nvme_idle_media_written_bytes_total",
     "Bytes written to the media while hosts wrote nothing: refresh, garbage collection, wear levelling.",
     idle_media_written, kControllerLabels, kNoMediaWrites},
    {"ssdpulse_nvme_host_written_drift_bytes",
     "Growth of the drive's own host counter minus the bytes that the block layer wrote to it, with write zeroes and "
     "discards if the drive is known to count them. If 0 is outside the bounds, someone else writes (by passthrough or "
     "from another host) or a counter is wrong.",
     drift<&model::WriteAmplification::host_written_drift_bytes>, kControllerLabels, kNoDrift},
    {"ssdpulse_nvme_host_written_drift_lower_bytes",
     "Lower bound of that drift: the counter is kept in whole units and may include write zeroes and discards, and "
     "I/Os that were lost to ssdpulse may have been writes.",
     drift<&model::WriteAmplification::host_written_drift_lower_bytes>, kControllerLabels, kNoDrift},
    {"ssdpulse_nvme_host_written_drift_upper_bytes",
     "Upper bound of that drift: the counter is kept in whole units and may not include write zeroes and discards.",
     drift<&model::WriteAmplification::host_written_drift_upper_bytes>, kControllerLabels, kNoDrift},
    {"ssdpulse_nvme_life_remaining_seconds",
     "Time until the rated endurance is used up, if the drive is written to as in the window.",
     life_remaining<&model::LifeRemaining::seconds>, kBasisLabels, kNoWear},
    {"ssdpulse_nvme_life_remaining_window_seconds", "Length of the window behind the remaining life.",
     life_remaining<&model::LifeRemaining::window_seconds>, kBasisLabels, kNoWear},
    {"ssdpulse_nvme_polls_total", "Attempts to read the drive's log pages.", polls, kControllerLabels},
    {"ssdpulse_nvme_last_poll_timestamp_seconds", "When the drive's log pages were last read successfully.", last_poll,
     kControllerLabels, kNoReading},
    {"ssdpulse_nvme_last_poll_duration_seconds", "How long the drive took to answer the commands of the last poll.",
     poll_duration, kControllerLabels, kNoReading},
    {"ssdpulse_nvme_poll_interval_seconds",
     "Time between two polls: longer than configured where reading log pages slows down I/O.", poll_interval,
     kControllerLabels, kNoReading},
    {"ssdpulse_nvme_log_read_latency_effect_ratio",
     "99th percentile of reads and writes within 50 ms of a scheduled poll, divided by that of all others. If polls "
     "hurt, drives of that model are polled less often until a day has been calm.",
     read_effect, kControllerLabels, "too few I/Os have been compared"},
    {"ssdpulse_nvme_refused_page_info", "A log page that is not requested again for a day; always 1.", refused_pages,
     kRefusedLabels, "the drive has refused no page"},
};

template <std::size_t Field>
void log_field(const Snapshot& snapshot, Samples& out) {
  constexpr auto& kDescription = model::kNvmeFieldDescriptions[Field];
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    for (const auto& value : drive.values) {
      if (model::index(value.field) == Field) {
        out.add(with(controller, {{kDescription.label, kDescription.label.empty() ? "" : value.label},
                                  endurance_group_label(value.endurance_group)}),
                value.value);
      }
    }
  });
}

// The values come from the log pages; each page, and so each vendor, has only a few of them.
constexpr LabelDescription kFieldLabels[] = {
    {"warning", "available_spare, temperature, reliability, read_only, volatile_backup or persistent_memory"},
    {"sensor", "composite, or the sensor's number"},
    {"operation", "read, write, trim, all; of background operations garbage_collection, wear_leveling, ..."},
    {"threshold", "warning or critical"},
    {"level", "1: light, 2: heavy"},
    {"area", "of the media: user, system, die_in_use or all"},
    {"state", "of blocks: used or unused; of dies: total, failures_tolerated or offline"},
    {"cells", "slc, tlc or all"},
    {"result", "detected, corrected or uncorrected"},
    {"configuration", "the number of the FDP configuration"},
    {"handle", "the number of the reclaim unit handle"},
    {"type", "such as reclaim_unit_not_fully_written or media_reallocated"},
    {"limit", "instance_iops, instance_throughput, volume_iops or volume_throughput"},
    {"up_to_seconds", "inclusive upper bound"}};

struct LabelsOfField {
  std::array<LabelDescription, 3> labels{kController};
  std::size_t count = 1;
};

constexpr LabelsOfField describe_labels(const model::NvmeFieldDescription& field) {
  LabelsOfField result;
  for (const auto& label : kFieldLabels) {
    if (label.name == field.label) {
      result.labels[result.count++] = label;
    }
  }
  if (field.metric.starts_with("ssdpulse_nvme_fdp_") || field.metric.starts_with("ssdpulse_nvme_endurance_group_")) {
    result.labels[result.count++] = kEnduranceGroup;
  }
  return result;
}

template <std::size_t Field>
constexpr LabelsOfField kLabelsOf = describe_labels(model::kNvmeFieldDescriptions[Field]);

template <std::size_t Field>
constexpr FamilyDescription describe_log_field() {
  constexpr auto& kField = model::kNvmeFieldDescriptions[Field];
  return {.name = kField.metric,
          .help = kField.help,
          .collect = log_field<Field>,
          .labels = std::span(kLabelsOf<Field>.labels).first(kLabelsOf<Field>.count),
          .absent = "no log page of the drive has it",
          .type = kField.counter ? Type::counter : Type::gauge,
          .unit = kField.unit};
}

template <std::size_t... Field>
constexpr auto describe_log_fields(std::index_sequence<Field...>) {
  return std::array{describe_log_field<Field>()...};
}

constexpr auto kLogFieldFamilies = describe_log_fields(std::make_index_sequence<model::kNvmeFields>());

}  // namespace

std::span<const FamilyDescription> nvme_families() { return kFamilies; }
std::span<const FamilyDescription> nvme_log_families() { return kLogFieldFamilies; }

}  // namespace ssdpulse::exposition
