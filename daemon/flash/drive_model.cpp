// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/drive_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "daemon/base/log.h"

namespace ssdpulse::flash {
namespace {

constexpr std::uint64_t kDriveFormat = 0x33302D6576697264;  // "drive-03"; a different number for any other layout
constexpr std::uint64_t kMaxWhatIfs = 32;

constexpr double kDay = 24 * 3600;
/// Without a counter of the drive, what the host wrote during an absence is unknown. A restart takes less than this.
constexpr double kShortAbsence = 60;
constexpr double kLongestAbsence = 3650 * kDay;
/// A counter that was there before the restart and is not back by then may never be: it may be unreadable now.
constexpr std::chrono::seconds kCounterTimeout{60};
/// Drive counters are coarse: no share is computed from less than this.
constexpr double kMinComparedBytes = 1 << 30;
/// Shares of a drive: what it must have lost that no discard explains, and what it may still hold when it is empty.
constexpr double kEmptied = 0.25;
constexpr double kEmpty = 0.05;

double seconds_of(model::WallTime wall) { return std::chrono::duration<double>(wall.time_since_epoch()).count(); }

std::optional<double> read_optional(BinaryReader& in) {
  double value = 0;
  in(value);
  return value >= 0 && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Seconds of a clock, or of an absence.
void read_seconds(BinaryReader& in, double& value) {
  constexpr double kMaxSeconds = 1e12;  // the year 33658
  in(value);
  if (!(value >= 0 && value <= kMaxSeconds)) {
    in.fail();
  }
}

template <typename Enum>
void read_enum(BinaryReader& in, Enum& value, std::size_t values) {
  in(value);
  if (static_cast<std::size_t>(value) >= values) {
    in.fail();
  }
}

WhatIf read_what_if(BinaryReader& in) {
  WhatIf what;
  in(what.overprovisioning);
  if (!(what.overprovisioning > 0.001 && what.overprovisioning < 10)) {
    in.fail();
  }
  read_enum(in, what.policy, model::kCollectionPolicies);
  read_enum(in, what.discards, model::kDiscardsNames.size());
  read_enum(in, what.placement, model::kPlacementNames.size());
  read_enum(in, what.unknown, 2);
  return what;
}

void read_range(BinaryReader& in, PolicyFit::Range& range) {
  in(range.lower, range.upper, range.likely);
  if (!(range.lower >= 0 && std::isfinite(range.lower) && range.upper > 0 && range.likely >= 0 &&
        std::isfinite(range.likely))) {
    in.fail();
  }
}

void read_settings(BinaryReader& in, FlashModelSettings& settings) {
  std::uint64_t what_ifs = 0;
  in(settings.serial, settings.size_bytes, settings.page_bytes, settings.rate_bits, settings.seed, what_ifs);
  if (what_ifs == 0 || what_ifs > kMaxWhatIfs || settings.page_bytes == 0 ||
      settings.rate_bits > PageSample::kMaxRateBits) {
    in.fail();
  }
  for (std::uint64_t i = 0; in.good() && i < what_ifs; ++i) {
    settings.what_ifs.push_back(read_what_if(in));
  }
}

}  // namespace

std::string bytes_of(const DriveState& state) {
  BinaryWriter out;
  out(kDriveFormat, state.key);
  state.settings.save(out);
  for (const PolicyFit::Range& range : state.fit) {
    out(range.lower, range.upper, range.likely);
  }
  out(state.collection.host_then, state.collection.media_then, state.collection.host, state.collection.media,
      state.collection.free_ratio);
  out(state.fitted_at, state.kept_at, state.host_written_bytes.value_or(-1.0), state.seen_bytes, state.absence,
      state.model);
  return out.with_checksum();
}

util::Result<DriveState> read_state(std::string_view bytes, const std::string& key) {
  const auto body = without_checksum(bytes);
  if (!body) {
    return util::fail("it is damaged");
  }
  BinaryReader in(*body);
  std::uint64_t format = 0;
  in(format);
  if (format != kDriveFormat) {
    return util::fail("it is from a different version");
  }
  DriveState state;
  in(state.key);
  if (state.key != key) {
    return util::fail("it is from a different drive");
  }
  read_settings(in, state.settings);
  for (PolicyFit::Range& range : state.fit) {
    read_range(in, range);
  }
  for (double* const value : {&state.collection.host_then, &state.collection.media_then, &state.collection.host,
                              &state.collection.media, &state.collection.free_ratio}) {
    in(*value);
    if (!std::isfinite(*value)) {
      in.fail();
    }
  }
  read_seconds(in, state.fitted_at);
  read_seconds(in, state.kept_at);
  state.host_written_bytes = read_optional(in);
  in(state.seen_bytes);
  read_seconds(in, state.absence);
  in(state.model);
  if (!in.complete()) {
    return util::fail("it is inconsistent");
  }
  return state;
}

DriveModel::DriveModel(const FlashDrive& drive, std::unique_ptr<FlashModel> model)
    : drive_(drive), model_(std::move(model)) {}

DriveModel::DriveModel(const FlashDrive& drive, const FlashModelSettings& settings)
    : DriveModel(drive, std::make_unique<FlashModel>(settings)) {}

util::Result<std::unique_ptr<DriveModel>> DriveModel::resume(const FlashDrive& drive, const DriveState& state,
                                                             std::chrono::nanoseconds at, model::WallTime wall) {
  // When it was saved, in terms of today's clock: by the wall clock, as the monotonic clock may be that of another
  // boot.
  const double away = seconds_of(wall) - state.kept_at;
  const auto kept = std::chrono::nanoseconds(std::llround(std::clamp(away, 0.0, kLongestAbsence) * 1e9));
  auto model = FlashModel::restore(state.settings, state.model, at - kept);
  if (!model) {
    return tl::make_unexpected(model.error());
  }
  std::unique_ptr<DriveModel> result(new DriveModel(drive, std::move(*model)));
  result->resumed_ = true;
  result->fit_ = PolicyFit(state.fit);
  result->collection_ = CollectionWatch(state.collection);
  result->fitted_at_ = state.fitted_at;
  result->resumed_at_ = at;
  result->kept_host_bytes_ = state.host_written_bytes;
  result->seen_bytes_ = state.seen_bytes;
  result->absence_ = away < 0 ? kLongestAbsence : std::min(state.absence + away, kLongestAbsence);
  if (!state.host_written_bytes) {
    result->drop_counter();
  }
  return result;
}

void DriveModel::know(const FlashDrive& drive, model::WallTime wall) {
  drive_ = drive;
  if (drive_.used_share && drive_.used_share != reported_used_) {
    reported_used_ = drive_.used_share;
    unused_then_ = unused();
  }
  account_for_gap();
  watch_counters();
  if (drift_ && seconds_of(wall) - fitted_at_ > 2 * kDay) {
    drift_.reset();  // the counter is gone
  }
}

void DriveModel::account_for_gap() {
  if (kept_host_bytes_ && drive_.host_written_bytes) {
    const double unseen =
        *drive_.host_written_bytes - *kept_host_bytes_ - static_cast<double>(seen_bytes_ + written_bytes());
    // A counter that fell was reset: then nothing is known.
    model_->mark_gap(*drive_.host_written_bytes < *kept_host_bytes_
                         ? settings().size_bytes
                         : static_cast<std::uint64_t>(std::max(0.0, unseen)));
    kept_host_bytes_.reset();
  }
}

/// Whether only the drive's counter can show how much was written during the absence, and it has not been read yet.
bool DriveModel::gap_is_unknown() const { return kept_host_bytes_ && absence_ > kShortAbsence; }

void DriveModel::drop_counter() {
  if (absence_ > kShortAbsence) {
    model_->mark_gap(settings().size_bytes);
  }
  kept_host_bytes_.reset();
}

/// The share of what the drive counted that was not written through block devices of this host.
void DriveModel::watch_counters() {
  if (!drive_.host_written_bytes) {
    return;
  }
  first_host_bytes_ = first_host_bytes_.value_or(*drive_.host_written_bytes);
  const double growth = *drive_.host_written_bytes - *first_host_bytes_;
  if (drive_.written_elsewhere_bytes &&
      growth > std::max(kMinComparedBytes, 0.001 * static_cast<double>(settings().size_bytes))) {
    drive_.facts.written_elsewhere = *drive_.written_elsewhere_bytes / growth;
  }
}

void DriveModel::count(const model::DeviceFlashSamples& since_last_tick) {
  for (std::size_t hint = 0; hint < written_.size(); ++hint) {
    written_[hint] += since_last_tick.written[hint];
  }
  count_lost(since_last_tick.lost);
}

void DriveModel::count_lost(const std::array<std::uint64_t, model::kFlashEventKinds>& events) {
  for (std::size_t kind = 0; kind < events.size(); ++kind) {
    const bool write = static_cast<model::FlashEventKind>(kind) == model::FlashEventKind::write;
    (write ? lost_writes_ : lost_discards_) += events[kind];
  }
}

void DriveModel::end_tick(std::chrono::nanoseconds at) {
  if (gap_is_unknown() && at - resumed_at_ > kCounterTimeout) {
    drop_counter();
  }
  for (const std::uint64_t pages : written_) {
    written_pages_ += pages;
  }
  all_lost_writes_ += lost_writes_;
  all_lost_discards_ += lost_discards_;
  model_->observe(
      {at, events_, std::exchange(written_, {}), std::exchange(lost_writes_, 0), std::exchange(lost_discards_, 0)});
  events_.clear();
}

double DriveModel::unused() const { return 1 - model_->lifetimes().unmapped_share() - *reported_used_; }

/// Pages without an event count as used, and drives may free discarded data late. But if suddenly less is in use and no
/// discard explains it, it was formatted, sanitized or written by another host. Very recent discards and writes are in
/// the model now but were not when the drive reported: the smaller difference counts, so that they are not taken for a
/// format.
void DriveModel::notice_format() {
  if (!unused_then_) {
    return;
  }
  const double then = *std::exchange(unused_then_, std::nullopt);
  if (!max_unused_ || std::min(then, unused()) <= *max_unused_ + kEmptied) {
    max_unused_ = std::max(max_unused_.value_or(0), then);
    return;
  }
  max_unused_.reset();
  log::info("flash model of {} starts over: the drive says that {:.0f} % of it is in use, which no discard explains",
            drive_.name(), 100 * *reported_used_);
  if (*reported_used_ <= kEmpty) {
    model_->start_empty();
  } else {
    const FlashModelSettings same = settings();
    model_.reset();
    model_ = std::make_unique<FlashModel>(same);
  }
}

void DriveModel::evaluate(model::WallTime wall) {
  notice_format();
  auto report = std::make_shared<model::FlashReport>(model_->report());
  if (gap_is_unknown()) {
    report->silence.fill(model::FlashSilence::warming_up);
    report->amplification.clear();
  }
  watch_collection(*report);
  fit(*report, wall);
  for (std::size_t i = 0; i < model::kFlashWindows; ++i) {
    const auto window = static_cast<model::FlashWindow>(i);
    likely_[i] = fit_.overprovisioning() ? fit_.estimate(*report, window) : band_of_policies(*report, window);
  }
  report_ = std::move(report);
}

void DriveModel::watch_collection(const model::FlashReport& report) {
  if (!drive_.host_written_bytes || !drive_.media_written_bytes) {
    return;
  }
  const auto since = report.written_since_full_discard_bytes;
  const auto limit = collection_.observe(
      since ? std::optional(static_cast<double>(*since)) : std::nullopt,
      {*drive_.host_written_bytes, *drive_.media_written_bytes, drive_.host_doubt_bytes, drive_.media_doubt_bytes},
      static_cast<double>(settings().size_bytes));
  if (limit) {
    log::info(
        "flash model of {}: garbage collection cost by the time that the host had written {:.1f} % of its size after a "
        "full discard: it has no more flash than that",
        drive_.name(), 100 * (1 + *limit));
    if (!fit_.limit(*limit)) {
      log::info(
          "flash model of {}: no modelled policy explains what the drive counted before with so little flash; the fit "
          "restarts",
          drive_.name());
    }
  }
}

/// Today is judged by yesterday's fit: a fit always agrees with the data it was made from.
void DriveModel::fit(const model::FlashReport& report, model::WallTime wall) {
  const auto day = model::FlashWindow::day;
  if (!drive_.measured_day || curve_of(report, day).size() < 2) {
    return;
  }
  const auto measured = without_overhead(*drive_.measured_day);
  const double now = seconds_of(wall);
  if (fitted_at_ > 0 && now - fitted_at_ < kDay) {
    return;
  }
  if (const auto modelled = fit_.estimate(report, day)) {
    drift_ = model::ModelDrift{modelled->ratio / measured.ratio - 1, modelled->lower / measured.upper - 1,
                               modelled->upper / measured.lower - 1};
  }
  if (!fit_.add(report, day, measured)) {
    log::info(
        "flash model of {}: no modelled policy explains what the drive counts under all its loads; the fit "
        "restarts",
        drive_.name());
  }
  fitted_at_ = now;
}

model::EffectiveOverprovisioning DriveModel::overprovisioning() const {
  if (const auto fitted = fit_.overprovisioning()) {
    return {fitted->likely, fitted->lower, fitted->upper, model::OverprovisioningBasis::media_counter, fit_.policy()};
  }
  const auto usual = usual_overprovisioning(settings().size_bytes);
  return {usual.likely, usual.lower, usual.upper, model::OverprovisioningBasis::size, std::nullopt};
}

model::FlashEstimate DriveModel::estimate() const {
  model::FlashEstimate result;
  result.controller = drive_.controller;
  for (const FlashNamespace& entry : drive_.namespaces) {
    result.devices.push_back(entry.device);
  }
  result.size_bytes = settings().size_bytes;
  result.page_bytes = settings().page_bytes;
  result.silence = silence_of(drive_.facts);
  result.report = report_;
  result.overprovisioning = overprovisioning();
  result.modelled_overprovisioning = settings().what_ifs.front().overprovisioning;
  if (!result.silence) {
    result.likely = likely_;
    result.drift = drift_;
  }
  if (report_ && report_->written_since_full_discard_bytes) {
    // It begins at 1.000 of the flash in the model, for every load; real drives began at 0.98 to 1.02 of it.
    constexpr double kUncertainty = 0.02;
    constexpr double kMinOverprovisioning = 0.0737;  // a GiB per GB
    constexpr double kMaxOverprovisioning = 0.5;
    const auto size = static_cast<double>(result.size_bytes);
    const bool fitted = result.overprovisioning.basis == model::OverprovisioningBasis::media_counter;
    result.collection_begins =
        model::ByteRange{size * (1 + (fitted ? result.overprovisioning.lower - kUncertainty : kMinOverprovisioning)),
                         size * (1 + (fitted ? result.overprovisioning.upper + kUncertainty : kMaxOverprovisioning))};
  }
  result.lost_writes = all_lost_writes_;
  result.lost_discards = all_lost_discards_;
  result.resumed = resumed_;
  return result;
}

DriveState DriveModel::state(model::WallTime wall) const {
  DriveState result{.key = drive_.key,
                    .settings = settings(),
                    .fit = fit_.ranges(),
                    .collection = collection_.state(),
                    .fitted_at = fitted_at_,
                    .kept_at = seconds_of(wall),
                    .host_written_bytes = drive_.host_written_bytes,
                    .model = model_->save()};
  if (kept_host_bytes_) {  // the next process accounts for the gap before this process
    result.host_written_bytes = kept_host_bytes_;
    result.seen_bytes = seen_bytes_ + written_bytes();
    result.absence = absence_;
  }
  return result;
}

Sampling DriveModel::sampling() const {
  Sampling result;
  std::uint64_t first_page = 0;
  for (const FlashNamespace& entry : drive_.namespaces) {
    model::SamplingParameters parameters;
    parameters.page_bits = static_cast<std::uint8_t>(std::countr_zero(settings().page_bytes));
    parameters.rate_bits = static_cast<std::uint8_t>(settings().rate_bits);
    parameters.seed = settings().seed;
    parameters.followed = static_cast<std::uint32_t>(model_->sample().pages());
    parameters.first_page = first_page;
    result.emplace(entry.device, parameters);
    first_page += (entry.size_bytes + settings().page_bytes - 1) / settings().page_bytes;
  }
  return result;
}

}  // namespace ssdpulse::flash
