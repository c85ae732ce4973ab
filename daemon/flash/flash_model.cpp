// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/flash_model.h"

#include <algorithm>
#include <numeric>

#include "daemon/flash/lifetimes.h"

namespace ssdpulse::flash {
namespace {

constexpr double kFullDiscard = 0.95;                       // of the drive holds nothing
constexpr std::uint64_t kModelFormat = 0x31302D6873616C66;  // "flash-01"; a different number for any other layout
constexpr std::array kQuantiles{0.1, 0.5, 0.9};

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
      warm_at_(pages_of(warm_drive_writes(settings.what_ifs[0].overprovisioning), drive_pages_)) {
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

void FlashModel::keep_what_ifs(std::size_t max_runs) {
  if (max_runs < runs_.size()) {
    settings_.what_ifs.resize(max_runs);
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(max_runs), runs_.end());
    marks_.keep_runs(max_runs);
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

void FlashModelSettings::save(BinaryWriter& out) const {
  out(serial, size_bytes, page_bytes, rate_bits, seed, std::uint64_t{what_ifs.size()});
  for (const WhatIf& what : what_ifs) {
    out(what.overprovisioning, what.policy, what.discards, what.placement, what.unknown);
  }
}

model::FlashReport FlashModel::report() const {
  model::FlashReport result;
  const WindowMark now = mark(now_);
  for (std::size_t i = 0; i < model::kFlashWindows; ++i) {
    const auto window = static_cast<model::FlashWindow>(i);
    const WindowMark* const from = begin_of(window);
    result.silence[i] = silence(from, now);
    if (!result.silence[i]) {
      const auto found = amplification(window, *from, now);
      result.amplification.insert(result.amplification.end(), found.begin(), found.end());
    }
  }
  result.drive_writes = lifetimes_.drive_writes();
  result.unknown_pages = lifetimes_.unknown_share();
  result.lost_writes = losses_.rates().writes;
  result.lost_discards = losses_.rates().discards;
  result.sampled_writes = sampled_writes_;
  result.block_bytes =
      (std::uint64_t{model_block_pages(sample_.pages())} << settings_.rate_bits) * settings_.page_bytes;
  const auto drive_bytes = static_cast<double>(settings_.size_bytes);
  for (std::uint8_t hint = 0; hint < model::kWriteHints; ++hint) {
    const auto survival = lifetimes_.survival(hint);
    if (survival.pages < kMinDistinctPages) {
      continue;
    }
    result.alive[hint] = static_cast<double>(survival.living) / static_cast<double>(survival.ended + survival.living);
    for (const double quantile : kQuantiles) {
      if (const auto found = survival.quantile(quantile)) {
        result.lifetimes.push_back({hint, quantile, found->lifetime * drive_bytes});
      }
    }
  }
  result.order_violations = hint_order_violations(lifetimes_, drive_bytes);
  if (full_discard_at_) {
    result.written_since_full_discard_bytes = (written_ - *full_discard_at_) * settings_.page_bytes;
  }
  return result;
}

std::string FlashModel::save() const {
  BinaryWriter out;
  out(kModelFormat);
  settings_.save(out);
  save_fields(out);
  return out.with_checksum();
}

util::Result<std::unique_ptr<FlashModel>> FlashModel::restore(const FlashModelSettings& settings,
                                                              std::string_view state, std::chrono::nanoseconds at) {
  BinaryWriter key;
  key(kModelFormat);
  settings.save(key);
  if (state.substr(0, key.bytes().size()) != key.bytes()) {
    return util::fail("it is of another drive, size, seed or version");
  }
  const auto body = without_checksum(state);
  if (!body || body->size() < key.bytes().size()) {
    return util::fail("it is damaged");
  }
  auto result = std::make_unique<FlashModel>(settings);
  BinaryReader in(body->substr(key.bytes().size()));
  if (!result->restore_fields(in) || !in.complete()) {
    return util::fail("it is inconsistent");
  }
  result->marks_.shift(at - result->now_);  // the monotonic clock of another boot
  result->now_ = at;
  return result;
}

void FlashModel::save_fields(BinaryWriter& out) const {
  lifetimes_.save(out);
  classes_.save(out);
  for (const WhatIfRun& run : runs_) {
    run.save(out);
  }
  losses_.save(out);
  marks_.save(out);
  out(std::int64_t{now_.count()}, written_, warm_at_, sampled_writes_, std::uint8_t{full_discard_at_.has_value()},
      full_discard_at_.value_or(0));
}

bool FlashModel::restore_fields(BinaryReader& in) {
  std::uint8_t discarded = 0;
  std::uint64_t discarded_at = 0;
  if (!lifetimes_.restore(in) || !classes_.restore(in) ||
      !std::all_of(runs_.begin(), runs_.end(), [&in](WhatIfRun& run) { return run.restore(in); }) ||
      !losses_.restore(in) || !marks_.restore(in, runs_.size())) {
    return false;
  }
  std::int64_t now = 0;
  in(now, written_, warm_at_, sampled_writes_, discarded, discarded_at);
  now_ = std::chrono::nanoseconds(now);
  full_discard_at_ = discarded == 1 ? std::optional(discarded_at) : std::nullopt;
  return in.good() && discarded_at <= written_;
}

namespace {

struct Step {
  ModelScale scale;
  std::uint64_t wanted_pages;
  std::size_t what_ifs;
};

// The base alone still has its bounds, from its quarters; its over-provisioning curve then comes from lifetimes.
constexpr std::array kSteps{
    Step{ModelScale::all, PageSample::kUsualPages, 9},
    Step{ModelScale::fewer_what_ifs, PageSample::kUsualPages, 7},
    Step{ModelScale::fewer_what_ifs, PageSample::kUsualPages, 5},
    Step{ModelScale::fewer_what_ifs, PageSample::kUsualPages, 3},
    Step{ModelScale::fewer_what_ifs, PageSample::kUsualPages, 1},
    Step{ModelScale::smaller_samples, PageSample::kUsualPages / 2, 3},  // three policies: the band
    Step{ModelScale::smaller_samples, PageSample::kUsualPages / 2, 1},
};

std::uint64_t bytes_with(FlashModelSettings running, std::size_t what_ifs) {
  running.what_ifs.resize(std::min(running.what_ifs.size(), what_ifs));
  return FlashModel::memory_bytes(running);
}

}  // namespace

FlashModelSettings settings_under(const ModelPlan& plan, FlashModelSettings drive) {
  drive.rate_bits = plan.rate_bits.value_or(live_rate_bits(drive.size_bytes / drive.page_bytes, plan.wanted_pages));
  drive.what_ifs.resize(std::min(drive.what_ifs.size(), plan.what_ifs));
  while (drive.what_ifs.size() > 1 && FlashModel::memory_bytes(drive) > ModelBudget::kMaxOfADrive) {
    drive.what_ifs.pop_back();
  }
  return drive;
}

ModelPlan ModelBudget::plan(std::span<const FlashModelSettings> coming,
                            std::span<const FlashModelSettings> running) const {
  ModelPlan result;
  for (const Step& step : kSteps) {
    result = {step.scale, step.wanted_pages, step.what_ifs, 0, 0, rate_bits_};
    for (const FlashModelSettings& drive : running) {
      result.bytes += bytes_with(drive, step.what_ifs);
    }
    for (const FlashModelSettings& drive : coming) {
      const std::uint64_t bytes = FlashModel::memory_bytes(settings_under(result, drive));
      if (result.bytes + bytes > bytes_) {
        break;
      }
      result.bytes += bytes;
      ++result.drives;
    }
    if (result.drives == coming.size() && result.bytes <= bytes_) {
      return result;
    }
  }
  result.scale = ModelScale::fewer_drives;
  return result;
}

}  // namespace ssdpulse::flash
