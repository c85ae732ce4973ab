// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/freeze_programs.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "daemon/sources/block/program_stats.h"
#include "daemon/util/printable_text.h"
#include "freeze.skel.h"

namespace ssdpulse::block {
namespace {

/// dev_t within the kernel: MINORBITS is 20 (include/linux/kdev_t.h).
std::string device_number(__u32 device) {
  constexpr unsigned kMinorBits = 20;
  return std::to_string(device >> kMinorBits) + ":" + std::to_string(device & ((1U << kMinorBits) - 1));
}

}  // namespace

void FreezePrograms::SkeletonDeleter::operator()(freeze* skeleton) const { freeze::destroy(skeleton); }

util::Result<std::unique_ptr<FreezePrograms>> FreezePrograms::open(bool kernel_counts_skipped_runs) {
  constexpr std::size_t kMostEvents = 1024;  // of one fetch: more than the ring holds
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
  auto ring = EventRing<freeze_event>::open(bpf_map__fd(programs->skeleton_->maps.freezes), kMostEvents);
  if (!ring) {
    return tl::make_unexpected(ring.error());
  }
  programs->events_ = std::move(*ring);
  if (freeze::attach(programs->skeleton_.get()) != 0) {
    return util::fail_errno("cannot attach");
  }
  return programs;
}

const std::map<std::string, std::string>& FreezePrograms::frozen() {
  for (const freeze_event& event : events_.fetch()) {
    if (event.frozen == 0) {
      frozen_.erase(device_number(event.device));
      continue;
    }
    const auto* const end = std::find(std::begin(event.name), std::end(event.name), '\0');
    frozen_[device_number(event.device)] = util::printable_text(std::string(std::begin(event.name), end));
  }
  // What is not known to be frozen is not claimed.
  if (const std::uint64_t lost = skeleton_->bss->freezes_lost; lost != lost_) {
    lost_ = lost;
    frozen_.clear();
  }
  return frozen_;
}

std::vector<model::ProgramStats> FreezePrograms::program_stats() const {
  std::vector<model::ProgramStats> result;
  add_program_stats(skeleton_->obj, kernel_counts_skipped_runs_, result);
  return result;
}

void FreezePrograms::detach() {
  freeze::detach(skeleton_.get());
  frozen_.clear();
}

FreezePrograms::~FreezePrograms() = default;

}  // namespace ssdpulse::block
