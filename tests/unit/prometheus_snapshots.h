// SPDX-License-Identifier: Apache-2.0
// Snapshots for the tests of the Prometheus exporter: one that has a sample in every family, and random ones.
#pragma once

#include <rapidcheck.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "daemon/model/snapshot.h"

namespace ssdpulse::test {

inline model::LatencyHistogram latency(const std::map<std::size_t, std::uint64_t>& counts, std::uint64_t sum_ns) {
  model::LatencyHistogram histogram;
  histogram.words.resize(LATENCY_OVER_WORD + 1);
  for (const auto& [word, count] : counts) {
    histogram.words.at(word) = count;
  }
  histogram.sum_ns = sum_ns;
  return histogram;
}

inline model::SizeHistogram size(const std::map<std::size_t, std::uint64_t>& counts, std::uint64_t sum_bytes) {
  model::SizeHistogram histogram;
  histogram.words.resize(SIZE_WORDS);
  for (const auto& [word, count] : counts) {
    histogram.words.at(word) = count;
  }
  histogram.sum_bytes = sum_bytes;
  return histogram;
}

inline model::WallTime at(std::int64_t milliseconds) {
  return model::WallTime(std::chrono::milliseconds(milliseconds));
}

inline std::shared_ptr<const model::DeviceIo> small_io() {
  model::DeviceIo io;
  io.since = at(1'700'000'000'250);
  auto& read = io.operations[index(model::Operation::read)];
  read.active = true;
  read.bytes = 12'288;
  read.in_flight = 2;
  read.queue_full_ns = 1'500'000'000;
  read.sequential_bytes = 4'096;
  read.requeues[index(model::RequeueReason::failover)] = 1;
  read.errors[index(model::IoError::medium)] = 1;
  // 100 us, 110 us and 70 s in device time; one of them beside a discard.
  read.device_latency[index(model::During::none)] =
      latency({{latency_word(100'000), 1}, {LATENCY_OVER_WORD, 1}}, 70'000'100'000);
  read.device_latency[index(model::During::discard)] = latency({{latency_word(110'000), 1}}, 110'000);
  read.queue_latency = latency({{LATENCY_ZERO_WORD, 1}, {LATENCY_UNDER_WORD, 1}, {latency_word(2'000), 1}}, 2'500);
  read.total_latency =
      latency({{latency_word(100'500), 1}, {latency_word(112'000), 1}, {LATENCY_OVER_WORD, 1}}, 70'000'212'500);
  read.size = size({{size_word(4'096), 3}}, 12'288);
  auto& flush = io.operations[index(model::Operation::flush)];
  flush.active = true;
  flush.unissued_completions = 1;
  flush.size = size({{0, 1}}, 0);
  io.commit_latency = latency({{latency_word(250'000), 1}}, 250'000);
  io.losses[index(model::Loss::stray)] = 4;
  io.writes.hint_bytes[index(model::WriteHint::long_lived)] = 4'096;
  io.writes.hint_ios[index(model::WriteHint::long_lived)] = 1;
  io.writes.hint_latency[index(model::WriteHint::long_lived)] = latency({{latency_word(100'000), 1}}, 100'000);
  io.writes.class_bytes[index(model::WriteClass::journal)] = 4'096;
  io.writes.stream_bytes = {{2, 4'096}};
  io.writes.misaligned_bytes = 1'024;
  io.writes.small_bytes = 512;
  return std::make_shared<const model::DeviceIo>(io);
}

/// A drive with everything that can be told of one; one value of each field.
inline model::NvmeDrive small_drive() {
  model::NvmeDrive drive;
  model::NvmeIdentity identity;
  identity.controller = "nvme0";
  identity.subsystem_nqn = "nqn.2014.org.example:1";
  identity.transport = "pcie";
  identity.vendor_id = 0x144d;
  identity.serial = "S1";
  identity.model = "ACME 1";
  identity.firmware = "F1";
  identity.version = 0x10400;
  identity.namespaces = {{"nvme0n1", 1, 2}, {"nvme0n2", 2, 0}};
  drive.identity = std::make_shared<const model::NvmeIdentity>(identity);
  for (std::size_t field = 0; field < model::kNvmeFields; ++field) {
    const bool labelled = !model::kNvmeFieldDescriptions[field].label.empty();
    drive.values.push_back({static_cast<model::NvmeField>(field), labelled ? "l" : "", static_cast<double>(field) / 4});
  }
  auto& waf = drive.write_amplification;
  waf.source = "ocp";
  waf.reason = "fdp: refused";
  waf.host_written_bytes = 1e15;
  waf.media_written_bytes = 2.5e15;
  waf.idle_media_written_bytes = 4096;
  waf.host_written_drift_bytes = -512;
  waf.host_written_drift_lower_bytes = -512'512;
  waf.host_written_drift_upper_bytes = 511'488;
  waf.since = at(1'700'000'000'250);
  waf.epochs = 1;
  waf.ratios = {{"5m", 300, 0, 2.5, 2.25, 2.75}, {"lifetime", 0, 0, 2.5, 2.5, 2.5}};
  waf.life_remaining = {{"percentage_used", 864'000, 1e8}};
  auto& polling = drive.polling;
  polling.up = true;
  polling.polls = 12;
  polling.failures = {{"refused", 1}};
  polling.last_success_seconds = 1'700'000'099.5;
  polling.last_duration_seconds = 0.00025;
  polling.interval_seconds = 30;
  polling.refused_pages = {{"fdp_statistics", "refused"}};
  polling.read_effect_ratio = 1;
  return drive;
}

/// Has a sample in every family.
inline model::Snapshot small_snapshot() {
  model::Snapshot snapshot;
  snapshot.number = 7;
  snapshot.taken_at = at(1'700'000'100'500);
  snapshot.missed_ticks = 1;
  snapshot.latency_mode = "full";
  model::Device device;
  device.name = "nvme0n1";
  device.model = "ACME \"Fast\" \\ 1";
  device.serial =
      "S\xff"
      "1";
  device.transport = "nvme";
  device.scheduler = "none";
  device.size_bytes = 1'000'204'886'016;
  device.write_back_cache = true;
  device.discard = true;
  model::DeviceSnapshot entry;
  entry.device = std::make_shared<const model::Device>(device);
  entry.io = small_io();
  entry.drift.ios[index(model::Operation::read)] = -1;
  entry.discards[static_cast<std::size_t>(model::DiscardTrigger::online)] = {3, 1 << 20, 1'500'000'000, false};
  entry.discards[static_cast<std::size_t>(model::DiscardTrigger::fstrim)] = {1, 1 << 30, 250'000'000, true};
  entry.spikes[0].spikes[index(model::SpikeCause::discard)] = 2;
  entry.spikes[0].seconds[index(model::SpikeCause::discard)] = 7.5;
  entry.spikes[0].excess_seconds[index(model::SpikeCause::discard)] = 3.25;
  entry.spikes[1].active = model::SpikeCause::gc;
  entry.hint_path = {model::HintReach::block_layer, model::DriveSeparation::fdp};
  snapshot.devices = {entry};
  snapshot.memberships = {{"md0", "nvme0n1", "md", ""}, {"dm-0", "nvme0n1", "dm", "vg-data"}};
  snapshot.filesystems = {{"nvme0n1", "/srv/a\nb", "ext4", true}};
  snapshot.array_discards = {{"md0", {true, false, false, false, false}}};
  snapshot.filesystem_discards = {{"md0p1", "/srv/a\nb", true, {1 << 30, 1 << 20, 0, 0, 0}, at(1'700'000'000'250)}};
  snapshot.kernel_features = {{"fentry", "tp_btf"}};
  snapshot.kernel_memory.bytes_by_use = {{"cells", 65'536}, {"slots", 16'384}};
  snapshot.programs = {{"on_issue", 3, 1'000, 250'000'000}, {"on_complete", std::nullopt, std::nullopt, std::nullopt}};
  snapshot.losses[index(model::HostLoss::device_pending)] = 5;
  snapshot.diskless_requests = 6;
  snapshot.nvme_drives = {small_drive()};
  snapshot.history = {100, 10, 65'536};
  snapshot.web = {200, 3, 2, 1, 4, 5, 6};
  snapshot.sources = {{"block", true, "", {}},
                      {"inventory", false, "why", {{"read", 2}}},
                      {"nvme", true, "", {{"refused", 1}}, "nvme0"}};
  snapshot.process = {1.25, 10'485'760, 20'971'520, 12, 1'024, 1'700'000'000.25, 5};
  return snapshot;
}

namespace random {

// Few words are set, some of them huge; at most 2^40 each, so that no sum of them overflows.
template <typename Histogram>
Histogram histogram(std::size_t words) {
  Histogram result;
  result.words.resize(words);
  const auto set = *rc::gen::inRange<std::size_t>(0, 12);
  for (std::size_t i = 0; i < set; ++i) {
    result.words[*rc::gen::inRange<std::size_t>(0, words)] = *rc::gen::inRange<std::uint64_t>(0, 1ULL << 40);
  }
  return result;
}

inline model::LatencyHistogram latency() {
  auto result = histogram<model::LatencyHistogram>(LATENCY_OVER_WORD + 1);
  result.sum_ns = *rc::gen::arbitrary<std::uint64_t>();
  return result;
}

inline model::OperationIo operation() {
  model::OperationIo io;
  io.active = *rc::gen::arbitrary<bool>();
  io.bytes = *rc::gen::arbitrary<std::uint64_t>();
  io.unissued_completions = *rc::gen::arbitrary<std::uint64_t>();
  io.sequential_bytes = *rc::gen::arbitrary<std::uint64_t>();
  io.queue_full_ns = *rc::gen::arbitrary<std::uint64_t>();
  io.in_flight = *rc::gen::inRange<std::int64_t>(-5, 100'000);
  io.requeues[0] = *rc::gen::arbitrary<std::uint64_t>();
  io.errors[3] = *rc::gen::arbitrary<std::uint64_t>();
  for (auto* histogram : {&io.device_latency[0], &io.device_latency[3], &io.queue_latency, &io.total_latency}) {
    if (*rc::gen::arbitrary<bool>()) {
      *histogram = latency();
    }
  }
  if (*rc::gen::arbitrary<bool>()) {
    io.size = histogram<model::SizeHistogram>(SIZE_WORDS);
    io.size.sum_bytes = *rc::gen::arbitrary<std::uint64_t>();
  }
  return io;
}

/// Any bytes in labels, any devices, either mode; device names are distinct.
inline model::Snapshot snapshot() {
  auto result = small_snapshot();
  result.latency_mode = *rc::gen::element<std::string>("full", "completion-only");
  result.devices.clear();
  const auto devices = *rc::gen::inRange(0, 4);
  for (int i = 0; i < devices; ++i) {
    model::Device device;
    device.name = "sd" + std::string(1, static_cast<char>('a' + i));
    device.model = *rc::gen::string<std::string>();
    device.serial = *rc::gen::string<std::string>();
    model::DeviceIo io;
    io.since = at(*rc::gen::inRange<std::int64_t>(1, 2'000'000'000'000));
    for (auto& operation : io.operations) {
      if (*rc::gen::arbitrary<bool>()) {
        operation = random::operation();
      }
    }
    io.losses[0] = *rc::gen::arbitrary<std::uint64_t>();
    model::DeviceSnapshot entry;
    entry.device = std::make_shared<const model::Device>(device);
    if (*rc::gen::weightedElement<bool>({{4, true}, {1, false}})) {
      entry.io = std::make_shared<const model::DeviceIo>(io);
    }
    result.devices.push_back(entry);
  }
  result.filesystems.push_back({"sda", *rc::gen::string<std::string>(), "xfs", false});
  return result;
}

}  // namespace random
}  // namespace ssdpulse::test
