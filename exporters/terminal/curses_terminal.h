// SPDX-License-Identifier: Apache-2.0
// CursesTerminal: shows a grid on a terminal and reads keys, with ncurses, which handles resizes and colours.
#pragma once

#include <chrono>
#include <optional>

#include "exporters/terminal/top_screen.h"
#include "exporters/terminal/top_view.h"

namespace ssdpulse::terminal {

/// The terminal of this process, of which there is one. The destructor restores it: on SIGINT, SIGTERM and SIGHUP,
/// interrupted() becomes true, and the owner should destroy it. It is also restored while the process is stopped
/// (SIGTSTP).
class CursesTerminal {
 public:
  explicit CursesTerminal(bool colours);
  ~CursesTerminal();
  CursesTerminal(const CursesTerminal&) = delete;
  CursesTerminal& operator=(const CursesTerminal&) = delete;

  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] std::size_t height() const;
  void show(const Grid& grid);

  /// Waits for a key. Nothing if none came in time, or if the size has changed.
  std::optional<Press> key(std::chrono::milliseconds timeout);

  [[nodiscard]] static bool interrupted();

 private:
  bool colours_;
};

}  // namespace ssdpulse::terminal
