// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/sparse_codec.h"

namespace ssdpulse::model {

void put(util::VarintWriter& out, const SparseBuckets& words) {
  out.put(words.size());
  std::uint64_t last = 0;
  for (const auto& [word, ios] : words) {
    out.put(word - last).put(ios);
    last = word;
  }
}

SparseBuckets take_words(util::VarintReader& in) {
  SparseBuckets words;
  const std::uint64_t size = in.take(LATENCY_OVER_WORD + 1);
  words.reserve(size);
  std::uint64_t word = 0;
  for (std::uint64_t i = 0; i < size && in.good(); ++i) {
    const std::uint64_t step = in.take(LATENCY_OVER_WORD);
    word += step;
    const std::uint64_t ios = in.take();
    in.expect(word <= LATENCY_OVER_WORD && ios > 0 && (i == 0 || step > 0));
    if (in.good()) {
      words.emplace_back(static_cast<std::uint8_t>(word), ios);
    }
  }
  return words;
}

}  // namespace ssdpulse::model
