// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/model/write_ladder.h"
#include "exporters/page/page_json.h"

namespace ssdpulse::page {
namespace {

constexpr std::size_t kMaxStacks = 256;
constexpr std::size_t kMaxLayers = 1024;

constexpr Field<model::StackPlace> kPlaceFields[] = {
    {"name", kText, [](const model::StackPlace& place) { return util::for_json(place.name); }},
    {"kind", one_of(model::kLayerKindNames),
     [](const model::StackPlace& place) { return name(place.kind, model::kLayerKindNames); }},
    {"floor", kCount, member_of<&model::StackPlace::floor>,
     "0: the file system lies directly on it. Each place is followed by what is below it."},
    {"shared", kFlag, member_of<&model::StackPlace::shared>,
     "It is at several places of this stack; what is below it is listed at the first one."},
    {"cut", kFlag, member_of<&model::StackPlace::cut>, "More is below it than is listed."},
};
constexpr Object<model::StackPlace> kPlace{"stack_place", "", kPlaceFields};

constexpr Field<model::Stack> kStackFields[] = {
    {"mountpoint", or_null(kText), [](const model::Stack& stack) { return text_or_null(stack.mountpoint); },
     "null: no mounted file system is known on it."},
    {"fstype", or_null(kText), [](const model::Stack& stack) { return text_or_null(stack.fstype); }},
    {"places", list_of(defined_as("stack_place")), [](const model::Stack& stack) { return kPlace.list(stack.places); }},
};
constexpr Object<model::Stack> kStack{"stack", "", kStackFields};

struct BiosNow {
  double ios_per_second = 0;
  double bytes_per_second = 0;
  std::optional<double> p50_seconds;
  std::optional<double> p99_seconds;
};

BiosNow bios_now(const std::optional<model::RecentBios::Latency>& latency, double bytes_per_second, double seconds) {
  return latency ? BiosNow{static_cast<double>(latency->ended) / seconds, bytes_per_second, latency->p50_seconds,
                           latency->p99_seconds}
                 : BiosNow{0, bytes_per_second, {}, {}};
}

constexpr Field<BiosNow> kBiosFields[] = {
    {"ios_per_second", kSeconds, member_of<&BiosNow::ios_per_second>, "Those that ended."},
    {"bytes_per_second", kSeconds, member_of<&BiosNow::bytes_per_second>},
    {"p50_seconds", or_null(kSeconds), member_of<&BiosNow::p50_seconds>, "null: none ended; likewise the next."},
    {"p99_seconds", or_null(kSeconds), member_of<&BiosNow::p99_seconds>},
};
constexpr Object<BiosNow> kBios{"bios_now", "Bios of one operation in the last minute.", kBiosFields};

/// What is measured of a layer itself, above the drives, over the last minute.
struct LayerFigures {
  std::optional<double> latency_p50_seconds;  // of reads and writes, the slower; likewise the next
  std::optional<double> latency_p99_seconds;
  std::optional<double> added_latency_seconds;
  std::optional<double> bytes_per_second;
  std::optional<BiosNow> read;
  std::optional<BiosNow> write;
};

LayerFigures figures_of(const model::Snapshot& snapshot, const model::Layer& layer) {
  LayerFigures figures;
  if (!snapshot.volume_figures) {
    return figures;
  }
  const auto& devices = snapshot.volume_figures->devices;
  const auto own =
      std::find_if(devices.begin(), devices.end(), [&](const auto& one) { return one.device == layer.name; });
  if (own == devices.end()) {
    return figures;
  }
  const double seconds = snapshot.volume_figures->seconds;
  figures.read = bios_now(own->read, own->read_bytes_per_second, seconds);
  figures.write = bios_now(own->write, own->written_bytes_per_second, seconds);
  figures.bytes_per_second = own->read_bytes_per_second + own->written_bytes_per_second;
  for (const auto& latency : {own->read, own->write}) {
    if (latency) {
      figures.latency_p50_seconds = std::max(figures.latency_p50_seconds.value_or(0), latency->p50_seconds);
      figures.latency_p99_seconds = std::max(figures.latency_p99_seconds.value_or(0), latency->p99_seconds);
    }
  }
  for (const model::FloorTime& floor : snapshot.volume_figures->floors) {
    if (std::find(floor.volumes.begin(), floor.volumes.end(), layer.name) != floor.volumes.end()) {
      figures.added_latency_seconds = std::max(figures.added_latency_seconds.value_or(0), floor.own_seconds);
    }
  }
  return figures;
}

constexpr std::size_t kMaxMountpoints = 4;  // of one layer

/// By layer, what is mounted from it or from its partitions; of layers that are below no listed stack, too.
std::map<std::string, std::set<util::OutsideText>> mountpoints_of(const model::Snapshot& snapshot) {
  std::map<std::string, std::string> layer_of;  // by partition
  for (const model::Volume& volume : snapshot.volumes) {
    layer_of.emplace(volume.name, volume.device);
  }
  std::map<std::string, std::set<util::OutsideText>> mountpoints;
  for (const model::Filesystem& filesystem : snapshot.filesystems) {
    for (const std::string& name : filesystem.volumes) {
      const auto whole = layer_of.find(name);
      auto& of_layer = mountpoints[whole == layer_of.end() ? name : whole->second];
      if (of_layer.size() < kMaxMountpoints) {
        of_layer.insert(filesystem.mountpoint);
      }
    }
  }
  return mountpoints;
}

struct LayerView {
  const model::Layer& layer;
  const std::set<util::OutsideText>& mountpoints;
  model::VolumeSignals signals;
  model::HealthWords health;
  LayerFigures figures;
  std::optional<model::PassedOn> passed_on;
};

LayerView layer_view_of(const model::Snapshot& snapshot, const model::Layer& layer,
                        const std::set<util::OutsideText>& mountpoints, const model::WriteLadder& ladder) {
  const auto passed_on = ladder.passed_on.find(layer.name);
  LayerView view{layer,
                 mountpoints,
                 {},
                 {},
                 figures_of(snapshot, layer),
                 passed_on == ladder.passed_on.end() ? std::nullopt : std::optional(passed_on->second)};
  if (snapshot.host.signals) {
    const auto& all = snapshot.host.signals->volumes;
    const auto own = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.volume == layer.name; });
    view.signals = own == all.end() ? model::VolumeSignals() : *own;
    view.health = model::health_words(view.signals);
  }
  return view;
}

template <auto Figure>
constexpr auto kFigure = [](const LayerView& view) {
  const std::optional<double>& value = view.figures.*Figure;
  return value ? Json(*value) : absent();
};

template <auto Operation>
constexpr auto kBiosNow = [](const LayerView& view) {
  const std::optional<BiosNow>& now = view.figures.*Operation;
  return now ? kBios(*now) : absent();
};

template <auto Bytes>
constexpr auto kPassedOn = [](const LayerView& view) {
  if (!view.passed_on) {
    return absent();
  }
  const std::optional<std::uint64_t> bytes = (*view.passed_on).*Bytes;
  return bytes ? Json(*bytes) : absent();
};

constexpr Field<LayerView> kLayerFields[] = {
    {"name", kText, [](const LayerView& view) { return util::for_json(view.layer.name); }},
    {"title", kText, [](const LayerView& view) { return util::for_json(view.layer.title); },
     "As whoever made it named it; empty: not at all."},
    {"kind", one_of(model::kLayerKindNames),
     [](const LayerView& view) { return name(view.layer.kind, model::kLayerKindNames); }},
    {"members", list_of(kText), [](const LayerView& view) { return view.layer.members; },
     "Directly below it: layers, partitions and disks."},
    {"mountpoints", list_of(kText),
     [](const LayerView& view) {
       Json all = Json::array();
       for (const util::OutsideText& mountpoint : view.mountpoints) {
         all.push_back(util::for_json(mountpoint));
       }
       return all;
     },
     "Of file systems directly on it or on its partitions, four at most."},
    {"health", kText, [](const LayerView& view) { return view.health.text; },
     "Empty: nothing is wrong, or the kernel says nothing without an ioctl: so with how full a thin pool is."},
    {"bad", kFlag, [](const LayerView& view) { return view.health.bad; }, "Somebody should look after it."},
    {"suspended", kFlag, [](const LayerView& view) { return view.signals.suspended; }},
    {"missing_members", or_null(kCount), [](const LayerView& view) { return view.signals.missing_members; },
     "Of an md array; null: it has no redundancy, or it is none."},
    {"consistency_policy", or_null(kText),
     [](const LayerView& view) { return text_or_null(view.signals.consistency_policy); },
     "Of an md array: resync, bitmap, journal, ppl."},
    {"latency_p50_seconds", may_be_absent(kSeconds), kFigure<&LayerFigures::latency_p50_seconds>,
     "Of its bios in the last minute; of reads and writes, the slower. Absent: not measured; likewise the rest."},
    {"latency_p99_seconds", may_be_absent(kSeconds), kFigure<&LayerFigures::latency_p99_seconds>},
    {"added_latency_seconds", may_be_absent(kSeconds), kFigure<&LayerFigures::added_latency_seconds>,
     "Mean time that is spent in the layer itself, at least: not in what it lies on. Of all layers on the same "
     "members."},
    {"bytes_per_second", may_be_absent(kSeconds), kFigure<&LayerFigures::bytes_per_second>},
    {"read", may_be_absent(defined_as("bios_now")), kBiosNow<&LayerFigures::read>},
    {"write", may_be_absent(defined_as("bios_now")), kBiosNow<&LayerFigures::write>},
    {"read_bytes", may_be_absent(kCount), kPassedOn<&model::PassedOn::read_bytes>,
     "That it was asked for; this and the next three count up. Absent: not measured."},
    {"written_bytes", may_be_absent(kCount), kPassedOn<&model::PassedOn::written_bytes>},
    {"members_read_bytes", may_be_absent(kCount), kPassedOn<&model::PassedOn::members_read_bytes>,
     "That its members were asked for, by whomever: parity, a resync. Absent: it shares one with another layer, or "
     "what reaches them is not seen."},
    {"members_written_bytes", may_be_absent(kCount), kPassedOn<&model::PassedOn::members_written_bytes>},
    {"counts_since", may_be_absent(kSeconds),
     [](const LayerView& view) {
       return view.passed_on && view.passed_on->since ? Json(seconds_of(*view.passed_on->since)) : absent();
     },
     "All four. If another, it is another volume of this name, or they began again."},
};
constexpr Object<LayerView> kLayer{"layer", "A block device without requests of its own.", kLayerFields};

constexpr Field<model::RungBytes> kRungFields[] = {
    {"rung", one_of(model::kRungNames), [](const model::RungBytes& one) { return name(one.rung, model::kRungNames); },
     "application: written by processes; file_system: sent by file systems, swap and raw writers; drive: sent to "
     "drives, with what volumes add; reported: "
     "what drives say they received; media: and wrote to their media."},
    {"device", kText, member_of<&model::RungBytes::device>,
     "A drive or a volume; of reported and media a controller; empty: the host."},
    {"class", may_be_absent(one_of(model::kRungClassNames)),
     [](const model::RungBytes& one) {
       return one.rung_class ? Json(name(*one.rung_class, model::kRungClassNames)) : absent();
     },
     "Of application and file_system; other: cannot be determined, as of volumes."},
    {"bytes", kSeconds, member_of<&model::RungBytes::bytes>, "Counts up."},
    {"counts_since", may_be_absent(kSeconds),
     [](const model::RungBytes& one) { return one.since ? Json(seconds_of(*one.since)) : absent(); },
     "Of what appeared or began again after an earlier answer, all bytes are from in between."},
};
constexpr Object<model::RungBytes> kRung{"ladder_rung", "Bytes written.", kRungFields};

constexpr Field<model::RungGap> kRungGapFields[] = {
    {"rung", one_of(model::kRungNames), [](const model::RungGap& one) { return name(one.rung, model::kRungNames); }},
    {"device", kText, member_of<&model::RungGap::device>},
    {"reason", one_of(model::kRungGapReasonNames),
     [](const model::RungGap& one) { return name(one.reason, model::kRungGapReasonNames); }},
};
constexpr Object<model::RungGap> kRungGap{"ladder_gap", "What a rung lacks, so that no ratio with it is right.",
                                          kRungGapFields};

/// One group of a WriteLadder.
struct Ladder {
  model::LadderGroup group;
  std::vector<model::RungBytes> rungs = {};
  std::vector<model::RungGap> gaps = {};
};

constexpr Field<Ladder> kLadderFields[] = {
    {"drives", list_of(kText), [](const Ladder& ladder) { return ladder.group.drives; }},
    {"volumes", list_of(kText), [](const Ladder& ladder) { return ladder.group.volumes; }},
    {"rungs", list_of(defined_as("ladder_rung")), [](const Ladder& ladder) { return kRung.list(ladder.rungs); },
     "No byte is counted twice on a rung."},
    {"gaps", list_of(defined_as("ladder_gap")), [](const Ladder& ladder) { return kRungGap.list(ladder.gaps); }},
};
constexpr Object<Ladder> kLadder{"write_ladder", "Drives that share volumes, and these volumes.", kLadderFields};

std::vector<Ladder> ladders_in(model::WriteLadder& all, Ladder& host) {
  std::vector<Ladder> ladders;
  for (model::LadderGroup& group : all.groups) {
    ladders.push_back({std::move(group)});
  }
  for (model::RungBytes& one : all.rungs) {
    (one.group ? ladders[*one.group] : host).rungs.push_back(std::move(one));
  }
  for (model::RungGap& one : all.gaps) {
    (one.group ? ladders[*one.group] : host).gaps.push_back(std::move(one));
  }
  return ladders;
}

struct Stacks {
  std::vector<model::Stack> stacks;
  std::vector<LayerView> layers;
  std::size_t left_out = 0;
  std::size_t layers_left_out = 0;
  std::string_view not_measured = {};
  std::vector<Ladder> ladders = {};
  Ladder host = {};  // what is of no group
};

constexpr Field<Stacks> kStacksFields[] = {
    {"stacks", list_of(defined_as("stack")), [](const Stacks& all) { return kStack.list(all.stacks); },
     "Of each mounted file system, then of each layer that carries neither one nor another layer."},
    {"layers", list_of(defined_as("layer")), [](const Stacks& all) { return kLayer.list(all.layers); },
     "Sorted by name."},
    {"left_out", kCount, member_of<&Stacks::left_out>, "Stacks beyond 256."},
    {"layers_left_out", kCount, member_of<&Stacks::layers_left_out>, "Layers beyond 1024."},
    {"not_measured", kText, member_of<&Stacks::not_measured>, "Why no layer has figures; empty: some have."},
    {"ladders", list_of(defined_as("write_ladder")), [](const Stacks& all) { return kLadder.list(all.ladders); },
     "Where writes are amplified: how much was written on each rung, from file systems to media."},
    {"host_rungs", list_of(defined_as("ladder_rung")), [](const Stacks& all) { return kRung.list(all.host.rungs); },
     "What the kernel counts for the whole host: of application."},
    {"host_gaps", list_of(defined_as("ladder_gap")), [](const Stacks& all) { return kRungGap.list(all.host.gaps); }},
};
constexpr Object<Stacks> kStacksAnswer{"stacks", "/api/v1/stacks: what lies above the drives.", kStacksFields,
                                       Head::snapshot};

}  // namespace

Definitions stack_definitions() { return {kPlace, kStack, kBios, kLayer, kRung, kRungGap, kLadder, kStacksAnswer}; }

Json stacks_json(const model::Snapshot& snapshot) {
  model::Stacks known = model::stacks_of(snapshot.filesystems, snapshot.layers, snapshot.volumes, kMaxStacks);
  Stacks all{std::move(known.stacks), {}, known.left_out, 0, advice::why_no_volumes(snapshot)};
  model::WriteLadder ladder = model::ladder_of(snapshot);
  auto mountpoints = mountpoints_of(snapshot);
  all.layers_left_out = snapshot.layers.size() - std::min(snapshot.layers.size(), kMaxLayers);
  for (const model::Layer& layer : snapshot.layers) {
    if (all.layers.size() < kMaxLayers) {
      all.layers.push_back(layer_view_of(snapshot, layer, mountpoints[layer.name], ladder));
    }
  }
  all.ladders = ladders_in(ladder, all.host);
  return kStacksAnswer.answer(snapshot, all);
}

}  // namespace ssdpulse::page
