// SPDX-License-Identifier: Apache-2.0
// Topic: what a comparison of two windows of the past is made from, read from the history: the same for `report` and
// for the page.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/compare/comparison.h"
#include "daemon/history/history_reader.h"

namespace ssdpulse::serve {

/// `before` absent: one window alone. `day`: how much before the first window is read, to know how much such windows
/// differ by chance. `settings`: all that changed in these times.
util::Result<compare::Question> read_question(history::Reader& history, const model::PastDevice& device,
                                              const std::optional<model::Window>& before, const model::Window& after,
                                              std::chrono::hours day,
                                              const std::vector<model::SettingChange>& settings);

/// Whether each window has anything to compare.
bool has_data(const compare::Question& question);

/// Those in the minutes of a window, or in the one after it.
template <typename Event>
std::vector<Event> within(const std::vector<Event>& events, const model::Window& window) {
  std::vector<Event> result;
  for (const Event& event : events) {
    const auto at = std::chrono::floor<std::chrono::minutes>(event.at);
    if (at >= window.from && at <= window.to) {
      result.push_back(event);
    }
  }
  return result;
}

}  // namespace ssdpulse::serve
