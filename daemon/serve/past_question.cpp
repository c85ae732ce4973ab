// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/past_question.h"

#include <utility>

namespace ssdpulse::serve {
namespace {

util::Result<compare::Side> side_of(history::Reader& history, const model::PastDevice& device,
                                    const model::Window& window) {
  auto minutes = history.minutes(device, window);
  if (!minutes) {
    return tl::make_unexpected(minutes.error());
  }
  auto series = history.series(device, window);
  if (!series) {
    return tl::make_unexpected(series.error());
  }
  return compare::Side{window, std::move(*minutes), std::move(series->wear)};
}

}  // namespace

util::Result<compare::Question> read_question(history::Reader& history, const model::PastDevice& device,
                                              const std::optional<model::Window>& before, const model::Window& after,
                                              std::chrono::hours day,
                                              const std::vector<model::SettingChange>& settings) {
  compare::Question question{
      .device = device, .before = {}, .after = {}, .day = {}, .between = {}, .settings = {}, .marks = {}};
  auto after_side = side_of(history, device, after);
  if (!after_side) {
    return tl::make_unexpected(after_side.error());
  }
  question.after = std::move(*after_side);
  if (!before) {
    return question;
  }
  auto before_side = side_of(history, device, *before);
  auto between = history.minutes(device, {before->to, after.from});
  if (!before_side || !between) {
    return tl::make_unexpected(!before_side ? before_side.error() : between.error());
  }
  auto last_day = history.minutes(device, {before->from - day, before->from});
  if (!last_day) {
    return tl::make_unexpected(last_day.error());
  }
  question.before = std::move(*before_side);
  question.between = std::move(*between);
  question.day = std::move(*last_day);
  for (const auto& change : within(settings, {before->from, after.to})) {
    if (change.before && (change.device.empty() || change.identity == device.identity)) {
      question.settings.push_back(change);
    }
  }
  return question;
}

bool has_data(const compare::Question& question) {
  return !question.after.minutes.empty() && (!question.before || !question.before->minutes.empty());
}

}  // namespace ssdpulse::serve
