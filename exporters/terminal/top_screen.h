// SPDX-License-Identifier: Apache-2.0
// Grid: the screen's content, before there is a terminal: rows of cells, each a character of one column, and a style.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporters/terminal/top_view.h"

namespace ssdpulse::terminal {

enum class Style : std::uint8_t { plain, faint, title, good, bad, selected, heat1, heat2, heat3, heat4 };

struct Cell {
  std::string glyph = " ";  // one character, UTF-8
  Style style = Style::plain;
  bool operator==(const Cell&) const = default;
};

class Grid {
 public:
  Grid(std::size_t width, std::size_t height) : width_(width), height_(height), cells_(width * height) {}

  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::size_t height() const { return height_; }
  [[nodiscard]] const Cell& at(std::size_t x, std::size_t y) const { return cells_.at(y * width_ + x); }

  /// Writes from (x, y) to the right; what does not fit is left out. Characters that are not one column wide (controls,
  /// combining marks, wide ones) become '?', and so do bytes that are not UTF-8. Returns the column after the last.
  std::size_t put(std::size_t x, std::size_t y, std::string_view text, Style style = Style::plain);
  /// Writes text that ends at column `end`, exclusive; what does not fit is cut at its beginning.
  void put_right(std::size_t end, std::size_t y, std::string_view text, Style style = Style::plain);
  void fill(std::size_t y, Style style);  // the style of a whole row
  void make_ascii();                      // what ASCII lacks becomes the character that is most like it

  /// Lines without blanks at their ends.
  [[nodiscard]] std::string text() const;

 private:
  std::size_t width_;
  std::size_t height_;
  std::vector<Cell> cells_;
};

/// The characters of a text, as put() takes them.
std::vector<std::string> characters(std::string_view text);

/// At most so many of them.
std::string first_characters(std::string_view text, std::size_t count);

/// Breaks at blanks, into lines of at most `width` characters; longer words are cut.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

// draw(): the screen, as a pure function of the daemon's answers, what the person wants, and how much room there is.

/// All answers so far.
struct State {
  std::string address;
  std::string host;                      // empty: not known yet
  std::optional<Overview> overview;      // nothing: there was no answer yet
  std::optional<Seconds> seconds;        // of the selected drive, while it is shown
  std::optional<Volumes> volumes;        // while they are shown
  std::optional<Tenants> tenants;        // likewise
  std::optional<std::vector<Gap>> gaps;  // nothing: there was no answer yet
  std::string trouble;                   // why there is no answer now; empty: there is one
};

/// `utf8`: whether the terminal shows it; otherwise ASCII is drawn.
Grid draw(const State& state, const View& view, std::size_t width, std::size_t height, bool utf8);

// Parts of it, from the row `top` up to `bottom`, exclusive.
void draw_drives(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view);
void draw_volumes(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view);
void draw_tenants(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view);
void draw_device(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view);

/// A text in as many rows as it needs and there are, faint unless another style is given. Returns the row below it.
std::size_t put_lines(Grid& grid, std::size_t top, std::size_t bottom, std::string_view text,
                      Style style = Style::faint);

}  // namespace ssdpulse::terminal
