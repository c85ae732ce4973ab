// SPDX-License-Identifier: Apache-2.0
// How one sample changes the ledger, and how the ledger is stored. What it reports is in write_ledger_report.cpp,
// and when it starts a new epoch in write_ledger_epochs.cpp.
#include "daemon/analysis/write_amplification/write_ledger.h"

#include <algorithm>
#include <utility>

#include "daemon/analysis/write_amplification/state_text.h"

namespace ssdpulse::analysis {
namespace {

constexpr std::string_view kStateVersion = "write-ledger-3 ";

}  // namespace

bool WriteLedger::saturated(const WriteSample& sample) {
  const auto full = [](const std::optional<model::ByteCounter>& counter) {
    return counter && counter->count == kUnbounded;
  };
  return full(sample.host_before) || full(sample.media) || full(sample.host_after);
}

std::optional<WriteLedger::Reading> WriteLedger::usable(const WriteSample& sample) {
  if (!sample.host_before || !sample.host_after || saturated(sample) ||
      sample.host_after->count < sample.host_before->count) {
    return std::nullopt;
  }
  Reading reading{sample.at,
                  CounterFormat(*sample.host_after),
                  {sample.host_before->count, sample.host_after->count},
                  {},
                  std::nullopt,
                  std::nullopt};
  if (sample.media) {
    reading.media_format = CounterFormat(*sample.media);
    reading.media = sample.media->count;
  }
  if (sample.block_before && sample.block_after) {
    reading.block = HostPoint{reading.host, reading.host_format, *sample.block_before, *sample.block_after,
                              sample.block_largest_request_bytes};
  }
  return reading;
}

void WriteLedger::observe(const WriteSample& sample) {
  meet_drive(sample);
  if (!host_.seen()) {
    at_ = sample.at;  // the time of the wear data, without any reading
    wall_ = sample.wall;
  }
  wear_.observe(sample.at, sample.percentage_used.value_or(-1));
  if (sample.endurance_estimate) {
    endurance_estimate_ = sample.endurance_estimate;
  }
  if (saturated(sample)) {
    lifetime_.lose();
  }
  const auto reading = usable(sample);
  if (!reading) {
    // Saturated, or reset between the reads: nothing before can be compared with anything after.
    if (sample.host_before && sample.host_after) {
      if (!host_.seen()) {
        lifetime_.lose();  // and nothing shows how much was lost
      }
      break_off();
      interrupted_ = true;
    }
    return;
  }
  if ((media_.seen() && !reading->media) || (host_.seen() && reading->at == at_)) {
    return;
  }
  if (host_.seen() && reading->at < at_) {
    windows_.clear();
    host_lag_.forget_times();
    media_lag_.forget_times();
    idle_since_.reset();
    block_.reset();
  }
  learn_units(*reading);
  const bool new_epoch =
      host_.seen() &&
      (interrupted_ || sample.firmware != firmware_ || host_.breaks(reading->host_format, reading->host) ||
       (reading->media && media_.breaks(reading->media_format, {*reading->media, *reading->media})));
  if (new_epoch) {
    begin_epoch(*reading, sample.firmware);
  } else {
    watch_idleness(*reading);
    watch_refresh(*reading);
  }
  interrupted_ = false;
  firmware_ = sample.firmware;
  wall_ = sample.wall;
  counted_since_birth_ = sample.counted_since_birth;
  compresses_ = sample.compresses;
  host_.advance(reading->host_format, reading->host);
  if (reading->media) {
    media_.advance(reading->media_format, {*reading->media, *reading->media});
  }
  watch_lag(*reading);
  if (!new_epoch) {  // an epoch may have begun in the middle of the sample
    if (reading->media) {
      windows_.add({reading->at, reading->host, *reading->media});
    }
    watch_drift(*reading);
  }
  at_ = reading->at;
  timed_ = true;
  readings_ = std::min(readings_ + 1, 2U);
  block_ = reading->block;
}

void WriteLedger::meet_drive(const WriteSample& sample) {
  if (serial_ && *serial_ != sample.serial) {
    *this = WriteLedger(poll_interval_);
  }
  if (!serial_) {
    serial_ = sample.serial;
    since_ = sample.wall;
  }
}

void WriteLedger::learn_units(const Reading& reading) {
  if (host_.would_learn(reading.host_format)) {
    host_.learn(reading.host_format);
    lifetime_.learn_host(reading.host_format);
    media_lag_.forget_times();  // its evidence was in the unknown unit
  }
  if (reading.media && media_.would_learn(reading.media_format)) {
    media_.learn(reading.media_format);
    lifetime_.learn_media(reading.media_format);
  }
}

void WriteLedger::watch_refresh(const Reading& reading) {
  if (host_.seen() && media_.seen() && reading.media) {
    refresh_.observe(reading.host.high != host_.last().high, *reading.media != media_.last().high);
  }
}

void WriteLedger::watch_lag(const Reading& reading) {
  WriteEvidence evidence;
  if (reading.block && host_.format().known()) {
    evidence.block = {reading.block->before.written_bytes, reading.block->after.written_bytes};
  }
  host_lag_.observe(reading.at, reading.host.high, evidence, host_.format().doubt());
  if (!reading.media) {
    return;
  }
  if (comparable()) {
    evidence.host = host_.format().interval(reading.host);
  } else {
    evidence = {};
  }
  media_lag_.observe(reading.at, *reading.media, evidence, media_.format().doubt() + kMaxBufferedBytes);
}

void WriteLedger::watch_idleness(const Reading& reading) {
  const auto unmoved = [](const BlockWrites& from, const BlockWrites& to) {
    return from.written_bytes == to.written_bytes && from.zeroed_bytes == to.zeroed_bytes && from.losses == to.losses;
  };
  const bool idle =
      block_ && reading.block && unmoved(block_->before, reading.block->after) && host_.last().low == reading.host.high;
  if (!idle) {
    idle_since_.reset();
    return;
  }
  if (!idle_since_) {
    idle_since_ = at_;
  }
  // A lagging counter may still be showing what was written before.
  if (reading.media && media_.seen() && media_.format().known() &&
      at_ - *idle_since_ >= media_lag_.lag(poll_interval_)) {
    idle_media_ = add(idle_media_, media_.format().bytes(*reading.media - media_.last().high));
  }
}

void WriteLedger::watch_drift(const Reading& reading) {
  const bool fell = block_ && reading.block && reading.block->before.written_bytes < block_->after.written_bytes;
  const bool known = reading.block && host_.format().known();
  if (fell || !known) {
    drift_.forget_begin();
  }
  if (known) {
    drift_.observe(*reading.block, host_lag_.lag(poll_interval_) == Time{0});
  }
}

std::optional<WriteLedger::Newest> WriteLedger::newest() const {
  if (!host_.seen()) {
    return std::nullopt;
  }
  Newest newest{{}, timed_, {behind(host_lag_), behind(media_lag_)}};
  WriteSample& sample = newest.sample;
  sample.at = at_;
  sample.wall = wall_;
  sample.host_before = host_.format().counter(host_.last().low);
  sample.host_after = host_.format().counter(host_.last().high);
  if (media_.seen()) {
    sample.media = media_.format().counter(media_.last().high);
  }
  sample.serial = serial_.value_or("");
  sample.firmware = firmware_;
  return newest;
}

void WriteLedger::remember(const WriteSample& sample) {
  const auto reading = usable(sample);
  if (!reading || !reading->media || !media_.seen() || (epochs_ > 0 && reading->at <= epoch_at_)) {
    return;
  }
  const auto same = [](const CounterFormat& then, const CounterFormat& now) { return !then.known() || then == now; };
  if (sample.serial != serial_ || sample.firmware != firmware_ || !same(reading->host_format, host_.format()) ||
      !same(reading->media_format, media_.format())) {
    windows_.clear();
    return;
  }
  windows_.add({reading->at, reading->host, *reading->media});
}

std::string WriteLedger::save() const {
  StateWriter writer;
  archive(*this, writer);
  return std::string(kStateVersion) + writer.text();
}

util::Result<WriteLedger> WriteLedger::restore(std::string_view text, Time poll_interval, Time at,
                                               std::chrono::system_clock::time_point wall) {
  if (!text.starts_with(kStateVersion)) {
    return util::fail("not a write ledger of this version");
  }
  WriteLedger ledger(poll_interval);
  StateReader reader(text.substr(kStateVersion.size()));
  archive(ledger, reader);
  ledger.readings_ = 2;
  if (!reader.complete()) {
    return util::fail("the text of the write ledger is damaged");
  }
  // The old clock may have ended with its boot. Only the wall clock knows how long ago that was. If it went backwards,
  // no time is taken to have passed; likewise if it went forward by decades, as it does on a host without a battery.
  const auto since = wall - ledger.wall_;
  const bool absent = since > since.zero() && since < kLongestAbsence;
  const Time moved = at - (absent ? std::chrono::duration_cast<Time>(since) : Time{0}) - ledger.at_;
  ledger.at_ += moved;
  ledger.epoch_at_ += moved;
  ledger.wear_.move_times(moved);
  return ledger;
}

}  // namespace ssdpulse::analysis
