// SPDX-License-Identifier: Apache-2.0
// SubmissionCursor: what was submitted to a volume since the last call, and by which trigger. Pure; the figures passed
// in are cumulative and may restart at 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "daemon/model/discards.h"

namespace ssdpulse::analysis {

/// `submitter`: a model::DiscardSubmitter. Kernel threads act for a file system's mount option, or for an unknown
/// reason; so do programs if `callers_discard` (see there).
model::DiscardTrigger trigger_of(std::size_t submitter, bool mounted_with_discard, bool callers_discard);

struct SubmissionIncrement {
  std::uint64_t bytes = 0;
  std::uint64_t ranges = 0;
};

/// How far one volume's submitters have been counted.
class SubmissionCursor {
 public:
  /// By submitter, since the last call; at the first call, everything.
  std::array<SubmissionIncrement, model::kDiscardSubmitters> advance(const model::DiscardSubmitters& now);

 private:
  std::array<SubmissionIncrement, model::kDiscardSubmitters> counted_{};
};

}  // namespace ssdpulse::analysis
