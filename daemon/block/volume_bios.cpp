// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/volume_bios.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "daemon/block/io_cells.h"
#include "volume.skel.h"

namespace ssdpulse::block {
namespace {

static_assert(VOLUME_CLASSES == model::kBioOperations);
static_assert(CLASS_FLUSH == static_cast<int>(model::Operation::flush));

using model::BioIo;
using model::BioOperation;

bool is_volume(const model::Device& device) {
  return device.coverage == model::Coverage::stacked ||
         (device.coverage == model::Coverage::measured && !device.has_requests);
}

/// Volumes and their partitions, then what lies directly below volumes: those have the rest of the rows.
struct OfInterest {
  std::vector<DeviceRows::Wanted> wanted;
  std::set<std::string> volumes;
};
OfInterest of_interest(const model::Inventory& inventory, bool sees_partitions) {
  OfInterest result;
  for (const model::Device& device : inventory.devices) {
    if (is_volume(device)) {
      result.volumes.insert(device.name);
    }
  }
  for (const model::Volume& volume : inventory.volumes) {
    if (result.volumes.count(volume.device) != 0) {
      result.wanted.emplace_back(volume, volume.device);
    }
  }
  for (const model::Volume& volume : inventory.volumes) {
    if (volume.carries_array && result.volumes.count(volume.device) == 0 &&
        (sees_partitions || volume.name == volume.device)) {
      result.wanted.emplace_back(volume, volume.name);
    }
  }
  return result;
}

/// Of block_bio_queue.
bool has_queue_argument(const KernelBtf& btf) { return btf.discard_hooks.back() == DiscardHook::bio_queue_with_queue; }

void subtract(BioOperation& now, const BioOperation& before) {
  now.submitted -= before.submitted;
  now.bytes -= before.bytes;
  now.errors -= before.errors;
  now.untimed -= before.untimed;
  now.missed -= before.missed;
  now.latency.sum_ns -= before.latency.sum_ns;
  for (std::size_t word = 0; word < before.latency.words.size(); ++word) {
    now.latency.words[word] -= before.latency.words[word];
  }
  // Where the row had another device before, its last bios may end here.
  const auto ended = static_cast<std::int64_t>(now.latency.count() + now.untimed + now.missed);
  now.in_flight = std::max<std::int64_t>(static_cast<std::int64_t>(now.submitted) - ended, 0);
}

/// What changes with each bio that is submitted or ends.
std::uint64_t add_to_stamp(std::uint64_t stamp, const volume_cell& cell) {
  return stamp + load(cell.submitted) + load(cell.timed) + load(cell.untimed) + load(cell.missed);
}

void add_ends(BioOperation& sum, const volume_cell& cell) {
  sum.errors += load(cell.failed);
  sum.latency.sum_ns += load(cell.sum_ns);
  if (load(cell.timed) != 0) {
    sum.latency.words.resize(LATENCY_OVER_WORD + 1);
    for (std::size_t word = 0; word <= LATENCY_OVER_WORD; ++word) {
      sum.latency.words[word] += load(cell.latency[word]);
    }
  }
  sum.untimed += load(cell.untimed);
  sum.missed += load(cell.missed);
}

void add_submitted(BioOperation& sum, const volume_cell& cell) {
  sum.bytes += load(cell.bytes);
  sum.submitted += load(cell.submitted);
}

}  // namespace

std::uint32_t volume_rows(const model::Inventory& inventory) {
  const OfInterest present = of_interest(inventory, true);
  std::set<std::string_view> rows;
  if (!present.volumes.empty()) {
    for (const DeviceRows::Wanted& wanted : present.wanted) {
      rows.insert(wanted.row_of);
    }
  }
  return static_cast<std::uint32_t>(rows.size());
}

util::Result<std::unique_ptr<VolumePrograms>> VolumePrograms::open(const KernelBtf& btf, const VolumePlan& plan,
                                                                   std::uint32_t end_chain) {
  std::unique_ptr<VolumePrograms> programs(new VolumePrograms);
  programs->kernel_counts_skipped_runs_ = btf.counts_skipped_runs;
  // Atomic exchanges came later than this argument went; on arm64, later still.
  auto loaded =
      has_queue_argument(btf) ? util::fail("no atomic exchanges") : programs->load(btf, plan, end_chain, true);
  if (!loaded) {
    loaded = programs->load(btf, plan, end_chain, false);
  }
  if (!loaded) {
    return tl::make_unexpected(loaded.error());
  }
  volume& skeleton = *programs->skeleton_;
  const auto mapped = programs->mappings_.map(skeleton.maps.volume_cells, programs->cells_).and_then([&] {
    return programs->mappings_.map(skeleton.maps.volume_devices, programs->devices_);
  });
  if (!mapped) {
    return tl::make_unexpected(mapped.error());
  }
  if (volume::attach(&skeleton) != 0) {
    return util::fail_errno("cannot attach");
  }
  return programs;
}

util::Result<void> VolumePrograms::load(const KernelBtf& btf, const VolumePlan& plan, std::uint32_t end_chain,
                                        bool has_slots) {
  skeleton_.reset(volume::open());
  if (!skeleton_) {
    return util::fail_errno("cannot open");
  }
  std::copy(btf.class_of_op.begin(), btf.class_of_op.end(), skeleton_->rodata->cfg_class_of_op);
  skeleton_->rodata->cfg_preflush = btf.preflush_flag;
  skeleton_->rodata->cfg_flush_sequence_flag = btf.flush_sequence_flag;
  skeleton_->rodata->cfg_set_mask = plan.sets - 1;
  skeleton_->rodata->cfg_stripe_mask = plan.stripes - 1;
  // All of a chain but the last. These kernels are also those from before "block: fix trace completion for chained bio"
  // (Linux 5.15).
  skeleton_->rodata->cfg_silent_end = has_queue_argument(btf) ? end_chain : 1;
  const auto& progs = skeleton_->progs;
  const std::pair<bpf_program*, bool> programs[] = {
      {progs.on_volume_submit, has_slots},
      {progs.on_volume_end, has_slots},
      {progs.on_volume_request_end, has_slots},
      {progs.on_volume_submit_hash, !has_slots && !has_queue_argument(btf)},
      {progs.on_volume_submit_hash_5_10, !has_slots && has_queue_argument(btf)},
      {progs.on_volume_end_hash, !has_slots},
      {progs.on_volume_request_end_hash, !has_slots},
  };
  for (const auto& [program, wanted] : programs) {
    bpf_program__set_autoload(program, wanted);
  }
  bpf_map__set_max_entries(skeleton_->maps.volume_cells, plan.rows * volume_cells_of_row(plan.stripes));
  bpf_map__set_max_entries(skeleton_->maps.bio_sets, has_slots ? plan.sets : 1);
  bpf_map__set_max_entries(skeleton_->maps.bios, has_slots ? 1 : plan.sets * BIO_WAYS);
  if (volume::load(skeleton_.get()) != 0) {
    return util::fail_errno("the kernel refuses the programs");
  }
  return {};
}

std::vector<model::ProgramStats> VolumePrograms::program_stats() const {
  return block::program_stats(skeleton_->obj, kernel_counts_skipped_runs_);
}

void VolumePrograms::detach() { volume::detach(skeleton_.get()); }

VolumePrograms::~VolumePrograms() = default;

VolumeReader::VolumeReader(std::span<const volume_cell> cells, std::span<__u64> devices, const VolumePlan& plan,
                           bool sees_partitions)
    : cells_(cells), plan_(plan), sees_partitions_(sees_partitions), numbers_(devices, plan.rows) {}

void VolumeReader::update(const model::Inventory& inventory) {
  OfInterest present = of_interest(inventory, sees_partitions_);
  std::map<std::string, std::uint64_t> incarnations;
  std::set<std::string> replaced;
  for (const model::Layer& layer : inventory.layers) {
    incarnations[layer.name] = layer.diskseq;
    if (const auto known = incarnations_.find(layer.name);
        known != incarnations_.end() && known->second != layer.diskseq) {
      replaced.insert(layer.name);
    }
  }
  incarnations_ = std::move(incarnations);
  volumes_ = std::move(present.volumes);
  if (!replaced.empty()) {
    // Another volume of the same name gets another row.
    wanted_ = present.wanted;
    std::erase_if(wanted_, [&](const DeviceRows::Wanted& one) { return replaced.contains(one.row_of); });
    give_rows();
  }
  wanted_ = std::move(present.wanted);
  give_rows();
}

void VolumeReader::pause(bool paused) {
  paused_ = paused;
  give_rows();
}

void VolumeReader::give_rows() {
  numbers_.update(paused_ ? std::vector<DeviceRows::Wanted>() : wanted_,
                  [&](const std::string& device, std::uint32_t number) {
                    auto nothing = std::make_shared<BioIo>();
                    nothing->device = device;
                    nothing->is_volume = volumes_.count(device) != 0;
                    nothing->since = std::chrono::system_clock::now();
                    rows_.insert_or_assign(device, Row{number, read_row(number), 0, std::move(nothing)});
                  });
  std::erase_if(rows_, [&](const auto& known) { return numbers_.rows().count(known.first) == 0; });
  left_out_.clear();
  if (!paused_) {
    std::copy_if(volumes_.begin(), volumes_.end(), std::back_inserter(left_out_),
                 [&](const std::string& volume) { return rows_.count(volume) == 0; });
  }
}

std::span<const volume_cell> VolumeReader::cells_of(std::uint32_t row) const {
  const std::uint32_t cells = volume_cells_of_row(plan_.stripes);
  return cells_.subspan(std::size_t{row} * cells, cells);
}

BioIo VolumeReader::read_row(std::uint32_t row) const {
  const std::size_t hot = std::size_t{plan_.stripes} * VOLUME_HOT_CLASSES;
  const std::span<const volume_cell> cells = cells_of(row);
  BioIo io;
  // All ends are read before all submissions, so that nothing ends that was not submitted.
  for (const auto add : {add_ends, add_submitted}) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      add(io.operations[i < hot ? i % VOLUME_HOT_CLASSES : i - hot + VOLUME_HOT_CLASSES], cells[i]);
    }
  }
  return io;
}

const std::vector<std::shared_ptr<const BioIo>>& VolumeReader::read() {
  published_.clear();
  for (auto& [device, row] : rows_) {
    const std::span<const volume_cell> cells = cells_of(row.number);
    const std::uint64_t stamp = std::accumulate(cells.begin(), cells.end(), std::uint64_t{1}, add_to_stamp);
    if (std::exchange(row.stamp, stamp) != stamp) {
      auto now = std::make_shared<BioIo>(*row.published);
      now->operations = read_row(row.number).operations;
      for (std::size_t operation = 0; operation < model::kBioOperations; ++operation) {
        subtract(now->operations[operation], row.baseline.operations[operation]);
      }
      row.published = std::move(now);
    }
    published_.push_back(row.published);
  }
  return published_;
}

}  // namespace ssdpulse::block
