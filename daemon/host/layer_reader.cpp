// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/layer_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "daemon/base/sysfs.h"

namespace ssdpulse::host {
namespace {

using model::LayerKind;

struct WordKind {
  std::string_view word;
  LayerKind kind;
};

/// What a UUID of dm begins with, by who made the device. cryptsetup writes its type after CRYPT-, so it comes last.
constexpr auto kUuidKinds = std::to_array<WordKind>({
    {"LVM-", LayerKind::lvm},
    {"CRYPT-INTEGRITY-", LayerKind::integrity},
    {"CRYPT-VERITY-", LayerKind::verity},
    {"CRYPT-", LayerKind::crypt},
    {"mpath-", LayerKind::multipath},
});
/// What LVM appends to its UUID for the devices that it makes of one volume.
constexpr auto kLvmKinds = std::to_array<WordKind>({
    {"-tpool", LayerKind::thin_pool},
    {"-pool", LayerKind::thin_pool},
});
/// The volume itself has nothing appended; what it lies on tells.
constexpr auto kLvmKindsByMember = std::to_array<WordKind>({
    {"-tpool", LayerKind::thin},
    {"-cow", LayerKind::snapshot},
    {"-cdata", LayerKind::cache},
    {"-cvol", LayerKind::cache},
});
constexpr auto kMdKinds = std::to_array<WordKind>({
    {"raid0", LayerKind::raid0},
    {"raid1", LayerKind::raid1},
    {"raid4", LayerKind::raid4},
    {"raid5", LayerKind::raid5},
    {"raid6", LayerKind::raid6},
    {"raid10", LayerKind::raid10},
    {"linear", LayerKind::linear},
    {"multipath", LayerKind::multipath},
});
constexpr auto kDriverKinds = std::to_array<WordKind>({
    {"bcache", LayerKind::bcache},
    {"drbd", LayerKind::drbd},
    {"zram", LayerKind::zram},
    {"ram", LayerKind::ramdisk},
    {"pmem", LayerKind::pmem},
});

template <std::size_t kEntries, typename Fits>
std::optional<LayerKind> kind_in(const std::array<WordKind, kEntries>& table, Fits fits) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const WordKind& entry) { return fits(entry.word); });
  return found == table.end() ? std::nullopt : std::optional(found->kind);
}

constexpr std::size_t kLvmUuidBytes = 4 + 32 + 32;  // LVM-, the group's and the volume's

/// "-tpool" of an LVM device; empty if it has none.
std::string_view lvm_suffix(const Stacking::Mapped* dm) {
  return dm != nullptr && dm->uuid.starts_with("LVM-") && dm->uuid.size() > kLvmUuidBytes
             ? std::string_view(dm->uuid).substr(kLvmUuidBytes)
             : std::string_view();
}

/// "part2-mpath-...", by kpartx: a partition of another dm device.
bool is_partition_of_mapped(std::string_view uuid) {
  constexpr std::string_view kPart = "part";
  const std::size_t end = uuid.find_first_not_of("0123456789", kPart.size());
  return uuid.starts_with(kPart) && end != std::string_view::npos && end > kPart.size() && uuid[end] == '-';
}

LayerKind dm_kind(const Stacking::Mapped& dm, const std::vector<std::string>& members, const Stacking& stacking) {
  if (is_partition_of_mapped(dm.uuid)) {
    return LayerKind::linear;
  }
  // What dm-crypt with integrity lies on: cryptsetup calls it NAME_dif.
  if (dm.uuid.starts_with("CRYPT-SUBDEV-") && dm.uuid.ends_with("_dif")) {
    return LayerKind::integrity;
  }
  const LayerKind kind =
      kind_in(kUuidKinds, [&](std::string_view word) { return dm.uuid.starts_with(word); }).value_or(LayerKind::dm);
  if (kind != LayerKind::lvm) {
    return kind;
  }
  if (const std::string_view suffix = lvm_suffix(&dm); !suffix.empty()) {
    return kind_in(kLvmKinds, [&](std::string_view word) { return word == suffix; }).value_or(kind);
  }
  return kind_in(kLvmKindsByMember,
                 [&](std::string_view word) {
                   return std::any_of(members.begin(), members.end(), [&](const std::string& member) {
                     return lvm_suffix(stacking.mapped(member)) == word;
                   });
                 })
      .value_or(kind);
}

/// bcache lists only its backing device among the slaves. ".../nvme0n1/nvme0n1p1/bcache" -> "nvme0n1p1"
void add_cache_devices(const std::string& directory, std::vector<std::string>& members) {
  const std::string set = directory + "/bcache/cache";
  for (const std::string& name : sysfs::names_in(set)) {
    if (!name.starts_with("cache") || name.find_first_not_of("0123456789", 5) != std::string::npos) {
      continue;
    }
    const std::string link = sysfs::link_target(set + "/" + name);
    const auto member = sysfs::base_name(std::string_view(link).substr(0, link.rfind('/')));
    if (util::is_plain_name(member)) {
      members.emplace_back(member);
    }
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
}

/// Names that mdadm's rules of udev give to arrays, by the kernel's name.
std::map<std::string, std::string> md_titles(const std::string& dev) {
  std::map<std::string, std::string> titles;
  const std::string directory = dev + "/md";
  for (const std::string& name : sysfs::names_in(directory)) {
    titles.emplace(sysfs::base_name(sysfs::link_target(directory + "/" + name)), name);
  }
  return titles;
}

/// A word of the kernel's; empty if it is something else.
std::string read_word(const std::string& path) {
  std::string word = sysfs::read_text(path);
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_ ") == std::string::npos ? word : std::string();
}

/// "DONE / TOTAL", in sectors
std::optional<double> progress_of(const std::string& text) {
  const auto words = sysfs::words_in(text);
  if (words.size() != 3 || words[1] != "/") {
    return std::nullopt;
  }
  const auto done = sysfs::parse_number(words[0]);
  const auto total = sysfs::parse_number(words[2]);
  return done && total && *total > 0 && *done <= *total
             ? std::optional(static_cast<double>(*done) / static_cast<double>(*total))
             : std::nullopt;
}

std::optional<model::Resync> read_resync(const std::string& md) {
  std::string action = read_word(md + "/sync_action");
  if (action.empty() || action == "idle" || action == "frozen") {
    return std::nullopt;
  }
  const auto kilobytes = sysfs::read_number(md + "/sync_speed");
  return model::Resync{std::move(action), progress_of(sysfs::read_text(md + "/sync_completed")),
                       kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt};
}

}  // namespace

std::vector<model::Layer> read_layers(const InventoryRoots& roots, const Stacking& stacking,
                                      const std::vector<model::Device>& devices) {
  std::vector<model::Layer> layers;
  std::optional<std::map<std::string, std::string>> titles;
  for (const model::Device& device : devices) {
    const bool stacked = device.coverage == model::Coverage::stacked;
    if (!stacked && (device.has_requests || device.size_bytes == 0)) {
      continue;
    }
    model::Layer layer{device.name, {}, LayerKind::other, stacking.directly_below(device.name)};
    const std::string directory = roots.sys + "/block/" + device.name;
    if (const Stacking::Mapped* dm = stacking.mapped(device.name)) {
      layer.title = dm->name;
      layer.kind = dm_kind(*dm, layer.members, stacking);
    } else if (sysfs::is_md(device.name)) {
      if (!titles) {
        titles = md_titles(roots.dev);
      }
      layer.title = (*titles)[device.name];
      const std::string level = sysfs::read_text(directory + "/md/level");
      layer.kind = kind_in(kMdKinds, [&](auto word) { return word == level; }).value_or(LayerKind::other);
    } else {
      layer.kind =
          kind_in(kDriverKinds, [&](auto word) { return device.name.starts_with(word); }).value_or(LayerKind::other);
    }
    if (layer.kind == LayerKind::bcache) {
      // Not its label: the kernel shows that and all else of bcache under a lock that it holds while it replays a
      // journal, for minutes.
      add_cache_devices(directory, layer.members);
    }
    layer.diskseq = sysfs::read_number(directory + "/diskseq").value_or(0);
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::optional<model::VolumeSignals> read_volume_signals(const std::string& sys_root, const model::Layer& layer,
                                                        const model::VolumeSignals* known) {
  const std::string directory = sys_root + "/block/" + layer.name;
  model::VolumeSignals signals = known == nullptr ? model::VolumeSignals{layer.name, false, {}} : *known;
  if (sysfs::is_dm(layer.name)) {
    signals.suspended = sysfs::read_number(directory + "/dm/suspended").value_or(0) == 1;
  } else if (sysfs::is_md(layer.name)) {
    const std::string md = directory + "/md";
    signals.resync = read_resync(md);
    if (known == nullptr) {
      signals.state = read_word(md + "/array_state");
      signals.missing_members = sysfs::read_number(md + "/degraded");
      signals.consistency_policy = read_word(md + "/consistency_policy");
    }
  } else {
    return std::nullopt;
  }
  return signals;
}

}  // namespace ssdpulse::host
