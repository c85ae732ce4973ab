// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/unseen_io.h"

#include <numeric>

namespace ssdpulse::analysis {
namespace {

constexpr std::uint64_t kCertain = 1000;           // I/Os, however they are spread
constexpr std::uint64_t kCertainIfRepeated = 100;  // if they are spread over several windows
constexpr std::uint64_t kSeveral = 3;

/// Everything that any program saw of a request.
std::uint64_t seen(const model::DeviceSample& sample) {
  std::uint64_t all = sample.events.flush_data_stages + sample.events.lone_flushes;
  for (const auto& counts : {sample.events.missed, sample.events.strays}) {
    all = std::accumulate(counts.begin(), counts.end(), all);
  }
  for (const model::OperationIo& one : sample.io->operations) {
    all += one.issues + one.completions + one.unissued_completions;
  }
  return all;
}

std::uint64_t counted(const model::DiskStats& kernel) {
  return kernel.reads + kernel.writes + kernel.discards.value_or(0);
}

}  // namespace

void UnseenIo::observe(const model::DeviceSample& before, const model::DiskStats& kernel_before,
                       const model::DiskStats& kernel_after, const model::DeviceSample& after) {
  const std::optional<Sides> last = last_;
  last_ = Sides{seen(before), counted(kernel_after)};
  const std::uint64_t kernel = counted(kernel_before);
  if (!last || kernel < last->kernel || seen(after) != last->ours) {
    ios_ = windows_ = 0;
    return;
  }
  ios_ += kernel - last->kernel;
  windows_ += kernel > last->kernel ? 1 : 0;
}

std::optional<std::uint64_t> UnseenIo::ios() const {
  const bool certain = ios_ >= kCertain || (ios_ >= kCertainIfRepeated && windows_ >= kSeveral);
  return certain ? std::optional(ios_) : std::nullopt;
}

}  // namespace ssdpulse::analysis
