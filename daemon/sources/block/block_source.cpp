// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/block_source.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

#include "daemon/model/incarnation.h"
#include "daemon/sources/block/cell_decoder.h"

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
  source->completion_only_ = choices.completion_only;
  source->plan_ = plan_memory(demands, cpu_numbers());
  auto programs = BlockPrograms::load(source->btf_, source->plan_, choices.completion_only);
  if (!programs) {
    return tl::make_unexpected(programs.error());
  }
  source->programs_ = std::move(*programs);
  for (std::uint32_t device = source->plan_.devices; device > 0; --device) {
    source->free_devices_.push_back(device - 1);
  }
  source->free_slots_[0] = source->plan_.slots;
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
  auto programs = DiscardPrograms::open(btf_, places, !completion_only_);
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
  std::map<std::string, Measured> before = std::exchange(measured_, {});
  for (const model::Device& device : inventory.devices) {
    if (device.coverage != model::Coverage::measured) {
      continue;
    }
    Measured measured;
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
      set_retiring(place, true);
      // It may be released, and its index given to another disk, before the decisions are published.
      close_entries_of(place.device + 1, programs_->tables().known_disks);
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
void BlockSource::keep_places(Measured& measured) {
  const std::vector<model::Path>& paths = measured.device->paths;
  for (Place& place : measured.places) {
    const auto path = std::find_if(paths.begin(), paths.end(), [&](const model::Path& candidate) {
      return model::same_disk(place.disk_name, place.diskseq, candidate);
    });
    // Seen before its queue was registered: slots useless.
    const bool useless = path != paths.end() && place.demand.queue_depth == 0 && path->queue_depth > 0;
    if (path == paths.end() || useless) {
      set_retiring(place, true);
      continue;
    }
    prefer(*measured.device, place);
    if (!slots_are_exact(demand_of(*path), place.slots) || path->queue_depth > place.demand.queue_depth) {
      // The queue has grown: requests may share slots now, which is no missed completion.
      programs_->tables().geometry(place.device).flags &= ~static_cast<__u32>(SLOTS_EXACT);
    }
  }
  for (const model::Path& path : paths) {
    const bool has_place = std::any_of(measured.places.begin(), measured.places.end(), [&](const Place& place) {
      return place.disk_name == path.disk_name && !place.retiring;
    });
    if (!has_place && !take_back(measured, path) && !give_place(measured, path)) {
      without_place_.push_back({path.disk_name, path.diskseq, DEVICE_WITHOUT_PLACE});
    }
  }
}

/// A device that was excluded for a while finds its old place, with whatever is still in flight there.
bool BlockSource::take_back(Measured& measured, const model::Path& path) {
  const auto place = std::find_if(retiring_.begin(), retiring_.end(), [&](const Place& candidate) {
    return path.diskseq != 0 && model::same_disk(candidate.disk_name, candidate.diskseq, path);
  });
  if (place == retiring_.end() || !measured.places.empty()) {
    return false;
  }
  for (std::uint32_t operation_class = 0; operation_class < CLASSES; ++operation_class) {
    measured.io.operations[operation_class].in_flight += place->in_flight[operation_class].requests();
  }
  measured.drive = programs_->tables().device_states[place->device].geometry.drive;
  set_retiring(*place, false);
  measured.places.push_back(std::move(*place));
  retiring_.erase(place);
  return true;
}

bool BlockSource::give_place(Measured& measured, const model::Path& path) {
  // Best fit, and a smaller region rather than none: then slots are shared and collisions are counted.
  auto best = free_slots_.end();
  const std::uint32_t wanted = slots_for(demand_of(path));
  for (auto region = free_slots_.begin(); region != free_slots_.end(); ++region) {
    const bool fits = region->second >= wanted;
    if (best == free_slots_.end() || (fits && (best->second < wanted || region->second < best->second)) ||
        (!fits && best->second < wanted && region->second > best->second)) {
      best = region;
    }
  }
  if (free_devices_.empty() || best == free_slots_.end()) {
    return false;
  }
  const std::uint32_t device = free_devices_.back();
  free_devices_.pop_back();
  const auto [base, available] = *best;
  const std::uint32_t slots = std::min(wanted, std::bit_floor(available));
  free_slots_.erase(best);
  if (available > slots) {
    free_slots_[base + slots] = available - slots;
  }

  const Tables& tables = programs_->tables();
  if (measured.places.empty()) {
    measured.drive = device;
  }
  device_geometry& geometry = tables.geometry(device);
  geometry.slot_base = base;
  geometry.slot_mask = slots - 1;
  geometry.slot_stride = path.queue_depth;
  geometry.flags = slots_are_exact(demand_of(path), slots) ? SLOTS_EXACT : 0;
  geometry.drive = measured.drive;
  // Whatever queue still remembers this index belonged to a disk that is gone, and has a copy of its geometry.
  forget_queues_of(device + 1, tables.queue_entries);

  const WriteReader writes(tables.write_cells.subspan(std::size_t{device} * plan_.cpus, plan_.cpus),
                           tables.tagged_cells.subspan(std::size_t{device} * plan_.tagged_cells, plan_.tagged_cells));
  const CommitReader commits(tables.commit_cells.subspan(std::size_t{device} * plan_.commit_cells, plan_.commit_cells));
  Place place{device, path.disk_name, path.diskseq, demand_of(path), base, slots, {}, writes, commits, {}, {}, false};
  prefer(*measured.device, place);
  for (std::uint32_t operation_class = 0; operation_class < CLASSES; ++operation_class) {
    if (operation_class < HOT_CLASSES) {
      place.readers.emplace_back(tables.hot_cells, std::size_t{device} * plan_.cpus * HOT_CLASSES + operation_class,
                                 HOT_CLASSES, plan_.cpus);
    } else {
      place.readers.emplace_back(tables.cold_cells, std::size_t{device} * COLD_CLASSES + operation_class - HOT_CLASSES,
                                 1, 1);
    }
    place.last_events[operation_class] = tables.device_states[device].events[operation_class];
  }
  measured.places.push_back(std::move(place));
  return true;
}

void BlockSource::set_retiring(Place& place, bool retiring) {
  place.retiring = retiring;
  __u32& flags = programs_->tables().geometry(place.device).flags;
  flags = retiring ? flags | DEVICE_RETIRING : flags & ~static_cast<__u32>(DEVICE_RETIRING);
}

/// A place is free again when nothing of it is in flight; one whose requests never come back is never reused.
void BlockSource::release_finished() {
  Measured nobody;
  for (Place& place : retiring_) {
    read_place(place, nobody);
  }
  std::vector<Place*> all;
  for (Place& place : retiring_) {
    all.push_back(&place);
  }
  for (auto& [name, measured] : measured_) {
    for (Place& place : measured.places) {
      read_place(place, measured);
      all.push_back(&place);
    }
  }
  const Tables& tables = programs_->tables();
  const auto finished = [&](const Place& place) {
    const bool in_flight = std::any_of(place.in_flight.begin(), place.in_flight.end(),
                                       [](const InFlight& one) { return one.requests() != 0; });
    // Its interference state may serve the other paths of the same drive.
    const bool shared = std::any_of(all.begin(), all.end(), [&](const Place* other) {
      return other != &place && tables.device_states[other->device].geometry.drive == place.device;
    });
    return place.retiring && !in_flight && !shared;
  };
  const auto release_from = [&](std::vector<Place>& places) {
    std::vector<bool> done;
    std::transform(places.begin(), places.end(), std::back_inserter(done), finished);
    std::vector<Place> kept;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (done[i]) {
        release(places[i]);
      } else {
        kept.push_back(std::move(places[i]));
      }
    }
    places = std::move(kept);
  };
  release_from(retiring_);
  for (auto& [name, measured] : measured_) {
    if (std::any_of(measured.places.begin(), measured.places.end(),
                    [](const Place& place) { return place.retiring; })) {
      all.clear();
      for (Place& place : measured.places) {
        all.push_back(&place);
      }
      release_from(measured.places);
    }
  }
}

void BlockSource::release(const Place& place) {
  free_devices_.push_back(place.device);
  // Neighbouring free regions grow together again.
  auto region = free_slots_.emplace(place.slot_base, place.slots).first;
  if (auto next = std::next(region); next != free_slots_.end() && region->first + region->second == next->first) {
    region->second += next->second;
    free_slots_.erase(next);
  }
  if (region != free_slots_.begin()) {
    if (auto previous = std::prev(region); previous->first + previous->second == region->first) {
      previous->second += region->second;
      free_slots_.erase(region);
    }
  }
}

void BlockSource::publish_decisions(const model::Inventory& inventory) {
  // Disks that have a place come first: a full table must not cost those that are measured.
  std::vector<DiskDecision> decisions;
  if (discards_) {
    discards_->update(inventory);
  }
  const auto add = [&](const Place& place) {
    decisions.push_back({place.disk_name, place.diskseq, place.device + 1, place.retiring});
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

/// Every read adds to measured.io, whatever it is for; what was published before is then out of date.
void BlockSource::read_place(Place& place, Measured& measured) {
  const device_state& state = programs_->tables().device_states[place.device];
  for (std::uint32_t operation_class = 0; operation_class < CLASSES; ++operation_class) {
    // Events first, then completions, then issues: what is in flight is never understated by the order of reading.
    operation_events& last = place.last_events[operation_class];
    const operation_events now = state.events[operation_class];
    model::OperationIo& io = measured.io.operations[operation_class];
    EventIncrements events = increments(now, last);
    const CellWords* words = place.readers[operation_class].read();
    if (!events.any && words == nullptr) {
      continue;
    }
    measured.published.reset();
    InFlight& in_flight = place.in_flight[operation_class];
    const bool issues_seen = words != nullptr && !completion_only_;
    io.in_flight -= in_flight.requests();
    in_flight.add(issues_seen ? words->counters[kIssues] : 0, issues_seen ? words->counters[kCompletions] : 0, events);
    io.in_flight += in_flight.requests();
    if (events.any) {
      decode_events(events, measured.io, io);
      measured.events.missed[operation_class] += events.count[EVENT_COMPLETION_MISSED];
      measured.events.strays[operation_class] += events.count[EVENT_STRAY];
      measured.events.flush_data_stages += events.count[EVENT_FLUSH_DATA_STAGE];
      measured.events.lone_flushes += events.count[EVENT_LONE_FLUSH];
      last = now;
    }
    if (words != nullptr) {
      decode_cell(*words, io);
      if (operation_class == CLASS_WRITE && !completion_only_) {
        read_writes(place, measured);
      }
    }
    if (operation_class == CLASS_WRITE || operation_class == CLASS_FLUSH) {
      place.commits.read(measured.io.commit_latency);
    }
  }
}

void BlockSource::give_up(const std::string& device, std::span<const model::Operation> operations) {
  const auto found = measured_.find(device);
  if (found == measured_.end()) {
    return;
  }
  Measured& measured = found->second;
  measured.published.reset();
  for (Place& place : measured.places) {
    for (const model::Operation operation : operations) {
      const std::uint64_t requests = place.in_flight[model::index(operation)].give_up();
      measured.io.operations[model::index(operation)].in_flight -= static_cast<std::int64_t>(requests);
      measured.io.losses[model::index(model::Loss::completion_missed)] += requests;
      measured.events.missed[model::index(operation)] += requests;
    }
  }
}

/// After the hot cells of the same place: see complete_latency.
void BlockSource::read_writes(Place& place, Measured& measured) {
  const bool some_are_lost = btf_.hint_reach == model::HintReach::file_system_drops_buffered && !btf_.hints_of_pages;
  const model::WriteHint otherwise = default_hint(btf_.bios_have_hints && !some_are_lost);
  decode_writes(place.writes.read(), otherwise, measured.io.writes);
  complete_latency(measured.io.operation(model::Operation::write), otherwise, measured.io.writes);
}

void BlockSource::prefer(const model::Device& device, const Place& place) {
  device_geometry& geometry = programs_->tables().geometry(place.device);
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

DeviceSample BlockSource::read_device(Measured& measured) {
  for (Place& place : measured.places) {
    read_place(place, measured);
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
