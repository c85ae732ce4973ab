// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/recent_losses.h"

#include <numeric>
#include <utility>

namespace ssdpulse::analysis {
namespace {

constexpr std::chrono::minutes kWindow{1};
constexpr std::uint64_t kIosPerLoss = 1000;
constexpr std::uint64_t kHandful = 10;

std::uint64_t sum(const LostShare& share) {
  return std::accumulate(share.lost.begin(), share.lost.end(), std::uint64_t{0});
}

LostShare since_the_start(const model::DeviceIo& io) {
  LostShare share;
  for (std::size_t i = 0; i < kLostIos.size(); ++i) {
    share.lost[i] = io.losses[model::index(kLostIos[i])];
  }
  share.ios = std::accumulate(io.operations.begin(), io.operations.end(), sum(share),
                              [](std::uint64_t ios, const auto& one) { return ios + one.completions; });
  return share;
}

}  // namespace

std::optional<LostShare> RecentLosses::observe(const model::DeviceIo& io, Time at) {
  if (begin_ && at - *begin_ < kWindow) {
    return std::nullopt;
  }
  const LostShare now = since_the_start(io);
  const auto began = std::exchange(begin_, at);
  const LostShare before = std::exchange(at_begin_, now);
  if (!began) {
    return std::nullopt;
  }
  LostShare share;
  for (std::size_t i = 0; i < kLostIos.size(); ++i) {
    share.lost[i] = now.lost[i] - before.lost[i];
  }
  share.ios = now.ios - before.ios;
  share.duration = at - *began;
  const std::uint64_t lost = sum(share);
  return lost >= kHandful && lost * kIosPerLoss > share.ios ? std::optional(share) : std::nullopt;
}

}  // namespace ssdpulse::analysis
