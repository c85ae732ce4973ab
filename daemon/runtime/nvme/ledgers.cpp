// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/nvme/ledgers.h"

#include <algorithm>
#include <array>

#include "daemon/util/log.h"

namespace ssdpulse::runtime {
namespace {

/// Another source than the one so far is taken when it was the best so often in a row: a page may fail now and then.
constexpr unsigned kReadingsToSwitch = 3;

constexpr std::size_t kMostWaiting = 1024;

analysis::WriteSample sample_of(const nvme::DriveReading& reading, const nvme::SourceChoice& choice,
                                const DriveWrites& before, const DriveWrites& after) {
  const nvme::PageReading* smart = reading.smart();
  analysis::WriteSample sample;
  const auto read_at = choice.at.count() != 0 || smart == nullptr ? choice.at : smart->at;
  sample.at = boot_time(std::chrono::steady_clock::time_point(read_at));
  sample.wall = std::chrono::system_clock::now();
  sample.serial = reading.identity->serial;
  sample.firmware = reading.identity->firmware;
  sample.host_before = choice.host_before;
  sample.media = choice.media;
  sample.host_after = choice.host_after;
  if (choice.source.empty()) {
    // The host's counter is worth keeping by itself: for its drift, and for the remaining life.
    sample.host_before = reading.host_before_media();
    sample.host_after = reading.host_after_media();
  }
  sample.counted_since_birth = choice.since_birth;
  sample.block_written_bytes_before = before.bytes;
  sample.block_written_bytes_after = after.bytes;
  sample.block_losses_before = before.losses;
  sample.block_losses_after = after.losses;
  sample.block_largest_request_bytes = after.largest_request_bytes;
  if (smart != nullptr) {
    sample.percentage_used = smart->content.percentage_used;
  }
  sample.endurance_estimate = choice.endurance_estimate;
  return sample;
}

/// A window that ended before it began says nothing of now: the drive has not been written to for so long.
void forget_old(std::vector<model::WriteAmplificationRatio>& ratios, std::chrono::nanoseconds age) {
  const auto& named = analysis::RatioWindows::kNamed;
  std::erase_if(ratios, [&](const model::WriteAmplificationRatio& ratio) {
    const auto width =
        std::find_if(named.begin(), named.end(), [&](const auto& one) { return ratio.window == one.name; });
    return width != named.end() && age >= width->width;
  });
}

}  // namespace

bool DriveLedgers::settle_source(const nvme::SourceChoice& choice, const std::string& controller) {
  const bool other = !chosen_ || choice.source != source_;
  if (other && (!chosen_ || source_.empty() || ++other_source_ >= kReadingsToSwitch)) {
    log::info("controller={} write amplification source={} reason=\"{}\"", controller,
              choice.source.empty() ? "none" : choice.source, choice.reason);
    source_ = choice.source;
    chosen_ = true;
  }
  if (choice.source != source_) {
    return false;
  }
  other_source_ = 0;
  reason_ = choice.reason;
  return true;
}

void DriveLedgers::observe(const nvme::DriveReading& reading, const DriveWrites& before, const DriveWrites& after,
                           Time interval) {
  const std::string identity = reading.identity->serial + '\n' + reading.identity->firmware;
  if (std::exchange(identity_, identity) != identity) {
    units_.clear();
  }
  const nvme::SourceChoice choice = nvme::choose_source(reading, units_);
  units_ = choice.units;
  if (!settle_source(choice, reading.identity->controller)) {
    return;
  }
  Counters& counters = by_source_.try_emplace(source_, analysis::WriteLedger(interval)).first->second;
  counters.ledger.set_poll_interval(interval);
  for (const analysis::WriteSample& sample : counters.gate.admit(sample_of(reading, choice, before, after))) {
    counters.ledger.observe(sample);
    counters.last = sample;
    if (!knows_past_) {
      remember_for_recall(sample);
    }
  }
}

bool DriveLedgers::in_doubt() const {
  const auto counters = by_source_.find(source_);
  return counters != by_source_.end() && counters->second.gate.holds();
}

std::string DriveLedgers::reason() const {
  const auto counters = by_source_.find(source_);
  if (source_.empty() || counters == by_source_.end()) {
    return reason_;
  }
  const bool host = counters->second.ledger.host_staleness().stuck;
  const bool media = counters->second.ledger.media_staleness().stuck;
  if (!host && !media) {
    return reason_;
  }
  const std::string which = host && media ? "counters do" : host ? "host counter does" : "media counter does";
  return (reason_ == nvme::kBestOffered ? "" : reason_ + "; ") + source_ + ": its " + which +
         " not move though the drive is written to";
}

/// Counters that only grow say the same by fewer readings, less finely.
void DriveLedgers::remember_for_recall(const analysis::WriteSample& sample) {
  waiting_.emplace_back(source_, sample);
  if (waiting_.size() > kMostWaiting) {
    std::size_t place = 0;
    std::erase_if(waiting_, [&](const auto& /*entry*/) { return ++place % 2 == 0; });
  }
}

void DriveLedgers::recall(const history::Recalled& recalled, Time interval) {
  const auto waiting = std::exchange(waiting_, {});
  const Time until = waiting.empty() ? boot_time(std::chrono::steady_clock::now()) : waiting.front().second.at;
  for (auto& [source, ledger] : ledgers_of_the_past(recalled, interval, until)) {
    Counters& counters = by_source_.try_emplace(source, analysis::WriteLedger(interval)).first->second;
    counters.ledger = std::move(ledger);
    for (const auto& entry : waiting) {
      if (entry.first == source) {
        counters.ledger.observe(entry.second);
      }
    }
  }
  knows_past_ = true;
}

model::WriteAmplification DriveLedgers::amplification(Time at) const {
  model::WriteAmplification said;
  if (const auto counters = by_source_.find(source_); counters != by_source_.end() && counters->second.last) {
    said = counters->second.ledger.amplification();
    forget_old(said.ratios, at - counters->second.last->at);
  }
  return said;
}

void DriveLedgers::fill(history::DriveMinute& row) const {
  row.boottime = boot_time(std::chrono::steady_clock::now());
  const auto counters = by_source_.find(source_);
  if (counters == by_source_.end() || !counters->second.last) {
    return;
  }
  const analysis::WriteSample& last = *counters->second.last;
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

}  // namespace ssdpulse::runtime
