// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/block_source.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "daemon/base/log.h"
#include "daemon/block/bpf_objects.h"
#include "daemon/model/device_identity.h"

namespace ssdpulse::block {
namespace {

using model::KernelDecision;
using model::KernelFeature;

SlotDemand demand_of(const model::Path& path) { return {path.hardware_queues, path.queue_depth}; }

/// One more than the highest possible CPU number: cells are indexed by number, and numbers may have holes.
std::uint32_t cpu_numbers() {
  std::ifstream file("/sys/devices/system/cpu/possible");
  std::string ranges;
  std::getline(file, ranges);
  const std::size_t last = ranges.find_last_of("-,");
  const std::uint32_t highest = static_cast<std::uint32_t>(
      std::strtoul(ranges.c_str() + (last == std::string::npos ? 0 : last + 1), nullptr, 10));
  return highest + 1;
}

}  // namespace

util::Result<std::unique_ptr<BlockSource>> BlockSource::open(const model::Inventory& inventory,
                                                             const BlockChoices& choices) {
  auto types = read_kernel_btf();
  if (!types) {
    return tl::make_unexpected(types.error());
  }
  std::vector<SlotDemand> demands;
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured) {
      std::transform(device.paths.begin(), device.paths.end(), std::back_inserter(demands), demand_of);
    }
  }
  std::unique_ptr<BlockSource> source(new BlockSource);
  KernelBtf& btf = source->btf_ = std::move(*types);
  model::KernelFeatures& features = btf.features;
  source->rules_.issues_are_seen = !choices.completion_only;
  if (choices.completion_only) {
    btf.hints_of_pages = false;
  } else if (choices.hints_of_pages) {
    btf.hints_of_pages = *choices.hints_of_pages;
    features[KernelFeature::page_hints] = *choices.hints_of_pages ? KernelDecision::always : KernelDecision::never;
  }
  const bool some_are_lost = btf.hint_reach == model::HintReach::file_system_drops_buffered && !btf.hints_of_pages;
  source->rules_.no_hint = default_hint(btf.bios_have_hints && !some_are_lost);
  source->plan_ = plan_memory(demands, cpu_numbers());
  if (choices.attribution) {
    plan_attribution(source->plan_, choices.attributed_cgroups);
  }
  CommonFunctions common;
  if (!choices.completion_only || choices.attribution) {
    source->end_functions_.emplace();
    common = common_functions(source->end_functions_->functions());
  }
  if (!choices.flash_samples) {
    source->plan_.sample_bytes = kMinSampleBytes;
  }
  auto programs = BlockPrograms::load(btf, source->plan_, common, choices.completion_only);
  if (!programs) {
    return tl::make_unexpected(programs.error());
  }
  source->use(std::move(*programs));
  // After the load, which explains it better where privileges are missing.
  if (const auto cost = measure_run_cost(choices.completion_only)) {
    source->run_cost_ = *cost;
  } else {
    log::warning("the cost of the programs in the kernel is unknown: {}", cost.error().message);
  }
  source->open_discards(inventory);
  if (choices.volumes) {
    source->open_volumes(inventory, common.end_chain);
  }
  source->open_freezes();
  if (source->end_functions_) {
    source->end_functions_->serve(source->programs_->tables().end_functions);
  }
  if (!choices.completion_only) {
    features[KernelFeature::write_class] =
        source->end_functions_->resolved() ? KernelDecision::end_functions : KernelDecision::flags_and_pages;
  }
  if (choices.attribution) {
    features[KernelFeature::io_path] = !source->end_functions_->resolved() ? KernelDecision::flags
                                       : btf.has_cast                      ? KernelDecision::exact
                                                                           : KernelDecision::engine_unknown;
    features[KernelFeature::io_cgroup] = btf.bios_have_cgroup ? KernelDecision::bio : KernelDecision::absent;
  }
  // The disks are made known first, so that they are counted from their first I/O after the attach.
  source->update(inventory);
  if (auto attached = source->programs_->attach(); !attached) {
    return tl::make_unexpected(attached.error());
  }
  return source;
}

std::unique_ptr<BlockSource> BlockSource::on(const Tables& tables, const MemoryPlan& plan) {
  std::unique_ptr<BlockSource> source(new BlockSource);
  source->plan_ = plan;
  source->use(BlockPrograms::none(tables));
  return source;
}

void BlockSource::use(std::unique_ptr<BlockPrograms> programs) {
  programs_ = std::move(programs);
  allocator_ = TableAllocator(plan_.devices, plan_.slots);
  if (plan_.attribution_sets > 0) {
    attribution_.emplace(programs_->tables(), plan_);
  }
}

/// Without this, all discards are `other`, and nothing else is lost.
void BlockSource::open_discards(const model::Inventory& inventory) {
  const std::uint32_t rows = discard_rows(inventory);
  auto programs = DiscardPrograms::open(btf_, rows, rules_.issues_are_seen);
  if (!programs) {
    discards_unseen_ = programs.error().message;
    btf_.features[KernelFeature::discard_submitters] = KernelDecision::not_hooked;
    return;
  }
  discard_programs_ = std::move(*programs);
  discards_.emplace(discard_programs_->cells(), discard_programs_->volumes(), discard_programs_->sees_partitions());
  plan_.discard_rows = rows;
  btf_.features[KernelFeature::discard_submitters] = discard_programs_->decision();
  if (const std::string& refusals = discard_programs_->refusals(); !refusals.empty()) {
    log::info("discards: a better hook is refused",
              log::field("decision", name(discard_programs_->decision(), model::kKernelDecisionNames)),
              log::quoted("reason", refusals));
  }
}

/// Without this, volumes have no series, and nothing else is lost.
void BlockSource::open_volumes(const model::Inventory& inventory, std::uint32_t end_chain) {
  KernelDecision& decision = btf_.features[KernelFeature::volume_times] = KernelDecision::absent;
  const VolumePlan plan = plan_volumes(volume_rows(inventory), plan_.cpus);
  if (plan.rows == 0) {
    return;
  }
  auto programs = rules_.issues_are_seen ? VolumePrograms::open(btf_, plan, end_chain)
                                         : util::fail(
                                               "every bio of the host passes the programs: not in "
                                               "completion-only mode");
  if (!programs) {
    decision = KernelDecision::not_hooked;
    volumes_unseen_ = programs.error().message;
    return;
  }
  decision = KernelDecision::every_bio;
  plan_.volumes = plan;
  volume_programs_ = std::move(*programs);
  volumes_.emplace(volume_programs_->cells(), volume_programs_->devices(), plan, btf_.bios_keep_partition);
}

void BlockSource::open_freezes() {
  auto programs = FreezePrograms::open(btf_.counts_skipped_runs);
  btf_.features[KernelFeature::freezes] = programs ? KernelDecision::freeze_super : KernelDecision::not_hooked;
  if (programs) {
    freeze_programs_ = std::move(*programs);
  } else {
    freezes_unseen_ = programs.error().message;
  }
}

std::vector<model::ProgramStats> BlockSource::program_stats() const {
  auto stats = programs_->program_stats();
  const auto add = [&](const auto& more) { stats.insert(stats.end(), more.begin(), more.end()); };
  if (discard_programs_) {
    add(discard_programs_->program_stats());
  }
  if (volume_programs_) {
    add(volume_programs_->program_stats());
  }
  if (freeze_programs_) {
    add(freeze_programs_->program_stats());
  }
  return stats;
}

void BlockSource::update(const model::Inventory& inventory) {
  if (end_functions_) {
    end_functions_->refresh();
  }
  std::map<std::string, MeasuredDevice> before = std::exchange(measured_, {});
  for (const model::Device& device : inventory.devices) {
    if (device.coverage != model::Coverage::measured) {
      continue;
    }
    MeasuredDevice measured;
    if (auto known = before.find(device.name);
        known != before.end() && model::same_device(*known->second.device, device)) {
      measured = std::move(known->second);
      before.erase(known);
    } else {
      measured.io.since = std::chrono::system_clock::now();
    }
    measured.device = std::make_shared<const model::Device>(device);
    measured_.emplace(device.name, std::move(measured));
  }
  for (auto& [name, gone] : before) {
    for (TableRow& row : gone.rows) {
      retire(row);
      stop_sampling(programs_->tables().sampling(row.allocation.device));
      // The row may be released, and its index given to another disk, before the decisions are published.
      close_entries_of(row.allocation.device + 1, programs_->tables().known_disks);
      retiring_.push_back(std::move(row));
    }
  }
  // What was counted so far must be read before the rows are released and given to other devices.
  read_rows();
  read_attribution();
  release_finished();
  without_row_.clear();
  devices_left_out_.clear();
  for (auto& [name, measured] : measured_) {
    const std::size_t left_out = without_row_.size();
    keep_rows(measured);
    if (without_row_.size() > left_out) {
      devices_left_out_.push_back(name);
    }
  }
  publish_decisions(inventory);
}

/// New paths get rows; those of paths that are gone retire, and what they still finish counts for the device.
void BlockSource::keep_rows(MeasuredDevice& measured) {
  const std::vector<model::Path>& paths = measured.device->paths;
  for (TableRow& row : measured.rows) {
    const auto path =
        std::find_if(paths.begin(), paths.end(), [&](const model::Path& candidate) { return row.is_of(candidate); });
    // Seen before its queue was registered: its slots are useless.
    const bool useless = path != paths.end() && row.demand.queue_depth == 0 && path->queue_depth > 0;
    if (path == paths.end() || useless) {
      retire(row);
      continue;
    }
    prefer(*measured.device, row);
    if (!slots_are_exact(demand_of(*path), row.allocation.slots) || path->queue_depth > row.demand.queue_depth) {
      // The queue has grown: requests may share slots now, which does not mean a missed completion.
      programs_->tables().geometry(row.allocation.device).flags &= ~static_cast<__u32>(SLOTS_EXACT);
    }
  }
  for (const model::Path& path : paths) {
    const bool has_row = std::any_of(measured.rows.begin(), measured.rows.end(), [&](const TableRow& row) {
      return row.disk_name == path.disk_name && !row.retirement;
    });
    if (!has_row && !revive_row(measured, path) && !allocate_row(measured, path)) {
      without_row_.push_back({path.disk_name, path.diskseq, DEVICE_WITHOUT_ROW});
    }
  }
}

/// A device that was excluded for a while gets its old row back, with whatever is still in flight there.
bool BlockSource::revive_row(MeasuredDevice& measured, const model::Path& path) {
  const auto row = std::find_if(retiring_.begin(), retiring_.end(),
                                [&](const TableRow& candidate) { return candidate.is_of(path) && path.diskseq != 0; });
  if (row == retiring_.end() || !measured.rows.empty()) {
    return false;
  }
  for (std::uint32_t operation_class = 0; operation_class < CLASSES; ++operation_class) {
    measured.io.operations[operation_class].in_flight += row->requests[operation_class].requests();
  }
  device_geometry& geometry = programs_->tables().geometry(row->allocation.device);
  measured.drive = geometry.drive;
  geometry.flags &= ~static_cast<__u32>(DEVICE_RETIRING);
  row->retirement.reset();
  measured.rows.push_back(std::move(*row));
  switch_effort(effort_, programs_->tables().writable_states[measured.rows.back().allocation.device]);
  retiring_.erase(row);
  return true;
}

bool BlockSource::allocate_row(MeasuredDevice& measured, const model::Path& path) {
  const auto allocation = allocator_.allocate(demand_of(path));
  if (!allocation) {
    return false;
  }
  const std::uint32_t device = allocation->device;
  const Tables& tables = programs_->tables();
  if (measured.rows.empty()) {
    measured.drive = device;
  }
  device_geometry& geometry = tables.geometry(device);
  // A program that had found the region before it was released may have put a request there since.
  geometry.drive = device;
  tables.forget_requests(*allocation);
  geometry.slot_base = allocation->slot_base;
  geometry.slot_mask = allocation->slots - 1;
  geometry.slot_stride = path.queue_depth;
  geometry.flags = slots_are_exact(demand_of(path), allocation->slots) ? SLOTS_EXACT : 0;
  geometry.drive = measured.drive;
  // Any queue that still remembers this index belonged to a disk that is gone, and has a copy of its geometry.
  forget_queues_of(device + 1, tables.queue_entries);
  measured.rows.emplace_back(tables, plan_, path, *allocation);
  prefer(*measured.device, measured.rows.back());
  switch_effort(effort_, programs_->tables().writable_states[measured.rows.back().allocation.device]);
  return true;
}

void BlockSource::retire(TableRow& row) {
  if (!row.retirement) {
    row.retirement.emplace(std::chrono::steady_clock::now());
    programs_->tables().geometry(row.allocation.device).flags |= DEVICE_RETIRING;
  }
}

/// Whether the row's interference state serves other paths of the same drive.
bool BlockSource::serves_others(const TableRow& row) const {
  const auto relies_on_it = [&](const TableRow& other) {
    return &other != &row &&
           programs_->tables().device_states[other.allocation.device].geometry.drive == row.allocation.device;
  };
  return std::any_of(retiring_.begin(), retiring_.end(), relies_on_it) ||
         std::any_of(measured_.begin(), measured_.end(), [&](const auto& named) {
           return std::any_of(named.second.rows.begin(), named.second.rows.end(), relies_on_it);
         });
}

/// To be called before the attribution is read, which then includes what these count now.
void BlockSource::read_rows() {
  const auto now = std::chrono::steady_clock::now();
  const auto read = [&](std::vector<TableRow>& rows, MeasuredDevice& measured) {
    for (TableRow& row : rows) {
      read_row(programs_->tables(), rules_, row, measured);
      if (row.retirement) {
        row.retirement->observe(row.requests_in_flight(), now);
      }
    }
  };
  MeasuredDevice no_device;
  read(retiring_, no_device);
  for (auto& [name, measured] : measured_) {
    read(measured.rows, measured);
  }
}

void BlockSource::release_finished() {
  MeasuredDevice no_device;
  release_from(retiring_, no_device);
  for (auto& [name, measured] : measured_) {
    release_from(measured.rows, measured);
  }
}

/// Releases the retiring rows where nothing is in flight any more, or nothing will be seen to end.
void BlockSource::release_from(std::vector<TableRow>& rows, MeasuredDevice& measured) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<bool> over;
  for (const TableRow& row : rows) {
    over.push_back(row.retirement && row.retirement->over(row.in_flight(), now) && !serves_others(row));
  }
  std::vector<TableRow> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!over[i]) {
      kept.push_back(std::move(rows[i]));
      continue;
    }
    for (std::size_t operation = 0; operation < model::kOperations; ++operation) {
      block::mark_in_flight_missed(static_cast<model::Operation>(operation), rows[i], measured);
    }
    if (measured.sampling) {
      rows[i].samples.read(rules_.no_hint, measured.sampling->totals);
    }
    forget_queues_of(rows[i].allocation.device + 1, programs_->tables().queue_entries);
    programs_->tables().forget_requests(rows[i].allocation);
    allocator_.release(rows[i].allocation);
  }
  rows = std::move(kept);
}

void BlockSource::publish_decisions(const model::Inventory& inventory) {
  // Disks that have a row come first: a full table must not leave out those that are measured.
  std::vector<DiskDecision> decisions;
  if (discards_) {
    discards_->update(inventory);
  }
  if (volumes_) {
    volumes_->update(inventory);
  }
  const auto add = [&](const TableRow& row) {
    decisions.push_back({row.disk_name, row.diskseq, row.allocation.device + 1, row.retirement.has_value()});
  };
  for (const auto& [name, measured] : measured_) {
    std::for_each(measured.rows.begin(), measured.rows.end(), add);
  }
  decisions.insert(decisions.end(), without_row_.begin(), without_row_.end());
  std::for_each(retiring_.begin(), retiring_.end(), add);
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured) {
      continue;
    }
    for (const model::Path& path : device.paths) {
      decisions.push_back({path.disk_name, path.diskseq, DEVICE_EXCLUDED, false});
    }
    // Stacked devices have no paths; request-based ones must be known nevertheless.
    if (device.paths.empty()) {
      decisions.push_back({device.name, 0, DEVICE_EXCLUDED, false});
    }
  }
  const Tables& tables = programs_->tables();
  block::publish_decisions(decisions, tables.known_disks, tables.queue_entries);
}

void BlockSource::mark_in_flight_missed(const std::string& device, std::span<const model::Operation> operations) {
  const auto found = measured_.find(device);
  if (found == measured_.end()) {
    return;
  }
  for (TableRow& row : found->second.rows) {
    for (const model::Operation operation : operations) {
      block::mark_in_flight_missed(operation, row, found->second);
    }
  }
}

void BlockSource::release_cgroups(const std::vector<model::CgroupId>& gone) {
  if (attribution_) {
    attribution_->release_cgroups(gone);
  }
}

/// What belongs to devices that are no longer measured is read and forgotten.
void BlockSource::read_attribution() {
  if (!attribution_) {
    return;
  }
  std::vector<MeasuredDevice*> owners(plan_.devices);
  for (auto& [name, measured] : measured_) {
    for (const TableRow& row : measured.rows) {
      owners[row.allocation.device] = &measured;
    }
  }
  for (const AttributedIncrement& increment : attribution_->read()) {
    if (MeasuredDevice* owner = owners[increment.device]; owner != nullptr) {
      owner->attribution.add(increment);
    }
  }
}

void BlockSource::prefer(const model::Device& device, const TableRow& row) {
  device_geometry& geometry = programs_->tables().geometry(row.allocation.device);
  const auto own = preferences_.find(device.name);
  const bool known = own != preferences_.end();
  // Set until both are stored: the kernel's quicker arithmetic must not meet one that is not a power of two.
  geometry.flags |= DEVICE_ODD_WRITE_UNITS;
  geometry.write_granularity = known ? own->second.granularity : device.write_granularity_bytes;
  geometry.write_alignment = known ? own->second.alignment : device.write_granularity_bytes;
  if (std::has_single_bit(geometry.write_granularity) && std::has_single_bit(geometry.write_alignment)) {
    geometry.flags &= ~static_cast<__u32>(DEVICE_ODD_WRITE_UNITS);
  }
}

void BlockSource::set_write_preferences(std::map<std::string, WritePreference> preferences) {
  if (preferences == preferences_) {
    return;
  }
  preferences_ = std::move(preferences);
  for (const auto& [name, measured] : measured_) {
    for (const TableRow& row : measured.rows) {
      prefer(*measured.device, row);
    }
  }
}

void BlockSource::set_effort(model::Effort effort) {
  if (effort_ == model::Effort::nothing || effort_ == effort) {
    return;
  }
  effort_ = effort;
  const auto follow = [&](const TableRow& row) {
    switch_effort(effort, programs_->tables().writable_states[row.allocation.device]);
  };
  for (const auto& [name, measured] : measured_) {
    std::for_each(measured.rows.begin(), measured.rows.end(), follow);
  }
  std::for_each(retiring_.begin(), retiring_.end(), follow);
  if (volumes_) {
    volumes_->pause(effort != model::Effort::everything);
  }
  if (effort == model::Effort::nothing) {
    programs_->detach();
    if (discard_programs_) {
      discard_programs_->detach();
    }
    if (volume_programs_) {
      volume_programs_->detach();
    }
    if (freeze_programs_) {
      freeze_programs_->detach();
    }
  }
}

/// Gives the device's rows the parameters that it should have, while all that is written to it passes through them.
/// Parameters never change while a program may be using them: there is a tick between two sets.
void BlockSource::follow_sampling(const std::string& name, MeasuredDevice& measured) {
  const Tables& tables = programs_->tables();
  const bool may = measured.whole() && effort_ == model::Effort::everything;
  const auto wanted = may ? sampling_.find(name) : sampling_.end();
  if (measured.sampling && (wanted == sampling_.end() || wanted->second != measured.sampling->parameters)) {
    for (const TableRow& row : measured.rows) {
      stop_sampling(tables.sampling(row.allocation.device));
    }
    measured.sampling.reset();
    return;
  }
  if (!measured.sampling && wanted != sampling_.end()) {
    measured.sampling = {wanted->second, {name, ++samplings_, {}, {}}};
    model::DeviceFlashSamples of_earlier_parameters;
    for (TableRow& row : measured.rows) {
      row.samples.read(rules_.no_hint, of_earlier_parameters);
    }
  }
  for (const TableRow& row : measured.rows) {
    if (page_sampling& sampling = tables.sampling(row.allocation.device); measured.sampling && sampling.groups == 0) {
      start_sampling(measured.sampling->parameters, static_cast<__u32>(measured.sampling->totals.sampling), sampling);
    }
  }
}

/// Events first: then the pages counted as written include at least those of the events.
std::shared_ptr<const model::FlashSamples> BlockSource::read_samples() {
  const std::vector<sample_event>& events = programs_->samples().fetch();
  auto result = std::make_shared<model::FlashSamples>();
  SampledDevices numbers;
  for (auto& [name, measured] : measured_) {
    follow_sampling(name, measured);
    if (!measured.sampling) {
      continue;
    }
    model::DeviceFlashSamples& totals = measured.sampling->totals;
    for (TableRow& row : measured.rows) {
      row.samples.read(rules_.no_hint, totals);
    }
    numbers.emplace(static_cast<__u32>(totals.sampling), static_cast<std::uint16_t>(result->devices.size()));
    result->devices.push_back(totals);
  }
  if (result->devices.empty()) {
    return nullptr;
  }
  result->events = decode_samples(events, numbers, rules_.no_hint);
  return result;
}

DeviceSample BlockSource::read_device(MeasuredDevice& measured) {
  for (TableRow& row : measured.rows) {
    read_row(programs_->tables(), rules_, row, measured);
  }
  if (!measured.published) {
    measured.published = std::make_shared<const model::DeviceIo>(measured.io);
  }
  // Without a row nothing was measured, which does not mean that nothing happened.
  if (measured.rows.empty() || effort_ == model::Effort::nothing) {
    return {measured.device, nullptr, measured.events, 0, nullptr, false};
  }
  return {measured.device,
          measured.published,
          measured.events,
          programs_->tables().device_states[measured.drive].discard_last_end_ns,
          attribution_ && effort_ == model::Effort::everything ? measured.attribution.published() : nullptr,
          measured.whole()};
}

std::optional<DeviceSample> BlockSource::sample_device(const std::string& name) {
  const auto measured = measured_.find(name);
  return measured == measured_.end() ? std::nullopt : std::optional(read_device(measured->second));
}

std::vector<std::shared_ptr<const model::BioIo>> BlockSource::sample_volumes() {
  return volumes_ ? volumes_->read() : std::vector<std::shared_ptr<const model::BioIo>>();
}

BlockSample BlockSource::sample() {
  if (end_functions_) {
    end_functions_->advance();
  }
  BlockSample sample;
  for (auto& [name, measured] : measured_) {
    sample.devices.push_back(read_device(measured));
  }
  if (attribution_) {
    read_attribution();
    const bool attributes = effort_ == model::Effort::everything;
    const std::vector<model::CgroupId> departed = attribution_->depart();
    auto device = sample.devices.begin();
    for (auto& [name, measured] : measured_) {
      settle_attribution(rules_, attributes, measured);
      for (const model::CgroupId cgroup : departed) {
        measured.attribution.depart(cgroup);
      }
      (device++)->attribution = measured.rows.empty() || !attributes ? nullptr : measured.attribution.published();
    }
    sample.cgroups = attribution_->cgroups();
  }
  const host_state host = programs_->tables().host_states[0];
  sample.losses[model::index(model::HostLoss::device_table_full)] = host.count[HOST_DEVICE_TABLE_FULL];
  sample.losses[model::index(model::HostLoss::device_pending)] = host.count[HOST_DEVICE_PENDING];
  sample.losses[model::index(model::HostLoss::queue_id_range)] = host.count[HOST_QUEUE_ID_RANGE];
  sample.diskless_requests = host.count[HOST_DISKLESS_REQUESTS];
  if (discards_) {
    sample.discards = discards_->read();
  }
  if (volumes_) {
    sample.bios = sample_volumes();
    sample.volumes_left_out = volumes_->left_out();
  }
  if (freeze_programs_) {
    sample.frozen = freeze_programs_->frozen();
    sample.losses[model::index(model::HostLoss::freeze_events)] = freeze_programs_->events_lost();
  }
  sample.flash = read_samples();
  return sample;
}

}  // namespace ssdpulse::block
