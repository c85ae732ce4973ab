// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/discard_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>

#include <cerrno>
#include <string>
#include <type_traits>
#include <utility>

#include "daemon/sources/block/program_stats.h"
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

}  // namespace ssdpulse::block
