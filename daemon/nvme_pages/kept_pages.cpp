// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme_pages/kept_pages.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ssdpulse::nvme {
namespace {

/// A drive that lies could claim to be of another kind at each identification.
constexpr std::size_t kMaxUnderstoodPages = 4096;

constexpr const char* kRefused = "refused";

auto key_of(const model::NvmeIdentity& identity, const LogPage& page) {
  return std::tuple(identity.vendor_id, identity.model, identity.firmware, page.name);
}

auto key_of(const model::NvmeIdentity& identity, const LogPage& page, std::uint16_t endurance_group) {
  return std::tuple(identity.subsystem_nqn, identity.serial, identity.firmware, endurance_group, page.name);
}

}  // namespace

void RefusedPages::add_missing(const model::NvmeIdentity& identity, const LogPage& page) {
  if (understood_.count(key_of(identity, page)) == 0) {
    missing_.insert(key_of(identity, page));
  } else {
    add(identity, page);
  }
}

void RefusedPages::add(const model::NvmeIdentity& identity, const LogPage& page, std::uint16_t endurance_group) {
  of_group_.emplace(key_of(identity, page, endurance_group), kRefused);
}

void RefusedPages::add_other(const model::NvmeIdentity& identity, const LogPage& page, std::string what) {
  of_group_.emplace(key_of(identity, page, kWholeDrive), std::move(what));
}

void RefusedPages::understood(const model::NvmeIdentity& identity, const LogPage& page) {
  if (understood_.size() < kMaxUnderstoodPages) {
    understood_.insert(key_of(identity, page));
  }
  missing_.erase(key_of(identity, page));  // reported by a faulty drive that was asked first
}

bool RefusedPages::contains(const model::NvmeIdentity& identity, const LogPage& page) const {
  return missing_.count(key_of(identity, page)) != 0 || contains(identity, page, kWholeDrive);
}

bool RefusedPages::contains(const model::NvmeIdentity& identity, const LogPage& page,
                            std::uint16_t endurance_group) const {
  return of_group_.count(key_of(identity, page, endurance_group)) != 0;
}

std::string RefusedPages::reason(const model::NvmeIdentity& identity, const LogPage& page) const {
  const auto known = of_group_.find(key_of(identity, page, kWholeDrive));
  return known == of_group_.end() ? kRefused : known->second;
}

void RefusedPages::forget() {
  missing_.clear();
  of_group_.clear();
}

namespace {

using Values = std::vector<model::NvmeValue>;

/// A drive whose counters fall in every reading has counters of that kind.
constexpr unsigned kFallsToAccept = 3;

const model::NvmeFieldDescription& description_of(const model::NvmeValue& value) {
  return model::kNvmeFieldDescriptions.at(static_cast<std::size_t>(value.field));
}

/// More than any drive counts in that time, and on top what a counter that is updated only now and then may add.
double growth_limit(const model::NvmeValue& value, std::chrono::nanoseconds time) {
  constexpr double kMaxUnitBytes = 2e9;
  constexpr double kMaxDelaySeconds = 86400;
  constexpr double kMaxConcurrentOperations = 1e4;  // operations whose times are summed
  constexpr double kMaxEventsPerSecond = 1e9;
  const double seconds = std::ceil(std::chrono::duration<double>(time).count()) + 1;
  const std::string_view unit = description_of(value).unit;
  if (value.field == model::NvmeField::power_cycles || value.field == model::NvmeField::unsafe_shutdowns) {
    return seconds;
  }
  if (unit == "bytes") {
    return static_cast<double>(model::most_bytes_in(time)) + kMaxUnitBytes;
  }
  return unit == "seconds" ? kMaxConcurrentOperations * seconds + kMaxDelaySeconds : kMaxEventsPerSecond * seconds;
}

/// How far a gauge moves at most from one reading to the next; absent: any way.
std::optional<double> step_limit(const model::NvmeValue& value) {
  switch (value.field) {
    case model::NvmeField::temperature_celsius:
      return value.label == "composite" ? std::optional(60.0) : std::nullopt;
    case model::NvmeField::available_spare_ratio:
    case model::NvmeField::available_spare_threshold_ratio:
    case model::NvmeField::percentage_used_ratio:
      return 0.2;
    default:
      return std::nullopt;
  }
}

struct Objection {
  std::string text;
  bool only_falls = false;
};

/// Why one page cannot follow the other, the leaps first; nothing if it can.
std::optional<Objection> objection(const Values& before, const Values& after, std::chrono::nanoseconds time) {
  constexpr int kMaxNewWarnings = 2;
  std::optional<Objection> fall;
  int warnings = 0;
  for (const model::NvmeValue& now : after) {
    const auto was = std::find_if(before.begin(), before.end(),
                                  [&](const model::NvmeValue& value) { return model::same_series(value, now); });
    if (was == before.end()) {
      continue;
    }
    const double growth = now.value - was->value;
    warnings += now.field == model::NvmeField::critical_warning && growth > 0 ? 1 : 0;
    const auto step = step_limit(now);
    if (warnings > kMaxNewWarnings || (step && std::abs(growth) > *step) ||
        (description_of(now).counter && growth > growth_limit(now, time))) {
      return Objection{series_name(now) + (warnings > kMaxNewWarnings ? " came with several others" : " jumped")};
    }
    if (description_of(now).counter && growth < 0 && !fall) {
      fall = Objection{series_name(now) + " fell", true};
    }
  }
  return fall;
}

}  // namespace

std::optional<std::string> PageValues::accept(PageState& kept, Page page) {
  const auto follows = [&](const Page& other) {
    return objection(other.values, page.values, page.read_at - other.read_at);
  };
  const auto doubt = kept.accepted ? follows(*kept.accepted) : std::nullopt;
  const bool confirmed = kept.waiting && !follows(*kept.waiting);
  if (!doubt || confirmed || (doubt->only_falls && kept.waited + 1 >= kFallsToAccept)) {
    kept = {std::move(page), std::nullopt, 0};
    return std::nullopt;
  }
  kept.waiting = std::move(page);
  ++kept.waited;
  return doubt->text;
}

PageValues::Waiting PageValues::take(const DriveReading& reading, const SettledUnits& units, Time now) {
  if (reading.identity && std::exchange(firmware_, reading.identity->firmware) != reading.identity->firmware) {
    pages_.clear();
  }
  std::map<const LogPage*, Page> read;
  for (const PageReading& entry : reading.pages) {
    Page& page = read[entry.page];
    page.read_at = now;
    const auto values = settled_values(entry, units);
    page.values.insert(page.values.end(), values.begin(), values.end());
  }
  Waiting waiting;
  for (auto& [page, values] : read) {
    if (auto why = accept(pages_[page], std::move(values))) {
      waiting.emplace(page, std::move(*why));
    }
  }
  return waiting;
}

std::vector<model::NvmeValue> PageValues::since(Time oldest) const {
  std::vector<model::NvmeValue> values;
  for (const auto& [page, kept] : pages_) {
    if (kept.accepted && kept.accepted->read_at >= oldest) {
      add_values(values, kept.accepted->values);
    }
  }
  return values;
}

}  // namespace ssdpulse::nvme
