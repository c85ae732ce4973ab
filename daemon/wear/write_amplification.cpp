// SPDX-License-Identifier: Apache-2.0
#include "daemon/wear/write_amplification.h"

#include <algorithm>
#include <sstream>

#include "daemon/nvme_pages/drive_reading.h"

namespace ssdpulse::wear {
namespace {

using log::field;
using log::quoted;
using namespace std::chrono_literals;

/// Another source replaces the current one once it was the best this often in a row: a page may fail now and then.
constexpr unsigned kReadingsToSwitch = 3;

constexpr std::size_t kMaxWaiting = 1024;

/// Up to this many epochs are a line each; a drive that has more has them all the time.
constexpr unsigned kMaxEpochsLogged = 16;

constexpr auto kAskAgain = 10s;
/// If the disk answers later than this, we keep waiting, but report what is known without it.
constexpr auto kHistoryTimeout = 10s;
constexpr auto kPastOfInterest = std::chrono::days(7);

WriteSample sample_of(const model::DriveMinute& minute, std::chrono::nanoseconds at) {
  WriteSample sample;
  sample.at = at;
  sample.wall = minute.minute;
  sample.host_before = sample.host_after = minute.writes.host;
  if (sample.host_before && minute.host_count_before) {
    sample.host_before->count = *minute.host_count_before;
  }
  sample.media = minute.writes.media;
  sample.serial = minute.drive.serial;
  sample.firmware = minute.drive.firmware;
  sample.percentage_used = minute.percentage_used;
  return sample;
}

/// The readings that the minutes hold, by source and on today's clock. A drive that was not polled has the same reading
/// in many minutes.
std::map<std::string, std::vector<WriteSample>> samples_of(const model::Recalled& recalled,
                                                           std::chrono::nanoseconds until, const model::Tick& now) {
  std::map<std::string, std::vector<WriteSample>> samples;
  std::map<std::string, std::chrono::nanoseconds> last;
  for (const model::DriveMinute& minute : recalled.minutes) {
    const auto [known, first] = last.try_emplace(minute.source, minute.boottime);
    if (!first && std::exchange(known->second, minute.boottime) == minute.boottime) {
      continue;
    }
    const std::chrono::nanoseconds by_wall = now.boot - (now.wall - minute.minute);
    // Within the same boot the clock is exact; from another boot, the wall clock's minute is all there is.
    const bool this_boot = minute.boottime <= now.boot && std::chrono::abs(by_wall - minute.boottime) <= 2min;
    const auto at = this_boot ? minute.boottime : by_wall;
    if (at < until) {
      samples[minute.source].push_back(sample_of(minute, at));
    }
  }
  return samples;
}

/// What add_kept_ledger() wrote: a line with the source, a line with its ledger, and so on.
std::map<std::string, CheckedLedger> kept_ledgers(const model::Bytes& bytes, std::chrono::nanoseconds interval,
                                                  const model::Tick& now, std::vector<log::Line>& problems) {
  constexpr std::size_t kMaxSources = 32;  // more than a drive could ever have had
  std::map<std::string, CheckedLedger> ledgers;
  std::istringstream lines(std::string(bytes.begin(), bytes.end()));
  std::string source;
  std::string text;
  while (ledgers.size() < kMaxSources && std::getline(lines, source) && std::getline(lines, text)) {
    auto ledger = CheckedLedger::restore(text, interval, now.boot, now.wall);
    if (ledger) {
      ledgers.emplace(source, std::move(*ledger));
    } else {
      problems.push_back(log::line(log::Level::warning, "the stored state of a drive's counters is unusable: {}",
                                   ledger.error().message));
    }
  }
  return ledgers;
}

WriteSample sample_of(const model::CounterReading& reading) {
  WriteSample sample;
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
  const auto& named = RatioWindows::kNamed;
  std::erase_if(ratios, [&](const model::WriteAmplificationRatio& ratio) {
    const auto width =
        std::find_if(named.begin(), named.end(), [&](const auto& window) { return ratio.window == window.name; });
    return width != named.end() && age >= width->width;
  });
}

/// Where counters only grow, fewer readings show the same, less finely; a fall needs the readings around it.
void remember_for_recall(std::vector<WriteSample>& waiting, const WriteSample& sample) {
  waiting.push_back(sample);
  if (waiting.size() % kMaxWaiting != 0) {
    return;
  }
  std::vector<WriteSample> kept;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const bool falls =
        (i > 0 && fell(waiting[i - 1], waiting[i])) || (i + 1 < waiting.size() && fell(waiting[i], waiting[i + 1]));
    if (i % 2 == 0 || falls) {
      kept.push_back(waiting[i]);
    }
  }
  waiting = std::move(kept);
}

std::optional<WriteLedger::Epoch> epoch_opened_by(const WriteSample& sample, CheckedLedger& ledger) {
  const auto so_far = ledger.ledger().epoch();
  ledger.observe(sample);
  const auto& epoch = ledger.ledger().epoch();
  return epoch && (!so_far || so_far->at != epoch->at) ? epoch : std::nullopt;
}

model::Minute minute_of(model::WallTime time) { return std::chrono::floor<std::chrono::minutes>(time); }

model::DriveKey history_key(const model::NvmeIdentity& identity) {
  return {util::for_history(identity.serial), util::for_history(identity.model), util::for_history(identity.firmware),
          util::for_history(identity.subsystem_nqn)};
}

/// Over all namespaces of the drive, cumulative.
std::uint64_t discarded_bytes(const model::DriveTick& drive, const model::Tick& tick) {
  std::uint64_t bytes = 0;
  for (const model::DeviceTick& device : tick.devices) {
    if (device.block.io && device.drive == drive.drive) {
      bytes += device.block.io->operation(model::Operation::discard).bytes;
    }
  }
  return bytes;
}

}  // namespace

void add_kept_ledger(model::Bytes& bytes, const std::string& source, const CheckedLedger& ledger) {
  const std::string text = source + '\n' + ledger.save() + '\n';
  bytes.insert(bytes.end(), text.begin(), text.end());
}

std::map<std::string, CheckedLedger> ledgers_of_the_past(const model::Recalled& recalled,
                                                         std::chrono::nanoseconds interval,
                                                         std::chrono::nanoseconds until, const model::Tick& now,
                                                         std::vector<log::Line>& lines) {
  std::map<std::string, CheckedLedger> ledgers;
  if (recalled.state) {
    ledgers = kept_ledgers(recalled.state->bytes, interval, now, lines);
  }
  for (const auto& [source, samples] : samples_of(recalled, until, now)) {
    const auto [entry, is_new] = ledgers.try_emplace(source, interval);
    for (const WriteSample& sample : samples) {
      is_new ? entry->second.observe(sample) : entry->second.remember(sample);
    }
  }
  return ledgers;
}

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
  Counters& counters = by_source_.try_emplace(source_, CheckedLedger(interval)).first->second;
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

void DriveLedgers::report_epoch(const std::string& source, const WriteLedger::Epoch& epoch, model::SteadyTime now,
                                Lines& lines) {
  std::uint64_t suppressed_before = 0;
  if (++epochs_logged_ > kMaxEpochsLogged) {
    const auto suppressed = limiter_.admit("epoch controller=" + controller_, now);
    if (!suppressed) {
      return;
    }
    suppressed_before = *suppressed;
  }
  lines.push_back(log::line(log::Level::warning, "{} the drive's write counters fell, a new epoch begins",
                            field("controller", controller_), field("source", source), quoted("cause", epoch.cause),
                            field("host_before", epoch.before.host), field("host", epoch.then.host),
                            field("media_before", epoch.before.media), field("media", epoch.then.media),
                            field("suppressed", suppressed_before)));
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
  const WriteLedger& ledger = counters->ledger.ledger();
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
  return (reason_ == nvme::kBestOffered ? "" : reason_ + "; ") + source_ + ": " + wrong;
}

void DriveLedgers::recall(const model::Recalled& recalled, Time interval, const model::Tick& now, Lines& lines) {
  Time until = now.boot;
  for (const auto& [source, counters] : by_source_) {
    until = counters.waiting.empty() ? until : std::min(until, counters.waiting.front().at);
  }
  for (auto& [source, ledger] : ledgers_of_the_past(recalled, interval, until, now, lines)) {
    Counters& counters = by_source_.try_emplace(source, CheckedLedger(interval)).first->second;
    counters.ledger = std::move(ledger);
    for (const WriteSample& sample : counters.waiting) {
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
  model::WriteAmplification result = counters->ledger.ledger().amplification();
  const auto& newest = counters->ledger.newest();
  forget_old(result.ratios, at - (newest ? newest->at : counters->ledger.ledger().newest()->sample.at));
  return result;
}

void DriveLedgers::fill(model::DriveMinute& row) const {
  const Counters* counters = this->counters();
  if (counters == nullptr || !counters->ledger.newest()) {
    return;
  }
  const WriteSample& last = *counters->ledger.newest();
  row.boottime = last.at;
  row.source = source_;
  row.writes = {last.host_after, last.media};
  if (last.host_before && last.host_after && last.host_before->count != last.host_after->count) {
    row.host_count_before = last.host_before->count;
  }
}

std::optional<model::Bytes> DriveLedgers::state() const {
  if (!knows_past_ || by_source_.empty()) {
    return std::nullopt;
  }
  model::Bytes bytes;
  for (const auto& [source, counters] : by_source_) {
    add_kept_ledger(bytes, source, counters.ledger);
  }
  return bytes;
}

model::Findings WriteAmplification::observe(const model::Tick& tick) {
  model::Findings findings;
  forget_others(tick);
  const auto minute = minute_of(tick.wall);
  if (const auto before = std::exchange(minute_, minute); before && *before != minute) {
    end_minute(*before, tick, findings.effects);
  }
  std::vector<model::WriteAmplification> values;
  for (const model::DriveTick& seen : tick.drives) {
    Drive& drive = drives_.try_emplace(seen.key, limiter_).first->second;
    observe_drive(seen, drive, tick, findings.effects);
    model::WriteAmplification value;
    if (seen.known_now && (drive.ledgers.knows_past() || drive.without_past)) {
      value = drive.ledgers.amplification(tick.boot);
    }
    value.source = drive.ledgers.source();
    value.reason = drive.ledgers.reason();
    value.read_at = drive.accepted_at;
    values.push_back(std::move(value));
  }
  if (tick.last) {
    end_minute(minute, tick, findings.effects);
  }
  findings.values = [values = std::move(values)](model::Snapshot& snapshot) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      snapshot.nvme_drives[i].write_amplification = values[i];
    }
  };
  return findings;
}

void WriteAmplification::forget_others(const model::Tick& tick) {
  std::erase_if(drives_, [&](const auto& entry) {
    return std::none_of(tick.drives.begin(), tick.drives.end(),
                        [&](const model::DriveTick& seen) { return seen.key == entry.first; });
  });
}

void WriteAmplification::observe_drive(const model::DriveTick& seen, Drive& drive, const model::Tick& tick,
                                       model::Effects& effects) {
  for (const model::CounterReading& reading : seen.readings) {
    drive.ledgers.observe(reading, seen.interval, tick.at, effects.lines);
    if (!drive.ledgers.in_doubt()) {
      drive.accepted_at = reading.ended;
    }
  }
  take_past(seen, drive, tick, effects);
  // Also if it is the past, which has just arrived, that contradicts the newest reading.
  if (drive.ledgers.in_doubt()) {
    effects.read_counters_again.push_back(seen.key);
  }
  ask_for_past(seen, drive, tick, effects);
}

void WriteAmplification::take_past(const model::DriveTick& seen, Drive& drive, const model::Tick& tick,
                                   model::Effects& effects) {
  const auto past = tick.pasts.find(seen.key);
  if (past == tick.pasts.end()) {
    if (drive.asked_at && tick.at - *drive.asked_at > kHistoryTimeout) {
      begin_without_past(seen, drive, "the history does not answer yet", effects);
    }
    return;
  }
  drive.asked_at.reset();
  drive.asks_again_at = tick.at + kAskAgain;
  if (past->second) {
    drive.ledgers.recall(*past->second, seen.interval, tick, effects.lines);
  } else {
    begin_without_past(seen, drive, past->second.error().message, effects);
  }
}

/// Asks as soon as the drive has identified itself, and until there is an answer.
void WriteAmplification::ask_for_past(const model::DriveTick& seen, Drive& drive, const model::Tick& tick,
                                      model::Effects& effects) {
  if (drive.ledgers.knows_past() || drive.asked_at || !seen.identified || tick.at < drive.asks_again_at) {
    return;
  }
  if (tick.keeps_history) {
    drive.asked_at = tick.at;
    effects.recalls.push_back({seen.key, history_key(*seen.drive->identity), minute_of(tick.wall) - kPastOfInterest});
  } else {
    drive.ledgers.recall({}, seen.interval, tick, effects.lines);
  }
}

void WriteAmplification::begin_without_past(const model::DriveTick& seen, Drive& drive, const std::string& why,
                                            model::Effects& effects) {
  if (!std::exchange(drive.without_past, true)) {
    effects.lines.push_back(log::line(log::Level::warning, "{} starts without its history, retrying: {}",
                                      field("controller", seen.drive->identity->controller), why));
  }
}

void WriteAmplification::end_minute(model::Minute minute, const model::Tick& tick, model::Effects& effects) {
  for (const model::DriveTick& seen : tick.drives) {
    const auto found = drives_.find(seen.key);
    if (found == drives_.end()) {
      continue;
    }
    Drive& drive = found->second;
    const std::uint64_t discarded = discarded_bytes(seen, tick);
    const std::uint64_t discarded_before = std::exchange(drive.discarded_bytes, discarded);
    if (!seen.known_now) {
      continue;
    }
    model::DriveMinute row;
    row.minute = minute;
    row.discard_bytes = discarded - std::min(discarded_before, discarded);
    row.drive = history_key(*seen.drive->identity);
    row.boottime = tick.boot;
    drive.ledgers.fill(row);
    const auto& values = seen.drive->values;
    row.percentage_used = value_of(values, model::NvmeField::percentage_used_ratio);
    row.available_spare = value_of(values, model::NvmeField::available_spare_ratio);
    row.temperature_celsius = value_of(values, model::NvmeField::temperature_celsius);
    if (auto state = drive.ledgers.state()) {
      effects.rows.states.push_back({row.drive, std::move(*state)});
    }
    effects.rows.minutes.push_back(std::move(row));
  }
}

}  // namespace ssdpulse::wear
