// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/discard_submissions.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "daemon/block/bpf_objects.h"
#include "discard.skel.h"

namespace ssdpulse::block {
namespace {

bpf_program* program_of(const discard& skeleton, DiscardHook hook) {
  switch (hook) {
    case DiscardHook::chain_bio:
      return skeleton.progs.on_discard_bio;
    case DiscardHook::issue:
      return skeleton.progs.on_discard;
    case DiscardHook::issue_with_flags:
      return skeleton.progs.on_discard_5_18;
    case DiscardHook::bio_queue:
      return skeleton.progs.on_bio_queue;
    case DiscardHook::bio_queue_with_queue:
      return skeleton.progs.on_bio_5_10;
  }
  return nullptr;
}

/// A table of the kernel; empty, with errno set, if it cannot be mapped.
template <typename Entry>
std::span<Entry> map_table(const bpf_map* map, int protection) {
  const std::size_t entries = bpf_map__max_entries(map);
  void* address = mmap(nullptr, entries * sizeof(Entry), protection, MAP_SHARED, bpf_map__fd(map), 0);
  return address == MAP_FAILED ? std::span<Entry>() : std::span<Entry>(static_cast<Entry*>(address), entries);
}

template <typename Entry>
void unmap_table(std::span<Entry> table) {
  if (!table.empty()) {
    munmap(const_cast<std::remove_const_t<Entry>*>(table.data()), table.size_bytes());
  }
}

bool passes_every_bio(DiscardHook hook) {
  return hook == DiscardHook::bio_queue || hook == DiscardHook::bio_queue_with_queue;
}

model::KernelDecision decision_of(DiscardHook hook) {
  switch (hook) {
    case DiscardHook::chain_bio:
      return model::KernelDecision::bio_chain_and_submit;
    case DiscardHook::issue:
      return model::KernelDecision::blkdev_issue_discard;
    case DiscardHook::issue_with_flags:
      return model::KernelDecision::blkdev_issue_discard_with_flags;
    case DiscardHook::bio_queue:
    case DiscardHook::bio_queue_with_queue:
      return model::KernelDecision::every_bio;
  }
  return model::KernelDecision::not_hooked;
}

}  // namespace

void DiscardPrograms::SkeletonDeleter::operator()(discard* skeleton) const { discard::destroy(skeleton); }

util::Result<std::unique_ptr<DiscardPrograms>> DiscardPrograms::open(const KernelBtf& btf, std::uint32_t rows,
                                                                     bool may_hook_every_bio) {
  std::unique_ptr<DiscardPrograms> programs(new DiscardPrograms);
  programs->kernel_counts_skipped_runs_ = btf.counts_skipped_runs;
  std::string& refusals = programs->refusals_;
  for (const DiscardHook hook : btf.discard_hooks) {
    if (passes_every_bio(hook) && !may_hook_every_bio) {
      refusals += (refusals.empty() ? "" : "; ") + std::string("every_bio: not in completion-only mode");
      continue;
    }
    if (auto hooked = programs->hook(btf, hook, rows); !hooked) {
      refusals += (refusals.empty() ? "" : "; ") + std::string(name(decision_of(hook), model::kKernelDecisionNames)) +
                  ": " + hooked.error().message;
      continue;
    }
    programs->decision_ = decision_of(hook);
    programs->sees_partitions_ = !passes_every_bio(hook) || btf.bios_keep_partition;
    if (auto mapped = programs->map_tables(); !mapped) {
      return tl::make_unexpected(mapped.error());
    }
    return programs;
  }
  return util::fail(refusals);
}

util::Result<void> DiscardPrograms::hook(const KernelBtf& btf, DiscardHook hook, std::uint32_t rows) {
  skeleton_.reset(discard::open());
  if (!skeleton_) {
    return util::fail_errno("cannot open");
  }
  skeleton_->rodata->cfg_discard_op = btf.discard_op;
  bpf_program* wanted = program_of(*skeleton_, hook);
  bpf_program* program = nullptr;
  while ((program = bpf_object__next_program(skeleton_->obj, program)) != nullptr) {
    bpf_program__set_autoload(program, program == wanted);
  }
  bpf_map__set_max_entries(skeleton_->maps.discard_cells, rows * SUBMITTERS);
  if (discard::load(skeleton_.get()) != 0) {
    // Not the kernel's message, which suggests a missing privilege: many kernels let none of their functions be hooked.
    return util::fail("not hookable on this kernel (errno " + std::to_string(errno) + ")");
  }
  if (discard::attach(skeleton_.get()) != 0) {
    return util::fail_errno("cannot attach");
  }
  return {};
}

util::Result<void> DiscardPrograms::map_tables() {
  cells_ = map_table<const discard_cell>(skeleton_->maps.discard_cells, PROT_READ);
  if (cells_.empty()) {
    return util::fail_errno("cannot map the kernel table discard_cells");
  }
  volumes_ = map_table<__u64>(skeleton_->maps.discard_volumes, PROT_READ | PROT_WRITE);
  if (volumes_.empty()) {
    return util::fail_errno("cannot map the kernel table discard_volumes");
  }
  return {};
}

std::vector<model::ProgramStats> DiscardPrograms::program_stats() const {
  std::vector<model::ProgramStats> result;
  add_program_stats(skeleton_->obj, kernel_counts_skipped_runs_, result);
  return result;
}

void DiscardPrograms::detach() { discard::detach(skeleton_.get()); }

DiscardPrograms::~DiscardPrograms() {
  unmap_table(cells_);
  unmap_table(volumes_);
}

namespace {

static_assert(SUBMITTERS == model::kDiscardSubmitters);
static_assert(SUBMITTER_KERNEL == static_cast<int>(model::DiscardSubmitter::kernel));
static_assert(SUBMITTER_OTHER == static_cast<int>(model::DiscardSubmitter::other));

/// Volumes of measured disks, and of the devices stacked on disks.
std::vector<const model::Volume*> volumes_of_interest(const model::Inventory& inventory) {
  std::set<std::string_view> disks;
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured || device.coverage == model::Coverage::stacked) {
      disks.insert(device.name);
    }
  }
  std::vector<const model::Volume*> volumes;
  for (const model::Volume& volume : inventory.volumes) {
    if (disks.count(volume.device) != 0) {
      volumes.push_back(&volume);
    }
  }
  return volumes;
}

/// The device number as in block_device.bd_dev (MINORBITS in include/linux/kdev_t.h).
__u32 device_number(const model::Volume& volume) { return volume.major << 20U | volume.minor; }

std::optional<std::size_t> free_entry(const std::vector<__u64>& table, __u32 device) {
  const __u32 hash = discard_volume_hash(device);
  for (__u32 probe = 0; probe < DISCARD_VOLUME_PROBES; ++probe) {
    const std::size_t entry = (hash + probe) % DISCARD_VOLUMES;
    if (table[entry] == 0) {
      return entry;
    }
  }
  return std::nullopt;
}

std::uint64_t acquire(const __u64& word) {
  return std::atomic_ref(const_cast<__u64&>(word)).load(std::memory_order_acquire);
}

}  // namespace

std::uint32_t discard_rows(const model::Inventory& inventory) {
  constexpr std::size_t kSpare = 64;
  const std::size_t present = volumes_of_interest(inventory).size();
  return static_cast<std::uint32_t>(std::min<std::size_t>(present + present / 4 + kSpare, DISCARD_VOLUMES));
}

DiscardSubmissionReader::DiscardSubmissionReader(std::span<const discard_cell> cells, std::span<__u64> volumes,
                                                 bool sees_partitions)
    : cells_(cells), volumes_(volumes), sees_partitions_(sees_partitions) {
  for (std::uint32_t row = 0; row < cells.size() / SUBMITTERS; ++row) {
    free_.push_back(row);
  }
}

void DiscardSubmissionReader::update(const model::Inventory& inventory) {
  std::vector<__u64> table(volumes_.size());
  std::map<std::string, std::size_t> entries;  // in the table, by volume
  for (const model::Volume* volume : volumes_of_interest(inventory)) {
    const auto entry = free_entry(table, device_number(*volume));
    if (entry && (sees_partitions_ || volume->name == volume->device)) {
      table[*entry] = device_number(*volume);
      entries.emplace(volume->name, *entry);
    }
  }
  for (auto known = rows_.begin(); known != rows_.end();) {
    if (entries.count(known->first) != 0) {
      ++known;
      continue;
    }
    free_.push_back(known->second.number);
    known = rows_.erase(known);
  }
  for (const auto& [volume, entry] : entries) {
    if (rows_.count(volume) == 0 && !free_.empty()) {
      rows_.emplace(volume, VolumeRow{free_.front(), read_cells(free_.front())});
      free_.pop_front();
    }
    const auto row = rows_.find(volume);
    table[entry] |= row == rows_.end() ? 0 : (__u64{row->second.number} + 1) << DISCARD_VOLUME_ROW_SHIFT;
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i] != volumes_[i]) {
      std::atomic_ref(volumes_[i]).store(table[i], std::memory_order_release);
    }
  }
}

model::DiscardSubmitters DiscardSubmissionReader::read_cells(std::uint32_t row) const {
  model::DiscardSubmitters result;
  for (std::size_t submitter = 0; submitter < SUBMITTERS; ++submitter) {
    const discard_cell& cell = cells_[std::size_t{row} * SUBMITTERS + submitter];
    model::DiscardSubmissions& out = result[submitter];
    out.bytes = acquire(cell.bytes);
    out.ranges = acquire(cell.ranges);
    out.first_ns = acquire(cell.first_ns);
    out.last_ns = acquire(cell.last_ns);
    out.submitter = std::string_view(cell.name, strnlen(cell.name, sizeof(cell.name)));
  }
  return result;
}

std::map<std::string, model::DiscardSubmitters> DiscardSubmissionReader::read() const {
  std::map<std::string, model::DiscardSubmitters> result;
  for (const auto& [volume, row] : rows_) {
    model::DiscardSubmitters now = read_cells(row.number);
    for (std::size_t submitter = 0; submitter < SUBMITTERS; ++submitter) {
      now[submitter].bytes -= row.baseline[submitter].bytes;
      now[submitter].ranges -= row.baseline[submitter].ranges;
    }
    result.emplace(volume, std::move(now));
  }
  return result;
}

}  // namespace ssdpulse::block
