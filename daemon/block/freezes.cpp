// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/freezes.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "freeze.skel.h"

namespace ssdpulse::block {
namespace {

/// dev_t within the kernel: MINORBITS is 20 (include/linux/kdev_t.h).
std::string device_number(__u32 device) {
  constexpr unsigned kMinorBits = 20;
  return std::to_string(device >> kMinorBits) + ":" + std::to_string(device & ((1U << kMinorBits) - 1));
}

}  // namespace

void FrozenSuperBlocks::observe(const std::vector<freeze_event>& events, std::uint64_t lost) {
  for (const freeze_event& event : events) {
    const std::string device = device_number(event.device);
    if (event.frozen == 0) {
      commands_.erase(device);
    } else if (event.by_thaw != 0) {
      commands_[device].clear();  // the thaw was refused, or somebody else keeps it frozen, too
    } else {
      const auto* const end = std::find(std::begin(event.name), std::end(event.name), '\0');
      commands_.try_emplace(device, std::string(std::begin(event.name), end));
    }
  }
  // One may have been lost after the last of these events, or, last time, before the first.
  const bool lost_now = std::exchange(lost_, lost) != lost;
  if (std::exchange(lost_before_, lost_now) || lost_now) {
    forget();
  }
}

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
  return block::program_stats(skeleton_->obj, kernel_counts_skipped_runs_);
}

void FreezePrograms::detach() {
  freeze::detach(skeleton_.get());
  events_ = {};
  blocks_.forget();
}

FreezePrograms::~FreezePrograms() = default;

}  // namespace ssdpulse::block
