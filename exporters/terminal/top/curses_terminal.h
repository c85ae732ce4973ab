// SPDX-License-Identifier: Apache-2.0
// How does a grid get onto a terminal, and keys from it? ncurses: resizes, stops and colours are its business.
#pragma once

#include <chrono>
#include <optional>

#include "exporters/terminal/top/grid.h"
#include "exporters/terminal/top/top_view.h"

namespace ssdpulse::top {

/// The terminal of this process, of which there is one. It is restored when this object ends, also on SIGINT, SIGTERM
/// and SIGHUP (interrupted() is true then), and while the process is stopped.
class CursesTerminal {
 public:
  explicit CursesTerminal(bool colours);
  ~CursesTerminal();
  CursesTerminal(const CursesTerminal&) = delete;
  CursesTerminal& operator=(const CursesTerminal&) = delete;

  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] std::size_t height() const;
  void show(const Grid& grid);

  /// Nothing if no key came in time, or if the size has changed.
  std::optional<Press> key(std::chrono::milliseconds patience);

  [[nodiscard]] static bool interrupted();

 private:
  bool colours_;
};

}  // namespace ssdpulse::top
