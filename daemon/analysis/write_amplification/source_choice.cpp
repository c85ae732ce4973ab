// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/write_amplification/source_choice.h"

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/analysis/write_amplification/unit_calibration.h"
#include "daemon/sources/nvme/pages/fields.h"

namespace ssdpulse::analysis {
namespace {

using model::ByteCounter;

constexpr std::uint8_t kEnduranceGroupLid = 0x09;
constexpr std::uint8_t kFdpStatisticsLid = 0x22;  // cleared when an administrator sets the feature

/// The content of one page over all endurance groups that have it: the counters of all those groups together are the
/// drive's; those of only some of them mean nothing.
std::optional<nvme::PageContent> content_of(const nvme::DriveReading& reading, const nvme::LogPage& page) {
  std::optional<nvme::PageContent> content;
  std::size_t answered = 0;
  for (const nvme::PageReading& entry : reading.pages) {
    if (entry.page != &page) {
      continue;
    }
    ++answered;
    if (!content) {
      content = entry.content;
    } else {
      content->writes.host = nvme::sum_counters(content->writes.host, entry.content.writes.host);
      content->writes.media = nvme::sum_counters(content->writes.media, entry.content.writes.media);
      content->endurance_estimate = nvme::sum_counters(content->endurance_estimate, entry.content.endurance_estimate);
    }
  }
  const auto asked = reading.asked.find(&page);
  return asked != reading.asked.end() && answered == asked->second ? content : std::nullopt;
}

/// A sum of `parts` counters that were each rounded up hides as many units as there are parts. It is expressed in units
/// coarser by that factor, because a counter's doubt is one unit. The true value is within one such unit of the result.
/// A saturated counter stays saturated. (No page of endurance groups rounds in another way.)
std::optional<ByteCounter> reported_coarsely(std::optional<ByteCounter> sum, std::size_t parts) {
  if (sum && sum->rounding == model::Rounding::up && parts > 1 && sum->count != ~model::Uint128{0}) {
    sum->count /= parts;
    sum->unit_bytes *= parts;
    sum->rounding = model::Rounding::unknown;
  }
  return sum;
}

std::chrono::nanoseconds read_at(const nvme::DriveReading& reading, const nvme::LogPage& page) {
  std::chrono::nanoseconds at{};
  for (const nvme::PageReading& entry : reading.pages) {
    at = entry.page == &page ? std::max(at, entry.at) : at;
  }
  return at;
}

bool may_misstate_unit(const nvme::LogPage& page) { return page.lid == kEnduranceGroupLid; }

/// The unit of a page's counters if its vendor does not state it, or may state it wrongly; 0: not known.
std::uint64_t find_unit(const nvme::LogPage& page, const model::WriteCounters& writes,
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
void settle_unit(const nvme::LogPage& page, const model::WriteCounters& writes, const std::optional<ByteCounter>& smart,
                 SettledUnits& units) {
  const bool stated = writes.media && writes.media->unit_bytes != 0 && !may_misstate_unit(page);
  if (!writes.media || stated || units.count(page.source) != 0) {
    return;
  }
  if (const std::uint64_t unit = find_unit(page, writes, smart); unit != 0) {
    units.emplace(page.source, unit);
  }
}

std::uint64_t unit_of(const nvme::LogPage& page, const ByteCounter& media, const SettledUnits& units) {
  const auto settled = units.find(page.source);
  if (settled != units.end()) {
    return settled->second;
  }
  return may_misstate_unit(page) ? 0 : media.unit_bytes;
}

/// Fills in the choice from this page; otherwise returns why the page cannot be used.
std::string take(const nvme::LogPage& page, const nvme::PageContent& content, const nvme::DriveReading& reading,
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
    choice.host_before = choice.host_after = reported_coarsely(writes.host, parts);
  } else if (writes.media->unit_bytes == 0) {
    return "its unit is not settled";
  } else if (reading.host_before_media() && reading.host_after_media()) {
    choice.host_before = reading.host_before_media();
    choice.host_after = reading.host_after_media();
  } else {
    return "there is no host counter to go with it";
  }
  choice.media = reported_coarsely(writes.media, parts);
  choice.at = read_at(reading, page);
  choice.source = page.source;
  choice.since_birth = page.lid != kFdpStatisticsLid;
  choice.endurance_estimate = content.endurance_estimate;
  if (choice.endurance_estimate && may_misstate_unit(page)) {
    choice.endurance_estimate->unit_bytes = writes.media->unit_bytes;
  }
  return {};
}

std::string why_not_read(const nvme::DriveReading& reading, const nvme::LogPage& page) {
  if (const auto refused = reading.refused_pages.find(page.name); refused != reading.refused_pages.end()) {
    return refused->second;
  }
  if (const auto other = reading.not_understood.find(&page); other != reading.not_understood.end()) {
    return other->second;
  }
  const bool some = std::any_of(reading.pages.begin(), reading.pages.end(),
                                [&](const nvme::PageReading& entry) { return entry.page == &page; });
  return some ? "not read of all endurance groups" : "not read";
}

/// A page that some groups do not have describes the others: no reason to reject it, but worth mentioning.
std::string not_of_all_groups(const nvme::DriveReading& reading, const nvme::LogPage& page) {
  const std::size_t asked = reading.asked.at(&page);
  const std::size_t all = reading.identity->endurance_groups.size();
  return asked == all ? "" : "of " + std::to_string(asked) + " of " + std::to_string(all) + " endurance groups";
}

}  // namespace

SourceChoice choose_source(const nvme::DriveReading& reading, const SettledUnits& settled) {
  SourceChoice choice;
  choice.units = settled;
  if (!reading.identity) {
    choice.reason = "the drive did not identify itself";
    return choice;
  }
  for (const nvme::LogPage& page : nvme::log_pages()) {
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
    std::string why = content ? take(page, *content, reading, choice) : why_not_read(reading, page);
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

std::vector<model::NvmeValue> settled_values(const nvme::PageReading& entry, const SettledUnits& units) {
  constexpr double kStatedUnit = 1e9;
  constexpr std::array kInThatUnit{nvme::F::endurance_group_endurance_estimate_bytes,
                                   nvme::F::endurance_group_read_bytes, nvme::F::endurance_group_written_bytes,
                                   nvme::F::endurance_group_media_written_bytes};
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

}  // namespace ssdpulse::analysis
