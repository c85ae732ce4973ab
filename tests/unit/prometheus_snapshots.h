// SPDX-License-Identifier: Apache-2.0
// Snapshots for the tests of the Prometheus exporter: one that has a sample in every family, and random ones.
#pragma once

#include <rapidcheck.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "daemon/model/flash_values.h"
#include "daemon/model/sibling_latency.h"
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
  // 100 us, 110 us and 70 s in device time; one of them during a discard.
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

/// A drive with everything that can be reported about one; one value for each field.
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
  identity.namespaces[0].block_sizes = {{512, 1}, {4096, 0}};
  identity.host_memory_preferred_bytes = 64 << 20;
  identity.host_memory_minimum_bytes = 16 << 20;
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

inline std::shared_ptr<const model::FlashFigures> small_flash() {
  auto report = std::make_shared<model::FlashReport>();
  report->silence[1] = model::FlashSilence::few_writes;
  report->silence[2] = model::FlashSilence::few_writes;
  report->amplification = {{{0.15}, model::FlashWindow::day, {2.5, 2.25, 2.75}},
                           {{0.15, model::CollectionPolicy::greedy, model::Discards::ignored, model::Placement::hints},
                            model::FlashWindow::day,
                            {3.5, 3.25, 3.75}}};
  report->drive_writes = 1.5;
  report->unknown_pages = 0.125;
  report->lost_writes = 0.25;
  report->sampled_writes = 9;
  report->block_bytes = 1 << 30;
  report->lifetimes = {{2, 0.5, 4096}};
  report->alive[2] = 0.5;
  report->order_violations = {{2, 4, 3000, 1000}};
  report->written_since_full_discard_bytes = 1 << 20;
  model::FlashEstimate drive;
  drive.controller = "nvme0";
  drive.devices = {"nvme0n1"};
  drive.report = report;
  drive.overprovisioning = {0.15, 0.125, 0.25, model::OverprovisioningBasis::media_counter,
                            model::CollectionPolicy::greedy_gc_frontier};
  drive.likely[0] = model::Estimate{2.5, 2, 3};
  drive.drift = model::ModelDrift{0.125, -0.125, 0.25};
  drive.collection_begins = model::ByteRange{1 << 21, 1 << 22};
  drive.lost_writes = 3;
  model::FlashEstimate disk;
  disk.devices = {"sda"};
  disk.silence = model::FlashSilence::rotational;
  auto figures = std::make_shared<model::FlashFigures>();
  figures->scale = "fewer_what_ifs";
  figures->memory_bytes = 1 << 20;
  figures->memory_limit_bytes = 1 << 27;
  figures->overflowed_events = 4;
  figures->states_rejected = 1;
  figures->drives = {drive, disk};
  return figures;
}

/// Has a sample in every family.
inline model::Snapshot small_snapshot() {
  model::Snapshot snapshot;
  snapshot.number = 7;
  snapshot.taken_at = at(1'700'000'100'500);
  snapshot.missed_ticks = 1;
  snapshot.devices_left_out = {"sdy", "sdz"};
  snapshot.unnamed_filesystems = {3, {{"nvme0n1", 3}}};
  snapshot.setting_changes_waiting = 4;
  snapshot.log_lines_left_out = 5;
  snapshot.own_cost = {0.0015, 0.02, model::Effort::everything, 2, 1};
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
  model::DeviceTenants tenants;
  tenants.tenants = {
      {{"/", model::TenantKind::root, "/"}, {}, 0, at(1'700'000'000'250)},
      {{"db.service", model::TenantKind::unit, "/system.slice/db.service"}, {}, 3, at(1'700'000'000'250)},
      {{"podman/8f3c0c1d2e5b", model::TenantKind::container, ""}, {}, 0, at(1'700'000'000'250)}};
  tenants.tenants[0].totals[1] = {4, 16'384, 2'000'000};
  tenants.tenants[1].totals = {{{{100, 409'600, 50'000'000}, {10, 81'920, 1'500'000}, {}}}};
  tenants.tenants[2].totals[2] = {1, 1'048'576, 250'000};
  tenants.other[0] = {2, 8'192, 1'000'000};
  tenants.other_commits = 1;
  tenants.departed[0] = {7, 28'672, 3'500'000};
  tenants.paths[0][1][0] = {109, 446'464, 54'500'000};
  tenants.paths[6][0][1] = {14, 98'304, 3'500'000};
  entry.tenants = std::make_shared<const model::DeviceTenants>(tenants);
  entry.spikes[1].active = model::SpikeCause::gc;
  entry.hint_path = {model::HintReach::block_layer, model::DriveSeparation::fdp};
  entry.utilisation = {12.5, 0.25};
  for (const std::uint64_t in_flight : {0U, 1U, 7U}) {
    entry.depth.add(in_flight);
  }
  snapshot.devices = {entry};
  model::HostSignals signals;
  signals.pressure = {100.5, 40.25};
  signals.dirty = {1 << 20, 200 << 20, 100 << 20};
  signals.dirtied_bytes = 5 << 20;
  signals.cgroups = {{"/a/pg.service", "pg.service", {3.5, 1}}, {"/b/pg.service", "pg.service", {2.5, 1}}};
  signals.limits = {{"/a", "a", "nvme0n1", model::IoLimitKind::wiops, 40, 7, {}, "io.max"},
                    {"/a", "a", "nvme0n1", model::IoLimitKind::rbps, 1 << 20, 7, {}, "io.max"},
                    {"/a", "a", "nvme0n1", model::IoLimitKind::riops, 50, 7, {}, "io.max"},
                    {"/a", "a", "nvme0n1", model::IoLimitKind::wbps, 2 << 20, 7, {}, "io.max"}};
  signals.volumes = {{"dm-0", true, {}}, {"md0", false, model::Resync{"check", 0.25, 1000}, "clean", 1, "bitmap"}};
  signals.rooms = {{"/srv/a\nb", 1 << 30, 1 << 20, 1000, 10}, {"/btrfs", 1 << 30, 1 << 20, 0, 0}};
  snapshot.host.signals = std::make_shared<const model::HostSignals>(signals);
  model::HostWait wait{model::HostWaitCause::suspended, "dm-0", "", "", at(1'700'000'000'000)};
  snapshot.host.waits = {wait};
  snapshot.host.filling_bytes_per_second = {{"/srv/a\nb", 512}};
  snapshot.host.tenant_pressure_seconds = {{"pg.service", 3.5}};
  snapshot.host.count = {1, 0, 0, 2, 0, 0};
  snapshot.host.seconds = {4.5, 0, 0, 10, 0, 0};
  snapshot.memberships = {{"md0", "nvme0n1", "md", ""}, {"dm-0", "nvme0n1", "dm", "vg-data"}};
  model::SiblingFigures siblings;
  siblings.ratios = {
      {"nvme0n1", model::Operation::read, "md0", model::SiblingKind::array, 4, 3.5, 4.5, 0.5, 0.125, true}};
  snapshot.siblings = std::make_shared<const model::SiblingFigures>(siblings);
  snapshot.layers = {{"dm-0", "vg-data", model::LayerKind::thin_pool, {"md0"}},
                     {"md0", "", model::LayerKind::raid1, {"nvme0n1", "nvme0n1p1"}},
                     {"zram0", "", model::LayerKind::zram}};
  snapshot.volumes = {{"dm-0", 252, 0, "dm-0"},
                      {"md0", 9, 0, "md0", true},
                      {"nvme0n1", 259, 0, "nvme0n1"},
                      {"nvme0n1p1", 259, 1, "nvme0n1", true}};
  auto bios = std::make_shared<model::BioIo>();
  bios->device = "dm-0";
  bios->is_volume = true;
  bios->since = at(1'700'000'000'250);
  bios->operations[0] = {1000, 4'096'000, 1, 2, 3, 4, {std::vector<std::uint64_t>(LATENCY_OVER_WORD + 1), 991'000}};
  bios->operations[0].latency.words[40] = 991;
  auto member = std::make_shared<model::BioIo>(*bios);
  member->device = "nvme0n1p1";
  member->is_volume = false;
  snapshot.bios = {bios, member};
  snapshot.volumes_left_out = {"dm-7"};
  snapshot.volume_drift = {{"dm-0", {0, -512, std::nullopt}}};
  snapshot.filesystems = {{"nvme0n1", "/srv/a\nb", "ext4", true}};
  model::Finding finding;
  finding.id = "F7";
  finding.verdict = model::Verdict::danger;
  finding.device = "/srv/a\nb";
  finding.found = "mounted without barriers";
  finding.why = "a power failure can break the file system";
  finding.change = "words";
  snapshot.audit = std::make_shared<const std::vector<model::Finding>>(1, finding);
  snapshot.array_discards = {{"md0", {true, false, false, false, false}}};
  snapshot.filesystem_discards = {{"md0p1", "/srv/a\nb", true, {1 << 30, 1 << 20, 0, 0, 0}, at(1'700'000'000'250)}};
  snapshot.kernel_features = {{model::KernelFeature::io_path, model::KernelDecision::exact}};
  snapshot.kernel_memory.bytes_by_use = {{"cells", 65'536}, {"slots", 16'384}};
  snapshot.programs = {{"on_issue", 3, 1'000, 250'000'000}, {"on_complete", std::nullopt, std::nullopt, std::nullopt}};
  snapshot.losses[index(model::HostLoss::device_pending)] = 5;
  snapshot.diskless_requests = 6;
  snapshot.nvme_drives = {small_drive()};
  snapshot.history = {{{{"device_minute", "written"}, 97}, {{"mark", "written"}, 2}, {{"mark", "surplus"}, 1}},
                      {{"device_minute", 4}, {"mark", 0}},
                      {{{"device_minute", "hour"}, 10}, {{"mark", "age"}, 0}},
                      {},
                      65'536,
                      at(1'700'000'040'000),
                      at(1'699'999'200'000)};
  snapshot.web = {200, 3, 2, 8, 1, 4, 5, 7, 6};
  snapshot.flash = small_flash();
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
