// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/source_choice.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/sources/nvme/unit_calibration.h"

namespace ssdpulse::nvme {
namespace {

using model::ByteCounter;

constexpr std::uint8_t kEnduranceGroupLid = 0x09;
constexpr std::uint8_t kFdpStatisticsLid = 0x22;  // cleared when an administrator sets the feature

/// Counters of several endurance groups are one drive's.
std::optional<ByteCounter> sum(std::optional<ByteCounter> left, const std::optional<ByteCounter>& right) {
  if (!left || !right || left->unit_bytes != right->unit_bytes) {
    return std::nullopt;
  }
  left->count += right->count;
  return left;
}

/// What one page said, of all endurance groups.
std::optional<PageContent> content_of(const DriveReading& reading, const LogPage& page) {
  std::optional<PageContent> content;
  for (const PageReading& entry : reading.pages) {
    if (entry.page != &page) {
      continue;
    }
    if (!content) {
      content = entry.content;
    } else {
      content->writes.host = sum(content->writes.host, entry.content.writes.host);
      content->writes.media = sum(content->writes.media, entry.content.writes.media);
      content->endurance_estimate = sum(content->endurance_estimate, entry.content.endurance_estimate);
    }
  }
  return content;
}

const PageReading* find_smart(const DriveReading& reading) {
  const auto found = std::find_if(reading.pages.begin(), reading.pages.end(),
                                  [](const PageReading& entry) { return entry.page->lid == kSmartLid; });
  return found == reading.pages.end() ? nullptr : &*found;
}

/// Data units (512000 bytes) that SMART says were written; nothing where it does not say.
std::optional<ByteCounter> smart_host(const PageReading* smart) {
  return smart != nullptr ? smart->content.writes.host : std::nullopt;
}

/// The unit of a page's counters where its vendor does not say it, or may say it wrongly; 0: not known.
std::uint64_t settle_unit(const LogPage& page, const model::WriteCounters& writes,
                          const std::optional<ByteCounter>& smart, std::uint64_t settled) {
  const std::uint64_t stated = writes.media->unit_bytes;
  const bool groups = page.lid == kEnduranceGroupLid;
  if (stated != 0 && !groups) {
    return stated;
  }
  if (settled != 0 || !smart) {
    return settled != 0 ? settled : stated;
  }
  if (groups) {
    return writes.host ? unit_of_endurance_groups(writes.host->count, smart->count) : 0;
  }
  if (writes.host) {
    return unit_of_host_counter(writes.host->count, smart->count);
  }
  return page.media_in_bytes_or_data_units ? unit_of_media_counter(writes.media->count, smart->count) : 0;
}

/// Fills in the choice from this page; otherwise says why it is none.
std::string take(const LogPage& page, const PageContent& content, const DriveReading& reading, std::uint64_t settled,
                 SourceChoice& choice) {
  if (!content.writes.media) {
    return "counts no media writes";
  }
  const auto smart = smart_host(find_smart(reading));
  const auto smart_again = smart_host(reading.smart_again ? &*reading.smart_again : nullptr);
  model::WriteCounters writes = content.writes;
  writes.media->unit_bytes = settle_unit(page, writes, smart, settled);
  if (writes.host) {
    if (page.lid == kEnduranceGroupLid && writes.media->unit_bytes == 0) {
      return "its host counter contradicts SMART";
    }
    writes.host->unit_bytes = writes.media->unit_bytes;
    choice.host_before = choice.host_after = writes.host;
  } else if (writes.media->unit_bytes == 0) {
    return "its unit is not settled";
  } else if (smart && smart_again) {
    choice.host_before = smart;
    choice.host_after = smart_again;
  } else {
    return "there is no host counter to go with it";
  }
  choice.media = writes.media;
  choice.source = page.source;
  choice.since_birth = page.lid != kFdpStatisticsLid;
  choice.endurance_estimate = content.endurance_estimate;
  return {};
}

}  // namespace

SourceChoice choose_source(const DriveReading& reading, const SettledUnit& settled) {
  SourceChoice choice;
  if (!reading.identity) {
    choice.reason = "the drive did not identify itself";
    return choice;
  }
  for (const LogPage& page : log_pages()) {
    if (page.source.empty()) {
      continue;
    }
    std::string why;
    if (!page.offered(*reading.identity)) {
      continue;  // of other vendors' pages there is nothing to say
    }
    if (const auto content = content_of(reading, page)) {
      why = take(page, *content, reading, page.source == settled.source ? settled.bytes : 0, choice);
      if (why.empty()) {
        break;
      }
    } else {
      const bool refused = std::find(reading.refused_pages.begin(), reading.refused_pages.end(), page.name) !=
                           reading.refused_pages.end();
      why = refused ? "refused" : "not read";
    }
    choice.reason += (choice.reason.empty() ? "" : "; ") + std::string(page.source) + ": " + why;
  }
  if (choice.reason.empty()) {
    choice.reason = choice.source.empty() ? "the drive offers no page that counts media writes" : "the best it offers";
  }
  return choice;
}

}  // namespace ssdpulse::nvme
