// SPDX-License-Identifier: Apache-2.0
// MadeUpHost: the kernel's tables of a host with more CPUs and drives than this one, in shared memory as the daemon
// maps them, with something that counts in them as the programs would. The layout, the sizes and the rule by which
// cells of tenants are taken are the kernel's; who does I/O where, and how much, is made up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "daemon/block/block_programs.h"
#include "daemon/block/kernel_memory.h"
#include "daemon/model/device.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::bench {

class MadeUpHost {
 public:
  static constexpr std::uint32_t kTenants = 64;  // one cgroup each
  /// Of them, have done I/O on each CPU: as many as one ring of announcements holds.
  static constexpr std::uint32_t kTenantsOfCpu = 16;

  MadeUpHost(std::uint32_t drives, std::uint32_t cpus);
  ~MadeUpHost();
  MadeUpHost(const MadeUpHost&) = delete;
  MadeUpHost& operator=(const MadeUpHost&) = delete;

  /// A second in which every tenant uses every drive on each of its CPUs, in all its ways: all cells change.
  void all_busy();
  /// A second with I/O on this share of all pairs of a drive and a CPU, chosen at random, by a tenant or two.
  void some_busy(double share);
  /// The next reading comes from memory. (On a real host it comes from there, or from the caches of other CPUs.)
  void leave_caches() const;

  [[nodiscard]] const block::Tables& tables() const { return tables_; }
  [[nodiscard]] const block::MemoryPlan& plan() const { return plan_; }
  [[nodiscard]] const model::Inventory& inventory() const { return inventory_; }
  [[nodiscard]] const model::Tenants& tenants() const { return tenants_; }
  [[nodiscard]] std::uint64_t written_ios() const { return written_ios_; }  // and read ones, by all

 private:
  /// What one tenant does with one drive on one CPU, in one way.
  struct Habit {
    attributed* cell;  // null: there was no room
    std::uint32_t device;
    std::uint16_t cpu;
    std::uint8_t operation;
    std::uint8_t path;
    std::uint8_t hint;
  };
  static constexpr std::uint32_t kWays = 4;  // two of reading and two of writing, of the eight that occur
  static constexpr std::uint32_t kHabitsOfPair = kTenantsOfCpu * kWays;

  template <typename Entry>
  std::span<Entry> table(std::size_t entries);
  void make_tables();
  void make_habits();
  attributed* take_cell(std::uint32_t cpu, std::uint64_t key);
  void announce(std::uint32_t cpu, std::uint32_t tenant);
  void io(const Habit& habit, std::uint32_t ios);
  void write_details(const Habit& habit, std::uint32_t ios);
  void rare_io(std::uint32_t device);

  std::uint32_t drives_;
  block::MemoryPlan plan_;
  block::Tables tables_;
  model::Inventory inventory_;
  model::Tenants tenants_;
  std::vector<std::span<std::byte>> mappings_;
  std::span<io_cell> hot_;
  std::span<io_cell> cold_;
  std::span<write_cell> writes_;
  std::span<tagged_cell> tagged_;
  std::span<commit_cell> commits_;
  std::span<unattributed> others_;
  std::span<announced_cgroup> announced_;
  std::span<Habit> habits_;  // by CPU, drive, tenant and way
  std::vector<std::uint32_t> latencies_ns_;
  std::size_t next_latency_ = 0;
  std::uint64_t written_ios_ = 0;
  std::mt19937_64 random_{1};
};

}  // namespace ssdpulse::bench
