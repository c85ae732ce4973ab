// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <string>

#include "exporters/terminal/top_screen.h"
#include "exporters/terminal/top_table.h"
#include "exporters/terminal/top_words.h"

namespace ssdpulse::terminal {
namespace {

bool is_idle(const Volume& volume) { return volume.read.ios_per_second + volume.write.ios_per_second == 0; }

std::string tail(const Volume& volume, const Tails& tails, const std::optional<double>& value) {
  return !volume.measured ? "?" : tails.ios_per_second > 0 ? latency_text(value) : "-";
}

/// Of many kinds of volumes it cannot be known.
std::string added(const Volume& volume) {
  return volume.added_seconds ? latency_text(volume.added_seconds) : volume.measured && is_idle(volume) ? "-" : "?";
}

std::string known(const Volume& volume, double value, std::string (*format)(std::optional<double>)) {
  return volume.measured ? format(value) : "?";
}

// Which column goes first on a narrow screen is documented in ssdpulse(1).
constexpr Column<Volume> kColumns[] = {
    {"kind", 10, 4, [](const Volume& v) { return first_characters(v.kind, 9); }},
    {"r p50", 7, 5, [](const Volume& v) { return tail(v, v.read, v.read.p50); }},
    {"r p99", 7, 1, [](const Volume& v) { return tail(v, v.read, v.read.p99); }},
    {"w p50", 7, 5, [](const Volume& v) { return tail(v, v.write, v.write.p50); }},
    {"w p99", 7, 1, [](const Volume& v) { return tail(v, v.write, v.write.p99); }},
    {"adds", 7, 2, [](const Volume& v) { return added(v); }},
    {"r/s", 7, 6, [](const Volume& v) { return known(v, v.read.ios_per_second, count_text); }},
    {"w/s", 7, 6, [](const Volume& v) { return known(v, v.write.ios_per_second, count_text); }},
    {"r B/s", 7, 3, [](const Volume& v) { return known(v, v.read.bytes_per_second, bytes_text); }},
    {"w B/s", 7, 3, [](const Volume& v) { return known(v, v.write.bytes_per_second, bytes_text); }},
};

constexpr std::size_t kStateWidth = 10;

constexpr Table<Volume> kVolumes{
    .head = "volume",
    .state_head = "health",
    .state_width = kStateWidth,
    .columns = kColumns,
    .last_importance = 6,
    .always_shown = 5,
    .note_width = 32,
    .state = [](const Volume& v) { return first_characters(v.state, kStateWidth - 1); },
    .note = [](const Volume& v) { return v.health.empty() ? v.where : v.health; },
    .style =
        [](const Volume& v) { return v.bad                      ? Style::bad
                                     : v.measured && is_idle(v) ? Style::faint
                                                                : Style::plain; },
};

/// What the table does not say.
std::string remark(const Volumes& volumes) {
  if (volumes.volumes.empty()) {
    return "this host has no volumes (LVM, LUKS, md and the like)";
  }
  if (!volumes.not_measured.empty()) {
    return "volumes are not measured: " + volumes.not_measured;
  }
  return volumes.left_out > 0 ? fmt::format("{:.0f} more are not listed", volumes.left_out) : "";
}

}  // namespace

void draw_volumes(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view) {
  if (view.at && top < bottom) {
    grid.put(0, top, "the history does not have volumes: n shows them as of now", Style::faint);
  }
  if (view.at || !state.volumes) {
    return;
  }
  for (const std::string& line : wrap(remark(*state.volumes), grid.width())) {
    if (top < bottom) {
      grid.put(0, top++, line, Style::faint);
    }
  }
  if (state.volumes->volumes.empty() || top >= bottom) {
    return;
  }
  const auto volumes = shown(*state.volumes, view);
  draw_table(grid, top, bottom, kVolumes, volumes, selected(*state.volumes, view));
  if (volumes.empty()) {
    grid.put(0, top + 1, "no volume fits the filter", Style::faint);
  }
}

}  // namespace ssdpulse::terminal
