// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/discard_submissions.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "daemon/base/complete.h"
#include "daemon/block/io_cells.h"
#include "discard.skel.h"

namespace ssdpulse::block {
namespace {

static_assert(SUBMITTERS == model::kDiscardSubmitters);
static_assert(SUBMITTER_KERNEL == static_cast<int>(model::DiscardSubmitter::kernel));
static_assert(SUBMITTER_OTHER == static_cast<int>(model::DiscardSubmitter::other));

using model::KernelDecision;
using Programs = decltype(discard::progs);

struct Hook {
  DiscardHook hook;
  bpf_program* Programs::*program;
  KernelDecision decision;
};
constexpr auto kHooks = std::to_array<Hook>({
    {DiscardHook::chain_bio, &Programs::on_discard_bio, KernelDecision::bio_chain_and_submit},
    {DiscardHook::issue, &Programs::on_discard, KernelDecision::blkdev_issue_discard},
    {DiscardHook::issue_with_flags, &Programs::on_discard_5_18, KernelDecision::blkdev_issue_discard_with_flags},
    {DiscardHook::bio_queue, &Programs::on_bio_queue, KernelDecision::every_bio},
    {DiscardHook::bio_queue_with_queue, &Programs::on_bio_5_10, KernelDecision::every_bio},
});
static_assert(util::is_table_of(kHooks, &Hook::hook));

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

}  // namespace

util::Result<std::unique_ptr<DiscardPrograms>> DiscardPrograms::open(const KernelBtf& btf, std::uint32_t rows,
                                                                     bool may_hook_every_bio) {
  std::unique_ptr<DiscardPrograms> programs(new DiscardPrograms);
  programs->kernel_counts_skipped_runs_ = btf.counts_skipped_runs;
  std::string& refusals = programs->refusals_;
  for (const DiscardHook hook : btf.discard_hooks) {
    const KernelDecision decision = kHooks[static_cast<std::size_t>(hook)].decision;
    const bool every_bio = decision == KernelDecision::every_bio;
    const auto hooked =
        every_bio && !may_hook_every_bio ? util::fail("not in completion-only mode") : programs->hook(btf, hook, rows);
    if (!hooked) {
      refusals += (refusals.empty() ? "" : "; ") + std::string(name(decision, model::kKernelDecisionNames)) + ": " +
                  hooked.error().message;
      continue;
    }
    programs->decision_ = decision;
    programs->sees_partitions_ = !every_bio || btf.bios_keep_partition;
    const auto& maps = programs->skeleton_->maps;
    const auto mapped = programs->mappings_.map(maps.discard_cells, programs->cells_).and_then([&] {
      return programs->mappings_.map(maps.discard_volumes, programs->volumes_);
    });
    if (!mapped) {
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
  bpf_program* wanted = skeleton_->progs.*kHooks[static_cast<std::size_t>(hook)].program;
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

std::vector<model::ProgramStats> DiscardPrograms::program_stats() const {
  return block::program_stats(skeleton_->obj, kernel_counts_skipped_runs_);
}

void DiscardPrograms::detach() { discard::detach(skeleton_.get()); }

DiscardPrograms::~DiscardPrograms() = default;

std::uint32_t discard_rows(const model::Inventory& inventory) {
  constexpr std::size_t kSpare = 64;
  const std::size_t present = volumes_of_interest(inventory).size();
  return static_cast<std::uint32_t>(std::min<std::size_t>(present + present / 4 + kSpare, DEVICE_ROW_ENTRIES));
}

DiscardSubmissionReader::DiscardSubmissionReader(std::span<const discard_cell> cells, std::span<__u64> volumes,
                                                 bool sees_partitions)
    : cells_(cells),
      sees_partitions_(sees_partitions),
      rows_(volumes, static_cast<std::uint32_t>(cells.size() / SUBMITTERS)) {}

void DiscardSubmissionReader::update(const model::Inventory& inventory) {
  std::vector<DeviceRows::Wanted> wanted;
  for (const model::Volume* volume : volumes_of_interest(inventory)) {
    if (sees_partitions_ || volume->name == volume->device) {
      wanted.emplace_back(*volume, volume->name);
    }
  }
  rows_.update(wanted, [&](const std::string& volume, std::uint32_t row) {
    baselines_.insert_or_assign(volume, read_cells(row));
  });
  std::erase_if(baselines_, [&](const auto& known) { return rows_.rows().count(known.first) == 0; });
}

model::DiscardSubmitters DiscardSubmissionReader::read_cells(std::uint32_t row) const {
  model::DiscardSubmitters result;
  for (std::size_t submitter = 0; submitter < SUBMITTERS; ++submitter) {
    const discard_cell& cell = cells_[std::size_t{row} * SUBMITTERS + submitter];
    model::DiscardSubmissions& out = result[submitter];
    out.bytes = load(cell.bytes);
    out.ranges = load(cell.ranges);
    out.first_ns = load(cell.first_ns);
    out.last_ns = load(cell.last_ns);
    out.submitter = std::string_view(cell.name, strnlen(cell.name, sizeof(cell.name)));
  }
  return result;
}

std::map<std::string, model::DiscardSubmitters> DiscardSubmissionReader::read() const {
  std::map<std::string, model::DiscardSubmitters> result;
  for (const auto& [volume, row] : rows_.rows()) {
    model::DiscardSubmitters now = read_cells(row);
    const model::DiscardSubmitters& baseline = baselines_.at(volume);
    for (std::size_t submitter = 0; submitter < SUBMITTERS; ++submitter) {
      now[submitter].bytes -= baseline[submitter].bytes;
      now[submitter].ranges -= baseline[submitter].ranges;
    }
    result.emplace(volume, std::move(now));
  }
  return result;
}

}  // namespace ssdpulse::block
