// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/write_ladder.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace ssdpulse::model {
namespace {

/// What the volumes above a drive send in a way that is not recognised looks the same as what these file systems do.
constexpr auto kUnrecognised = std::to_array<std::string_view>({"btrfs", "bcachefs", "f2fs"});

/// Absent: a volume sent it, where it is counted already.
std::optional<WriteClass> class_of(IoPath path) {
  switch (path) {
    case IoPath::io_uring:
    case IoPath::sqpoll:
    case IoPath::libaio:
    case IoPath::sync:
    case IoPath::direct:
    case IoPath::loop:
      return WriteClass::direct;
    case IoPath::writeback:
      return WriteClass::writeback;
    case IoPath::journal:
      return WriteClass::journal;
    case IoPath::metadata:
      return WriteClass::metadata;
    case IoPath::swap:
      return WriteClass::swap;
    case IoPath::stacked:
      return std::nullopt;
    case IoPath::buffered_read:
    case IoPath::other:
      break;
  }
  return WriteClass::other;
}

/// Bytes written to a drive, by who sent them.
struct Senders {
  std::array<std::uint64_t, kWriteClasses> of{};
  std::uint64_t all = 0;  // with those of volumes
};

Senders senders_of(const DeviceTenants& tenants) {
  Senders sum;
  for (std::size_t path = 0; path < kIoPaths; ++path) {
    for (const TotalsByOperation& totals : tenants.paths[path]) {
      const std::uint64_t bytes = totals[Operation::write].bytes;
      sum.all += bytes;
      if (const auto known = class_of(static_cast<IoPath>(path))) {
        sum.of[index(*known)] += bytes;
      }
    }
  }
  return sum;
}

/// Sets of names that are joined.
class Joined {
 public:
  void join(const std::string& one, const std::string& other) { parent_[root(one)] = root(other); }
  std::string root(const std::string& name) {
    std::string at = parent_.try_emplace(name, name).first->second;
    while (parent_[at] != at) {
      at = parent_[at] = parent_[parent_[at]];
    }
    return at;
  }

 private:
  std::map<std::string, std::string> parent_;
};

class Maker {
 public:
  explicit Maker(const Snapshot& snapshot) : snapshot_(snapshot) {
    for (const Volume& volume : snapshot.volumes) {
      device_of_.emplace(volume.name, volume.device);
    }
    for (const DeviceSnapshot& device : snapshot.devices) {
      measured_.emplace(device.device->name, &device);
    }
    for (const Membership& membership : snapshot.memberships) {
      if (membership.multipath && measured_.contains(membership.array)) {
        paths_.insert(membership.device);
      } else if (!membership.multipath) {
        carriers_.insert(membership.device);
      }
    }
    for (const Layer& layer : snapshot.layers) {
      for (const std::string& member : layer.members) {
        ++above_[member];
        carriers_.insert(device_of(member));
      }
    }
    for (const Filesystem& filesystem : snapshot.filesystems) {
      for (const std::string& volume : filesystem.volumes) {
        bool& strange = filesystems_[device_of(volume)];
        strange = strange || std::any_of(kUnrecognised.begin(), kUnrecognised.end(),
                                         [&](std::string_view name) { return filesystem.fstype == name; });
      }
    }
  }

  WriteLadder make() {
    group();
    add_page_cache();
    for (const auto& [name, device] : measured_) {
      if (is_drive(*device)) {
        add_drive(name, *device);
      }
    }
    for (const Layer& layer : snapshot_.layers) {
      if (is_volume(layer)) {
        add_volume(layer);
      }
    }
    add_reports();
    return std::move(ladder_);
  }

 private:
  [[nodiscard]] const std::string& device_of(const std::string& name) const {
    const auto found = device_of_.find(name);
    return found == device_of_.end() ? name : found->second;
  }
  /// Whether something of it is measured.
  [[nodiscard]] bool is_drive(const DeviceSnapshot& device) const {
    return device.io && !device.unseen && !paths_.contains(device.device->name);
  }
  /// It lies on something, and is no drive by itself, as dm-multipath's are.
  [[nodiscard]] bool is_volume(const Layer& layer) const {
    return !layer.members.empty() && !measured_.contains(layer.name);
  }

  void group() {
    Joined joined;
    for (const Layer& layer : snapshot_.layers) {
      for (const std::string& member : layer.members) {
        joined.join(layer.name, device_of(member));
      }
    }
    std::map<std::string, std::size_t> index_of;  // by root
    const auto group_of = [&](const std::string& name) {
      const auto [found, is_new] = index_of.emplace(joined.root(name), ladder_.groups.size());
      if (is_new) {
        ladder_.groups.emplace_back();
      }
      return group_of_[name] = found->second;
    };
    for (const auto& [name, device] : measured_) {
      if (is_drive(*device)) {
        ladder_.groups[group_of(name)].drives.push_back(name);
      }
    }
    for (const Layer& layer : snapshot_.layers) {
      if (!is_volume(layer)) {
        continue;
      }
      const std::size_t group = group_of(layer.name);
      ladder_.groups[group].volumes.push_back(layer.name);
      for (const std::string& member : layer.members) {
        const std::string& below = device_of(member);
        const auto found = measured_.find(below);
        const bool counted = found != measured_.end() && (is_drive(*found->second) || paths_.contains(below));
        const Layer* const own = layer_of(snapshot_.layers, below);
        if (!counted && (own == nullptr || own->members.empty()) && missing_.insert(below).second) {
          ladder_.gaps.push_back({Rung::drive, below, RungGapReason::drive_not_measured, group});
        }
      }
    }
    std::map<std::string, std::size_t> floors;
    for (LadderGroup& group : ladder_.groups) {
      std::stable_sort(group.volumes.begin(), group.volumes.end(), [&](const std::string& a, const std::string& b) {
        return floor_of(a, floors) > floor_of(b, floors);
      });
    }
  }

  /// Of what lies on nothing: 0. `known`: those that were asked for before.
  std::size_t floor_of(const std::string& device, std::map<std::string, std::size_t>& known) {
    const auto [found, is_new] = known.emplace(device, 0);  // which also ends a cycle
    const Layer* const layer = is_new ? layer_of(snapshot_.layers, device) : nullptr;
    std::size_t floor = 0;
    if (layer == nullptr) {
      return found->second;
    }
    for (const std::string& member : layer->members) {
      floor = std::max(floor, 1 + floor_of(device_of(member), known));
    }
    return found->second = floor;
  }

  void add_gap(Rung rung, const std::string& device, RungGapReason reason) {
    ladder_.gaps.push_back({rung, device, reason, group_of_.at(device)});
  }
  void add(Rung rung, const std::string& device, double bytes, std::optional<WallTime> since,
           std::optional<RungClass> rung_class = {}) {
    ladder_.rungs.push_back({rung, device, rung_class, bytes, since, group_of_.at(device)});
  }

  /// The kernel's count is of the whole host.
  void add_page_cache() {
    if (snapshot_.host.signals && snapshot_.host.signals->dirtied_bytes) {
      ladder_.rungs.push_back({Rung::application,
                               "",
                               RungClass::page_cache,
                               static_cast<double>(*snapshot_.host.signals->dirtied_bytes),
                               {},
                               {}});
    } else {
      ladder_.gaps.push_back({Rung::application, "", RungGapReason::not_counted, {}});
    }
  }

  void add_drive(const std::string& name, const DeviceSnapshot& device) {
    const std::uint64_t written = device.io->operation(Operation::write).bytes;
    add(Rung::drive, name, static_cast<double>(written), device.io->since);
    if (!device.tenants && snapshot_.own_cost.effort != Effort::everything) {
      // Who sends is not counted at present; the counts before are kept, and go on later.
      add_gap(Rung::file_system, name, RungGapReason::unknown_sender);
      add_gap(Rung::application, name, RungGapReason::direct_unknown);
      return;
    }
    Senders senders = device.tenants ? senders_of(*device.tenants) : Senders();
    // Not after limits.cpu had turned paths off: what is left over then is no counter, as the two are read in turn.
    const bool complete = device.tenants && senders.all == written;
    const bool carries = carriers_.contains(name);
    constexpr std::size_t kOther = index(WriteClass::other);
    if (!device.tenants) {
      senders.of[kOther] = written;
    }
    const auto filesystem = filesystems_.find(name);
    const bool strange = filesystem != filesystems_.end() && filesystem->second;
    if (carries ? !complete || is_passed_through(name) || (strange && senders.of[kOther] > 0)
                : device.tenants && !complete) {
      add_gap(Rung::file_system, name, RungGapReason::unknown_sender);
      add_gap(Rung::application, name, RungGapReason::direct_unknown);
      return;
    }
    for (std::size_t i = 0; i < kWriteClasses; ++i) {
      // What volumes send in a way that is not recognised: copies of a snapshot, metadata of a thin pool, bcache.
      if (!carries || i != kOther) {
        add(Rung::file_system, name, static_cast<double>(senders.of[i]), device.io->since, static_cast<RungClass>(i));
      }
    }
    for (const WriteClass passed : {WriteClass::direct, WriteClass::swap}) {
      add(Rung::application, name, static_cast<double>(senders.of[index(passed)]), device.io->since,
          static_cast<RungClass>(passed));
    }
    constexpr std::uint64_t kMinUnknownShare = 50;  // a fiftieth of what it got: by btrfs, all of it
    if (!carries && senders.of[kOther] > written / kMinUnknownShare) {
      add_gap(Rung::application, name, RungGapReason::direct_unknown);
    }
  }

  /// Whether a volume on the drive passes bios on as they are, so that they look like a file system's: md RAID 0 until
  /// Linux 5.14. Then they are not seen at its members.
  [[nodiscard]] bool is_passed_through(const std::string& drive) const {
    return std::any_of(snapshot_.layers.begin(), snapshot_.layers.end(), [&](const Layer& layer) {
      return (layer.kind == LayerKind::raid0 || layer.kind == LayerKind::linear) && !layer.name.starts_with("dm-") &&
             std::any_of(layer.members.begin(), layer.members.end(),
                         [&](const std::string& member) { return device_of(member) == drive; }) &&
             !members_bytes(layer, Operation::write);
    });
  }

  [[nodiscard]] const BioIo* bios_of(const std::string& name) const {
    const auto found = std::lower_bound(snapshot_.bios.begin(), snapshot_.bios.end(), name,
                                        [](const auto& io, const std::string& other) { return io->device < other; });
    return found == snapshot_.bios.end() || (*found)->device != name ? nullptr : found->get();
  }

  /// Their sum; absent: not all are counted, or so little of what the volume was sent that most cannot have been.
  [[nodiscard]] std::optional<std::uint64_t> members_bytes(const Layer& layer, Operation operation) const {
    std::uint64_t sum = 0;
    for (const std::string& member : layer.members) {
      const BioIo* const io = bios_of(member);
      if (io == nullptr) {
        return std::nullopt;
      }
      sum += io->operations[index(operation)].bytes;
    }
    const BioIo* const own = bios_of(layer.name);
    const std::uint64_t sent = own == nullptr ? 0 : own->operations[index(operation)].bytes;
    return sum >= sent / 2 ? std::optional(sum) : std::nullopt;
  }

  void add_volume(const Layer& layer) {
    const BioIo* const io = bios_of(layer.name);
    if (io != nullptr) {
      PassedOn& passed_on = ladder_.passed_on[layer.name];
      passed_on.read_bytes = io->operations[index(Operation::read)].bytes;
      passed_on.written_bytes = io->operations[index(Operation::write)].bytes;
      passed_on.since = io->since;
      for (const std::string& member : layer.members) {
        const BioIo* const below = bios_of(member);
        passed_on.since = std::max(*passed_on.since, below == nullptr ? io->since : below->since);
      }
      if (std::all_of(layer.members.begin(), layer.members.end(),
                      [&](const std::string& member) { return above_.at(member) == 1; })) {
        passed_on.members_read_bytes = members_bytes(layer, Operation::read);
        passed_on.members_written_bytes = members_bytes(layer, Operation::write);
      }
    }
    if (carriers_.contains(layer.name)) {
      if (filesystems_.contains(layer.name)) {
        add_gap(Rung::file_system, layer.name, RungGapReason::carries_both);
        add_gap(Rung::application, layer.name, RungGapReason::direct_unknown);
      }
    } else if (io == nullptr) {
      if (layer.kind != LayerKind::other) {  // else it does not run, and takes no bios
        add_gap(Rung::file_system, layer.name, RungGapReason::volume_not_measured);
        add_gap(Rung::application, layer.name, RungGapReason::direct_unknown);
      }
    } else {
      const std::uint64_t written = io->operations[index(Operation::write)].bytes;
      add(Rung::file_system, layer.name, static_cast<double>(written), io->since, RungClass::other);
      if (written > 0) {
        add_gap(Rung::application, layer.name, RungGapReason::direct_unknown);
      }
    }
  }

  void add_reports() {
    std::set<std::string> seen;  // several controllers may lead to one
    std::set<std::string> counted;
    for (const NvmeDrive& drive : snapshot_.nvme_drives) {
      const WriteAmplification& waf = drive.write_amplification;
      const bool counts = !waf.source.empty() && waf.media_written_bytes && waf.host_written_bytes;
      std::optional<std::size_t> group;
      bool is_new = true;
      for (const NvmeNamespace& one : drive.identity->namespaces) {
        if (const auto found = group_of_.find(one.device); found != group_of_.end()) {
          group = group.value_or(found->second);
          is_new = !seen.contains(one.device) && is_new;
        }
      }
      for (const NvmeNamespace& one : drive.identity->namespaces) {
        if (is_new && waf.host_written_bytes) {
          seen.insert(one.device);
        }
        if (is_new && counts) {
          counted.insert(one.device);
        }
      }
      if (group && is_new && waf.host_written_bytes) {
        ladder_.rungs.push_back({Rung::reported, drive.identity->controller, {}, *waf.host_written_bytes, {}, group});
      }
      if (group && is_new && counts) {
        ladder_.rungs.push_back({Rung::media, drive.identity->controller, {}, *waf.media_written_bytes, {}, group});
      }
    }
    for (const LadderGroup& group : ladder_.groups) {
      for (const std::string& drive : group.drives) {
        if (!counted.contains(drive)) {
          add_gap(Rung::media, drive, RungGapReason::no_counter);
        }
      }
    }
  }

  const Snapshot& snapshot_;
  std::map<std::string, std::string> device_of_;  // of volumes, the disk or layer that each is or belongs to
  std::map<std::string, const DeviceSnapshot*> measured_;
  std::set<std::string> paths_;               // of dm-multipath
  std::set<std::string> carriers_;            // disks and layers that other layers lie on
  std::map<std::string, std::size_t> above_;  // how many layers lie directly on a member
  std::map<std::string, bool> filesystems_;   // disks and layers that carry one; whether its writes are not recognised
  std::map<std::string, std::size_t> group_of_;
  std::set<std::string> missing_;
  WriteLadder ladder_;
};

}  // namespace

WriteLadder ladder_of(const Snapshot& snapshot) { return Maker(snapshot).make(); }

}  // namespace ssdpulse::model
