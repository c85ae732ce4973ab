// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/write_amplification.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::stages {
namespace {

using namespace std::chrono_literals;

constexpr auto kAskAgain = 10s;
/// If the disk answers later than this, we keep waiting, but report what is known without it.
constexpr auto kHistoryTimeout = 10s;
constexpr auto kPastOfInterest = std::chrono::days(7);

history::Minute minute_of(model::WallTime time) { return std::chrono::floor<std::chrono::minutes>(time); }

history::DriveKey history_key(const model::NvmeIdentity& identity) {
  return {util::for_history(identity.serial), util::for_history(identity.model), util::for_history(identity.firmware),
          util::for_history(identity.subsystem_nqn)};
}

/// Over all namespaces of the drive, cumulative.
std::uint64_t discarded_bytes(const model::DriveTick& drive, const Tick& tick) {
  std::uint64_t bytes = 0;
  for (const DeviceTick& device : tick.devices) {
    if (device.block.io && device.drive == drive.drive) {
      bytes += device.block.io->operation(model::Operation::discard).bytes;
    }
  }
  return bytes;
}

}  // namespace

Findings WriteAmplification::observe(const Tick& tick) {
  Findings findings;
  forget_others(tick);
  const auto minute = minute_of(tick.wall);
  if (const auto before = std::exchange(minute_, minute); before && *before != minute) {
    end_minute(*before, tick, findings.effects);
  }
  std::vector<model::WriteAmplification> values;
  for (const model::DriveTick& seen : tick.drives) {
    Drive& drive = drives_.try_emplace(seen.key, limiter_).first->second;
    observe_drive(seen, drive, tick, findings.effects);
    model::WriteAmplification said;
    if (seen.known_now && (drive.ledgers.knows_past() || drive.without_past)) {
      said = drive.ledgers.amplification(tick.boot);
    }
    said.source = drive.ledgers.source();
    said.reason = drive.ledgers.reason();
    said.read_at = drive.accepted_at;
    values.push_back(std::move(said));
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

void WriteAmplification::forget_others(const Tick& tick) {
  std::erase_if(drives_, [&](const auto& entry) {
    return std::none_of(tick.drives.begin(), tick.drives.end(),
                        [&](const model::DriveTick& seen) { return seen.key == entry.first; });
  });
}

void WriteAmplification::observe_drive(const model::DriveTick& seen, Drive& drive, const Tick& tick, Effects& effects) {
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

void WriteAmplification::take_past(const model::DriveTick& seen, Drive& drive, const Tick& tick, Effects& effects) {
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
void WriteAmplification::ask_for_past(const model::DriveTick& seen, Drive& drive, const Tick& tick, Effects& effects) {
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
                                            Effects& effects) {
  if (!std::exchange(drive.without_past, true)) {
    effects.lines.push_back(log::line(log::Level::warning, "{} starts without its history, retrying: {}",
                                      log::field("controller", seen.drive->identity->controller), why));
  }
}

void WriteAmplification::end_minute(history::Minute minute, const Tick& tick, Effects& effects) {
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
    history::DriveMinute row;
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

}  // namespace ssdpulse::stages
