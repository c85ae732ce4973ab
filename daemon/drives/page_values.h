// SPDX-License-Identifier: Apache-2.0
// PageValues: what a drive's pages contained when each was last read. Values of a page that is no longer read expire
// after a while, and at once with new firmware.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/analysis/write_amplification/source_choice.h"
#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/drive_poller.h"

namespace ssdpulse::drives {

class PageValues {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void take(const nvme::DriveReading& reading, const analysis::SettledUnits& units, Time now);

  /// Values of the pages that were read since then; each series once.
  [[nodiscard]] std::vector<model::NvmeValue> since(Time oldest) const;

 private:
  struct Page {
    Time read_at;
    std::vector<model::NvmeValue> values;
  };
  std::map<const nvme::LogPage*, Page> pages_;  // in the order of log_pages()
  std::string firmware_;
};

}  // namespace ssdpulse::drives
