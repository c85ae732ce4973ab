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
  return stamp + load(cell.submitted) + load(cell.timed) + load(cell.missed);
}

void add(BioOperation& sum, const volume_cell& cell) {
  // What ends is read before what was submitted, so that nothing ends that was not submitted.
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

util::Result<std::unique_ptr<VolumePrograms>> VolumePrograms::open(const KernelBtf& btf, const VolumePlan& plan) {
  std::unique_ptr<VolumePrograms> programs(new VolumePrograms);
  programs->kernel_counts_skipped_runs_ = btf.counts_skipped_runs;
  programs->skeleton_.reset(volume::open());
  if (!programs->skeleton_) {
    return util::fail_errno("cannot open");
  }
  volume& skeleton = *programs->skeleton_;
  std::copy(btf.class_of_op.begin(), btf.class_of_op.end(), skeleton.rodata->cfg_class_of_op);
  skeleton.rodata->cfg_preflush = btf.preflush_flag;
  skeleton.rodata->cfg_set_mask = plan.sets - 1;
  skeleton.rodata->cfg_stripe_mask = plan.stripes - 1;
  // Both came with Linux 5.12: bios that know their partition, and atomic instructions that a slot is taken with.
  const bool has_slots = btf.bios_keep_partition;
  const auto& progs = skeleton.progs;
  bpf_program__set_autoload(progs.on_volume_submit, has_slots);
  bpf_program__set_autoload(progs.on_volume_end, has_slots);
  bpf_program__set_autoload(progs.on_volume_request_end, has_slots);
  bpf_program__set_autoload(progs.on_volume_submit_5_10, !has_slots);
  bpf_program__set_autoload(progs.on_volume_request_end_5_10, !has_slots);
  bpf_program__set_autoload(progs.on_volume_end_5_10, !has_slots);
  bpf_map__set_max_entries(skeleton.maps.volume_cells, plan.rows * volume_cells_of_row(plan.stripes));
  bpf_map__set_max_entries(skeleton.maps.bio_sets, has_slots ? plan.sets : 1);
  bpf_map__set_max_entries(skeleton.maps.bios, has_slots ? 1 : plan.sets * BIO_WAYS);
  if (volume::load(&skeleton) != 0) {
    return util::fail_errno("the kernel refuses the programs");
  }
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
  wanted_ = std::move(present.wanted);
  volumes_ = std::move(present.volumes);
  give_rows();
}

void VolumeReader::pause(bool paused) {
  paused_ = paused;
  give_rows();
}

void VolumeReader::give_rows() {
  numbers_.update(paused_ ? std::vector<DeviceRows::Wanted>() : wanted_);
  std::erase_if(rows_, [&](const auto& known) { return numbers_.rows().count(known.first) == 0; });
  for (const auto& [device, number] : numbers_.rows()) {
    if (rows_.count(device) == 0) {
      auto nothing = std::make_shared<BioIo>();
      nothing->device = device;
      nothing->is_volume = volumes_.count(device) != 0;
      nothing->since = std::chrono::system_clock::now();
      rows_.emplace(device, Row{number, read_row(number), 0, std::move(nothing)});
    }
  }
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
  BioIo io;
  std::size_t number = 0;
  for (const volume_cell& cell : cells_of(row)) {
    add(io.operations[number < hot ? number % VOLUME_HOT_CLASSES : number - hot + VOLUME_HOT_CLASSES], cell);
    ++number;
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
