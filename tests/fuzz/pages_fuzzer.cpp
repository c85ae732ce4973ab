// SPDX-License-Identifier: Apache-2.0
// Can any bytes make a log page decoder crash, or report something that no drive can report?
// Input: one byte that chooses the page, two bytes for the drive's vendor, then the page as read.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "daemon/nvme_pages/log_page.h"

namespace {

using namespace ssdpulse;

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "what must hold does not: %s\n", what);
    std::abort();
  }
}

void check(const nvme::PageContent& content) {
  std::set<std::pair<model::NvmeField, std::string>> series;
  for (const auto& value : content.values) {
    const auto index = static_cast<std::size_t>(value.field);
    require(index < model::kNvmeFields, "a field that is described");
    const auto& field = model::kNvmeFieldDescriptions.at(index);
    require(std::isfinite(value.value), "a finite value");
    require(value.value >= (field.unit == "celsius" ? -273 : 0), "a value that is not negative");
    require(value.label.empty() == field.label.empty(), "a label where there is one");
    require(series.insert({value.field, value.label}).second, "one value a series");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHeader = 3;
  if (size < kHeader) {
    return 0;
  }
  const auto pages = nvme::log_pages();
  const auto& page = pages[data[0] % pages.size()];
  model::NvmeIdentity identity;
  identity.vendor_id = static_cast<std::uint16_t>(data[1] | data[2] << 8);
  identity.controller_attributes = ~std::uint32_t{0};
  page.offered(identity);
  const nvme::Bytes bytes(data + kHeader, size - kHeader);
  if (const auto content = page.decode(bytes, identity)) {
    require(bytes.size() >= page.bytes, "a short page is an error");
    check(*content);
  } else {
    require(!content.error().message.empty(), "an error in words");
  }
  return 0;
}
