// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "daemon/base/outside_text.h"
#include "exporters/terminal/top_words.h"
#include "exporters/words/shared.h"
#include "exporters/words/terminal.h"

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

constexpr auto kAscii = std::to_array<std::pair<std::string_view, const char*>>({
    {"–", "-"},
    {"µ", "u"},
    {"°", " "},
    {"▲", "!"},
    {"△", "^"},
    {"✓", " "},
    {"╱", "/"},
    {"░", "."},
    {"▒", ":"},
    {"▓", "*"},
    {"█", "#"},
});

// The frame that all screens share: host, state and time; the first line; the keys; and the help.

std::string time_text(const Overview& overview) {
  return (overview.past ? date_text : clock_text)(overview.taken_at) + " " + zone_text(overview.taken_at);
}

std::string state_text(const State& state) {
  if (!state.trouble.empty()) {
    return fmt::format("? {}", words::shared::kNoAnswer);
  }
  if (!state.overview) {
    return "";
  }
  const auto& drives = state.overview->drives;
  const bool high = std::any_of(drives.begin(), drives.end(), [](const Drive& one) { return one.state == "high"; });
  const bool unknown =
      std::any_of(drives.begin(), drives.end(), [](const Drive& one) { return one.state == "unseen"; });
  return state.overview->verdict == "slow"            ? fmt::format("▲ {}", words::shared::kSlow)
         : state.overview->verdict != "ok" || unknown ? fmt::format("? {}", words::shared::kCannotTell)
         : high                                       ? fmt::format("△ {}", words::shared::kHigh)
                                                      : fmt::format("✓ {}", words::shared::kAsUsual);
}

void draw_title(Grid& grid, const State& state, const View& view) {
  grid.fill(0, Style::title);
  const bool hour = state.overview && state.overview->past && state.overview->step_seconds > 60;
  std::string right = view.at       ? (hour ? words::terminal::kPastHour : words::terminal::kPast)
                      : view.paused ? words::terminal::kPaused
                                    : "";
  for (const std::string& part : {state_text(state), state.overview ? time_text(*state.overview) : std::string()}) {
    right += (right.empty() || part.empty() ? "" : "  ") + part;
  }
  const std::size_t room = grid.width() - std::min(grid.width(), characters(right).size() + 1);
  const std::string left =
      state.host.empty() ? words::terminal::kTitle : fmt::format(words::terminal::kTitleOn, state.host);
  grid.put(0, 0, first_characters(left + "  " + state.address, room), Style::title);
  grid.put_right(grid.width(), 0, right, Style::title);
}

/// When none is slow: in short, and which ones are an exception.
std::string calm_text(const std::vector<Drive>& drives) {
  constexpr std::size_t kMaxNames = 3;
  std::string exceptions;
  std::size_t usual = drives.size();
  for (const auto& [what, a, b] : {std::tuple(words::shared::kHigherThanUsual, "high", "slow"),
                                   std::tuple(words::shared::kNotKnown, "unknown", "unseen")}) {
    std::size_t count = 0;
    for (const Drive& drive : drives) {
      if (drive.state == a || drive.state == b) {
        exceptions += ++count > kMaxNames ? "" : (count == 1 ? fmt::format(" {}: ", what) : ", ") + drive.name;
      }
    }
    if (count > kMaxNames) {
      exceptions = fmt::format(words::shared::kAndMore, exceptions, count - kMaxNames);
    }
    exceptions += count > 0 ? "." : "";
    usual -= count;
  }
  const std::size_t all = drives.size();
  return usual < all ? fmt::format(words::shared::kNoneSlow, usual, all) + exceptions
         : all == 1  ? words::shared::kDriveAsUsual
                     : fmt::format(words::shared::kAllAsUsual, all);
}

/// What is over is small: `ssdpulse why` has all of it.
std::string in_two_lines(const std::string& text, std::size_t width) {
  constexpr std::string_view kMore = " ...";
  const std::vector<std::string> lines = wrap(text, width);
  return lines.size() <= 2 || width <= kMore.size()
             ? text
             : lines[0] + " " + first_characters(lines[1], width - kMore.size()) + std::string(kMore);
}

/// What is slow, since when and why, and what is next; below it, in small, what else is so and what is over. Returns
/// the row below all of it.
std::size_t draw_first_line(Grid& grid, const State& state) {
  const std::size_t end = 1 + std::clamp<std::size_t>(grid.height() / 4, 1, 7);
  if (!state.trouble.empty()) {
    const std::size_t row =
        put_lines(grid, 1, end, fmt::format(words::terminal::kNoAnswerAs, state.trouble), Style::bad);
    const bool is_old = state.overview && !state.overview->past;
    return is_old ? put_lines(grid, row, end + 1, fmt::format(words::terminal::kBelowAsOf, time_text(*state.overview)))
                  : row;
  }
  if (!state.overview) {
    return put_lines(grid, 1, end, words::terminal::kAsking);
  }
  const Overview& all = *state.overview;
  const bool calm = all.verdict == "ok" && !all.past && !all.drives.empty();
  // What to do next keeps its lines, unless there are hardly any. Of what is over, there is nothing to do.
  const bool has_next = !all.next.empty() && !(calm && !all.over.empty());
  const std::string next = has_next ? fmt::format(words::terminal::kNext, all.next) : "";
  const std::size_t reserved = end > 4 ? std::min<std::size_t>(wrap(next, grid.width()).size(), 2) : 0;
  std::size_t row = put_lines(grid, 1, end - reserved, calm ? calm_text(all.drives) : all.sentence,
                              all.verdict == "slow" ? Style::bad : Style::plain);
  row = put_lines(grid, row, end, next, Style::plain);
  row = put_lines(grid, row, end, all.remarks);
  return put_lines(grid, row, end, in_two_lines(all.over, grid.width()));
}

void draw_keys(Grid& grid, const View& view) {
  const std::size_t row = grid.height() - 1;
  grid.fill(row, Style::title);
  if (view.typing) {
    grid.put(0, row, fmt::format(words::terminal::kFilterTyped, view.filter), Style::title);
    return;
  }
  const std::string filter =
      view.filter.empty() ? words::terminal::kFilterKey : fmt::format(words::terminal::kFilterKeyOf, view.filter);
  std::string keys;
  switch (view.screen) {
    case Screen::overview:
      keys = fmt::format(words::terminal::kOverviewKeys, filter, order_text(view));
      break;
    case Screen::volumes:
      keys = fmt::format(words::terminal::kVolumesKeys, filter, order_text(view));
      break;
    case Screen::tenants:
      keys = fmt::format(words::terminal::kTenantsKeys, filter, order_text(view));
      break;
    case Screen::device:
      keys = fmt::format(words::terminal::kDeviceKeys, heat_name(view.heat));
      break;
    case Screen::help:
      keys = words::terminal::kHelpKeys;
      break;
  }
  grid.put(0, row, keys, Style::title);
}

void draw_help(Grid& grid, std::size_t top, std::size_t bottom, const State& state) {
  constexpr auto kKeys = std::to_array<std::pair<const char*, const char*>>({
      {"d v t", words::terminal::kHelpScreens},
      {words::terminal::kKeysSelect, words::terminal::kHelpSelect},
      {words::terminal::kKeysOpen, words::terminal::kHelpOpen},
      {words::terminal::kKeysBack, words::terminal::kHelpBack},
      {"/", words::terminal::kHelpFilter},
      {"s > <", words::terminal::kHelpSort},
      {"r", words::terminal::kHelpReverse},
      {"o", words::terminal::kHelpHeatmap},
      {words::terminal::kKeysPause, words::terminal::kHelpPause},
      {"[ ] { }", words::terminal::kHelpTime},
      {"n", words::shared::kNow},
      {"? q", words::terminal::kHelpQuit},
  });
  std::size_t row = top;
  for (const auto& [key, what] : kKeys) {
    if (row < bottom) {
      grid.put(0, row, key, Style::good);
      grid.put(14, row++, what);
    }
  }
  if (row + 2 < bottom) {
    grid.put(0, ++row, words::shared::kWhatIsNotMeasured, Style::title);
    ++row;
  }
  for (const Gap& gap : state.gaps.value_or(std::vector<Gap>())) {
    row = put_lines(grid, row, bottom, gap.what + ": " + gap.why, Style::plain);
  }
  if (!state.gaps || state.gaps->empty()) {
    put_lines(grid, row, bottom, state.gaps ? words::terminal::kEverySourceAnswers : words::terminal::kGapsNotKnown);
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

void Grid::make_ascii() {
  for (Cell& cell : cells_) {
    if (cell.glyph.size() > 1) {
      const auto* like =
          std::find_if(kAscii.begin(), kAscii.end(), [&](const auto& one) { return one.first == cell.glyph; });
      cell.glyph = like == kAscii.end() ? "?" : like->second;
    }
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

std::size_t put_lines(Grid& grid, std::size_t top, std::size_t bottom, std::string_view text, Style style) {
  for (const std::string& line : wrap(text, grid.width())) {
    if (top < bottom) {
      grid.put(0, top++, line, style);
    }
  }
  return top;
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
  switch (view.screen) {
    case Screen::overview:
      draw_drives(grid, row, bottom, state, view);
      break;
    case Screen::device:
      draw_device(grid, row, bottom, state, view);
      break;
    case Screen::volumes:
      draw_volumes(grid, row, bottom, state, view);
      break;
    case Screen::tenants:
      draw_tenants(grid, row, bottom, state, view);
      break;
    case Screen::help:
      draw_help(grid, row, bottom, state);
      break;
  }
  draw_keys(grid, view);
  if (!state.trouble.empty() && view.screen != Screen::help) {
    for (; row < bottom; ++row) {
      grid.fill(row, Style::faint);  // it is from before
    }
  }
  if (!utf8) {
    grid.make_ascii();
  }
  return grid;
}

}  // namespace ssdpulse::terminal
