// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/drive_ledgers.h"

#include <algorithm>
#include <array>

#include "daemon/analysis/write_amplification/source_choice.h"

namespace ssdpulse::stages {
namespace {

using log::field;
using log::quoted;

/// Another source replaces the current one once it was the best this often in a row: a page may fail now and then.
constexpr unsigned kReadingsToSwitch = 3;

constexpr std::size_t kMaxWaiting = 1024;

/// Up to this many epochs are a line each; a drive that has more has them all the time.
constexpr unsigned kMaxEpochsLogged = 16;

analysis::WriteSample sample_of(const model::CounterReading& reading) {
  analysis::WriteSample sample;
  sample.at = reading.at;
  sample.wall = reading.wall;
  sample.serial = util::for_history(reading.identity->serial);
  sample.firmware = util::for_history(reading.identity->firmware);
  sample.host_before = reading.host_before;
  sample.media = reading.media;
  sample.host_after = reading.host_after;
  sample.counted_since_birth = reading.counted_since_birth;
  sample.compresses = reading.compresses;
  sample.block_before = reading.block_before;
  sample.block_after = reading.block_after;
  sample.block_largest_request_bytes = reading.largest_request_bytes;
  sample.percentage_used = reading.percentage_used;
  sample.endurance_estimate = reading.endurance_estimate;
  return sample;
}

/// A window that ended longer ago than its width says nothing about now: the drive has not been written to for so long.
void forget_old(std::vector<model::WriteAmplificationRatio>& ratios, std::chrono::nanoseconds age) {
  const auto& named = analysis::RatioWindows::kNamed;
  std::erase_if(ratios, [&](const model::WriteAmplificationRatio& ratio) {
    const auto width =
        std::find_if(named.begin(), named.end(), [&](const auto& one) { return ratio.window == one.name; });
    return width != named.end() && age >= width->width;
  });
}

/// Where counters only grow, fewer readings show the same, less finely; a fall needs the readings around it.
void remember_for_recall(std::vector<analysis::WriteSample>& waiting, const analysis::WriteSample& sample) {
  waiting.push_back(sample);
  if (waiting.size() % kMaxWaiting != 0) {
    return;
  }
  std::vector<analysis::WriteSample> kept;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const bool falls = (i > 0 && analysis::fell(waiting[i - 1], waiting[i])) ||
                       (i + 1 < waiting.size() && analysis::fell(waiting[i], waiting[i + 1]));
    if (i % 2 == 0 || falls) {
      kept.push_back(waiting[i]);
    }
  }
  waiting = std::move(kept);
}

std::optional<analysis::WriteLedger::Epoch> epoch_opened_by(const analysis::WriteSample& sample,
                                                            analysis::CheckedLedger& ledger) {
  const auto so_far = ledger.ledger().epoch();
  ledger.observe(sample);
  const auto& epoch = ledger.ledger().epoch();
  return epoch && (!so_far || so_far->at != epoch->at) ? epoch : std::nullopt;
}

}  // namespace

bool DriveLedgers::settle_source(const model::CounterReading& reading, Lines& lines) {
  const bool other = !chosen_ || reading.source != source_;
  if (other && (!chosen_ || source_.empty() || ++other_source_ >= kReadingsToSwitch)) {
    lines.push_back(log::line(log::Level::info, "{} write amplification", field("controller", controller_),
                              field("source", reading.source.empty() ? "none" : reading.source),
                              quoted("reason", reading.reason)));
    source_ = reading.source;
    chosen_ = true;
  }
  if (reading.source != source_) {
    return false;
  }
  other_source_ = 0;
  reason_ = reading.reason;
  return true;
}

void DriveLedgers::observe(const model::CounterReading& reading, Time interval, model::SteadyTime now, Lines& lines) {
  controller_ = reading.identity->controller;
  if (!settle_source(reading, lines)) {
    return;
  }
  Counters& counters = by_source_.try_emplace(source_, analysis::CheckedLedger(interval)).first->second;
  counters.ledger.set_poll_interval(interval);
  const auto sample = sample_of(reading);
  if (!knows_past_) {
    remember_for_recall(counters.waiting, sample);
  }
  if (const auto epoch = epoch_opened_by(sample, counters.ledger)) {
    report_epoch(source_, *epoch, now, lines);
    counters.first_epoch_logged = counters.first_epoch_logged.value_or(epoch->at);
  }
}

void DriveLedgers::report_epoch(const std::string& source, const analysis::WriteLedger::Epoch& epoch,
                                model::SteadyTime now, Lines& lines) {
  std::uint64_t unsaid = 0;
  if (++epochs_logged_ > kMaxEpochsLogged) {
    const auto suppressed = limiter_.admit("epoch controller=" + controller_, now);
    if (!suppressed) {
      return;
    }
    unsaid = *suppressed;
  }
  lines.push_back(log::line(log::Level::warning, "{} the drive's write counters fell, a new epoch begins",
                            field("controller", controller_), field("source", source), quoted("cause", epoch.cause),
                            field("host_before", epoch.before.host), field("host", epoch.then.host),
                            field("media_before", epoch.before.media), field("media", epoch.then.media),
                            field("suppressed", unsaid)));
}

bool DriveLedgers::in_doubt() const {
  const Counters* counters = this->counters();
  return counters != nullptr && counters->ledger.in_doubt();
}

std::string DriveLedgers::reason() const {
  const Counters* counters = this->counters();
  if (source_.empty() || counters == nullptr) {
    return reason_;
  }
  const analysis::WriteLedger& ledger = counters->ledger.ledger();
  const bool host = ledger.host_staleness().stuck;
  const bool media = ledger.media_staleness().stuck;
  std::string wrong;
  if (host || media) {
    wrong = std::string("its ") +
            (host && media ? "counters do"
             : host        ? "host counter does"
                           : "media counter does") +
            " not move though the drive is written to";
  } else {
    wrong = ledger.amplification().withheld;
  }
  if (wrong.empty()) {
    return reason_;
  }
  return (reason_ == analysis::kBestOffered ? "" : reason_ + "; ") + source_ + ": " + wrong;
}

void DriveLedgers::recall(const history::Recalled& recalled, Time interval, const Tick& now, Lines& lines) {
  Time until = now.boot;
  for (const auto& [source, counters] : by_source_) {
    until = counters.waiting.empty() ? until : std::min(until, counters.waiting.front().at);
  }
  for (auto& [source, ledger] : ledgers_of_the_past(recalled, interval, until, now, lines)) {
    Counters& counters = by_source_.try_emplace(source, analysis::CheckedLedger(interval)).first->second;
    counters.ledger = std::move(ledger);
    for (const analysis::WriteSample& sample : counters.waiting) {
      const auto epoch = epoch_opened_by(sample, counters.ledger);
      if (epoch && (!counters.first_epoch_logged || epoch->at < *counters.first_epoch_logged)) {
        report_epoch(source, *epoch, now.at, lines);
      }
    }
  }
  for (auto& [source, counters] : by_source_) {
    counters.waiting = {};
  }
  knows_past_ = true;
}

const DriveLedgers::Counters* DriveLedgers::counters() const {
  const auto found = by_source_.find(source_);
  return found == by_source_.end() ? nullptr : &found->second;
}

model::WriteAmplification DriveLedgers::amplification(Time at) const {
  const Counters* counters = this->counters();
  if (counters == nullptr || !(counters->ledger.newest() || counters->ledger.in_doubt())) {
    return {};
  }
  model::WriteAmplification said = counters->ledger.ledger().amplification();
  const auto& newest = counters->ledger.newest();
  forget_old(said.ratios, at - (newest ? newest->at : counters->ledger.ledger().newest()->sample.at));
  return said;
}

void DriveLedgers::fill(history::DriveMinute& row) const {
  const Counters* counters = this->counters();
  if (counters == nullptr || !counters->ledger.newest()) {
    return;
  }
  const analysis::WriteSample& last = *counters->ledger.newest();
  row.boottime = last.at;
  row.source = source_;
  row.writes = {last.host_after, last.media};
  if (last.host_before && last.host_after && last.host_before->count != last.host_after->count) {
    row.host_count_before = last.host_before->count;
  }
}

std::optional<history::Bytes> DriveLedgers::state() const {
  if (!knows_past_ || by_source_.empty()) {
    return std::nullopt;
  }
  history::Bytes bytes;
  for (const auto& [source, counters] : by_source_) {
    add_kept_ledger(bytes, source, counters.ledger);
  }
  return bytes;
}

}  // namespace ssdpulse::stages
