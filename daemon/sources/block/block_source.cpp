// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/block_source.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

#include "daemon/model/incarnation.h"

namespace ssdpulse::block {
namespace {

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
  auto btf = read_kernel_btf();
  if (!btf) {
    return tl::make_unexpected(btf.error());
  }
  std::vector<SlotDemand> demands;
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured) {
      std::transform(device.paths.begin(), device.paths.end(), std::back_inserter(demands), demand_of);
    }
  }
  std::unique_ptr<BlockSource> source(new BlockSource);
  source->btf_ = std::move(*btf);
  if (choices.hints_of_pages && !choices.completion_only) {
    source->btf_.hints_of_pages = *choices.hints_of_pages;
    source->btf_.features["write_hint"] += *choices.hints_of_pages ? "; pages: always" : "; pages: never";
  }
  source->rules_.issues_are_seen = !choices.completion_only;
  const bool some_are_lost =
      source->btf_.hint_reach == model::HintReach::file_system_drops_buffered && !source->btf_.hints_of_pages;
  source->rules_.no_hint = default_hint(source->btf_.bios_have_hints && !some_are_lost);
  source->plan_ = plan_memory(demands, cpu_numbers());
  auto programs = BlockPrograms::load(source->btf_, source->plan_, choices.completion_only);
  if (!programs) {
    return tl::make_unexpected(programs.error());
  }
  source->programs_ = std::move(*programs);
  source->allocator_ = PlaceAllocator(source->plan_.devices, source->plan_.slots);
  source->open_discards(inventory);
  if (!choices.completion_only) {
    source->end_functions_.emplace(source->programs_->tables().end_functions);
    source->btf_.features["write_class"] =
        source->end_functions_->resolved() ? "end functions, flags and pages" : "flags and pages";
  }
  // The disks are made known first: whatever is issued after the attach is counted from its first I/O.
  source->update(inventory);
  if (auto attached = source->programs_->attach(); !attached) {
    return tl::make_unexpected(attached.error());
  }
  return source;
}

BlockSource::~BlockSource() = default;

/// Without it all discards are `other`, and nothing else is lost.
void BlockSource::open_discards(const model::Inventory& inventory) {
  const std::uint32_t places = discard_places(inventory);
  auto programs = DiscardPrograms::open(btf_, places, rules_.issues_are_seen);
  if (!programs) {
    discards_unseen_ = programs.error().message;
    btf_.features["discard_submitters"] = "unseen";
    return;
  }
  discard_programs_ = std::move(*programs);
  discards_.emplace(discard_programs_->cells(), discard_programs_->volumes(), discard_programs_->sees_partitions());
  plan_.discard_places = places;
  btf_.features["discard_submitters"] = discard_programs_->decision();
}

std::vector<model::ProgramStats> BlockSource::program_stats() const {
  auto stats = programs_->program_stats();
  if (discard_programs_) {
    const auto more = discard_programs_->program_stats();
    stats.insert(stats.end(), more.begin(), more.end());
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
    for (Place& place : gone.places) {
      retire(place);
      // It may be released, and its index given to another disk, before the decisions are published.
      close_entries_of(place.allocation.device + 1, programs_->tables().known_disks);
      retiring_.push_back(std::move(place));
    }
  }
  release_finished();
  without_place_.clear();
  for (auto& [name, measured] : measured_) {
    keep_places(measured);
  }
  publish_decisions(inventory);
}

/// Paths that came get places, those of paths that went retire: what they still finish counts for the device.
void BlockSource::keep_places(MeasuredDevice& measured) {
  const std::vector<model::Path>& paths = measured.device->paths;
  for (Place& place : measured.places) {
    const auto path =
        std::find_if(paths.begin(), paths.end(), [&](const model::Path& candidate) { return place.is_of(candidate); });
    // Seen before its queue was registered: slots useless.
    const bool useless = path != paths.end() && place.demand.queue_depth == 0 && path->queue_depth > 0;
    if (path == paths.end() || useless) {
      retire(place);
      continue;
    }
    prefer(*measured.device, place);
    if (!slots_are_exact(demand_of(*path), place.allocation.slots) || path->queue_depth > place.demand.queue_depth) {
      // The queue has grown: requests may share slots now, which is no missed completion.
      programs_->tables().geometry(place.allocation.device).flags &= ~static_cast<__u32>(SLOTS_EXACT);
    }
  }
  for (const model::Path& path : paths) {
    const bool has_place = std::any_of(measured.places.begin(), measured.places.end(), [&](const Place& place) {
      return place.disk_name == path.disk_name && !place.retirement;
    });
    if (!has_place && !take_back(measured, path) && !give_place(measured, path)) {
      without_place_.push_back({path.disk_name, path.diskseq, DEVICE_WITHOUT_PLACE});
    }
  }
}

/// A device that was excluded for a while finds its old place, with whatever is still in flight there.
bool BlockSource::take_back(MeasuredDevice& measured, const model::Path& path) {
  const auto place = std::find_if(retiring_.begin(), retiring_.end(),
                                  [&](const Place& candidate) { return candidate.is_of(path) && path.diskseq != 0; });
  if (place == retiring_.end() || !measured.places.empty()) {
    return false;
  }
  for (std::uint32_t operation_class = 0; operation_class < CLASSES; ++operation_class) {
    measured.io.operations[operation_class].in_flight += place->requests[operation_class].requests();
  }
  device_geometry& geometry = programs_->tables().geometry(place->allocation.device);
  measured.drive = geometry.drive;
  geometry.flags &= ~static_cast<__u32>(DEVICE_RETIRING);
  place->retirement.reset();
  measured.places.push_back(std::move(*place));
  retiring_.erase(place);
  return true;
}

bool BlockSource::give_place(MeasuredDevice& measured, const model::Path& path) {
  const auto allocation = allocator_.allocate(demand_of(path));
  if (!allocation) {
    return false;
  }
  const std::uint32_t device = allocation->device;
  const Tables& tables = programs_->tables();
  if (measured.places.empty()) {
    measured.drive = device;
  }
  device_geometry& geometry = tables.geometry(device);
  geometry.slot_base = allocation->slot_base;
  geometry.slot_mask = allocation->slots - 1;
  geometry.slot_stride = path.queue_depth;
  geometry.flags = slots_are_exact(demand_of(path), allocation->slots) ? SLOTS_EXACT : 0;
  geometry.drive = measured.drive;
  // Whatever queue still remembers this index belonged to a disk that is gone, and has a copy of its geometry.
  forget_queues_of(device + 1, tables.queue_entries);
  measured.places.emplace_back(tables, plan_, path, *allocation);
  prefer(*measured.device, measured.places.back());
  return true;
}

void BlockSource::retire(Place& place) {
  if (!place.retirement) {
    place.retirement.emplace(std::chrono::steady_clock::now());
    programs_->tables().geometry(place.allocation.device).flags |= DEVICE_RETIRING;
  }
}

/// Its interference state may serve the other paths of the same drive.
bool BlockSource::serves_others(const Place& place) const {
  const auto relies_on_it = [&](const Place& other) {
    return &other != &place &&
           programs_->tables().device_states[other.allocation.device].geometry.drive == place.allocation.device;
  };
  return std::any_of(retiring_.begin(), retiring_.end(), relies_on_it) ||
         std::any_of(measured_.begin(), measured_.end(), [&](const auto& named) {
           return std::any_of(named.second.places.begin(), named.second.places.end(), relies_on_it);
         });
}

void BlockSource::release_finished() {
  MeasuredDevice nobody;
  release_from(retiring_, nobody);
  for (auto& [name, measured] : measured_) {
    release_from(measured.places, measured);
  }
}

/// Of the places that retire, those where nothing is in flight any more, or nothing will be seen to end.
void BlockSource::release_from(std::vector<Place>& places, MeasuredDevice& measured) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<bool> over;
  for (Place& place : places) {
    read_place(programs_->tables(), rules_, place, measured);
    if (place.retirement) {
      place.retirement->look(place.requests_in_flight(), now);
    }
    over.push_back(place.retirement && place.retirement->over(place.in_flight(), now) && !serves_others(place));
  }
  std::vector<Place> kept;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!over[i]) {
      kept.push_back(std::move(places[i]));
      continue;
    }
    for (std::size_t operation = 0; operation < model::kOperations; ++operation) {
      block::give_up(static_cast<model::Operation>(operation), places[i], measured);
    }
    forget_queues_of(places[i].allocation.device + 1, programs_->tables().queue_entries);
    programs_->tables().forget_requests(places[i].allocation);
    allocator_.release(places[i].allocation);
  }
  places = std::move(kept);
}

void BlockSource::publish_decisions(const model::Inventory& inventory) {
  // Disks that have a place come first: a full table must not cost those that are measured.
  std::vector<DiskDecision> decisions;
  if (discards_) {
    discards_->update(inventory);
  }
  const auto add = [&](const Place& place) {
    decisions.push_back({place.disk_name, place.diskseq, place.allocation.device + 1, place.retirement.has_value()});
  };
  for (const auto& [name, measured] : measured_) {
    std::for_each(measured.places.begin(), measured.places.end(), add);
  }
  decisions.insert(decisions.end(), without_place_.begin(), without_place_.end());
  std::for_each(retiring_.begin(), retiring_.end(), add);
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured) {
      continue;
    }
    for (const model::Path& path : device.paths) {
      decisions.push_back({path.disk_name, path.diskseq, DEVICE_EXCLUDED, false});
    }
    // Stacked devices have no paths; request-based ones must be known all the same.
    if (device.paths.empty()) {
      decisions.push_back({device.name, 0, DEVICE_EXCLUDED, false});
    }
  }
  const Tables& tables = programs_->tables();
  block::publish_decisions(decisions, tables.known_disks, tables.queue_entries);
}

void BlockSource::give_up(const std::string& device, std::span<const model::Operation> operations) {
  const auto found = measured_.find(device);
  if (found == measured_.end()) {
    return;
  }
  for (Place& place : found->second.places) {
    for (const model::Operation operation : operations) {
      block::give_up(operation, place, found->second);
    }
  }
}

void BlockSource::prefer(const model::Device& device, const Place& place) {
  device_geometry& geometry = programs_->tables().geometry(place.allocation.device);
  const auto own = preferences_.find(device.name);
  const bool told = own != preferences_.end();
  geometry.write_granularity = told ? own->second.granularity : device.write_granularity_bytes;
  geometry.write_alignment = told ? own->second.alignment : device.write_granularity_bytes;
}

void BlockSource::set_write_preferences(std::map<std::string, WritePreference> preferences) {
  if (preferences == preferences_) {
    return;
  }
  preferences_ = std::move(preferences);
  for (const auto& [name, measured] : measured_) {
    for (const Place& place : measured.places) {
      prefer(*measured.device, place);
    }
  }
}

DeviceSample BlockSource::read_device(MeasuredDevice& measured) {
  for (Place& place : measured.places) {
    read_place(programs_->tables(), rules_, place, measured);
  }
  if (!measured.published) {
    measured.published = std::make_shared<const model::DeviceIo>(measured.io);
  }
  // Without a place nothing was measured, which is not the same as nothing happened.
  if (measured.places.empty()) {
    return {measured.device, nullptr, measured.events};
  }
  return {measured.device, measured.published, measured.events,
          programs_->tables().device_states[measured.drive].discard_last_end_ns};
}

std::optional<DeviceSample> BlockSource::sample_device(const std::string& name) {
  const auto measured = measured_.find(name);
  return measured == measured_.end() ? std::nullopt : std::optional(read_device(measured->second));
}

BlockSample BlockSource::sample() {
  if (end_functions_) {
    end_functions_->advance();
  }
  BlockSample sample;
  for (auto& [name, measured] : measured_) {
    sample.devices.push_back(read_device(measured));
  }
  const host_state host = programs_->tables().host_states[0];
  sample.losses[model::index(model::HostLoss::device_table_full)] = host.count[HOST_DEVICE_TABLE_FULL];
  sample.losses[model::index(model::HostLoss::device_pending)] = host.count[HOST_DEVICE_PENDING];
  sample.losses[model::index(model::HostLoss::queue_id_range)] = host.count[HOST_QUEUE_ID_RANGE];
  sample.diskless_requests = host.count[HOST_DISKLESS_REQUESTS];
  if (discards_) {
    sample.discards = discards_->read();
  }
  return sample;
}

}  // namespace ssdpulse::block
