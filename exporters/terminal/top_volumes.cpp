// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <string>

#include "exporters/terminal/top_screen.h"
#include "exporters/terminal/top_table.h"
#include "exporters/terminal/top_words.h"
#include "exporters/words/shared.h"
#include "exporters/words/terminal.h"

namespace ssdpulse::terminal {
namespace {

bool is_idle(const Volume& volume) { return volume.read.ios_per_second + volume.write.ios_per_second == 0; }

std::string tail(const Volume& volume, const Tails& tails, const std::optional<double>& value) {
  return volume.measured && tails.ios_per_second == 0 ? words::shared::kNone
                                                      : milliseconds_text(volume.measured ? value : std::nullopt);
}

/// Of many kinds of volumes it cannot be known.
std::string added(const Volume& volume) {
  return volume.measured && is_idle(volume) && !volume.is_drive ? words::shared::kNone
                                                                : milliseconds_text(volume.added_seconds);
}

std::string known(const Volume& volume, double value, std::string (*format)(std::optional<double>)) {
  return format(volume.measured ? std::optional(value) : std::nullopt);
}

namespace heads = words::terminal;
namespace shared = words::shared;

// Which column goes first on a narrow screen is documented in ssdpulse(1).
constexpr Column<Volume> kColumns[] = {
    {heads::kKind, "", 10, 4, [](const Volume& v) { return v.kind; }},
    {shared::kReadHead, heads::kP50Ms, 8, 5, [](const Volume& v) { return tail(v, v.read, v.read.p50); }},
    {shared::kReadHead, heads::kP99Ms, 8, 1, [](const Volume& v) { return tail(v, v.read, v.read.p99); }},
    {shared::kWriteHead, heads::kP50Ms, 8, 5, [](const Volume& v) { return tail(v, v.write, v.write.p50); }},
    {shared::kWriteHead, heads::kP99Ms, 8, 1, [](const Volume& v) { return tail(v, v.write, v.write.p99); }},
    {shared::kAddsTitle, "ms", 7, 2, [](const Volume& v) { return added(v); }},
    {shared::kReadsHead, "/s", 9, 6, [](const Volume& v) { return known(v, v.read.ios_per_second, rate_text); }},
    {shared::kWritesHead, "/s", 9, 6, [](const Volume& v) { return known(v, v.write.ios_per_second, rate_text); }},
    {shared::kReadHead, "MB/s", 8, 3,
     [](const Volume& v) { return known(v, v.read.bytes_per_second, megabytes_text); }},
    {shared::kWrittenHead, "MB/s", 8, 3,
     [](const Volume& v) { return known(v, v.write.bytes_per_second, megabytes_text); }},
};

constexpr Table<Volume> kVolumes{
    .head = shared::kVolume,
    .state_head = heads::kHealth,
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
    return words::terminal::kNoVolumes;
  }
  if (!volumes.not_measured.empty()) {
    return fmt::format(words::shared::kVolumesNotMeasured, volumes.not_measured);
  }
  return volumes.left_out > 0 ? fmt::format(words::shared::kNotListed, fmt::format("{:.0f}", volumes.left_out)) : "";
}

}  // namespace

void draw_volumes(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view) {
  if (view.at) {
    put_lines(grid, top, bottom, words::terminal::kNoPastVolumes);
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
    put_lines(grid, top + 2, bottom, words::terminal::kNoVolumeFits);
  }
}

}  // namespace ssdpulse::terminal
