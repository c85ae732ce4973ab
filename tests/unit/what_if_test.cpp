// SPDX-License-Identifier: Apache-2.0
// What does `ssdpulse what-if` print, and what does the API return? From made-up reports; the whole text is compared.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/cli/command_output.h"
#include "daemon/flash/flash_what_if.h"
#include "exporters/page/page_json.h"

namespace ssdpulse {
namespace {

using model::FlashSilence;
using model::FlashWindow;

model::Snapshot host(std::optional<FlashSilence> silence = std::nullopt) {
  auto report = std::make_shared<model::FlashReport>();
  report->drive_writes = 1.5;
  report->unknown_pages = 0.02;
  report->block_bytes = 1 << 30;
  const auto add = [&](const model::WhatIf& what, double ratio) {
    report->amplification.push_back({what, FlashWindow::day, {ratio, ratio * 0.95, ratio * 1.05}});
  };
  const auto middle = model::CollectionPolicy::greedy_gc_frontier;
  add({0.15, middle}, 3.0);
  add({0.15, model::CollectionPolicy::greedy}, 4.0);
  add({0.15, middle, model::Discards::ignored}, 4.5);
  add({0.15, middle, model::Discards::honoured, model::Placement::hints}, 2.0);
  add({0.28, middle}, 2.0);
  add({0.07, middle}, 5.0);
  report->silence = {std::nullopt, FlashSilence::few_writes, FlashSilence::few_writes};
  model::FlashEstimate drive;
  drive.controller = "nvme0";
  drive.devices = {"nvme0n1"};
  drive.size_bytes = 960'000'000'000;
  drive.overprovisioning = {0.15, 0.10, 0.20, model::OverprovisioningBasis::size};
  drive.modelled_overprovisioning = 0.15;
  drive.likely[0] = model::Estimate{3.0, 2.8, 4.2};
  drive.report = report;
  if (silence) {
    report->silence.fill(silence);
    report->drive_writes = 0.3;
    report->amplification.clear();
    drive.likely = {};
  }
  auto figures = std::make_shared<model::FlashFigures>();
  figures->drives.push_back(drive);
  model::Snapshot snapshot;
  snapshot.flash = figures;
  auto identity = std::make_shared<model::NvmeIdentity>();
  identity->controller = "nvme0";
  model::NvmeDrive counters;
  counters.identity = identity;
  counters.write_amplification.ratios = {{"24h", 86400, 0, 3.1, 3.0, 3.2}};
  counters.write_amplification.life_remaining = {{"percentage_used", 86400, 4 * 365.25 * 86400}};
  snapshot.nvme_drives.push_back(counters);
  return snapshot;
}

std::string text_of(const model::Snapshot& snapshot, const std::string& device = "nvme0n1",
                    const flash::WhatIfQuestion& question = {}) {
  std::ostringstream out;
  cli::print_what_if(nlohmann::json::parse(page::what_if_json(snapshot, device, question).dump()), out);
  return out.str();
}

TEST(WhatIf, IsATableForAPerson) {
  EXPECT_EQ(text_of(host()),
            "nvme0: modelled 3.0 (2.8 to 4.2), 15 % spare assumed (window 24h)\n"
            "measured 3.10 (3.00 to 3.20) by the drive's own counter (window 24h)\n"
            "life remaining at this wear: 4.0 years\n\n"
            "SPARE %  DISCARDS  KEPT APART  POLICY              WAF   LOWER  UPPER  YEARS  AT LEAST  AT MOST\n"
            "7        honoured  nothing     greedy_gc_frontier  5.00  4.75   5.25   2.4    2.3       2.5\n"
            "12*      honoured  nothing     greedy_gc_frontier  3.46  3.22   3.70   3.5    3.2       3.7\n"
            "28       honoured  nothing     greedy_gc_frontier  2.00  1.90   2.10   6.0    5.7       6.3\n"
            "15       honoured  nothing     greedy_gc_frontier  3.00  2.85   3.15   4.0    3.8       4.2\n"
            "15       honoured  nothing     greedy              4.00  3.80   4.20   3.0    2.9       3.2\n"
            "15       ignored   nothing     greedy_gc_frontier  4.50  4.27   4.73   2.7    2.5       2.8\n"
            "15       honoured  hints       greedy_gc_frontier  2.00  1.90   2.10   6.0    5.7       6.3\n"
            "* between what was modelled: the bounds are 2 % wider\n"
            "50 % is beyond what is modelled\n"
            "assumed:\n"
            "- the drive has 15 % of spare flash (10 % to 20 %), as usual for its size: nothing measured says more\n"
            "- the host keeps writing as it did in this window\n"
            "- erase blocks of 1.1 GB; wear levelling, refresh and SLC caches are ignored\n"
            "- 1.50 drive writes were seen: it is steady after 2\n");
}

TEST(WhatIf, SaysWhyThereIsNoAnswer) {
  EXPECT_EQ(
      text_of(host(FlashSilence::warming_up)),
      "nvme0: none modelled: too little was written since the start (0.30 of 1.0 drive writes) (window drive_write)\n"
      "measured 3.10 (3.00 to 3.20) by the drive's own counter (window 24h)\n"
      "life remaining at this wear: 4.0 years\n");
}

TEST(WhatIf, NamesTheLimitAfterAGap) {
  auto snapshot = host(FlashSilence::warming_up);
  auto figures = *snapshot.flash;
  auto report = *figures.drives[0].report;
  report.drive_writes = 1.2;  // of 1: it warms up again
  figures.drives[0].report = std::make_shared<const model::FlashReport>(report);
  EXPECT_EQ(flash::amplification_text(figures.drives[0]),
            "none modelled: too little was written since the start or since a gap (0.25 drive writes are needed)");
}

TEST(WhatIf, OmitsWindowsWithoutAModel) {
  auto snapshot = host(FlashSilence::rotational);
  auto figures = std::make_shared<model::FlashFigures>(*snapshot.flash);
  figures->drives[0].silence = FlashSilence::rotational;
  figures->drives[0].report = nullptr;
  snapshot.flash = figures;
  EXPECT_EQ(text_of(snapshot).substr(0, 38), "nvme0: none modelled: it is not flash\n");
}

TEST(WhatIf, AnswersWhatWasAskedAlone) {
  flash::WhatIfQuestion question;
  question.overprovisioning = {0.28, 0.28, 0.6};
  question.window = FlashWindow::day;
  const auto snapshot = host();
  const auto answer = flash::what_if(snapshot, snapshot.flash->drives[0], question);
  EXPECT_EQ(answer.rows.at(0).what.overprovisioning, 0.28);
  EXPECT_EQ(answer.rows.at(0).estimate.ratio, 2.0);
  EXPECT_FALSE(answer.rows.at(0).interpolated);
  EXPECT_EQ(answer.beyond, std::vector<double>{0.6});
  question.window = FlashWindow::week;
  EXPECT_EQ(flash::what_if(snapshot, snapshot.flash->drives[0], question).silence, FlashSilence::few_writes);
}

TEST(WhatIf, SaysTheFigureOfTheWindowThatWasAskedFor) {
  auto snapshot = host();
  auto figures = std::make_shared<model::FlashFigures>(*snapshot.flash);
  auto report = std::make_shared<model::FlashReport>(*figures->drives[0].report);
  report->silence[2] = std::nullopt;
  figures->drives[0].report = report;
  figures->drives[0].likely[2] = model::Estimate{1.7, 1.5, 1.9};
  snapshot.flash = figures;
  flash::WhatIfQuestion question;
  const auto words = [&](std::optional<FlashWindow> window) {
    question.window = window;
    return flash::what_if(snapshot, snapshot.flash->drives[0], question).text;
  };
  EXPECT_EQ(words(std::nullopt), "modelled 3.0 (2.8 to 4.2), 15 % spare assumed");
  EXPECT_EQ(words(FlashWindow::day), "modelled 3.0 (2.8 to 4.2), 15 % spare assumed");
  EXPECT_EQ(words(FlashWindow::drive_write), "modelled 1.7 (1.5 to 1.9), 15 % spare assumed");
}

TEST(WhatIf, TakesListsOfPercents) {
  EXPECT_EQ(flash::percents_in("7,12.5"), (std::vector<double>{0.07, 0.125}));
  EXPECT_EQ(flash::percents_in("1000"), std::vector<double>{10});
  for (const char* const wrong : {"", ",", "7,", ",7", "7,,12", "1.2.3", "0", "0.05", "1001", "abc", "-7", "7 12",
                                  "nan", "1e2", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"}) {
    EXPECT_FALSE(flash::percents_in(wrong)) << wrong;
  }
}

TEST(WhatIf, IsOfDrivesWithAModel) {
  EXPECT_NE(text_of({}).find("flash_model.enabled is false"), std::string::npos);
  EXPECT_NE(text_of(host(), "sda").find("none modelled yet"), std::string::npos);
}

TEST(WhatIf, SaysWhichPolicyExplainsTheDrive) {
  auto snapshot = host();
  auto figures = std::make_shared<model::FlashFigures>(*snapshot.flash);
  auto& spare = figures->drives[0].overprovisioning;
  spare.basis = model::OverprovisioningBasis::media_counter;
  snapshot.flash = figures;
  EXPECT_NE(text_of(snapshot).find("- how it collects is not known yet: several policies explain what it counted\n"),
            std::string::npos);
  spare.policy = model::CollectionPolicy::cost_benefit;
  EXPECT_NE(text_of(snapshot).find("- it collects as cost_benefit: no other policy explains what it counted under all "
                                   "its loads\n"),
            std::string::npos);
}

TEST(FlashWords, SayWhatIsAssumed) {
  auto drive = host().flash->drives[0];
  EXPECT_EQ(flash::amplification_text(drive), "modelled 3.0 (2.8 to 4.2), 15 % spare assumed");
  drive.overprovisioning.basis = model::OverprovisioningBasis::media_counter;
  EXPECT_EQ(flash::amplification_text(drive), "modelled 3.0 (2.8 to 4.2), 15 % spare fitted to its counter");
  drive.silence = FlashSilence::rotational;
  EXPECT_EQ(flash::amplification_text(drive), "none modelled: it is not flash");
}

}  // namespace
}  // namespace ssdpulse
