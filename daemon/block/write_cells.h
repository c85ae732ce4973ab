// SPDX-License-Identifier: Apache-2.0
// WriteReader, SampleReader: what the kernel side counts only for writes, and which pages it sampled, as the model's
// values. Not thread-safe.
#pragma once

#include <linux/types.h>

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "bpf/abi/block_abi.h"
#include "daemon/model/flash_values.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/write_details.h"

namespace ssdpulse::block {

struct WriteIncrements {
  write_cell cell{};
  tagged_cell tagged{};
};

/// What was counted since the last read in a device's write cells and tagged cells.
class WriteReader {
 public:
  /// The cells of one device. What they hold now becomes the baseline.
  WriteReader(std::span<const write_cell> cells, std::span<const tagged_cell> tagged);

  /// To be called after the device's hot cells were read, whenever they had changed. Valid until the next call.
  const WriteIncrements& read();

 private:
  std::span<const write_cell> cells_;
  std::span<const tagged_cell> tagged_;
  bool hinted_ = false;  // a write has had a hint; until then, the tagged cells are read only for streams
  WriteIncrements last_;
  WriteIncrements increments_;
};

/// The hint of a write that carries none: where bios carry hints, it has none; else unknown.
constexpr model::WriteHint default_hint(bool bios_have_hints) {
  return bios_have_hints ? model::WriteHint::not_set : model::WriteHint::unknown;
}

/// Converts the kernel side's code for a hint to the model's.
model::WriteHint hint_of(std::size_t code, model::WriteHint default_hint);

void decode_writes(const WriteIncrements& increments, model::WriteHint default_hint, model::WriteDetails& writes);

/// Latency is kept per hint only for writes that have one; that of the others is what remains of all writes. It never
/// decreases, and is exact at rest: all writes are read first, so a hinted one may be missing from them, but is never
/// counted as one without a hint.
void complete_latency(const model::OperationIo& all, model::WriteHint default_hint, model::WriteDetails& writes);

/// How many pages of a device were written since the last read, and which events were lost.
class SampleReader {
 public:
  /// The cells and the state of one device. What they hold now becomes the baseline.
  SampleReader(std::span<const write_cell> cells, const device_state& state);

  /// Adds what was counted since the last call. To be called after the events were fetched: then it includes the pages
  /// of each. `default_hint`: the hint of a write that carries none.
  void read(model::WriteHint default_hint, model::DeviceFlashSamples& totals);

 private:
  std::span<const write_cell> cells_;
  const device_state* state_;
  std::array<__u64, HINTS> pages_{};
  std::array<__u64, SAMPLE_KINDS> lost_{};
};

/// Index of a device in FlashSamples::devices, by the number of its parameters.
using SampledDevices = std::map<__u32, std::uint16_t>;

/// Events with other numbers are left out: they were sent before a device got its present parameters, or disappeared.
std::vector<model::FlashEvent> decode_samples(std::span<const sample_event> events, const SampledDevices& devices,
                                              model::WriteHint default_hint);

/// Makes the programs sample a device; if it is sampled already, that must have been stopped in an earlier tick.
void start_sampling(const model::SamplingParameters& parameters, __u32 number, page_sampling& sampling);
void stop_sampling(page_sampling& sampling);

}  // namespace ssdpulse::block
