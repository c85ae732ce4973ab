// SPDX-License-Identifier: Apache-2.0
// SampleReader: how many pages of a device were written since the last read, and which events were lost.
// decode_samples() turns the events themselves into the model's values.
#pragma once

#include <linux/types.h>

#include <array>
#include <map>
#include <span>
#include <vector>

#include "bpf/abi/block_abi.h"
#include "daemon/model/flash_samples.h"

namespace ssdpulse::block {

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
