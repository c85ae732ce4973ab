// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/curses_terminal.h"

#define NCURSES_NOMACROS 1
#include <ncurses.h>
#include <signal.h>

#include <algorithm>
#include <array>

namespace ssdpulse::terminal {
namespace {

volatile sig_atomic_t stopped_by_signal = 0;
volatile sig_atomic_t is_to_pause = 0;

void on_signal(int) { stopped_by_signal = 1; }
void on_stop(int) { is_to_pause = 1; }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

/// The background is the terminal's own.
void set_colours() {
  start_color();
  use_default_colors();
  const bool many = COLORS >= 256;
  // Cividis from few to many; with eight colours, the closest ones.
  constexpr auto kHeat = std::to_array<short>({24, 59, 143, 220});
  constexpr auto kHeatOfEight = std::to_array<short>({COLOR_BLUE, COLOR_CYAN, COLOR_YELLOW, COLOR_WHITE});
  const auto pair = [](Style style, short colour) {
    init_pair(static_cast<short>(static_cast<int>(style) + 1), colour, -1);
  };
  pair(Style::good, many ? static_cast<short>(75) : static_cast<short>(COLOR_CYAN));
  pair(Style::bad, many ? static_cast<short>(208) : static_cast<short>(COLOR_YELLOW));
  for (std::size_t i = 0; i < kHeat.size(); ++i) {
    pair(static_cast<Style>(static_cast<std::size_t>(Style::heat1) + i), many ? kHeat[i] : kHeatOfEight[i]);
  }
}

/// Releases the terminal, stops as the signal does by default, and redraws everything once the process continues.
/// ncurses' own handler would do so anywhere, even during a resize within wgetch(), and crash.
void pause_here() {
  is_to_pause = 0;
  ::endwin();
  handle(SIGTSTP, SIG_DFL);
  ::raise(SIGTSTP);
  handle(SIGTSTP, on_stop);
  ::clearok(curscr, TRUE);
  ::wrefresh(stdscr);
}

attr_t attributes_of(Style style, bool colours) {
  switch (style) {
    case Style::plain:
      return A_NORMAL;
    case Style::faint:
      return A_DIM;
    case Style::title:
      return A_REVERSE;
    case Style::selected:
      return A_REVERSE | A_BOLD;
    case Style::bad:
    case Style::good:
      return A_BOLD | (colours ? static_cast<attr_t>(COLOR_PAIR(static_cast<int>(style) + 1)) : A_NORMAL);
    default:
      return colours ? static_cast<attr_t>(COLOR_PAIR(static_cast<int>(style) + 1)) : A_NORMAL;
  }
}

}  // namespace

CursesTerminal::CursesTerminal(bool colours) : colours_(colours) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    handle(signal, on_signal);
  }
  handle(SIGTSTP, on_stop);  // before initscr(), which leaves existing handlers alone
  ::initscr();
  ::cbreak();
  ::noecho();
  ::keypad(stdscr, TRUE);
  ::curs_set(0);
  ::set_escdelay(50);
  colours_ = colours && has_colors();
  if (colours_) {
    set_colours();
  }
}

CursesTerminal::~CursesTerminal() {
  ::endwin();
  handle(SIGTSTP, SIG_DFL);
}

std::size_t CursesTerminal::width() const { return static_cast<std::size_t>(std::max(0, getmaxx(stdscr))); }
std::size_t CursesTerminal::height() const { return static_cast<std::size_t>(std::max(0, getmaxy(stdscr))); }

void CursesTerminal::show(const Grid& grid) {
  ::werase(stdscr);
  for (std::size_t y = 0; y < grid.height(); ++y) {
    for (std::size_t x = 0; x < grid.width(); ++x) {
      const Cell& cell = grid.at(x, y);
      ::wattrset(stdscr, static_cast<int>(attributes_of(cell.style, colours_)));
      ::mvwaddstr(stdscr, static_cast<int>(y), static_cast<int>(x), cell.glyph.c_str());
    }
  }
  ::wrefresh(stdscr);
}

std::optional<Press> CursesTerminal::key(std::chrono::milliseconds timeout) {
  ::wtimeout(stdscr, static_cast<int>(timeout.count()));
  const int code = ::wgetch(stdscr);
  if (is_to_pause != 0) {
    pause_here();
  }
  switch (code) {
    case ERR:
    case KEY_RESIZE:
      return std::nullopt;
    case KEY_UP:
      return Press{Key::up};
    case KEY_DOWN:
      return Press{Key::down};
    case KEY_LEFT:
      return Press{Key::left};
    case KEY_RIGHT:
      return Press{Key::right};
    case KEY_PPAGE:
      return Press{Key::page_up};
    case KEY_NPAGE:
      return Press{Key::page_down};
    case KEY_HOME:
      return Press{Key::home};
    case KEY_END:
      return Press{Key::end};
    case KEY_ENTER:
    case '\n':
    case '\r':
      return Press{Key::enter};
    case 27:
      return Press{Key::escape};
    case KEY_BACKSPACE:
    case 127:
    case 8:
      return Press{Key::backspace};
    default:
      return code >= ' ' && code < 127 ? std::optional(Press{Key::character, static_cast<char>(code)}) : std::nullopt;
  }
}

bool CursesTerminal::interrupted() { return stopped_by_signal != 0; }

}  // namespace ssdpulse::terminal
