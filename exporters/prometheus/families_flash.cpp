// SPDX-License-Identifier: Apache-2.0
// What the flash models report. Modelled amplification has `model` in its name: no alert may take it for a drive's own.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "daemon/model/flash_values.h"
#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::Estimate;
using model::FlashEstimate;
using model::FlashReport;
using model::Snapshot;

/// For each drive: visit(estimate, {{"controller", NAME}}), or "device" if it is not an NVMe drive.
template <typename Visit>
void for_each_drive(const Snapshot& snapshot, Visit visit) {
  if (snapshot.flash) {
    for (const FlashEstimate& drive : snapshot.flash->drives) {
      visit(drive, Labels{{drive.controller.empty() ? "device" : "controller", drive.name()}});
    }
  }
}

/// For each drive that a model has reported on.
template <typename Visit>
void for_each_report(const Snapshot& snapshot, Visit visit) {
  for_each_drive(snapshot, [&](const FlashEstimate& drive, Labels labels) {
    if (drive.report) {
      visit(drive, *drive.report, std::move(labels));
    }
  });
}

template <double Estimate::*Member>
void amplification(const Snapshot& snapshot, Samples& out) {
  for_each_report(snapshot, [&](const FlashEstimate& drive, const FlashReport& report, const Labels& labels) {
    if (drive.silence) {
      return;
    }
    const bool fitted = drive.overprovisioning.basis == model::OverprovisioningBasis::media_counter;
    const auto policy = drive.overprovisioning.policy;
    for (std::size_t i = 0; i < drive.likely.size(); ++i) {
      if (drive.likely[i]) {
        out.add(with(labels, {{"policy", policy ? label_of(*policy, model::kCollectionPolicyNames) : "any"},
                              {"overprovisioning", fitted ? "fitted" : "typical"},
                              {"discards", "honoured"},
                              {"placement", "none"},
                              {"window", std::string(model::kFlashWindowNames[i])}}),
                (*drive.likely[i]).*Member);
      }
    }
    for (const model::ModelledAmplification& found : report.amplification) {
      const model::WhatIf& what = found.what_if;
      out.add(with(labels, {{"policy", label_of(what.policy, model::kCollectionPolicyNames)},
                            {"overprovisioning", fmt::format("{:.3g}", what.overprovisioning)},
                            {"discards", label_of(what.discards, model::kDiscardsNames)},
                            {"placement", label_of(what.placement, model::kPlacementNames)},
                            {"window", label_of(found.window, model::kFlashWindowNames)}}),
              found.estimate.*Member);
    }
  });
}

void silence(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const FlashEstimate& drive, const Labels& labels) {
    for (std::size_t i = 0; i < model::kFlashWindows; ++i) {
      const auto reason = drive.silence  ? drive.silence
                          : drive.report ? drive.report->silence[i]
                                         : std::optional(model::FlashSilence::warming_up);
      if (reason) {
        out.add_info(with(labels, {{"window", std::string(model::kFlashWindowNames[i])},
                                   {"reason", label_of(*reason, model::kFlashSilenceNames)}}));
      }
    }
  });
}

template <double model::EffectiveOverprovisioning::*Member>
void overprovisioning(const Snapshot& snapshot, Samples& out) {
  for_each_report(snapshot, [&](const FlashEstimate& drive, const FlashReport&, const Labels& labels) {
    out.add(with(labels, {{"basis", label_of(drive.overprovisioning.basis, model::kOverprovisioningBasisNames)}}),
            drive.overprovisioning.*Member);
  });
}

template <double model::ModelDrift::*Member>
void drift(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const FlashEstimate& drive, Labels labels) {
    if (drive.drift) {
      out.add(std::move(labels), (*drive.drift).*Member);
    }
  });
}

template <double FlashReport::*Member>
void figure(const Snapshot& snapshot, Samples& out) {
  for_each_report(snapshot, [&](const FlashEstimate&, const FlashReport& report, Labels labels) {
    out.add(std::move(labels), report.*Member);
  });
}

template <std::uint64_t FlashReport::*Member>
void count(const Snapshot& snapshot, Samples& out) {
  for_each_report(snapshot, [&](const FlashEstimate&, const FlashReport& report, Labels labels) {
    out.add(std::move(labels), to_double(report.*Member));
  });
}

void lost_events(const Snapshot& snapshot, Samples& out) {
  for_each_report(snapshot, [&](const FlashEstimate& drive, const FlashReport&, const Labels& labels) {
    out.add(with(labels, {{"kind", "write"}}), to_double(drive.lost_writes), daemon_start(snapshot));
    out.add(with(labels, {{"kind", "discard"}}), to_double(drive.lost_discards), daemon_start(snapshot));
  });
}

void lost_share(const Snapshot& snapshot, Samples& out) {
  for_each_report(snapshot, [&](const FlashEstimate&, const FlashReport& report, const Labels& labels) {
    out.add(with(labels, {{"kind", "write"}}), report.lost_writes);
    out.add(with(labels, {{"kind", "discard"}}), report.lost_discards);
  });
}

std::string hint(std::uint8_t number) {
  return number < model::kWriteHints ? std::string(model::kWriteHintNames[number]) : "unknown";
}

void lifetime(const Snapshot& snapshot, Samples& out) {
  for_each_report(snapshot, [&](const FlashEstimate&, const FlashReport& report, const Labels& labels) {
    for (const model::WriteLifetime& entry : report.lifetimes) {
      out.add(with(labels, {{"hint", hint(entry.hint)}, {"share", fmt::format("{:.3g}", entry.quantile)}}),
              entry.bytes);
    }
  });
}

void alive(const Snapshot& snapshot, Samples& out) {
  for_each_report(snapshot, [&](const FlashEstimate&, const FlashReport& report, const Labels& labels) {
    for (std::uint8_t i = 0; i < model::kWriteHints; ++i) {
      out.add(with(labels, {{"hint", hint(i)}}), report.alive[i]);
    }
  });
}

void order_violation(const Snapshot& snapshot, Samples& out) {
  for_each_report(snapshot, [&](const FlashEstimate&, const FlashReport& report, const Labels& labels) {
    for (const model::HintOrderViolation& entry : report.order_violations) {
      out.add(with(labels, {{"shorter", hint(entry.shorter)}, {"longer", hint(entry.longer)}}),
              entry.median_of_shorter_bytes / entry.median_of_longer_bytes);
    }
  });
}

void since_discard(const Snapshot& snapshot, Samples& out) {
  for_each_report(snapshot, [&](const FlashEstimate&, const FlashReport& report, Labels labels) {
    if (const auto& bytes = report.written_since_full_discard_bytes) {
      out.add(std::move(labels), to_double(*bytes));
    }
  });
}

template <double model::ByteRange::*Member>
void collection_begins(const Snapshot& snapshot, Samples& out) {
  for_each_drive(snapshot, [&](const FlashEstimate& drive, Labels labels) {
    if (drive.collection_begins) {
      out.add(std::move(labels), (*drive.collection_begins).*Member);
    }
  });
}

template <std::uint64_t model::FlashFigures::*Member>
void memory(const Snapshot& snapshot, Samples& out) {
  if (snapshot.flash) {
    out.add({}, to_double((*snapshot.flash).*Member));
  }
}

void scale(const Snapshot& snapshot, Samples& out) {
  if (snapshot.flash && !snapshot.flash->scale.empty()) {
    out.add_info({{"scale", snapshot.flash->scale}});
  }
}

void overflowed(const Snapshot& snapshot, Samples& out) {
  if (snapshot.flash) {
    out.add({}, to_double(snapshot.flash->overflowed_events), daemon_start(snapshot));
  }
}

void state_failures(const Snapshot& snapshot, Samples& out) {
  if (snapshot.flash) {
    out.add({{"kind", "rejected"}}, to_double(snapshot.flash->states_rejected), daemon_start(snapshot));
    out.add({{"kind", "not_written"}}, to_double(snapshot.flash->state_failures), daemon_start(snapshot));
  }
}

constexpr auto kKinds = std::to_array<std::string_view>({"write", "discard"});
constexpr auto kStateFailures = std::to_array<std::string_view>({"rejected", "not_written"});
constexpr auto kScales = std::to_array<std::string_view>({"all", "fewer_what_ifs", "smaller_samples", "fewer_drives"});

constexpr LabelDescription kDisk{"device", "the disk, if it is not an NVMe drive"};
constexpr LabelDescription kWindow{
    "window", "the period; drive_write: the time the host took to write as much as the drive holds",
    model::kFlashWindowNames};
constexpr LabelDescription kHint{"hint", "the lifetime that the writer declared", model::kWriteHintNames};

constexpr LabelDescription kDriveLabels[]{kController, kDisk};
constexpr LabelDescription kAmplificationLabels[]{
    kController,
    kDisk,
    {"policy", "how the drive collects garbage; any: the bounds hold for every policy that the drive may use"},
    {"overprovisioning",
     "flash beyond what the host sees, divided by what it sees: a number; fitted: to the drive's media counter; "
     "typical: for drives of this size"},
    {"discards", "whether the drive makes use of them", model::kDiscardsNames},
    {"placement", "what the drive keeps apart", model::kPlacementNames},
    kWindow};
constexpr LabelDescription kSilenceLabels[]{
    kController, kDisk, kWindow, {"reason", "why there is no estimate", model::kFlashSilenceNames}};
constexpr LabelDescription kBasisLabels[]{
    kController, kDisk, {"basis", "how it is known", model::kOverprovisioningBasisNames}};
constexpr LabelDescription kKindLabels[]{kController, kDisk, {"kind", "of event; discard: also zeroes", kKinds}};
constexpr LabelDescription kHintLabels[]{kController, kDisk, kHint};
constexpr LabelDescription kLifetimeLabels[]{
    kController, kDisk, kHint, {"share", "0.1, 0.5 or 0.9 of what was written"}};
constexpr LabelDescription kOrderLabels[]{kController,
                                          kDisk,
                                          {"shorter", "the hint that is declared shorter", model::kWriteHintNames},
                                          {"longer", "the hint that is declared longer", model::kWriteHintNames}};
constexpr LabelDescription kScaleLabels[]{{"scale", "what the memory allows for", kScales}};
constexpr LabelDescription kStateLabels[]{
    {"kind", "rejected: a file was damaged or not readable; not_written: it could not be saved", kStateFailures}};

constexpr std::string_view kSilent =
    "ssdpulse_modelled_write_amplification_silence_info says why: too little was written, the bounds are more than "
    "25 % apart, ...";
constexpr std::string_view kNoModel = "the drive has no model";
constexpr std::string_view kOff = "flash_model.enabled is false";
constexpr std::string_view kNoDrift = "the drive has no counter of media writes, or it was not fitted a day ago";
constexpr std::string_view kNoDiscard = "no discard of at least 95 % of the drive was seen";
constexpr std::string_view kFewPages = "fewer than 100 followed pages were written with this hint and then rewritten";

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_modelled_write_amplification_ratio",
     "Media writes per host write that follow from what the host writes, for a drive that works as the labels say. "
     "Modelled, not measured.",
     amplification<&Estimate::ratio>, kAmplificationLabels, kSilent},
    {"ssdpulse_modelled_write_amplification_lower_ratio",
     "Lower bound of the modelled write amplification: sampling, lost events, unknown pages.",
     amplification<&Estimate::lower>, kAmplificationLabels, kSilent},
    {"ssdpulse_modelled_write_amplification_upper_ratio",
     "Upper bound of the modelled write amplification: sampling, lost events, unknown pages.",
     amplification<&Estimate::upper>, kAmplificationLabels, kSilent},
    {"ssdpulse_modelled_write_amplification_silence_info",
     "Why the write amplification of a window is not modelled; always 1.", silence, kSilenceLabels,
     "there is an estimate"},
    {"ssdpulse_model_effective_overprovisioning_ratio",
     "Flash beyond what the host sees, divided by what it sees, as the model assumes for the drive.",
     overprovisioning<&model::EffectiveOverprovisioning::likely>, kBasisLabels, kNoModel},
    {"ssdpulse_model_effective_overprovisioning_lower_ratio",
     "Lower bound of the flash beyond what the host sees, divided by what it sees, as the model assumes for the drive.",
     overprovisioning<&model::EffectiveOverprovisioning::lower>, kBasisLabels, kNoModel},
    {"ssdpulse_model_effective_overprovisioning_upper_ratio",
     "Upper bound of the flash beyond what the host sees, divided by what it sees, as the model assumes for the drive.",
     overprovisioning<&model::EffectiveOverprovisioning::upper>, kBasisLabels, kNoModel},
    {"ssdpulse_model_drift_ratio",
     "Modelled divided by measured write amplification of the last day, minus 1, at the over-provisioning that was "
     "fitted before. If 0 is outside the bounds, the drive works differently from the model.",
     drift<&model::ModelDrift::ratio>, kDriveLabels, kNoDrift},
    {"ssdpulse_model_drift_lower_ratio",
     "Lower bound of modelled divided by measured write amplification of the last day, minus 1.",
     drift<&model::ModelDrift::lower>, kDriveLabels, kNoDrift},
    {"ssdpulse_model_drift_upper_ratio",
     "Upper bound of modelled divided by measured write amplification of the last day, minus 1.",
     drift<&model::ModelDrift::upper>, kDriveLabels, kNoDrift},
    {"ssdpulse_model_written_drive_writes",
     "What the host wrote since the model started, divided by what the drive holds. The model is meaningful from 0.5 "
     "to 1 on, and steady from 2 on.",
     figure<&FlashReport::drive_writes>, kDriveLabels, kNoModel},
    {"ssdpulse_model_unknown_pages_ratio",
     "Share of the drive that has been neither written nor discarded since the model started: whether it holds data is "
     "unknown.",
     figure<&FlashReport::unknown_pages>, kDriveLabels, kNoModel},
    {"ssdpulse_model_sampled_writes_total", "Writes to followed pages that reached the model.",
     count<&FlashReport::sampled_writes>, kDriveLabels, kNoModel},
    {"ssdpulse_model_lost_events_total", "Events of followed pages that never reached the model.", lost_events,
     kKindLabels, kNoModel},
    {"ssdpulse_model_lost_events_ratio",
     "Share of the events of the last drive write that were lost. Above 0.03 of writes or 0.005 of discards, there is "
     "no estimate.",
     lost_share, kKindLabels, kNoModel},
    {"ssdpulse_model_block_bytes",
     "Size of the modelled erase block. If real ones are smaller than files, the model reads high.",
     count<&FlashReport::block_bytes>, kDriveLabels, kNoModel},
    {"ssdpulse_write_lifetime_bytes",
     "How much the host writes to the drive until this share of what was written with this hint is overwritten or "
     "discarded.",
     lifetime, kLifetimeLabels, kFewPages},
    {"ssdpulse_write_lifetime_alive_ratio", "Share of what was written with this hint that is still there.", alive,
     kHintLabels, kFewPages},
    {"ssdpulse_write_hint_order_violation",
     "Data declared shorter-lived lives longer: its median lifetime divided by that of the other.", order_violation,
     kOrderLabels, "no two hints are known to be in the wrong order"},
    {"ssdpulse_written_since_full_discard_bytes", "What the host wrote since a discard of at least 95 % of the drive.",
     since_discard, kDriveLabels, kNoDiscard},
    {"ssdpulse_collection_begins_lower_bytes",
     "Bytes written after a full discard before garbage collection begins, at the earliest.",
     collection_begins<&model::ByteRange::lower>, kDriveLabels, kNoDiscard},
    {"ssdpulse_collection_begins_upper_bytes",
     "Bytes written after a full discard before garbage collection begins, at the latest.",
     collection_begins<&model::ByteRange::upper>, kDriveLabels, kNoDiscard},
    {"ssdpulse_model_memory_bytes", "Memory of all flash models.", memory<&model::FlashFigures::memory_bytes>,
     kNoLabels, kOff},
    {"ssdpulse_model_memory_limit_bytes", "Memory that all flash models may take: flash_model.memory.",
     memory<&model::FlashFigures::memory_limit_bytes>, kNoLabels, kOff},
    {"ssdpulse_model_scale_info",
     "Whether the memory suffices for all what-ifs of all drives, and if not, what was given up; always 1.", scale,
     kScaleLabels, kOff},
    {"ssdpulse_model_overflowed_events_total",
     "Events that the models' thread did not take in time; included in the lost ones.", overflowed, kNoLabels, kOff},
    {"ssdpulse_model_state_failures_total", "Model states that could not be saved, or resumed after a restart.",
     state_failures, kStateLabels, kOff},
};

}  // namespace

std::span<const FamilyDescription> flash_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
