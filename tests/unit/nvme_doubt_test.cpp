// SPDX-License-Identifier: Apache-2.0
// What becomes of pages that cannot be true? A healthy drive whose pages are replaced for a while: nothing impossible
// is ever exported, all of it is named and counted, and afterwards every value is the true one.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/unit/nvme_drive_rig.h"

namespace ssdpulse::nvme {
namespace {

using F = model::NvmeField;
using Page = std::vector<std::uint8_t>;

/// A drive that ages as one does, and the page that it shows instead, if any.
struct Doubtful : Rig {
  std::uint64_t media = 4'000'000'000'000;
  std::uint64_t commands = 1'000'000'000;
  std::function<void(nvme_reader::Response&)> instead;
  std::function<std::uint64_t()> media_instead;

  Doubtful() {
    interval = 10s;
    fake.data_units = 5'000'000;
    fake.pages["smart"] = [this](auto& response) {
      std::uint8_t* page = response.data.data();
      put(page + 1, 313, 2);
      put(page + 3, 100, 1);
      put(page + 4, 10, 1);
      put(page + 5, 7, 1);
      put(page + 48, fake.data_units, 8);
      put(page + 80, commands, 8);
      put(page + 112, 12, 8);
      put(page + 128, 9000, 8);
      put(page + 160, 5, 8);
      if (instead) {
        instead(response);
      }
    };
    fake.pages["ocp_smart"] = [this](auto& response) { fill_ocp(response, media_instead ? media_instead() : media); };
    polls(4);
    remember(model::Recalled{});
  }

  void polls(int times) {
    for (int i = 0; i < times; ++i) {
      write(512'000'000);
      media += 1'000'000'000;
      commands += 1000;
      poll(10s);
      note_worst();
    }
  }
  /// Notes a value that the drive never had.
  void note_worst() {
    const auto said = told();
    for (const model::NvmeValue& value : said.values) {
      const auto known = truth(value);
      worst_ = known && *known < value.value
                   ? std::string(model::kNvmeFieldDescriptions.at(static_cast<std::size_t>(value.field)).metric) + " " +
                         std::to_string(value.value)
                   : worst_;
    }
    const auto& writes = said.write_amplification;
    worst_ = writes.host_written_bytes.value_or(0) > static_cast<double>(fake.data_units) * 512'000
                 ? "host " + std::to_string(*writes.host_written_bytes)
                 : worst_;
    worst_ = writes.media_written_bytes.value_or(0) > static_cast<double>(media)
                 ? "media " + std::to_string(*writes.media_written_bytes)
                 : worst_;
  }
  [[nodiscard]] std::optional<double> truth(const model::NvmeValue& value) const {
    switch (value.field) {
      case F::critical_warning:
        return 0;
      case F::temperature_celsius:
        return value.label == "composite" ? 40 : 200;
      case F::available_spare_ratio:
        return 1;
      case F::available_spare_threshold_ratio:
        return 0.1;
      case F::percentage_used_ratio:
        return 0.07;
      case F::power_on_seconds:
        return 9000.0 * 3600;
      case F::host_commands:
        return static_cast<double>(commands);
      case F::media_errors:
        return 5;
      default:
        return std::nullopt;
    }
  }
  [[nodiscard]] std::string worst() const { return worst_; }
  [[nodiscard]] std::uint64_t failures(const std::string& kind) {
    const auto said = told().polling.failures;
    const auto found = said.find(kind);
    return found == said.end() ? 0 : found->second;
  }
  [[nodiscard]] bool is_well() {
    const auto said = told();
    return said.polling.up && value(F::temperature_celsius) == 40 && value(F::percentage_used_ratio) == 0.07 &&
           said.write_amplification.host_written_bytes == static_cast<double>(fake.data_units) * 512'000 &&
           said.write_amplification.media_written_bytes == static_cast<double>(media);
  }

 private:
  std::string worst_;
};

void fill(nvme_reader::Response& response, std::uint32_t seed, std::uint8_t mask) {
  for (std::size_t i = 0; i < 512; ++i) {
    seed = seed * 1664525U + 1013904223U;
    response.data.at(i) = static_cast<std::uint8_t>(seed >> 24U) & mask;
  }
}

TEST(Doubt, RandomPagesThatAllDifferCostNothing) {
  EXPECT_TRUE(rc::check([] {
    Doubtful drive;
    auto seed = *rc::gen::arbitrary<std::uint32_t>();
    const auto mask = *rc::gen::element<std::uint8_t>(0xff, 0x7f, 0x3f, 0x0f);
    drive.instead = [&](auto& response) { fill(response, ++seed, mask); };
    if (*rc::gen::arbitrary<bool>()) {
      drive.media_instead = [&] { return ++seed * 0x9E3779B97F4A7C15U; };
    }
    drive.polls(*rc::gen::inRange(1, 8));
    drive.instead = nullptr;
    drive.media_instead = nullptr;
    RC_ASSERT(drive.failures("impossible") + drive.failures("garbage") > 0);
    RC_ASSERT(!drive.told().polling.up);
    RC_ASSERT(!drive.told().polling.reason.empty());
    drive.polls(4);
    RC_ASSERT(drive.worst() == "");
    RC_ASSERT(drive.is_well());
  }));
}

TEST(Doubt, WhatIsRuledOutIsRefusedByName) {
  struct Row {
    const char* what;
    int offset;
    int bytes;
    std::uint64_t value;
    const char* name;
  };
  for (const Row& row :
       {Row{"53642 degrees", 1, 2, 53915, "temperature"}, Row{"absolute cold", 1, 2, 3, "temperature"},
        Row{"spare of 254 %", 3, 1, 254, "available_spare"},
        Row{"threshold of 101 %", 4, 1, 101, "available_spare_threshold"},
        Row{"six warnings", 0, 1, 0x3f, "everything at once"}, Row{"every bit", 0, 1, 0xff, "everything at once"},
        Row{"9e41 hours", 140, 4, 77, "power_on"}, Row{"2^120 data units", 63, 1, 1, "data_units"},
        Row{"minutes of heat", 192, 4, 3'000'000'000, "temperature_exceeded"}}) {
    Doubtful drive;
    drive.instead = [&](auto& response) { put(response.data.data() + row.offset, row.value, row.bytes); };
    drive.polls(3);
    const auto said = drive.told();
    EXPECT_FALSE(said.polling.up) << row.what;
    EXPECT_NE(said.polling.reason.find(row.name), std::string::npos) << row.what << ": " << said.polling.reason;
    EXPECT_NE(said.polling.doubted.find(row.name), std::string::npos) << row.what;
    EXPECT_EQ(drive.failures("impossible"), 6U) << row.what << ": both readings";
    drive.instead = nullptr;
    drive.polls(2);
    EXPECT_EQ(drive.worst(), "") << row.what;
    EXPECT_TRUE(drive.is_well()) << row.what;
  }
}

TEST(Doubt, ASensorThatIsNotThereCostsNoPage) {
  Doubtful drive;
  drive.instead = [](auto& response) { put(response.data.data() + 204, 60'000, 2); };
  drive.polls(3);
  EXPECT_TRUE(drive.is_well());
  EXPECT_EQ(drive.failures("impossible"), 0U);
  for (const model::NvmeValue& value : drive.told().values) {
    EXPECT_TRUE(value.field != F::temperature_celsius || value.label != "3");
  }
}

TEST(Doubt, AJumpWaitsForASecondReading) {
  struct Row {
    const char* what;
    int offset;
    int bytes;
    std::uint64_t value;
    F field;
    double then;
  };
  for (const Row& row : {Row{"commands", 80, 8, std::uint64_t{1} << 50, F::host_commands, 0x1p50},
                         Row{"errors fall", 160, 8, 1, F::media_errors, 1},
                         Row{"hours", 128, 8, 500'000, F::power_on_seconds, 500'000.0 * 3600},
                         Row{"heat", 1, 2, 273 + 150, F::temperature_celsius, 150},
                         Row{"spare", 3, 1, 30, F::available_spare_ratio, 0.3},
                         Row{"used", 5, 1, 255, F::percentage_used_ratio, 2.55}}) {
    Doubtful drive;
    const auto before = drive.value(row.field);
    drive.instead = [&](auto& response) { put(response.data.data() + row.offset, row.value, row.bytes); };
    drive.polls(1);
    EXPECT_TRUE(drive.told().polling.up);
    EXPECT_EQ(drive.failures("unconfirmed"), 1U) << row.what;
    EXPECT_NE(drive.told().polling.doubted.find("waits"), std::string::npos);
    EXPECT_LE(drive.value(row.field).value_or(-1), before.value_or(0) + 5000) << row.what;
    drive.instead = nullptr;
    drive.polls(2);
    EXPECT_TRUE(drive.is_well()) << row.what << " for a single reading";
    EXPECT_EQ(drive.worst(), "") << row.what;
    drive.instead = [&](auto& response) { put(response.data.data() + row.offset, row.value, row.bytes); };
    drive.polls(2);
    EXPECT_EQ(drive.told().polling.failures.at("unconfirmed"), 2U) << row.what;
    const auto values = drive.told().values;
    EXPECT_TRUE(std::any_of(values.begin(), values.end(),
                            [&](const model::NvmeValue& value) {
                              return value.field == row.field && std::abs(value.value - row.then) < 1e-9 * row.then;
                            }))
        << row.what << " is confirmed";
  }
}

TEST(Doubt, OrdinaryLivesWaitForNothing) {
  EXPECT_TRUE(rc::check([] {
    Doubtful drive;
    std::uint64_t kelvin = 313;
    std::uint64_t hours = 9000;
    drive.instead = [&](auto& response) {
      put(response.data.data() + 1, kelvin, 2);
      put(response.data.data() + 128, hours, 8);
    };
    for (int i = 0; i < 10; ++i) {
      kelvin = std::clamp<std::uint64_t>(kelvin + *rc::gen::inRange<std::uint64_t>(0, 61) - 30, 280, 370);
      hours += *rc::gen::inRange<std::uint64_t>(0, 3);
      drive.polls(1);
    }
    RC_ASSERT(drive.failures("unconfirmed") == 0U);
    RC_ASSERT(drive.failures("impossible") == 0U);
  }));
}

}  // namespace
}  // namespace ssdpulse::nvme
