// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/families.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace ssdpulse::exposition {

namespace {

// The fleet profile: what critical and warning alerts read about a disk, about 60 series, for a Prometheus that
// scrapes thousands of them. A series that no such alert reads is left out; values of a label that no alert
// distinguishes are added up under one. Names and types are those of the full page, so rules and dashboards need no
// other form.

constexpr std::string_view kOther = "other";

/// 0.5, 2, 8, 16, 31 and 125 ms: chosen so that each alert fires on its case and stays silent on the healthy one next
/// to it (system.test_alert_rules), which five, or 4 ms instead of 8, did not achieve.
constexpr std::array kClassicIndexes{-88, -72, -56, -48, -40, -24};
constexpr HistogramScale kFleetLatencyScale{kLatencyScale.schema,
                                            kLatencyScale.first_index,
                                            kLatencyScale.first_classic_index,
                                            kLatencyScale.last_classic_index,
                                            kLatencyScale.classic_step,
                                            kClassicIndexes};

Label* find(Labels& labels, std::string_view name) {
  const auto found = std::find_if(labels.begin(), labels.end(), [&](const Label& label) { return label.name == name; });
  return found == labels.end() ? nullptr : &*found;
}

bool is_one_of(Labels& labels, std::string_view name, std::initializer_list<std::string_view> values) {
  const Label* const label = find(labels, name);
  return label != nullptr && std::find(values.begin(), values.end(), label->value) != values.end();
}

void remove(Labels& labels, std::string_view name) {
  std::erase_if(labels, [&](const Label& label) { return label.name == name; });
}

/// What is kept of a sample: false leaves it out; samples whose labels have become equal are added up.
using Cut = bool (*)(Labels&);

bool whole(Labels&) { return true; }
bool reads_and_writes(Labels& labels) { return is_one_of(labels, "operation", {"read", "write"}); }

/// Keeps the causes that alerts name: the drive's garbage collection, or unknown. For commits none.
bool by_cause(Labels& labels) {
  const bool commit = is_one_of(labels, "operation", {"commit"});
  if (!commit && !reads_and_writes(labels)) {
    return false;
  }
  if (commit || !is_one_of(labels, "cause", {"gc", "unknown"})) {
    find(labels, "cause")->value = kOther;
  }
  return true;
}

bool of_any_cause(Labels& labels) {
  remove(labels, "cause");
  return reads_and_writes(labels);
}

bool errors(Labels& labels) {
  const bool medium = is_one_of(labels, "error", {"medium"});
  if (!medium &&
      (!is_one_of(labels, "operation", {"read", "write", "flush"}) ||
       !is_one_of(labels, "error", {"io", "timeout", "transport", "target", "offline", "protection", "nospace"}))) {
    return false;
  }
  remove(labels, "operation");
  find(labels, "error")->value = medium ? "medium" : "io";
  return true;
}

bool losses(Labels& labels) {
  if (is_one_of(labels, "cause", {"clock", "unstamped"})) {
    return false;
  }
  remove(labels, "program");
  if (find(labels, "device") != nullptr) {
    find(labels, "cause")->value = kOther;
  }
  return true;
}

bool of_any_level(Labels& labels) {
  remove(labels, "level");
  return true;
}

struct ProfileEntry {
  std::string_view family;
  Cut cut;
  bool zeroes = true;  // false: a state that is 0 is left out, as nothing reads its zeroes
};

constexpr ProfileEntry kProfile[] = {
    {"ssdpulse_io_device_latency_seconds", reads_and_writes},
    {"ssdpulse_io_queue_latency_seconds", reads_and_writes},
    {"ssdpulse_io_latency_seconds", reads_and_writes},
    {"ssdpulse_volume_latency_seconds", reads_and_writes},
    {"ssdpulse_volume_member_info", whole},
    {"ssdpulse_device_member_info", whole},
    {"ssdpulse_io_bytes_total", reads_and_writes},
    {"ssdpulse_io_errors_total", errors},
    {"ssdpulse_latency_spikes_total", of_any_cause},
    {"ssdpulse_latency_spike_seconds_total", by_cause},
    {"ssdpulse_latency_spike_active", by_cause},
    {"ssdpulse_latency_excess_seconds_total", of_any_cause},
    {"ssdpulse_latency_spike_pending_excess_seconds", reads_and_writes},
    {"ssdpulse_host_wait_active", whole, false},
    {"ssdpulse_host_io_pressure_seconds_total", whole},
    {"ssdpulse_volume_degraded_members", whole, false},
    {"ssdpulse_device_latency_of_siblings_ratio", whole},
    {"ssdpulse_device_slower_than_siblings", whole, false},
    {"ssdpulse_device_info", whole},
    {"ssdpulse_device_size_bytes", whole},
    {"ssdpulse_nvme_info", whole},
    {"ssdpulse_nvme_namespace_info", whole},
    {"ssdpulse_nvme_critical_warning", whole, false},
    {"ssdpulse_nvme_endurance_group_warning", whole, false},
    {"ssdpulse_nvme_percentage_used_ratio", whole},
    {"ssdpulse_nvme_available_spare_ratio", whole},
    {"ssdpulse_nvme_available_spare_threshold_ratio", whole},
    {"ssdpulse_nvme_endurance_group_available_spare_ratio", whole},
    {"ssdpulse_nvme_endurance_group_available_spare_threshold_ratio", whole},
    {"ssdpulse_nvme_media_errors_total", whole},
    {"ssdpulse_nvme_media_written_bytes_total", whole},
    {"ssdpulse_nvme_life_remaining_seconds", whole},
    {"ssdpulse_nvme_life_remaining_window_seconds", whole},
    {"ssdpulse_nvme_thermal_management_seconds_total", of_any_level},
    {"ssdpulse_nvme_thermal_management_transitions_total", of_any_level},
    {"ssdpulse_nvme_thermal_throttle_seconds_total", whole},
    {"ssdpulse_nvme_thermal_throttle_events_total", whole},
    {"ssdpulse_nvme_thermal_throttle_level", whole},
    {"ssdpulse_nvme_last_poll_timestamp_seconds", whole},
    {"ssdpulse_nvme_poll_interval_seconds", whole},
    {"ssdpulse_write_amplification_source_info", whole},
    {"ssdpulse_write_amplification_lower_ratio",
     [](Labels& labels) {
       return is_one_of(labels, "window", {"1h", "24h"});
     }},
    {"ssdpulse_write_amplification_upper_ratio", [](Labels& labels) { return is_one_of(labels, "window", {"7d"}); }},
    {"ssdpulse_write_amplification_covered_seconds",
     [](Labels& labels) {
       return is_one_of(labels, "window", {"24h", "7d"});
     }},
    {"ssdpulse_audit_finding_info", [](Labels& labels) { return is_one_of(labels, "verdict", {"danger"}); }},
    {"ssdpulse_lost_events_total", losses},
    {"ssdpulse_accounting_drift_ios", reads_and_writes},
};

/// Reduces the samples of a family to the profile: a family that is not in it keeps none. `of_daemon`: the family is
/// about the daemon itself, and kept whole unless the profile names it. Histograms keep few of their classic bounds.
void reduce_to_fleet(const FamilyDescription& family, bool of_daemon, std::vector<Sample>& samples) {
  const auto* const kept = std::find_if(std::begin(kProfile), std::end(kProfile),
                                        [&](const ProfileEntry& entry) { return entry.family == family.name; });
  if (kept == std::end(kProfile)) {
    if (!of_daemon) {
      samples.clear();
    }
    return;
  }
  std::vector<Sample> result;
  std::map<Labels, std::size_t> indexes;  // in the result
  for (Sample& sample : samples) {
    auto* const histogram = std::get_if<Histogram>(&sample.value);
    if (!kept->cut(sample.labels) || (histogram == nullptr && !kept->zeroes && std::get<double>(sample.value) == 0)) {
      continue;
    }
    if (histogram != nullptr) {
      histogram->scale = &kFleetLatencyScale;
      result.push_back(std::move(sample));
    } else if (const auto [known, is_new] = indexes.emplace(sample.labels, result.size()); is_new) {
      result.push_back(std::move(sample));
    } else {
      std::get<double>(result[known->second].value) += std::get<double>(sample.value);
    }
  }
  samples = std::move(result);
}

}  // namespace

std::span<const Topic> topics() {
  static constexpr Topic kTopics[] = {
      {"io", "I/O of each device", io_families, true},
      {"writes", "Writes: hints, classes, alignment", write_families, true},
      {"discards", "Discards", discard_families, true},
      {"volumes", "Volumes: what lies above the drives", volume_families, true},
      {"devices", "Devices and file systems", device_families, false},
      {"nvme", "NVMe drives: wear and polling", nvme_families, false},
      {"nvme_logs", "NVMe drives: fields of their log pages", nvme_log_families, false},
      {"flash_model", "Write amplification, modelled", flash_families, true},
      {"spikes", "Latency spikes", spike_families, true},
      {"tenants", "Tenants and paths", tenant_families, true},
      {"host", "Above the drives: pressure, limits, room", host_families, false},
      {"web", "The web server", web_families, false},
      {"self", "The daemon itself", self_families, false},
  };
  static_assert(std::size(kTopics) == model::kMetricGroups.size());
  return kTopics;
}

std::optional<model::WallTime> daemon_start(const model::Snapshot& snapshot) {
  if (snapshot.process.start_time_seconds <= 0) {
    return std::nullopt;
  }
  const std::chrono::duration<double> since_epoch(snapshot.process.start_time_seconds);
  // A double holds a time of today exactly to the microsecond, not to the nanosecond.
  return model::WallTime(std::chrono::round<std::chrono::microseconds>(since_epoch));
}

std::vector<Family> collect(const model::Snapshot& snapshot, model::MetricGroups groups) {
  const bool completion_only = snapshot.latency_mode == "completion-only";
  const bool detached = snapshot.own_cost.effort == model::Effort::nothing;
  std::vector<Family> families;
  for (std::size_t group = 0; group < topics().size(); ++group) {
    const Topic& topic = topics()[group];
    const bool whole = groups.test(group);
    if ((!whole && !groups.test(model::kFleetGroup)) || (detached && topic.measured)) {
      continue;
    }
    for (const auto& description : topic.families()) {
      if (completion_only && description.modes == Modes::full_only) {
        continue;
      }
      Samples samples;
      description.collect(snapshot, samples);
      Family family{&description, samples.take()};
      if (!whole) {
        reduce_to_fleet(description, topic.group == "self", family.samples);
      }
      if (!family.samples.empty()) {
        families.push_back(std::move(family));
      }
    }
  }
  return families;
}

}  // namespace ssdpulse::exposition
