// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/submission_cursor.h"

namespace ssdpulse::analysis {

model::DiscardTrigger trigger_of(std::size_t submitter, bool mounted_with_discard, bool callers_discard) {
  switch (static_cast<model::DiscardSubmitter>(submitter)) {
    case model::DiscardSubmitter::fstrim:
      return model::DiscardTrigger::fstrim;
    case model::DiscardSubmitter::kernel:
      return mounted_with_discard ? model::DiscardTrigger::online : model::DiscardTrigger::other;
    case model::DiscardSubmitter::blkdiscard:
      return model::DiscardTrigger::blkdiscard;
    case model::DiscardSubmitter::mkfs:
      return model::DiscardTrigger::mkfs;
    case model::DiscardSubmitter::other:
      return callers_discard ? model::DiscardTrigger::online : model::DiscardTrigger::other;
  }
  return model::DiscardTrigger::other;
}

std::array<SubmissionIncrement, model::kDiscardSubmitters> SubmissionCursor::advance(
    const model::DiscardSubmitters& now) {
  std::array<SubmissionIncrement, model::kDiscardSubmitters> increments;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i].bytes < counted_[i].bytes) {
      counted_[i] = {};  // another volume under the same name
    }
    increments[i] = {now[i].bytes - counted_[i].bytes, now[i].ranges - counted_[i].ranges};
    counted_[i] = {now[i].bytes, now[i].ranges};
  }
  return increments;
}

}  // namespace ssdpulse::analysis
