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

// `Row`: Drive or Volume.

template <typename Row>
double figure(const Row& row, Order order) {
  switch (order) {
    case Order::read:
      return row.read.p99.value_or(-1);
    case Order::write:
      return row.write.p99.value_or(-1);
    case Order::ios:
      return row.read.ios_per_second + row.write.ios_per_second;
    case Order::bytes:
      return row.read.bytes_per_second + row.write.bytes_per_second;
    case Order::worst:
    case Order::name:
      break;
  }
  return 0;
}

std::string words_of(const Drive& drive) {
  return drive.title + " " + drive.where + " " + drive.state + " " + drive.cause;
}

std::string words_of(const Volume& volume) {
  return volume.name + " " + volume.use + " " + volume.kind + " " + volume.where + " " + volume.state + " " +
         volume.health;
}

template <typename Row>
std::vector<const Row*> shown_of(const std::vector<Row>& all, const View& view) {
  std::vector<const Row*> rows;
  const std::string wanted = lower(view.filter);
  for (const Row& row : all) {
    if (lower(words_of(row)).find(wanted) != std::string::npos) {
      rows.push_back(&row);
    }
  }
  if (view.order == Order::name) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) { return a->name < b->name; });
  } else if (view.order != Order::worst) {
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const Row* a, const Row* b) { return figure(*a, view.order) > figure(*b, view.order); });
  }
  return rows;
}

template <typename Row>
const Row* named_or_first(const std::vector<const Row*>& rows, const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row* one) { return one->name == name; });
  return found != rows.end() ? *found : rows.empty() ? nullptr : rows.front();
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

/// The name of the row that is `by` further down.
template <typename Row>
std::string moved(const std::string& name, int by, const std::vector<const Row*>& rows) {
  if (rows.empty()) {
    return name;
  }
  const auto now = std::find(rows.begin(), rows.end(), named_or_first(rows, name)) - rows.begin();
  const auto next = std::clamp<std::ptrdiff_t>(now + by, 0, static_cast<std::ptrdiff_t>(rows.size()) - 1);
  return rows[static_cast<std::size_t>(next)]->name;
}

void move(View& view, int by, const Overview& overview, const Volumes& volumes) {
  if (view.screen == Screen::volumes) {
    view.selected_volume = moved(view.selected_volume, by, shown(volumes, view));
  } else {
    view.selected = moved(view.selected, by, shown(overview, view));
  }
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
  const bool filtered_volumes = view.screen == Screen::volumes && !view.filter.empty();
  if (view.screen != Screen::overview && !filtered_volumes) {
    view.screen = Screen::overview;
  } else {
    view.filter.clear();
  }
}

void press_character(View& view, char character, const Overview& overview, const Volumes& volumes) {
  switch (character) {
    case 'q':
      view.over = true;
      break;
    case '?':
      view.screen = view.screen == Screen::help ? Screen::overview : Screen::help;
      break;
    case 'v':
      view.screen = view.screen == Screen::volumes ? Screen::overview : Screen::volumes;
      break;
    case '/':
      view.screen = view.screen == Screen::volumes ? view.screen : Screen::overview;
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
      move(view, 1, overview, volumes);
      break;
    case 'k':
      move(view, -1, overview, volumes);
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

std::vector<const Drive*> shown(const Overview& overview, const View& view) { return shown_of(overview.drives, view); }
std::vector<const Volume*> shown(const Volumes& volumes, const View& view) { return shown_of(volumes.volumes, view); }

const Drive* selected(const Overview& overview, const View& view) {
  return named_or_first(shown(overview, view), view.selected);
}
const Volume* selected(const Volumes& volumes, const View& view) {
  return named_or_first(shown(volumes, view), view.selected_volume);
}

void press(View& view, const Press& press, const Overview& overview, const Volumes& volumes) {
  if (view.typing) {
    type(view, press);
    return;
  }
  switch (press.key) {
    case Key::character:
      press_character(view, press.character, overview, volumes);
      break;
    case Key::up:
      move(view, -1, overview, volumes);
      break;
    case Key::down:
      move(view, 1, overview, volumes);
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
