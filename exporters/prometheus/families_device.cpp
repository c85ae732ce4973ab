// SPDX-License-Identifier: Apache-2.0
// The disks of the host and what lives on them. Identity is only on the info metrics; join with
// `* on (device) group_left (model) ssdpulse_device_info`.
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "daemon/model/device_identity.h"
#include "daemon/model/sibling_latency.h"
#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::Snapshot;

std::string true_or_false(bool value) { return value ? "true" : "false"; }

void device_info(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.devices) {
    const auto& device = *entry.device;
    out.add_info(
        {{"device", device.name},
         {"model", util::for_label(device.model)},
         {"serial", util::for_label(device.serial)},
         {"firmware", util::for_label(device.firmware)},
         {"wwid", util::for_label(device.wwid)},
         {"transport", device.transport},
         {"scheduler", device.scheduler},
         {"rotational", true_or_false(device.rotational)},
         {"write_back_cache", true_or_false(device.write_back_cache)},
         {"discard", true_or_false(device.discard)},
         {"iostats", true_or_false(device.iostats)},
         {"medium", label_of(model::medium_of(device, model::drive_of(snapshot, device.name)), model::kMediumNames)}});
  }
}

void device_size(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.devices) {
    out.add({{"device", entry.device->name}}, to_double(entry.device->size_bytes));
  }
}

void device_unseen(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.devices) {
    out.add({{"device", entry.device->name}}, entry.unseen ? 1 : 0);
  }
}

void busy_seconds(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.devices) {
    if (entry.utilisation) {
      out.add({{"device", entry.device->name}}, entry.utilisation->busy_seconds);
    }
  }
}

void depth(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.devices) {
    if (entry.io && !entry.depth.words.empty()) {
      out.add({{"device", entry.device->name}}, to_histogram(entry.depth), entry.io->since);
    }
  }
}

void device_member_info(const Snapshot& snapshot, Samples& out) {
  for (const auto& member : snapshot.memberships) {
    out.add_info({{"array", member.array},
                  {"device", member.device},
                  {"kind", member.kind},
                  {"name", util::for_label(member.name)}});
  }
}

template <typename Value>
void add_siblings(const Snapshot& snapshot, Samples& out, Value value) {
  if (snapshot.siblings) {
    for (const model::SiblingRatio& one : snapshot.siblings->ratios) {
      out.add({{"device", one.device}, {"operation", std::string(name(one.operation))}, {"group", one.group}},
              value(one));
    }
  }
}

template <double model::SiblingRatio::*Ratio>
void siblings(const Snapshot& snapshot, Samples& out) {
  add_siblings(snapshot, out, [](const model::SiblingRatio& one) { return one.*Ratio; });
}

void slower_than_siblings(const Snapshot& snapshot, Samples& out) {
  add_siblings(snapshot, out, [](const model::SiblingRatio& one) { return one.slow ? 1.0 : 0.0; });
}

void volume_info(const Snapshot& snapshot, Samples& out) {
  for (const auto& layer : snapshot.layers) {
    out.add_info({{"volume", layer.name},
                  {"kind", label_of(layer.kind, model::kLayerKindNames)},
                  {"name", util::for_label(layer.title)}});
  }
}

void volume_member_info(const Snapshot& snapshot, Samples& out) {
  for (const auto& layer : snapshot.layers) {
    for (const std::string& member : layer.members) {
      out.add_info({{"volume", layer.name}, {"member", member}});
    }
  }
}

void filesystem_info(const Snapshot& snapshot, Samples& out) {
  for (const auto& filesystem : snapshot.filesystems) {
    out.add_info({{"device", filesystem.device},
                  {"mountpoint", util::for_label(filesystem.mountpoint)},
                  {"fstype", util::for_label(filesystem.fstype)},
                  {"discard", true_or_false(filesystem.discard)}});
  }
}

void audit_findings(const Snapshot& snapshot, Samples& out) {
  if (snapshot.audit) {
    for (const model::Finding& finding : *snapshot.audit) {
      out.add_info({{"id", finding.id},
                    {"device", util::for_label(finding.device)},
                    {"verdict", label_of(finding.verdict, model::kVerdictNames)}});
    }
  }
}

constexpr LabelDescription kIdentity[] = {
    kDevice,
    {"model", "as the disk reports it"},
    {"serial", "as the disk reports it"},
    {"firmware", "as the disk reports it"},
    {"wwid", "its world-wide identifier"},
    {"transport", "how it is attached: nvme, sata, sas, ..."},
    {"scheduler", "its I/O scheduler"},
    {"rotational", "whether the kernel considers it a spinning disk", kTrueOrFalse},
    {"write_back_cache", "whether it has a volatile write cache that flushes must empty", kTrueOrFalse},
    {"discard", "whether it accepts discards", kTrueOrFalse},
    {"iostats", "whether the kernel keeps statistics for it (queue/iostats)", kTrueOrFalse},
    {"medium", "software: a virtual disk or a volume of a cloud; unknown: of a virtual machine, and it shows no wear",
     model::kMediumNames},
};
// A volume is neither a partition nor a disk, which are the last two.
constexpr auto kVolumeKinds = std::span(model::kLayerKindNames).first(model::kLayerKindNames.size() - 2);
constexpr LabelDescription kMember[] = {
    {"array", "the md or dm device"},
    kDevice,
    {"kind", "md, dm or other"},
    {"name", "the dm device's own name, such as that of a logical volume"},
};
constexpr LabelDescription kSibling[] = {
    kDevice,
    {"operation", "what the request does", kReadAndWrite},
    {"group",
     "whose members are compared: the array or volume, as the kernel names it; model: the drives of its model, "
     "firmware and size on this host"},
};
constexpr std::string_view kNoSibling =
    "the device is neither a member of an array of three or more nor one of four or more drives of its model, or less "
    "than half of its I/Os in the last three minutes had their equals on the others";
constexpr LabelDescription kVolume[] = {
    {"volume", "the kernel's name: dm-0, md0"},
    {"kind", "what it is; dm: of device-mapper, and its UUID does not say more", kVolumeKinds},
    {"name", "as whoever made it named it: dm's own name, md's in /dev/md, bcache's label"},
};
constexpr LabelDescription kVolumeMember[] = {
    {"volume", "as of ssdpulse_volume_info"},
    {"member", "a disk, a partition or another volume"},
};
constexpr LabelDescription kFilesystem[] = {
    kDevice,
    {"mountpoint", "where it is mounted"},
    {"fstype", "ext4, xfs, ..."},
    {"discard", "whether it is mounted with online discard", kTrueOrFalse},
};

constexpr auto kAuditVerdicts = std::to_array<std::string_view>({"danger", "advise"});
constexpr LabelDescription kAuditFinding[] = {
    {"id", "the rule; `ssdpulse audit --rules` lists them"},
    {"device", "the disk, array or mount point; empty: the host"},
    {"verdict", "danger: data or a drive is at risk; advise: a change is worth its risk", kAuditVerdicts},
};

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_device_info", "A measured disk and its identity; always 1.", device_info, kIdentity},
    {"ssdpulse_device_size_bytes", "Capacity of the disk.", device_size, kDeviceLabels},
    {"ssdpulse_device_unseen",
     "Whether no request of the device is seen, although it does I/O or may do so: then it is not measured as a drive. "
     "Its driver takes I/O without requests, as a volume does, or the kernel counts I/O of which no request is seen.",
     device_unseen, kDeviceLabels},
    {"ssdpulse_device_busy_seconds_total",
     "Time in which anything was in flight, by the kernel's account in steps of a jiffy: its rate is what iostat shows "
     "as %util. Of a multipath head, that of its busiest path.",
     busy_seconds, kDeviceLabels, "queue/iostats is 0"},
    {"ssdpulse_device_depth_ios",
     "I/Os in flight, sampled once a second. Its 50th percentile is what the drive usually has to do at once.", depth,
     kDeviceLabels, "before the first sampling", Modes::all, Type::histogram},
    {"ssdpulse_device_member_info", "The disk is part of this md or dm device, directly or through another; always 1.",
     device_member_info, kMember, "the disk is part of no such device"},
    {"ssdpulse_device_latency_of_siblings_ratio",
     "Median device time, divided by that of the median of the drives that ought to be like it, at equal load: "
     "operation, size, depth, bytes written meanwhile. Over the last three minutes, every 20 seconds; while "
     "one that is slower cannot be compared, for three minutes as it was last.",
     siblings<&model::SiblingRatio::ratio>, kSibling, kNoSibling},
    {"ssdpulse_device_latency_of_siblings_lower_ratio", "Lower bound of that ratio, with a confidence of 95 %.",
     siblings<&model::SiblingRatio::lower>, kSibling, kNoSibling},
    {"ssdpulse_device_latency_of_siblings_upper_ratio", "Upper bound of that ratio, with a confidence of 95 %.",
     siblings<&model::SiblingRatio::upper>, kSibling, kNoSibling},
    {"ssdpulse_device_slower_than_siblings",
     "1 while the device is slower than its siblings: the lower bound of the ratio has been above 1.5 for 10 minutes, "
     "its fastest I/Os are slower, too, it is not written to much more than they are, at most a third of them is "
     "slower, and "
     "no array is checked or rebuilt.",
     slower_than_siblings, kSibling, kNoSibling},
    {"ssdpulse_volume_info",
     "A block device without requests of its own: a volume, an array, a RAM disk; always 1. How full a thin pool or a "
     "snapshot is, the kernel says only to root.",
     volume_info, kVolume, "there is no such device"},
    {"ssdpulse_volume_member_info", "What lies directly below a volume; always 1.", volume_member_info, kVolumeMember,
     "no volume lies on a block device"},
    {"ssdpulse_filesystem_info", "A mounted file system and a disk below it; always 1.", filesystem_info, kFilesystem,
     "no file system on the disk is mounted"},
    {"ssdpulse_filesystems_unnamed",
     "Mounted file systems that are only counted: more than 64 are on a measured device, or 256 on all. Those that "
     "were mounted first have their own series, settings and findings.",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.unnamed_filesystems.in_all)); }},
    {"ssdpulse_devices_left_out",
     "Devices that should be measured and are not: the tables in the kernel have room for those that were there when "
     "the daemon started, and a few more.",
     [](const Snapshot& s, Samples& out) { out.add({}, static_cast<double>(s.devices_left_out.size())); }},
    {"ssdpulse_audit_finding_info",
     "A finding of `ssdpulse audit` that has not been accepted: something on this host is in danger, or a change is "
     "advised. Evaluated every five minutes; always 1.",
     audit_findings, kAuditFinding, "there is no such finding"},
};

}  // namespace

std::span<const FamilyDescription> device_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
