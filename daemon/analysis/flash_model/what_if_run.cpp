// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/what_if_run.h"

#include <utility>

#include "daemon/model/write_details.h"

namespace ssdpulse::analysis {
namespace {

constexpr std::uint32_t kHintStreams = 5;  // no hint, and four lifetimes

}  // namespace

std::uint32_t stream_of_hint(std::uint8_t hint) {
  const auto first = static_cast<std::uint8_t>(model::WriteHint::short_lived);
  const auto last = static_cast<std::uint8_t>(model::WriteHint::extreme);
  return hint >= first && hint <= last ? std::uint32_t{1} + hint - first : 0;
}

MiniatureShape WhatIfRun::shape(const WhatIf& what, std::uint32_t pages, std::uint32_t scale) {
  const std::uint32_t streams = what.placement == Placement::hints           ? kHintStreams
                                : what.placement == Placement::last_lifetime ? LifetimeClasses::kClasses
                                                                             : 1;
  return {pages, model_block_pages(pages), what.overprovisioning, what.policy, streams, scale};
}

WhatIfRun::WhatIfRun(const WhatIf& what, std::uint32_t pages, std::uint32_t scale,
                     ReplicatedDrive::Replicates replicates, bool mapped)
    : what_(what), drive_(shape(what, pages, scale), replicates, mapped) {}

std::uint32_t WhatIfRun::stream_of(std::uint8_t hint) const {
  return what_.placement == Placement::hints ? stream_of_hint(hint) : 0;
}

void WhatIfRun::advance(std::uint8_t hint, std::uint64_t drive_pages) {
  const std::uint32_t stream = stream_of(hint);
  pending_pages_[stream] += drive_pages;
  if (pending_pages_[stream] >= drive_.copies()[0].shape().scale && what_.placement != Placement::last_lifetime) {
    drive_.advance(stream, std::exchange(pending_pages_[stream], 0));
  }
}

void WhatIfRun::write(std::uint32_t page, std::uint8_t hint, std::uint32_t lifetime_class) {
  const std::uint32_t counted_as = stream_of(hint);
  const std::uint32_t stream = what_.placement == Placement::last_lifetime ? lifetime_class : counted_as;
  drive_.advance(stream, std::exchange(pending_pages_[counted_as], 0));
  drive_.write(page, stream);
}

void WhatIfRun::discard(std::uint32_t page) {
  if (what_.discards == Discards::honoured) {
    drive_.discard(page);
  }
}

void WhatIfRun::save(BinaryWriter& out) const {
  for (const std::uint64_t pages : pending_pages_) {
    out(pages);
  }
  drive_.save(out);
}

bool WhatIfRun::restore(BinaryReader& in) {
  for (std::uint64_t& pages : pending_pages_) {
    in(pages);
  }
  return drive_.restore(in);
}

}  // namespace ssdpulse::analysis
