// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/block_source.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <bit>

#include "daemon/sources/block/cell_decoder.h"

namespace ssdpulse::block {
namespace {

SlotDemand demand_of(const model::Path& path) { return {path.hardware_queues, path.queue_depth}; }

std::uint32_t possible_cpus() {
  const int cpus = libbpf_num_possible_cpus();
  return cpus > 0 ? static_cast<std::uint32_t>(cpus) : 1;
}

/// A device keeps its counters for as long as it is the same piece of hardware under the same name.
bool same_incarnation(const model::Device& before, const model::Device& now) {
  if (before.paths.size() == 1 && now.paths.size() == 1) {
    return before.paths[0].diskseq == now.paths[0].diskseq && before.paths[0].disk_name == now.paths[0].disk_name &&
           before.major == now.major && before.minor == now.minor;
  }
  return before.wwid == now.wwid && before.serial == now.serial;
}

}  // namespace

util::Result<std::unique_ptr<BlockSource>> BlockSource::open(const model::Inventory& inventory, bool completion_only) {
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
  source->completion_only_ = completion_only;
  source->plan_ = plan_memory(demands, possible_cpus());
  auto programs = BlockPrograms::load(source->btf_, source->plan_, completion_only);
  if (!programs) {
    return tl::make_unexpected(programs.error());
  }
  source->programs_ = std::move(*programs);
  for (std::uint32_t device = source->plan_.devices; device > 0; --device) {
    source->free_devices_.push_back(device - 1);
  }
  source->free_slots_[0] = source->plan_.slots;
  // The disks are made known first: whatever is issued after the attach is counted from its first I/O.
  source->update(inventory);
  if (auto attached = source->programs_->attach(); !attached) {
    return tl::make_unexpected(attached.error());
  }
  return source;
}

BlockSource::~BlockSource() = default;

void BlockSource::update(const model::Inventory& inventory) {
  std::map<std::string, Measured> before = std::exchange(measured_, {});
  for (const model::Device& device : inventory.devices) {
    if (device.coverage != model::Coverage::measured) {
      continue;
    }
    Measured measured;
    if (auto known = before.find(device.name);
        known != before.end() && same_incarnation(*known->second.device, device)) {
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
      retire(std::move(place));
    }
  }
  release_finished();
  for (auto& [name, measured] : measured_) {
    give_places(measured);
  }
  publish_decisions(inventory);
}

void BlockSource::give_places(Measured& measured) {
  const std::vector<model::Path>& paths = measured.device->paths;
  for (auto place = measured.places.begin(); place != measured.places.end();) {
    const bool still_there = std::any_of(paths.begin(), paths.end(), [&](const model::Path& path) {
      return path.disk_name == place->disk_name && path.diskseq == place->diskseq;
    });
    if (still_there) {
      ++place;
    } else {
      retire(std::move(*place));
      place = measured.places.erase(place);
    }
  }
  for (const model::Path& path : paths) {
    const bool has_place = std::any_of(measured.places.begin(), measured.places.end(),
                                       [&](const Place& place) { return place.disk_name == path.disk_name; });
    if (!has_place && !give_place(measured, path)) {
      ++homeless_disks_;
    }
  }
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
  device_geometry& geometry = tables.geometries[device];
  geometry.slot_base = base;
  geometry.slot_mask = slots - 1;
  geometry.slot_stride = path.queue_depth;
  geometry.flags = slots_are_exact(demand_of(path), slots) ? SLOTS_EXACT : 0;
  geometry.drive = measured.drive;

  Place place{device, path.disk_name, path.diskseq, base, slots, {}, {}, {}};
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

void BlockSource::retire(Place&& place) { retiring_.push_back(std::move(place)); }

/// A place is free again when nothing of it is in flight; one whose requests never come back is never reused.
void BlockSource::release_finished() {
  Measured nobody;
  for (auto place = retiring_.begin(); place != retiring_.end();) {
    read_place(*place, nobody);
    const bool in_flight = std::any_of(place->in_flight.begin(), place->in_flight.end(),
                                       [](std::int64_t requests) { return requests != 0; });
    const bool shared = std::any_of(measured_.begin(), measured_.end(), [&](const auto& entry) {
      return !entry.second.places.empty() && entry.second.drive == place->device;
    });
    if (in_flight || shared) {
      ++place;
      continue;
    }
    free_devices_.push_back(place->device);
    // Neighbouring free regions grow together again.
    auto region = free_slots_.emplace(place->slot_base, place->slots).first;
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
    place = retiring_.erase(place);
  }
}

void BlockSource::publish_decisions(const model::Inventory& inventory) {
  std::vector<DiskDecision> decisions;
  for (const auto& [name, measured] : measured_) {
    for (const Place& place : measured.places) {
      decisions.push_back({place.disk_name, place.diskseq, place.device + 1, false});
    }
  }
  for (const Place& place : retiring_) {
    if (place.diskseq != 0) {
      decisions.push_back({place.disk_name, place.diskseq, place.device + 1, true});
    }
  }
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured || device.coverage == model::Coverage::empty) {
      continue;
    }
    decisions.push_back({device.name, 0, DEVICE_EXCLUDED, false});
    for (const model::Path& path : device.paths) {
      if (path.disk_name != device.name) {
        decisions.push_back({path.disk_name, 0, DEVICE_EXCLUDED, false});
      }
    }
  }
  const Tables& tables = programs_->tables();
  block::publish_decisions(decisions, tables.known_disks, tables.queue_entries);
}

bool BlockSource::read_place(Place& place, Measured& measured) {
  bool changed = false;
  const device_state& state = programs_->tables().device_states[place.device];
  for (std::uint32_t operation_class = 0; operation_class < CLASSES; ++operation_class) {
    // Events first, completions before issues: what is in flight is never understated by the order of reading.
    operation_events& last = place.last_events[operation_class];
    const operation_events now = state.events[operation_class];
    model::OperationIo& io = measured.io.operations[operation_class];
    const EventIncrements events = increments(now, last);
    if (events.any) {
      decode_events(events, measured.io, io);
      measured.events.missed[operation_class] += events.count[EVENT_COMPLETION_MISSED];
      measured.events.strays[operation_class] += events.count[EVENT_STRAY];
      measured.events.failovers[operation_class] += events.count[EVENT_FAILOVER];
      measured.events.flush_data_stages += events.count[EVENT_FLUSH_DATA_STAGE];
      last = now;
      changed = true;
    }
    const CellWords* words = place.readers[operation_class].read();
    if (words != nullptr) {
      decode_cell(*words, io);
      changed = true;
    }
    if (events.any || words != nullptr) {
      std::int64_t& in_flight = place.in_flight[operation_class];
      const std::int64_t was = in_flight;
      if (words != nullptr && !completion_only_) {
        in_flight += static_cast<std::int64_t>(words->counters[kIssues]) -
                     static_cast<std::int64_t>(words->counters[kCompletions]);
      }
      in_flight -= static_cast<std::int64_t>(events.count[EVENT_FAILOVER] + events.count[EVENT_COMPLETION_MISSED] +
                                             events.count[EVENT_SLOT_COLLISION]);
      io.in_flight += in_flight - was;
    }
  }
  return changed;
}

DeviceSample BlockSource::read_device(Measured& measured) {
  bool changed = measured.published == nullptr;
  for (Place& place : measured.places) {
    changed = read_place(place, measured) || changed;
  }
  if (changed) {
    measured.published = std::make_shared<const model::DeviceIo>(measured.io);
  }
  return {measured.device, measured.published, measured.events};
}

std::optional<DeviceSample> BlockSource::sample_device(const std::string& name) {
  const auto measured = measured_.find(name);
  return measured == measured_.end() ? std::nullopt : std::optional(read_device(measured->second));
}

BlockSample BlockSource::sample() {
  BlockSample sample;
  for (auto& [name, measured] : measured_) {
    sample.devices.push_back(read_device(measured));
  }
  const host_state host = programs_->tables().host_states[0];
  sample.losses[model::index(model::HostLoss::device_table_full)] = homeless_disks_;
  sample.losses[model::index(model::HostLoss::device_pending)] = host.count[HOST_DEVICE_PENDING];
  sample.losses[model::index(model::HostLoss::queue_id_range)] = host.count[HOST_QUEUE_ID_RANGE];
  sample.diskless_requests = host.count[HOST_DISKLESS_REQUESTS];
  return sample;
}

}  // namespace ssdpulse::block
