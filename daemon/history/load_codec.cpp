// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/load_codec.h"

#include <utility>

namespace ssdpulse::history {
namespace {

using model::DeviceLoad;
using model::OperationLoad;
using model::SparseHistogram;

constexpr std::uint64_t kLayout = 1;

class Writer {
 public:
  Writer& put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) {
      bytes_.push_back(static_cast<std::uint8_t>(value | 0x80U));
    }
    bytes_.push_back(static_cast<std::uint8_t>(value));
    return *this;
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Ends in good() only if every number was there and within its bound, and nothing is left.
class Parser {
 public:
  explicit Parser(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint64_t take() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; good_; shift += 7) {
      if (bytes_.empty() || shift > 63 || (shift == 63 && bytes_[0] > 1)) {
        good_ = false;
        break;
      }
      const std::uint8_t byte = bytes_[0];
      bytes_ = bytes_.subspan(1);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    return 0;
  }
  std::uint64_t take(std::uint64_t most) {
    const std::uint64_t value = take();
    good_ = good_ && value <= most;
    return good_ ? value : 0;
  }
  void expect(bool what) { good_ = good_ && what; }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool whole() const { return good_ && bytes_.empty(); }

 private:
  std::span<const std::uint8_t> bytes_;
  bool good_ = true;
};

template <typename Values, typename Absent>
std::uint64_t mask_of(const Values& values, Absent absent) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    mask |= (absent(values[i]) ? 0ULL : 1ULL) << i;
  }
  return mask;
}

template <typename Values, typename Each>
void for_each_of(std::uint64_t mask, Values& values, Each each) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if ((mask >> i & 1) != 0) {
      each(values[i]);
    }
  }
}

std::uint64_t all_of(std::size_t size) { return (1ULL << size) - 1; }

void put(Writer& out, const SparseHistogram& histogram) {
  out.put(histogram.words.size()).put(histogram.sum_ns);
  std::uint64_t last = 0;
  for (const auto& [word, ios] : histogram.words) {
    out.put(word - last).put(ios);
    last = word;
  }
}

void take(Parser& in, SparseHistogram& histogram) {
  const std::uint64_t words = in.take(LATENCY_OVER_WORD + 1);
  histogram.sum_ns = in.take();
  histogram.words.reserve(words);
  std::uint64_t word = 0;
  for (std::uint64_t i = 0; i < words && in.good(); ++i) {
    const std::uint64_t step = in.take(LATENCY_OVER_WORD);
    word += step;
    const std::uint64_t ios = in.take();
    in.expect(word <= LATENCY_OVER_WORD && ios > 0 && (i == 0 || step > 0));
    if (in.good()) {
      histogram.words.emplace_back(static_cast<std::uint8_t>(word), ios);
    }
  }
}

bool absent(const SparseHistogram& histogram) { return histogram.empty() && histogram.sum_ns == 0; }

}  // namespace

std::vector<std::uint8_t> encode(const DeviceLoad& load) {
  Writer out;
  out.put(kLayout).put(load.measured_ms);
  const auto operations = mask_of(load.operations, [](const OperationLoad& one) { return one == OperationLoad{}; });
  out.put(operations);
  for_each_of(operations, load.operations, [&](const OperationLoad& one) {
    out.put(one.ios).put(one.bytes).put(one.sequential_bytes).put(one.queue_full_ns).put(one.errors);
  });
  const auto losses = mask_of(load.losses, [](std::uint64_t lost) { return lost == 0; });
  out.put(losses);
  for_each_of(losses, load.losses, [&](std::uint64_t lost) { out.put(lost); });
  const auto latencies = mask_of(load.latencies, absent);
  out.put(latencies);
  for_each_of(latencies, load.latencies, [&](const SparseHistogram& one) { put(out, one); });
  return out.take();
}

std::optional<DeviceLoad> decode(std::span<const std::uint8_t> bytes) {
  Parser in(bytes);
  in.expect(in.take() == kLayout);
  DeviceLoad load;
  load.measured_ms = in.take();
  for_each_of(in.take(all_of(load.operations.size())), load.operations, [&](OperationLoad& one) {
    one.ios = in.take();
    one.bytes = in.take();
    one.sequential_bytes = in.take();
    one.queue_full_ns = in.take();
    one.errors = in.take();
  });
  for_each_of(in.take(all_of(load.losses.size())), load.losses, [&](std::uint64_t& lost) { lost = in.take(); });
  for_each_of(in.take(all_of(load.latencies.size())), load.latencies, [&](SparseHistogram& one) { take(in, one); });
  return in.whole() ? std::optional(std::move(load)) : std::nullopt;
}

std::vector<std::uint8_t> encode(const std::vector<NumberedTenant>& tenants) {
  Writer out;
  out.put(tenants.size());
  for (const NumberedTenant& tenant : tenants) {
    const auto mask = mask_of(tenant.totals, [](const auto& totals) { return totals == model::AttributedTotals{}; });
    out.put(static_cast<std::uint64_t>(tenant.id)).put(mask);
    for_each_of(mask, tenant.totals,
                [&](const model::AttributedTotals& one) { out.put(one.ios).put(one.bytes).put(one.device_ns); });
  }
  return out.take();
}

std::optional<std::vector<NumberedTenant>> decode_tenants(std::span<const std::uint8_t> bytes) {
  Parser in(bytes);
  std::vector<NumberedTenant> tenants(in.take(kMaxTenantsOfARow));
  for (NumberedTenant& tenant : tenants) {
    tenant.id = static_cast<std::int64_t>(in.take());
    for_each_of(in.take(all_of(tenant.totals.size())), tenant.totals, [&](model::AttributedTotals& one) {
      one.ios = in.take();
      one.bytes = in.take();
      one.device_ns = in.take();
    });
  }
  return in.whole() ? std::optional(std::move(tenants)) : std::nullopt;
}

}  // namespace ssdpulse::history
