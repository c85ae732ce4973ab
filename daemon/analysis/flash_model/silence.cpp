// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/silence.h"

namespace ssdpulse::analysis {

std::optional<FlashSilence> silence_of(const FlashDriveFacts& facts) {
  if (facts.virtual_device && !facts.wanted_though_virtual) {
    return FlashSilence::virtual_device;
  }
  // Hypervisors often present flash as rotational. Someone who asks for a model of a virtual disk knows what is behind
  // it.
  if (facts.rotational && !facts.virtual_device) {
    return FlashSilence::rotational;
  }
  if (facts.zoned) {
    return FlashSilence::zoned;
  }
  if (facts.compresses) {
    return FlashSilence::compression;
  }
  if (facts.size_bytes == 0) {
    return FlashSilence::no_size;
  }
  if (facts.partly_measured) {
    return FlashSilence::partly_measured;
  }
  if (facts.written_elsewhere > kMaxWrittenElsewhere) {
    return FlashSilence::written_elsewhere;
  }
  return std::nullopt;
}

std::string in_words(FlashSilence silence) {
  switch (silence) {
    case FlashSilence::rotational:
      return "it is not flash";
    case FlashSilence::zoned:
      return "the host collects its zones, not the drive";
    case FlashSilence::virtual_device:
      return "it is a virtual disk, or of a virtual machine and shows no wear: what is behind it is not known";
    case FlashSilence::compression:
      return "the drive compresses: what it writes depends on the data";
    case FlashSilence::no_size:
      return "its size is 0";
    case FlashSilence::too_small:
      return "it is too small to be sampled";
    case FlashSilence::no_memory:
      return "the memory for models is used up by other drives";
    case FlashSilence::partly_measured:
      return "not all of its namespaces and paths are measured";
    case FlashSilence::written_elsewhere:
      return "more than 2 % of what it counts as written came by passthrough or from another host";
    case FlashSilence::warming_up:
      return "too little was written since the start";
    case FlashSilence::few_writes:
      return "too little was written in this window";
    case FlashSilence::events_lost:
      return "too many events were lost";
    case FlashSilence::wide_bounds:
      return "its bounds are more than 25 % apart";
    case FlashSilence::unknown_pages:
      return "it is not known how much of the drive holds data: an fstrim would tell";
  }
  return "";
}

}  // namespace ssdpulse::analysis
