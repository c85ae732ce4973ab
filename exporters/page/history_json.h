// SPDX-License-Identifier: Apache-2.0
// What the history answers, as JSON: see api.schema.json. Values in, text out; who read them does not matter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/past.h"

namespace ssdpulse::page {

struct HistoryWish {
  std::string heat;            // read, write, flush, discard or commit: with a column of a heatmap for each point
  bool tenant_totals = false;  // tenants of the whole window instead of each point
};

/// One device in a window: points as arrays by field, of which all are as long.
std::string history_json(const model::Series& series, const HistoryWish& wish = {});

/// The seconds around spikes, as the history keeps them, within a window.
std::string past_seconds_json(const std::string& device, const std::vector<std::vector<std::uint8_t>>& blobs,
                              const model::Window& window, const std::string& heat);

/// Whether it is one of those.
bool is_heat(const std::string& name);

/// The minutes of a device with their histograms, for whoever computes from them. One after the other: only
/// their text is held.
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
                              const std::vector<model::SettingChange>& settings, const std::vector<model::Mark>& marks);

/// Whether a text of a person can be kept: 1 to 128 characters of UTF-8, none that controls or turns what follows.
bool is_printable(const std::string& text);

}  // namespace ssdpulse::page
