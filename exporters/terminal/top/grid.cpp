// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/top/grid.h"

#include <algorithm>

namespace ssdpulse::top {
namespace {

/// The length of the character that begins with this byte; 0: none does.
std::size_t length_of(unsigned char first) {
  return first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : (first & 0xF0) == 0xE0 ? 3 : 0;
}

/// Latin and Greek letters, punctuation, arrows, blocks and shapes are one place wide in every font.
bool is_narrow(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1) {
    return byte(0) >= 0x20 && byte(0) < 0x7F;
  }
  const unsigned code = character.size() == 2 ? (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F)
                                              : (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  return (code >= 0xA1 && code < 0x300 && code != 0xAD) || (code >= 0x370 && code < 0x400 && code != 0x37E) ||
         (code >= 0x2010 && code < 0x2028) || code == 0x2030 || (code >= 0x2190 && code < 0x2200) ||
         (code >= 0x2500 && code < 0x2600) || code == 0x2713;
}

}  // namespace

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const std::size_t length = length_of(static_cast<unsigned char>(text.front()));
    const auto follows = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
    const bool whole = length > 0 && length <= text.size() &&
                       std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length), follows);
    const auto character = text.substr(0, whole ? length : 1);
    result.emplace_back(whole && is_narrow(character) ? character : "?");
    text.remove_prefix(character.size());
    while (!whole && !text.empty() && follows(text.front())) {  // the rest of an invalid or a long character
      text.remove_prefix(1);
    }
  }
  return result;
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
  const std::size_t place = std::min(end, width_);
  if (all.size() > place) {
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(place));
  }
  std::size_t x = place - all.size();
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

}  // namespace ssdpulse::top
