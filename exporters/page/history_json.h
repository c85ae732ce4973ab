// SPDX-License-Identifier: Apache-2.0
// history_json() and others: the answers of the history as JSON, see api.schema.json. Values in, text out, wherever the
// values come from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/history_answers.h"

namespace ssdpulse::page {

struct HistoryWish {
  std::string heat;            // read, write, flush, discard or commit: adds a heatmap column for each point
  bool tenant_totals = false;  // tenants for the whole window instead of for each point
};

/// One device in a window: points as arrays by field, all of the same length.
std::string history_json(const model::Series& series, const HistoryWish& wish = {});

/// The seconds around spikes, as the history keeps them, within a window.
std::string past_seconds_json(const std::string& device, const std::vector<std::vector<std::uint8_t>>& blobs,
                              const model::Window& window, const std::string& heat);

/// Whether HistoryWish::heat may have this name.
bool is_heat(const std::string& name);

/// The minutes of a device with their histograms, for clients that compute from them. Added one by one: only their text
/// is kept.
class MinutesJson {
 public:
  void add(const model::MinuteOf& minute);
  std::string take();

 private:
  std::string text_ = R"({"minutes":[)";
  bool any_ = false;
};

/// Which devices there are, and what happened in a window.
std::string history_list_json(const std::vector<model::PastDevice>& devices,
                              const std::vector<model::SettingChange>& settings, const std::vector<model::Mark>& marks,
                              std::uint64_t devices_left_out = 0);

/// Whether a person's text can be kept: 1 to 128 characters of UTF-8, none of them a control or direction character.
bool is_printable(const std::string& text);

}  // namespace ssdpulse::page
