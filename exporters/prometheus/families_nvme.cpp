// SPDX-License-Identifier: Apache-2.0
// What do NVMe drives say of themselves, how fast do they wear, and how well can they be read?
// The fields of log pages come from model/nvme_fields.h, one family each; all else has an entry in kFamilies. A figure
// that is not known is absent.
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

/// Those whose writes to the media are known, with the label `source`.
template <typename Visit>
void for_each_source(const Snapshot& snapshot, Visit visit) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    if (!drive.write_amplification.source.empty()) {
      labels.push_back({"source", drive.write_amplification.source});
      visit(drive.write_amplification, std::move(labels));
    }
  });
}

std::string hexadecimal(std::uint16_t value) {
  std::string text = "0x0000";
  for (std::size_t digit = 0; digit < 4; ++digit) {
    text[5 - digit] = "0123456789abcdef"[(value >> (4 * digit)) & 0xf];
  }
  return text;
}

void nvme_info(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    const auto& identity = *drive.identity;
    const std::string version = identity.version == 0 ? ""
                                                      : std::to_string(identity.version >> 16) + "." +
                                                            std::to_string((identity.version >> 8) & 0xff) + "." +
                                                            std::to_string(identity.version & 0xff);
    labels.insert(labels.end(), {{"model", identity.model},
                                 {"serial", identity.serial},
                                 {"firmware", identity.firmware},
                                 {"transport", identity.transport},
                                 {"vendor_id", hexadecimal(identity.vendor_id)},
                                 {"nvme_version", version},
                                 {"subsystem_nqn", identity.subsystem_nqn}});
    out.add_info(std::move(labels));
  });
}

void namespace_info(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    for (const auto& entry : drive.identity->namespaces) {
      Labels labels{{"device", entry.device}};
      labels.push_back(controller.front());
      labels.push_back({"nsid", std::to_string(entry.nsid)});
      if (entry.endurance_group != 0) {
        labels.push_back({"endurance_group", std::to_string(entry.endurance_group)});
      }
      out.add_info(std::move(labels));
    }
  });
}

void host_written(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    const auto& waf = drive.write_amplification;
    if (waf.host_written_bytes) {
      // Every drive has the health page; without a source of media writes, the host's counter is that one's.
      labels.push_back({"source", waf.source.empty() ? "smart" : waf.source});
      out.add(std::move(labels), *waf.host_written_bytes);
    }
  });
}

void media_written(const Snapshot& snapshot, Samples& out) {
  for_each_source(snapshot, [&](const model::WriteAmplification& waf, Labels labels) {
    if (waf.media_written_bytes) {
      out.add(std::move(labels), *waf.media_written_bytes);
    }
  });
}

template <double model::WriteAmplificationRatio::*Member>
void ratio(const Snapshot& snapshot, Samples& out) {
  for_each_source(snapshot, [&](const model::WriteAmplification& waf, const Labels& source) {
    for (const auto& entry : waf.ratios) {
      Labels labels = source;
      labels.push_back({"window", entry.window});
      out.add(std::move(labels), entry.*Member);
    }
  });
}

void covered_window(const Snapshot& snapshot, Samples& out) {
  for_each_source(snapshot, [&](const model::WriteAmplification& waf, const Labels& source) {
    for (const auto& entry : waf.ratios) {
      if (entry.covered_seconds > 0) {
        Labels labels = source;
        labels.push_back({"window", entry.window});
        out.add(std::move(labels), entry.covered_seconds);
      }
    }
  });
}

void window_age(const Snapshot& snapshot, Samples& out) {
  for_each_source(snapshot, [&](const model::WriteAmplification& waf, const Labels& source) {
    for (const auto& entry : waf.ratios) {
      Labels labels = source;
      labels.push_back({"window", entry.window});
      out.add(std::move(labels), entry.age_seconds);
    }
  });
}

void source_info(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    const auto& waf = drive.write_amplification;
    if (!waf.reason.empty()) {  // else the drive has not said yet what it has
      labels.push_back({"source", waf.source.empty() ? "none" : waf.source});
      labels.push_back({"reason", waf.reason});
      out.add_info(std::move(labels));
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
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    if (const auto& value = drive.write_amplification.*Member) {
      out.add(std::move(labels), *value);
    }
  });
}

void life_remaining(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    for (const auto& entry : drive.write_amplification.life_remaining) {
      Labels labels = controller;
      labels.push_back({"basis", entry.basis});
      out.add(std::move(labels), entry.seconds);
    }
  });
}

void life_window(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    for (const auto& entry : drive.write_amplification.life_remaining) {
      Labels labels = controller;
      labels.push_back({"basis", entry.basis});
      out.add(std::move(labels), entry.window_seconds);
    }
  });
}

void epochs(const Snapshot& snapshot, Samples& out) {
  for_each_source(snapshot, [&](const model::WriteAmplification& waf, const Labels& source) {
    if (waf.since != decltype(waf.since){}) {  // else there is no reading that is not too old
      out.add({source.front()}, to_double(waf.epochs), waf.since);
    }
  });
}

void polls(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    out.add(std::move(labels), to_double(drive.polling.polls), daemon_start(snapshot));
  });
}

void last_poll(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    if (drive.polling.last_success_seconds) {
      out.add(std::move(labels), *drive.polling.last_success_seconds);
    }
  });
}

void poll_duration(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    if (drive.polling.last_success_seconds) {
      out.add(std::move(labels), drive.polling.last_duration_seconds);
    }
  });
}

void poll_interval(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    if (drive.polling.interval_seconds > 0) {
      out.add(std::move(labels), drive.polling.interval_seconds);
    }
  });
}

void read_effect(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, Labels labels) {
    if (drive.polling.read_effect_ratio) {
      out.add(std::move(labels), *drive.polling.read_effect_ratio);
    }
  });
}

void refused_pages(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    for (const auto& [page, reason] : drive.polling.refused_pages) {
      Labels labels = controller;
      labels.push_back({"page", page});
      labels.push_back({"reason", reason});
      out.add_info(std::move(labels));
    }
  });
}

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_nvme_info",
     "An NVMe drive and its identity; controller: the lowest live one of its subsystem; always 1.", "", Type::gauge,
     Modes::all, nvme_info},
    {"ssdpulse_nvme_namespace_info", "A namespace of an NVMe drive, as a block device; always 1.", "", Type::gauge,
     Modes::all, namespace_info},
    {"ssdpulse_nvme_host_written_bytes_total",
     "Bytes that hosts wrote to the drive, by the drive's own counter: over its life, with source fdp since placement "
     "was set; goes on when the drive's counter begins anew.",
     "bytes", Type::counter, Modes::all, host_written},
    {"ssdpulse_nvme_media_written_bytes_total",
     "Bytes that the drive wrote to its media, for the host, garbage collection, refresh, metadata: over its life, "
     "with "
     "source fdp since placement was set.",
     "bytes", Type::counter, Modes::all, media_written},
    {"ssdpulse_write_amplification_ratio",
     "Media writes per host write in the window; absent where its bounds are more than 20 % apart.", "ratio",
     Type::gauge, Modes::all, ratio<&model::WriteAmplificationRatio::ratio>},
    {"ssdpulse_write_amplification_lower_ratio",
     "Lower bound of the write amplification: no rounding of the drive's counters hides less.", "ratio", Type::gauge,
     Modes::all, ratio<&model::WriteAmplificationRatio::lower>},
    {"ssdpulse_write_amplification_upper_ratio",
     "Upper bound of the write amplification: no rounding of the drive's counters hides more.", "ratio", Type::gauge,
     Modes::all, ratio<&model::WriteAmplificationRatio::upper>},
    {"ssdpulse_write_amplification_covered_seconds",
     "How much of the window the write amplification was computed over; less than the window after a start.", "seconds",
     Type::gauge, Modes::all, covered_window},
    {"ssdpulse_write_amplification_age_seconds",
     "How long before the newest reading the window ends; more than 0 where the drive's counters lag.", "seconds",
     Type::gauge, Modes::all, window_age},
    {"ssdpulse_write_amplification_source_info",
     "Where the media writes are read, and why nowhere better; source none: nowhere; always 1.", "", Type::gauge,
     Modes::all, source_info},
    {"ssdpulse_nvme_write_epochs_total",
     "Times that the drive's write counters began anew: reset, rolled back, or new firmware.", "", Type::counter,
     Modes::all, epochs},
    {"ssdpulse_nvme_idle_media_written_bytes_total",
     "Bytes written to the media while the host wrote nothing: refresh, garbage collection, wear levelling.", "bytes",
     Type::counter, Modes::all, idle_media_written},
    {"ssdpulse_nvme_host_written_drift_bytes",
     "Growth of the drive's own host counter less the bytes that the block layer wrote to it, with write zeroes and "
     "discards if the drive is known to count them; absent where not all its namespaces are measured.",
     "bytes", Type::gauge, Modes::all, drift<&model::WriteAmplification::host_written_drift_bytes>},
    {"ssdpulse_nvme_host_written_drift_lower_bytes",
     "Lower bound of the drift: the counter is kept in whole units, may have write zeroes and discards, and I/Os that "
     "went uncounted may have been writes.",
     "bytes", Type::gauge, Modes::all, drift<&model::WriteAmplification::host_written_drift_lower_bytes>},
    {"ssdpulse_nvme_host_written_drift_upper_bytes",
     "Upper bound of the drift: the counter is kept in whole units, and may lack write zeroes and discards.", "bytes",
     Type::gauge, Modes::all, drift<&model::WriteAmplification::host_written_drift_upper_bytes>},
    {"ssdpulse_nvme_life_remaining_seconds",
     "Time until the rated endurance is used up, if it goes on as in the window; basis: percentage_used or "
     "endurance_estimate.",
     "seconds", Type::gauge, Modes::all, life_remaining},
    {"ssdpulse_nvme_life_remaining_window_seconds", "Length of the window that the remaining life was computed over.",
     "seconds", Type::gauge, Modes::all, life_window},
    {"ssdpulse_nvme_polls_total", "Readings of the drive's logs that were begun.", "", Type::counter, Modes::all,
     polls},
    {"ssdpulse_nvme_last_poll_timestamp_seconds", "When the drive's logs were last read with success.", "seconds",
     Type::gauge, Modes::all, last_poll},
    {"ssdpulse_nvme_last_poll_duration_seconds", "How long the drive took for the commands of the last reading.",
     "seconds", Type::gauge, Modes::all, poll_duration},
    {"ssdpulse_nvme_poll_interval_seconds",
     "Time between two readings of the drive's logs; longer than configured where reading them hurts.", "seconds",
     Type::gauge, Modes::all, poll_interval},
    {"ssdpulse_nvme_log_read_latency_effect_ratio",
     "99th percentile of reads and writes within 50 ms of a log read, over that of the others.", "ratio", Type::gauge,
     Modes::all, read_effect},
    {"ssdpulse_nvme_refused_page_info",
     "A log page that is not asked for again within a day: the drive refused it, or has another page in its place; "
     "always 1.",
     "", Type::gauge, Modes::all, refused_pages},
};

template <std::size_t Field>
void log_field(const Snapshot& snapshot, Samples& out) {
  constexpr auto& kDescription = model::kNvmeFieldDescriptions[Field];
  for_each_drive(snapshot, [&](const NvmeDrive& drive, const Labels& controller) {
    for (const auto& value : drive.values) {
      if (model::index(value.field) == Field) {
        Labels labels = controller;
        if (!kDescription.label.empty()) {
          labels.push_back({kDescription.label, value.label});
        }
        if (value.endurance_group != 0) {
          labels.push_back({"endurance_group", std::to_string(value.endurance_group)});
        }
        out.add(std::move(labels), value.value);
      }
    }
  });
}

template <std::size_t... Field>
constexpr auto describe_log_fields(std::index_sequence<Field...>) {
  return std::array{FamilyDescription{
      model::kNvmeFieldDescriptions[Field].metric, model::kNvmeFieldDescriptions[Field].help,
      model::kNvmeFieldDescriptions[Field].unit,
      model::kNvmeFieldDescriptions[Field].counter ? Type::counter : Type::gauge, Modes::all, log_field<Field>}...};
}

constexpr auto kLogFieldFamilies = describe_log_fields(std::make_index_sequence<model::kNvmeFields>());

}  // namespace

std::span<const FamilyDescription> nvme_families() { return kFamilies; }
std::span<const FamilyDescription> nvme_log_families() { return kLogFieldFamilies; }

}  // namespace ssdpulse::exposition
