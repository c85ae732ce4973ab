// SPDX-License-Identifier: Apache-2.0
// The frame that all screens share: address and time, the first line, the keys; and the help.
#include "exporters/terminal/top/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "exporters/terminal/top/words.h"

namespace ssdpulse::top {
namespace {

void draw_title(Grid& grid, const State& state, const View& view) {
  grid.fill(0, Style::title);
  const bool hour = state.overview && state.overview->past && state.overview->step_seconds > 60;
  std::string right = view.at ? (hour ? "PAST (figures of the hour)" : "PAST") : view.paused ? "PAUSED" : "";
  if (state.overview) {
    right += (right.empty() ? "" : "  ") + (state.overview->past ? date_text : clock_text)(state.overview->taken_at) +
             " " + zone_text(state.overview->taken_at);
  }
  grid.put(0, 0, "ssdpulse top  " + state.address, Style::title);
  grid.put_right(grid.width(), 0, " " + right, Style::title);
}

/// Returns the row below it.
std::size_t draw_first_line(Grid& grid, const State& state) {
  const std::size_t most = std::clamp<std::size_t>(grid.height() / 4, 1, 6);
  std::string sentence = "asking the daemon";
  std::string next;
  Style style = Style::plain;
  if (!state.trouble.empty()) {
    sentence = "No answer: " + state.trouble;
    style = Style::bad;
  } else if (state.overview) {
    sentence = state.overview->sentence;
    next = state.overview->next.empty() ? "" : "Next: " + state.overview->next;
    style = state.overview->verdict == "slow"    ? Style::bad
            : state.overview->verdict == "usual" ? Style::good
                                                 : Style::plain;
  }
  constexpr std::size_t kLinesOfNext = 2;
  const std::vector<std::string> lines = wrap(sentence, grid.width());
  const std::vector<std::string> after = next.empty() ? std::vector<std::string>{} : wrap(next, grid.width());
  // What to do next has its place, unless there is hardly any.
  const std::size_t reserved = most > kLinesOfNext ? std::min(after.size(), kLinesOfNext) : 0;
  std::size_t row = 1;
  for (const std::string& line : lines) {
    if (row > most - reserved) {
      break;
    }
    grid.put(0, row++, line, style);
  }
  for (const std::string& line : after) {
    if (row > most) {
      break;
    }
    grid.put(0, row++, line, Style::faint);
  }
  return row;
}

void draw_keys(Grid& grid, const View& view) {
  const std::size_t row = grid.height() - 1;
  grid.fill(row, Style::title);
  if (view.typing) {
    grid.put(0, row, "filter: " + view.filter + "_", Style::title);
    return;
  }
  std::string keys;
  switch (view.screen) {
    case Screen::overview:
      keys = fmt::format("q quit  Enter drive  / filter{}  s sort: {}  p pause  ? help",
                         view.filter.empty() ? "" : " (" + view.filter + ")", order_name(view.order));
      break;
    case Screen::device:
      keys = fmt::format("q quit  Esc back  o heatmap: {}  p pause  ? help", heat_name(view.heat));
      break;
    case Screen::help:
      keys = "q quit  Esc back";
      break;
  }
  grid.put(0, row, keys, Style::title);
}

void draw_help(Grid& grid, std::size_t top, std::size_t bottom, const State& state) {
  constexpr auto kKeys = std::to_array<std::pair<const char*, const char*>>({
      {"up down j k", "select a drive"},
      {"Enter l", "one drive: heatmap of its last minutes, and its slow times"},
      {"Esc h", "back"},
      {"/", "filter over name, model, mount points, state and cause"},
      {"s", "sort by need, name, read p99, write p99, I/Os, data"},
      {"o", "heatmap of reads, writes, flushes, discards, commits"},
      {"p space", "pause"},
      {"[ ] { }", "a minute back or forth, an hour back or forth"},
      {"n", "now"},
      {"?", "this help"},
      {"q", "quit"},
  });
  std::size_t row = top;
  for (const auto& [key, what] : kKeys) {
    if (row < bottom) {
      grid.put(0, row, key, Style::good);
      grid.put(14, row++, what);
    }
  }
  if (row + 2 < bottom) {
    grid.put(0, ++row, "What is not measured here, and why", Style::title);
    ++row;
  }
  for (const Gap& gap : state.gaps) {
    for (const std::string& line : wrap(gap.what + ": " + gap.why, grid.width())) {
      if (row < bottom) {
        grid.put(0, row++, line);
      }
    }
  }
  if (state.gaps.empty() && row < bottom) {
    grid.put(0, row, "Nothing: every source answers.", Style::faint);
  }
}

}  // namespace

Grid draw(const State& state, const View& view, std::size_t width, std::size_t height, bool utf8) {
  Grid grid(width, height);
  if (width == 0 || height == 0) {
    return grid;
  }
  draw_title(grid, state, view);
  std::size_t row = draw_first_line(grid, state);
  const std::size_t bottom = height - 1;
  row += row + 6 < bottom ? 1 : 0;
  if (view.screen == Screen::help) {
    draw_help(grid, row, bottom, state);
  } else if (view.screen == Screen::device) {
    draw_device(grid, row, bottom, state, view, utf8);
  } else {
    draw_drives(grid, row, bottom, state, view);
  }
  draw_keys(grid, view);
  return grid;
}

}  // namespace ssdpulse::top
