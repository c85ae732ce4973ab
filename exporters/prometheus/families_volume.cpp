// SPDX-License-Identifier: Apache-2.0
// Volumes: what their bios did, and those of the disks and partitions directly below them. Names of their own, so that
// no sum over devices counts a byte twice.
#include <string>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::BioIo;
using model::BioOperation;
using model::Operation;
using model::Snapshot;

/// For each operation that a volume (or else a member) has had, and for read and write: visit(labels, operation,
/// since).
template <typename Visit>
void for_each_bio_operation(const Snapshot& snapshot, bool of_volumes, Visit visit) {
  for (const auto& io : snapshot.bios) {
    for (std::size_t i = 0; io->is_volume == of_volumes && i < model::kBioOperations; ++i) {
      const auto operation = static_cast<Operation>(i);
      if (operation == Operation::read || operation == Operation::write || io->operations[i].active()) {
        visit(Labels{{of_volumes ? "volume" : "member", io->device}, {"operation", std::string(name(operation))}},
              io->operations[i], io->since);
      }
    }
  }
}

template <std::uint64_t BioOperation::*Count, bool kOfVolumes = true>
void counters(const Snapshot& snapshot, Samples& out) {
  for_each_bio_operation(snapshot, kOfVolumes, [&](Labels labels, const BioOperation& io, model::WallTime since) {
    out.add(std::move(labels), to_double(io.*Count), since);
  });
}

template <bool kOfVolumes>
void latency(const Snapshot& snapshot, Samples& out) {
  for_each_bio_operation(snapshot, kOfVolumes, [&](Labels labels, const BioOperation& io, model::WallTime since) {
    if (!io.latency.empty()) {
      out.add(std::move(labels), to_histogram(io.latency), since);
    }
  });
}

void in_flight(const Snapshot& snapshot, Samples& out) {
  for_each_bio_operation(snapshot, true, [&](Labels labels, const BioOperation& io, model::WallTime) {
    out.add(std::move(labels), static_cast<double>(io.in_flight));
  });
}

constexpr auto kLossCauses = std::to_array<std::string_view>({"untimed", "missed"});

template <bool kOfVolumes>
void losses(const Snapshot& snapshot, Samples& out) {
  for_each_bio_operation(snapshot, kOfVolumes,
                         [&](const Labels& labels, const BioOperation& io, model::WallTime since) {
                           out.add(with(labels, {{"cause", "untimed"}}), to_double(io.untimed), since);
                           out.add(with(labels, {{"cause", "missed"}}), to_double(io.missed), since);
                         });
}

void accounting_drift(const Snapshot& snapshot, Samples& out) {
  for (const auto& [volume, drift] : snapshot.volume_drift) {
    const auto add = [&, &name = volume](const char* operation, std::optional<std::int64_t> bytes) {
      if (bytes) {
        out.add({{"volume", name}, {"operation", operation}}, static_cast<double>(*bytes));
      }
    };
    add("read", drift.read_bytes);
    add("write", drift.written_bytes);
    add("discard", drift.discarded_bytes);
  }
}

void left_out(const Snapshot& snapshot, Samples& out) {
  if (!snapshot.bios.empty()) {
    out.add({}, to_double(snapshot.volumes_left_out.size()));
  }
}

constexpr std::string_view kAbsent = "there was no volume when the daemon started, or latency.mode is completion-only";
constexpr std::string_view kNoSample = "no such bio of it has ended";

constexpr auto kBioOperationNames = [] {
  std::array<std::string_view, model::kBioOperations> names{};
  std::copy_n(model::kOperationNames.begin(), names.size(), names.begin());
  return names;
}();
constexpr LabelDescription kBioOperation{"operation", "what the bio does", kBioOperationNames};
constexpr LabelDescription kVolume[] = {
    {"volume", "the block device that takes bios without making requests, as the kernel names it: dm-0, md0"},
    kBioOperation};
constexpr LabelDescription kLossCause{"cause",
                                      "untimed: there was no room to remember it, or it was not done, or ended in "
                                      "pieces or unreported; missed: its memory "
                                      "was used again, and no end was seen",
                                      kLossCauses};
constexpr LabelDescription kLosses[] = {kVolume[0], kBioOperation, kLossCause};
constexpr auto kDriftOperations = std::to_array<std::string_view>({"read", "write", "discard"});
constexpr LabelDescription kDrift[] = {
    kVolume[0], {"operation", "write: also write zeroes; discard: also secure erase", kDriftOperations}};
constexpr LabelDescription kMember[] = {
    {"member", "the disk or partition directly below a volume; volumes below volumes have series of their own"},
    kBioOperation};
constexpr LabelDescription kMemberLosses[] = {kMember[0], kBioOperation, kLossCause};

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_volume_latency_seconds",
     "Time of a bio from its submission to the volume, after any throttling, to its end, whatever it was split into "
     "below.",
     latency<true>, kVolume, kNoSample, Modes::all, Type::histogram},
    {"ssdpulse_volume_ios_total",
     "Bios submitted to the volume. The kernel's diskstats count the pieces into which the volume splits them, and "
     "empty flushes as writes.",
     counters<&BioOperation::submitted>, kVolume, kAbsent},
    {"ssdpulse_volume_bytes_total", "Bytes of bios submitted to the volume.", counters<&BioOperation::bytes>, kVolume,
     kAbsent},
    {"ssdpulse_volume_errors_total", "Bios of the volume that ended with an error.", counters<&BioOperation::errors>,
     kVolume, kAbsent},
    {"ssdpulse_volume_in_flight",
     "Bios of the volume that have not ended, including those that a suspended volume holds.", in_flight, kVolume,
     kAbsent},
    {"ssdpulse_volume_losses_total", "Bios of the volume that are counted and have no latency.", losses<true>, kLosses,
     kAbsent},
    {"ssdpulse_volume_accounting_drift_bytes",
     "Bytes of the volume counted by ssdpulse minus those in the kernel's diskstats, compared whenever both are idle. "
     "0 "
     "is correct.",
     accounting_drift, kDrift,
     "the volume has not been quiet yet, or the kernel keeps no statistics for it (queue/iostats is 0)"},
    {"ssdpulse_volume_member_latency_seconds",
     "Time of a bio of a disk or partition directly below a volume, from its submission to its end: including the wait "
     "for a tag, which its device's requests do not include.",
     latency<false>, kMember, kNoSample, Modes::all, Type::histogram},
    {"ssdpulse_volume_member_bytes_total", "Bytes of bios submitted to a disk or partition directly below a volume.",
     counters<&BioOperation::bytes, false>, kMember, kAbsent},
    {"ssdpulse_volume_member_losses_total",
     "Bios of a disk or partition directly below a volume that are counted and have no latency.", losses<false>,
     kMemberLosses, kAbsent},
    {"ssdpulse_volumes_left_out", "Volumes that are not measured, because the kernel's tables have no room for them.",
     left_out, kNoLabels, kAbsent},
};

}  // namespace

std::span<const FamilyDescription> volume_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
