// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/top_view.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "daemon/base/complete.h"

namespace ssdpulse::terminal {
namespace {

constexpr auto kOrders = util::names<Order>({"worst first", "name", "read p99", "write p99", "I/Os", "data"});
constexpr auto kHeats = util::names<Heat>({"read", "write", "flush", "discard", "commit"});

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

double figure(const Drive& drive, Order order) {
  switch (order) {
    case Order::read:
      return drive.read.p99.value_or(-1);
    case Order::write:
      return drive.write.p99.value_or(-1);
    case Order::ios:
      return drive.read.ios_per_second + drive.write.ios_per_second;
    case Order::bytes:
      return drive.read.bytes_per_second + drive.write.bytes_per_second;
    case Order::worst:
    case Order::name:
      break;
  }
  return 0;
}

void type(View& view, const Press& press) {
  if (press.key == Key::character && press.character >= ' ' && view.filter.size() < 64) {
    view.filter += press.character;
  } else if (press.key == Key::backspace && !view.filter.empty()) {
    view.filter.pop_back();
  } else if (press.key == Key::escape) {
    view.filter.clear();
    view.typing = false;
  } else if (press.key == Key::enter) {
    view.typing = false;
  }
}

void move(View& view, int by, const Overview& overview) {
  const auto drives = shown(overview, view);
  if (drives.empty()) {
    return;
  }
  const auto now = std::find(drives.begin(), drives.end(), selected(overview, view)) - drives.begin();
  const auto next = std::clamp<std::ptrdiff_t>(now + by, 0, static_cast<std::ptrdiff_t>(drives.size()) - 1);
  view.selected = drives[static_cast<std::size_t>(next)]->name;
}

/// A step beyond the present ends at the present.
void step(View& view, double seconds, const Overview& overview) {
  if (!view.at && seconds > 0) {
    return;
  }
  const double next = view.at.value_or(overview.taken_at) + seconds;
  // The newest answer may be of the past, so the present is not known here: the caller bounds the time.
  view.at = next > 0 ? next : 0;
}

void go_back(View& view) {
  if (view.screen != Screen::overview) {
    view.screen = Screen::overview;
  } else {
    view.filter.clear();
  }
}

void press_character(View& view, char character, const Overview& overview) {
  switch (character) {
    case 'q':
      view.over = true;
      break;
    case '?':
      view.screen = view.screen == Screen::help ? Screen::overview : Screen::help;
      break;
    case '/':
      view.screen = Screen::overview;
      view.typing = true;
      break;
    case 's':
      view.order = static_cast<Order>((static_cast<std::size_t>(view.order) + 1) % kOrders.size());
      break;
    case 'o':
      view.heat = static_cast<Heat>((static_cast<std::size_t>(view.heat) + 1) % kHeats.size());
      break;
    case 'p':
    case ' ':
      view.paused = !view.paused;
      break;
    case '[':
      step(view, -60, overview);
      break;
    case ']':
      step(view, 60, overview);
      break;
    case '{':
      step(view, -3600, overview);
      break;
    case '}':
      step(view, 3600, overview);
      break;
    case 'n':
      view.at.reset();
      break;
    case 'j':
      move(view, 1, overview);
      break;
    case 'k':
      move(view, -1, overview);
      break;
    case 'l':
      press(view, {Key::enter}, overview);
      break;
    case 'h':
      go_back(view);
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<const Drive*> shown(const Overview& overview, const View& view) {
  std::vector<const Drive*> drives;
  const std::string wanted = lower(view.filter);
  for (const Drive& drive : overview.drives) {
    if (lower(drive.title + " " + drive.where + " " + drive.state + " " + drive.cause).find(wanted) !=
        std::string::npos) {
      drives.push_back(&drive);
    }
  }
  if (view.order == Order::name) {
    std::stable_sort(drives.begin(), drives.end(), [](const Drive* a, const Drive* b) { return a->name < b->name; });
  } else if (view.order != Order::worst) {
    std::stable_sort(drives.begin(), drives.end(),
                     [&](const Drive* a, const Drive* b) { return figure(*a, view.order) > figure(*b, view.order); });
  }
  return drives;
}

const Drive* selected(const Overview& overview, const View& view) {
  const auto drives = shown(overview, view);
  const auto found =
      std::find_if(drives.begin(), drives.end(), [&](const Drive* one) { return one->name == view.selected; });
  return found != drives.end() ? *found : drives.empty() ? nullptr : drives.front();
}

void press(View& view, const Press& press, const Overview& overview) {
  if (view.typing) {
    type(view, press);
    return;
  }
  switch (press.key) {
    case Key::character:
      press_character(view, press.character, overview);
      break;
    case Key::up:
      move(view, -1, overview);
      break;
    case Key::down:
      move(view, 1, overview);
      break;
    case Key::enter:
    case Key::right:
      if (const Drive* drive = selected(overview, view); drive != nullptr && view.screen == Screen::overview) {
        view.selected = drive->name;
        view.screen = Screen::device;
      }
      break;
    case Key::escape:
    case Key::left:
    case Key::backspace:
      go_back(view);
      break;
  }
}

std::string_view order_name(Order order) { return kOrders[static_cast<std::size_t>(order)]; }
std::string_view heat_name(Heat heat) { return kHeats[static_cast<std::size_t>(heat)]; }

}  // namespace ssdpulse::terminal
