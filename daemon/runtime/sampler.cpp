// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/sampler.h"

#include <algorithm>
#include <utility>

#include "daemon/analysis/write_hint_path.h"
#include "daemon/runtime/process_stats.h"

namespace ssdpulse::runtime {
namespace {

/// A device's own account is compared at every so many ticks: two reads of sysfs are dearer than all its cells.
constexpr std::uint64_t kTicksBetweenComparisons = 4;

bool same_paths(const std::vector<model::Path>& left, const std::vector<model::Path>& right) {
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(),
      [](const model::Path& a, const model::Path& b) { return a.disk_name == b.disk_name && a.diskseq == b.diskseq; });
}

util::Result<model::DiskStats> read_all(const std::vector<sources::DiskStatsFile>& files) {
  std::vector<model::DiskStats> stats;
  for (const sources::DiskStatsFile& file : files) {
    auto one = file.read();
    if (!one) {
      return one;
    }
    stats.push_back(*one);
  }
  return analysis::sum_of_paths(stats);
}

util::Result<model::KernelInFlight> read_in_flight(const std::vector<sources::DiskStatsFile>& files) {
  model::KernelInFlight total;
  for (const sources::DiskStatsFile& file : files) {
    const auto one = file.read_in_flight();
    if (!one) {
      return one;
    }
    total.reads += one->reads;
    total.writes += one->writes;
  }
  return total;
}

analysis::OurCounts counts_of(const block::DeviceSample& sample) {
  analysis::UnseenIo unseen;
  unseen.missed = sample.events.missed;
  unseen.stray = sample.events.strays;
  unseen.flush_data_stages = sample.events.flush_data_stages;
  unseen.lone_flushes = sample.events.lone_flushes;
  return analysis::compose_counts(*sample.io, unseen);
}

/// Devices whose requests the kernel gives no start time, so that completions alone show no latency.
std::vector<std::string> unstamped_devices(const model::Inventory& inventory) {
  std::vector<std::string> names;
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured && !device.iostats) {
      names.push_back(device.name);
    }
  }
  return names;
}

}  // namespace

util::Result<std::unique_ptr<Sampler>> Sampler::open(const sources::InventoryRoots& roots,
                                                     const sources::DeviceFilter& filter,
                                                     const block::BlockChoices& choices) {
  auto inventory = sources::read_inventory(roots, filter);
  if (!inventory) {
    return tl::make_unexpected(inventory.error());
  }
  const auto measured = std::count_if(inventory->devices.begin(), inventory->devices.end(),
                                      [](const auto& device) { return device.coverage == model::Coverage::measured; });
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
  sampler->source_ = std::move(*source);
  sampler->inventory_status_ = {"inventory", true, "", {}};
  sampler->process_start_ = read_process_start_time(roots.proc).value_or(0);
  for (const auto& [feature, decision] : sampler->source_->kernel_features()) {
    log::info("kernel feature={} decision=\"{}\"", feature, decision);
  }
  if (const std::string& why = sampler->source_->discards_unseen(); !why.empty()) {
    log::warning("cannot see who submits discards: all get trigger=other reason=\"{}\"", why);
  }
  const block::MemoryPlan& memory = sampler->source_->memory();
  log::info("kernel memory devices={} cpus={} cells_bytes={} slots_bytes={} tables_bytes={}", memory.devices,
            memory.cpus, memory.cell_bytes(), memory.slot_bytes(), memory.table_bytes());
  sampler->adopt(std::move(*inventory));
  return sampler;
}

void Sampler::adopt(model::Inventory inventory) {
  for (const std::string& warning : inventory.warnings) {
    if (limiter_.admit(warning)) {
      log::warning("inventory: {}", warning);
    }
  }
  const std::vector<std::string> told = unstamped_devices(inventory_);
  for (const std::string& device : unstamped_devices(inventory)) {
    if (std::find(told.begin(), told.end(), device) == told.end()) {
      log::warning("device={} has no {}: its queue/iostats is 0; write 1 to it", device,
                   completion_only_ ? "latency in completion-only mode" : "total and queue latency, and so no spikes");
    }
  }
  inventory_ = std::move(inventory);
  std::map<std::string, Witness> before = std::exchange(witnesses_, {});
  for (const model::Device& device : inventory_.devices) {
    if (device.coverage != model::Coverage::measured || !device.iostats) {
      continue;
    }
    if (auto known = before.find(device.name); known != before.end() && same_paths(known->second.paths, device.paths)) {
      witnesses_.insert(before.extract(known));
      continue;
    }
    Witness witness;
    witness.paths = device.paths;
    for (const model::Path& path : device.paths) {
      if (auto file = sources::DiskStatsFile::open(roots_, path.disk_name)) {
        witness.files.push_back(std::move(*file));
      }
    }
    if (witness.files.size() == device.paths.size()) {
      witnesses_.emplace(device.name, std::move(witness));
    }
  }
}

void Sampler::refresh_inventory() {
  auto inventory = sources::read_inventory(roots_, filter_, &inventory_);
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

void Sampler::set_filter(const sources::DeviceFilter& filter) {
  filter_ = filter;
  refresh_inventory();
}

void Sampler::compare_with_kernel(const block::DeviceSample& sample) {
  const auto found = witnesses_.find(sample.device->name);
  if (found == witnesses_.end() || !sample.io) {
    return;
  }
  Witness& witness = found->second;
  const auto kernel_before = read_all(witness.files);
  const auto kernel_after = read_all(witness.files);
  const auto after = source_->sample_device(sample.device->name);
  if (kernel_before && kernel_after && after && after->io) {
    witness.drift.observe(counts_of(sample), *kernel_before, *kernel_after, counts_of(*after));
  }
}

/// A completion that no program saw leaves its request in flight, which looks like a standstill. The kernel's own count
/// distinguishes the two.
void Sampler::look_for_missed(block::DeviceSample& sample, model::DeviceSnapshot& entry) {
  const auto found = witnesses_.find(sample.device->name);
  if (found == witnesses_.end() || !sample.io) {
    return;
  }
  Witness& witness = found->second;
  if (witness.missed.stands_still(*sample.io)) {
    const auto in_flight = read_in_flight(witness.files);
    const auto ended = read_all(witness.files);
    if (in_flight && ended) {
      entry.kernel_in_flight =
          analysis::believed(*in_flight, *sample.io, witness.drift.lead(counts_of(sample), *ended));
    }
  }
  const auto ended = witness.missed.look(*sample.io, entry.kernel_in_flight);
  if (ended.reads) {
    source_->give_up(sample.device->name, analysis::kReading);
  }
  if (ended.writes) {
    source_->give_up(sample.device->name, analysis::kWriting);
  }
  if (ended.reads || ended.writes) {
    sample = source_->sample_device(sample.device->name).value_or(sample);
    entry.io = sample.io;
  }
}

std::shared_ptr<const model::DeviceIo> Sampler::device(const std::string& name) {
  const auto sample = source_->sample_device(name);
  return sample ? sample->io : nullptr;
}

std::optional<std::uint64_t> Sampler::largest_request_bytes(const std::string& name) const {
  const auto found = std::find_if(inventory_.devices.begin(), inventory_.devices.end(),
                                  [&](const model::Device& device) { return device.name == name; });
  return found == inventory_.devices.end() ? std::nullopt : found->largest_request_bytes;
}

std::uint64_t Sampler::skipped_runs() const {
  std::uint64_t skipped = 0;
  for (const model::ProgramStats& program : source_->program_stats()) {
    skipped += program.recursion_misses.value_or(0);  // 0 if the kernel does not report it
  }
  return skipped;
}

void Sampler::consult_drives(model::Snapshot& snapshot) {
  struct Told {
    const model::NvmeIdentity* drive;
    const model::NvmeNamespace* name_space;
  };
  std::map<std::string, Told> told;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    // Until it has answered, all that is known of it is what sysfs says.
    if (drive.identity->version != 0) {
      for (const model::NvmeNamespace& entry : drive.identity->namespaces) {
        told[entry.device] = {drive.identity.get(), &entry};
      }
    }
  }
  std::map<std::string, block::WritePreference> preferences;
  for (model::DeviceSnapshot& entry : snapshot.devices) {
    const model::Device& device = *entry.device;
    const auto own = told.find(device.name);
    const bool known = own != told.end();
    entry.hint_path = analysis::write_hint_path(source_->hint_reach(), device, known ? own->second.drive : nullptr);
    if (known && own->second.name_space->write_granularity_blocks > 0) {
      const model::NvmeNamespace& name_space = *own->second.name_space;
      preferences[device.name] = {name_space.write_alignment_blocks * device.logical_block_bytes,
                                  name_space.write_granularity_blocks * device.logical_block_bytes};
    }
  }
  source_->set_write_preferences(std::move(preferences));
}

std::shared_ptr<model::Snapshot> Sampler::sample(std::uint64_t missed_ticks) {
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = ++number_;
  snapshot->missed_ticks = missed_ticks;

  block::BlockSample block = source_->sample();
  snapshot->taken_at = std::chrono::system_clock::now();
  std::uint64_t turn = number_;
  for (block::DeviceSample& device : block.devices) {
    if (++turn % kTicksBetweenComparisons == 0) {
      compare_with_kernel(device);
    }
    model::DeviceSnapshot entry{device.device, device.io, {}, {}, {}};
    look_for_missed(device, entry);
    if (const auto witness = witnesses_.find(device.device->name); witness != witnesses_.end()) {
      entry.drift = witness->second.drift.value();
    }
    snapshot->devices.push_back(std::move(entry));
  }
  discards_.observe(block, inventory_, *snapshot);
  const std::uint64_t pending = block.losses[model::index(model::HostLoss::device_pending)];
  saw_unknown_disks_ = pending != std::exchange(pending_ios_, pending);
  snapshot->losses = block.losses;
  snapshot->diskless_requests = block.diskless_requests;
  snapshot->memberships = inventory_.memberships;
  snapshot->filesystems = inventory_.filesystems;
  snapshot->latency_mode = completion_only_ ? "completion-only" : "full";
  snapshot->kernel_features = source_->kernel_features();
  const block::MemoryPlan& memory = source_->memory();
  snapshot->kernel_memory.bytes_by_use = {
      {"cells", memory.cell_bytes()}, {"slots", memory.slot_bytes()}, {"tables", memory.table_bytes()}};
  snapshot->programs = source_->program_stats();
  snapshot->sources = {{"block", true, "", {}}, inventory_status_};
  if (auto process = read_process_stats(process_start_, roots_.proc)) {
    snapshot->process = *process;
  }
  return snapshot;
}

}  // namespace ssdpulse::runtime
