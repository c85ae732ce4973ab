// SPDX-License-Identifier: Apache-2.0
#include "daemon/drives/drive.h"

#include <algorithm>
#include <utility>

#include "daemon/drives/drive_identity.h"
#include "daemon/util/log.h"

namespace ssdpulse::drives {
namespace {

using log::field;
using namespace std::chrono_literals;

constexpr auto kSilence = 5s;    // a drive that owes an answer this long is stale
constexpr auto kGiveUp = 10min;  // the kernel has given up on any command long before
constexpr auto kShortestInterval = 10s;
constexpr auto kMediaAtLeast = 1h;  // idle wear is slow
constexpr auto kIdentifyAtLeast = 1h;
constexpr int kForgetAfterIntervals = 5;
constexpr auto kForgetAfter = 2min;

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

PolledDrive::PolledDrive(nvme::NvmeSubsystem subsystem, DriveLessons& lessons, SteadyTime first_poll,
                         std::chrono::nanoseconds stagger)
    : subsystem_(std::move(subsystem)),
      lessons_(lessons),
      poller_(subsystem_, lessons.refused),
      due_(first_poll),
      stagger_(stagger),
      watch_(lessons.backoff) {
  polling_.reason = "not read yet";
}

void PolledDrive::update(nvme::NvmeSubsystem subsystem) {
  changed_ = changed_ || replaced_ || subsystem.controller != subsystem_.controller ||
             subsystem.firmware != subsystem_.firmware || subsystem.namespaces != subsystem_.namespaces;
  replaced_ = false;
  subsystem_ = std::move(subsystem);
}

/// The time from one poll to the next.
std::chrono::nanoseconds PolledDrive::pace() const {
  return interval_ * lessons_.backoff.intervals(subsystem_.model.raw());
}

void PolledDrive::cannot_be_read(const char* kind, const std::string& reason) {
  polling_.up = false;
  polling_.reason = reason;
  ++polling_.failures[kind];
}

void PolledDrive::notice_silence(SteadyTime now) {
  if (asked_at_ && !silence_noticed_ && now - *asked_at_ > kSilence) {
    silence_noticed_ = true;
    cannot_be_read("timeout", "no answer to a command for more than 5 s");
    const std::string who = "nvme" + std::to_string(subsystem_.controller);
    if (const auto suppressed = lessons_.limiter.admit("silent " + who, now)) {
      logged_up_ = false;
      log::warning("{} does not answer{}", field("controller", who),
                   succeeded_at_ ? "; its figures are those of its last reading" : "",
                   field("suppressed", *suppressed));
    }
  }
}

bool PolledDrive::given_up(SteadyTime now) const { return asked_at_ && now - *asked_at_ > kGiveUp; }

bool PolledDrive::can_be_asked() {
  if (!subsystem_.live()) {
    cannot_be_read("not_live", "controller state " + subsystem_.state);
    return false;
  }
  // Before we hear of a removal, the number may have been given to another drive.
  const util::OutsideText serial = nvme::controller_serial(subsystem_.controller, lessons_.sys_root);
  if (!serial.empty() && serial != subsystem_.serial) {
    replaced_ = true;
    cannot_be_read("gone", "another drive has its number");
    return false;
  }
  return true;
}

/// With a shorter interval, the wait for the next poll shrinks in proportion, which keeps drives spread out.
void PolledDrive::keep_interval(std::chrono::nanoseconds interval, SteadyTime now) {
  const auto slack_before = slack(now);
  const auto before = std::exchange(interval_, interval);
  if (interval < before) {
    const double shorter = std::chrono::duration<double>(interval) / before;
    due_ = std::min(due_, now + std::chrono::duration_cast<std::chrono::nanoseconds>((due_ - now) * shorter));
    former_slack_ = slack_before;
    former_slack_until_ = now + kForgetAfterIntervals * pace();
  }
}

void PolledDrive::advance(SteadyTime now, std::chrono::nanoseconds interval, BlockLayer& block) {
  keep_interval(interval, now);
  if (watch_.near_until() && now >= *watch_.near_until()) {
    watch_.measure(latency_buckets_of(subsystem_, block), subsystem_.model.raw(), now);
    polling_.read_effect_ratio = watch_.ratio();
  }
  notice_silence(now);
  const auto shortest = kShortestInterval * lessons_.backoff.intervals(subsystem_.model.raw());
  const bool early = soon_ && now < due_ && now - polled_at_ >= shortest;
  if ((now < due_ && !early) || poller_.busy() || watch_.near_until()) {
    return;
  }
  if (early) {
    due_ = std::max(due_, now + shortest);
  } else {
    // Drives stay spread out over the interval; one that was late is not polled twice in a row.
    due_ += pace() * ((now - due_) / pace() + 1) + std::exchange(stagger_, 0ns);
  }
  polled_at_ = now;
  const bool asked_for = std::exchange(soon_, false);
  if (can_be_asked()) {
    begin_poll(now, early, asked_for, block);
  }
}

void PolledDrive::begin_poll(SteadyTime now, bool early, bool asked_for, BlockLayer& block) {
  if (std::exchange(changed_, false)) {
    poller_ = nvme::DrivePoller(subsystem_, lessons_.refused);  // which identifies the drive again
  }
  ++polling_.polls;
  before_ = writes_of(subsystem_, block);
  watch_.poll_begins(latency_buckets_of(subsystem_, block), early);
  using Extent = nvme::DrivePoller::Extent;
  if (!identity_ || now - identified_at_ >= kIdentifyAtLeast) {
    identified_at_ = now;
    poller_.begin(Extent::all);
  } else {
    const bool written = !before_.activity || before_.activity != at_media_.activity;
    const bool wanted = asked_for || written || counters_in_doubt_ || now - media_read_at_ >= kMediaAtLeast;
    poller_.begin(wanted ? Extent::media : Extent::wear);
  }
  finish_poll(now, block);  // in case there is nothing to ask
}

void PolledDrive::sent(SteadyTime now) {
  asked_at_ = now;
  silence_noticed_ = false;
}

void PolledDrive::answer(const nvme::Response& response, SteadyTime now, BlockLayer& block) {
  asked_at_.reset();
  poller_.answer(response);
  finish_poll(now, block);
}

void PolledDrive::finish_poll(SteadyTime now, BlockLayer& block) {
  const auto reading = poller_.take();
  if (!reading) {
    return;
  }
  for (const auto& [kind, times] : reading->failures) {
    polling_.failures[kind] += times;
  }
  if (!reading->impossible.empty()) {
    doubt_page(reading->impossible, now);
  }
  polling_.up = reading->reason.empty();
  polling_.reason = reading->reason;
  if (logged_up_ != polling_.up) {
    tell_state(now);
  }
  watch_.poll_ended(now);
  if (reading->identity) {
    identity_ = reading->identity;
    polling_.refused_pages = {reading->refused_pages.begin(), reading->refused_pages.end()};
  }
  if (!polling_.up || !identity_) {
    return;
  }
  succeeded_at_ = now;
  polling_.last_success_seconds = seconds_since_epoch();
  polling_.last_duration_seconds = std::chrono::duration<double>(reading->spent).count();
  if (reading->media_asked) {
    media_read_at_ = now;
    at_media_ = before_;
    take_counters(*reading, writes_of(subsystem_, block), now);
  }
  for (const auto& [page, why] : values_.take(*reading, units_, now)) {
    ++polling_.failures["unconfirmed"];
    doubt_page("its page " + std::string(page->name) + " waits for another reading: " + why, now);
    soon_ = true;
    counters_in_doubt_ = true;
    if (page->lid == nvme::kSmartLid && !readings_.empty()) {
      readings_.back().percentage_used.reset();
    }
  }
}

void PolledDrive::doubt_page(const std::string& what, SteadyTime now) {
  polling_.doubted = what;
  const std::string who = "nvme" + std::to_string(subsystem_.controller);
  if (const auto suppressed = lessons_.limiter.admit("doubt " + who, now)) {
    log::warning("{} {}", field("controller", who), what, field("suppressed", *suppressed));
  }
}

void PolledDrive::take_counters(const nvme::DriveReading& reading, const DriveWrites& after, SteadyTime now) {
  counters_in_doubt_ = false;
  const std::string identity = reading.identity->serial.raw() + '\n' + reading.identity->firmware.raw();
  if (std::exchange(units_of_, identity) != identity) {
    units_.clear();
  }
  analysis::SourceChoice choice = analysis::choose_source(reading, units_);
  units_ = choice.units;
  const nvme::PageReading* smart = reading.smart();
  const auto read_at = choice.at.count() != 0 || smart == nullptr ? choice.at : smart->at;
  model::CounterReading counters;
  counters.identity = reading.identity;
  counters.source = std::move(choice.source);
  counters.reason = std::move(choice.reason);
  counters.at = model::boot_time(SteadyTime(read_at));
  counters.ended = now;
  counters.wall = std::chrono::system_clock::now();
  // The host's counter is worth keeping by itself: for its drift, and for the remaining life.
  counters.host_before = counters.source.empty() ? reading.host_before_media() : choice.host_before;
  counters.media = choice.media;
  counters.host_after = counters.source.empty() ? reading.host_after_media() : choice.host_after;
  counters.endurance_estimate = choice.endurance_estimate;
  counters.counted_since_birth = choice.since_birth;
  counters.compresses = model::compresses(reading.identity->vendor_id, reading.identity->model);
  counters.block_before = before_.done;
  counters.block_after = after.done;
  counters.largest_request_bytes = after.largest_request_bytes;
  counters.percentage_used = smart != nullptr ? smart->content.percentage_used : std::nullopt;
  readings_.push_back(std::move(counters));
}

void PolledDrive::tell_state(SteadyTime now) {
  const std::string who = "nvme" + std::to_string(subsystem_.controller);
  if (const auto suppressed = lessons_.limiter.admit((polling_.up ? "up " : "down ") + who, now)) {
    logged_up_ = polling_.up;
    if (polling_.up) {
      log::info("{} is read", field("controller", who), field("suppressed", *suppressed));
    } else {
      log::warning("{} cannot be read: {}", field("controller", who), polling_.reason,
                   field("suppressed", *suppressed));
    }
  }
}

/// How much older than it should be a figure may be.
std::chrono::nanoseconds PolledDrive::slack(SteadyTime now) const {
  const auto former = now < former_slack_until_ ? former_slack_ : 0ns;
  return std::max<std::chrono::nanoseconds>(kForgetAfterIntervals * pace(), former);
}

/// Figures that are too old count as unknown.
bool PolledDrive::known_now(SteadyTime now) const {
  const auto forgotten = std::max<std::chrono::nanoseconds>(slack(now), kForgetAfter);
  return identity_ && succeeded_at_ && now - *succeeded_at_ <= forgotten;
}

/// The counters of a drive that is not written to stay right without being read.
std::vector<model::NvmeValue> PolledDrive::values(SteadyTime now) const {
  return values_.since(now - kMediaAtLeast - slack(now));
}

model::NvmeDrive PolledDrive::describe(SteadyTime now) const {
  model::NvmeDrive drive;
  drive.identity = identity_ ? with_namespaces(identity_, subsystem_) : identity_from_sysfs(subsystem_);
  drive.polling = polling_;
  drive.polling.interval_seconds = std::chrono::duration<double>(pace()).count();
  if (known_now(now)) {
    drive.values = values(now);
  }
  drive.polling.read_at = succeeded_at_;
  return drive;
}

model::DriveTick PolledDrive::sample(SteadyTime now) {
  model::DriveTick tick;
  tick.drive = std::make_shared<const model::NvmeDrive>(describe(now));
  tick.identified = identity_ != nullptr;
  tick.known_now = known_now(now);
  tick.interval = pace();
  tick.readings = std::exchange(readings_, {});
  return tick;
}

}  // namespace ssdpulse::drives
