// SPDX-License-Identifier: Apache-2.0
// What a drive would write with more spare flash, without discards, with hints.
#include "exporters/page/page_json.h"
#include "exporters/words/page.h"

namespace ssdpulse::page {
namespace {

/// A ratio with its bounds.
struct Bounds {
  double ratio;
  double lower;
  double upper;
  Json window = absent();  // of what was measured
  Json basis = absent();   // of over-provisioning
};

template <typename Given>
std::optional<Bounds> bounds_of(const std::optional<Given>& value) {
  return value ? std::optional(Bounds{value->ratio, value->lower, value->upper}) : std::nullopt;
}

constexpr Field<Bounds> kBoundsFields[] = {
    {"ratio", kNumber, member_of<&Bounds::ratio>},
    {"lower", kNumber, member_of<&Bounds::lower>},
    {"upper", kNumber, member_of<&Bounds::upper>},
    {"window", may_be_absent(kText), member_of<&Bounds::window>, "Of what was measured."},
    {"basis", may_be_absent(one_of(model::kOverprovisioningBasisNames)), member_of<&Bounds::basis>,
     "Of over-provisioning: what it is derived from."},
};
constexpr Object<Bounds> kBounds{"bounds", "", kBoundsFields};

Json bounds_json(const std::optional<Bounds>& bounds) { return bounds ? kBounds(*bounds) : Json(); }

constexpr Field<flash::WhatIfLife> kLifeFields[] = {
    {"seconds", or_null(kSeconds), member_of<&flash::WhatIfLife::seconds>},
    {"lower", or_null(kSeconds), member_of<&flash::WhatIfLife::lower>},
    {"upper", or_null(kSeconds), member_of<&flash::WhatIfLife::upper>},
};
constexpr Object<flash::WhatIfLife> kLife{"what_if_life", "", kLifeFields};

constexpr Field<flash::WhatIfRow> kRowFields[] = {
    {"overprovisioning", kSeconds, [](const flash::WhatIfRow& row) { return row.what.overprovisioning; }},
    {"policy", one_of(model::kCollectionPolicyNames),
     [](const flash::WhatIfRow& row) { return name(row.what.policy, model::kCollectionPolicyNames); }},
    {"discards", one_of(model::kDiscardsNames),
     [](const flash::WhatIfRow& row) { return name(row.what.discards, model::kDiscardsNames); }},
    {"placement", one_of(model::kPlacementNames),
     [](const flash::WhatIfRow& row) { return name(row.what.placement, model::kPlacementNames); }},
    {"write_amplification", or_null(defined_as("bounds")),
     [](const flash::WhatIfRow& row) { return bounds_json(bounds_of(std::optional(row.estimate))); }},
    {"interpolated", kFlag, member_of<&flash::WhatIfRow::interpolated>, "Between what was modelled."},
    {"life", or_null(defined_as("what_if_life")),
     [](const flash::WhatIfRow& row) { return row.life ? kLife(*row.life) : Json(); }},
};
constexpr Object<flash::WhatIfRow> kRow{"what_if_row", "", kRowFields};

struct WhatIfView {
  const std::string& device;
  bool switched_off;
  const model::FlashEstimate* drive;  // null: it is not modelled; then there is no answer
  const flash::WhatIfAnswer& answer;
};

std::string words_of(const WhatIfView& view) {
  return view.drive != nullptr ? util::for_json(view.answer.text)
         : view.switched_off   ? words::page::kNoneModelled
                               : words::page::kNoneModelledYet;
}

Json silence_of(const WhatIfView& view) {
  if (view.drive == nullptr) {
    return view.switched_off ? "switched_off" : "warming_up";
  }
  return view.answer.silence ? Json(name(*view.answer.silence, model::kFlashSilenceNames)) : Json();
}

Json overprovisioning_of(const model::FlashEstimate& drive) {
  const auto& spare = drive.overprovisioning;
  if (spare.likely == 0) {
    return {};
  }
  Bounds bounds{spare.likely, spare.lower, spare.upper};
  bounds.basis = name(spare.basis, model::kOverprovisioningBasisNames);
  return kBounds(bounds);
}

Json measured_of(const flash::WhatIfAnswer& answer) {
  auto bounds = bounds_of(answer.measured);
  if (bounds) {
    bounds->window = util::for_json(answer.measured->window);
  }
  return bounds_json(bounds);
}

Json assumptions_of(const flash::WhatIfAnswer& answer) {
  Json assumptions = Json::array();
  for (const std::string& assumption : answer.assumptions) {
    assumptions.push_back(util::for_json(assumption));
  }
  return assumptions;
}

constexpr auto kSilences = [] {
  std::array<std::string_view, model::kFlashSilenceNames.size() + 1> all{"switched_off"};
  std::copy(model::kFlashSilenceNames.begin(), model::kFlashSilenceNames.end(), all.begin() + 1);
  return all;
}();

constexpr Field<WhatIfView> kWhatIfFields[] = {
    {"device", kText, [](const WhatIfView& view) { return util::for_json(view.device); }},
    {"drive", may_be_absent(kText),
     [](const WhatIfView& view) { return view.drive ? Json(util::for_json(view.drive->name())) : absent(); },
     "The controller, or the disk."},
    {"words", kSentence, [](const WhatIfView& view) { return words_of(view); }},
    {"silence", or_null(one_of(kSilences)), [](const WhatIfView& view) { return silence_of(view); },
     "Why there are no rows; null: there are."},
    {"window", may_be_absent(one_of(model::kFlashWindowNames)),
     [](const WhatIfView& view) {
       return view.drive ? Json(name(view.answer.window, model::kFlashWindowNames)) : absent();
     }},
    {"drive_writes", may_be_absent(or_null(kSeconds)),
     [](const WhatIfView& view) {
       return !view.drive ? absent() : view.drive->report ? Json(view.drive->report->drive_writes) : Json();
     },
     "Seen since the model began."},
    {"unknown_ratio", may_be_absent(or_null(kRatio)),
     [](const WhatIfView& view) {
       return !view.drive ? absent() : view.drive->report ? Json(view.drive->report->unknown_pages) : Json();
     }},
    {"overprovisioning", may_be_absent(or_null(defined_as("bounds"))),
     [](const WhatIfView& view) { return view.drive ? overprovisioning_of(*view.drive) : absent(); }},
    {"modelled", may_be_absent(or_null(defined_as("bounds"))),
     [](const WhatIfView& view) { return view.drive ? bounds_json(bounds_of(view.answer.likely)) : absent(); },
     "Of the drive as it is."},
    {"measured", may_be_absent(or_null(defined_as("bounds"))),
     [](const WhatIfView& view) { return view.drive ? measured_of(view.answer) : absent(); },
     "By the drive's own counter."},
    {"life_seconds", may_be_absent(or_null(kSeconds)),
     [](const WhatIfView& view) { return view.drive ? json_of(view.answer.life_seconds) : absent(); }},
    {"rows", list_of(defined_as("what_if_row")), [](const WhatIfView& view) { return kRow.list(view.answer.rows); }},
    {"assumptions", may_be_absent(list_of(kText)),
     [](const WhatIfView& view) { return view.drive ? assumptions_of(view.answer) : absent(); }},
    {"beyond", may_be_absent(list_of(kNumber)),
     [](const WhatIfView& view) { return view.drive ? Json(view.answer.beyond) : absent(); },
     "Over-provisioning that is not modelled."},
};
constexpr Object<WhatIfView> kWhatIf{
    "what_if",
    "/api/v1/devices/NAME/what-if?op=PERCENT,...&window=WINDOW: what the drive would write to its media, by the model "
    "of its load. `words` says what is modelled, or why nothing is; then there are no rows.",
    kWhatIfFields, Head::snapshot};

}  // namespace

Definitions what_if_definitions() { return {kBounds, kLife, kRow, kWhatIf}; }

Json what_if_json(const model::Snapshot& snapshot, const std::string& device, const flash::WhatIfQuestion& question) {
  Json answer = head_of(snapshot);
  const model::FlashEstimate* const drive = flash::estimate_of(snapshot, device);
  const auto said = drive == nullptr ? flash::WhatIfAnswer{} : flash::what_if(snapshot, *drive, question);
  kWhatIf.append_to(answer, {device, !snapshot.flash, drive, said});
  return answer;
}

}  // namespace ssdpulse::page
