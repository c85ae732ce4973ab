// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/sampler.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/host/processes.h"
#include "daemon/host/settings_reader.h"
#include "daemon/host/settings_record.h"

namespace ssdpulse::runtime {
namespace {

using log::field;
using log::quoted;

/// The kernel's account of a device is compared every so many ticks: two reads of sysfs cost more than all its cells.
constexpr std::uint64_t kTicksBetweenComparisons = 4;
/// Whether I/O is accounted below the root changes only with systemd's configuration, if ever.
constexpr std::uint64_t kTicksBetweenAccountingChecks = 60;
/// Two small files for each of our threads.
constexpr std::uint64_t kTicksBetweenCpuTimes = 15;
/// The settings of each device are read once every so many ticks.
constexpr std::uint64_t kTicksBetweenSettings = 60;

/// Devices whose requests get no start time from the kernel, so that a completion alone gives no latency.
std::vector<std::string> unstamped_devices(const model::Inventory& inventory) {
  std::vector<std::string> names;
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured && device.has_requests && !device.iostats) {
      names.push_back(device.name);
    }
  }
  return names;
}

}  // namespace

util::Result<std::unique_ptr<Sampler>> Sampler::open(const host::InventoryRoots& roots,
                                                     const host::DeviceFilter& filter,
                                                     const block::BlockChoices& choices) {
  auto inventory = host::read_inventory(roots, filter);
  if (!inventory) {
    return tl::make_unexpected(inventory.error());
  }
  const auto measured = std::count_if(inventory->devices.begin(), inventory->devices.end(), [](const auto& device) {
    return device.coverage == model::Coverage::measured && device.has_requests;
  });
  const auto unstamped = static_cast<std::ptrdiff_t>(unstamped_devices(*inventory).size());
  if (choices.completion_only && measured > 0 && unstamped == measured) {
    return util::fail(
        "latency.mode completion-only has nothing to measure: every device has queue/iostats set to 0, and then the "
        "kernel gives requests no start time; write 1 to /sys/block/DEVICE/queue/iostats, or use latency.mode full");
  }
  auto source = block::BlockSource::open(*inventory, choices);
  if (!source) {
    return tl::make_unexpected(source.error());
  }
  std::unique_ptr<Sampler> sampler(new Sampler);
  sampler->roots_ = roots;
  sampler->filter_ = filter;
  sampler->completion_only_ = choices.completion_only;
  sampler->cpus_ = static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  sampler->hierarchy_ = tenants::find_hierarchy(roots.proc);
  sampler->cgroup_paths_ = tenants::CgroupPaths(sampler->hierarchy_);
  const auto& hierarchy = sampler->hierarchy_;
  sampler->host_ = host::HostReader(
      {roots.sys, roots.proc, hierarchy ? hierarchy->directory : "", hierarchy ? hierarchy->unified : true});
  sampler->source_ = std::move(*source);
  sampler->inventory_status_ = {"inventory", true, "", {}};
  sampler->process_start_ = host::read_process_start_time(roots.proc).value_or(0);
  for (const auto& [feature, decision] : sampler->source_->kernel_features()) {
    log::debug("kernel", field("feature", name(feature, model::kKernelFeatureNames)),
               field("decision", name(decision, model::kKernelDecisionNames)));
  }
  if (const std::string& reason = sampler->source_->discards_unseen(); !reason.empty()) {
    log::warning("cannot see who submits discards: all get", field("trigger", "other"), quoted("reason", reason));
  }
  if (const std::string& reason = sampler->source_->volumes_unseen(); !reason.empty()) {
    log::warning("cannot measure volumes", quoted("reason", reason));
  }
  if (const std::string& reason = sampler->source_->freezes_unseen(); !reason.empty()) {
    log::warning("cannot see which file systems are frozen", quoted("reason", reason));
  }
  if (const auto& cost = sampler->source_->run_cost()) {
    log::info("one run of a program costs", field("issue_ns", "{:.0f}", cost->issue_ns),
              field("completion_ns", "{:.0f}", cost->completion_ns), field("cpus", sampler->cpus_));
  }
  const block::MemoryPlan& memory = sampler->source_->memory();
  log::info("kernel memory", field("devices", memory.devices), field("cpus", memory.cpus),
            field("cells_bytes", memory.cell_bytes()), field("slots_bytes", memory.slot_bytes()),
            field("tables_bytes", memory.table_bytes()), field("attribution_bytes", memory.attribution_bytes()),
            field("samples_bytes", memory.sample_bytes), field("volumes_bytes", memory.volumes.bytes()));
  sampler->adopt(std::move(*inventory));
  return sampler;
}

void Sampler::adopt(model::Inventory inventory) {
  for (const std::string& warning : inventory.warnings) {
    if (limiter_.admit(warning)) {
      log::warning("inventory", quoted("problem", util::for_log(warning, util::kLongestSentence)));
    }
  }
  report_left_out();
  const std::vector<std::string> unstamped = unstamped_devices(*inventory_);
  for (const std::string& device : unstamped_devices(inventory)) {
    if (std::find(unstamped.begin(), unstamped.end(), device) == unstamped.end()) {
      log::warning("{} has no {}: its queue/iostats is 0; write 1 to it", field("device", device),
                   completion_only_ ? "latency in completion-only mode" : "total and queue latency, and so no spikes");
    }
  }
  inventory_ = std::make_shared<const model::Inventory>(std::move(inventory));
  volume_accounts_.update(*inventory_);
  std::map<std::string, KernelAccount> before = std::exchange(kernel_accounts_, {});
  for (const model::Device& device : inventory_->devices) {
    if (device.coverage != model::Coverage::measured) {
      continue;
    }
    if (auto known = before.find(device.name); known != before.end() && known->second.is_of(device)) {
      kernel_accounts_.insert(before.extract(known));
    } else if (auto account = KernelAccount::open(roots_, device, accounts_opened_ + 1)) {
      kernel_accounts_.emplace(device.name, std::move(*account));
      ++accounts_opened_;
    }
  }
}

/// One line for all of them, and another when their number has changed.
void Sampler::report_left_out() {
  const std::vector<std::string>& left_out = source_->devices_left_out();
  if (left_out.size() == left_out_ || (!left_out.empty() && !limiter_.admit("left out"))) {
    return;
  }
  left_out_ = left_out.size();
  const std::size_t measured = source_->measured_devices();
  if (left_out.empty()) {
    log::info("the tables in the kernel have room for every device again", field("devices", measured));
  } else {
    log::warning(
        "{} are measured and {} are not, such as {}: the tables in the kernel have room for those that were there when "
        "the daemon started, and a few more; restart it, or exclude some (devices.exclude)",
        field("devices", measured), field("devices_left_out", left_out.size()), left_out.front());
  }
}

void Sampler::refresh_inventory() {
  auto inventory = host::read_inventory(roots_, filter_, inventory_.get());
  if (!inventory) {
    inventory_status_.up = false;
    inventory_status_.reason = inventory.error().message;
    ++inventory_status_.errors["read"];
    if (limiter_.admit("inventory")) {
      log::warning("inventory not refreshed, keeping the last one: {}", inventory.error().message);
    }
    return;
  }
  inventory_status_.up = true;
  inventory_status_.reason.clear();
  source_->update(*inventory);
  adopt(std::move(*inventory));
}

void Sampler::set_filter(const host::DeviceFilter& filter) {
  filter_ = filter;
  refresh_inventory();
}

void Sampler::consult_kernel(model::DeviceTick& entry, bool compare) {
  const std::string& name = entry.block.device->name;
  const auto found = kernel_accounts_.find(name);
  if (found == kernel_accounts_.end()) {
    return;
  }
  KernelAccount& account = found->second;
  entry.kernel_account = account.number();
  if (compare || !account.compared()) {
    entry.account = account.compare(entry.block, [&] { return source_->sample_device(name); });
  }
  entry.drift = account.drift();
  const auto [kernel, ended] = account.find_missed(entry.block);
  entry.kernel_in_flight = kernel;
  if (ended.reads) {
    source_->mark_in_flight_missed(name, block::kReading);
  }
  if (ended.writes) {
    source_->mark_in_flight_missed(name, block::kWriting);
  }
  if (ended.reads || ended.writes) {
    entry.block = source_->sample_device(name).value_or(entry.block);
  }
}

void Sampler::set_effort(model::Effort effort) {
  effort_ = effort;
  source_->set_effort(effort);
}

std::shared_ptr<const model::DeviceIo> Sampler::device(const std::string& name) {
  const auto sample = source_->sample_device(name);
  return sample ? sample->io : nullptr;
}

std::optional<std::uint64_t> Sampler::largest_request_bytes(const std::string& name) const {
  const auto& devices = inventory_->devices;
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const model::Device& device) { return device.name == name; });
  return found == devices.end() ? std::nullopt : found->largest_request_bytes;
}

std::uint64_t Sampler::skipped_runs() const {
  std::uint64_t skipped = 0;
  for (const model::ProgramStats& program : source_->program_stats()) {
    skipped += program.recursion_misses.value_or(0);  // 0 if the kernel does not report it
  }
  return skipped;
}

model::CgroupPaths Sampler::read_cgroups(model::Tick& tick) {
  if (!tick.cgroups) {
    return {};
  }
  if (hierarchy_ && samples_ % kTicksBetweenAccountingChecks == 1) {
    io_accounting_ = tenants::accounting_of(*hierarchy_);
  }
  tenants::CgroupPaths::Update update = cgroup_paths_.update(*tick.cgroups, tick.at);
  source_->release_cgroups(update.gone);
  if (namer_) {
    tick.tenants = std::make_shared<const model::Tenants>(namer_->tenants_of(update.paths));
  }
  tick.cgroups_gone = std::move(update.gone);
  tick.io_accounting = io_accounting_;
  return std::move(update.paths);
}

/// What holds up I/O above the drives. Where tenants are not named, neither are the limits set on them.
void Sampler::read_host(model::Tick& tick, const model::CgroupPaths& cgroups,
                        const std::map<std::string, util::OutsideText>& frozen) {
  std::set<std::string> paths;
  if (namer_) {
    for (const auto& [id, path] : cgroups) {
      paths.insert(path.raw());
    }
  }
  model::HostSignals signals = host_.read(
      *inventory_, paths, [this](const std::string& path) { return namer_->tenant_of(path).name; },
      volume_accounts_.standing_still(tick.bios));
  std::set<std::string> mountpoints;
  for (const model::Filesystem& filesystem : inventory_->filesystems) {
    if (!filesystem.fstype.starts_with("fuse")) {  // a process would answer, or not
      mountpoints.insert(filesystem.mountpoint.raw());
    }
  }
  for (const model::Filesystem& filesystem : inventory_->filesystems) {
    const auto found = frozen.find(filesystem.number);
    const bool known = std::any_of(signals.frozen.begin(), signals.frozen.end(),
                                   [&](const auto& one) { return one.mountpoint == filesystem.mountpoint; });
    if (found != frozen.end() && !known) {  // it is listed once for each disk
      signals.frozen.push_back({filesystem.mountpoint, found->second, filesystem.volumes});
    }
  }
  signals.rooms = rooms_.latest({mountpoints.begin(), mountpoints.end()}, tick.at);
  tick.host = std::make_shared<const model::HostSignals>(std::move(signals));
}

/// The settings of the arrays and dm devices directly above the disk.
std::vector<model::DiskSettings> Sampler::volumes_above(const std::string& disk) const {
  constexpr std::size_t kMaxVolumes = 16;  // of a disk with a hundred volumes, only the first are read
  std::vector<model::DiskSettings> volumes;
  for (const model::Membership& member : inventory_->memberships) {
    const auto is = [&](const model::Device& device) { return device.name == member.array; };
    const auto found = std::find_if(inventory_->devices.begin(), inventory_->devices.end(), is);
    if (member.device == disk && found != inventory_->devices.end() && volumes.size() < kMaxVolumes) {
      volumes.push_back(host::read_disk_settings({}, *found));
    }
  }
  return volumes;
}

/// Fifty small files per device; each tick reads those of a few devices, so that only the first one waits for all.
void Sampler::read_settings(model::Tick& tick) const {
  const std::uint64_t turn = samples_ % kTicksBetweenSettings;
  if (turn == 1) {
    tick.settings_read.push_back(host::recorded(host::read_host_files({})));
  }
  for (std::size_t number = 0; number < tick.devices.size(); ++number) {
    if (samples_ == 1 || number % kTicksBetweenSettings == turn) {
      const model::Device& disk = *tick.devices[number].block.device;
      tick.settings_read.push_back(host::recorded(host::read_disk_settings({}, disk), volumes_above(disk.name)));
    }
  }
}

model::Tick Sampler::sample() {
  model::BlockSample block = source_->sample();
  model::Tick tick;
  tick.at = std::chrono::steady_clock::now();
  tick.wall = std::chrono::system_clock::now();
  tick.boot = model::boot_time(tick.at);
  std::uint64_t turn = ++samples_;
  for (model::DeviceSample& sample : block.devices) {
    model::DeviceTick entry;
    entry.block = std::move(sample);
    consult_kernel(entry, ++turn % kTicksBetweenComparisons == 0);
    tick.devices.push_back(std::move(entry));
  }
  read_settings(tick);
  const std::uint64_t pending = block.losses[model::index(model::HostLoss::device_pending)];
  saw_unknown_disks_ = pending != std::exchange(pending_ios_, pending);
  tick.inventory = inventory_;
  tick.discards = std::move(block.discards);
  tick.bios = std::move(block.bios);
  tick.volumes_left_out = std::move(block.volumes_left_out);
  tick.cgroups = std::move(block.cgroups);
  read_host(tick, read_cgroups(tick), block.frozen);
  volume_accounts_.compare(tick.bios, host_.disk_stats(), [this] { return source_->sample_volumes(); });
  tick.volume_drift = volume_accounts_.drift();
  tick.flash = std::move(block.flash);
  tick.losses = block.losses;
  tick.diskless_requests = block.diskless_requests;
  tick.hint_reach = source_->hint_reach();
  tick.programs = source_->program_stats();
  tick.run_cost = source_->run_cost();
  if (samples_ % kTicksBetweenCpuTimes == 1) {
    tick.own_cpu = host::read_cpu_times(roots_.proc);
  }
  tick.cpus = cpus_;
  tick.completion_only = completion_only_;
  return tick;
}

std::shared_ptr<model::Snapshot> Sampler::describe(const model::Tick& tick, std::uint64_t missed_ticks) {
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = samples_;
  snapshot->missed_ticks = missed_ticks;
  snapshot->taken_at = tick.wall;
  for (const model::DeviceTick& entry : tick.devices) {
    model::DeviceSnapshot device{entry.block.device, entry.block.io, {}, {}, {}};
    device.kernel_in_flight = entry.kernel_in_flight;
    device.interval = entry.interval;
    snapshot->devices.push_back(std::move(device));
  }
  for (const model::DriveTick& seen : tick.drives) {
    snapshot->nvme_drives.push_back(*seen.drive);
  }
  snapshot->losses = tick.losses;
  snapshot->diskless_requests = tick.diskless_requests;
  snapshot->devices_left_out = source_->devices_left_out();
  snapshot->bios = tick.bios;
  snapshot->volume_drift = tick.volume_drift;
  snapshot->volumes_left_out = tick.volumes_left_out;
  snapshot->memberships = tick.inventory->memberships;
  snapshot->layers = tick.inventory->layers;
  snapshot->volumes = tick.inventory->volumes;
  snapshot->filesystems = tick.inventory->filesystems;
  snapshot->unnamed_filesystems = tick.inventory->unnamed_filesystems;
  snapshot->latency_mode = completion_only_ || effort_ >= model::Effort::completions ? "completion-only" : "full";
  snapshot->kernel_features = source_->kernel_features();
  const block::MemoryPlan& memory = source_->memory();
  snapshot->kernel_memory.bytes_by_use = {{"cells", memory.cell_bytes()},   {"slots", memory.slot_bytes()},
                                          {"tables", memory.table_bytes()}, {"attribution", memory.attribution_bytes()},
                                          {"samples", memory.sample_bytes}, {"volumes", memory.volumes.bytes()}};
  snapshot->programs = tick.programs;
  const bool closed = effort_ == model::Effort::nothing;
  snapshot->sources = {{"block", !closed, closed ? "limits.cpu: the programs in the kernel cost too much" : "", {}},
                       inventory_status_};
  if (auto process = host::read_process_stats(process_start_, roots_.proc)) {
    snapshot->process = *process;
  }
  return snapshot;
}

}  // namespace ssdpulse::runtime
