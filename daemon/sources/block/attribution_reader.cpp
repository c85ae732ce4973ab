// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/attribution_reader.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "daemon/sources/block/kernel_words.h"

namespace ssdpulse::block {
namespace {

template <typename Words>
model::AttributedTotals totals_of(const Words& words) {
  return {load(words.ios), load(words.bytes), load(words.device_ns)};
}

AttributedIncrement increment_of(std::uint64_t key, const model::AttributedTotals& totals) {
  return {static_cast<std::uint32_t>(key >> ATTRIBUTION_DEVICE_SHIFT) & ATTRIBUTION_DEVICE_MASK,
          static_cast<std::uint32_t>(key >> ATTRIBUTION_OPERATION_SHIFT) & (ATTRIBUTED_OPERATIONS - 1),
          static_cast<std::uint32_t>(key) & (PATH_CODES - 1),
          {},
          totals};
}

std::uint64_t serial_of(std::uint64_t key) { return key >> ATTRIBUTION_SERIAL_SHIFT; }

}  // namespace

AttributionReader::AttributionReader(const Tables& tables, const MemoryPlan& plan)
    : tables_(tables),
      cells_of_cpu_(std::size_t{plan.attribution_sets} * ATTRIBUTED_IN_SET),
      announcements_(plan.announcements),
      others_of_device_(plan.unattributed_cells),
      cpus_(plan.cpus),
      owners_{{0, model::kNoCgroup}},
      published_(std::make_shared<const model::SeenCgroups>()) {}

attributed& AttributionReader::cell(std::size_t index) const {
  return tables_.attributions[index / ATTRIBUTED_IN_SET].cell[index % ATTRIBUTED_IN_SET];
}

std::size_t AttributionReader::cells_in_use() const {
  std::size_t cells = 0;
  for (const Cpu& cpu : cpus_) {
    cells += cpu.views.size();
  }
  return cells;
}

/// Only we give cells back, so those that were taken before still are.
void AttributionReader::find_new(std::size_t number, Cpu& cpu) {
  std::vector<View> views;
  auto known = cpu.views.begin();
  for (std::size_t index = number * cells_of_cpu_; index < (number + 1) * cells_of_cpu_; ++index) {
    if (known != cpu.views.end() && known->index == index) {
      views.push_back(*known++);
    } else if (const std::uint64_t key = load(cell(index).key); key != ATTRIBUTION_FREE) {
      views.push_back({index, key});
    }
  }
  cpu.views = std::move(views);
}

void AttributionReader::hear(std::size_t cpu) {
  announcements& state = tables_.announcement_states[cpu];
  const std::uint64_t written = load(state.written);
  std::uint64_t read = load(state.read);
  for (; read != written; ++read) {
    const announced_cgroup& entry = tables_.announced_cgroups[cpu * announcements_ + read % announcements_];
    owners_[entry.serial] = entry.cgroup;
    seen_[entry.cgroup] = {entry.parent, std::string(entry.name, strnlen(entry.name, sizeof(entry.name) - 1))};
    published_.reset();
  }
  store(state.read, read);
}

void AttributionReader::read_view(View& view) {
  const model::AttributedTotals now = totals_of(cell(view.index));
  if (now == view.last) {
    return;
  }
  const auto owner = owners_.find(serial_of(view.key));
  if (owner == owners_.end() && !view.was_unknown) {
    view.was_unknown = true;
    return;
  }
  model::AttributedTotals difference = now;
  difference -= view.last;
  view.last = now;
  increments_.push_back(increment_of(view.key, difference));
  if (owner == owners_.end()) {
    return;
  }
  increments_.back().owner = owner->second;
  if (const auto leaving = leaving_.find(owner->second); leaving != leaving_.end() && leaving->second == Leave::rests) {
    leaving->second = Leave::moved;
  }
}

void AttributionReader::read_others() {
  for (std::size_t index = 0; index < tables_.unattributed_cells.size(); ++index) {
    const unattributed& cell = tables_.unattributed_cells[index];
    const std::uint64_t events = load(cell.events);
    if (events == 0) {
      continue;
    }
    auto& [events_before, before] = others_[index];
    if (events == events_before) {
      continue;
    }
    events_before = events;
    const auto device = static_cast<std::uint32_t>(index / others_of_device_);
    for (std::uint32_t operation = 0; operation < ATTRIBUTED_OPERATIONS; ++operation) {
      for (std::uint32_t path = 0; path < PATH_CODES; ++path) {
        const model::AttributedTotals now = totals_of(cell.of[operation][path]);
        model::AttributedTotals difference = now;
        difference -= before[operation][path];
        before[operation][path] = now;
        if (!(difference == model::AttributedTotals{})) {
          increments_.push_back({device, operation, path, {}, difference});
        }
      }
    }
  }
}

const std::vector<AttributedIncrement>& AttributionReader::read() {
  increments_.clear();
  for (std::size_t number = 0; number < cpus_.size(); ++number) {
    Cpu& cpu = cpus_[number];
    const std::uint64_t taken = load(tables_.announcement_states[number].taken);
    if (taken != cpu.taken) {
      find_new(number, cpu);
      cpu.taken = taken;
    }
    // A cgroup is announced before its cell is taken.
    hear(number);
    for (View& view : cpu.views) {
      read_view(view);
    }
  }
  read_others();
  if (!published_) {
    published_ = std::make_shared<const model::SeenCgroups>(seen_);
  }
  return increments_;
}

void AttributionReader::release_cgroups(const std::vector<model::CgroupId>& gone) {
  for (const model::CgroupId cgroup : gone) {
    if (seen_.count(cgroup) != 0) {
      leaving_.emplace(cgroup, Leave::moved);
    }
  }
}

AttributionReader::Serials AttributionReader::serials_of(const std::unordered_set<model::CgroupId>& cgroups) const {
  Serials serials;
  std::copy_if(owners_.begin(), owners_.end(), std::inserter(serials, serials.end()),
               [&](const auto& named) { return cgroups.count(named.second) != 0; });
  return serials;
}

/// From here on nothing is added to their cells, except by a program that is doing so right now.
void AttributionReader::close(const std::unordered_set<model::CgroupId>& cgroups) {
  const Serials serials = serials_of(cgroups);
  for (const auto& [serial, cgroup] : serials) {
    for (announcements& state : tables_.announcement_states) {
      __u64& known = state.known[cgroup_known_at(serial)];
      if (load(known) == serial) {
        store(known, 0);
      }
    }
  }
  for (Cpu& cpu : cpus_) {
    for (View& view : cpu.views) {
      if (serials.count(serial_of(view.key)) != 0) {
        view.leaving = true;
        store(cell(view.index).key, ATTRIBUTION_LEAVING);
      }
    }
  }
}

/// Cgroups of which nothing is left are forgotten; the others have been given cells again.
void AttributionReader::release(const std::unordered_set<model::CgroupId>& cgroups) {
  const Serials serials = serials_of(cgroups);
  std::unordered_set<model::CgroupId> left;
  const auto is_released = [&](const View& view) {
    const auto serial = serials.find(serial_of(view.key));
    if (serial == serials.end()) {
      return false;
    }
    if (!view.leaving) {
      left.insert(serial->second);
      return false;
    }
    attributed& free = cell(view.index);
    free.ios = free.bytes = free.device_ns = 0;
    store(free.key, ATTRIBUTION_FREE);
    return true;
  };
  for (Cpu& cpu : cpus_) {
    std::erase_if(cpu.views, is_released);
  }
  for (const auto& [serial, cgroup] : serials) {
    if (left.count(cgroup) == 0) {
      owners_.erase(serial);
      seen_.erase(cgroup);
      published_.reset();
    }
  }
}

/// All of them in one pass over the cells for each step: draining a node removes a thousand at once.
std::vector<model::CgroupId> AttributionReader::depart() {
  std::unordered_set<model::CgroupId> closing, closed;
  for (auto& [cgroup, step] : leaving_) {
    if (step == Leave::moved) {
      step = Leave::rests;
    } else if (step == Leave::rests) {
      step = Leave::closed;
      closing.insert(cgroup);
    } else {
      closed.insert(cgroup);
    }
  }
  if (!closing.empty()) {
    close(closing);
  }
  if (!closed.empty()) {
    release(closed);
    std::erase_if(leaving_, [&](const auto& entry) { return closed.count(entry.first) != 0; });
  }
  if (!published_) {
    published_ = std::make_shared<const model::SeenCgroups>(seen_);
  }
  return {closed.begin(), closed.end()};
}

}  // namespace ssdpulse::block
