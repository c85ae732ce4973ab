// SPDX-License-Identifier: Apache-2.0
#include "daemon/drives/page_values.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::drives {

void PageValues::take(const nvme::DriveReading& reading, const analysis::SettledUnits& units, Time now) {
  if (reading.identity && std::exchange(firmware_, reading.identity->firmware) != reading.identity->firmware) {
    pages_.clear();
  }
  std::map<const nvme::LogPage*, Page> read;
  for (const nvme::PageReading& entry : reading.pages) {
    Page& page = read[entry.page];
    page.read_at = now;
    const auto values = analysis::settled_values(entry, units);
    page.values.insert(page.values.end(), values.begin(), values.end());
  }
  for (auto& [page, values] : read) {
    pages_[page] = std::move(values);
  }
}

std::vector<model::NvmeValue> PageValues::since(Time oldest) const {
  std::vector<model::NvmeValue> values;
  for (const auto& [page, of_page] : pages_) {
    if (of_page.read_at >= oldest) {
      nvme::add_values(values, of_page.values);
    }
  }
  return values;
}

}  // namespace ssdpulse::drives
