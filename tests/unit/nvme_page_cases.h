// SPDX-License-Identifier: Apache-2.0
// The log pages made by tests/fixtures/nvme, and the values that they contain.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/nvme_pages/log_page.h"

#ifndef SSDPULSE_NVME_PAGE_CASES
#define SSDPULSE_NVME_PAGE_CASES ""  // the build defines where the file of cases is
#endif

namespace ssdpulse::nvme_test {

using Values = std::map<std::pair<std::string, std::string>, double>;  // by the metric's name and label

inline const nlohmann::json& page_cases() {
  static const nlohmann::json document = nlohmann::json::parse(std::ifstream(SSDPULSE_NVME_PAGE_CASES));
  return document;
}

inline std::vector<std::uint8_t> from_hexadecimal(const std::string& text) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t digit = 0; digit + 1 < text.size(); digit += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(digit, 2), nullptr, 16)));
  }
  return bytes;
}

inline const nlohmann::json& case_named(const std::string& name) {
  for (const auto& page_case : page_cases()["cases"]) {
    if (page_case["name"] == name) {
      return page_case;
    }
  }
  throw std::runtime_error("no case " + name);
}

inline model::NvmeIdentity identity_of(const nlohmann::json& description) {
  model::NvmeIdentity identity;
  identity.vendor_id = description["vendor"].get<std::uint16_t>();
  identity.model = description["model"].get<std::string>();
  identity.controller_attributes = description["attributes"].get<std::uint32_t>();
  for (const auto& text : description["uuids"]) {
    const auto bytes = from_hexadecimal(text.get<std::string>());
    nvme::Uuid uuid{};
    std::copy_n(bytes.begin(), uuid.size(), uuid.begin());
    identity.uuids.push_back(uuid);
  }
  for (const auto& [offset, value] : description["vendor_specific"].items()) {
    identity.vendor_specific.at(std::stoul(offset) - 3072) = value.get<std::uint8_t>();
  }
  return identity;
}

inline const nvme::LogPage& page_named(const std::string& name) {
  for (const auto& page : nvme::log_pages()) {
    if (page.name == name) {
      return page;
    }
  }
  throw std::runtime_error("no page " + name);
}

inline std::string metric_of(model::NvmeField field) {
  return std::string(model::kNvmeFieldDescriptions.at(static_cast<std::size_t>(field)).metric);
}

inline Values values_of(const nvme::PageContent& content) {
  Values values;
  for (const auto& value : content.values) {
    values[{metric_of(value.field), value.label}] = value.value;
  }
  return values;
}

/// All the content of a page, so that two answers can be compared.
inline std::string text_of(const util::Result<nvme::PageContent>& content) {
  if (!content) {
    return "error: " + content.error().message;
  }
  nlohmann::json text;
  for (const auto& [key, value] : values_of(*content)) {
    text.push_back({key.first, key.second, value});
  }
  for (const auto& counter : {content->writes.host, content->writes.media, content->endurance_estimate}) {
    if (counter) {
      text.push_back({static_cast<std::uint64_t>(counter->count), static_cast<std::uint64_t>(counter->count >> 64),
                      counter->unit_bytes, static_cast<int>(counter->rounding)});
    } else {
      text.push_back("absent");
    }
  }
  text.push_back(content->percentage_used ? nlohmann::json(*content->percentage_used) : nlohmann::json());
  text.push_back(content->media_includes_slc);
  return text.dump();
}

}  // namespace ssdpulse::nvme_test
