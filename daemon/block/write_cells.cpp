// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/write_cells.h"

#include <algorithm>
#include <functional>

#include "daemon/block/io_cells.h"
#include "daemon/model/block_io.h"

namespace ssdpulse::block {
namespace {

static_assert(model::index(model::WriteClass::journal) == WRITE_JOURNAL && model::kWriteClasses == WRITE_OTHER + 1);
static_assert(model::index(model::WriteClass::direct) == WRITE_DIRECT);
static_assert(model::index(model::WriteClass::other) == WRITE_OTHER);
static_assert(model::index(model::WriteHint::extreme) == 5, "hints 1 to 5 are the kernel's");
static_assert(static_cast<int>(model::FlashEventKind::write) == SAMPLE_WRITE);
static_assert(static_cast<int>(model::FlashEventKind::discard) == SAMPLE_DISCARD);
static_assert(static_cast<int>(model::FlashEventKind::zeroes) == SAMPLE_ZEROES);
static_assert(static_cast<int>(model::FlashEventKind::zeroes_kept) == SAMPLE_ZEROES_KEPT);
static_assert(model::kFlashEventKinds == SAMPLE_KINDS);

/// A part of a cell that consists of words of one width: `first` is the first of them.
template <typename Word>
std::span<Word> words(Word& first, std::size_t bytes) {
  return {&first, bytes / sizeof(Word)};
}

template <typename Word>
void add(std::span<Word> sum, std::span<const Word> cell) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += load(cell[i]);
  }
}

/// Stores now - before in `difference` and copies `now` to `before`; each word modulo its width.
template <typename Word>
void advance(std::span<const Word> now, std::span<Word> before, std::span<Word> difference) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    difference[i] = now[i] - before[i];
    before[i] = now[i];
  }
}

constexpr auto byte_counts = [](auto& cell) { return words(cell.class_bytes[0], offsetof(write_cell, hint_ios)); };
constexpr auto ios = [](auto& cell) { return words(cell.hint_ios[0], sizeof cell.hint_ios); };
constexpr auto streams = [](auto& cell) { return words(cell.stream_bytes[0], sizeof cell.stream_bytes); };
constexpr auto sums = [](auto& cell) { return words(cell.latency_sum_ns[0], sizeof cell.latency_sum_ns); };
constexpr auto latencies = [](auto& cell) { return words(cell.latency[0][0], sizeof cell.latency); };

}  // namespace

model::WriteHint hint_of(std::size_t code, model::WriteHint default_hint) {
  if (code == HINT_DEFAULT) {
    return default_hint;
  }
  if (code > HINT_NOT_SET) {
    return model::WriteHint::unknown;
  }
  return code == HINT_NOT_SET ? model::WriteHint::not_set : static_cast<model::WriteHint>(code);
}

WriteReader::WriteReader(std::span<const write_cell> cells, std::span<const tagged_cell> tagged)
    : cells_(cells), tagged_(tagged) {
  hinted_ = true;
  read();
  hinted_ = false;
}

const WriteIncrements& WriteReader::read() {
  write_cell now{};
  for (const write_cell& cell : cells_) {
    add(byte_counts(now), byte_counts(cell));
    add(ios(now), ios(cell));
  }
  advance<__u64>(byte_counts(now), byte_counts(last_.cell), byte_counts(increments_.cell));
  advance<__u32>(ios(now), ios(last_.cell), ios(increments_.cell));
  const auto hinted = ios(increments_.cell).subspan(HINT_DEFAULT + 1);
  hinted_ = hinted_ || std::any_of(hinted.begin(), hinted.end(), [](__u32 count) { return count != 0; });
  increments_.tagged = {};
  if (!hinted_ && increments_.cell.stream_bytes == 0) {
    return increments_;
  }
  tagged_cell tagged{};
  for (const tagged_cell& cell : tagged_) {
    add(streams(tagged), streams(cell));
    add(sums(tagged), sums(cell));
    add(latencies(tagged), latencies(cell));
  }
  advance<__u64>(streams(tagged), streams(last_.tagged), streams(increments_.tagged));
  advance<__u64>(sums(tagged), sums(last_.tagged), sums(increments_.tagged));
  advance<__u32>(latencies(tagged), latencies(last_.tagged), latencies(increments_.tagged));
  return increments_;
}

void decode_writes(const WriteIncrements& increments, model::WriteHint default_hint, model::WriteDetails& writes) {
  for (std::size_t code = 0; code <= HINT_NOT_SET; ++code) {
    const std::size_t hint = model::index(hint_of(code, default_hint));
    writes.hint_bytes[hint] += increments.cell.hint_bytes[code];
    writes.hint_ios[hint] += increments.cell.hint_ios[code];
    if (code != HINT_DEFAULT) {
      writes.hint_latency[hint].sum_ns += increments.tagged.latency_sum_ns[code];
      add_counts(std::span(increments.tagged.latency[code]).first<LATENCY_OVER_WORD + 1>(),
                 writes.hint_latency[hint].words);
    }
  }
  for (std::size_t i = 0; i < model::kWriteClasses; ++i) {
    writes.class_bytes[i] += increments.cell.class_bytes[i];
  }
  for (std::size_t stream = 1; stream < WRITE_STREAMS; ++stream) {
    if (increments.tagged.stream_bytes[stream] != 0) {
      writes.stream_bytes[static_cast<std::uint8_t>(stream)] += increments.tagged.stream_bytes[stream];
    }
  }
  writes.misaligned_bytes += increments.cell.misaligned_bytes;
  writes.small_bytes += increments.cell.small_bytes;
}

void complete_latency(const model::OperationIo& all, model::WriteHint default_hint, model::WriteDetails& writes) {
  constexpr std::size_t kWords = LATENCY_OVER_WORD + 1;
  std::array<std::uint64_t, kWords> rest{};
  std::uint64_t sum_ns = 0;
  for (const model::LatencyHistogram& latency : all.device_latency) {
    std::transform(latency.words.begin(), latency.words.end(), rest.begin(), rest.begin(), std::plus<>());
    sum_ns += latency.sum_ns;
  }
  for (std::size_t hint = 0; hint < model::kWriteHints; ++hint) {
    if (hint == model::index(default_hint)) {
      continue;
    }
    const model::LatencyHistogram& hinted = writes.hint_latency[hint];
    for (std::size_t i = 0; i < hinted.words.size(); ++i) {
      rest[i] -= std::min(rest[i], hinted.words[i]);
    }
    sum_ns -= std::min(sum_ns, hinted.sum_ns);
  }
  model::LatencyHistogram& result = writes.hint_latency[model::index(default_hint)];
  result.sum_ns = std::max(result.sum_ns, sum_ns);
  if (result.empty() && std::all_of(rest.begin(), rest.end(), [](std::uint64_t count) { return count == 0; })) {
    return;
  }
  result.words.resize(kWords);
  std::transform(rest.begin(), rest.end(), result.words.begin(), result.words.begin(),
                 [](std::uint64_t now, std::uint64_t before) { return std::max(now, before); });
}

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
  store(sampling.groups, parameters.followed);
}

void stop_sampling(page_sampling& sampling) { store(sampling.groups, 0); }

}  // namespace ssdpulse::block
