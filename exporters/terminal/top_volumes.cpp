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
  return volume.measured && tails.ios_per_second == 0 ? "none"
                                                      : milliseconds_text(volume.measured ? value : std::nullopt);
}

/// Of many kinds of volumes it cannot be known.
std::string added(const Volume& volume) {
  return volume.measured && is_idle(volume) && !volume.is_drive ? "none" : milliseconds_text(volume.added_seconds);
}

std::string known(const Volume& volume, double value, std::string (*format)(std::optional<double>)) {
  return format(volume.measured ? std::optional(value) : std::nullopt);
}

// Which column goes first on a narrow screen is documented in ssdpulse(1).
constexpr Column<Volume> kColumns[] = {
    {"kind", "", 10, 4, [](const Volume& v) { return v.kind; }},
    {"Read", "p50 ms", 8, 5, [](const Volume& v) { return tail(v, v.read, v.read.p50); }},
    {"Read", "p99 ms", 8, 1, [](const Volume& v) { return tail(v, v.read, v.read.p99); }},
    {"Write", "p50 ms", 8, 5, [](const Volume& v) { return tail(v, v.write, v.write.p50); }},
    {"Write", "p99 ms", 8, 1, [](const Volume& v) { return tail(v, v.write, v.write.p99); }},
    {"Adds", "ms", 7, 2, [](const Volume& v) { return added(v); }},
    {"Reads", "/s", 9, 6, [](const Volume& v) { return known(v, v.read.ios_per_second, rate_text); }},
    {"Writes", "/s", 9, 6, [](const Volume& v) { return known(v, v.write.ios_per_second, rate_text); }},
    {"Read", "MB/s", 8, 3, [](const Volume& v) { return known(v, v.read.bytes_per_second, megabytes_text); }},
    {"Written", "MB/s", 8, 3, [](const Volume& v) { return known(v, v.write.bytes_per_second, megabytes_text); }},
};

constexpr Table<Volume> kVolumes{
    .head = "Volume",
    .state_head = "Health",
    .columns = kColumns,
    .last_importance = 6,
    .always_shown = 5,
    .name_share = 3,
    .label =
        [](const Volume& v, std::size_t width) {
          const std::size_t indent = std::min(2 * v.depth, width / 2);
          return std::string(indent, ' ') + drive_text(v.use, v.name, width - indent);
        },
    .state = [](const Volume& v) { return v.state; },
    .note = [](const Volume& v) { return v.health.empty() ? v.where : v.health; },
    .style =
        [](const Volume& v) { return v.bad                      ? Style::bad
                                     : v.measured && is_idle(v) ? Style::faint
                                                                : Style::plain; },
};

/// What the table does not say.
std::string remark(const Volumes& volumes) {
  if (volumes.volumes.empty()) {
    return "This host has no volumes (LVM, LUKS, md and the like): d shows its drives.";
  }
  if (!volumes.not_measured.empty()) {
    return "Volumes are not measured: " + volumes.not_measured + ".";
  }
  return volumes.left_out > 0 ? fmt::format("{:.0f} more are not listed.", volumes.left_out) : "";
}

}  // namespace

void draw_volumes(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view) {
  if (view.at) {
    put_lines(grid, top, bottom, "The history does not have volumes: n shows them as of now.");
    return;
  }
  if (!state.volumes) {
    return;
  }
  top = put_lines(grid, top, bottom, remark(*state.volumes));
  if (state.volumes->volumes.empty() || top >= bottom) {
    return;
  }
  const auto volumes = shown(*state.volumes, view);
  draw_table(grid, top, bottom, kVolumes, volumes, selected(*state.volumes, view));
  if (volumes.empty()) {
    put_lines(grid, top + 2, bottom, "No volume fits the filter.");
  }
}

}  // namespace ssdpulse::terminal
