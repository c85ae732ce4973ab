// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/attribution_cells.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "daemon/block/io_cells.h"

namespace ssdpulse::block {
namespace {

constexpr std::size_t list_index(model::Operation operation) {
  return index_in(model::kAttributedOperations, operation);
}

static_assert(list_index(model::Operation::write) == ATTRIBUTED_WRITE);
static_assert(list_index(model::Operation::discard) == ATTRIBUTED_DISCARD);
static_assert(ATTRIBUTED_COMMIT == model::kAttributedOperations.size(), "commits come after what has bytes");

/// Stands for all cgroups that departed; no directory has this inode.
constexpr model::CgroupId kDeparted = std::numeric_limits<model::CgroupId>::max();

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

constexpr auto kIoPaths = std::to_array<std::pair<std::uint32_t, model::IoPath>>({
    {PATH_OTHER, model::IoPath::other},
    {PATH_IO_URING, model::IoPath::io_uring},
    {PATH_SQPOLL, model::IoPath::sqpoll},
    {PATH_LIBAIO, model::IoPath::libaio},
    {PATH_SYNC, model::IoPath::sync},
    {PATH_DIRECT, model::IoPath::direct},
    {PATH_BUFFERED_READ, model::IoPath::buffered_read},
    {PATH_WRITEBACK, model::IoPath::writeback},
    {PATH_JOURNAL, model::IoPath::journal},
    {PATH_METADATA, model::IoPath::metadata},
    {PATH_SWAP, model::IoPath::swap},
    {PATH_LOOP, model::IoPath::loop},
    {PATH_STACKED, model::IoPath::stacked},
});
static_assert(kIoPaths.size() == model::kIoPaths);

model::IoPath path_of(std::uint32_t code) {
  const auto* const known = std::find_if(kIoPaths.begin(), kIoPaths.end(), [&](const auto& entry) {
    return entry.first == (code & ~static_cast<std::uint32_t>(PATH_RAW));
  });
  return known == kIoPaths.end() ? model::IoPath::other : known->second;
}

/// Takes as much of `waiting` as fits into `room`; its time in proportion.
model::AttributedTotals take(model::AttributedTotals& waiting, model::AttributedTotals& room) {
  model::AttributedTotals taken{std::min(waiting.ios, room.ios), std::min(waiting.bytes, room.bytes), 0};
  taken.device_ns = taken.ios == waiting.ios ? waiting.device_ns : waiting.device_ns / waiting.ios * taken.ios;
  waiting -= taken;
  room.ios -= taken.ios;
  room.bytes -= taken.bytes;
  return taken;
}

template <typename Words>
model::AttributedTotals totals_of(const Words& words) {
  return {load(words.ios), load(words.bytes), load(words.device_ns)};
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
  return std::accumulate(cpus_.begin(), cpus_.end(), std::size_t{0},
                         [](std::size_t cells, const Cpu& cpu) { return cells + cpu.views.size(); });
}

/// For one more cell with this key.
std::uint32_t AttributionReader::take_counted(std::uint64_t key) {
  const auto [known, is_new] = by_key_.try_emplace(key, 0);
  if (is_new && unused_.empty()) {
    known->second = static_cast<std::uint32_t>(counted_.size());
    counted_.emplace_back();
  } else if (is_new) {
    known->second = unused_.back();
    unused_.pop_back();
  }
  Counted& counted = counted_[known->second];
  counted.key = key;
  ++counted.cells;
  return known->second;
}

/// Only we free cells, so those that were taken before still are.
void AttributionReader::find_new(std::size_t number, Cpu& cpu) {
  std::vector<View> views;
  views.reserve(cpu.views.size() + 1);
  auto known = cpu.views.begin();
  for (std::size_t index = number * cells_of_cpu_; index < (number + 1) * cells_of_cpu_; ++index) {
    if (known != cpu.views.end() && known->index == index) {
      views.push_back(*known++);
    } else if (const std::uint64_t key = load(cell(index).key); key != ATTRIBUTION_FREE) {
      views.push_back({static_cast<std::uint32_t>(index), take_counted(key)});
    }
  }
  cpu.views = std::move(views);
}

void AttributionReader::read_announcements(std::size_t cpu) {
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

/// What its cells counted since the last time.
void AttributionReader::report(Counted& counted, const model::AttributedTotals& now) {
  if (now == counted.last) {
    return;
  }
  const auto owner = owners_.find(serial_of(counted.key));
  if (owner == owners_.end() && !counted.was_unknown) {
    counted.was_unknown = true;
    return;
  }
  model::AttributedTotals difference = now;
  difference -= std::exchange(counted.last, now);
  increments_.push_back(
      {.device = static_cast<std::uint32_t>(counted.key >> ATTRIBUTION_DEVICE_SHIFT) & ATTRIBUTION_DEVICE_MASK,
       .operation =
           static_cast<std::uint32_t>(counted.key >> ATTRIBUTION_OPERATION_SHIFT) & (ATTRIBUTED_OPERATIONS - 1),
       .path = static_cast<std::uint32_t>(counted.key) & (PATH_CODES - 1),
       .owner = {},
       .totals = difference});
  if (owner == owners_.end()) {
    return;
  }
  increments_.back().owner = owner->second;
  if (const auto leaving = leaving_.find(owner->second); leaving != leaving_.end() && leaving->second == Leave::rests) {
    leaving->second = Leave::moved;
  }
}

/// What one of the cells counted since the last time; false: nothing.
bool AttributionReader::read_other(std::size_t index, OtherTotals& sum) {
  const unattributed& cell = tables_.unattributed_cells[index];
  const std::uint64_t events = load(cell.events);
  if (events == 0) {
    return false;
  }
  auto& [events_before, before] = others_[index];
  if (std::exchange(events_before, events) == events) {
    return false;
  }
  for (std::uint32_t operation = 0; operation < ATTRIBUTED_OPERATIONS; ++operation) {
    for (std::uint32_t path = 0; path < PATH_CODES; ++path) {
      const model::AttributedTotals now = totals_of(cell.of[operation][path]);
      sum[operation][path] += now;
      sum[operation][path] -= std::exchange(before[operation][path], now);
    }
  }
  return true;
}

void AttributionReader::read_others() {
  for (std::size_t first = 0; first < tables_.unattributed_cells.size(); first += others_of_device_) {
    OtherTotals sum{};
    bool any = false;
    for (std::size_t index = first; index < first + others_of_device_; ++index) {
      any = read_other(index, sum) || any;
    }
    for (std::uint32_t operation = 0; any && operation < ATTRIBUTED_OPERATIONS; ++operation) {
      for (std::uint32_t path = 0; path < PATH_CODES; ++path) {
        if (!(sum[operation][path] == model::AttributedTotals{})) {
          const auto device = static_cast<std::uint32_t>(first / others_of_device_);
          increments_.push_back({device, operation, path, {}, sum[operation][path]});
        }
      }
    }
  }
}

const std::vector<AttributedIncrement>& AttributionReader::read() {
  constexpr std::size_t kAhead = 64;  // cells: 2 KiB
  increments_.clear();
  now_.assign(counted_.size(), {});
  for (std::size_t number = 0; number < cpus_.size(); ++number) {
    Cpu& cpu = cpus_[number];
    const std::uint64_t taken = load(tables_.announcement_states[number].taken);
    if (taken != cpu.taken) {
      find_new(number, cpu);
      now_.resize(counted_.size());
      cpu.taken = taken;
    }
    // A cgroup is announced before its cell is taken.
    read_announcements(number);
    for (const View& view : cpu.views) {
      const attributed& own = cell(view.index);
      __builtin_prefetch(&own + kAhead, 0, 2);  // reads nothing, so it may lie behind the last cell
      now_[view.counted] += totals_of(own);
    }
  }
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    report(counted_[i], now_[i]);
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

std::vector<bool> AttributionReader::belongs_to(const Serials& serials) const {
  std::vector<bool> belongs;
  belongs.reserve(counted_.size());
  for (const Counted& counted : counted_) {
    belongs.push_back(counted.cells > 0 && serials.count(serial_of(counted.key)) != 0);
  }
  return belongs;
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
  const std::vector<bool> closes = belongs_to(serials);
  for (const Cpu& cpu : cpus_) {
    for (const View& view : cpu.views) {
      if (closes[view.counted]) {
        store(cell(view.index).key, ATTRIBUTION_LEAVING);
      }
    }
  }
}

/// Cgroups of which nothing is left are forgotten; the others have been given cells again.
void AttributionReader::release(const std::unordered_set<model::CgroupId>& cgroups) {
  const Serials serials = serials_of(cgroups);
  const std::vector<bool> closed = belongs_to(serials);
  std::unordered_set<model::CgroupId> left;
  const auto is_released = [&](const View& view) {
    if (!closed[view.counted]) {
      return false;
    }
    attributed& free = cell(view.index);
    Counted& counted = counted_[view.counted];
    if (load(free.key) != ATTRIBUTION_LEAVING) {
      left.insert(serials.at(serial_of(counted.key)));
      return false;
    }
    counted.last -= totals_of(free);
    free.ios = free.bytes = free.device_ns = 0;
    store(free.key, ATTRIBUTION_FREE);
    if (--counted.cells == 0) {
      by_key_.erase(counted.key);
      counted = {};
      unused_.push_back(view.counted);
    }
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

void AttributionAccount::add(const AttributedIncrement& increment) {
  if (increment.operation == ATTRIBUTED_COMMIT) {
    published_.reset();
    (increment.owner ? totals_.commits[*increment.owner] : totals_.other_commits) += increment.totals.ios;
    return;
  }
  operations_[increment.operation].waiting.push_back({increment.owner, increment.path, increment.totals});
}

model::TotalsByOperation& AttributionAccount::totals_of(const Owner& owner) {
  return !owner ? totals_.other : *owner == kDeparted ? totals_.departed : totals_.cgroups[*owner];
}

/// Publishes what is waiting, as far as there is room.
void AttributionAccount::publish_all(std::size_t which, model::AttributedTotals room) {
  Operation& operation = operations_[which];
  const auto key = [](const Waiting& one) { return std::tie(one.owner, one.path); };
  std::sort(operation.waiting.begin(), operation.waiting.end(),
            [&](const Waiting& a, const Waiting& b) { return key(a) < key(b); });
  std::size_t left = 0;
  Owner last;
  model::TotalsByOperation* of_owner = nullptr;
  for (std::size_t i = 0; i < operation.waiting.size();) {
    Waiting entry = operation.waiting[i++];
    for (; i < operation.waiting.size() && key(operation.waiting[i]) == key(entry); ++i) {
      entry.totals += operation.waiting[i].totals;
    }
    const model::AttributedTotals taken = take(entry.totals, room);
    if (!(taken == model::AttributedTotals{})) {
      published_.reset();
      of_owner = of_owner != nullptr && last == entry.owner ? of_owner : &totals_of(entry.owner);
      last = entry.owner;
      (*of_owner)[which] += taken;
      const model::IoAccess access = (entry.path & PATH_RAW) != 0 ? model::IoAccess::raw : model::IoAccess::file;
      totals_.paths[static_cast<std::size_t>(path_of(entry.path))][static_cast<std::size_t>(access)][which] += taken;
      operation.published += taken;
    }
    if (!(entry.totals == model::AttributedTotals{})) {
      operation.waiting[left++] = entry;
    }
  }
  operation.waiting.resize(left);
  operation.waited = !operation.waiting.empty();
}

void AttributionAccount::leave_out(model::Operation which, std::uint64_t ios, std::uint64_t bytes) {
  Operation& operation = operations_[which];
  publish_all(list_index(which), {kAll, kAll, 0});
  operation.target = {ios, bytes, 0};
  operation.left_out = {ios - std::min(ios, operation.published.ios),
                        bytes - std::min(bytes, operation.published.bytes), 0};
}

void AttributionAccount::settle(model::Operation which, std::uint64_t ios, std::uint64_t bytes) {
  Operation& operation = operations_[which];
  const bool stood_still = operation.target.ios == ios && operation.target.bytes == bytes;
  operation.target = {ios, bytes, 0};
  if (operation.waiting.empty()) {
    return;
  }
  const std::uint64_t known_ios = operation.published.ios + operation.left_out.ios;
  const std::uint64_t known_bytes = operation.published.bytes + operation.left_out.bytes;
  model::AttributedTotals room{ios - std::min(ios, known_ios), bytes - std::min(bytes, known_bytes), 0};
  if (stood_still && operation.waited) {
    room = {kAll, kAll, 0};
  }
  publish_all(list_index(which), room);
}

void AttributionAccount::depart(model::CgroupId cgroup) {
  const auto move = [&](auto& by_cgroup, auto& departed) {
    if (const auto found = by_cgroup.find(cgroup); found != by_cgroup.end()) {
      departed(found->second);
      by_cgroup.erase(found);
      published_.reset();
    }
  };
  auto add_commits = [&](std::uint64_t commits) { totals_.departed_commits += commits; };
  auto add_totals = [&](const model::TotalsByOperation& totals) {
    for (std::size_t operation = 0; operation < totals.size(); ++operation) {
      totals_.departed[operation] += totals[operation];
    }
  };
  move(totals_.commits, add_commits);
  move(totals_.cgroups, add_totals);
  for (Operation& operation : operations_) {
    for (Waiting& one : operation.waiting) {
      one.owner = one.owner == cgroup ? kDeparted : one.owner;
    }
  }
}

std::shared_ptr<const model::DeviceAttribution> AttributionAccount::published() {
  if (!published_) {
    published_ = std::make_shared<const model::DeviceAttribution>(totals_);
  }
  return published_;
}

}  // namespace ssdpulse::block
