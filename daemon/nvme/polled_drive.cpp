// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme/polled_drive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/nvme_pages/page_fields.h"

namespace ssdpulse::nvme {
namespace {

using log::field;
using namespace std::chrono_literals;

constexpr unsigned kDoNotRetry = 0x4000;   // in a status as Linux passes it on (include/linux/nvme.h NVME_STATUS_DNR)
constexpr unsigned kStatusCode = 0x07ff;   // including its type
constexpr unsigned kFdpDisabled = 0x0029;  // in this endurance group (TP4146)

/// The only answers that apply to all drives of the same kind: invalid opcode, invalid field, invalid log page.
constexpr std::array kNoSuchPage{0x0001U, 0x0002U, 0x0109U};

/// A page that was never what its number suggests, this often in a row, is another vendor's.
constexpr unsigned kTriesToUnderstand = 3;

/// Without these limits, a drive that lies could make a poll arbitrarily long.
constexpr std::size_t kMaxPolledGroups = 8;
constexpr std::size_t kMaxNamespaces = 32;

constexpr auto kSilence = 5s;            // a drive that owes an answer this long is stale
constexpr auto kCommandTimeout = 10min;  // the kernel's own timeout ends any command long before
constexpr auto kShortestInterval = 10s;
constexpr auto kMaxMediaInterval = 1h;  // idle wear is slow
constexpr auto kMaxIdentifyInterval = 1h;
constexpr int kForgetAfterIntervals = 5;
constexpr auto kForgetAfter = 2min;

bool is_smart(const LogPage& page) { return page.lid == kSmartLid; }

/// What an errno of the reader means for the drive.
const char* failure_kind(int error_number) {
  switch (error_number) {
    case ENODEV:
    case ENXIO:
    case ENOENT:
      return "gone";
    case EAGAIN:
      return "not_live";
    case ETIME:
    case ETIMEDOUT:
    case EINTR:
      return "timeout";
    case EACCES:
    case EPERM:
      return "not_permitted";
    case EDQUOT:
      return "reader_limit";
    case ECONNRESET:
    case EPIPE:
    case EPROTO:
    case EBUSY:
      return "reader";
    default:
      return "io";
  }
}

}  // namespace

void DrivePoller::begin(Extent extent) {
  busy_ = true;
  reading_ = {};
  steps_.clear();
  wants_media_ = extent != Extent::wear;
  if (!identified_ || extent == Extent::all) {
    wants_media_ = true;
    identified_ = false;
    steps_.push_back({RequestKind::identify_controller});
  } else {
    plan_pages();
  }
  if (steps_.empty()) {
    finish();
  }
}

void DrivePoller::plan_page(const LogPage& page, bool again) {
  if (!page.offered(*identity_) || refused_->contains(*identity_, page)) {
    return;
  }
  const std::size_t before = steps_.size();
  if (!page.per_endurance_group) {
    steps_.push_back({RequestKind::log_page, &page, 0, 0, again});
  } else {
    const auto& groups = identity_->endurance_groups;
    for (std::size_t i = 0; i < std::min(groups.size(), kMaxPolledGroups); ++i) {
      if (!refused_->contains(*identity_, page, groups[i])) {
        steps_.push_back({RequestKind::log_page, &page, groups[i], 0, again});
      }
    }
  }
  if (!again) {
    reading_.asked[&page] = steps_.size() - before;
  }
}

void DrivePoller::plan_pages() {
  const auto pages = log_pages();
  const auto smart = std::find_if(pages.begin(), pages.end(), is_smart);
  if (smart != pages.end()) {
    plan_page(*smart);
  }
  if (!wants_media_) {
    return;
  }
  reading_.media_asked = true;
  for (const LogPage& page : pages) {
    if (!page.source.empty()) {
      plan_page(page);
    }
  }
  if (smart != pages.end()) {
    plan_page(*smart, true);
  }
  for (const LogPage& page : pages) {
    if (page.source.empty() && !is_smart(page)) {
      plan_page(page);
    }
  }
}

std::uint8_t DrivePoller::uuid_index(const LogPage& page) const {
  if (page.uuid == nullptr) {
    return 0;
  }
  const auto& uuids = identity_->uuids;
  const auto found = std::find(uuids.begin(), uuids.end(), *page.uuid);
  // 7 bits in the command; the list has at most 127 entries.
  return found == uuids.end() ? std::uint8_t{0} : static_cast<std::uint8_t>(found - uuids.begin() + 1);
}

std::optional<Request> DrivePoller::next() {
  if (!busy_ || outstanding_ || steps_.empty()) {
    return std::nullopt;
  }
  outstanding_ = steps_.front();
  steps_.pop_front();
  Request request;
  request.controller = subsystem_.controller;
  request.kind = outstanding_->kind;
  request.nsid = outstanding_->nsid;
  if (outstanding_->page != nullptr) {
    request.page = static_cast<std::uint16_t>(outstanding_->page - log_pages().data());
    request.endurance_group = outstanding_->endurance_group;
    request.uuid_index = uuid_index(*outstanding_->page);
  }
  return request;
}

void DrivePoller::answer(const Response& response) {
  if (!outstanding_) {
    return;
  }
  const Step step = *std::exchange(outstanding_, std::nullopt);
  if (response.began_ns != 0) {  // else no command was sent
    reading_.spent += std::chrono::nanoseconds(response.ended_ns) - std::chrono::nanoseconds(response.began_ns);
  }
  understand(step, response);
  if (steps_.empty()) {
    finish();
  }
}

void DrivePoller::finish() {
  busy_ = false;
  finished_ = true;
  if (identified_) {
    reading_.identity = identity_;
    for (const LogPage& page : log_pages()) {
      if (page.offered(*identity_) && is_refused(page)) {
        reading_.refused_pages.emplace(page.name, refused_->reason(*identity_, page));
      }
    }
  }
}

bool DrivePoller::is_refused(const LogPage& page) const {
  const auto& groups = identity_->endurance_groups;
  return refused_->contains(*identity_, page) ||
         (page.per_endurance_group && !groups.empty() && std::all_of(groups.begin(), groups.end(), [&](auto group) {
            return refused_->contains(*identity_, page, group);
          }));
}

void DrivePoller::fail(const std::string& kind, const std::string& reason) {
  ++reading_.failures[kind];
  if (reading_.reason.empty()) {
    reading_.reason = reason;
  }
}

void DrivePoller::understand(const Step& step, const Response& response) {
  if (response.result < 0) {
    // Whatever is left of this poll would fare no better.
    steps_.clear();
    fail(failure_kind(-response.result), std::strerror(-response.result));
    return;
  }
  if (response.result > 0) {
    refuse(step, static_cast<unsigned>(response.result));
    return;
  }
  const Bytes bytes = response.content();
  if (step.kind == RequestKind::log_page) {
    understand_page(step, response);
    return;
  }
  // Only Identify Controller is needed: the others report more about some drives, whose pages are as good without them.
  const auto count_garbage = [&] { ++reading_.failures["garbage"]; };
  switch (step.kind) {
    case RequestKind::identify_controller: {
      auto identity = parse_identify_controller(bytes);
      if (!identity) {
        fail("garbage", identity.error().message);
        return;
      }
      identity_ = std::make_shared<model::NvmeIdentity>(std::move(*identity));
      identity_->controller = "nvme" + std::to_string(subsystem_.controller);
      identity_->subsystem_nqn = subsystem_.nqn;
      identity_->transport = subsystem_.transport;
      identity_->namespaces = subsystem_.namespaces;
      misunderstood_.clear();
      plan_identification();
      break;
    }
    case RequestKind::uuid_list:
      if (auto uuids = parse_uuid_list(bytes)) {
        identity_->uuids = std::move(*uuids);
      } else {
        count_garbage();
      }
      break;
    case RequestKind::endurance_group_list:
      if (auto groups = parse_endurance_group_list(bytes)) {
        identity_->endurance_groups = std::move(*groups);
      } else {
        count_garbage();
      }
      break;
    case RequestKind::identify_namespace:
      for (model::NvmeNamespace& entry : identity_->namespaces) {
        if (entry.nsid == step.nsid && !parse_identify_namespace(bytes, entry)) {
          count_garbage();
        }
      }
      break;
    case RequestKind::log_page:
      break;
  }
  finish_identification();
}

void DrivePoller::plan_identification() {
  if (has_uuid_list(*identity_)) {
    steps_.push_back({RequestKind::uuid_list});
  }
  if (has_endurance_group_list(*identity_) || has_attribute<kHasDataPlacement>(*identity_)) {
    steps_.push_back({RequestKind::endurance_group_list});
  }
  for (std::size_t i = 0; i < std::min(identity_->namespaces.size(), kMaxNamespaces); ++i) {
    steps_.push_back({RequestKind::identify_namespace, nullptr, 0, identity_->namespaces[i].nsid});
  }
}

void DrivePoller::finish_identification() {
  if (identified_ || identity_ == nullptr || !steps_.empty()) {
    return;
  }
  // A drive that does not list its groups may still report which one a namespace is in.
  for (const model::NvmeNamespace& entry : identity_->namespaces) {
    auto& groups = identity_->endurance_groups;
    if (entry.endurance_group != 0 && std::find(groups.begin(), groups.end(), entry.endurance_group) == groups.end()) {
      groups.push_back(entry.endurance_group);
    }
  }
  identified_ = true;
  plan_pages();
}

void DrivePoller::understand_page(const Step& step, const Response& response) {
  const Bytes bytes = response.content();
  auto content = step.page->decode(bytes, *identity_);
  std::string kind = bytes.size() < step.page->bytes ? "short" : "garbage";
  if (content) {
    drop_missing_sensors(*content);
    if (const auto impossible = find_impossible(*content)) {
      kind = "impossible";
      content = util::fail("its page " + std::string(step.page->name) + " cannot be true: " + *impossible);
      reading_.impossible = content.error().message;
    }
  }
  if (!content) {
    if (is_smart(*step.page)) {
      fail(kind, content.error().message);
      return;  // every drive has this page: a drive that is not ready yet is asked until it is
    }
    ++reading_.failures[kind];  // any drive may lack this page: the poll is as good as without it
    if (understood_.count(step.page) == 0 && ++misunderstood_[step.page] >= kTriesToUnderstand) {
      refused_->add_other(*identity_, *step.page, content.error().message);
    }
    reading_.not_understood[step.page] = content.error().message;
    return;
  }
  understood_.insert(step.page);
  refused_->understood(*identity_, *step.page);
  PageReading reading{step.page, step.endurance_group, std::chrono::nanoseconds(response.ended_ns),
                      std::move(*content)};
  if (step.again) {
    reading_.smart_again = std::move(reading);
  } else {
    reading_.pages.push_back(std::move(reading));
  }
}

void DrivePoller::refuse(const Step& step, unsigned status) {
  // Only SMART and Identify Controller are mandatory; that a drive has nothing else is not a failure of the poll.
  const bool for_good = (status & kDoNotRetry) != 0;
  ++reading_.failures[for_good ? "refused" : "error"];
  const bool mandatory = step.page != nullptr ? is_smart(*step.page) : step.kind == RequestKind::identify_controller;
  if (mandatory && reading_.reason.empty()) {
    reading_.reason = fmt::format("the drive refuses {} with status {:#06x}",
                                  step.page != nullptr ? step.page->name : "identify", status);
  } else if (step.page == nullptr || mandatory) {
    // Nothing is remembered about these.
  } else if ((status & kStatusCode) == kFdpDisabled && step.page->per_endurance_group) {
    refused_->add(*identity_, *step.page, step.endurance_group);
  } else if (for_good && std::count(kNoSuchPage.begin(), kNoSuchPage.end(), status & kStatusCode) != 0) {
    refused_->add_missing(*identity_, *step.page);
  } else if (for_good) {
    refused_->add(*identity_, *step.page);
  }
  if (step.kind == RequestKind::identify_controller) {
    steps_.clear();
  } else if (step.kind != RequestKind::log_page) {
    finish_identification();
  }
}

std::optional<DriveReading> DrivePoller::take() {
  if (busy_ || !finished_) {
    return std::nullopt;
  }
  finished_ = false;
  return std::move(reading_);
}

PolledDrive::PolledDrive(NvmeSubsystem subsystem, DriveLessons& lessons, SteadyTime first_poll,
                         std::chrono::nanoseconds stagger)
    : subsystem_(std::move(subsystem)),
      lessons_(lessons),
      poller_(subsystem_, lessons.refused),
      due_(first_poll),
      stagger_(stagger),
      watch_(lessons.backoff) {
  polling_.reason = "not read yet";
}

void PolledDrive::update(NvmeSubsystem subsystem) {
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
    if (const auto suppressed = lessons_.limiter.admit("silent " + name(), now)) {
      logged_up_ = false;
      log::warning("{} does not answer{}", field("controller", name()),
                   succeeded_at_ ? "; its figures are those of its last reading" : "",
                   field("suppressed", *suppressed));
    }
  }
}

bool PolledDrive::timed_out(SteadyTime now) const { return asked_at_ && now - *asked_at_ > kCommandTimeout; }

bool PolledDrive::can_be_asked() {
  if (!subsystem_.live()) {
    cannot_be_read("not_live", "controller state " + subsystem_.state);
    return false;
  }
  // Before we hear of a removal, the number may have been given to another drive.
  const util::OutsideText serial = controller_serial(subsystem_.controller, lessons_.sys_root);
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
    // Drives stay spread out over the interval; a drive that was late is not polled twice in a row.
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
    poller_ = DrivePoller(subsystem_, lessons_.refused);  // which identifies the drive again
  }
  ++polling_.polls;
  before_ = writes_of(subsystem_, block);
  watch_.poll_begins(latency_buckets_of(subsystem_, block), early);
  using Extent = DrivePoller::Extent;
  if (!identity_ || now - identified_at_ >= kMaxIdentifyInterval) {
    identified_at_ = now;
    poller_.begin(Extent::all);
  } else {
    const bool written = !before_.activity || before_.activity != at_media_.activity;
    const bool wanted = asked_for || written || counters_in_doubt_ || now - media_read_at_ >= kMaxMediaInterval;
    poller_.begin(wanted ? Extent::media : Extent::wear);
  }
  finish_poll(now, block);  // in case there is nothing to ask
}

void PolledDrive::sent(SteadyTime now) {
  asked_at_ = now;
  silence_noticed_ = false;
}

void PolledDrive::answer(const Response& response, SteadyTime now, BlockLayer& block) {
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
    log_state(now);
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
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  polling_.last_success_seconds = std::chrono::duration<double>(wall).count();
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
    if (page->lid == kSmartLid && !readings_.empty()) {
      readings_.back().percentage_used.reset();
    }
  }
}

void PolledDrive::doubt_page(const std::string& what, SteadyTime now) {
  polling_.doubted = what;
  if (const auto suppressed = lessons_.limiter.admit("doubt " + name(), now)) {
    log::warning("{} {}", field("controller", name()), what, field("suppressed", *suppressed));
  }
}

void PolledDrive::take_counters(const DriveReading& reading, const DriveWrites& after, SteadyTime now) {
  counters_in_doubt_ = false;
  const std::string identity = reading.identity->serial.raw() + '\n' + reading.identity->firmware.raw();
  if (std::exchange(units_of_, identity) != identity) {
    units_.clear();
  }
  SourceChoice choice = choose_source(reading, units_);
  units_ = choice.units;
  const PageReading* smart = reading.smart();
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

void PolledDrive::log_state(SteadyTime now) {
  if (const auto suppressed = lessons_.limiter.admit((polling_.up ? "up " : "down ") + name(), now)) {
    logged_up_ = polling_.up;
    if (polling_.up) {
      log::info("{} is read", field("controller", name()), field("suppressed", *suppressed));
    } else {
      log::warning("{} cannot be read: {}", field("controller", name()), polling_.reason,
                   field("suppressed", *suppressed));
    }
  }
}

/// How much older than due a figure may be.
std::chrono::nanoseconds PolledDrive::slack(SteadyTime now) const {
  const auto former = now < former_slack_until_ ? former_slack_ : 0ns;
  return std::max<std::chrono::nanoseconds>(kForgetAfterIntervals * pace(), former);
}

/// Figures that are too old count as unknown.
bool PolledDrive::known_now(SteadyTime now) const {
  const auto forgotten = std::max<std::chrono::nanoseconds>(slack(now), kForgetAfter);
  return identity_ && succeeded_at_ && now - *succeeded_at_ <= forgotten;
}

model::NvmeDrive PolledDrive::describe(SteadyTime now) const {
  model::NvmeDrive drive;
  drive.identity = identity_ ? with_namespaces(identity_, subsystem_) : identity_from_sysfs(subsystem_);
  drive.polling = polling_;
  drive.polling.interval_seconds = std::chrono::duration<double>(pace()).count();
  if (known_now(now)) {
    // The counters of a drive that is not written to stay right without being read.
    drive.values = values_.since(now - kMaxMediaInterval - slack(now));
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

}  // namespace ssdpulse::nvme
