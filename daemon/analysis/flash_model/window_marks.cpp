// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/window_marks.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::analysis {
namespace {

constexpr std::chrono::minutes kStep{10};

}  // namespace

bool WindowMarks::due(std::chrono::nanoseconds at, std::uint64_t written_pages) const {
  return marks_.empty() || at - marks_.back().at >= kStep || written_pages - marks_.back().written_pages >= step_pages_;
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
  std::size_t least = 1;
  double least_gap = 2;
  for (std::size_t i = 1; i + 1 < marks_.size(); ++i) {
    const auto share = [&](auto of) {
      const double age = of(now) - of(marks_[i - 1]);
      return age > 0 ? (of(marks_[i + 1]) - of(marks_[i - 1])) / age : 0;
    };
    const double time = share([](const WindowMark& mark) { return static_cast<double>(mark.at.count()); });
    const double volume = share([](const WindowMark& mark) { return static_cast<double>(mark.written_pages); });
    if (const double gap = std::max(time, volume); gap < least_gap) {
      least_gap = gap;
      least = i;
    }
  }
  marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(least));
}

void WindowMarks::shift(std::chrono::nanoseconds by) {
  for (WindowMark& mark : marks_) {
    mark.at += by;
  }
}

void WindowMarks::keep_runs(std::size_t most) {
  for (WindowMark& mark : marks_) {
    mark.counts.resize(std::min(most, mark.counts.size()));
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
    out(std::int64_t{mark.at.count()});
    out(mark.written_pages);
    out(mark.sampled_writes);
    for (const auto& run : mark.counts) {
      for (const auto& copy : run) {
        out(copy.host);
        out(copy.relocated);
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
    in(at);
    mark.at = std::chrono::nanoseconds(at);
    in(mark.written_pages);
    in(mark.sampled_writes);
    mark.counts.resize(runs);
    for (auto& run : mark.counts) {
      for (auto& copy : run) {
        in(copy.host);
        in(copy.relocated);
      }
    }
  }
  return in.good() && std::is_sorted(marks_.begin(), marks_.end(), [](const WindowMark& a, const WindowMark& b) {
           return a.at < b.at || a.written_pages < b.written_pages;
         });
}

}  // namespace ssdpulse::analysis
