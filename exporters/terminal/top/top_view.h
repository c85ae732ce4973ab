// SPDX-License-Identifier: Apache-2.0
// View: what the person at the terminal wants to see. All that keys change, and nothing that the daemon reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exporters/terminal/top/top_data.h"

namespace ssdpulse::top {

enum class Screen : std::uint8_t { overview, device, help };
enum class Order : std::uint8_t { need, name, read, write, ios, bytes };  // need: as the daemon sorts; read, write: p99
enum class Heat : std::uint8_t { read, write, flush, discard, commit };

enum class Key : std::uint8_t { character, enter, escape, backspace, up, down, left, right };
struct Press {
  Key key = Key::character;
  char character = 0;  // of Key::character
};

struct View {
  Screen screen = Screen::overview;
  Order order = Order::need;
  Heat heat = Heat::read;
  std::string filter;
  bool typing = false;  // into the filter
  bool paused = false;
  std::optional<double> at;  // the time in the past that is shown, in seconds since the epoch; nothing: now
  std::string selected;      // name; empty: the first
  bool over = false;         // the person wants to quit
};

/// The drives that the filter leaves, in the wanted order. They point into `overview`.
std::vector<const Drive*> shown(const Overview& overview, const View& view);

/// The one that is selected; null if there is none to select.
const Drive* selected(const Overview& overview, const View& view);

void press(View& view, const Press& press, const Overview& overview);

std::string_view order_name(Order order);
std::string_view heat_name(Heat heat);

}  // namespace ssdpulse::top
