// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/load_codec.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/base/varints.h"
#include "daemon/model/latency_buckets.h"

namespace ssdpulse::history {
namespace {

using model::DeviceInterval;
using model::OperationInterval;
using model::SparseHistogram;
using util::VarintReader;
using util::VarintWriter;

constexpr std::uint64_t kLayout = 1;

std::vector<std::uint8_t> bytes_of(VarintWriter& out) {
  const std::string bytes = out.take();
  return {bytes.begin(), bytes.end()};
}

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

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

constexpr std::uint64_t mask_of_all(std::size_t size) { return (1ULL << size) - 1; }

template <typename Interval, typename Each>
void for_each_latency(std::uint64_t mask, Interval& interval, Each each) {
  for (std::size_t bit = 0; bit < model::kLatencies; ++bit) {
    if ((mask >> bit & 1) != 0) {
      each(interval.latency(static_cast<model::Latency>(bit)), bit);
    }
  }
}

}  // namespace

std::vector<std::uint8_t> encode(const DeviceInterval& load) {
  VarintWriter out;
  out.put(kLayout).put(load.measured_ms);
  const auto operations = mask_of(load.operations, [](const OperationInterval& one) { return !one.any(); });
  out.put(operations);
  for_each_of(operations, load.operations, [&](const OperationInterval& one) {
    out.put(one.ios).put(one.bytes).put(one.sequential_bytes).put(one.queue_full_ns).put(one.errors);
  });
  const auto losses = mask_of(load.losses, [](std::uint64_t lost) { return lost == 0; });
  out.put(losses);
  for_each_of(losses, load.losses, [&](std::uint64_t lost) { out.put(lost); });
  std::uint64_t latencies = 0;
  for_each_latency(mask_of_all(model::kLatencies), load, [&](const SparseHistogram& one, std::size_t bit) {
    latencies |= (one.empty() && one.sum_ns == 0 ? 0ULL : 1ULL) << bit;
  });
  out.put(latencies);
  for_each_latency(latencies, load, [&](const SparseHistogram& one, std::size_t) {
    out.put(one.sum_ns);
    model::put(out, one.words);
  });
  return bytes_of(out);
}

std::optional<DeviceInterval> decode(std::span<const std::uint8_t> bytes) {
  VarintReader in(text_of(bytes));
  in.expect(in.take() == kLayout);
  DeviceInterval load;
  load.measured_ms = in.take();
  for_each_of(in.take(mask_of_all(load.operations.size())), load.operations, [&](OperationInterval& one) {
    one.ios = in.take();
    one.bytes = in.take();
    one.sequential_bytes = in.take();
    one.queue_full_ns = in.take();
    one.errors = in.take();
  });
  for_each_of(in.take(mask_of_all(load.losses.size())), load.losses, [&](std::uint64_t& lost) { lost = in.take(); });
  for_each_latency(in.take(mask_of_all(model::kLatencies)), load, [&](SparseHistogram& one, std::size_t) {
    one.sum_ns = in.take();
    one.words = model::take_buckets(in);
  });
  return in.whole() ? std::optional(std::move(load)) : std::nullopt;
}

std::vector<std::uint8_t> encode(const std::vector<NumberedTenant>& tenants) {
  VarintWriter out;
  out.put(tenants.size());
  for (const NumberedTenant& tenant : tenants) {
    const auto mask = mask_of(tenant.totals, [](const auto& totals) { return totals == model::AttributedTotals{}; });
    out.put(static_cast<std::uint64_t>(tenant.id)).put(mask);
    for_each_of(mask, tenant.totals,
                [&](const model::AttributedTotals& one) { out.put(one.ios).put(one.bytes).put(one.device_ns); });
  }
  return bytes_of(out);
}

std::optional<std::vector<NumberedTenant>> decode_tenants(std::span<const std::uint8_t> bytes) {
  VarintReader in(text_of(bytes));
  std::vector<NumberedTenant> tenants(in.take(kMaxTenantsOfARow));
  for (NumberedTenant& tenant : tenants) {
    tenant.id = static_cast<std::int64_t>(in.take());
    for_each_of(in.take(mask_of_all(tenant.totals.size())), tenant.totals, [&](model::AttributedTotals& one) {
      one.ios = in.take();
      one.bytes = in.take();
      one.device_ns = in.take();
    });
  }
  return in.whole() ? std::optional(std::move(tenants)) : std::nullopt;
}

void add(std::vector<NumberedTenant>& sum, const std::vector<NumberedTenant>& more) {
  for (const NumberedTenant& tenant : more) {
    const auto known = std::find_if(sum.begin(), sum.end(), [&](const auto& other) { return other.id == tenant.id; });
    if (known == sum.end()) {
      sum.push_back(tenant);
      continue;
    }
    for (std::size_t i = 0; i < tenant.totals.size(); ++i) {
      known->totals.at(i) += tenant.totals.at(i);
    }
  }
}

CounterBytes encode_counter(model::Uint128 count) {
  CounterBytes bytes{};
  for (std::size_t i = bytes.size(); i-- > 0; count >>= 8U) {
    bytes[i] = static_cast<std::uint8_t>(count);
  }
  return bytes;
}

std::optional<model::Uint128> decode_counter(std::span<const std::uint8_t> bytes) {
  model::Uint128 count = 0;
  for (const std::uint8_t byte : bytes) {
    count = count << 8U | byte;
  }
  return bytes.size() == CounterBytes{}.size() ? std::optional(count) : std::nullopt;
}

}  // namespace ssdpulse::history
