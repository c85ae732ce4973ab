// SPDX-License-Identifier: Apache-2.0
// Do rules get what the metrics say, no more and no less, whether from the snapshot or as JSON from a daemon? And what
// becomes of an answer that no daemon would give?
#include "daemon/advice/measured.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "exporters/prometheus/families.h"
#include "tests/unit/audit_facts.h"
#include "tests/unit/prometheus_snapshots.h"

namespace ssdpulse::advice {
namespace {

using Json = nlohmann::json;
using model::DiscardTrigger;
using model::NvmeField;
using model::Snapshot;

/// What a snapshot shows of everything: also of what only rules ask for, and of a second drive and disk.
Snapshot full_snapshot() {
  Snapshot snapshot = test::small_snapshot();
  auto io = std::make_shared<model::DeviceIo>(*snapshot.devices[0].io);
  auto& discard = io->operations[index(Operation::discard)];
  discard.active = true;
  discard.bytes = 1 << 20;
  discard.device_latency[0] = test::latency({{90, 3}}, 3'000'000);
  discard.size = test::size({{20, 3}}, 1 << 20);
  io->operations[index(Operation::write)].errors[index(model::IoError::timeout)] = 2;
  io->losses[index(model::Loss::unstamped)] = 7;
  snapshot.devices[0].io = io;
  snapshot.devices[0].spikes[0].pending_excess_seconds = 1.5;
  auto tenants = std::make_shared<model::DeviceTenants>(*snapshot.devices[0].tenants);
  auto& path = tenants->paths[index(model::IoPath::sync)];
  path = {};
  path[index(model::IoAccess::file)][Operation::read] = {3, 4096, 5};
  path[index(model::IoAccess::file)][Operation::write] = {2, 512, 1};
  path[index(model::IoAccess::raw)][Operation::read] = {7, 4096, 5};
  snapshot.devices[0].tenants = tenants;
  for (const bool unseen : {false, true}) {
    model::Device device = *snapshot.devices[0].device;
    device.name = unseen ? "sdb" : "sda";
    device.iostats = unseen;
    model::DeviceSnapshot entry;
    entry.device = std::make_shared<const model::Device>(device);
    entry.unseen = unseen ? std::optional(model::Unseen{}) : std::nullopt;
    snapshot.devices.push_back(entry);
  }
  model::NvmeDrive& drive = snapshot.nvme_drives[0];
  drive.write_amplification.ratios = {{"lifetime", 0, 0, 9, 9, 9},
                                      {"1h", 3600, 0, 9, 9, 9},
                                      {"24h", 86400, 0, 3, 2, 4},
                                      {"7d", 604800, 0, 2, 1.5, 3},
                                      {"5m", 300, 0, 2.5, 2.25, 2.75}};
  const std::vector<model::NvmeValue> more{{NvmeField::temperature_celsius, "composite", 40},
                                           {NvmeField::temperature_celsius, "1", 90},
                                           {NvmeField::thermal_management_seconds, "1", 60},
                                           {NvmeField::thermal_management_seconds, "2", 5},
                                           {NvmeField::critical_warning, "temperature", 1},
                                           {NvmeField::critical_warning, "read_only", 0},
                                           {NvmeField::endurance_groups_warning, "reliability", 1},
                                           {NvmeField::endurance_group_warning, "available_spare", 1, 2},
                                           {NvmeField::endurance_group_available_spare_ratio, "", 0.5, 2},
                                           {NvmeField::endurance_group_available_spare_threshold_ratio, "", 0.1, 2},
                                           {NvmeField::endurance_group_percentage_used_ratio, "", 0.25, 2}};
  drive.values.insert(drive.values.end(), more.begin(), more.end());
  model::NvmeDrive other;  // that was not read yet
  auto identity = std::make_shared<model::NvmeIdentity>();
  identity->controller = "nvme1";
  identity->namespaces = {{"nvme1n1", 1}};
  other.identity = identity;
  snapshot.nvme_drives.push_back(other);
  return snapshot;
}

class Metrics {
 public:
  explicit Metrics(const Snapshot& snapshot) : families_(exposition::collect(snapshot)) {}

  using Where = std::vector<std::pair<std::string_view, std::string>>;

  /// Of all series with these labels; absent if there is none.
  [[nodiscard]] Figure sum(std::string_view name, const Where& where) const {
    Figure total;
    each(name, where, [&](const exposition::Sample& one) { add_figure(total, std::get<double>(one.value)); });
    return total;
  }
  [[nodiscard]] Figure largest(std::string_view name, const Where& where) const {
    Figure most;
    each(name, where,
         [&](const exposition::Sample& one) { most = std::max(most, Figure(std::get<double>(one.value))); });
    return most;
  }
  [[nodiscard]] Distribution values(std::string_view name, const Where& where) const {
    Distribution all;
    each(name, where, [&](const exposition::Sample& one) {
      const auto& histogram = std::get<exposition::Histogram>(one.value);
      add_figure(all.count, exposition::to_double(histogram.count()));
      add_figure(all.sum, histogram.sum);
    });
    return all;
  }

 private:
  void each(std::string_view name, const Where& where,
            const std::function<void(const exposition::Sample&)>& visit) const {
    const auto family = std::find_if(families_.begin(), families_.end(),
                                     [&](const exposition::Family& one) { return one.description->name == name; });
    if (family == families_.end()) {
      return;
    }
    for (const exposition::Sample& sample : family->samples) {
      const bool fits = std::all_of(where.begin(), where.end(), [&](const auto& wanted) {
        return std::any_of(sample.labels.begin(), sample.labels.end(), [&](const exposition::Label& label) {
          return label.name == wanted.first && label.value == wanted.second;
        });
      });
      if (fits) {
        visit(sample);
      }
    }
  }

  std::vector<exposition::Family> families_;
};

template <std::size_t kNames>
std::vector<std::pair<std::size_t, std::string>> numbered(const std::array<std::string_view, kNames>& names) {
  std::vector<std::pair<std::size_t, std::string>> all;
  for (std::size_t i = 0; i < kNames; ++i) {
    all.emplace_back(i, names[i]);
  }
  return all;
}

void compare_device(const Metrics& metrics, const std::string& name, const MeasuredDevice& device) {
  SCOPED_TRACE(name);
  EXPECT_EQ(device.unseen, metrics.sum("ssdpulse_device_unseen", {{"device", name}}).value_or(0) > 0);
  for (const auto& [i, operation] : numbered(model::kRequestNames)) {
    SCOPED_TRACE(operation);
    const Metrics::Where where{{"device", name}, {"operation", operation}};
    const MeasuredOperation& one = device.operations[i];
    EXPECT_EQ(one.bytes, metrics.sum("ssdpulse_io_bytes_total", where));
    EXPECT_EQ(one.sequential_bytes, metrics.sum("ssdpulse_io_sequential_bytes_total", where));
    EXPECT_EQ(one.size_bytes, metrics.values("ssdpulse_io_size_bytes", where));
    EXPECT_EQ(one.queue_seconds, metrics.values("ssdpulse_io_queue_latency_seconds", where));
    EXPECT_EQ(one.device_seconds, metrics.values("ssdpulse_io_device_latency_seconds", where));
    EXPECT_EQ(one.total_seconds, metrics.values("ssdpulse_io_latency_seconds", where));
  }
  const Metrics::Where here{{"device", name}};
  EXPECT_EQ(device.commit_seconds,
            metrics.values("ssdpulse_io_latency_seconds", {{"device", name}, {"operation", "commit"}}));
  EXPECT_EQ(device.queue_full_seconds, metrics.sum("ssdpulse_io_queue_full_seconds_total", here));
  EXPECT_EQ(device.timeouts, metrics.sum("ssdpulse_io_errors_total", {{"device", name}, {"error", "timeout"}}));
  EXPECT_EQ(device.failovers, metrics.sum("ssdpulse_io_requeues_total", {{"device", name}, {"reason", "failover"}}));
  EXPECT_EQ(device.unstamped_ios,
            metrics.sum("ssdpulse_lost_events_total", {{"device", name}, {"cause", "unstamped"}}));
  EXPECT_EQ(device.misaligned_bytes, metrics.sum("ssdpulse_write_misaligned_bytes_total", here));
  EXPECT_EQ(device.all_written_bytes(), metrics.sum("ssdpulse_write_class_bytes_total", here));
  for (const auto& [i, one] : numbered(model::kWriteClassNames)) {
    EXPECT_EQ(device.written_bytes[i],
              metrics.sum("ssdpulse_write_class_bytes_total", {{"device", name}, {"class", one}}));
  }
  for (const auto& [i, operation] : numbered(model::kSpikeOperationNames)) {
    const MeasuredSpikes& spikes = device.spikes[i];
    EXPECT_EQ(spikes.pending_excess_seconds, metrics.sum("ssdpulse_latency_spike_pending_excess_seconds",
                                                         {{"device", name}, {"operation", operation}}));
    for (const auto& [cause, cause_name] : numbered(model::kSpikeCauseNames)) {
      const Metrics::Where where{{"device", name}, {"operation", operation}, {"cause", cause_name}};
      EXPECT_EQ(spikes.excess_seconds[cause], metrics.sum("ssdpulse_latency_excess_seconds_total", where));
      EXPECT_EQ(spikes.active_cause == static_cast<SpikeCause>(cause),
                metrics.sum("ssdpulse_latency_spike_active", where).value_or(0) > 0);
    }
  }
  for (const auto& [i, trigger] : numbered(model::kDiscardTriggerNames)) {
    const Metrics::Where where{{"device", name}, {"trigger", trigger}};
    EXPECT_EQ(device.discards[i].burst_seconds, metrics.sum("ssdpulse_discard_burst_seconds_total", where));
    EXPECT_EQ(device.discards[i].burst_bytes, metrics.sum("ssdpulse_discard_burst_bytes_total", where));
  }
  for (const auto& [i, path] : numbered(model::kIoPathNames)) {
    EXPECT_EQ(device.path_ios[i], metrics.sum("ssdpulse_path_ios_total", {{"device", name}, {"path", path}}));
  }
  for (const std::uint32_t bytes : {512U, 4096U}) {
    const auto rank = device.block_size_ranks.find(bytes);
    EXPECT_EQ(
        rank == device.block_size_ranks.end() ? std::nullopt : Figure(rank->second),
        metrics.largest("ssdpulse_nvme_block_size_rank", {{"device", name}, {"block_bytes", std::to_string(bytes)}}));
  }
  EXPECT_EQ(!device.controller.empty(), metrics.sum("ssdpulse_nvme_namespace_info", here).has_value());
  if (!device.controller.empty()) {
    EXPECT_TRUE(metrics.sum("ssdpulse_nvme_namespace_info", {{"device", name}, {"controller", device.controller}}));
  }
}

void compare_drive(const Metrics& metrics, const std::string& controller, const MeasuredDrive& drive) {
  SCOPED_TRACE(controller);
  const Metrics::Where here{{"controller", controller}};
  const auto with = [&](std::string_view label, std::string_view value) {
    return Metrics::Where{{"controller", controller}, {label, std::string(value)}};
  };
  EXPECT_EQ(drive.composite_celsius, metrics.sum("ssdpulse_nvme_temperature_celsius", with("sensor", "composite")));
  EXPECT_EQ(drive.available_spare_ratio, metrics.sum("ssdpulse_nvme_available_spare_ratio", here));
  EXPECT_EQ(drive.available_spare_threshold_ratio, metrics.sum("ssdpulse_nvme_available_spare_threshold_ratio", here));
  EXPECT_EQ(drive.percentage_used_ratio, metrics.sum("ssdpulse_nvme_percentage_used_ratio", here));
  EXPECT_EQ(drive.media_errors, metrics.sum("ssdpulse_nvme_media_errors_total", here));
  EXPECT_EQ(drive.power_on_seconds, metrics.sum("ssdpulse_nvme_power_on_seconds_total", here));
  EXPECT_EQ(drive.thermal_management_seconds, metrics.sum("ssdpulse_nvme_thermal_management_seconds_total", here));
  EXPECT_EQ(drive.thermal_throttle_seconds, metrics.sum("ssdpulse_nvme_thermal_throttle_seconds_total", here));
  EXPECT_EQ(drive.log_read_latency_effect_ratio, metrics.largest("ssdpulse_nvme_log_read_latency_effect_ratio", here));
  EXPECT_EQ(drive.host_memory_preferred_bytes,
            metrics.largest("ssdpulse_nvme_host_memory_buffer_bytes", with("amount", "preferred")));
  EXPECT_EQ(drive.host_memory_minimum_bytes,
            metrics.largest("ssdpulse_nvme_host_memory_buffer_bytes", with("amount", "minimum")));
  EXPECT_EQ(drive.write_amplification_lower_7d,
            metrics.largest("ssdpulse_write_amplification_lower_ratio", with("window", "7d")));
  EXPECT_EQ(drive.write_amplification_lower_24h,
            metrics.largest("ssdpulse_write_amplification_lower_ratio", with("window", "24h")));
  for (const auto& [i, warning] : numbered(kDriveWarningNames)) {
    double bits = 0;
    for (const char* metric : {"ssdpulse_nvme_critical_warning", "ssdpulse_nvme_endurance_groups_warning",
                               "ssdpulse_nvme_endurance_group_warning"}) {
      bits += metrics.sum(metric, with("warning", warning)).value_or(0);
    }
    EXPECT_EQ(drive.warnings[i].value_or(0), bits) << warning;
  }
  for (const auto& [number, group] : drive.endurance_groups) {
    const auto where = with("endurance_group", std::to_string(number));
    EXPECT_EQ(group.available_spare_ratio, metrics.sum("ssdpulse_nvme_endurance_group_available_spare_ratio", where));
    EXPECT_EQ(group.available_spare_threshold_ratio,
              metrics.sum("ssdpulse_nvme_endurance_group_available_spare_threshold_ratio", where));
    EXPECT_EQ(group.percentage_used_ratio, metrics.sum("ssdpulse_nvme_endurance_group_percentage_used_ratio", where));
  }
}

void compare_with_metrics(const Snapshot& snapshot) {
  const Metrics metrics(snapshot);
  const Measured measured = measure(snapshot);
  EXPECT_TRUE(measured.answered);
  const double observed =
      *metrics.sum("ssdpulse_snapshot_timestamp_seconds", {}) - *metrics.sum("process_start_time_seconds", {});
  EXPECT_EQ(measured.observed_seconds, Figure(observed));
  EXPECT_EQ(measured.tenant_limits, metrics.sum("ssdpulse_tenant_io_limit_bytes_per_second", {}).has_value() ||
                                        metrics.sum("ssdpulse_tenant_io_limit_ios_per_second", {}).has_value());
  EXPECT_EQ(measured.cgroup_limit_seconds,
            metrics.sum("ssdpulse_host_wait_seconds_total", {{"cause", "cgroup_limit"}}));
  for (const char* name : {"nvme0n1", "nvme0n2", "nvme1n1", "sda", "sdb", "sdc", "none"}) {
    compare_device(metrics, name, measured.device(name));
  }
  for (const char* controller : {"nvme0", "nvme1", "none"}) {
    compare_drive(metrics, controller, measured.drive(controller));
  }
  for (const char* mountpoint : {"/srv/a\nb", "/btrfs", "/none"}) {
    const std::string label = util::for_label(mountpoint);
    const MeasuredMount& mount = measured.mount(mountpoint);
    EXPECT_EQ(mount.available_bytes, metrics.sum("ssdpulse_filesystem_available_bytes", {{"mountpoint", label}}));
    EXPECT_EQ(mount.filling_bytes_per_second,
              metrics.sum("ssdpulse_filesystem_filling_bytes_per_second", {{"mountpoint", label}}));
    for (const auto& [i, trigger] : numbered(model::kDiscardTriggerNames)) {
      EXPECT_EQ(mount.discarded_bytes[i],
                metrics.sum("ssdpulse_filesystem_discard_bytes_total", {{"mountpoint", label}, {"trigger", trigger}}));
    }
  }
}

TEST(Measured, IsWhatTheMetricsSay) {
  const Snapshot full = full_snapshot();
  compare_with_metrics(full);
  Snapshot less = full;
  less.latency_mode = "completion-only";
  compare_with_metrics(less);
  Snapshot detached = full;
  detached.own_cost.effort = model::Effort::nothing;
  compare_with_metrics(detached);
  Snapshot without_signals = full;
  without_signals.host.signals = nullptr;
  compare_with_metrics(without_signals);
}

RC_GTEST_PROP(Measured, IsWhatTheMetricsOfAnyDevicesSay, ()) {
  compare_with_metrics(test::random::snapshot());
  RC_ASSERT(!::testing::Test::HasFailure());
}

TEST(Measured, NothingIsKnownOfAnInstantThatIsNoNumber) {
  Snapshot snapshot = full_snapshot();
  snapshot.nvme_drives[0].polling.read_effect_ratio = std::nan("");
  snapshot.host.filling_bytes_per_second = {{"/btrfs", std::numeric_limits<double>::infinity()}};
  snapshot.taken_at = test::at(0);  // before the daemon's start: the clock was set
  const Measured measured = measure(snapshot);
  EXPECT_FALSE(measured.drive("nvme0").log_read_latency_effect_ratio);
  EXPECT_FALSE(measured.mount("/btrfs").filling_bytes_per_second);
  EXPECT_FALSE(measured.observed_seconds);
  EXPECT_FALSE(measured.per_day(7));
}

Measured sent(const Measured& measured) {
  const auto received = parse_measured(measured_json(measured));
  EXPECT_TRUE(received) << received.error().message;
  return received ? *received : Measured{};
}

TEST(Measured, ArrivesAsItWasSent) {
  const Measured measured = measure(full_snapshot());
  EXPECT_EQ(sent(measured), measured);
  EXPECT_EQ(sent(measure(Snapshot{})), measure(Snapshot{}));
  const auto& device = measured.device("nvme0n1");
  EXPECT_TRUE(device.controller == "nvme0" && device.timeouts == 2.0 &&
              device.path_ios[index(model::IoPath::sync)] == 12.0)
      << "else little is compared";
  EXPECT_EQ(measured.drive("nvme0").endurance_groups.size(), 1U);
}

/// In JSON, so that every part of a finding is compared.
std::string judged(Facts facts, const Measured& measured) {
  facts.measured = measured;
  std::string all;
  for (const Finding& one : judge(facts)) {
    all += fmt::format("{} {} {} {} {} {} {} {} {} {}\n", one.id, static_cast<int>(one.verdict), one.found, one.why,
                       one.change, one.persistent, one.undo, one.proof, one.observed_seconds.value_or(-1),
                       one.excess_seconds_per_day.value_or(-1));
    for (const auto& [name, value] : one.evidence) {
      all += fmt::format("  {} {}\n", name, value);
    }
  }
  return all;
}

TEST(Measured, RulesJudgeTheDaemonsAnswerAsTheDaemonDoes) {
  tests::MadeUpHost host;
  host.mount().mountpoint = "/srv/a\nb";
  host.mount().options.insert("discard");
  host.disk().files.set("queue/nr_requests", "16");
  const Measured measured = measure(full_snapshot());
  const std::string here = judged(host.facts, measured);
  EXPECT_EQ(judged(host.facts, sent(measured)), here);
  EXPECT_NE(judged(host.facts, Measured{}), here) << "else no rule reads it";
  EXPECT_EQ(judged(host.facts, sent(host.facts.measured)), judged(host.facts, host.facts.measured));
}

RC_GTEST_PROP(Measured, AnythingMeasuredArrives, ()) {
  const Measured measured = measure(test::random::snapshot());
  const auto received = parse_measured(measured_json(measured));
  RC_ASSERT(received.has_value());
  RC_ASSERT(*received == measured);
}

/// Empty: it is read.
std::string problem(const std::string& text) {
  const auto received = parse_measured(text);
  return received ? "" : received.error().message;
}

TEST(Measured, WhatNoDaemonWouldAnswerIsAnErrorInOurWords) {
  const std::string good = measured_json(measure(full_snapshot()));
  EXPECT_EQ(problem(good), "");
  for (const std::string& text : {std::string(), std::string("no such page"), good.substr(0, good.size() / 2),
                                  std::string(R"({"observed_seconds":1e999})"), good + "x"}) {
    EXPECT_EQ(problem(text), "not JSON, or only the beginning of it");
  }
  EXPECT_EQ(problem("[]"), "expected an object");
  EXPECT_EQ(problem(R"({"observed_seconds":"\u001b[2J"})"), "observed_seconds: expected a number");
  EXPECT_EQ(problem(R"({"tenant_limits":1})"), "tenant_limits: expected true or false");
  EXPECT_EQ(problem(R"({"devices":[]})"), "devices: expected an object of at most 4096 entries");
  EXPECT_EQ(problem(R"({"devices":{"a b\u0007":{}}})"), "devices: an entry has an invalid name");
  EXPECT_EQ(problem(R"({"devices":{"sda":{"controller":"\u001b[2J"}}})"),
            "devices: an entry: controller: expected a plain name");
  EXPECT_EQ(problem(R"({"devices":{"sda":{"operations":{"read":{"bytes":[]}}}}})"),
            "devices: an entry: operations: read: bytes: expected a number");
  EXPECT_EQ(problem(R"({"devices":{"sda":{"block_size_ranks":{"-1":0}}}})"),
            "devices: an entry: block_size_ranks: an entry has an invalid name");
  EXPECT_EQ(problem(R"({"devices":{"sda":{"spikes":{"read":{"active_cause":1}}}}})"),
            "devices: an entry: spikes: read: active_cause: expected a name");
}

TEST(Measured, ALargeAnswerIsRefused) {
  Json many;
  for (std::size_t i = 0; i <= kMaxMeasuredEntries; ++i) {
    many["devices"]["sd" + std::to_string(i)] = Json::object();
  }
  EXPECT_EQ(problem(many.dump()), "devices: expected an object of at most 4096 entries");
  many["devices"].erase("sd0");
  EXPECT_TRUE(parse_measured(many.dump()));
  EXPECT_EQ(problem(std::string(kMaxMeasuredBytes + 1, ' ')), "more than 16777216 bytes");
  const std::string deep(1 << 20, '[');
  EXPECT_FALSE(parse_measured(deep));
  EXPECT_FALSE(parse_measured(R"({"devices":)" + deep + std::string(deep.size(), ']') + "}"));
}

TEST(Measured, WhatAnotherVersionAddsIsIgnored) {
  const auto received = parse_measured(
      R"({"new":[1],"devices":{"sda":{"new":{},"timeouts":3,"spikes":{"read":{"active_cause":"new"}}}}})");
  ASSERT_TRUE(received);
  EXPECT_EQ(received->device("sda").timeouts, 3.0);
  EXPECT_FALSE(received->device("sda").spikes[0].active_cause);
  EXPECT_TRUE(received->answered);
}

RC_GTEST_PROP(Measured, AnyTextIsReadOrRefused, ()) {
  std::string text = *rc::gen::element<std::string>("", "{", R"({"devices":{"sda":)", R"({"drives":{"nvme0":{)");
  for (const std::string& piece : *rc::gen::container<std::vector<std::string>>(
           rc::gen::oneOf(rc::gen::element<std::string>("{", "}", "[", "]", ":", ",", "\"operations\"", "\"unseen\"",
                                                        "1", "true", "\""),
                          rc::gen::container<std::string>(rc::gen::arbitrary<char>())))) {
    text += piece;
  }
  const auto received = parse_measured(text);
  RC_ASSERT(received.has_value() || !received.error().message.empty());
}

}  // namespace
}  // namespace ssdpulse::advice
