// SPDX-License-Identifier: Apache-2.0
// A drive on paper: a test decides how many bytes are written, the rig makes the samples that a poll would return.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/wear/write_ledger.h"

namespace ssdpulse::wear {

using namespace std::chrono_literals;

inline constexpr std::uint64_t kMiB = 1 << 20;
inline constexpr std::uint64_t kGiB = 1 << 30;
inline constexpr auto kPollInterval = 30s;

struct PaperDrive {
  std::uint64_t host_unit = 1;
  std::uint64_t media_unit = 1;
  model::Rounding host_rounding = model::Rounding::exact;
  model::Rounding media_rounding = model::Rounding::exact;
  model::Uint128 host = 0;  // bytes
  model::Uint128 media = 0;
  std::optional<std::uint64_t> block = 0;
  std::chrono::nanoseconds now = 1000s;
  std::chrono::system_clock::time_point wall{1'700'000'000s};
  bool since_birth = true;
  std::string serial = "S1";
  std::string firmware = "F1";

  void write(model::Uint128 host_bytes, model::Uint128 media_bytes) {
    host += host_bytes;
    media += media_bytes;
    if (block) {
      *block += static_cast<std::uint64_t>(host_bytes);
    }
  }

  static model::ByteCounter counter(model::Uint128 bytes, std::uint64_t unit, model::Rounding rounding) {
    const model::Uint128 step = std::max<std::uint64_t>(unit, 1);
    return {rounding == model::Rounding::up ? (bytes + step - 1) / step : bytes / step, unit, rounding};
  }

  /// What a poll would read now.
  [[nodiscard]] WriteSample read() const {
    WriteSample sample;
    sample.at = now;
    sample.wall = wall;
    sample.host_before = sample.host_after = counter(host, host_unit, host_rounding);
    sample.media = counter(media, media_unit, media_rounding);
    if (block) {
      sample.block_before = sample.block_after = BlockWrites{.written_bytes = *block};
    }
    sample.counted_since_birth = since_birth;
    sample.serial = serial;
    sample.firmware = firmware;
    return sample;
  }

  void pass(std::chrono::nanoseconds time) {
    now += time;
    wall += std::chrono::duration_cast<std::chrono::system_clock::duration>(time);
  }

  /// One poll interval with these writes, and the poll.
  void poll(WriteLedger& ledger, model::Uint128 host_bytes, model::Uint128 media_bytes,
            std::chrono::nanoseconds time = kPollInterval) {
    pass(time);
    write(host_bytes, media_bytes);
    ledger.observe(read());
  }
};

inline std::optional<model::WriteAmplificationRatio> find(const WriteLedger& ledger, const std::string& window) {
  for (const auto& ratio : ledger.amplification().ratios) {
    if (ratio.window == window) {
      return ratio;
    }
  }
  return std::nullopt;
}

}  // namespace ssdpulse::wear
