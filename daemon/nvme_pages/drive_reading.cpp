// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme_pages/drive_reading.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "daemon/base/number_text.h"
#include "daemon/nvme_pages/page_fields.h"

namespace ssdpulse::nvme {

using model::ByteCounter;

const PageReading* DriveReading::smart() const {
  const auto found =
      std::find_if(pages.begin(), pages.end(), [](const PageReading& entry) { return entry.page->lid == kSmartLid; });
  return found == pages.end() ? nullptr : &*found;
}

std::optional<ByteCounter> DriveReading::host_before_media() const {
  const PageReading* page = smart();
  return page != nullptr ? page->content.writes.host : std::nullopt;
}

std::optional<ByteCounter> DriveReading::host_after_media() const {
  return smart_again ? smart_again->content.writes.host : std::nullopt;
}

namespace {

constexpr double kMaxLifeSeconds = 3.2e9;    // a hundred years
constexpr double kMaxBytesPerSecond = 64e9;  // more than four lanes of PCI Express 7 carry
constexpr double kMaxEventsPerSecond = 1e9;
constexpr double kMaxConcurrentOperations = 1e4;  // operations whose times are summed
constexpr double kMinCelsius = -100;
constexpr double kMaxCelsius = 200;

struct Range {
  double lowest;
  double highest;
};

Range possible_range(model::NvmeField field) {
  switch (field) {
    case F::available_spare_ratio:
    case F::available_spare_threshold_ratio:
    case F::endurance_group_available_spare_ratio:
    case F::endurance_group_available_spare_threshold_ratio:
      return {0, 1};
    case F::power_cycles:
      return {0, kMaxLifeSeconds};
    case F::volume_io_seconds:
    case F::controller_busy_seconds:
      return {0, kMaxConcurrentOperations * kMaxLifeSeconds};
    default:
      break;
  }
  const model::NvmeFieldDescription& description = model::kNvmeFieldDescriptions.at(static_cast<std::size_t>(field));
  if (description.unit == "celsius") {
    return {kMinCelsius, kMaxCelsius};
  }
  if (description.unit == "ratio") {
    return {0, kMaxEventsPerSecond};
  }
  if (description.counter && description.unit == "seconds") {
    return {0, kMaxLifeSeconds};
  }
  return {0, kMaxLifeSeconds * (description.unit == "bytes" ? kMaxBytesPerSecond : kMaxEventsPerSecond)};
}

bool within(double value, const Range& range) { return value >= range.lowest && value <= range.highest; }

/// A counter whose unit is not stated counts at least bytes.
bool within(const std::optional<ByteCounter>& counter) {
  return !counter ||
         static_cast<double>(counter->count) * static_cast<double>(std::max<std::uint64_t>(1, counter->unit_bytes)) <=
             kMaxLifeSeconds * kMaxBytesPerSecond;
}

bool is_sensor(const model::NvmeValue& value) {
  return value.field == F::temperature_celsius && value.label != "composite";
}

}  // namespace

std::string series_name(const model::NvmeValue& value) {
  const auto& description = model::kNvmeFieldDescriptions.at(static_cast<std::size_t>(value.field));
  return std::string(description.metric) + (value.label.empty() ? "" : " (" + value.label + ")");
}

void drop_missing_sensors(PageContent& content) {
  std::erase_if(content.values, [](const model::NvmeValue& value) {
    return is_sensor(value) && !within(value.value, possible_range(value.field));
  });
}

std::optional<std::string> find_impossible(const PageContent& content) {
  const auto found = std::find_if(content.values.begin(), content.values.end(), [](const model::NvmeValue& value) {
    return !is_sensor(value) && !within(value.value, possible_range(value.field));
  });
  if (found != content.values.end()) {
    return series_name(*found) + " would be " + util::number_text(found->value);
  }
  std::size_t warnings = 0;
  std::size_t raised = 0;
  for (const model::NvmeValue& value : content.values) {
    warnings += value.field == F::critical_warning ? 1 : 0;
    raised += value.field == F::critical_warning && value.value > 0 ? 1 : 0;
  }
  if (warnings > 0 && raised == warnings) {
    return "it would warn of everything at once";
  }
  for (const auto& counter : {content.writes.host, content.writes.media}) {
    if (!within(counter)) {
      return "more would be written than in a hundred years";
    }
  }
  return std::nullopt;
}

namespace {

constexpr std::uint64_t kDataUnit = 512'000;
constexpr std::uint64_t kBillion = 1'000'000'000;
constexpr auto kUnits = std::to_array<std::uint64_t>(
    {1, 512, 4096, kDataUnit, 1'000'000, 1U << 20U, 32U << 20U, kBillion, std::uint64_t{1} << 30U});

/// Media writes from the factory and from a young drive are not representative.
constexpr model::Uint128 kMinDataUnits = 100'000;
constexpr double kMinAmplification = 0.3;
constexpr double kMaxAmplification = 1000;

/// Bytes by one counter divided by bytes by the other, with each off by up to one unit.
struct Agreement {
  double lower;
  double upper;
};

Agreement compare(model::Uint128 count, std::uint64_t unit, model::Uint128 data_units) {
  const double units_ratio = static_cast<double>(unit) / static_cast<double>(kDataUnit);
  const auto counted = static_cast<double>(count);
  const auto reference = static_cast<double>(data_units);
  return {.lower = (counted - 1) / (reference + 1) * units_ratio,
          .upper = (counted + 1) / (reference - 1) * units_ratio};
}

/// The only unit that can agree within the tolerance, if it certainly does; 0 if another could as well.
std::uint64_t only_unit(std::span<const std::uint64_t> units, model::Uint128 count, model::Uint128 data_units,
                        double tolerance) {
  std::uint64_t fitting = 0;
  bool certain = false;
  for (const auto unit : units) {
    const auto [lower, upper] = compare(count, unit, data_units);
    if (upper < 1 - tolerance || lower > 1 + tolerance) {
      continue;
    }
    if (fitting != 0) {
      return 0;
    }
    fitting = unit;
    certain = lower >= 1 - tolerance && upper <= 1 + tolerance;
  }
  return certain ? fitting : 0;
}

std::uint64_t fitting_unit(std::span<const std::uint64_t> units, model::Uint128 count, model::Uint128 data_units) {
  if (count == 0 || data_units <= 1) {
    return 0;
  }
  const auto near = only_unit(units, count, data_units, 0.01);
  return near != 0 ? near : only_unit(units, count, data_units, 0.1);
}

}  // namespace

std::uint64_t unit_of_host_counter(model::Uint128 host_count, model::Uint128 data_units_written) {
  return fitting_unit(kUnits, host_count, data_units_written);
}

std::uint64_t unit_of_media_counter(model::Uint128 media_count, model::Uint128 data_units_written) {
  if (data_units_written < kMinDataUnits) {
    return 0;
  }
  for (const std::uint64_t unit : {std::uint64_t{1}, kDataUnit}) {
    const double amplification = static_cast<double>(media_count) * static_cast<double>(unit) /
                                 (static_cast<double>(data_units_written) * static_cast<double>(kDataUnit));
    if (amplification >= kMinAmplification && amplification <= kMaxAmplification) {
      return unit;
    }
  }
  return 0;
}

std::uint64_t unit_of_endurance_groups(model::Uint128 group_data_units, model::Uint128 data_units_written) {
  static constexpr auto kGroupUnits = std::to_array<std::uint64_t>({kBillion, kDataUnit});
  return fitting_unit(kGroupUnits, group_data_units, data_units_written);
}

namespace {

constexpr std::uint8_t kEnduranceGroupLid = 0x09;
constexpr std::uint8_t kFdpStatisticsLid = 0x22;  // cleared when an administrator sets the feature

/// The content of one page over all endurance groups that have it: the counters of all those groups together are the
/// drive's; those of only some of them mean nothing.
std::optional<PageContent> content_of(const DriveReading& reading, const LogPage& page) {
  std::optional<PageContent> content;
  std::size_t answered = 0;
  for (const PageReading& entry : reading.pages) {
    if (entry.page != &page) {
      continue;
    }
    ++answered;
    if (!content) {
      content = entry.content;
    } else {
      content->writes.host = sum_counters(content->writes.host, entry.content.writes.host);
      content->writes.media = sum_counters(content->writes.media, entry.content.writes.media);
      content->endurance_estimate = sum_counters(content->endurance_estimate, entry.content.endurance_estimate);
    }
  }
  const auto asked = reading.asked.find(&page);
  return asked != reading.asked.end() && answered == asked->second ? content : std::nullopt;
}

/// A sum of `parts` counters that were each rounded up hides as many units as there are parts. It is expressed in units
/// coarser by that factor, because a counter's doubt is one unit. The true value is within one such unit of the result.
/// A saturated counter stays saturated. (No page of endurance groups rounds in another way.)
std::optional<ByteCounter> in_coarser_units(std::optional<ByteCounter> sum, std::size_t parts) {
  if (sum && sum->rounding == model::Rounding::up && parts > 1 && sum->count != ~model::Uint128{0}) {
    sum->count /= parts;
    sum->unit_bytes *= parts;
    sum->rounding = model::Rounding::unknown;
  }
  return sum;
}

std::chrono::nanoseconds read_at(const DriveReading& reading, const LogPage& page) {
  std::chrono::nanoseconds at{};
  for (const PageReading& entry : reading.pages) {
    at = entry.page == &page ? std::max(at, entry.at) : at;
  }
  return at;
}

bool may_misstate_unit(const LogPage& page) { return page.lid == kEnduranceGroupLid; }

/// The unit of a page's counters if its vendor does not state it, or may state it wrongly; 0: not known.
std::uint64_t find_unit(const LogPage& page, const model::WriteCounters& writes,
                        const std::optional<ByteCounter>& smart) {
  if (!smart) {
    return 0;
  }
  if (may_misstate_unit(page)) {
    return writes.host ? unit_of_endurance_groups(writes.host->count, smart->count) : 0;
  }
  if (writes.host) {
    return unit_of_host_counter(writes.host->count, smart->count);
  }
  return page.media_in_bytes_or_data_units ? unit_of_media_counter(writes.media->count, smart->count) : 0;
}

/// Settles the unit of this page's counters if that is possible now.
void settle_unit(const LogPage& page, const model::WriteCounters& writes, const std::optional<ByteCounter>& smart,
                 SettledUnits& units) {
  const bool stated = writes.media && writes.media->unit_bytes != 0 && !may_misstate_unit(page);
  if (!writes.media || stated || units.count(page.source) != 0) {
    return;
  }
  if (const std::uint64_t unit = find_unit(page, writes, smart); unit != 0) {
    units.emplace(page.source, unit);
  }
}

std::uint64_t unit_of(const LogPage& page, const ByteCounter& media, const SettledUnits& units) {
  const auto settled = units.find(page.source);
  if (settled != units.end()) {
    return settled->second;
  }
  return may_misstate_unit(page) ? 0 : media.unit_bytes;
}

/// Fills in the choice from this page; otherwise returns why the page cannot be used.
std::string use_page(const LogPage& page, const PageContent& content, const DriveReading& reading,
                     SourceChoice& choice) {
  if (!content.writes.media) {
    return "counts no media writes";
  }
  model::WriteCounters writes = content.writes;
  const std::size_t parts = reading.asked.at(&page);
  writes.media->unit_bytes = unit_of(page, *writes.media, choice.units);
  if (writes.host) {
    if (may_misstate_unit(page) && writes.media->unit_bytes == 0) {
      return "its host counter contradicts SMART";
    }
    writes.host->unit_bytes = writes.media->unit_bytes;
    choice.host_before = choice.host_after = in_coarser_units(writes.host, parts);
  } else if (writes.media->unit_bytes == 0) {
    return "its unit is not settled";
  } else if (reading.host_before_media() && reading.host_after_media()) {
    choice.host_before = reading.host_before_media();
    choice.host_after = reading.host_after_media();
  } else {
    return "there is no host counter to go with it";
  }
  choice.media = in_coarser_units(writes.media, parts);
  choice.at = read_at(reading, page);
  choice.source = page.source;
  choice.since_birth = page.lid != kFdpStatisticsLid;
  choice.endurance_estimate = content.endurance_estimate;
  if (choice.endurance_estimate && may_misstate_unit(page)) {
    choice.endurance_estimate->unit_bytes = writes.media->unit_bytes;
  }
  return {};
}

std::string why_not_read(const DriveReading& reading, const LogPage& page) {
  if (const auto refused = reading.refused_pages.find(page.name); refused != reading.refused_pages.end()) {
    return refused->second;
  }
  if (const auto other = reading.not_understood.find(&page); other != reading.not_understood.end()) {
    return other->second;
  }
  const bool some = std::any_of(reading.pages.begin(), reading.pages.end(),
                                [&](const PageReading& entry) { return entry.page == &page; });
  return some ? "not read of all endurance groups" : "not read";
}

/// A page that some groups do not have describes the others: no reason to reject it, but worth mentioning.
std::string not_of_all_groups(const DriveReading& reading, const LogPage& page) {
  const std::size_t asked = reading.asked.at(&page);
  const std::size_t all = reading.identity->endurance_groups.size();
  return asked == all ? "" : "of " + std::to_string(asked) + " of " + std::to_string(all) + " endurance groups";
}

}  // namespace

SourceChoice choose_source(const DriveReading& reading, const SettledUnits& settled) {
  SourceChoice choice;
  choice.units = settled;
  if (!reading.identity) {
    choice.reason = "the drive did not identify itself";
    return choice;
  }
  for (const LogPage& page : log_pages()) {
    if (page.source.empty() || !page.offered(*reading.identity)) {
      continue;  // there is nothing to say about other vendors' pages
    }
    const auto content = content_of(reading, page);
    if (content) {
      settle_unit(page, content->writes, reading.host_before_media(), choice.units);
    }
    if (!choice.source.empty()) {
      continue;
    }
    std::string why = content ? use_page(page, *content, reading, choice) : why_not_read(reading, page);
    if (why.empty() && page.per_endurance_group) {
      why = not_of_all_groups(reading, page);
    }
    if (!why.empty()) {
      choice.reason += (choice.reason.empty() ? "" : "; ") + std::string(page.source) + ": " + why;
    }
  }
  if (choice.reason.empty()) {
    choice.reason = choice.source.empty() ? "the drive offers no page that counts media writes" : kBestOffered;
  }
  return choice;
}

std::vector<model::NvmeValue> settled_values(const PageReading& entry, const SettledUnits& units) {
  constexpr double kStatedUnit = 1e9;
  constexpr std::array kInThatUnit{F::endurance_group_endurance_estimate_bytes, F::endurance_group_read_bytes,
                                   F::endurance_group_written_bytes, F::endurance_group_media_written_bytes};
  std::vector<model::NvmeValue> values;
  for (model::NvmeValue value : entry.content.values) {
    value.endurance_group = entry.endurance_group;
    if (may_misstate_unit(*entry.page) &&
        std::find(kInThatUnit.begin(), kInThatUnit.end(), value.field) != kInThatUnit.end()) {
      const auto unit = units.find(entry.page->source);
      if (unit == units.end()) {
        continue;
      }
      value.value *= static_cast<double>(unit->second) / kStatedUnit;
    }
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace ssdpulse::nvme
