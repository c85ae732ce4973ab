// SPDX-License-Identifier: Apache-2.0
// One drive: its figures, a heatmap of its last minutes in blocks, and its slow times.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "daemon/util/number_text.h"
#include "exporters/terminal/top/top_screen.h"
#include "exporters/terminal/top/words.h"

namespace ssdpulse::top {
namespace {

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

struct Words {
  std::size_t low;
  std::size_t high;  // inclusive
  unsigned most;     // level
};

/// Which words have I/Os in these columns; nothing if none has.
std::optional<Words> words_of(const Seconds& seconds, std::size_t first) {
  std::optional<Words> words;
  for (std::size_t i = first; i < seconds.levels.size(); ++i) {
    for (std::size_t word = 0; seconds.levels[i] && word < seconds.levels[i]->size(); ++word) {
      if (const unsigned level = (*seconds.levels[i])[word]; level > 0) {
        words = words ? Words{std::min(words->low, word), std::max(words->high, word), std::max(words->most, level)}
                      : Words{word, word, level};
      }
    }
  }
  return words;
}

struct Cell {
  bool known = false;
  unsigned level = 0;
};

/// The highest level among these seconds and words.
Cell highest_level(const Seconds& seconds, std::size_t from, std::size_t to, std::size_t low, std::size_t high) {
  Cell cell;
  for (std::size_t i = from; i < to && i < seconds.levels.size(); ++i) {
    if (!seconds.levels[i]) {
      continue;
    }
    cell.known = true;
    for (std::size_t word = low; word <= high && word < seconds.levels[i]->size(); ++word) {
      cell.level = std::max(cell.level, (*seconds.levels[i])[word]);
    }
  }
  return cell;
}

void draw_heatmap(Grid& grid, std::size_t top, std::size_t bottom, const Seconds& seconds, bool utf8) {
  if (bottom <= top + 2 || grid.width() <= kAxis + 4 || seconds.bounds.empty()) {
    return;
  }
  const std::size_t columns = grid.width() - kAxis;
  const std::size_t rows = bottom - top - 1;
  const std::size_t each =
      std::max<std::size_t>(1, (seconds.levels.size() + columns - 1) / columns);  // seconds, or minutes, per column
  const auto words = words_of(seconds, 0);
  if (!words) {
    grid.put(kAxis, top, seconds.until ? "no I/Os of this kind in the history" : "no I/Os of this kind in memory",
             Style::faint);
    return;
  }
  const std::size_t tall = std::max<std::size_t>(1, (words->high - words->low + rows) / rows);  // words per row
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t low = words->low + (rows - 1 - row) * tall;
    const std::size_t high = low + tall - 1;
    if (row % 4 == 0 && high < seconds.bounds.size()) {
      grid.put_right(kAxis - 1, top + row, latency_text(seconds.bounds[high]), Style::faint);
    }
    for (std::size_t column = 0; column < columns; ++column) {
      // The newest second is on the right.
      const std::size_t back = (columns - column) * each;
      if (back > seconds.levels.size() + each - 1) {
        grid.put(kAxis + column, top + row, utf8 ? "╱" : "/", Style::faint);
        continue;
      }
      const std::size_t from = seconds.levels.size() - std::min(back, seconds.levels.size());
      const Cell cell = highest_level(seconds, from, seconds.levels.size() - (back - each), low, high);
      if (!cell.known) {
        grid.put(kAxis + column, top + row, utf8 ? "╱" : "/", Style::faint);
      } else if (cell.level > 0) {
        const std::size_t shade = 1 + (cell.level - 1) * 4 / std::max(words->most, 4U);
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

void draw_device(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view, bool utf8) {
  const Drive* drive = nullptr;
  std::size_t row = top;
  if (state.overview) {
    const auto found = std::find_if(state.overview->drives.begin(), state.overview->drives.end(),
                                    [&](const Drive& one) { return one.name == view.selected; });
    drive = found == state.overview->drives.end() ? nullptr : &*found;
  }
  if (drive == nullptr) {
    if (row < bottom) {
      grid.put(0, row, view.selected + " is not measured now", Style::bad);
    }
    return;
  }
  const auto say = [&](const std::string& text, Style style = Style::plain) {
    if (row < bottom) {
      grid.put(0, row++, text, style);
    }
  };
  say(drive->title + "  " + drive->where, Style::good);
  say(tails_text("reads", drive->read));
  say(tails_text("writes", drive->write));
  say(tails_text("fsync", drive->commit));
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
    say(fmt::format("{} {} slow for {}: p99 of its worst second {}, {}", clock_text(spike.begin),
                    util::plural_text(spike.operation), duration_text(until - spike.begin),
                    latency_text(spike.peak_seconds), spike.words),
        spike.end ? Style::plain : Style::bad);
  }
}

}  // namespace ssdpulse::top
