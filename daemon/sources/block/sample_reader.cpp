// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/sample_reader.h"

#include <cstddef>

#include "daemon/model/operation.h"
#include "daemon/sources/block/kernel_words.h"
#include "daemon/sources/block/write_reader.h"

namespace ssdpulse::block {
namespace {

static_assert(static_cast<int>(model::FlashEventKind::write) == SAMPLE_WRITE);
static_assert(static_cast<int>(model::FlashEventKind::discard) == SAMPLE_DISCARD);
static_assert(static_cast<int>(model::FlashEventKind::zeroes) == SAMPLE_ZEROES);
static_assert(static_cast<int>(model::FlashEventKind::zeroes_kept) == SAMPLE_ZEROES_KEPT);
static_assert(model::kFlashEventKinds == SAMPLE_KINDS);

}  // namespace

SampleReader::SampleReader(std::span<const write_cell> cells, const device_state& state)
    : cells_(cells), state_(&state) {
  model::DeviceFlashSamples of_an_earlier_device;
  read(model::WriteHint::unknown, of_an_earlier_device);
}

void SampleReader::read(model::WriteHint default_hint, model::DeviceFlashSamples& totals) {
  for (std::size_t code = 0; code < HINTS; ++code) {
    __u64 now = 0;
    for (const write_cell& cell : cells_) {
      now += load(cell.hint_pages[code]);
    }
    totals.written[model::index(hint_of(code, default_hint))] += now - pages_[code];
    pages_[code] = now;
  }
  for (std::size_t kind = 0; kind < SAMPLE_KINDS; ++kind) {
    const __u64 now = load(state_->samples_lost[kind]);
    totals.lost[kind] += now - lost_[kind];
    lost_[kind] = now;
  }
}

std::vector<model::FlashEvent> decode_samples(std::span<const sample_event> events, const SampledDevices& devices,
                                              model::WriteHint default_hint) {
  std::vector<model::FlashEvent> result;
  result.reserve(events.size());
  for (const sample_event& event : events) {
    const auto device = devices.find(event.sampling);
    if (device == devices.end() || event.kind >= SAMPLE_KINDS) {
      continue;
    }
    const bool write = event.kind == SAMPLE_WRITE;
    result.push_back({event.first, event.count, device->second, static_cast<model::FlashEventKind>(event.kind),
                      static_cast<std::uint8_t>(write ? hint_of(event.hint, default_hint) : model::WriteHint{})});
  }
  return result;
}

void start_sampling(const model::SamplingParameters& parameters, __u32 number, page_sampling& sampling) {
  sampling.first_page = parameters.first_page;
  sampling.seed = parameters.seed;
  sampling.sampling = number;
  sampling.page_bits = parameters.page_bits;
  sampling.rate_bits = parameters.rate_bits;
  __atomic_store_n(&sampling.groups, parameters.followed, __ATOMIC_RELEASE);
}

void stop_sampling(page_sampling& sampling) { __atomic_store_n(&sampling.groups, 0, __ATOMIC_RELEASE); }

}  // namespace ssdpulse::block
