// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/measured_device.h"

#include <algorithm>
#include <numeric>

namespace ssdpulse::block {
namespace {

std::vector<CellReader> cell_readers(const Tables& tables, const MemoryPlan& plan, std::size_t device) {
  std::vector<CellReader> readers;
  for (std::uint32_t operation_class = 0; operation_class < CLASSES; ++operation_class) {
    if (operation_class < HOT_CLASSES) {
      readers.emplace_back(tables.hot_cells, device * plan.cpus * HOT_CLASSES + operation_class, HOT_CLASSES,
                           plan.cpus);
    } else {
      readers.emplace_back(tables.cold_cells, device * COLD_CLASSES + operation_class - HOT_CLASSES, 1, 1);
    }
  }
  return readers;
}

template <typename Cell>
std::span<Cell> of_device(std::span<Cell> cells, std::size_t device, std::size_t each) {
  return cells.subspan(device * each, each);
}

void add_events(std::size_t operation_class, const EventIncrements& events, MeasuredDevice& measured) {
  decode_events(events, measured.io, measured.io.operations[operation_class]);
  measured.events.missed[operation_class] += events.count[EVENT_COMPLETION_MISSED];
  measured.events.strays[operation_class] += events.count[EVENT_STRAY];
  measured.events.flush_data_stages += events.count[EVENT_FLUSH_DATA_STAGE];
  measured.events.lone_flushes += events.count[EVENT_LONE_FLUSH];
}

}  // namespace

TableRow::TableRow(const Tables& tables, const MemoryPlan& plan, const model::Path& path, const Allocation& given)
    : allocation(given),
      disk_name(path.disk_name),
      diskseq(path.diskseq),
      demand{path.hardware_queues, path.queue_depth},
      readers(cell_readers(tables, plan, given.device)),
      writes(of_device(tables.write_cells, given.device, plan.cpus),
             of_device(tables.tagged_cells, given.device, plan.tagged_cells)),
      commits(of_device(tables.commit_cells, given.device, plan.commit_cells)),
      samples(of_device(tables.write_cells, given.device, plan.cpus), tables.device_states[given.device]) {
  const device_events& events = tables.rare_events[given.device];
  std::copy(std::begin(events.of), std::end(events.of), last_events.begin());
}

bool TableRow::in_flight() const {
  return std::any_of(requests.begin(), requests.end(),
                     [](const InFlight& operation) { return operation.requests() != 0; });
}

std::int64_t TableRow::requests_in_flight() const {
  return std::accumulate(requests.begin(), requests.end(), std::int64_t{0},
                         [](std::int64_t sum, const InFlight& one) { return sum + one.requests(); });
}

bool MeasuredDevice::whole() const {
  return std::all_of(device->paths.begin(), device->paths.end(), [&](const model::Path& path) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const TableRow& row) { return row.is_of(path) && !row.retirement; });
  });
}

void read_row(const Tables& tables, const ReadingRules& rules, TableRow& row, MeasuredDevice& measured) {
  const device_events& all_events = tables.rare_events[row.allocation.device];
  bool moved = false;
  for (std::uint32_t operation_class = 0; operation_class < CLASSES; ++operation_class) {
    // Events first, then completions, then issues: what is in flight is never understated by the order of reading.
    operation_events& last = row.last_events[operation_class];
    const operation_events now = all_events.of[operation_class];
    EventIncrements events = increments(now, last);
    const CellWords* words = row.readers[operation_class].read();
    if (!events.any && words == nullptr) {
      continue;
    }
    moved = true;
    model::OperationIo& io = measured.io.operations[operation_class];
    InFlight& in_flight = row.requests[operation_class];
    const bool issues_seen = words != nullptr && rules.issues_are_seen;
    io.in_flight -= in_flight.requests();
    in_flight.add(issues_seen ? words->counters[kIssues] : 0, issues_seen ? words->counters[kCompletions] : 0, events);
    io.in_flight += in_flight.requests();
    if (events.any) {
      add_events(operation_class, events, measured);
      last = now;
    }
    if (words != nullptr) {
      decode_cell(*words, io);
      if (operation_class == CLASS_WRITE && rules.issues_are_seen) {
        // After the hot cells of the same row: see complete_latency().
        decode_writes(row.writes.read(), rules.no_hint, measured.io.writes);
        complete_latency(io, rules.no_hint, measured.io.writes);
      }
    }
    if (operation_class == CLASS_WRITE || operation_class == CLASS_FLUSH) {
      row.commits.read(measured.io.commit_latency);
    }
  }
  if (moved) {
    measured.published.reset();
  }
}

void settle_attribution(const ReadingRules& rules, bool attributes, MeasuredDevice& measured) {
  for (const model::Operation operation : model::kAttributedOperations) {
    const model::OperationIo& io = measured.io.operation(operation);
    std::uint64_t ios =
        rules.issues_are_seen ? measured.events.strays[model::index(operation)] + io.untimed : io.completions;
    for (const model::LatencyHistogram& latency : io.device_latency) {
      ios = std::accumulate(latency.words.begin(), latency.words.end(), ios);
    }
    if (attributes) {
      measured.attribution.settle(operation, ios, io.bytes);
    } else {
      measured.attribution.leave_out(operation, ios, io.bytes);
    }
  }
}

void mark_in_flight_missed(model::Operation operation, TableRow& row, MeasuredDevice& measured) {
  const std::size_t index = model::index(operation);
  const std::uint64_t requests = row.requests[index].mark_missed();
  measured.io.operations[index].in_flight -= static_cast<std::int64_t>(requests);
  measured.io.losses[model::index(model::Loss::completion_missed)] += requests;
  measured.events.missed[index] += requests;
  measured.published.reset();
}

}  // namespace ssdpulse::block
