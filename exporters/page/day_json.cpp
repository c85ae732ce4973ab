// SPDX-License-Identifier: Apache-2.0
// The last day of every device in slots, and its last hour in figures.
#include <algorithm>

#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

using model::PastDay;

template <typename Value>
Json by_slot(const PastDay::Device& device, Value value) {
  Json all = Json::array();
  for (const PastDay::Slot& slot : device.slots) {
    all.push_back(value(slot));
  }
  return all;
}

Json worst_of(const PastDay::Device& device) {
  Json all = Json::array();
  for (std::size_t i = 0; i < device.slots.size(); ++i) {
    if (const auto& worst = device.slots.at(i).worst) {
      all.push_back({{"slot", i},
                     {"begin", seconds_of(worst->begin)},
                     {"seconds", worst->duration_seconds},
                     {"operation", util::for_json(worst->operation)},
                     {"cause", util::for_json(worst->cause)},
                     {"peak_seconds", worst->peak_seconds},
                     {"excess_seconds", worst->excess_seconds}});
    }
  }
  return all;
}

Json figures_of(const model::SparseHistogram& total) {
  return {{"ios", total.count()},
          {"p50", quantile_of(total, 0.5)},
          {"p99", quantile_of(total, 0.99)},
          {"p999", quantile_of(total, 0.999)}};
}

Json hour_of(const PastDay::Device& device) {
  if (device.hour_measured_ms == 0) {
    return {};
  }
  return {{"measured_seconds", static_cast<double>(device.hour_measured_ms) / 1000},
          {"read", figures_of(device.hour_reads)},
          {"write", figures_of(device.hour_writes)}};
}

Json device_json(const PastDay::Device& device) {
  return {{"name", util::for_json(device.name)},
          {"measured_minutes", by_slot(device, [](const PastDay::Slot& slot) { return slot.measured_minutes; })},
          {"spikes", by_slot(device, [](const PastDay::Slot& slot) { return slot.spikes; })},
          {"bursts", by_slot(device, [](const PastDay::Slot& slot) { return slot.bursts; })},
          {"worst", worst_of(device)},
          {"spikes_in_all", device.spikes},
          {"bursts_in_all", device.bursts},
          {"hour", hour_of(device)}};
}

Json window_json(const model::Window& window) {
  return {{"from", seconds_of(window.from)}, {"to", seconds_of(window.to)}};
}

/// The time before which nothing is kept.
Json oldest(const model::PastReach& reach) {
  if (!reach.minutes && !reach.hours) {
    return {};
  }
  return seconds_of(
      std::min(reach.minutes.value_or(model::PastTime::max()), reach.hours.value_or(model::PastTime::max())));
}

}  // namespace

Json day_json(const model::PastDay* past, std::string_view reason) {
  Json answer{{"reason", past == nullptr ? Json(util::for_json(reason, util::kLongestSentence)) : Json()},
              {"day", Json()},
              {"hour", Json()},
              {"slot_seconds", std::chrono::seconds(PastDay::kSlot).count()},
              {"oldest", Json()},
              {"devices", Json::array()}};
  if (past == nullptr) {
    return answer;
  }
  answer["day"] = window_json(past->window);
  answer["hour"] = window_json(past->hour);
  answer["oldest"] = oldest(past->reach);
  for (const PastDay::Device& device : past->devices) {
    answer["devices"].push_back(device_json(device));
  }
  return answer;
}

}  // namespace ssdpulse::page
