// SPDX-License-Identifier: Apache-2.0
// What would a drive do with more spare flash, without discards, with hints?
#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

template <typename Bounds>
Json bounds_json(const std::optional<Bounds>& value) {
  return value ? Json{{"ratio", value->ratio}, {"lower", value->lower}, {"upper", value->upper}} : Json();
}

Json life_json(const std::optional<model::Estimate>& life) {
  return life ? Json{{"seconds", life->ratio}, {"lower", life->lower}, {"upper", life->upper}} : Json();
}

Json row_json(const live::WhatIfRow& row) {
  return {{"overprovisioning", row.what.overprovisioning},
          {"policy", name(row.what.policy, model::kCollectionPolicyNames)},
          {"discards", name(row.what.discards, model::kDiscardsNames)},
          {"placement", name(row.what.placement, model::kPlacementNames)},
          {"write_amplification", bounds_json(std::optional(row.estimate))},
          {"interpolated", row.interpolated},
          {"life", life_json(row.life_seconds)}};
}

}  // namespace

Json what_if_json(const model::Snapshot& snapshot, const std::string& device, const live::WhatIfQuestion& question) {
  Json answer = head_of(snapshot);
  answer["device"] = util::for_json(device);
  const model::FlashEstimate* const drive = live::estimate_of(snapshot, device);
  if (drive == nullptr) {
    answer["words"] = snapshot.flash ? "none modelled yet: the drive has not been identified"
                                     : "none modelled: flash_model.enabled is false";
    answer["silence"] = snapshot.flash ? "warming_up" : "switched_off";
    answer["rows"] = Json::array();
    return answer;
  }
  const live::WhatIfAnswer said = live::what_if(snapshot, *drive, question);
  answer["drive"] = util::for_json(drive->name());
  answer["words"] = util::for_json(said.words);
  answer["silence"] = said.silence ? Json(name(*said.silence, model::kFlashSilenceNames)) : Json();
  answer["window"] = name(said.window, model::kFlashWindowNames);
  answer["drive_writes"] = drive->report ? Json(drive->report->drive_writes) : Json();
  answer["unknown_ratio"] = drive->report ? Json(drive->report->unknown_pages) : Json();
  const auto& spare = drive->overprovisioning;
  answer["overprovisioning"] = spare.likely == 0
                                   ? Json()
                                   : Json{{"ratio", spare.likely},
                                          {"lower", spare.lower},
                                          {"upper", spare.upper},
                                          {"basis", name(spare.basis, model::kOverprovisioningBasisNames)}};
  answer["modelled"] = bounds_json(said.likely);
  answer["measured"] = bounds_json(said.measured);
  if (said.measured) {
    answer["measured"]["window"] = util::for_json(said.measured->window);
  }
  answer["life_seconds"] = said.life_seconds ? Json(*said.life_seconds) : Json();
  answer["rows"] = Json::array();
  for (const live::WhatIfRow& row : said.rows) {
    answer["rows"].push_back(row_json(row));
  }
  answer["assumptions"] = Json::array();
  for (const std::string& assumption : said.assumptions) {
    answer["assumptions"].push_back(util::for_json(assumption));
  }
  answer["beyond"] = said.beyond;
  return answer;
}

}  // namespace ssdpulse::page
