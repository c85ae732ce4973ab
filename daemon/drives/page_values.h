// SPDX-License-Identifier: Apache-2.0
// PageValues: what a drive's pages contained when each was last read and accepted. Values of a page that is no longer
// read expire after a while, and at once with new firmware.
// A page whose values no drive can have reached since the last one (a counter that falls or leaps, a temperature that
// jumps) waits for the next reading: only if that goes on from it, it is accepted. Until then the page keeps its
// values.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/analysis/write_amplification/source_choice.h"
#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/drive_poller.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::drives {

class PageValues {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Pages of the reading that wait for the next one: why, in words.
  using Waiting = std::map<const nvme::LogPage*, std::string>;
  Waiting take(const nvme::DriveReading& reading, const analysis::SettledUnits& units, Time now);

  /// Values of the pages that were read since then; each series once.
  [[nodiscard]] std::vector<model::NvmeValue> since(Time oldest) const;

 private:
  struct Page {
    Time read_at;
    std::vector<model::NvmeValue> values;
  };
  struct PageState {
    std::optional<Page> accepted;
    std::optional<Page> waiting;
    unsigned waited = 0;  // readings in a row
  };
  static std::optional<std::string> accept(PageState& kept, Page page);

  std::map<const nvme::LogPage*, PageState> pages_;  // in the order of log_pages()
  util::OutsideText firmware_;
};

}  // namespace ssdpulse::drives
