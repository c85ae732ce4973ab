// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/flash_model.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ssdpulse::analysis {
namespace {

constexpr double kFullDiscard = 0.95;  // of the drive holds nothing
constexpr double kWarmAtUsual = 0.5;   // drive writes before anything is reported, up to kUsual over-provisioning
constexpr double kUsual = 0.12;
constexpr double kWarmAtMore = 1;
constexpr double kWarmAfterGap = 0.25;

/// Whether a what-if differs from the base only in the unknown pages.
bool bounds_unknown(const WhatIf& what, WhatIf base) {
  base.unknown = UnknownPages::empty;
  return what == base;
}

std::uint64_t pages_of(double drive_writes, std::uint64_t drive_pages) {
  return static_cast<std::uint64_t>(drive_writes * static_cast<double>(drive_pages));
}

}  // namespace

unsigned live_rate_bits(std::uint64_t drive_pages, std::uint64_t wanted_pages) {
  constexpr unsigned kMinBits = 8;  // 400 events in 100,000 writes, some microseconds each
  constexpr unsigned kMinBitsOfSmall = 7;
  const bool small = drive_pages >> kMinBits < FlashModel::kMinFollowed;
  return std::max(small ? kMinBitsOfSmall : kMinBits, PageSample::rate_bits_for(drive_pages, wanted_pages));
}

bool FlashModel::possible(const FlashModelSettings& settings) {
  const std::uint64_t followed = settings.size_bytes / settings.page_bytes >> settings.rate_bits;
  return !settings.what_ifs.empty() && followed >= kMinFollowed && followed <= MiniatureDrive::kMaxPages;
}

std::size_t FlashModel::memory_bytes(const FlashModelSettings& settings) {
  const auto pages = static_cast<std::uint32_t>(settings.size_bytes / settings.page_bytes >> settings.rate_bits);
  std::size_t result = sizeof(FlashModel) + Lifetimes(0, 0).memory_bytes() + pages * std::size_t{6} +
                       WindowMarks::kMaxMarks * settings.what_ifs.size() * sizeof(ReplicatedDrive::Counts);
  for (std::size_t i = 0; i < settings.what_ifs.size(); ++i) {
    result += ReplicatedDrive::memory_bytes(
        WhatIfRun::shape(settings.what_ifs[i], pages, 1),
        i == 0 ? ReplicatedDrive::Replicates::quarters : ReplicatedDrive::Replicates::halves);
  }
  return result;
}

FlashModel::FlashModel(const FlashModelSettings& settings)
    : settings_(settings),
      drive_pages_(settings.size_bytes / settings.page_bytes),
      sample_(drive_pages_, settings.rate_bits, settings.seed),
      lifetimes_(static_cast<std::uint32_t>(sample_.pages()), drive_pages_),
      losses_(drive_pages_),
      marks_(drive_pages_),
      warm_at_(pages_of(settings.what_ifs[0].overprovisioning > kUsual ? kWarmAtMore : kWarmAtUsual, drive_pages_)) {
  start_runs();
}

void FlashModel::start_runs() {
  for (const WhatIf& what : settings_.what_ifs) {
    runs_.emplace_back(what, static_cast<std::uint32_t>(sample_.pages()), std::uint32_t{1} << settings_.rate_bits,
                       runs_.empty() ? ReplicatedDrive::Replicates::quarters : ReplicatedDrive::Replicates::halves,
                       what.unknown == UnknownPages::mapped);
  }
}

void FlashModel::observe(const FlashTick& tick) {
  now_ = tick.at;
  const bool was_empty = lifetimes_.unmapped_share() >= kFullDiscard;
  std::uint64_t discarded = 0;  // followed pages
  EventLosses::Events seen{0, tick.lost_writes, 0, tick.lost_discards};
  // When in the tick each hint's pages were written is unknown: evenly is close enough, as blocks are far larger.
  PagesByHint counted{};
  for (std::size_t i = 0; i < tick.events.size(); ++i) {
    PagesByHint now{};
    for (std::size_t hint = 0; hint < now.size(); ++hint) {
      const auto until =
          static_cast<std::uint64_t>(static_cast<double>(tick.written[hint]) *
                                     (static_cast<double>(i + 1) / static_cast<double>(tick.events.size())));
      now[hint] = until - counted[hint];
      counted[hint] = until;
    }
    advance(now);
    const bool writes = tick.events[i].kind == FlashEventKind::write;
    ++(writes ? seen.writes : seen.discards);
    discarded += writes ? 0 : tick.events[i].count;
    take(tick.events[i]);
  }
  PagesByHint rest{};
  for (std::size_t hint = 0; hint < rest.size(); ++hint) {
    rest[hint] = tick.written[hint] - counted[hint];
  }
  advance(rest);
  losses_.add(seen, std::accumulate(tick.written.begin(), tick.written.end(), std::uint64_t{0}));
  const bool empty = lifetimes_.unmapped_share() >= kFullDiscard;
  if (empty && (!was_empty || static_cast<double>(discarded) >= kFullDiscard * static_cast<double>(sample_.pages()))) {
    full_discard_at_ = written_;
  }
  if (marks_.due(now_, written_)) {
    marks_.add(mark(now_));
  }
}

void FlashModel::advance(const PagesByHint& pages) {
  for (std::size_t hint = 0; hint < pages.size(); ++hint) {
    if (pages[hint] > 0) {
      written_ += pages[hint];
      lifetimes_.advance(pages[hint]);
      for (WhatIfRun& run : runs_) {
        run.advance(static_cast<std::uint8_t>(hint), pages[hint]);
      }
    }
  }
}

void FlashModel::take(const FlashEvent& event) {
  const std::uint64_t end = std::min(std::uint64_t{event.first} + event.count, sample_.pages());
  for (std::uint64_t index = event.first; index < end; ++index) {
    const auto page = static_cast<std::uint32_t>(index);
    if (event.kind == FlashEventKind::write) {
      write(page, event.hint < model::kWriteHints ? event.hint : static_cast<std::uint8_t>(model::WriteHint::unknown));
    } else {
      discard(page);
    }
  }
}

void FlashModel::write(std::uint32_t page, std::uint8_t hint) {
  ++sampled_writes_;
  const std::uint32_t lifetime_class = classes_.next(lifetimes_.write(page, hint));
  for (WhatIfRun& run : runs_) {
    run.write(page, hint, lifetime_class);
  }
}

void FlashModel::discard(std::uint32_t page) {
  lifetimes_.discard(page);
  for (WhatIfRun& run : runs_) {
    run.discard(page);
  }
}

void FlashModel::start_empty() {
  lifetimes_.forget_all();
  for (std::uint32_t page = 0; page < sample_.pages(); ++page) {
    for (WhatIfRun& run : runs_) {
      run.forget(page);
    }
  }
  full_discard_at_ = written_;
}

void FlashModel::keep_what_ifs(std::size_t most) {
  if (most < runs_.size()) {
    settings_.what_ifs.resize(most);
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(most), runs_.end());
    marks_.keep_runs(most);
  }
}

void FlashModel::mark_gap(std::uint64_t bytes) {
  const std::uint64_t pages = bytes / settings_.page_bytes;
  if (pages > pages_of(kLongGap, drive_pages_)) {
    warm_at_ = std::max(warm_at_, written_ + pages_of(kWarmAfterGap, drive_pages_));
  }
}

WindowMark FlashModel::mark(std::chrono::nanoseconds at) const {
  WindowMark result{at, written_, sampled_writes_, {}};
  for (const WhatIfRun& run : runs_) {
    result.counts.push_back(run.drive().counts());
  }
  return result;
}

const WindowMark* FlashModel::begin_of(model::FlashWindow window) const {
  switch (window) {
    case model::FlashWindow::day:
      return marks_.since(now_ - std::chrono::hours(24));
    case model::FlashWindow::week:
      return marks_.since(now_ - std::chrono::hours(24 * 7));
    case model::FlashWindow::drive_write:
      return marks_.since_volume(written_ - std::min(written_, drive_pages_));
  }
  return nullptr;
}

/// The estimate of the first what-if, with bounds widened by the losses and the unknown pages.
std::optional<Estimate> FlashModel::base(const WindowMark& from, const WindowMark& now) const {
  auto result = estimate(from.counts[0], now.counts[0], runs_[0].drive().replicates());
  if (!result) {
    return result;
  }
  const auto rates = losses_.rates();
  const double lost = rates.writes + rates.discards;
  result->lower = std::max(1.0, result->lower - lost * result->ratio);
  result->upper += lost * result->ratio;
  if (lifetimes_.unknown_share() > kMuchUnknown) {
    for (std::size_t i = 1; i < runs_.size(); ++i) {
      if (bounds_unknown(runs_[i].what(), runs_[0].what())) {
        const auto empty = estimate(from.counts[i], now.counts[i], runs_[i].drive().replicates());
        result->lower = empty ? std::min(result->lower, empty->lower) : result->lower;
      }
    }
  }
  return result;
}

std::optional<model::FlashSilence> FlashModel::silence(const WindowMark* from, const WindowMark& now) const {
  using model::FlashSilence;
  if (written_ < warm_at_) {
    return FlashSilence::warming_up;
  }
  if (losses_.rates().too_many()) {
    return FlashSilence::events_lost;
  }
  if (from == nullptr || now.sampled_writes - from->sampled_writes < kMinSampledWrites) {
    return FlashSilence::few_writes;
  }
  const auto likely = base(*from, now);
  const double width = likely ? (likely->upper - likely->lower) / likely->ratio : 0;
  if (!likely || width > kWidestBounds) {
    return lifetimes_.unknown_share() > kMuchUnknown ? FlashSilence::unknown_pages : FlashSilence::wide_bounds;
  }
  return std::nullopt;
}

std::vector<model::ModelledAmplification> FlashModel::amplification(model::FlashWindow window, const WindowMark& from,
                                                                    const WindowMark& now) const {
  const double scatter = scatter_of(from.counts[0], now.counts[0]);
  std::vector<model::ModelledAmplification> result{{runs_[0].what(), window, *base(from, now)}};
  for (std::size_t i = 1; i < runs_.size(); ++i) {
    const auto found = estimate(from.counts[i], now.counts[i], runs_[i].drive().replicates(), scatter);
    if (found && runs_[i].what().unknown == UnknownPages::mapped) {
      result.push_back({runs_[i].what(), window, *found});
    }
  }
  return result;
}

}  // namespace ssdpulse::analysis
