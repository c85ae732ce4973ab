// SPDX-License-Identifier: Apache-2.0
// draw(): the screen, as a pure function of the daemon's answers, what the person wants, and how much room there is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exporters/terminal/top/grid.h"
#include "exporters/terminal/top/top_view.h"

namespace ssdpulse::top {

/// All answers so far.
struct State {
  std::string address;
  std::optional<Overview> overview;  // nothing: there was no answer yet
  std::optional<Seconds> seconds;    // of the selected drive, while it is shown
  std::vector<Gap> gaps;
  std::string trouble;  // why there is no answer now; empty: there is one
};

/// `utf8`: whether the terminal shows it; otherwise ASCII is drawn.
Grid draw(const State& state, const View& view, std::size_t width, std::size_t height, bool utf8);

// Parts of it, from the row `top` up to `bottom`, exclusive.
void draw_drives(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view);
void draw_device(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view, bool utf8);

}  // namespace ssdpulse::top
