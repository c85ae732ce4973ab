// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <set>

#include "daemon/base/complete.h"
#include "exporters/words/shared.h"
#include "exporters/words/terminal.h"

namespace ssdpulse::terminal {
namespace {

constexpr auto kOrders =
    util::names<Order>({words::shared::kWorst, words::shared::kName, words::terminal::kOrderReadP99,
                        words::terminal::kOrderWriteP99, words::shared::kIos, words::shared::kData});
constexpr auto kTenantOrders =
    util::names<Order>({words::terminal::kOrderMostData, words::shared::kName, words::terminal::kOrderDataRead,
                        words::terminal::kOrderDataWritten, words::shared::kIos, words::shared::kDeviceTimeHead});
constexpr auto kHeats = util::names<Heat>({"read", "write", "flush", "discard", "commit"});

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// `Row`: Drive, Volume or Tenant.

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

double figure(const Tenant& tenant, Order order) {
  return order == Order::read    ? tenant.read_bytes_per_second
         : order == Order::write ? tenant.written_bytes_per_second
         : order == Order::ios   ? tenant.ios_per_second
         : order == Order::bytes ? tenant.device_ratio
                                 : 0;
}

std::string words_of(const Drive& drive) {
  return drive.title + " " + drive.where + " " + drive.state + " " + drive.cause;
}

std::string words_of(const Volume& volume) {
  return volume.name + " " + volume.use + " " + volume.kind + " " + volume.where + " " + volume.state + " " +
         volume.health;
}

std::string words_of(const Tenant& tenant) { return tenant.name + " " + tenant.title + " " + tenant.drive; }

const std::string& id_of(const Drive& drive) { return drive.name; }
const std::string& id_of(const Volume& volume) { return volume.id; }
const std::string& id_of(const Tenant& tenant) { return tenant.name; }

const std::string& name_of(const Drive& drive) { return drive.name; }
const std::string& name_of(const Volume& volume) { return volume.use.empty() ? volume.name : volume.use; }
const std::string& name_of(const Tenant& tenant) { return tenant.title; }

template <typename Row>
bool fits(const Row& row, const std::string& wanted) {
  return lower(words_of(row)).find(wanted) != std::string::npos;
}

template <typename Row>
void sort(std::vector<const Row*>& rows, const View& view) {
  if (view.order == Order::name) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) { return name_of(*a) < name_of(*b); });
  } else if (view.order != Order::worst) {
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const Row* a, const Row* b) { return figure(*a, view.order) > figure(*b, view.order); });
  }
  if (view.reversed) {
    std::reverse(rows.begin(), rows.end());
  }
}

template <typename Row>
std::vector<const Row*> shown_of(const std::vector<Row>& all, const View& view) {
  std::vector<const Row*> rows;
  const std::string wanted = lower(view.filter);
  for (const Row& row : all) {
    if (fits(row, wanted)) {
      rows.push_back(&row);
    }
  }
  sort(rows, view);
  return rows;
}

template <typename Row>
const Row* chosen_or_first(const std::vector<const Row*>& rows, const std::string& id) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row* one) { return id_of(*one) == id; });
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

/// The id of the row that is `by` further down.
template <typename Row>
std::string moved(const std::string& id, std::ptrdiff_t by, const std::vector<const Row*>& rows) {
  if (rows.empty()) {
    return id;
  }
  const auto now = std::find(rows.begin(), rows.end(), chosen_or_first(rows, id)) - rows.begin();
  const auto next = std::clamp<std::ptrdiff_t>(now + by, 0, static_cast<std::ptrdiff_t>(rows.size()) - 1);
  return id_of(*rows[static_cast<std::size_t>(next)]);
}

/// What the screen may list.
struct Lists {
  const Overview& overview;
  const Volumes& volumes;
  const Tenants& tenants;
};

void move(View& view, std::ptrdiff_t by, const Lists& lists) {
  if (view.screen == Screen::volumes) {
    view.selected_volume = moved(view.selected_volume, by, shown(lists.volumes, view));
  } else if (view.screen == Screen::tenants) {
    view.selected_tenant = moved(view.selected_tenant, by, shown(lists.tenants, view));
  } else {
    view.selected = moved(view.selected, by, shown(lists.overview, view));
  }
}

/// Opens the drive that is selected.
void open(View& view, const Lists& lists) {
  const Drive* drive = view.screen == Screen::overview ? selected(lists.overview, view) : nullptr;
  const Volume* volume = view.screen == Screen::volumes ? selected(lists.volumes, view) : nullptr;
  if (drive != nullptr || (volume != nullptr && volume->is_drive)) {
    view.selected = drive != nullptr ? drive->name : volume->name;
    view.screen = Screen::device;
  }
}

bool is_list(Screen screen) { return screen != Screen::device && screen != Screen::help; }

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
  if (is_list(view.screen) && !view.filter.empty()) {
    view.filter.clear();
  } else {
    view.screen = Screen::overview;
  }
}

/// Its key once more leads back.
void toggle(View& view, Screen screen) { view.screen = view.screen == screen ? Screen::overview : screen; }

void turn_order(View& view, std::size_t by) {
  view.order = static_cast<Order>((static_cast<std::size_t>(view.order) + by) % kOrders.size());
}

void press_character(View& view, char character, const Lists& lists) {
  switch (character) {
    case 'q':
      view.over = true;
      break;
    case '?':
      toggle(view, Screen::help);
      break;
    case 'd':
      view.screen = Screen::overview;
      break;
    case 'v':
      toggle(view, Screen::volumes);
      break;
    case 't':
      toggle(view, Screen::tenants);
      break;
    case '/':
      view.screen = is_list(view.screen) ? view.screen : Screen::overview;
      view.typing = true;
      break;
    case 's':
    case '>':
      turn_order(view, 1);
      break;
    case '<':
      turn_order(view, kOrders.size() - 1);
      break;
    case 'r':
      view.reversed = !view.reversed;
      break;
    case 'o':
      view.heat = static_cast<Heat>((static_cast<std::size_t>(view.heat) + 1) % kHeats.size());
      break;
    case 'p':
    case ' ':
      view.paused = !view.paused;
      break;
    case '[':
      step(view, -60, lists.overview);
      break;
    case ']':
      step(view, 60, lists.overview);
      break;
    case '{':
      step(view, -3600, lists.overview);
      break;
    case '}':
      step(view, 3600, lists.overview);
      break;
    case 'n':
      view.at.reset();
      break;
    case 'j':
      move(view, 1, lists);
      break;
    case 'k':
      move(view, -1, lists);
      break;
    case 'l':
      open(view, lists);
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
std::vector<const Tenant*> shown(const Tenants& tenants, const View& view) { return shown_of(tenants.tenants, view); }

std::vector<const Volume*> shown(const Volumes& volumes, const View& view) {
  const std::vector<Volume>& all = volumes.volumes;
  const auto end_of = [&](std::size_t first) {
    std::size_t end = first;
    while (end < all.size() && all[end].stack == all[first].stack) {
      ++end;
    }
    return end;
  };
  std::vector<const Volume*> stacks;  // the first line of each
  const std::string wanted = lower(view.filter);
  for (std::size_t i = 0; i < all.size(); i = end_of(i)) {
    if (std::any_of(&all[i], all.data() + end_of(i), [&](const Volume& one) { return fits(one, wanted); })) {
      stacks.push_back(&all[i]);
    }
  }
  sort(stacks, view);
  std::vector<const Volume*> lines;
  std::set<std::string> listed;
  for (const Volume* stack : stacks) {
    const auto first = static_cast<std::size_t>(stack - all.data());
    std::size_t deepest = std::numeric_limits<std::size_t>::max();  // what lies below is listed already
    for (std::size_t i = first; i < end_of(first); ++i) {
      if (all[i].depth <= deepest) {
        lines.push_back(&all[i]);
        deepest = listed.insert(all[i].name).second ? std::numeric_limits<std::size_t>::max() : all[i].depth;
      }
    }
  }
  return lines;
}

const Drive* selected(const Overview& overview, const View& view) {
  return chosen_or_first(shown(overview, view), view.selected);
}
const Volume* selected(const Volumes& volumes, const View& view) {
  return chosen_or_first(shown(volumes, view), view.selected_volume);
}
const Tenant* selected(const Tenants& tenants, const View& view) {
  return chosen_or_first(shown(tenants, view), view.selected_tenant);
}

void press(View& view, const Press& press, const Overview& overview, const Volumes& volumes, const Tenants& tenants) {
  constexpr std::ptrdiff_t kPage = 10;  // lines
  constexpr std::ptrdiff_t kAll = 1'000'000;
  if (view.typing) {
    type(view, press);
    return;
  }
  const Lists lists{overview, volumes, tenants};
  switch (press.key) {
    case Key::character:
      press_character(view, press.character, lists);
      break;
    case Key::up:
      move(view, -1, lists);
      break;
    case Key::down:
      move(view, 1, lists);
      break;
    case Key::page_up:
      move(view, -kPage, lists);
      break;
    case Key::page_down:
      move(view, kPage, lists);
      break;
    case Key::home:
      move(view, -kAll, lists);
      break;
    case Key::end:
      move(view, kAll, lists);
      break;
    case Key::enter:
    case Key::right:
      open(view, lists);
      break;
    case Key::escape:
    case Key::left:
    case Key::backspace:
      go_back(view);
      break;
  }
}

std::string order_text(const View& view) {
  const auto order = static_cast<std::size_t>(view.order);
  const std::string text((view.screen == Screen::tenants ? kTenantOrders : kOrders)[order]);
  return view.reversed ? fmt::format(words::terminal::kOrderReversed, text) : text;
}

std::string_view heat_name(Heat heat) { return kHeats[static_cast<std::size_t>(heat)]; }

}  // namespace ssdpulse::terminal
