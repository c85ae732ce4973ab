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

struct Worst {
  std::size_t slot;
  const PastDay::Worst& spike;
};

constexpr Field<Worst> kWorstFields[] = {
    {"slot",
     {.name = "integer", .limits = R"("minimum": 0, "maximum": 95)"},
     [](const Worst& worst) { return worst.slot; }},
    {"begin", kNumber, [](const Worst& worst) { return seconds_of(worst.spike.begin); }},
    {"seconds", kSeconds, [](const Worst& worst) { return worst.spike.duration_seconds; }},
    {"operation", kText, [](const Worst& worst) { return util::for_json(worst.spike.operation); }},
    {"cause", kText, [](const Worst& worst) { return util::for_json(worst.spike.cause); }},
    {"peak_seconds", kNumber, [](const Worst& worst) { return worst.spike.peak_seconds; }},
    {"excess_seconds", kNumber, [](const Worst& worst) { return worst.spike.excess_seconds; }},
};
constexpr Object<Worst> kWorst{"day_worst", "", kWorstFields};

Json worst_of(const PastDay::Device& device) {
  Json all = Json::array();
  for (std::size_t i = 0; i < device.slots.size(); ++i) {
    if (const auto& worst = device.slots.at(i).worst) {
      all.push_back(kWorst({i, *worst}));
    }
  }
  return all;
}

constexpr Field<model::SparseHistogram> kFigureFields[] = {
    {"ios", kCount, [](const model::SparseHistogram& total) { return total.count(); }},
    {"p50", or_null(kSeconds), [](const model::SparseHistogram& total) { return quantile_of(total, 0.5); }},
    {"p99", or_null(kSeconds), [](const model::SparseHistogram& total) { return quantile_of(total, 0.99); }},
    {"p999", or_null(kSeconds), [](const model::SparseHistogram& total) { return quantile_of(total, 0.999); }},
};
constexpr Object<model::SparseHistogram> kFigures{
    "day_figures", "Of total latency; quantiles are upper bounds of buckets, null without I/Os.", kFigureFields};

constexpr Field<PastDay::Device> kHourFields[] = {
    {"measured_seconds", kSeconds,
     [](const PastDay::Device& device) { return static_cast<double>(device.hour_measured_ms) / 1000; }},
    {"read", defined_as("day_figures"), [](const PastDay::Device& device) { return kFigures(device.hour_reads); }},
    {"write", defined_as("day_figures"), [](const PastDay::Device& device) { return kFigures(device.hour_writes); }},
};
constexpr Object<PastDay::Device> kHour{"day_hour", "", kHourFields};

constexpr Field<PastDay::Device> kDayDeviceFields[] = {
    {"name", kText, [](const PastDay::Device& device) { return util::for_json(device.name); }},
    {"measured_minutes", list_of(kCount, PastDay::kSlots),
     [](const PastDay::Device& device) {
       return by_slot(device, [](const PastDay::Slot& slot) { return slot.measured_minutes; });
     },
     "Of each slot; 0: nothing was recorded."},
    {"spikes", list_of(kCount, PastDay::kSlots),
     [](const PastDay::Device& device) {
       return by_slot(device, [](const PastDay::Slot& slot) { return slot.spikes; });
     },
     "That touch the slot, as the next."},
    {"bursts", list_of(kCount, PastDay::kSlots),
     [](const PastDay::Device& device) {
       return by_slot(device, [](const PastDay::Slot& slot) { return slot.bursts; });
     }},
    {"worst", list_of(defined_as("day_worst")), [](const PastDay::Device& device) { return worst_of(device); },
     "Of each slot with spikes the one by which most was waited."},
    {"spikes_in_all", kCount, [](const PastDay::Device& device) { return device.spikes; },
     "Each once, however many slots it touches."},
    {"bursts_in_all", kCount, [](const PastDay::Device& device) { return device.bursts; }},
    {"hour", or_null(defined_as("day_hour")),
     [](const PastDay::Device& device) { return device.hour_measured_ms == 0 ? Json() : kHour(device); },
     "null: nothing was recorded."},
};
constexpr Object<PastDay::Device> kDayDevice{"day_device", "", kDayDeviceFields};

constexpr Field<model::Window> kDayWindowFields[] = {
    {"from", kNumber, [](const model::Window& window) { return seconds_of(window.from); }},
    {"to", kNumber, [](const model::Window& window) { return seconds_of(window.to); }},
};
constexpr Object<model::Window> kWindow{"day_window", "", kDayWindowFields};

/// The time before which nothing is kept.
Json oldest(const model::PastReach& reach) {
  if (!reach.minutes && !reach.hours) {
    return {};
  }
  return seconds_of(
      std::min(reach.minutes.value_or(model::PastTime::max()), reach.hours.value_or(model::PastTime::max())));
}

struct Day {
  const PastDay* past;  // null: nothing is known
  std::string_view reason;
};

constexpr Field<Day> kDayFields[] = {
    {"reason", or_null(kText),
     [](const Day& day) {
       return day.past == nullptr ? Json(util::for_json(day.reason, util::kLongestSentence)) : Json();
     },
     "Why nothing is known; null: it is."},
    {"day", or_null(defined_as("day_window")),
     [](const Day& day) { return day.past ? kWindow(day.past->window) : Json(); }, "The last slot is not over."},
    {"hour", or_null(defined_as("day_window")),
     [](const Day& day) { return day.past ? kWindow(day.past->hour) : Json(); }},
    {"slot_seconds",
     {.name = "integer", .limits = R"("const": 900)"},
     [](const Day&) { return std::chrono::seconds(PastDay::kSlot).count(); }},
    {"oldest", or_null(kNumber), [](const Day& day) { return day.past ? oldest(day.past->reach) : Json(); },
     "Before it nothing is kept."},
    {"devices", list_of(defined_as("day_device")),
     [](const Day& day) { return day.past ? kDayDevice.list(day.past->devices) : Json::array(); },
     "Those that were there in the day; of a name, the device that had it last."},
};
constexpr Object<Day> kDay{"day",
                           "/api/v1/day: by the history, the last 24 hours of every device in slots, and its last 60 "
                           "whole minutes. Made once a "
                           "minute, with an ETag. A spike is here once it is over.",
                           kDayFields};

}  // namespace

Definitions day_definitions() { return {kWorst, kFigures, kHour, kDayDevice, kWindow, kDay}; }

Json day_json(const model::PastDay* past, std::string_view reason) { return kDay({past, reason}); }

}  // namespace ssdpulse::page
