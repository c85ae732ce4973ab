// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/what_if_runs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "daemon/model/write_details.h"

namespace ssdpulse::flash {
namespace {

constexpr std::uint32_t kHintStreams = 5;  // no hint, and four lifetimes

/// 960 GB, 1.92 TB, 3.84 TB ... are `base` times a power of two, to a hundredth.
bool doubles_of(std::uint64_t base, std::uint64_t bytes) {
  const double octaves = std::log2(static_cast<double>(bytes) / static_cast<double>(base));
  return octaves > -2.5 && std::abs(octaves - std::round(octaves)) < 0.015;
}

}  // namespace

std::vector<WhatIf> default_what_ifs(double overprovisioning) {
  const WhatIf base{overprovisioning};
  std::vector<WhatIf> result(6, base);
  result[1].policy = model::CollectionPolicy::greedy;
  result[2].policy = model::CollectionPolicy::cost_benefit;
  result[3].unknown = UnknownPages::empty;
  result[4].discards = Discards::ignored;
  result[5].placement = Placement::hints;
  for (const double other : {0.28, 0.07, 0.50, 0.12}) {
    if (std::abs(other - overprovisioning) > 0.005) {
      result.push_back({other});
    }
  }
  return result;
}

BoundedValue usual_overprovisioning(std::uint64_t drive_bytes) {
  constexpr std::uint64_t kReadIntensive = 960'000'000'000;
  constexpr std::uint64_t kMixedUse = 800'000'000'000;
  if (drive_bytes > 0 && doubles_of(kReadIntensive, drive_bytes)) {
    return {0.15, 0.10, 0.20};
  }
  if (drive_bytes > 0 && doubles_of(kMixedUse, drive_bytes)) {
    return {0.37, 0.30, 0.45};
  }
  return {0.085, 0.07, 0.10};
}

std::uint32_t model_block_pages(std::uint64_t pages) {
  constexpr std::uint64_t kMinBlocks = 768;
  constexpr std::uint64_t kMinPages = 4;
  constexpr std::uint64_t kMaxPages = std::uint64_t{1} << 20;
  return static_cast<std::uint32_t>(
      std::clamp(std::bit_floor(std::max<std::uint64_t>(pages / kMinBlocks, 1)), kMinPages, kMaxPages));
}

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

bool WindowMarks::due(std::chrono::nanoseconds at, std::uint64_t written_pages) const {
  return marks_.empty() || at - marks_.back().at >= std::chrono::minutes(10) ||
         written_pages - marks_.back().written_pages >= step_pages_;
}

void WindowMarks::add(WindowMark mark) {
  marks_.push_back(std::move(mark));
  if (marks_.size() > kMaxMarks) {
    thin();
  }
}

/// Removes the mark whose neighbours are the closest for their age, in both time and volume.
void WindowMarks::thin() {
  const WindowMark& now = marks_.back();
  std::size_t closest = 1;
  double min_gap = 2;
  for (std::size_t i = 1; i + 1 < marks_.size(); ++i) {
    const auto share = [&](auto of) {
      const double age = of(now) - of(marks_[i - 1]);
      return age > 0 ? (of(marks_[i + 1]) - of(marks_[i - 1])) / age : 0;
    };
    const double time = share([](const WindowMark& mark) { return static_cast<double>(mark.at.count()); });
    const double volume = share([](const WindowMark& mark) { return static_cast<double>(mark.written_pages); });
    if (const double gap = std::max(time, volume); gap < min_gap) {
      min_gap = gap;
      closest = i;
    }
  }
  marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(closest));
}

void WindowMarks::shift(std::chrono::nanoseconds by) {
  for (WindowMark& mark : marks_) {
    mark.at += by;
  }
}

void WindowMarks::keep_runs(std::size_t max_runs) {
  for (WindowMark& mark : marks_) {
    mark.counts.resize(std::min(max_runs, mark.counts.size()));
  }
}

const WindowMark* WindowMarks::since(std::chrono::nanoseconds at) const {
  const auto found = std::find_if(marks_.begin(), marks_.end(), [at](const WindowMark& mark) { return mark.at >= at; });
  return found == marks_.end() ? nullptr : &*found;
}

const WindowMark* WindowMarks::since_volume(std::uint64_t written_pages) const {
  const auto found = std::find_if(marks_.begin(), marks_.end(), [written_pages](const WindowMark& mark) {
    return mark.written_pages >= written_pages;
  });
  return found == marks_.end() ? nullptr : &*found;
}

void WindowMarks::save(BinaryWriter& out) const {
  out(std::uint64_t{marks_.size()});
  for (const WindowMark& mark : marks_) {
    out(std::int64_t{mark.at.count()}, mark.written_pages, mark.sampled_writes);
    for (const auto& run : mark.counts) {
      for (const auto& copy : run) {
        out(copy.host, copy.relocated);
      }
    }
  }
}

bool WindowMarks::restore(BinaryReader& in, std::size_t runs) {
  std::uint64_t size = 0;
  in(size);
  if (!in.good() || size > kMaxMarks) {
    return false;
  }
  marks_.assign(size, {});
  for (WindowMark& mark : marks_) {
    std::int64_t at = 0;
    in(at, mark.written_pages, mark.sampled_writes);
    mark.at = std::chrono::nanoseconds(at);
    mark.counts.resize(runs);
    for (auto& run : mark.counts) {
      for (auto& copy : run) {
        in(copy.host, copy.relocated);
      }
    }
  }
  return in.good() && std::is_sorted(marks_.begin(), marks_.end(), [](const WindowMark& a, const WindowMark& b) {
           return a.at < b.at || a.written_pages < b.written_pages;
         });
}

}  // namespace ssdpulse::flash
