// SPDX-License-Identifier: Apache-2.0
// Can any bytes make a page decoder report nonsense, or worse? Random bytes, and real pages with random damage.
// Sanitizers catch reads beyond the bytes: every page is in an allocation of exactly its size.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <set>

#include "tests/unit/nvme_page_cases.h"

namespace ssdpulse::nvme_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// What must hold for anything that a decoder reports.
void check(const util::Result<nvme::PageContent>& content) {
  if (!content) {
    RC_ASSERT(!content.error().message.empty());
    RC_ASSERT(content.error().message.find('\n') == std::string::npos);
    return;
  }
  std::set<std::pair<model::NvmeField, std::string>> series;
  for (const auto& value : content->values) {
    RC_ASSERT(static_cast<std::size_t>(value.field) < model::kNvmeFields);
    const auto& field = model::kNvmeFieldDescriptions.at(static_cast<std::size_t>(value.field));
    RC_ASSERT(std::isfinite(value.value));
    RC_ASSERT(value.value >= (field.unit == "celsius" ? -273 : 0));
    RC_ASSERT(value.label.empty() == field.label.empty());
    RC_ASSERT(series.insert({value.field, value.label}).second);
    RC_ASSERT(value.endurance_group == 0);
  }
  if (content->percentage_used) {
    RC_ASSERT(*content->percentage_used >= 0 && *content->percentage_used <= 2.55);
  }
}

model::NvmeIdentity any_identity() {
  model::NvmeIdentity identity;
  identity.controller_attributes = *rc::gen::arbitrary<std::uint32_t>();
  return identity;
}

TEST(HostilePages, AnyBytesOfAnyLength) {
  const bool holds = rc::check("any bytes", [] {
    const auto size = *rc::gen::inRange<std::size_t>(0, nvme::kMaxPageBytes + 64);
    const auto seed = *rc::gen::arbitrary<std::uint32_t>();
    // High bytes, low bytes, few different ones: a uniform page is rejected early.
    const auto mask = *rc::gen::element<std::uint8_t>(0xff, 0x0f, 0x01, 0xf0, 0x81);
    Bytes bytes(size);
    std::uint32_t state = seed | 1U;
    for (auto& byte : bytes) {
      state = state * 1664525U + 1013904223U;
      byte = static_cast<std::uint8_t>(state >> 24U) & mask;
    }
    const auto identity = any_identity();
    for (const auto& page : nvme::log_pages()) {
      const auto content = page.decode(bytes, identity);
      RC_ASSERT(!content || size >= page.bytes);
      check(content);
    }
  });
  EXPECT_TRUE(holds);
}

TEST(HostilePages, DamagedPages) {
  std::vector<std::pair<std::string, Bytes>> originals;
  for (const auto& page_case : page_cases()["cases"]) {
    originals.emplace_back(page_case["page"].get<std::string>(),
                           from_hexadecimal(page_case["bytes"].get<std::string>()));
  }
  const bool holds = rc::check("damaged pages", [&] {
    const auto& [name, original] = originals.at(*rc::gen::inRange<std::size_t>(0, originals.size()));
    Bytes bytes = original;
    for (auto damage = *rc::gen::inRange(1, 12); damage > 0; --damage) {
      // Half of the damage is at the start, where counts and lengths are.
      const auto reach = *rc::gen::arbitrary<bool>() ? std::size_t{64} : bytes.size();
      bytes.at(*rc::gen::inRange<std::size_t>(0, reach)) =
          *rc::gen::oneOf(rc::gen::element<std::uint8_t>(0, 1, 0x7f, 0x80, 0xff), rc::gen::arbitrary<std::uint8_t>());
    }
    check(page_named(name).decode(bytes, any_identity()));
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace ssdpulse::nvme_test
