// SPDX-License-Identifier: Apache-2.0
// What is saved of one drive's model, besides the model itself: whose it is, and what was known when it was saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/analysis/flash_model/collection_watch.h"
#include "daemon/analysis/flash_model/flash_model.h"
#include "daemon/analysis/flash_model/policy_fit.h"
#include "daemon/util/result.h"

namespace ssdpulse::flash {

struct DriveState {
  std::string key;  // FlashDrive::key
  analysis::FlashModelSettings settings;
  analysis::PolicyFit::Ranges fit = analysis::PolicyFit().ranges();
  analysis::CollectionWatch::State collection;
  double fitted_at = 0;  // when it was last fitted; seconds since the epoch, like the next
  double kept_at = 0;
  std::optional<double> host_written_bytes;  // by the drive's own counter
  // Since that was read, if it was not read again since an earlier state:
  std::uint64_t seen_bytes = 0;  // written
  double absence = 0;            // seconds without observation
  std::string model;             // FlashModel::save()
};

std::string bytes_of(const DriveState& state);

/// The bytes are not trusted: an error says what is wrong with them.
util::Result<DriveState> read_state(std::string_view bytes, const std::string& key);

}  // namespace ssdpulse::flash
