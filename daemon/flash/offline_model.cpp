// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/offline_model.h"

#include <algorithm>

namespace ssdpulse::flash {
namespace {

PageSample sample_of(const OfflineSettings& settings) {
  const std::uint64_t pages = settings.size_bytes / settings.page_bytes;
  const unsigned bits = settings.sample_pages ? PageSample::rate_bits_for(pages, *settings.sample_pages) : 0;
  return {pages, bits, settings.seed};
}

/// A drive that is followed as a whole needs no correction.
ReplicatedDrive::Replicates replicates_of(const PageSample& sample) {
  return sample.rate_bits() == 0 ? ReplicatedDrive::Replicates::none : ReplicatedDrive::Replicates::quarters;
}

}  // namespace

OfflineModel::OfflineModel(const OfflineSettings& settings)
    : page_bytes_(settings.page_bytes),
      drive_pages_(settings.size_bytes / settings.page_bytes),
      sample_(sample_of(settings)) {
  const auto pages = static_cast<std::uint32_t>(sample_.pages());
  for (const WhatIf& what : settings.what_ifs) {
    runs_.emplace_back(what, pages, std::uint32_t{1} << sample_.rate_bits(), replicates_of(sample_),
                       settings.starts_full);
    if (what.placement == Placement::last_lifetime && !lifetimes_) {
      lifetimes_.emplace(pages, drive_pages_);
    }
  }
  marks_.push_back(mark());
  next_mark_ = mark_every_;
}

std::size_t OfflineModel::memory_bytes(const OfflineSettings& settings) {
  const PageSample sample = sample_of(settings);
  const auto pages = static_cast<std::uint32_t>(std::min<std::uint64_t>(sample.pages(), MiniatureDrive::kMaxPages));
  std::size_t result = 0;
  for (const WhatIf& what : settings.what_ifs) {
    result += ReplicatedDrive::memory_bytes(WhatIfRun::shape(what, pages, 1), replicates_of(sample));
    result += kMaxMarks * sizeof(ReplicatedDrive::Counts);
    result += what.placement == Placement::last_lifetime ? pages * 6ULL : 0;
  }
  return result;
}

void OfflineModel::write(std::uint64_t offset, std::uint64_t bytes, std::uint8_t hint) {
  PageRange touched = pages_touched(offset, bytes, page_bytes_);
  touched.count = touched.first < drive_pages_ ? std::min(touched.count, drive_pages_ - touched.first) : 0;
  if (touched.count == 0) {
    return;
  }
  written_ += touched.count;
  for (WhatIfRun& run : runs_) {
    run.advance(hint, touched.count);
  }
  if (lifetimes_) {
    lifetimes_->advance(touched.count);
  }
  const PageRange followed = sample_.followed(touched);
  for (std::uint64_t i = 0; i < followed.count; ++i) {
    const auto page = static_cast<std::uint32_t>(followed.first + i);
    const std::uint32_t lifetime_class = lifetimes_ ? classes_.next(lifetimes_->write(page, hint & 7)) : 0;
    for (WhatIfRun& run : runs_) {
      run.write(page, hint, lifetime_class);
    }
  }
  if (written_ >= next_mark_) {
    keep_mark();
  }
}

void OfflineModel::discard(std::uint64_t offset, std::uint64_t bytes) {
  const PageRange followed = sample_.followed(pages_covered(offset, bytes, page_bytes_));
  for (std::uint64_t i = 0; i < followed.count; ++i) {
    const auto page = static_cast<std::uint32_t>(followed.first + i);
    if (lifetimes_) {
      lifetimes_->discard(page);
    }
    for (WhatIfRun& run : runs_) {
      run.discard(page);
    }
  }
}

OfflineModel::Mark OfflineModel::mark() const {
  Mark result{written_, {}};
  for (const WhatIfRun& run : runs_) {
    result.counts.push_back(run.drive().counts());
  }
  return result;
}

void OfflineModel::keep_mark() {
  marks_.push_back(mark());
  if (marks_.size() == kMaxMarks) {
    std::size_t kept = 1;
    for (std::size_t i = 2; i < marks_.size(); i += 2) {
      marks_[kept++] = std::move(marks_[i]);
    }
    marks_.resize(kept);
    mark_every_ *= 2;
  }
  next_mark_ = marks_.back().written + mark_every_;
}

std::vector<std::optional<Estimate>> OfflineModel::estimates(Window window) const {
  const Mark now = mark();
  const auto at = [&](double share) -> const Mark& {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(written_));
    const auto found = std::lower_bound(marks_.begin(), marks_.end(), wanted,
                                        [](const Mark& mark, std::uint64_t pages) { return mark.written < pages; });
    return found == marks_.end() ? now : *found;
  };
  const Mark& from = at(window.from);
  const Mark& to = window.to >= 1 ? now : at(window.to);
  std::vector<std::optional<Estimate>> result;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    result.push_back(estimate(from.counts[i], to.counts[i], runs_[i].drive().replicates()));
  }
  return result;
}

}  // namespace ssdpulse::flash
