// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/large_host.h"

#include <fmt/format.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace ssdpulse::bench {
namespace {

struct Way {
  std::uint8_t operation;
  std::uint8_t path;
  std::uint8_t write_class;
};
/// Each tenant has two of the first four and two of the last four.
constexpr auto kAllWays = std::to_array<Way>({
    {ATTRIBUTED_READ, PATH_IO_URING, 0},
    {ATTRIBUTED_READ, PATH_LIBAIO, 0},
    {ATTRIBUTED_READ, PATH_SYNC, 0},
    {ATTRIBUTED_READ, PATH_BUFFERED_READ, 0},
    {ATTRIBUTED_WRITE, PATH_IO_URING | PATH_RAW, WRITE_DIRECT},
    {ATTRIBUTED_WRITE, PATH_WRITEBACK, WRITE_WRITEBACK},
    {ATTRIBUTED_WRITE, PATH_JOURNAL, WRITE_JOURNAL},
    {ATTRIBUTED_WRITE, PATH_METADATA, WRITE_METADATA},
});

constexpr std::uint64_t kFirstSerial = 1000;
constexpr std::uint64_t kFirstCgroup = 5000;
constexpr std::uint32_t kBytesOfIo = 4096;

std::string unit_of(std::uint32_t tenant) { return fmt::format("database-{:02}.service", tenant); }

}  // namespace

MadeUpHost::MadeUpHost(std::uint32_t drives, std::uint32_t cpus) : drives_(drives) {
  for (std::uint32_t number = 0; number < drives; ++number) {
    model::Device device;
    device.name = fmt::format("nvme{}n1", number);
    device.serial = fmt::format("S{}", number);
    device.model = "ACME 1";
    device.transport = "nvme";
    device.scheduler = "none";
    device.size_bytes = 7'681'501'126'656;
    device.discard = device.write_back_cache = true;
    device.paths = {{device.name, std::min(cpus, 128U), 1023, number + 1}};
    inventory_.devices.push_back(std::move(device));
  }
  std::sort(inventory_.devices.begin(), inventory_.devices.end(),
            [](const model::Device& a, const model::Device& b) { return a.name < b.name; });
  plan_ = block::plan_memory(std::vector<block::SlotDemand>(drives, {std::min(cpus, 128U), 1023}), cpus);
  block::plan_attribution(plan_, kTenants);
  make_tables();
  // Two humps, spread over about eighty of the buckets.
  std::uniform_real_distribution<> chance;
  std::normal_distribution<> fast(std::log(90e3), 0.5);
  std::normal_distribution<> slow(std::log(2e6), 1.0);
  for (int i = 0; i < 10'007; ++i) {
    latencies_ns_.push_back(
        static_cast<std::uint32_t>(std::min(std::exp(chance(random_) < 0.9 ? fast(random_) : slow(random_)), 4e9)));
  }
  make_habits();
}

MadeUpHost::~MadeUpHost() {
  for (const std::span<std::byte> mapping : mappings_) {
    ::munmap(mapping.data(), mapping.size());
  }
}

/// Small pages, as the kernel's; shared, so that they do not count as the daemon's own memory.
template <typename Entry>
std::span<Entry> MadeUpHost::table(std::size_t entries) {
  const std::size_t bytes = std::max<std::size_t>(entries, 1) * sizeof(Entry);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fmt::print(stderr, "no memory for a table of {} bytes\n", bytes);
    std::exit(EXIT_FAILURE);
  }
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  mappings_.push_back({static_cast<std::byte*>(memory), bytes});
  return {static_cast<Entry*>(memory), entries};
}

void MadeUpHost::make_tables() {
  const std::size_t devices = plan_.devices;
  const std::size_t cpus = plan_.cpus;
  tables_.hot_cells = hot_ = table<io_cell>(devices * cpus * HOT_CLASSES);
  tables_.cold_cells = cold_ = table<io_cell>(devices * COLD_CLASSES);
  tables_.write_cells = writes_ = table<write_cell>(devices * cpus);
  tables_.tagged_cells = tagged_ = table<tagged_cell>(devices * plan_.tagged_cells);
  tables_.commit_cells = commits_ = table<commit_cell>(devices * plan_.commit_cells);
  tables_.writable_states = table<device_state>(devices);
  tables_.device_states = tables_.writable_states;
  tables_.rare_events = table<device_events>(devices);
  tables_.host_states = table<host_state>(1);
  tables_.queue_entries = table<queue_entry>(QUEUE_IDS);
  tables_.known_disks = table<known_disk>(KNOWN_DISKS);
  tables_.end_functions = table<end_function_set>(END_FUNCTION_SETS);
  tables_.issue_slots = table<issue_slot>(plan_.slots);
  tables_.attributions = table<attribution_set>(cpus * plan_.attribution_sets);
  tables_.unattributed_cells = others_ = table<unattributed>(devices * plan_.unattributed_cells);
  tables_.announced_cgroups = announced_ = table<announced_cgroup>(cpus * plan_.announcements);
  tables_.announcement_states = table<announcements>(cpus);
}

void MadeUpHost::announce(std::uint32_t cpu, std::uint32_t tenant) {
  announcements& state = tables_.announcement_states[cpu];
  announced_cgroup& entry = announced_[std::size_t{cpu} * plan_.announcements + state.written % plan_.announcements];
  entry.serial = kFirstSerial + tenant;
  entry.cgroup = kFirstCgroup + tenant;
  entry.parent = 1;
  unit_of(tenant).copy(entry.name, sizeof(entry.name) - 1);
  state.written += 1;
}

/// As the completion program does it: the key's cell is in one of two sets.
attributed* MadeUpHost::take_cell(std::uint32_t cpu, std::uint64_t key) {
  for (const std::uint32_t number :
       {attribution_first_set(key, plan_.attribution_sets), attribution_second_set(key, plan_.attribution_sets)}) {
    for (attributed& cell : tables_.attributions[std::size_t{cpu} * plan_.attribution_sets + number].cell) {
      if (cell.key == ATTRIBUTION_FREE) {
        cell.key = key;
        tables_.announcement_states[cpu].taken += 1;
        return &cell;
      }
    }
  }
  return nullptr;
}

void MadeUpHost::make_habits() {
  for (std::uint32_t tenant = 0; tenant < kTenants; ++tenant) {
    tenants_[kFirstCgroup + tenant] = {unit_of(tenant), model::TenantKind::unit, "/system.slice/" + unit_of(tenant)};
  }
  habits_ = table<Habit>(std::size_t{plan_.cpus} * drives_ * kHabitsOfPair);
  auto habit = habits_.begin();
  for (std::uint32_t cpu = 0; cpu < plan_.cpus; ++cpu) {
    for (std::uint32_t i = 0; i < kTenantsOfCpu; ++i) {
      announce(cpu, (cpu + i * (kTenants / kTenantsOfCpu)) % kTenants);
    }
    for (std::uint32_t device = 0; device < drives_; ++device) {
      for (std::uint32_t i = 0; i < kHabitsOfPair; ++i) {
        const std::uint32_t tenant = (cpu + i / kWays * (kTenants / kTenantsOfCpu)) % kTenants;
        const std::uint32_t way = i % kWays;
        const std::uint32_t of_kind = (tenant + way % 2) % 4;
        const Way& chosen = kAllWays.at(way < 2 ? of_kind : 4 + of_kind);
        // A quarter of the tenants give hints.
        const bool hinted = chosen.operation == ATTRIBUTED_WRITE && tenant % 4 == 0;
        *habit++ = {take_cell(cpu, attribution_key(kFirstSerial + tenant, device, chosen.operation, chosen.path)),
                    device,
                    static_cast<std::uint16_t>(cpu),
                    chosen.operation,
                    chosen.path,
                    static_cast<std::uint8_t>(hinted ? 2 + tenant / 4 % 4 : HINT_DEFAULT)};
      }
    }
  }
}

void MadeUpHost::write_details(const Habit& habit, std::uint32_t ios) {
  write_cell& cell = writes_[std::size_t{habit.device} * plan_.cpus + habit.cpu];
  const auto* way =
      std::find_if(kAllWays.begin(), kAllWays.end(), [&](const Way& one) { return one.path == habit.path; });
  cell.class_bytes[way->write_class] += std::uint64_t{ios} * kBytesOfIo;
  cell.hint_bytes[habit.hint] += std::uint64_t{ios} * kBytesOfIo;
  cell.hint_ios[habit.hint] += ios;
}

void MadeUpHost::io(const Habit& habit, std::uint32_t ios) {
  io_cell& cell = hot_[(std::size_t{habit.device} * plan_.cpus + habit.cpu) * HOT_CLASSES + habit.operation];
  tagged_cell& tagged = tagged_[habit.device * plan_.tagged_cells + (habit.cpu & (plan_.tagged_cells - 1))];
  std::uint64_t device_ns = 0;
  for (std::uint32_t i = 0; i < ios; ++i) {
    next_latency_ = (next_latency_ + 1) % latencies_ns_.size();
    const std::uint32_t ns = latencies_ns_[next_latency_];
    const std::uint32_t queue_ns = latencies_ns_[latencies_ns_.size() - 1 - next_latency_] / 64;
    const std::uint32_t word = latency_word(ns);
    const std::uint32_t during = next_latency_ % 20 == 0 ? 2 : next_latency_ % 50 == 1 ? 1 : 0;
    cell.device[during][word] += 1;
    cell.device_sum_ns[during] += ns;
    cell.queue[latency_word(queue_ns)] += 1;
    cell.queue_sum_ns += queue_ns;
    cell.total[latency_word(std::int64_t{ns} + queue_ns)] += 1;
    cell.total_sum_ns += std::uint64_t{ns} + queue_ns;
    if (habit.hint != HINT_DEFAULT) {
      tagged.latency[habit.hint][word] += 1;
      tagged.latency_sum_ns[habit.hint] += ns;
    }
    device_ns += ns;
  }
  const std::uint64_t bytes = std::uint64_t{ios} * kBytesOfIo;
  cell.issues += ios;
  cell.completions += ios;
  cell.bytes += bytes;
  cell.size_sum_bytes += bytes;
  cell.size[size_word(kBytesOfIo)] += ios;
  if (habit.operation == ATTRIBUTED_WRITE) {
    write_details(habit, ios);
  }
  const auto count = [&](auto& to) {
    to.ios += ios;
    to.bytes += bytes;
    to.device_ns += device_ns;
  };
  if (habit.cell != nullptr) {
    count(*habit.cell);
  } else {
    unattributed& other =
        others_[habit.device * plan_.unattributed_cells + (habit.cpu & (plan_.unattributed_cells - 1))];
    count(other.of[habit.operation][habit.path]);
    other.events += 1;
  }
  written_ios_ += ios;
}

/// A flush and a discard now and then, and what a caller of fsync waits for.
void MadeUpHost::rare_io(std::uint32_t device) {
  const auto cell_of = [&](std::uint32_t operation) -> io_cell& {
    return cold_[device * COLD_CLASSES + operation - HOT_CLASSES];
  };
  for (int i = 0; i < 50; ++i) {
    const std::uint32_t ns = latencies_ns_[random_() % latencies_ns_.size()];
    io_cell& cell = cell_of(i % 10 == 0 ? CLASS_DISCARD : CLASS_FLUSH);
    cell.issues += 1;
    cell.completions += 1;
    cell.device[0][latency_word(ns)] += 1;
    cell.device_sum_ns[0] += ns;
    cell.total[latency_word(ns)] += 1;
    cell.total_sum_ns += ns;
    commit_cell& commit = commits_[device * plan_.commit_cells + random_() % plan_.cpus % plan_.commit_cells];
    commit.latency[latency_word(ns)] += 1;
    commit.sum_ns += ns;
    commit.commits += 1;
  }
}

void MadeUpHost::all_busy() {
  for (const Habit& habit : habits_) {
    io(habit, 1);
  }
  for (std::uint32_t device = 0; device < drives_; ++device) {
    rare_io(device);
  }
}

void MadeUpHost::some_busy(double share) {
  constexpr std::uint32_t kHabits = 6;
  std::bernoulli_distribution busy(share);
  for (std::size_t first = 0; first < habits_.size(); first += kHabitsOfPair) {
    if (busy(random_)) {
      const std::size_t begin = first + random_() % (kHabitsOfPair - kHabits);
      for (std::size_t i = begin; i < begin + kHabits; ++i) {
        io(habits_[i], 4);
      }
    }
  }
  for (std::uint32_t device = 0; device < drives_; ++device) {
    rare_io(device);
  }
}

void MadeUpHost::leave_caches() const {
#if defined(__x86_64__)
  constexpr std::size_t kLine = 64;
  const auto flush = [](auto table) {
    const auto bytes = std::as_bytes(table);
    for (std::size_t at = 0; at < bytes.size(); at += kLine) {
      _mm_clflush(bytes.data() + at);
    }
  };
  flush(tables_.hot_cells);
  flush(tables_.cold_cells);
  flush(tables_.write_cells);
  flush(tables_.tagged_cells);
  flush(tables_.commit_cells);
  flush(tables_.attributions);
  flush(tables_.unattributed_cells);
  flush(tables_.announcement_states);
  _mm_mfence();
#endif
}

}  // namespace ssdpulse::bench
