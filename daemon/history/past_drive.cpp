// SPDX-License-Identifier: Apache-2.0
// What a drive reported in the past, at the end of each point of a series.
#include <algorithm>
#include <optional>

#include "daemon/history/clock_steps.h"
#include "daemon/history/past_reader.h"

namespace ssdpulse::history {
namespace {

std::optional<double> number_in(const std::optional<Bytes>& big_endian, const std::optional<std::int64_t>& unit) {
  if (!big_endian || big_endian->size() != 16 || !unit || *unit <= 0) {
    return std::nullopt;
  }
  model::Uint128 count = 0;
  for (const std::uint8_t byte : *big_endian) {
    count = count << 8U | byte;
  }
  return static_cast<double>(count * static_cast<model::Uint128>(*unit));
}

/// What was counted between two readings of one counter.
std::optional<double> between(const std::optional<double>& before, const std::optional<double>& after) {
  return before && after && *after >= *before ? std::optional(*after - *before) : std::nullopt;
}

void keep_larger(std::optional<double>& value, const std::optional<double>& more) {
  if (more && (!value || *value < *more)) {
    value = more;
  }
}

struct Reading {
  std::optional<double> host;
  std::optional<double> media;
  util::OutsideText source;
};

}  // namespace

Outcome<void> PastReader::add_drive(const Found& found, model::Series& series) {
  std::string drives;  // one for each firmware
  // Which of several subsystems with one serial number is in the identity, if the subsystem's name does not tell it.
  Statement ids(connection_,
                "SELECT id FROM drive WHERE serial = ?1 AND model = ?2 AND (nqn = '' OR instr(nqn, ?1) > 0 OR "
                "instr(?3, nqn) > 0 OR instr(?3, ' | subsystem ') = 0)");
  ids.with(found.device.serial.raw()).with(found.device.model.raw()).with(found.device.identity.raw());
  const auto read =
      ids.each([&] { drives += (drives.empty() ? "" : ",") + std::to_string(ids.integer(0).value_or(0)); });
  if (!read || drives.empty()) {
    return read;
  }
  const auto step = series.step.count();
  std::optional<Reading> before;
  const auto take = [&](const Statement& row) {
    const std::int64_t minute = row.integer(0).value_or(0);
    const Minute start = minute_of(minute / step * step);
    if (series.wear.empty() || series.wear.back().at != start) {
      series.wear.push_back({start, {}, {}, {}, {}, {}, {}});
    }
    model::PastWear& wear = series.wear.back();
    wear.percentage_used = row.real(1);
    wear.available_spare = row.real(2);
    keep_larger(wear.temperature_celsius, row.real(3));
    wear.host_unit_bytes = static_cast<double>(row.integer(5).value_or(0));
    wear.media_unit_bytes = static_cast<double>(row.integer(7).value_or(0));
    Reading now{number_in(row.blob(4), row.integer(5)), number_in(row.blob(6), row.integer(7)),
                row.text(8).value_or("")};
    if (before && before->source == now.source) {
      const auto host = between(before->host, now.host);
      const auto media = between(before->media, now.media);
      if (host && media) {
        wear.host_bytes = wear.host_bytes.value_or(0) + *host;
        wear.media_bytes = wear.media_bytes.value_or(0) + *media;
        wear.source = now.source;
      }
    }
    before = std::move(now);
    return true;
  };
  return slices().read(
      "SELECT minute, percentage_used, available_spare, temperature_celsius, host_count, host_unit_bytes, media_count, "
      "media_unit_bytes, source FROM drive_minute WHERE minute BETWEEN ? AND ? AND drive IN (" +
          drives + ") AND NOT " + stamped_ahead("drive_minute", "minute") + " ORDER BY minute, measured",
      number_of(series.window.from), number_of(series.window.to) - 1, take);
}

}  // namespace ssdpulse::history
