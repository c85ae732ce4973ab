// SPDX-License-Identifier: Apache-2.0
// When counters were reset, or may have been: what still holds in a ledger, and why.
#include <utility>

#include "daemon/analysis/write_amplification/write_ledger.h"

namespace ssdpulse::analysis {
namespace {

/// The cause of an epoch, for the log.
std::string cause_of(const Lifetime::CounterFall& host, const Lifetime::CounterFall& media, bool other_firmware,
                     bool interrupted) {
  const auto fate = [](const WrittenTotal::Fall& fall) { return fall.restarted ? " restarted" : " rolled back"; };
  std::string cause;
  if (host) {
    cause = std::string("host counter") + fate(*host);
  }
  if (media) {
    cause += (cause.empty() ? "" : ", ") + std::string("media counter") + fate(*media);
  }
  if (!cause.empty()) {
    return cause;
  }
  return other_firmware ? "another firmware" : interrupted ? "readings that contradict each other" : "another unit";
}

}  // namespace

void WriteLedger::break_off() {
  windows_.clear();
  idle_since_.reset();
  drift_.forget_begin();
  block_.reset();
}

void WriteLedger::interrupt() {
  lifetime_.lose();
  break_off();
  interrupted_ = true;
}

void WriteLedger::open_epoch(Time at, std::string cause, Epoch::Counts then) {
  break_off();
  ++epochs_;
  epoch_at_ = at;
  epoch_ = Epoch{at, std::move(cause), {host_.last().high, media_.last().high}, then};
}

/// As counter_lag.h explains, a counter that seems to follow may still be almost 3 polls late.
WriteLedger::Time WriteLedger::behind(const CounterLag& lag) const {
  return lag.lag(poll_interval_) + 3 * poll_interval_;
}

Uint128 WriteLedger::most_since(Time at, const CounterLag& lag) const {
  return timed_ ? most_bytes_in(at - at_ + behind(lag)) : kUnbounded;
}

/// The very first reading proves nothing: a leap after it may as well be its error.
WrittenTotal::Passage WriteLedger::passage_to(Time at, const CounterFormat& format, const CounterLag& lag) const {
  const Uint128 writable = most_bytes_in(timed_ ? at - at_ + behind(lag) : Time(kLongestAbsence));
  return {at_, at, readings_ < 2 ? kUnbounded : add(writable, multiply(2, format.doubt() + 1))};
}

Lifetime::CounterFall WriteLedger::host_fall(const Reading& reading) const {
  return host_.fall(reading.host_format, reading.host, most_since(reading.at, host_lag_));
}

Lifetime::CounterFall WriteLedger::media_fall(const Reading& reading) const {
  return reading.media
             ? media_.fall(reading.media_format, {*reading.media, *reading.media}, most_since(reading.at, media_lag_))
             : std::nullopt;
}

void WriteLedger::begin_epoch(const Reading& reading, const std::string& firmware) {
  const auto host = host_fall(reading);
  const auto media = media_fall(reading);
  open_epoch(reading.at, cause_of(host, media, firmware != firmware_, interrupted_),
             {reading.host.high, reading.media.value_or(0)});
  host_.begin_epoch(reading.host_format, reading.host, host, passage_to(reading.at, reading.host_format, host_lag_));
  if (reading.media && media_.seen()) {
    media_.begin_epoch(reading.media_format, {*reading.media, *reading.media}, media,
                       passage_to(reading.at, reading.media_format, media_lag_));
  }
  if (interrupted_ && !host && !media) {
    lifetime_.lose();  // the restarted counter has already grown beyond its old value
  }
  lifetime_.fell(host, media);
  host_lag_ = CounterLag();
  media_lag_ = CounterLag();
  refresh_ = {};
  if (firmware != firmware_) {
    drift_ = HostDrift();
  }
}

void WriteLedger::doubt(const WriteSample& sample, bool fell_further) {
  const auto reading = usable(sample);
  if (reading && !fell_further) {
    const Interval media_lost =
        reading->media ? media_.lost(reading->media_format, {*reading->media, *reading->media}) : Interval{};
    lifetime_.may_have_fallen(host_fall(*reading), host_.lost(reading->host_format, reading->host),
                              media_fall(*reading), media_lost);
  } else {
    lifetime_.lose();
  }
  const auto shown = [](const std::optional<model::ByteCounter>& counter) { return counter ? counter->count : 0; };
  host_lag_.forget_times();
  media_lag_.forget_times();
  open_epoch(sample.at, "a fall that the next reading did not confirm",
             {shown(sample.host_after), shown(sample.media)});
}

}  // namespace ssdpulse::analysis
