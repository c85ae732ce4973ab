// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "daemon/base/number_text.h"
#include "exporters/terminal/top_screen.h"
#include "exporters/terminal/top_table.h"
#include "exporters/terminal/top_words.h"
#include "exporters/words/shared.h"
#include "exporters/words/terminal.h"

namespace ssdpulse::terminal {
namespace {

// All drives.

std::string tail(const Drive& drive, const Tails& tails, const std::optional<double>& value) {
  if (drive.measured && tails.standstill_seconds) {
    return "> " + milliseconds_text(tails.standstill_seconds);  // what waits has taken longer already
  }
  return drive.measured && tails.ios_per_second == 0 ? words::shared::kNone
                                                     : milliseconds_text(drive.measured ? value : std::nullopt);
}

/// A dash: too few reads, or none, for a p99.
std::string reads_during(const Drive& drive, const std::optional<ReadsDuring>& reads) {
  return milliseconds_text(drive.measured && reads ? reads->p99 : std::nullopt);
}

std::string known(const Drive& drive, std::optional<double> value, std::string (*format)(std::optional<double>)) {
  return format(drive.measured ? value : std::nullopt);
}

std::string optional_text(const char* form, std::optional<double> value) {
  return value ? fmt::format(fmt::runtime(form), *value) : kNotKnown;
}

std::optional<double> left(const std::optional<double>& used) {
  return used ? std::optional(std::max(0.0, 1 - *used)) : std::nullopt;
}

namespace heads = words::terminal;
namespace shared = words::shared;

// Which column goes first on a narrow screen is documented in ssdpulse(1).
constexpr Column<Drive> kColumns[] = {
    {shared::kBusy, "%", 5, 3, [](const Drive& d) { return percent_text(d.busy_ratio); }, true},
    {shared::kReadHead, heads::kP50Ms, 8, 9, [](const Drive& d) { return tail(d, d.read, d.read.p50); }},
    {shared::kReadHead, heads::kP99Ms, 8, 1, [](const Drive& d) { return tail(d, d.read, d.read.p99); }},
    {shared::kReadHead, heads::kP999Ms, 10, 6, [](const Drive& d) { return tail(d, d.read, d.read.p999); }},
    {heads::kUsual, heads::kP99Ms, 8, 5, [](const Drive& d) { return milliseconds_text(d.read.baseline_p99); }, true},
    {heads::kReadIn, shared::kDiscard, 9, 7, [](const Drive& d) { return reads_during(d, d.during_discard); }, true},
    {heads::kReadIn, shared::kFlush, 8, 7, [](const Drive& d) { return reads_during(d, d.during_flush); }, true},
    {shared::kWriteHead, heads::kP50Ms, 8, 11, [](const Drive& d) { return tail(d, d.write, d.write.p50); }},
    {shared::kWriteHead, heads::kP99Ms, 8, 1, [](const Drive& d) { return tail(d, d.write, d.write.p99); }},
    {shared::kWriteHead, heads::kP999Ms, 10, 10, [](const Drive& d) { return tail(d, d.write, d.write.p999); }},
    {heads::kUsual, heads::kP99Ms, 8, 9, [](const Drive& d) { return milliseconds_text(d.write.baseline_p99); }, true},
    {shared::kFsync, heads::kP99Ms, 8, 2, [](const Drive& d) { return tail(d, d.commit, d.commit.p99); }},
    {heads::kUsual, heads::kP99Ms, 8, 9, [](const Drive& d) { return milliseconds_text(d.commit.baseline_p99); }, true},
    {shared::kReadsHead, "/s", 8, 2, [](const Drive& d) { return known(d, d.read.ios_per_second, rate_text); }},
    {shared::kWritesHead, "/s", 8, 2, [](const Drive& d) { return known(d, d.write.ios_per_second, rate_text); }},
    {shared::kReadHead, "MB/s", 7, 4, [](const Drive& d) { return known(d, d.read.bytes_per_second, megabytes_text); }},
    {shared::kWrittenHead, "MB/s", 8, 4,
     [](const Drive& d) { return known(d, d.write.bytes_per_second, megabytes_text); }},
    {heads::kQueue, "%", 6, 8, [](const Drive& d) { return known(d, d.queue_share, percent_text); }, true},
    {heads::kIn, heads::kFlight, 7, 6, [](const Drive& d) { return known(d, d.in_flight, rate_text); }, true},
    {shared::kWriteHead, shared::kAmpl, 6, 4,
     [](const Drive& d) { return optional_text("{:.2f}", d.write_amplification); }, true},
    {shared::kLife, shared::kPercentLeft, 7, 5, [](const Drive& d) { return percent_text(left(d.used_ratio)); }, true},
    {heads::kTemperature, "°C", 5, 5, [](const Drive& d) { return optional_text("{:.0f}", d.temperature); }, true},
};

/// As the page calls it.
std::string state_text(const Drive& drive) {
  return drive.state == "slow"      ? fmt::format("▲ {}", words::shared::kSlow)
         : drive.state == "high"    ? fmt::format("△ {}", words::shared::kHigh)
         : drive.state == "unknown" ? fmt::format("? {}", words::shared::kCannotTell)
         : drive.state == "unseen"  ? fmt::format("? {}", words::shared::kNotMeasured)
         : drive.state == "idle"    ? fmt::format("– {}", words::shared::kIdle)
                                    : fmt::format("✓ {}", words::shared::kAsUsual);
}

std::string note(const Drive& drive) {
  return !drive.cause.empty()      ? drive.cause
         : drive.spike_seconds > 0 ? fmt::format(words::shared::kWasSlowFor, duration_text(drive.spike_seconds))
                                   : drive.where;
}

Style style_of(const Drive& drive) {
  return drive.state == "slow" ? Style::bad : drive.state == "idle" ? Style::faint : Style::plain;
}

constexpr Table<Drive> kDrives{
    .head = shared::kDrive,
    .state_head = shared::kState,
    .columns = kColumns,
    .last_importance = 11,
    .always_shown = 7,
    .name_share = 4,
    .label = [](const Drive& d, std::size_t width) { return drive_text(d.use, d.name, width); },
    .state = state_text,
    .note = note,
    .style = style_of};

// One drive: its figures, a heatmap of its last minutes in blocks, and its slow times.

constexpr std::size_t kAxis = 8;  // columns for the latencies on the left
constexpr auto kBlocks = std::to_array<const char*>({" ", "░", "▒", "▓", "█"});
constexpr auto kHeatStyles =
    std::to_array<Style>({Style::plain, Style::heat1, Style::heat2, Style::heat3, Style::heat4});

/// A line of figures below `figures_head()`.
std::string tails_text(const char* name, const Drive& drive, const Tails& tails) {
  const auto if_any = [&](std::optional<double> value) {
    return tails.ios_per_second > 0 ? latency_text(value) : words::shared::kNone;
  };
  return !drive.measured ? fmt::format("{:<9}{:>9}", name, kNotKnown)
                         : fmt::format("{:<9}{:>9}{:>9}{:>9}{:>11}{:>9} /s{:>9} MB/s", name, if_any(tails.p50),
                                       if_any(tails.p99), if_any(tails.p999), latency_text(tails.baseline_p99),
                                       rate_text(tails.ios_per_second), megabytes_text(tails.bytes_per_second));
}

std::string figures_head() {
  return fmt::format("{:>18}{:>9}{:>9}{:>11}{:>12}{:>14}", "p50", "p99", "p99.9", words::terminal::kUsualP99,
                     words::shared::kIos, words::shared::kData);
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

/// What is over is in the past tense.
std::string spike_text(const Spike& spike, double now) {
  const std::string begin = clock_text(spike.begin), operations = util::plural_text(spike.operation);
  const std::string time = duration_text(spike.end.value_or(now) - spike.begin);
  const std::string peak = latency_text(spike.peak_seconds);
  return (spike.end ? fmt::format(words::terminal::kWereSlow, begin, operations, time, peak)
                    : fmt::format(words::terminal::kHaveBeenSlow, begin, operations, time, peak)) +
         (spike.words.empty() ? "" : ", ") + spike.words;
}

void draw_heatmap(Grid& grid, std::size_t top, std::size_t bottom, const Seconds& seconds) {
  if (bottom <= top + 2 || grid.width() <= kAxis + 4 || seconds.bounds.empty()) {
    return;
  }
  const std::size_t columns = grid.width() - kAxis;
  const std::size_t rows = bottom - top - 1;
  const std::size_t each =
      std::max<std::size_t>(1, (seconds.levels.size() + columns - 1) / columns);  // seconds, or minutes, per column
  const auto range = range_of(seconds);
  if (!range) {
    grid.put(kAxis, top, seconds.until ? words::terminal::kNoIosInHistory : words::terminal::kNoIosInMemory,
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
        grid.put(kAxis + column, top + row, "╱", Style::faint);
      } else if (*level > 0) {
        const std::size_t shade = 1 + (*level - 1) * 4 / std::max(range->max_level, 4U);
        grid.put(kAxis + column, top + row, kBlocks[std::min<std::size_t>(shade, 4)],
                 kHeatStyles[std::min<std::size_t>(shade, 4)]);
      }
    }
  }
  const std::string span = duration_text(static_cast<double>(columns * each) * seconds.column_seconds);
  grid.put(kAxis, bottom - 1,
           seconds.until ? fmt::format(words::terminal::kBefore, span) : fmt::format(words::shared::kAgo, span),
           Style::faint);
  grid.put_right(grid.width(), bottom - 1, seconds.until ? clock_text(*seconds.until) : words::shared::kNow,
                 Style::faint);
}

}  // namespace

void draw_drives(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view) {
  if (!state.overview || top >= bottom) {
    return;
  }
  if (state.overview->drives.empty()) {
    put_lines(grid, top, bottom, words::terminal::kDevicesSaysWhy);
    return;
  }
  const auto drives = shown(*state.overview, view);
  draw_table(grid, top, bottom, kDrives, drives, selected(*state.overview, view));
  if (drives.empty()) {
    put_lines(grid, top + 2, bottom, words::terminal::kNoDriveFits);
  }
}

void draw_device(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view) {
  const Drive* drive = nullptr;
  if (state.overview) {
    const auto found = std::find_if(state.overview->drives.begin(), state.overview->drives.end(),
                                    [&](const Drive& candidate) { return candidate.name == view.selected; });
    drive = found == state.overview->drives.end() ? nullptr : &*found;
  }
  if (drive == nullptr) {
    put_lines(grid, top, bottom, fmt::format(words::terminal::kNotMeasuredNow, view.selected), Style::bad);
    return;
  }
  std::size_t row = top;
  const auto put_line = [&](const std::string& text, Style style = Style::plain) {
    if (row < bottom) {
      grid.put(0, row++, text, style);
    }
  };
  put_line(drive->title + "  " + drive->where, Style::good);
  put_line(figures_head(), Style::faint);
  put_line(tails_text(words::shared::kReads, *drive, drive->read));
  put_line(tails_text(words::shared::kWrites, *drive, drive->write));
  put_line(tails_text(words::shared::kFsync, *drive, drive->commit));
  if (!state.seconds || state.seconds->device != drive->name || row >= bottom) {
    return;
  }
  // The newest slow times that fit below the heatmap, which has most of the room.
  const auto& spikes = state.seconds->spikes;
  std::vector<std::pair<std::string, Style>> lines;
  for (std::size_t i = spikes.size(); i-- > 0;) {
    const auto of_this = wrap(spike_text(spikes[i], state.overview->taken_at), grid.width());
    if (lines.size() + of_this.size() > (bottom - row) / 3) {
      break;
    }
    for (std::size_t line = of_this.size(); line-- > 0;) {
      lines.emplace_back(of_this[line], spikes[i].end ? Style::faint : Style::bad);
    }
  }
  draw_heatmap(grid, row, bottom - lines.size(), *state.seconds);
  row = bottom - lines.size();
  for (std::size_t i = lines.size(); i-- > 0;) {
    put_line(lines[i].first, lines[i].second);
  }
}

}  // namespace ssdpulse::terminal
