// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/write_ledger_play.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace ssdpulse::wear {
namespace {

using simulation::Fate;
using simulation::to_mpz;
using simulation::Truth;

[[noreturn]] void wrong(const std::string& what) { throw std::runtime_error(what); }

bool full(const WriteSample& sample) {
  return ~sample.media->count == 0 || ~sample.host_before->count == 0 || ~sample.host_after->count == 0;
}

void settle(mpz_class& base, Fate fate, const mpz_class& before, const mpz_class& now) {
  if (fate == Fate::restarted) {
    base += before;
  } else if (fate == Fate::rolled_back && now < before) {
    base += before - now;
  }
}

/// bytes * ratio, as an integer, rounded down. (For integers, a * r < b if and only if floor(a * r) < b.)
mpz_class times(const mpz_class& bytes, double ratio) {
  int exponent = 0;
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(ratio, &exponent), 53));
  const mpz_class product = bytes * mantissa;
  exponent -= 53;
  return exponent >= 0 ? mpz_class(product << static_cast<unsigned>(exponent))
                       : mpz_class(product >> static_cast<unsigned>(-exponent));
}

void check_bounds(const model::WriteAmplificationRatio& said, const mpz_class& host, const mpz_class& media) {
  if (!(std::isfinite(said.upper) && said.lower >= 0 && said.ratio > 0 && said.lower <= said.ratio &&
        said.ratio <= said.upper && said.upper - said.lower <= 0.2000001 * said.ratio)) {
    wrong("absurd ratio of " + said.window);
  }
  if (host <= 0) {
    wrong("a ratio though the host wrote nothing: " + said.window);
  }
  if (-times(-host, said.lower) > media || times(host, said.upper) < media) {
    std::ostringstream text;
    text.precision(17);
    text << "the truth of " << said.window << " is " << mpq_class(media, host).get_d() << ", not in [" << said.lower
         << ", " << said.upper << "]";
    wrong(text.str());
  }
}

}  // namespace

void PlayCounts::add(const PlayCounts& other) {
  for (const auto& [window, count] : other.ratios) {
    ratios[window] += count;
  }
  samples += other.samples, lagging += other.lagging, refreshed += other.refreshed, by_chance += other.by_chance;
  unverified += other.unverified;
  after_falls += other.after_falls, after_absurd += other.after_absurd, falls += other.falls;
  made_up += other.made_up, epochs += other.epochs, absurd += other.absurd, absurd_doubted += other.absurd_doubted;
  unusable += other.unusable, hidden += other.hidden, restarts += other.restarts, idle += other.idle;
  drifts += other.drifts;
}

void Play::run() {
  auto polls = 3 + dice_.roll(10);
  if (dice_.once_in(4)) {
    polls += dice_.roll(30);
  }
  if (dice_.once_in(200)) {
    polls += dice_.roll(600);
  }
  for (; polls > 0 && !stopped_; --polls) {
    poll();
    if (!stopped_ && dice_.once_in(64)) {
      restart_daemon();
    }
  }
}

void Play::meet_another_drive() {
  records_.clear();
  history_.clear();
  spared_.reset();
  last_.reset();
  fallen_from_.reset();
  base_host_ = base_media_ = 0;
  host_fate_ = media_fate_ = Fate::none;
  causes_ = sure_epochs_ = 0;
  more_epochs_.reset();
  host_total_ = media_total_ = idle_total_ = 0;
  drift_from_.clear();
  epochs_checked_ = 0;
  calm_polls_ = 0;
  since_absurd_ = 1 << 20;
  interrupted_ = full_seen_ = lost_ = fell_ = usable_seen_ = false;
}

/// There is no promise that a drive showing an absurd page does not fall just before or after it.
bool Play::garble(WriteSample& sample, const Truth& truth) {
  const bool calm = truth.host_fate == Fate::none && truth.media_fate == Fate::none && calm_polls_ >= 2 &&
                    since_absurd_ >= 2 && !interrupted_ && !more_epochs_ && !ledger_.in_doubt() && !full(sample);
  if (!calm || !dice_.once_in(24)) {
    return false;
  }
  if (!spared_) {
    spared_ = ledger_;
  }
  return drive_.garble(sample, *last_);
}

void Play::poll() {
  Truth truth;
  WriteSample sample = drive_.poll(truth);
  ++counts_.samples;
  if (last_ && sample.serial != last_->serial) {
    meet_another_drive();
  }
  const bool other_firmware = last_ && sample.firmware != last_->firmware;
  const bool happened = truth.host_fate != Fate::none || truth.media_fate != Fate::none || other_firmware;
  calm_polls_ = happened ? 0 : calm_polls_ + 1;
  if (happened && since_absurd_ == 0) {
    stopped_ = true;
    return;
  }
  Record record{sample.at.count(), truth.host_written, truth.media_written,           {}, {},
                truth.host_shown,  truth.media_shown,  truth.host_shown - truth.block};
  record.absurd = garble(sample, truth);
  since_absurd_ = record.absurd ? 0 : since_absurd_ + 1;
  host_fate_ = both(host_fate_, truth.host_fate);
  media_fate_ = both(media_fate_, truth.media_fate);
  const bool usable = !record.absurd && !full(sample) && sample.host_after->count >= sample.host_before->count;
  if (usable) {
    live_through(sample, truth, record);
  } else if (!record.absurd) {
    ++counts_.unusable;
    ++causes_;
    interrupted_ = true;
    full_seen_ = full_seen_ || full(sample);
    lost_ = lost_ || full(sample);
    record.after_fall = true;
    if (usable_seen_ && !full(sample)) {
      more_epochs_ = more_epochs_.value_or(sure_epochs_);
    }
  } else {
    ++counts_.absurd;
    ++causes_;
  }
  if (stopped_) {
    return;
  }
  records_.push_back(std::move(record));
  ledger_.observe(sample);
  records_.back().held = ledger_.in_doubt();
  if (spared_ && !records_.back().absurd) {
    spared_->observe(sample);
  }
  if (records_.back().absurd && !ledger_.in_doubt()) {
    wrong("an absurd page is believed");
  }
  if (usable && !ledger_.in_doubt() && dice_.once_in(4)) {
    history_.push_back(sample);
  }
  if (usable) {
    last_ = sample;
    last_truth_ = truth;
    usable_seen_ = true;
  } else if (!last_) {
    last_ = sample;
  }
  if (usable || usable_seen_) {
    check(sample, truth);
  }
}

/// Updates the truth with a usable sample.
void Play::live_through(const WriteSample& sample, const Truth& truth, Record& record) {
  if (usable_seen_) {
    const bool host_fell = sample.host_before->count < last_->host_after->count;
    const bool media_fell = sample.media->count < last_->media->count;
    record.after_fall = host_fell || media_fell || interrupted_ || sample.firmware != last_->firmware;
    const auto above = [&](const WriteSample& before) {
      return sample.host_before->count >= before.host_after->count && sample.media->count >= before.media->count;
    };
    counts_.made_up += fallen_from_ && above(*fallen_from_) ? 1 : 0;
    fallen_from_ = host_fell || media_fell ? last_ : std::nullopt;
    if (record.after_fall) {
      spared_.reset();  // the assumed habits of the counters may differ by then
      ++causes_;
      counts_.falls += fallen_from_ ? 1 : 0;
      more_epochs_ = more_epochs_.value_or(sure_epochs_);
      lost_ = lost_ || (interrupted_ && !host_fell && !media_fell);
    }
    // A counter that fell twice may have shown one fall; one that falls from all ones is like an absurd page.
    const bool twice = host_fate_ == Fate::several || media_fate_ == Fate::several;
    const bool from_all_ones = full_seen_ && !host_fell && !media_fell;
    if (twice || from_all_ones || (!record.after_fall && (host_fate_ != Fate::none || media_fate_ != Fate::none))) {
      ++counts_.hidden;  // beyond what counters can show
      stopped_ = true;
      return;
    }
    fell_ = fell_ || host_fell || media_fell;
    // Different fates at once, or one that cannot be seen: the bounds at the fall need not contain the truth.
    const bool different = host_fate_ != media_fate_ && host_fate_ != Fate::none && media_fate_ != Fate::none;
    lost_ = lost_ || different || (host_fate_ == Fate::restarted && !host_fell) ||
            (media_fate_ == Fate::restarted && !media_fell);
    settle(base_host_, host_fate_, last_truth_.host_shown_after, truth.host_shown_after);
    settle(base_media_, media_fate_, last_truth_.media_shown, truth.media_shown);
  } else if (truth.host_fate != Fate::none || truth.media_fate != Fate::none) {
    stopped_ = true;  // perhaps within the first reading
    return;
  }
  host_fate_ = media_fate_ = Fate::none;
  interrupted_ = full_seen_ = false;
  record.life_host = base_host_ + truth.host;
  record.life_media = base_media_ + truth.media;
}

void Play::check(const WriteSample& sample, const Truth& truth) {
  const bool doubt = ledger_.in_doubt();
  const auto said = ledger_.ledger().amplification();
  check_epochs(said);
  if (!doubt) {
    newest_ = records_.size() - 1;
    sure_epochs_ = said.epochs;
  }
  for (const auto& one : said.ratios) {
    check_ratio(one);
  }
  idle_since_checked_ = idle_since_checked_ || truth.idle;
  if (doubt || full(sample) || sample.host_after->count < sample.host_before->count) {
    if (!doubt && full(sample) && !said.ratios.empty()) {
      wrong("a saturated counter tells a ratio");
    }
    single_step_ = false;
    return;
  }
  check_totals(said, sample);
  check_idle(said.idle_media_written_bytes, sample, truth);
  check_drift(said, sample);
  epochs_checked_ = said.epochs;
  idle_since_checked_ = false;
  single_step_ = true;
}

void Play::check_epochs(const model::WriteAmplification& said) {
  if (said.epochs > 2 * causes_) {
    wrong("more epochs than causes");
  }
  if (ledger_.in_doubt() || !more_epochs_ || interrupted_) {
    return;
  }
  if (said.epochs <= *more_epochs_) {
    wrong("a fall that is no epoch");
  }
  counts_.epochs += said.epochs - *more_epochs_;
  more_epochs_.reset();
}

std::size_t Play::find(double seconds_before_newest) const {
  const Nanoseconds at = records_[newest_].at - std::llround(seconds_before_newest * 1e9);
  const auto found = std::lower_bound(records_.begin(), records_.end(), at,
                                      [](const Record& record, Nanoseconds time) { return record.at < time; });
  if (found == records_.end() || found->at != at || found->absurd) {
    wrong("a window begins or ends where there is no reading, or an absurd one");
  }
  return static_cast<std::size_t>(found - records_.begin());
}

void Play::check_ratio(const model::WriteAmplificationRatio& said) {
  static const std::map<std::string, double> kWidths{{"5m", 300}, {"1h", 3600}, {"24h", 86400}, {"7d", 604800}};
  ++counts_.ratios[said.window];
  counts_.lagging += said.age_seconds > 0 ? 1 : 0;
  const std::size_t end = find(said.age_seconds);
  if (said.window == "lifetime") {
    counts_.unverified += lost_ ? 1 : 0;
    counts_.after_falls += fell_ && !lost_ ? 1 : 0;
    counts_.after_absurd += spared_ && !lost_ ? 1 : 0;
    if (!lost_) {
      check_bounds(said, records_[end].life_host, records_[end].life_media);
    }
    return;
  }
  if (!(said.covered_seconds > 0 && said.covered_seconds <= kWidths.at(said.window))) {
    wrong("covered seconds of " + said.window);
  }
  const std::size_t begin = find(said.age_seconds + said.covered_seconds);
  for (std::size_t i = end; i > begin; --i) {
    if (records_[i].after_fall) {
      wrong("a window that spans a fall: " + said.window);
    }
  }
  check_window(said, records_[begin], records_[end]);
}

/// The window of these readings, or that of the refreshes that they show: the ledger does not say which it is.
void Play::check_window(const model::WriteAmplificationRatio& said, const Record& from, const Record& to) {
  try {
    check_bounds(said, to.host - from.host, to.media - from.media);
    return;
  } catch (const std::runtime_error&) {
    if (!ledger_.ledger().refreshes_together()) {
      throw;
    }
  }
  if (!drive_.refreshes_together()) {
    ++counts_.by_chance;
    return;
  }
  ++counts_.refreshed;
  check_bounds(said, to.host_shown - from.host_shown, to.media_shown - from.media_shown);
}

void Play::check_totals(const model::WriteAmplification& said, const WriteSample& sample) {
  check_total(said.host_written_bytes, *sample.host_after, said.epochs, host_total_);
  check_total(said.media_written_bytes, *sample.media, said.epochs, media_total_);
  if (!spared_ || spared_->in_doubt()) {
    return;
  }
  const auto spared = spared_->ledger().amplification();
  counts_.absurd_doubted += since_absurd_ == 1 && said.epochs > epochs_checked_ ? 1 : 0;
  if (spared.host_written_bytes != said.host_written_bytes || spared.media_written_bytes != said.media_written_bytes) {
    wrong("an absurd page moved a total");
  }
}

void Play::check_total(const std::optional<double>& said, const model::ByteCounter& counter, std::uint64_t epochs,
                       double& before) const {
  if (said.has_value() != (counter.unit_bytes != 0)) {
    wrong("a total of an unknown unit, or none of a known one");
  }
  if (!said) {
    return;
  }
  if (!(*said >= before)) {
    wrong("a total fell");
  }
  const mpz_class bytes = to_mpz(counter.count) * counter.unit_bytes;
  if (epochs == 0 && bytes < mpz_class(1) << 128 && std::abs(*said - bytes.get_d()) > 1e-15 * *said) {
    wrong("a total is not what the counter says");
  }
  before = *said;
}

void Play::check_idle(double said, const WriteSample& sample, const Truth& truth) {
  if (!drive_.block_layer_sees_all() || !idle_since_checked_ || !single_step_) {
    if (said > idle_total_ && drive_.block_layer_sees_all() && !idle_since_checked_) {
      wrong("idle writes while the host wrote");
    }
    idle_from_ = truth.media_written;
    idle_before_ = said;
  } else if (said > idle_total_) {
    ++counts_.idle;
    const mpz_class most = truth.media_written - idle_from_ + 2 * mpz_class(sample.media->unit_bytes);
    const bool same_epoch = ledger_.ledger().amplification().epochs == epochs_checked_;
    if (same_epoch && mpq_class(said - idle_before_) > most + mpq_class(said * 1e-15)) {
      wrong("more idle writes than writes");
    }
  }
  if (said < idle_total_) {
    wrong("idle writes fell");
  }
  idle_total_ = said;
}

void Play::check_drift(const model::WriteAmplification& said, const WriteSample& sample) {
  const bool measured = sample.block_before && sample.host_before->unit_bytes != 0;
  if (said.epochs != epochs_checked_) {
    drift_from_.clear();
  }
  if (!said.host_written_drift_bytes) {
    if (measured && !drift_from_.empty()) {
      wrong("no drift");
    }
    return;
  }
  if (!measured) {
    wrong("a drift out of nothing");
  }
  const Record& here = records_.back();
  if (drift_from_.empty()) {
    drift_from_ = {here};
    const Record& before = records_[records_.size() > 1 ? records_.size() - 2 : 0];
    if (before.held && !before.absurd) {
      drift_from_.push_back(before);  // when both were believed at once
    }
  }
  ++counts_.drifts;
  const double lower = said.host_written_drift_lower_bytes.value();
  const double upper = said.host_written_drift_upper_bytes.value();
  std::erase_if(drift_from_, [&](const Record& begin) {
    const double exact = mpz_class(here.beyond_block - begin.beyond_block).get_d();
    const double rounding = 1e-15 * (std::abs(lower) + std::abs(upper));
    return lower - rounding > exact || upper + rounding < exact;
  });
  if (drift_from_.empty() || !(lower <= *said.host_written_drift_bytes) || !(*said.host_written_drift_bytes <= upper)) {
    wrong("drift");
  }
}

/// With a random part of the history.
void Play::restart_daemon() {
  const auto newest = ledger_.ledger().newest();
  if (!usable_seen_ || !newest) {
    return;
  }
  ++counts_.restarts;
  causes_ += ledger_.in_doubt() ? 1 : 0;
  calm_polls_ = ledger_.in_doubt() ? 0 : calm_polls_;
  for (CheckedLedger* ledger : {&ledger_, spared_ ? &*spared_ : nullptr}) {
    if (ledger == nullptr) {
      continue;
    }
    auto restored =
        CheckedLedger::restore(ledger->save(), drive_.poll_interval(), newest->sample.at, newest->sample.wall);
    if (!restored) {
      wrong(restored.error().message);
    }
    *ledger = std::move(*restored);
  }
  for (const WriteSample& sample : history_) {
    ledger_.remember(sample);
  }
  if (!history_.empty()) {
    newest_ = static_cast<std::size_t>(
        std::find_if(records_.begin(), records_.end(),
                     [&](const Record& record) { return record.at == history_.back().at.count(); }) -
        records_.begin());
  }
  drive_.restart_block_layer();
  drift_from_.clear();
  records_.back().held = false;  // and forgotten
  single_step_ = false;
}

}  // namespace ssdpulse::wear
