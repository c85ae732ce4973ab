// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/base/outside_text.h"
#include "exporters/terminal/top_words.h"

namespace ssdpulse::terminal {
namespace {

/// The length of the valid character that begins with this byte.
std::size_t length_of(unsigned char first) { return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

/// Latin and Greek letters, punctuation, arrows, blocks and shapes are one place wide in every font.
bool is_narrow(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1 || character.size() == 4) {
    return byte(0) >= 0x20 && byte(0) < 0x7F;
  }
  const unsigned code = character.size() == 2 ? (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F)
                                              : (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  return (code >= 0xA1 && code < 0x300 && code != 0xAD) || (code >= 0x370 && code < 0x400 && code != 0x37E) ||
         (code >= 0x2010 && code < 0x2028) || code == 0x2030 || (code >= 0x2190 && code < 0x2200) ||
         (code >= 0x2500 && code < 0x2600) || code == 0x2713;
}

// The frame that all screens share: address and time, the first line, the keys; and the help.

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
  const std::size_t max_rows = std::clamp<std::size_t>(grid.height() / 4, 1, 6);
  std::string sentence = "asking the daemon";
  std::string next;
  Style style = Style::plain;
  if (!state.trouble.empty()) {
    sentence = "No answer: " + state.trouble;
    style = Style::bad;
  } else if (state.overview) {
    sentence = state.overview->sentence;
    next = state.overview->next.empty() ? "" : "Next: " + state.overview->next;
    style = state.overview->verdict == "slow" ? Style::bad
            : state.overview->verdict == "ok" ? Style::good
                                              : Style::plain;
  }
  constexpr std::size_t kLinesOfNext = 2;
  const std::vector<std::string> lines = wrap(sentence, grid.width());
  const std::vector<std::string> after = next.empty() ? std::vector<std::string>{} : wrap(next, grid.width());
  // What to do next keeps its lines, unless there are hardly any.
  const std::size_t reserved = max_rows > kLinesOfNext ? std::min(after.size(), kLinesOfNext) : 0;
  std::size_t row = 1;
  for (const std::string& line : lines) {
    if (row > max_rows - reserved) {
      break;
    }
    grid.put(0, row++, line, style);
  }
  for (const std::string& line : after) {
    if (row > max_rows) {
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
      keys = fmt::format("q quit  Enter drive  / filter{}  s sort: {}  v volumes  p pause  ? help",
                         view.filter.empty() ? "" : " (" + view.filter + ")", order_name(view.order));
      break;
    case Screen::volumes:
      keys = fmt::format("q quit  Esc back  / filter{}  s sort: {}  p pause  ? help",
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
      {"v", "volumes (LVM, LUKS, md, ...): latency, what each adds, health"},
      {"Esc h", "back"},
      {"/", "filter over name, model, mount points, state and cause"},
      {"s", "sort: worst first, name, read p99, write p99, I/Os, data"},
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
  for (const Gap& gap : state.gaps.value_or(std::vector<Gap>())) {
    for (const std::string& line : wrap(gap.what + ": " + gap.why, grid.width())) {
      if (row < bottom) {
        grid.put(0, row++, line);
      }
    }
  }
  if ((!state.gaps || state.gaps->empty()) && row < bottom) {
    grid.put(0, row, state.gaps ? "Nothing: every source answers." : "Not known: the daemon has not answered yet.",
             Style::faint);
  }
}

}  // namespace

std::vector<std::string> characters(std::string_view text) {
  const std::string valid = util::for_json(text, std::string::npos);
  std::vector<std::string> result;
  for (std::size_t at = 0; at < valid.size();) {
    const std::string character = valid.substr(at, length_of(static_cast<unsigned char>(valid[at])));
    result.push_back(is_narrow(character) ? character : "?");
    at += character.size();
  }
  return result;
}

std::string first_characters(std::string_view text, std::size_t count) {
  auto all = characters(text);
  all.resize(std::min(all.size(), count));
  std::string first;
  for (const std::string& character : all) {
    first += character;
  }
  return first;
}

std::size_t Grid::put(std::size_t x, std::size_t y, std::string_view text, Style style) {
  for (const std::string& character : characters(text)) {
    if (x >= width_ || y >= height_) {
      break;
    }
    cells_[y * width_ + x++] = {character, style};
  }
  return x;
}

void Grid::put_right(std::size_t end, std::size_t y, std::string_view text, Style style) {
  auto all = characters(text);
  const std::size_t room = std::min(end, width_);
  if (all.size() > room) {
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(room));
  }
  std::size_t x = room - all.size();
  for (const std::string& character : all) {
    x = put(x, y, character, style);
  }
}

void Grid::fill(std::size_t y, Style style) {
  for (std::size_t x = 0; y < height_ && x < width_; ++x) {
    cells_[y * width_ + x].style = style;
  }
}

std::string Grid::text() const {
  std::string result;
  for (std::size_t y = 0; y < height_; ++y) {
    std::string line;
    for (std::size_t x = 0; x < width_; ++x) {
      line += at(x, y).glyph;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + '\n';
  }
  return result;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  std::size_t used = 0;
  const auto finish = [&] {
    lines.push_back(line);
    line.clear();
    used = 0;
  };
  while (!text.empty() && width > 0) {
    const auto blank = text.find(' ');
    auto word = characters(text.substr(0, blank));
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    word.resize(std::min(word.size(), width));
    if (used > 0 && used + 1 + word.size() > width) {
      finish();
    }
    if (used > 0) {
      line += ' ';
      ++used;
    }
    for (const std::string& character : word) {
      line += character;
    }
    used += word.size();
  }
  if (used > 0) {
    finish();
  }
  return lines;
}

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
  } else if (view.screen == Screen::volumes) {
    draw_volumes(grid, row, bottom, state, view);
  } else if (view.screen == Screen::device) {
    draw_device(grid, row, bottom, state, view, utf8);
  } else {
    draw_drives(grid, row, bottom, state, view);
  }
  draw_keys(grid, view);
  return grid;
}

}  // namespace ssdpulse::terminal
