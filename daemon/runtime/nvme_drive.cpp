// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/nvme_drive.h"

#include <algorithm>
#include <utility>

#include "daemon/runtime/nvme_past.h"
#include "daemon/sources/nvme/source_choice.h"
#include "daemon/util/log.h"

namespace ssdpulse::runtime {
namespace {

using namespace std::chrono_literals;
using model::Operation;

constexpr auto kSilence = 5s;  // a drive that owes an answer this long is stale
constexpr auto kNear = 50ms;   // how long after a log read an I/O may suffer from it
constexpr auto kShortestInterval = 10s;
constexpr auto kMediaAtLeast = 1h;  // idle wear is slow
constexpr auto kIdentifyAtLeast = 1h;
constexpr int kForgetAfterIntervals = 5;
constexpr auto kForgetAfter = 2min;

/// A drive whose reads and writes take this much longer near log reads is asked less often.
constexpr double kBearableEffect = 2.0;
constexpr unsigned kMostPatience = 8;

/// Another source than the one so far is taken when it was the best so often in a row: a page may fail now and then.
constexpr unsigned kPollsToSwitch = 3;

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

const nvme::PageReading* find_smart(const nvme::DriveReading& reading) {
  const auto found = std::find_if(reading.pages.begin(), reading.pages.end(),
                                  [](const auto& entry) { return entry.page->lid == nvme::kSmartLid; });
  return found == reading.pages.end() ? nullptr : &*found;
}

std::optional<model::ByteCounter> smart_host(const nvme::PageReading* smart) {
  return smart != nullptr ? smart->content.writes.host : std::nullopt;
}

std::optional<double> quantile_between(const analysis::LatencyWords& before, const analysis::LatencyWords& after,
                                       double share) {
  const auto words = analysis::added(before, after);
  return words && analysis::count(*words) > 0
             ? std::optional(analysis::upper_bound_seconds(analysis::quantile_word(*words, share)))
             : std::nullopt;
}

double window_seconds(const std::string& name) {
  static const std::map<std::string, std::chrono::seconds> windows{
      {"5m", 5min}, {"1h", 1h}, {"24h", 24h}, {"7d", 168h}};
  const auto found = windows.find(name);
  return found == windows.end() ? 0 : static_cast<double>(found->second.count());
}

/// A window that ended before it began says nothing of now: the drive has not been written to for so long.
void forget_old(std::vector<model::WriteAmplificationRatio>& ratios, std::chrono::nanoseconds age) {
  ratios.erase(std::remove_if(ratios.begin(), ratios.end(),
                              [age](const auto& ratio) {
                                return ratio.window != "lifetime" &&
                                       std::chrono::duration<double>(age).count() >= window_seconds(ratio.window);
                              }),
               ratios.end());
}

/// Until the drive has said more.
std::shared_ptr<const model::NvmeIdentity> identity_from_sysfs(const nvme::NvmeSubsystem& subsystem) {
  model::NvmeIdentity identity;
  identity.controller = "nvme" + std::to_string(subsystem.controller);
  identity.subsystem_nqn = subsystem.nqn;
  identity.transport = subsystem.transport;
  identity.serial = subsystem.serial;
  identity.model = subsystem.model;
  identity.firmware = subsystem.firmware;
  identity.namespaces = subsystem.namespaces;
  return std::make_shared<const model::NvmeIdentity>(std::move(identity));
}

/// Namespaces come and go between two identifications of their drive: those that sysfs has now.
std::shared_ptr<const model::NvmeIdentity> with_namespaces(std::shared_ptr<const model::NvmeIdentity> identity,
                                                           const nvme::NvmeSubsystem& subsystem) {
  const auto same = [](const model::NvmeNamespace& a, const model::NvmeNamespace& b) {
    return a.device == b.device && a.nsid == b.nsid;
  };
  const auto& known = identity->namespaces;
  const auto& now = subsystem.namespaces;
  if (std::equal(known.begin(), known.end(), now.begin(), now.end(), same)) {
    return identity;
  }
  auto changed = std::make_shared<model::NvmeIdentity>(*identity);
  changed->namespaces = now;
  for (model::NvmeNamespace& entry : changed->namespaces) {
    for (const model::NvmeNamespace& old : known) {
      if (same(entry, old)) {
        entry.endurance_group = old.endurance_group;
      }
    }
  }
  return changed;
}

}  // namespace

NvmeDrive::NvmeDrive(nvme::NvmeSubsystem subsystem, nvme::RefusedPages& refused, SteadyTime first_poll,
                     std::chrono::nanoseconds place)
    : subsystem_(std::move(subsystem)),
      refused_(refused),
      poller_(subsystem_, refused),
      due_(first_poll),
      place_(place) {
  polling_.reason = "not read yet";
}

void NvmeDrive::update(nvme::NvmeSubsystem subsystem) {
  changed_ = changed_ || subsystem.controller != subsystem_.controller || subsystem.firmware != subsystem_.firmware ||
             subsystem.namespaces != subsystem_.namespaces;
  subsystem_ = std::move(subsystem);
}

std::optional<std::uint64_t> NvmeDrive::written_bytes(const ReadBlockLayer& block) const {
  std::uint64_t sum = 0;
  for (const model::NvmeNamespace& entry : subsystem_.namespaces) {
    const auto io = block(entry.device);
    if (!io) {
      return std::nullopt;
    }
    sum += io->operation(Operation::write).bytes;
  }
  return subsystem_.namespaces.empty() ? std::nullopt : std::optional(sum);
}

analysis::LatencyWords NvmeDrive::latency_words(const ReadBlockLayer& block) const {
  analysis::LatencyWords sum;
  for (const model::NvmeNamespace& entry : subsystem_.namespaces) {
    if (const auto io = block(entry.device)) {
      analysis::add(sum, analysis::device_time_words(*io, {Operation::read, Operation::write}));
    }
  }
  return sum;
}

void NvmeDrive::advance(SteadyTime now, std::chrono::nanoseconds interval, const ReadBlockLayer& block) {
  interval_ = interval;
  if (near_until_ && now >= *near_until_) {
    measure_effect(block);
  }
  if (asked_at_ && now - *asked_at_ > kSilence && polling_.up) {
    polling_.up = false;
    polling_.reason = "no answer to a command for more than 5 s";
    ++polling_.failures["timeout"];
    spdlog::warn("controller=nvme{} does not answer; its figures are those of its last reading", subsystem_.controller);
  }
  const bool early = soon_ && now < due_ && now - polled_at_ >= kShortestInterval * patience_;
  if ((now < due_ && !early) || poller_.busy() || near_until_) {
    return;
  }
  const bool wanted = std::exchange(soon_, false);
  if (early) {
    due_ = std::max(due_, now + kShortestInterval * patience_);
  } else {
    // Drives stay spread out over the interval; who was late is not asked twice in a row.
    const auto step = interval * patience_;
    due_ += step * ((now - due_) / step + 1) + std::exchange(place_, 0ns);
  }
  polled_at_ = now;
  if (!subsystem_.live()) {
    polling_.up = false;
    polling_.reason = "controller state " + subsystem_.state;
    ++polling_.failures["not_live"];
    return;
  }
  if (std::exchange(changed_, false)) {
    poller_ = nvme::DrivePoller(subsystem_, refused_);  // which identifies the drive anew
  }
  ++polling_.polls;
  written_before_ = written_bytes(block);
  words_before_ = latency_words(block);
  using Extent = nvme::DrivePoller::Extent;
  if (!identity_ || now - identified_at_ >= kIdentifyAtLeast) {
    identified_at_ = now;
    poller_.begin(Extent::all);
  } else {
    const bool written = wanted || !written_before_ || written_before_ != written_at_media_;
    poller_.begin(written || now - media_read_at_ >= kMediaAtLeast ? Extent::media : Extent::wear);
  }
}

void NvmeDrive::answer(const nvme::Response& response, const ReadBlockLayer& block) {
  asked_at_.reset();
  poller_.answer(response);
  finish_poll(block);
}

void NvmeDrive::finish_poll(const ReadBlockLayer& block) {
  const auto reading = poller_.take();
  if (!reading) {
    return;
  }
  const SteadyTime now = std::chrono::steady_clock::now();
  for (const auto& [kind, times] : reading->failures) {
    polling_.failures[kind] += times;
  }
  const bool was_up = polling_.up;
  polling_.up = reading->reason.empty();
  polling_.reason = reading->reason;
  if (was_up != polling_.up) {
    spdlog::log(polling_.up ? spdlog::level::info : spdlog::level::warn, "controller=nvme{} {}", subsystem_.controller,
                polling_.up ? "is read" : "cannot be read: " + polling_.reason);
  }
  near_until_ = now + kNear;
  if (reading->identity) {
    identity_ = reading->identity;
    polling_.refused_pages.assign(reading->refused_pages.begin(), reading->refused_pages.end());
  }
  if (!polling_.up) {
    return;
  }
  succeeded_at_ = now;
  polling_.last_success_seconds = seconds_since_epoch();
  polling_.last_duration_seconds = std::chrono::duration<double>(reading->spent).count();
  std::map<const nvme::LogPage*, std::vector<model::NvmeValue>> values;
  for (const nvme::PageReading& entry : reading->pages) {
    for (model::NvmeValue value : entry.content.values) {
      value.endurance_group = entry.endurance_group;
      values[entry.page].push_back(std::move(value));
    }
  }
  for (auto& [page, of_page] : values) {
    values_[page] = std::move(of_page);
  }
  account(*reading, written_bytes(block));
}

bool NvmeDrive::settle_source(const nvme::SourceChoice& choice) {
  if (choice.source != source_ && (source_.empty() || ++other_source_ >= kPollsToSwitch)) {
    spdlog::info("controller={} write amplification source={} reason=\"{}\"", identity_->controller,
                 choice.source.empty() ? "none" : choice.source, choice.reason);
    ledger_.reset();
    last_sample_.reset();
    waiting_.clear();
    source_ = choice.source;
  }
  if (choice.source != source_) {
    return false;
  }
  other_source_ = 0;
  reason_ = choice.reason;
  settled_unit_ = {source_, choice.media ? choice.media->unit_bytes : 0};
  return true;
}

void NvmeDrive::account(const nvme::DriveReading& reading, std::optional<std::uint64_t> written_after) {
  if (!reading.media_asked) {
    return;
  }
  media_read_at_ = std::chrono::steady_clock::now();
  written_at_media_ = written_before_;
  const nvme::SourceChoice choice = nvme::choose_source(reading, settled_unit_);
  if (!settle_source(choice)) {
    return;
  }
  analysis::WriteSample sample;
  sample.at = since_boot();
  sample.wall = std::chrono::system_clock::now();
  sample.serial = identity_->serial;
  sample.firmware = identity_->firmware;
  sample.host_before = choice.host_before;
  sample.media = choice.media;
  sample.host_after = choice.host_after;
  if (choice.source.empty()) {
    // The host's counter is worth keeping by itself: for its drift, and for the remaining life.
    sample.host_before = smart_host(find_smart(reading));
    sample.host_after = smart_host(reading.smart_again ? &*reading.smart_again : nullptr);
  }
  sample.counted_since_birth = choice.since_birth;
  sample.block_written_bytes_before = written_before_;
  sample.block_written_bytes_after = written_after;
  if (const auto* smart = find_smart(reading)) {
    sample.percentage_used = smart->content.percentage_used;
  }
  sample.endurance_estimate = choice.endurance_estimate;
  if (past_ == Past::known) {
    observe(sample);
  } else {
    waiting_.push_back(std::move(sample));
  }
}

void NvmeDrive::observe(const analysis::WriteSample& sample) {
  if (!ledger_) {
    ledger_ = ledger_of_the_past(std::exchange(recalled_, {}), source_, interval_);
  }
  ledger_->observe(sample);
  last_sample_ = sample;
}

std::optional<history::DriveKey> NvmeDrive::asks_for_history() {
  if (past_ != Past::unasked || !identity_) {
    return std::nullopt;
  }
  past_ = Past::asked;
  return history::DriveKey{identity_->serial, identity_->model, identity_->firmware};
}

void NvmeDrive::remember(const util::Result<history::Recalled>& recalled) {
  if (recalled) {
    recalled_ = *recalled;
  } else {
    spdlog::warn("controller=nvme{} begins without its past: {}", subsystem_.controller, recalled.error().message);
  }
  past_ = Past::known;
  for (const analysis::WriteSample& sample : std::exchange(waiting_, {})) {
    observe(sample);
  }
}

void NvmeDrive::add_minute(history::Batch& batch, const ReadBlockLayer& block) {
  const MinuteBegin begin = std::exchange(minute_begin_, read_minute(block));
  if (!identity_ || !succeeded_at_) {
    return;
  }
  history::DriveMinute row;
  row.drive = {identity_->serial, identity_->model, identity_->firmware};
  row.minute = std::chrono::floor<std::chrono::minutes>(std::chrono::system_clock::now());
  row.boottime = since_boot();
  if (last_sample_) {
    row.boottime = last_sample_->at;
    row.source = source_;
    row.writes = {last_sample_->host_after, last_sample_->media};
    if (last_sample_->host_before && last_sample_->host_before->count != last_sample_->host_after->count) {
      row.host_count_before = last_sample_->host_before->count;
    }
  }
  row.percentage_used = value_of(model::NvmeField::percentage_used_ratio);
  row.available_spare = value_of(model::NvmeField::available_spare_ratio);
  row.temperature_celsius = value_of(model::NvmeField::temperature_celsius);
  row.read_p50_seconds = quantile_between(begin.reads, minute_begin_.reads, 0.5);
  row.read_p99_seconds = quantile_between(begin.reads, minute_begin_.reads, 0.99);
  row.write_p50_seconds = quantile_between(begin.writes, minute_begin_.writes, 0.5);
  row.write_p99_seconds = quantile_between(begin.writes, minute_begin_.writes, 0.99);
  row.discard_bytes = minute_begin_.discarded_bytes - std::min(begin.discarded_bytes, minute_begin_.discarded_bytes);
  if (ledger_) {
    batch.states.push_back({row.drive, kept_ledger(source_, *ledger_)});
  }
  batch.minutes.push_back(std::move(row));
}

NvmeDrive::MinuteBegin NvmeDrive::read_minute(const ReadBlockLayer& block) const {
  MinuteBegin now;
  for (const model::NvmeNamespace& entry : subsystem_.namespaces) {
    if (const auto io = block(entry.device)) {
      analysis::add(now.reads, analysis::device_time_words(*io, {Operation::read}));
      analysis::add(now.writes, analysis::device_time_words(*io, {Operation::write}));
      now.discarded_bytes += io->operation(Operation::discard).bytes;
    }
  }
  return now;
}

std::optional<double> NvmeDrive::value_of(model::NvmeField field) const {
  for (const auto& [page, values] : values_) {
    for (const model::NvmeValue& value : values) {
      if (value.field == field) {
        return value.value;
      }
    }
  }
  return std::nullopt;
}

void NvmeDrive::measure_effect(const ReadBlockLayer& block) {
  near_until_.reset();
  const analysis::LatencyWords words = latency_words(block);
  if (const auto near = analysis::added(words_before_, words)) {
    effect_.add_near(*near);
  }
  if (const auto all = analysis::added(words_counted_, words)) {
    effect_.add_all(*all);
  }
  words_counted_ = words;
  polling_.read_effect_ratio = effect_.ratio();
  if (polling_.read_effect_ratio && *polling_.read_effect_ratio > kBearableEffect && patience_ < kMostPatience) {
    patience_ *= 2;
    effect_ = {};
    spdlog::warn(
        "controller=nvme{} model=\"{}\" reads and writes take {:.1f} times as long near log reads: it is asked {} "
        "times less often",
        subsystem_.controller, identity_ ? identity_->model : "", *polling_.read_effect_ratio, patience_);
  }
}

model::NvmeDrive NvmeDrive::describe(SteadyTime now) const {
  model::NvmeDrive drive;
  drive.identity = identity_ ? with_namespaces(identity_, subsystem_) : identity_from_sysfs(subsystem_);
  drive.polling = polling_;
  drive.polling.interval_seconds = std::chrono::duration<double>(interval_ * patience_).count();
  // Old figures are no figures; counters of a drive that is not written to need not be read to be right.
  const auto forgotten =
      std::max<std::chrono::nanoseconds>(kForgetAfterIntervals * interval_ * patience_, kForgetAfter);
  if (!succeeded_at_ || now - *succeeded_at_ > forgotten) {
    return drive;
  }
  for (const auto& [page, values] : values_) {
    nvme::add_values(drive.values, values);
  }
  if (ledger_) {
    drive.write_amplification = ledger_->amplification();
    forget_old(drive.write_amplification.ratios, since_boot() - last_sample_->at);
  }
  drive.write_amplification.source = source_;
  drive.write_amplification.reason = reason_;
  if (media_read_at_ != SteadyTime{}) {
    drive.write_amplification.read_at = media_read_at_;
    drive.write_amplification.unit_bytes = settled_unit_.bytes;
  }
  drive.polling.read_at = succeeded_at_;
  return drive;
}

}  // namespace ssdpulse::runtime
