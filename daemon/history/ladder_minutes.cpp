// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/ladder_minutes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace ssdpulse::history {
namespace {

using model::Operation;
using model::PassedOn;
using model::Rung;
using model::RungBytes;
using model::WriteLadder;

constexpr std::string_view kVolume = "volume";
constexpr std::string_view kMembers = "members";
constexpr std::string_view kGap = "gap";

std::string lane_of(std::string_view first, std::string_view second = {}, std::string_view third = {}) {
  std::string lane(kLadderLane);
  lane += first;
  for (const std::string_view part : {second, third}) {
    lane += (part.empty() ? "" : "/") + std::string(part);
  }
  return lane;
}

std::string lane_of(const RungBytes& one) {
  return lane_of(name(one.rung, model::kRungNames),
                 one.rung_class ? name(*one.rung_class, model::kRungClassNames) : std::string_view());
}

auto key_of(const RungBytes& one) { return std::tie(one.rung, one.device, one.rung_class); }

const RungBytes* find(const WriteLadder& ladder, const RungBytes& wanted) {
  const auto found = std::find_if(ladder.rungs.begin(), ladder.rungs.end(),
                                  [&](const RungBytes& one) { return key_of(one) == key_of(wanted); });
  return found == ladder.rungs.end() ? nullptr : &*found;
}

/// Of a counter that began after the first reading, all of it; nothing of one that went back, or that was not there for
/// a while and has counted since long before: it may have been counted on another rung meanwhile.
double grown(const WriteLadder& before, model::WallTime before_at, const RungBytes& now) {
  constexpr std::chrono::seconds kTick{1};  // the ladder is read as of the second before
  const RungBytes* const then = find(before, now);
  if (then == nullptr || then->since != now.since) {
    return now.since && *now.since >= before_at - kTick ? now.bytes : 0;
  }
  return std::max(0.0, now.bytes - then->bytes);
}

std::optional<std::uint64_t> grown(std::optional<std::uint64_t> before, std::optional<std::uint64_t> now) {
  return before && now && *now >= *before ? std::optional(*now - *before) : std::nullopt;
}

class Rows {
 public:
  explicit Rows(std::uint64_t measured_ms) : measured_ms_(measured_ms) {}

  void add(const std::string& lane, double written, double read = 0) {
    model::DeviceInterval& load = loads_[lane];
    load.measured_ms = measured_ms_;
    load.operations[index(Operation::write)].bytes += static_cast<std::uint64_t>(written);
    load.operations[index(Operation::read)].bytes += static_cast<std::uint64_t>(read);
  }
  void add_volume(const std::string& volume, const PassedOn& before, const PassedOn& now) {
    const auto written = grown(before.written_bytes, now.written_bytes);
    const auto read = grown(before.read_bytes, now.read_bytes);
    const auto below = grown(before.members_written_bytes, now.members_written_bytes);
    const auto read_below = grown(before.members_read_bytes, now.members_read_bytes);
    if (is_ladder_lane(lane_of(kMembers, volume)) && before.since == now.since && written && read && below &&
        read_below && (*written | *below | *read_below) != 0) {
      add(lane_of(kVolume, volume), static_cast<double>(*written), static_cast<double>(*read));
      add(lane_of(kMembers, volume), static_cast<double>(*below), static_cast<double>(*read_below));
    }
  }
  [[nodiscard]] std::vector<model::DeviceMinute> take() {
    std::vector<model::DeviceMinute> rows;
    for (auto& [lane, load] : loads_) {
      rows.push_back({{lane, lane, "", ""}, {}, std::move(load)});
    }
    return rows;
  }

 private:
  std::uint64_t measured_ms_;
  std::map<std::string, model::DeviceInterval> loads_;
};

/// dm numbers its volumes by the order in which they appear: another boot's dm-3 is another volume.
void name_volumes(WriteLadder& ladder, const std::vector<model::Layer>& layers) {
  std::map<std::string, PassedOn> named;
  for (const auto& [volume, passed_on] : ladder.passed_on) {
    const model::Layer* const layer = model::layer_of(layers, volume);
    const bool is_mapped = volume.starts_with("dm-") && layer != nullptr && !layer->title.empty();
    const std::string mapped = is_mapped ? "mapper/" + util::for_history(layer->title) : "";
    // A name with other signs than a lane may have is left to this boot's number.
    named.emplace(is_mapped && is_ladder_lane(lane_of(kMembers, mapped)) ? mapped : volume, passed_on);
  }
  ladder.passed_on = std::move(named);
}

/// The parts of a lane behind its prefix; the last one may have slashes in it.
std::vector<std::string_view> parts_of(std::string_view lane) {
  constexpr std::size_t kMaxLaneParts = 3;
  lane.remove_prefix(std::min(lane.size(), kLadderLane.size()));
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < kMaxLaneParts && lane.find('/') != std::string_view::npos) {
    parts.push_back(lane.substr(0, lane.find('/')));
    lane.remove_prefix(parts.back().size() + 1);
  }
  parts.push_back(lane);
  return parts;
}

template <typename Value, typename Names>
std::optional<Value> value_called(std::string_view name, const Names& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<Value>(found - names.begin()));
}

}  // namespace

std::vector<model::DeviceMinute> ladder_rows(const WriteLadder& before, model::WallTime before_at,
                                             const WriteLadder& now, std::uint64_t measured_ms) {
  Rows rows(measured_ms);
  std::set<std::string> written_to;
  rows.add(lane_of(name(Rung::drive, model::kRungNames)), 0);  // what says that the ladder was kept
  for (const RungBytes& one : now.rungs) {
    const double bytes = grown(before, before_at, one);
    RungBytes media = one;
    media.rung = Rung::media;
    if (bytes <= 0 || (one.rung == Rung::reported && (!find(before, media) || !find(now, media)))) {
      continue;
    }
    if (one.rung == Rung::drive) {
      written_to.insert(one.device);
    }
    rows.add(lane_of(one), bytes);
  }
  for (const auto& [volume, passed_on] : now.passed_on) {
    if (const auto then = before.passed_on.find(volume); then != before.passed_on.end()) {
      rows.add_volume(volume, then->second, passed_on);
    }
  }
  for (const RungBytes& one : before.rungs) {
    // What has gone may have been sent more meanwhile, which the drives below a volume counted.
    const RungBytes* const after = find(now, one);
    const bool of_volume = one.rung == Rung::file_system && find(before, {Rung::drive, one.device}) == nullptr;
    if ((of_volume || one.rung == Rung::drive) && one.bytes > 0 && (after == nullptr || after->since != one.since)) {
      const auto reason =
          of_volume ? model::RungGapReason::volume_not_measured : model::RungGapReason::drive_not_measured;
      rows.add(lane_of(kGap, name(one.rung, model::kRungNames), name(reason, model::kRungGapReasonNames)), 0);
    }
  }
  for (const WriteLadder* ladder : {&before, &now}) {
    for (const model::RungGap& gap : ladder->gaps) {
      if (gap.rung != Rung::media || written_to.contains(gap.device)) {
        rows.add(lane_of(kGap, name(gap.rung, model::kRungNames), name(gap.reason, model::kRungGapReasonNames)), 0);
      }
    }
  }
  return rows.take();
}

void add(model::PastLadder& ladder, std::string_view lane, const model::DeviceInterval& load) {
  const auto parts = parts_of(lane);
  const auto bytes = [&](Operation operation) { return static_cast<double>(load.operation(operation).bytes); };
  const double hours = static_cast<double>(load.measured_ms) / 3'600'000;
  const std::string second(parts.size() > 1 ? parts[1] : std::string_view());
  if (parts[0] == kVolume || parts[0] == kMembers) {
    const std::size_t end = std::min(lane.size(), kLadderLane.size() + parts[0].size() + 1);
    model::PastLadder::Volume& volume = ladder.volumes[std::string(lane.substr(end))];
    (parts[0] == kVolume ? volume.written_bytes : volume.members_written_bytes) += bytes(Operation::write);
    (parts[0] == kVolume ? volume.read_bytes : volume.members_read_bytes) += bytes(Operation::read);
  } else if (parts[0] == kGap) {
    const auto rung = value_called<Rung>(second, model::kRungNames);
    const auto reason =
        parts.size() > 2 ? value_called<model::RungGapReason>(parts[2], model::kRungGapReasonNames) : std::nullopt;
    if (rung && reason) {
      ladder.gap_hours[{*rung, *reason}] += hours;
    }
  } else if (const auto rung = value_called<Rung>(parts[0], model::kRungNames)) {
    const auto rung_class = value_called<model::RungClass>(second, model::kRungClassNames);
    if (second.empty() || rung_class) {
      ladder.bytes[{*rung, rung_class}] += bytes(Operation::write);
    }
    ladder.hours += rung == Rung::drive ? hours : 0;
  }
}

model::Findings LadderMinutes::observe(const model::Tick& tick) {
  model::Findings findings;
  const auto minute = std::chrono::floor<std::chrono::minutes>(tick.wall);
  const auto before = std::exchange(minute_, minute).value_or(minute);
  if (!tick.before || (last_ && before == minute && !tick.last)) {
    return findings;
  }
  // As of a second ago: of the minute that has just ended.
  WriteLadder now = model::ladder_of(*tick.before);
  name_volumes(now, tick.before->layers);
  if (last_) {
    const auto measured = std::chrono::round<std::chrono::milliseconds>(tick.at - last_at_).count();
    findings.effects.rows.device_minutes = ladder_rows(*last_, last_wall_, now, static_cast<std::uint64_t>(measured));
    for (model::DeviceMinute& row : findings.effects.rows.device_minutes) {
      row.minute = before;
    }
  }
  last_ = std::move(now);
  last_at_ = tick.at;
  last_wall_ = tick.wall;
  return findings;
}

}  // namespace ssdpulse::history
