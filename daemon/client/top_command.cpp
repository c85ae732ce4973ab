// SPDX-License-Identifier: Apache-2.0
// Asks once a second, draws, and listens to keys in between.
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "daemon/client/commands.h"
#include "exporters/terminal/top/curses_terminal.h"
#include "exporters/terminal/top/top_screen.h"

namespace ssdpulse::client {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTick{1};
constexpr std::size_t kWidthOfText = 160;  // where there is no terminal

/// What the screen needs now. Answers that do not come leave the last ones, and say so.
void ask(Api& api, const top::View& view, top::State& state, Clock::time_point& status_at) {
  const auto devices = api.get("devices");
  state.trouble = devices ? "" : devices.error().message;
  if (!devices) {
    return;
  }
  state.overview = top::overview_from(*devices);
  if (Clock::now() >= status_at) {
    if (const auto status = api.get("status")) {
      state.gaps = top::gaps_from(*status);
    }
    status_at = Clock::now() + std::chrono::seconds(30);
  }
  if (view.screen == top::Screen::device) {
    const auto live = api.get("devices/" + view.selected + "/live?heat=" + std::string(heat_name(view.heat)));
    state.seconds = live ? std::optional(top::seconds_from(*live)) : std::nullopt;
  }
}

bool wants(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool is_utf8() { return std::string_view(::nl_langinfo(CODESET)) == "UTF-8"; }

bool dumb() {
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr || std::string_view(terminal) == "dumb" || ::isatty(STDOUT_FILENO) == 0 ||
         ::isatty(STDIN_FILENO) == 0;
}

bool print_once(Api& api, top::State& state) {
  Clock::time_point status_at{};
  ask(api, {}, state, status_at);
  if (!state.overview) {
    std::cerr << state.trouble << '\n';
    return false;
  }
  winsize size{};
  const bool sized = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const std::size_t rows = state.overview->drives.size() + 20;
  auto text = top::draw(state, {}, sized ? size.ws_col : kWidthOfText, rows, is_utf8()).text();
  text.erase(text.rfind('\n', text.size() - 2));  // no keys
  text.erase(text.find_last_not_of('\n') + 1);
  std::cout << text << '\n';
  return true;
}

void run(Api& api, top::State& state) {
  top::CursesTerminal terminal(!wants("NO_COLOR"));
  top::View view;
  Clock::time_point status_at{};
  auto due = Clock::now();
  while (!view.over && !top::CursesTerminal::interrupted()) {
    if (!view.paused && Clock::now() >= due) {
      ask(api, view, state, status_at);
      due = Clock::now() + kTick;
    }
    terminal.show(top::draw(state, view, terminal.width(), terminal.height(), is_utf8()));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now());
    const auto before = std::pair(view.screen, view.heat);
    if (const auto pressed = terminal.key(view.paused ? std::chrono::milliseconds(kTick)
                                                      : std::max(left, std::chrono::milliseconds(1)))) {
      press(view, *pressed, state.overview.value_or(top::Overview{}));
    }
    if (before != std::pair(view.screen, view.heat)) {
      state.seconds.reset();
      due = Clock::now();  // what is new on the screen is not known yet
      if (view.paused && view.screen == top::Screen::device) {
        ask(api, view, state, status_at);
      }
    }
  }
}

}  // namespace

bool top(const Where& where, const config::Web& web, const TopOptions& options) {
  std::setlocale(LC_ALL, "");
  auto api = Api::open(where, web);
  if (!api) {
    std::cerr << api.error().message << '\n';
    return false;
  }
  if (options.json) {
    const auto devices = api->get("devices");
    if (!devices) {
      std::cerr << devices.error().message << '\n';
      return false;
    }
    std::cout << devices->dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return true;
  }
  ssdpulse::top::State state;
  state.address = api->address();
  if (options.once || dumb()) {
    return print_once(*api, state);
  }
  run(*api, state);
  return true;
}

}  // namespace ssdpulse::client
