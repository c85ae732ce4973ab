// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/measured.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace ssdpulse::advice {

// What is absent in the metrics is absent here: measured_test compares them.

namespace {

using model::Operation;
using model::Snapshot;

double figure(std::uint64_t value) { return static_cast<double>(value); }
double figure_of_ns(std::uint64_t nanoseconds) { return figure(nanoseconds) / 1e9; }

void add_histogram(Distribution& total, const model::LatencyHistogram& one) {
  if (!one.empty()) {
    add_figure(total.count, figure(one.count()));
    add_figure(total.sum, figure_of_ns(one.sum_ns));
  }
}

void add_histogram(Distribution& total, const model::SizeHistogram& one) {
  if (!one.empty()) {
    add_figure(total.count, figure(one.count()));
    add_figure(total.sum, figure(one.sum_bytes));
  }
}

void keep_maximum(Figure& maximum, double value) {
  if (std::isfinite(value)) {
    maximum = std::max(maximum.value_or(value), value);
  }
}

/// What can be seen in the daemon's present state; else nothing is known, rather than 0.
struct Visible {
  explicit Visible(const Snapshot& snapshot)
      : requests(snapshot.own_cost.effort != model::Effort::nothing),
        issues(snapshot.latency_mode != "completion-only") {}
  bool requests;
  bool issues;
};

void add_operations(const model::DeviceIo& io, Visible visible, MeasuredDevice& device) {
  for (std::size_t i = 0; i < model::kOperations; ++i) {
    const model::OperationIo& from = io.operations[i];
    const bool reads_or_writes = i == index(Operation::read) || i == index(Operation::write);
    if (!reads_or_writes && !from.active) {
      continue;
    }
    MeasuredOperation& to = device.operations[i];
    to.bytes = figure(from.bytes);
    to.sequential_bytes = reads_or_writes ? Figure(figure(from.sequential_bytes)) : std::nullopt;
    add_histogram(to.size_bytes, from.size);
    add_histogram(to.total_seconds, from.total_latency);
    add_figure(device.timeouts, figure(from.errors[index(model::IoError::timeout)]));
    if (visible.issues) {
      add_histogram(to.queue_seconds, from.queue_latency);
      for (const model::LatencyHistogram& during : from.device_latency) {
        add_histogram(to.device_seconds, during);
      }
      add_figure(device.queue_full_seconds, figure_of_ns(from.queue_full_ns));
      add_figure(device.failovers, figure(from.requeues[index(model::RequeueReason::failover)]));
    }
  }
  add_histogram(device.commit_seconds, io.commit_latency);
  device.unstamped_ios = figure(io.losses[index(model::Loss::unstamped)]);
  if (visible.issues) {
    for (std::size_t i = 0; i < model::kWriteClasses; ++i) {
      device.written_bytes[i] = figure(io.writes.class_bytes[i]);
    }
    device.misaligned_bytes = figure(io.writes.misaligned_bytes);
  }
}

void add_spikes(const model::DeviceSnapshot& from, MeasuredDevice& device) {
  for (std::size_t i = 0; i < model::kSpikeOperations.size(); ++i) {
    const model::SpikeFigures& figures = from.spikes[i];
    MeasuredSpikes& spikes = device.spikes[i];
    spikes.active_cause = figures.active;
    if (!from.device->iostats) {
      continue;  // the kernel stamps no requests, and no total latency is known
    }
    for (std::size_t cause = 0; cause < model::kSpikeCauses; ++cause) {
      add_figure(spikes.excess_seconds[cause], figures.excess_seconds[cause]);
    }
    add_figure(spikes.pending_excess_seconds, figures.pending_excess_seconds);
  }
}

void add_paths(const model::DeviceSnapshot& from, MeasuredDevice& device) {
  if (!from.tenants || !from.io) {
    return;
  }
  for (std::size_t path = 0; path < model::kIoPaths; ++path) {
    for (const model::TotalsByOperation& access : from.tenants->paths[path]) {
      for (const model::AttributedTotals& totals : access) {
        if (totals.ios > 0) {
          add_figure(device.path_ios[path], figure(totals.ios));
        }
      }
    }
  }
}

MeasuredDevice device_of(const model::DeviceSnapshot& from, Visible visible) {
  // A device that is present but not measured yet counts from 0, too.
  static const auto& nothing_yet = *new model::DeviceIo;
  MeasuredDevice device;
  device.unseen = from.unseen.has_value();
  if (device.unseen || !visible.requests) {
    return device;
  }
  add_operations(from.io ? *from.io : nothing_yet, visible, device);
  add_spikes(from, device);
  add_paths(from, device);
  for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
    device.discards[i] = {figure_of_ns(from.discards[i].duration_ns), figure(from.discards[i].bytes)};
  }
  return device;
}

using F = model::NvmeField;

constexpr std::pair<F, Figure MeasuredDrive::*> kDriveFigures[] = {
    {F::available_spare_ratio, &MeasuredDrive::available_spare_ratio},
    {F::available_spare_threshold_ratio, &MeasuredDrive::available_spare_threshold_ratio},
    {F::percentage_used_ratio, &MeasuredDrive::percentage_used_ratio},
    {F::media_errors, &MeasuredDrive::media_errors},
    {F::power_on_seconds, &MeasuredDrive::power_on_seconds},
    {F::thermal_management_seconds, &MeasuredDrive::thermal_management_seconds},
    {F::thermal_throttle_seconds, &MeasuredDrive::thermal_throttle_seconds},
};

constexpr std::pair<F, Figure MeasuredGroup::*> kGroupFigures[] = {
    {F::endurance_group_available_spare_ratio, &MeasuredGroup::available_spare_ratio},
    {F::endurance_group_available_spare_threshold_ratio, &MeasuredGroup::available_spare_threshold_ratio},
    {F::endurance_group_percentage_used_ratio, &MeasuredGroup::percentage_used_ratio},
};

void add_field(const model::NvmeValue& value, MeasuredDrive& drive) {
  for (const auto& [field, figure] : kDriveFigures) {
    if (field == value.field) {
      add_figure(drive.*figure, value.value);
    }
  }
  for (const auto& [field, figure] : kGroupFigures) {
    if (field == value.field && value.endurance_group != 0) {  // 0: the whole drive, which has fields of its own
      add_figure(drive.endurance_groups[value.endurance_group].*figure, value.value);
    }
  }
  if (value.field == F::temperature_celsius && value.label == "composite") {
    add_figure(drive.composite_celsius, value.value);
  }
  if (value.field == F::critical_warning || value.field == F::endurance_groups_warning ||
      value.field == F::endurance_group_warning) {
    const auto* found = std::find(kDriveWarningNames.begin(), kDriveWarningNames.end(), value.label);
    if (found != kDriveWarningNames.end()) {
      add_figure(drive.warnings[static_cast<std::size_t>(found - kDriveWarningNames.begin())], value.value);
    }
  }
}

void add_drive(const model::NvmeDrive& from, Measured& measured) {
  MeasuredDrive& drive = measured.drives[from.identity->controller];
  for (const model::NvmeValue& value : from.values) {
    add_field(value, drive);
  }
  if (!from.write_amplification.source.empty()) {
    for (const model::WriteAmplificationRatio& ratio : from.write_amplification.ratios) {
      if (ratio.window == "7d" || ratio.window == "24h") {
        keep_maximum(ratio.window == "7d" ? drive.write_amplification_lower_7d : drive.write_amplification_lower_24h,
                     ratio.lower);
      }
    }
  }
  add_figure(drive.log_read_latency_effect_ratio, from.polling.read_effect_ratio);
  for (const auto& [bytes, figure] :
       {std::pair(from.identity->host_memory_preferred_bytes, &drive.host_memory_preferred_bytes),
        std::pair(from.identity->host_memory_minimum_bytes, &drive.host_memory_minimum_bytes)}) {
    if (bytes) {
      keep_maximum(*figure, static_cast<double>(*bytes));
    }
  }
  for (const model::NvmeNamespace& one : from.identity->namespaces) {
    MeasuredDevice& device = measured.devices[one.device];
    device.controller = device.controller.empty() ? from.identity->controller : device.controller;
    for (const auto& [bytes, rank] : one.block_sizes) {
      double& known = device.block_size_ranks.try_emplace(bytes, rank).first->second;
      known = std::max<double>(known, rank);
    }
  }
}

void add_host(const Snapshot& snapshot, Visible visible, Measured& measured) {
  const auto mount = [&](const util::OutsideText& mountpoint) -> MeasuredMount& {
    return measured.mounts[util::for_label(mountpoint)];
  };
  if (snapshot.host.signals) {
    measured.tenant_limits = !snapshot.host.signals->limits.empty();
    measured.cgroup_limit_seconds = snapshot.host.seconds[index(model::HostWaitCause::cgroup_limit)];
    for (const model::FilesystemRoom& room : snapshot.host.signals->rooms) {
      add_figure(mount(room.mountpoint).available_bytes, figure(room.available_bytes));
    }
  }
  for (const auto& [mountpoint, rate] : snapshot.host.filling_bytes_per_second) {
    add_figure(mount(mountpoint).filling_bytes_per_second, rate);
  }
  for (const model::FilesystemDiscards& one : snapshot.filesystem_discards) {
    for (std::size_t i = 0; visible.requests && i < model::kDiscardTriggers; ++i) {
      add_figure(mount(one.mountpoint).discarded_bytes[i], figure(one.bytes[i]));
    }
  }
}

template <typename Map, typename Key>
const auto& known_or_empty(const Map& all, const Key& key) {
  static const auto& empty = *new typename Map::mapped_type;
  const auto found = all.find(key);
  return found == all.end() ? empty : found->second;
}

using Json = nlohmann::json;

template <typename T>
concept Record = requires(T& record) {
  T::visit(record, [](const auto&...) {});
};

std::string text_of(const std::string& key) { return key; }
std::string text_of(std::uint32_t key) { return std::to_string(key); }
// Whole, and unchanged: it is what for_label() has made, which is harmless in JSON, too.
std::string text_of(const util::OutsideText& key) { return util::for_json(key, std::string::npos); }

/// Leaves out what is null, or an object without members: absent, for a reader.
class Writer {
 public:
  static Json of(const Figure& figure) { return figure ? Json(*figure) : Json(); }
  static Json of(double figure) { return figure; }
  static Json of(bool is) { return is ? Json(true) : Json(); }
  static Json of(const std::string& name) { return name.empty() ? Json() : Json(name); }

  template <typename Enum, std::size_t kValues>
  static Json of(const std::optional<Enum>& value, const std::array<std::string_view, kValues>& names) {
    return value ? Json(std::string(name(*value, names))) : Json();
  }

  static Json of(const Record auto& record) {
    Json object = Json::object();
    std::remove_cvref_t<decltype(record)>::visit(record,
                                                 [&](std::string_view name, const auto& value, const auto&... names) {
                                                   add(object, name, of(value, names...));
                                                 });
    return object;
  }

  template <typename Value, std::size_t kValues>
  static Json of(const std::array<Value, kValues>& values, const std::array<std::string_view, kValues>& names) {
    Json object = Json::object();
    for (std::size_t i = 0; i < kValues; ++i) {
      add(object, names[i], of(values[i]));
    }
    return object;
  }

  /// Also entries without members: the key alone says something.
  template <typename Key, typename Value>
  static Json of(const std::map<Key, Value>& values) {
    Json object = Json::object();
    for (const auto& [key, value] : values) {
      object[text_of(key)] = of(value);
    }
    return object;
  }

 private:
  static void add(Json& object, std::string_view name, Json value) {
    if (!value.is_null() && !(value.is_object() && value.empty())) {
      object[std::string(name)] = std::move(value);
    }
  }
};

/// Each function returns what is wrong, in words; empty: nothing.
class Parser {
 public:
  static std::string read(const Json& json, Figure& figure) { return read(json, figure.emplace()); }
  static std::string read(const Json& json, double& figure) {
    if (!json.is_number()) {
      return "expected a number";
    }
    figure = json.get<double>();
    return "";
  }
  static std::string read(const Json& json, bool& is) {
    if (!json.is_boolean()) {
      return "expected true or false";
    }
    is = json.get<bool>();
    return "";
  }
  static std::string read(const Json& json, std::string& name) {
    return json.is_string() && key_in(json.get_ref<const std::string&>(), name) ? "" : "expected a plain name";
  }

  /// Another daemon may know values that this one does not.
  template <typename Enum, std::size_t kValues>
  static std::string read(const Json& json, std::optional<Enum>& value,
                          const std::array<std::string_view, kValues>& names) {
    if (!json.is_string()) {
      return "expected a name";
    }
    const auto found = std::find(names.begin(), names.end(), json.get_ref<const std::string&>());
    value = found == names.end() ? std::nullopt : std::optional(static_cast<Enum>(found - names.begin()));
    return "";
  }

  static std::string read(const Json& json, Record auto& record) {
    std::string wrong = json.is_object() ? "" : "expected an object";
    std::remove_cvref_t<decltype(record)>::visit(record, [&](std::string_view name, auto& value, const auto&... names) {
      if (wrong.empty()) {
        wrong = read_member(json, name, value, names...);
      }
    });
    return wrong;
  }

  template <typename Value, std::size_t kValues>
  static std::string read(const Json& json, std::array<Value, kValues>& values,
                          const std::array<std::string_view, kValues>& names) {
    std::string wrong = json.is_object() ? "" : "expected an object";
    for (std::size_t i = 0; i < kValues && wrong.empty(); ++i) {
      wrong = read_member(json, names[i], values[i]);
    }
    return wrong;
  }

  template <typename Key, typename Value>
  static std::string read(const Json& json, std::map<Key, Value>& values) {
    if (!json.is_object() || json.size() > kMaxMeasuredEntries) {
      return "expected an object of at most " + std::to_string(kMaxMeasuredEntries) + " entries";
    }
    for (const auto& [text, value] : json.items()) {
      Key key{};
      if (!key_in(text, key)) {
        return "an entry has an invalid name";
      }
      if (std::string wrong = read(value, values[key]); !wrong.empty()) {
        return "an entry: " + wrong;
      }
    }
    return "";
  }

 private:
  template <typename... Value>
  static std::string read_member(const Json& object, std::string_view name, Value&... value) {
    const auto found = object.find(std::string(name));
    std::string wrong = found == object.end() ? "" : read(*found, value...);
    return wrong.empty() ? "" : std::string(name) + ": " + wrong;
  }

  static bool key_in(const std::string& text, std::string& key) {
    key = text;
    return util::is_plain_name(text);
  }
  static bool key_in(const std::string& text, std::uint32_t& key) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), key);
    return error == std::errc() && end == text.data() + text.size();
  }
  static bool key_in(const std::string& text, util::OutsideText& key) {
    key = text;
    return true;
  }
};

}  // namespace

void add_figure(Figure& total, Figure one) {
  if (one && std::isfinite(*one)) {
    total = total.value_or(0) + *one;
  }
}

Figure MeasuredDevice::all_written_bytes() const {
  Figure total;
  for (const Figure& one : written_bytes) {
    add_figure(total, one);
  }
  return total;
}

const MeasuredDevice& Measured::device(const std::string& name) const { return known_or_empty(devices, name); }
const MeasuredDrive& Measured::drive(const std::string& controller) const { return known_or_empty(drives, controller); }
const MeasuredMount& Measured::mount(const util::OutsideText& mountpoint) const {
  return known_or_empty(mounts, util::OutsideText(util::for_label(mountpoint)));
}

Figure Measured::per_day(Figure total) const {
  return observed_seconds && *observed_seconds >= 1 && total ? Figure(*total * kSecondsPerDay / *observed_seconds)
                                                             : std::nullopt;
}

Measured measure(const Snapshot& snapshot) {
  const Visible visible(snapshot);
  Measured measured;
  measured.answered = true;
  const std::chrono::duration<double> now = snapshot.taken_at.time_since_epoch();
  const double observed = now.count() - snapshot.process.start_time_seconds;
  measured.observed_seconds = observed >= 0 ? Figure(observed) : std::nullopt;
  for (const model::DeviceSnapshot& device : snapshot.devices) {
    measured.devices[device.device->name] = device_of(device, visible);
  }
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    add_drive(drive, measured);
  }
  add_host(snapshot, visible, measured);
  return measured;
}

std::string measured_json(const Measured& measured) {
  return Writer::of(measured).dump(-1, ' ', false, Json::error_handler_t::replace);
}

util::Result<Measured> parse_measured(std::string_view json) {
  if (json.size() > kMaxMeasuredBytes) {
    return util::fail("more than " + std::to_string(kMaxMeasuredBytes) + " bytes");
  }
  constexpr int kMaxDepth = 8;  // what is deeper is none of it, and only takes memory
  const Json parsed = Json::parse(
      json, [](int depth, Json::parse_event_t, const Json&) { return depth <= kMaxDepth; }, false);
  if (parsed.is_discarded()) {
    return util::fail("not JSON, or only the beginning of it");
  }
  Measured measured;
  measured.answered = true;
  if (const std::string wrong = Parser::read(parsed, measured); !wrong.empty()) {
    return util::fail(wrong);
  }
  return measured;
}

}  // namespace ssdpulse::advice
