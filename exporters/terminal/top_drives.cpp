// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "daemon/base/number_text.h"
#include "exporters/terminal/top_screen.h"
#include "exporters/terminal/top_table.h"
#include "exporters/terminal/top_words.h"

namespace ssdpulse::terminal {
namespace {

// All drives.

std::string tail(const Drive& drive, const Tails& tails, const std::optional<double>& value) {
  if (drive.measured && tails.standstill_seconds) {
    return ">" + latency_text(tails.standstill_seconds);  // what waits has taken longer already
  }
  return !drive.measured ? "?" : tails.ios_per_second > 0 ? latency_text(value) : "-";
}

/// A dash: too few reads, or none, for a p99.
std::string reads_during(const Drive& drive, const std::optional<ReadsDuring>& reads) {
  return !drive.measured || !reads ? "?" : latency_text(reads->p99);
}

std::string queue_share(const Drive& drive) {
  if (drive.measured && drive.queue_share) {
    return fmt::format("{:.0f}%", *drive.queue_share * 100);
  }
  return drive.measured && drive.read.ios_per_second + drive.write.ios_per_second == 0 ? "-" : "?";
}

std::string known(const Drive& drive, double value, std::string (*format)(std::optional<double>)) {
  return drive.measured ? format(value) : "?";
}

// Which column goes first on a narrow screen is documented in ssdpulse(1).
constexpr Column<Drive> kColumns[] = {
    {"r p50", 7, 9, [](const Drive& d) { return tail(d, d.read, d.read.p50); }},
    {"r p99", 7, 1, [](const Drive& d) { return tail(d, d.read, d.read.p99); }},
    {"r p99.9", 8, 6, [](const Drive& d) { return tail(d, d.read, d.read.p999); }},
    {"usual", 7, 5, [](const Drive& d) { return latency_text(d.read.baseline_p99); }},
    {"r disc", 7, 7, [](const Drive& d) { return reads_during(d, d.during_discard); }},
    {"r flush", 8, 7, [](const Drive& d) { return reads_during(d, d.during_flush); }},
    {"w p50", 7, 11, [](const Drive& d) { return tail(d, d.write, d.write.p50); }},
    {"w p99", 7, 1, [](const Drive& d) { return tail(d, d.write, d.write.p99); }},
    {"w p99.9", 8, 10, [](const Drive& d) { return tail(d, d.write, d.write.p999); }},
    {"usual", 7, 9, [](const Drive& d) { return latency_text(d.write.baseline_p99); }},
    {"fsync", 7, 2, [](const Drive& d) { return tail(d, d.commit, d.commit.p99); }},
    {"usual", 7, 9, [](const Drive& d) { return latency_text(d.commit.baseline_p99); }},
    {"r/s", 7, 2, [](const Drive& d) { return known(d, d.read.ios_per_second, count_text); }},
    {"w/s", 7, 2, [](const Drive& d) { return known(d, d.write.ios_per_second, count_text); }},
    {"r B/s", 7, 3, [](const Drive& d) { return known(d, d.read.bytes_per_second, bytes_text); }},
    {"w B/s", 7, 3, [](const Drive& d) { return known(d, d.write.bytes_per_second, bytes_text); }},
    {"queue", 6, 8, [](const Drive& d) { return queue_share(d); }},
    {"depth", 6, 4, [](const Drive& d) { return d.measured ? count_text(d.in_flight) : "?"; }},
    {"busy", 5, 4, [](const Drive& d) { return d.busy_ratio ? fmt::format("{:.0f}%", *d.busy_ratio * 100) : "?"; }},
    {"WAF", 6, 4,
     [](const Drive& d) { return d.write_amplification ? fmt::format("{:.2f}", *d.write_amplification) : "?"; }},
    {"used", 5, 5, [](const Drive& d) { return d.used_ratio ? fmt::format("{:.0f}%", *d.used_ratio * 100) : "?"; }},
    {"temp", 5, 5, [](const Drive& d) { return d.temperature ? fmt::format("{:.0f}C", *d.temperature) : "?"; }},
};

std::string state_text(const Drive& drive) {
  return drive.state == "slow"      ? "SLOW"
         : drive.state == "high"    ? "high"
         : drive.state == "unknown" ? "?"
         : drive.state == "unseen"  ? "unseen"
         : drive.state == "idle"    ? "idle"
                                    : "ok";
}

std::string note(const Drive& drive) {
  return !drive.cause.empty()      ? drive.cause
         : drive.spike_seconds > 0 ? fmt::format("slow for {} of the last 15m", duration_text(drive.spike_seconds))
                                   : drive.where;
}

Style style_of(const Drive& drive) {
  return drive.state == "slow" ? Style::bad : drive.state == "idle" ? Style::faint : Style::plain;
}

constexpr Table<Drive> kDrives{.head = "drive",
                               .state_head = "state",
                               .state_width = 6,
                               .columns = kColumns,
                               .last_importance = 11,
                               .always_shown = 7,
                               .note_width = 32,
                               .state = state_text,
                               .note = note,
                               .style = style_of};

// One drive: its figures, a heatmap of its last minutes in blocks, and its slow times.

constexpr std::size_t kAxis = 8;  // columns for the latencies on the left
constexpr auto kBlocks = std::to_array<const char*>({" ", "░", "▒", "▓", "█"});
constexpr auto kSigns = std::to_array<const char*>({" ", ".", ":", "*", "#"});
constexpr auto kHeatStyles =
    std::to_array<Style>({Style::plain, Style::heat1, Style::heat2, Style::heat3, Style::heat4});

std::string tails_text(const char* name, const Tails& tails) {
  return fmt::format("{:<6} p50 {:>7}  p99 {:>7}  p99.9 {:>7}  usually {:>7}  {:>7}/s  {:>7}/s", name,
                     latency_text(tails.p50), latency_text(tails.p99), latency_text(tails.p999),
                     latency_text(tails.baseline_p99), count_text(tails.ios_per_second),
                     bytes_text(tails.bytes_per_second));
}

struct BucketRange {
  std::size_t low;
  std::size_t high;  // inclusive
  unsigned max_level;
};

/// The buckets that have I/Os; nothing if none has.
std::optional<BucketRange> range_of(const Seconds& seconds) {
  std::optional<BucketRange> range;
  for (const auto& levels : seconds.levels) {
    for (std::size_t bucket = 0; levels && bucket < levels->size(); ++bucket) {
      if (const unsigned level = (*levels)[bucket]; level > 0) {
        range = range ? BucketRange{std::min(range->low, bucket), std::max(range->high, bucket),
                                    std::max(range->max_level, level)}
                      : BucketRange{bucket, bucket, level};
      }
    }
  }
  return range;
}

/// The highest level among these seconds and buckets; nothing: no data.
std::optional<unsigned> highest_level(const Seconds& seconds, std::size_t from, std::size_t to, std::size_t low,
                                      std::size_t high) {
  std::optional<unsigned> highest;
  for (std::size_t i = from; i < to && i < seconds.levels.size(); ++i) {
    if (const auto& levels = seconds.levels[i]) {
      highest = highest.value_or(0);
      for (std::size_t bucket = low; bucket <= high && bucket < levels->size(); ++bucket) {
        highest = std::max(*highest, (*levels)[bucket]);
      }
    }
  }
  return highest;
}

void draw_heatmap(Grid& grid, std::size_t top, std::size_t bottom, const Seconds& seconds, bool utf8) {
  if (bottom <= top + 2 || grid.width() <= kAxis + 4 || seconds.bounds.empty()) {
    return;
  }
  const std::size_t columns = grid.width() - kAxis;
  const std::size_t rows = bottom - top - 1;
  const std::size_t each =
      std::max<std::size_t>(1, (seconds.levels.size() + columns - 1) / columns);  // seconds, or minutes, per column
  const auto range = range_of(seconds);
  if (!range) {
    grid.put(kAxis, top, seconds.until ? "no I/Os of this kind in the history" : "no I/Os of this kind in memory",
             Style::faint);
    return;
  }
  const std::size_t tall = std::max<std::size_t>(1, (range->high - range->low + rows) / rows);  // buckets per row
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t low = range->low + (rows - 1 - row) * tall;
    const std::size_t high = low + tall - 1;
    if (row % 4 == 0 && high < seconds.bounds.size()) {
      grid.put_right(kAxis - 1, top + row, latency_text(seconds.bounds[high]), Style::faint);
    }
    for (std::size_t column = 0; column < columns; ++column) {
      // The newest second is on the right.
      const std::size_t back = (columns - column) * each;
      const std::size_t from = seconds.levels.size() - std::min(back, seconds.levels.size());
      const auto level = back > seconds.levels.size() + each - 1
                             ? std::nullopt
                             : highest_level(seconds, from, seconds.levels.size() - (back - each), low, high);
      if (!level) {
        grid.put(kAxis + column, top + row, utf8 ? "╱" : "/", Style::faint);
      } else if (*level > 0) {
        const std::size_t shade = 1 + (*level - 1) * 4 / std::max(range->max_level, 4U);
        grid.put(kAxis + column, top + row, (utf8 ? kBlocks : kSigns)[std::min<std::size_t>(shade, 4)],
                 kHeatStyles[std::min<std::size_t>(shade, 4)]);
      }
    }
  }
  const double span = static_cast<double>(columns * each) * seconds.column_seconds;
  grid.put(kAxis, bottom - 1, duration_text(span) + (seconds.until ? " before" : " ago"), Style::faint);
  grid.put_right(grid.width(), bottom - 1, seconds.until ? clock_text(*seconds.until) : "now", Style::faint);
}

}  // namespace

void draw_drives(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view) {
  if (!state.overview || top >= bottom) {
    return;
  }
  const auto drives = shown(*state.overview, view);
  draw_table(grid, top, bottom, kDrives, drives, selected(*state.overview, view));
  if (drives.empty()) {
    grid.put(0, top + 1, state.overview->drives.empty() ? "no drive is measured" : "no drive fits the filter",
             Style::faint);
  }
}

void draw_device(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view, bool utf8) {
  const Drive* drive = nullptr;
  std::size_t row = top;
  if (state.overview) {
    const auto found = std::find_if(state.overview->drives.begin(), state.overview->drives.end(),
                                    [&](const Drive& candidate) { return candidate.name == view.selected; });
    drive = found == state.overview->drives.end() ? nullptr : &*found;
  }
  if (drive == nullptr) {
    if (row < bottom) {
      grid.put(0, row, view.selected + " is not measured now", Style::bad);
    }
    return;
  }
  const auto put_line = [&](const std::string& text, Style style = Style::plain) {
    if (row < bottom) {
      grid.put(0, row++, text, style);
    }
  };
  put_line(drive->title + "  " + drive->where, Style::good);
  put_line(tails_text("reads", drive->read));
  put_line(tails_text("writes", drive->write));
  put_line(tails_text("fsync", drive->commit));
  if (!state.seconds || state.seconds->device != drive->name) {
    return;
  }
  const std::size_t spikes = std::min<std::size_t>(state.seconds->spikes.size(), (bottom - row) / 4);
  if (row < bottom) {
    draw_heatmap(grid, row, bottom - spikes, *state.seconds, utf8);
    row = bottom - spikes;
  }
  for (std::size_t i = state.seconds->spikes.size() - spikes; i < state.seconds->spikes.size(); ++i) {
    const Spike& spike = state.seconds->spikes[i];
    const double until = spike.end.value_or(state.overview->taken_at);
    put_line(fmt::format("{} {} slow for {}: p99 of its worst second {}, {}", clock_text(spike.begin),
                         util::plural_text(spike.operation), duration_text(until - spike.begin),
                         latency_text(spike.peak_seconds), spike.words),
             spike.end ? Style::plain : Style::bad);
  }
}

}  // namespace ssdpulse::terminal
