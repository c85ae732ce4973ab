// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/freeze_programs.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <utility>

#include "daemon/sources/block/program_stats.h"
#include "freeze.skel.h"

namespace ssdpulse::block {
void FreezePrograms::SkeletonDeleter::operator()(freeze* skeleton) const { freeze::destroy(skeleton); }

util::Result<std::unique_ptr<FreezePrograms>> FreezePrograms::open(bool kernel_counts_skipped_runs) {
  constexpr std::size_t kMaxEvents = 1024;  // of one fetch: more than the ring holds
  std::unique_ptr<FreezePrograms> programs(new FreezePrograms);
  programs->kernel_counts_skipped_runs_ = kernel_counts_skipped_runs;
  programs->skeleton_.reset(freeze::open());
  if (!programs->skeleton_) {
    return util::fail_errno("cannot open");
  }
  if (freeze::load(programs->skeleton_.get()) != 0) {
    // Not the kernel's message, which suggests a missing privilege: many kernels let none of their functions be hooked.
    return util::fail("not hookable on this kernel (errno " + std::to_string(errno) + ")");
  }
  auto ring = EventRing<freeze_event>::open(bpf_map__fd(programs->skeleton_->maps.freezes), kMaxEvents);
  if (!ring) {
    return tl::make_unexpected(ring.error());
  }
  programs->events_ = std::move(*ring);
  if (freeze::attach(programs->skeleton_.get()) != 0) {
    return util::fail_errno("cannot attach");
  }
  return programs;
}

const std::map<std::string, util::OutsideText>& FreezePrograms::frozen() {
  std::uint64_t lost = events_lost();
  for (const model::ProgramStats& program : program_stats()) {
    lost += program.recursion_misses.value_or(0);  // runs that the kernel skipped
  }
  blocks_.observe(events_.fetch(), lost);
  return blocks_.commands();
}

std::uint64_t FreezePrograms::events_lost() const { return skeleton_->bss->freezes_lost; }

std::vector<model::ProgramStats> FreezePrograms::program_stats() const {
  std::vector<model::ProgramStats> result;
  add_program_stats(skeleton_->obj, kernel_counts_skipped_runs_, result);
  return result;
}

void FreezePrograms::detach() {
  freeze::detach(skeleton_.get());
  events_ = {};
  blocks_.forget();
}

FreezePrograms::~FreezePrograms() = default;

}  // namespace ssdpulse::block
