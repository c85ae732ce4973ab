// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/drive_state.h"

#include <cmath>

namespace ssdpulse::flash {
namespace {

using analysis::BinaryReader;
using analysis::BinaryWriter;

constexpr std::uint64_t kFormat = 0x33302D6576697264;  // "drive-03"; a different one for any other layout
constexpr std::uint64_t kMaxWhatIfs = 32;

void write(BinaryWriter& out, const std::optional<double>& value) { out(value.value_or(-1.0)); }

std::optional<double> read_optional(BinaryReader& in) {
  double value = 0;
  in(value);
  return value >= 0 && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Seconds of a clock, or of an absence.
void read_seconds(BinaryReader& in, double& value) {
  constexpr double kMaxSeconds = 1e12;  // the year 33658
  in(value);
  if (!(value >= 0 && value <= kMaxSeconds)) {
    in.fail();
  }
}

template <typename Enum>
void read_enum(BinaryReader& in, Enum& value, std::size_t values) {
  in(value);
  if (static_cast<std::size_t>(value) >= values) {
    in.fail();
  }
}

analysis::WhatIf read_what_if(BinaryReader& in) {
  analysis::WhatIf what;
  in(what.overprovisioning);
  if (!(what.overprovisioning > 0.001 && what.overprovisioning < 10)) {
    in.fail();
  }
  read_enum(in, what.policy, model::kCollectionPolicies);
  read_enum(in, what.discards, model::kDiscardsNames.size());
  read_enum(in, what.placement, model::kPlacementNames.size());
  read_enum(in, what.unknown, 2);
  return what;
}

void read_range(BinaryReader& in, analysis::PolicyFit::Range& range) {
  in(range.lower);
  in(range.upper);
  in(range.likely);
  if (!(range.lower >= 0 && std::isfinite(range.lower) && range.upper > 0 && range.likely >= 0 &&
        std::isfinite(range.likely))) {
    in.fail();
  }
}

void read_settings(BinaryReader& in, analysis::FlashModelSettings& settings) {
  in(settings.serial);
  in(settings.size_bytes);
  in(settings.page_bytes);
  in(settings.rate_bits);
  in(settings.seed);
  std::uint64_t what_ifs = 0;
  in(what_ifs);
  if (what_ifs == 0 || what_ifs > kMaxWhatIfs || settings.page_bytes == 0 ||
      settings.rate_bits > analysis::PageSample::kMaxRateBits) {
    in.fail();
  }
  for (std::uint64_t i = 0; in.good() && i < what_ifs; ++i) {
    settings.what_ifs.push_back(read_what_if(in));
  }
}

}  // namespace

std::string bytes_of(const DriveState& state) {
  BinaryWriter out;
  out(kFormat);
  out(std::string_view(state.key));
  out(std::string_view(state.settings.serial));
  out(state.settings.size_bytes);
  out(state.settings.page_bytes);
  out(state.settings.rate_bits);
  out(state.settings.seed);
  out(std::uint64_t{state.settings.what_ifs.size()});
  for (const analysis::WhatIf& what : state.settings.what_ifs) {
    out(what.overprovisioning);
    out(what.policy);
    out(what.discards);
    out(what.placement);
    out(what.unknown);
  }
  for (const analysis::PolicyFit::Range& range : state.fit) {
    out(range.lower);
    out(range.upper);
    out(range.likely);
  }
  for (const double value : {state.collection.host_then, state.collection.media_then, state.collection.host,
                             state.collection.media, state.collection.free_ratio}) {
    out(value);
  }
  out(state.fitted_at);
  out(state.kept_at);
  write(out, state.host_written_bytes);
  out(state.seen_bytes);
  out(state.absence);
  out(std::string_view(state.model));
  out(analysis::checksum(out.bytes()));
  return out.bytes();
}

util::Result<DriveState> read_state(std::string_view bytes, const std::string& key) {
  std::uint64_t sum = 0;
  const std::string_view body = bytes.substr(0, bytes.size() - std::min(bytes.size(), sizeof sum));
  BinaryReader end(bytes.substr(body.size()));
  end(sum);
  if (!end.complete() || sum != analysis::checksum(body)) {
    return util::fail("it is damaged");
  }
  BinaryReader in(body);
  std::uint64_t format = 0;
  in(format);
  if (format != kFormat) {
    return util::fail("it is from a different version");
  }
  DriveState state;
  in(state.key);
  if (state.key != key) {
    return util::fail("it is from a different drive");
  }
  read_settings(in, state.settings);
  for (analysis::PolicyFit::Range& range : state.fit) {
    read_range(in, range);
  }
  for (double* const value : {&state.collection.host_then, &state.collection.media_then, &state.collection.host,
                              &state.collection.media, &state.collection.free_ratio}) {
    in(*value);
    if (!std::isfinite(*value)) {
      in.fail();
    }
  }
  read_seconds(in, state.fitted_at);
  read_seconds(in, state.kept_at);
  state.host_written_bytes = read_optional(in);
  in(state.seen_bytes);
  read_seconds(in, state.absence);
  in(state.model);
  if (!in.complete()) {
    return util::fail("it is inconsistent");
  }
  return state;
}

}  // namespace ssdpulse::flash
