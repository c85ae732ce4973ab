// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/nvme_past.h"

#include <time.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/util/log.h"

namespace ssdpulse::runtime {
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

/// The readings of this source that the minutes hold, on today's clock. A drive that was not asked has the same reading
/// in many minutes.
std::vector<analysis::WriteSample> samples_of(const history::Recalled& recalled, const std::string& source) {
  const auto boot = since_boot();
  const auto now = std::chrono::system_clock::now();
  std::vector<analysis::WriteSample> samples;
  std::optional<std::chrono::nanoseconds> last;
  for (const history::DriveMinute& minute : recalled.minutes) {
    if (minute.source != source || minute.boottime == last) {
      continue;
    }
    last = minute.boottime;
    const std::chrono::nanoseconds by_wall = boot - (now - minute.minute);
    // The same boot's clock is exact; of another boot, the wall clock's minute is all there is.
    const bool this_boot = minute.boottime <= boot && std::chrono::abs(by_wall - minute.boottime) <= 2min;
    samples.push_back(sample_of(minute, this_boot ? minute.boottime : by_wall));
  }
  return samples;
}

}  // namespace

std::chrono::nanoseconds since_boot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

history::Bytes kept_ledger(const std::string& source, const analysis::WriteLedger& ledger) {
  const std::string text = source + '\n' + ledger.save();
  return {text.begin(), text.end()};
}

analysis::WriteLedger ledger_of_the_past(const history::Recalled& recalled, const std::string& source,
                                         std::chrono::nanoseconds interval) {
  const auto samples = samples_of(recalled, source);
  const std::string head = source + '\n';
  if (recalled.state) {
    const std::string text(recalled.state->bytes.begin(), recalled.state->bytes.end());
    if (text.compare(0, head.size(), head) == 0) {
      auto ledger = analysis::WriteLedger::restore(text.substr(head.size()), interval, since_boot(),
                                                   std::chrono::system_clock::now());
      if (ledger) {
        for (const analysis::WriteSample& sample : samples) {
          ledger->remember(sample);
        }
        return std::move(*ledger);
      }
      spdlog::warn("the kept state of a drive's counters is not used: {}", ledger.error().message);
    }
  }
  analysis::WriteLedger ledger(interval);
  for (const analysis::WriteSample& sample : samples) {
    ledger.observe(sample);
  }
  return ledger;
}

}  // namespace ssdpulse::runtime
