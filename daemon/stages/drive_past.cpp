// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/drive_past.h"

#include <cmath>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

namespace ssdpulse::stages {
namespace {

using namespace std::chrono_literals;

analysis::WriteSample sample_of(const history::DriveMinute& minute, std::chrono::nanoseconds at) {
  analysis::WriteSample sample;
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
std::map<std::string, std::vector<analysis::WriteSample>> samples_of(const history::Recalled& recalled,
                                                                     std::chrono::nanoseconds until, const Tick& now) {
  std::map<std::string, std::vector<analysis::WriteSample>> samples;
  std::map<std::string, std::chrono::nanoseconds> last;
  for (const history::DriveMinute& minute : recalled.minutes) {
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
std::map<std::string, analysis::CheckedLedger> kept_ledgers(const history::Bytes& bytes,
                                                            std::chrono::nanoseconds interval, const Tick& now,
                                                            std::vector<log::Line>& said) {
  constexpr std::size_t kMaxSources = 32;  // more than a drive could ever have had
  std::map<std::string, analysis::CheckedLedger> ledgers;
  std::istringstream lines(std::string(bytes.begin(), bytes.end()));
  std::string source;
  std::string text;
  while (ledgers.size() < kMaxSources && std::getline(lines, source) && std::getline(lines, text)) {
    auto ledger = analysis::CheckedLedger::restore(text, interval, now.boot, now.wall);
    if (ledger) {
      ledgers.emplace(source, std::move(*ledger));
    } else {
      said.push_back(log::line(log::Level::warning, "the stored state of a drive's counters is unusable: {}",
                               ledger.error().message));
    }
  }
  return ledgers;
}

}  // namespace

void add_kept_ledger(history::Bytes& bytes, const std::string& source, const analysis::CheckedLedger& ledger) {
  const std::string text = source + '\n' + ledger.save() + '\n';
  bytes.insert(bytes.end(), text.begin(), text.end());
}

std::map<std::string, analysis::CheckedLedger> ledgers_of_the_past(const history::Recalled& recalled,
                                                                   std::chrono::nanoseconds interval,
                                                                   std::chrono::nanoseconds until, const Tick& now,
                                                                   std::vector<log::Line>& lines) {
  std::map<std::string, analysis::CheckedLedger> ledgers;
  if (recalled.state) {
    ledgers = kept_ledgers(recalled.state->bytes, interval, now, lines);
  }
  for (const auto& [source, samples] : samples_of(recalled, until, now)) {
    const auto [entry, is_new] = ledgers.try_emplace(source, interval);
    for (const analysis::WriteSample& sample : samples) {
      is_new ? entry->second.observe(sample) : entry->second.remember(sample);
    }
  }
  return ledgers;
}

}  // namespace ssdpulse::stages
