// SPDX-License-Identifier: Apache-2.0
// Is a drive asked for what it may have, in the right order, and is each answer interpreted correctly?
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cerrno>

#include "daemon/nvme/polled_drive.h"
#include "daemon/nvme_pages/drive_reading.h"
#include "daemon/nvme_pages/kept_pages.h"
#include "tests/fixtures/fake_nvme_drive.h"

namespace ssdpulse::nvme {
namespace {

using namespace tests;
using nvme::choose_source;
using nvme::settled_values;
using nvme::SourceChoice;

class Poll {
 public:
  explicit Poll(FakeDrive& drive) : drive_(drive) {
    subsystem_.controller = 3;
    subsystem_.state = "live";
    subsystem_.namespaces = {{"nvme3n1", 1, 0}};
    poller_.emplace(subsystem_, refused_);
  }

  DriveReading run(DrivePoller::Extent extent = DrivePoller::Extent::media) {
    drive_.asked.clear();
    poller_->begin(extent);
    while (const auto request = poller_->next()) {
      EXPECT_EQ(request->controller, 3U);
      EXPECT_FALSE(poller_->next()) << "one command at a time";
      poller_->answer(drive_.answer(*request));
    }
    auto reading = poller_->take();
    EXPECT_TRUE(reading);
    EXPECT_FALSE(poller_->take());
    return reading ? std::move(*reading) : DriveReading{};
  }

  void renew() { poller_.emplace(subsystem_, refused_); }
  void a_day_passes() { refused_.forget(); }

 private:
  FakeDrive& drive_;
  NvmeSubsystem subsystem_;
  RefusedPages refused_;
  std::optional<DrivePoller> poller_;
};

using Names = std::vector<std::string>;

TEST(Poller, ReadsHostMediaHostInThisOrder) {
  FakeDrive drive;
  drive.pages["ocp_smart"] = [](Response& response) { fill_ocp(response, 5'000'000); };
  Poll poll(drive);
  const DriveReading reading = poll.run();
  EXPECT_EQ(drive.asked, (Names{"controller", "namespace", "smart", "ocp_smart", "smart"}));
  ASSERT_TRUE(reading.smart_again);
  EXPECT_EQ(reading.reason, "");
  EXPECT_EQ(reading.identity->serial, "S1");
  const SourceChoice choice = choose_source(reading);
  EXPECT_EQ(choice.source, "ocp");
  EXPECT_EQ(choice.host_before->count, 1000U);
  EXPECT_EQ(choice.host_before->unit_bytes, 512'000U);
  EXPECT_EQ(choice.media->count, 5'000'000U);
  EXPECT_TRUE(choice.since_birth);
}

TEST(Poller, PrefersPlacementStatistics) {
  FakeDrive drive;
  drive.attributes = kGroups | kFdp;
  drive.pages["fdp_statistics"] = [](Response& response) { fill_fdp(response, 100, 400); };
  drive.pages["ocp_smart"] = [](Response& response) { fill_ocp(response, 5'000'000); };
  Poll poll(drive);
  const DriveReading reading = poll.run();
  EXPECT_EQ(Names(drive.asked.begin(), drive.asked.begin() + 4), (Names{"controller", "groups", "namespace", "smart"}));
  EXPECT_EQ(reading.identity->namespaces[0].endurance_group, 1);
  const SourceChoice choice = choose_source(reading);
  EXPECT_EQ(choice.source, "fdp");
  EXPECT_EQ(choice.host_before->count, 100U);
  EXPECT_EQ(choice.host_after->count, 100U);
  EXPECT_EQ(choice.media->count, 400U);
  EXPECT_FALSE(choice.since_birth);
}

TEST(Poller, AnUnwrittenDriveIsAskedForItsHealthAlone) {
  FakeDrive drive;
  Poll poll(drive);
  poll.run();
  const DriveReading reading = poll.run(DrivePoller::Extent::wear);
  EXPECT_EQ(drive.asked, Names{"smart"});
  EXPECT_FALSE(reading.media_asked);
}

TEST(Poller, WhatIsRefusedIsNotAskedAgainOfItsKind) {
  FakeDrive drive;
  Poll poll(drive);
  const DriveReading first = poll.run();
  EXPECT_EQ(first.failures, (std::map<std::string, unsigned>{{"refused", 1}}));
  EXPECT_EQ(first.reason, "");
  EXPECT_EQ(first.refused_pages, (std::map<std::string_view, std::string>{{"ocp_smart", "refused"}}));
  poll.renew();  // a second drive of that kind
  const DriveReading second = poll.run();
  EXPECT_EQ(drive.asked, (Names{"controller", "namespace", "smart", "smart"}));
  const SourceChoice choice = choose_source(second);
  EXPECT_EQ(choice.source, "");
  EXPECT_EQ(choice.reason, "ocp: refused");
}

TEST(Poller, ABusyDriveIsAskedAgain) {
  FakeDrive drive;
  drive.pages["ocp_smart"] = [](Response& response) {
    response.result = 0x0006;  // internal error, and it may be retried
    response.bytes = 0;
  };
  Poll poll(drive);
  poll.run();
  poll.run();
  EXPECT_EQ(drive.asked, (Names{"smart", "ocp_smart", "smart"}));
}

TEST(Poller, AnAbsentPageIsDropped) {
  FakeDrive drive;
  drive.pages["ocp_smart"] = [](Response& response) { response.data.fill(0x5a); };
  Poll poll(drive);
  for (int time = 0; time < 3; ++time) {
    const DriveReading reading = poll.run();
    EXPECT_EQ(reading.failures, (std::map<std::string, unsigned>{{"garbage", 1}}));
    EXPECT_EQ(reading.reason, "") << "the drive is well all the same";
    EXPECT_EQ(choose_source(reading).reason, "ocp: not the OCP page: its GUID is different");
  }
  const DriveReading reading = poll.run();
  EXPECT_EQ(drive.asked, (Names{"smart", "smart"}));
  EXPECT_EQ(choose_source(reading).reason, "ocp: not the OCP page: its GUID is different") << "it was not refused";
  EXPECT_EQ(reading.refused_pages.at("ocp_smart"), "not the OCP page: its GUID is different");
}

const Names kWithoutOcp{"controller", "namespace", "smart", "smart"};
const Names kWithOcp{"controller", "namespace", "smart", "ocp_smart", "smart"};

std::function<void(Response&)> status(std::int32_t status) {
  return [status](Response& response) {
    response.result = status;
    response.bytes = 0;
  };
}

TEST(Poller, ASickDriveTakesNoPageFromItsSiblings) {
  const std::map<std::string, std::function<void(Response&)>> sicknesses{
      {"garbage", [](Response& response) { response.data.fill(0x5a); }},
      {"internal error", status(0x4006)},
      {"sanitize in progress", status(0x401d)},
      {"media error", status(0x4281)}};
  for (const auto& [name, sick] : sicknesses) {
    FakeDrive drive;
    drive.pages["ocp_smart"] = sick;
    Poll poll(drive);
    for (int time = 0; time < 3; ++time) {
      poll.run();
    }
    poll.renew();
    EXPECT_EQ(poll.run().refused_pages.count("ocp_smart"), 1U) << name;
    EXPECT_EQ(drive.asked, kWithoutOcp) << name;
    drive.pages["ocp_smart"] = [](Response& response) { fill_ocp(response, 1); };
    drive.serial = "S2";
    poll.renew();
    EXPECT_EQ(choose_source(poll.run()).source, "ocp") << name;
    drive.serial = "S1";
    drive.firmware = "F2";
    poll.renew();
    EXPECT_EQ(choose_source(poll.run()).source, "ocp") << name << ": mended by new firmware";
  }
}

TEST(Poller, WhatOneOfAKindHasTheOthersAreAskedFor) {
  for (const std::int32_t no_such_page : {0x4001, 0x4002, 0x4109}) {
    FakeDrive drive;
    drive.pages["ocp_smart"] = [](Response& response) { fill_ocp(response, 1); };
    Poll poll(drive);
    poll.run();
    poll.a_day_passes();
    drive.serial = "S2";
    drive.pages["ocp_smart"] = status(no_such_page);
    for (const Names& asked : {kWithOcp, kWithoutOcp}) {
      poll.renew();
      poll.run();
      EXPECT_EQ(drive.asked, asked) << no_such_page;
    }
    drive.serial = "S3";
    poll.renew();
    poll.run();
    EXPECT_EQ(drive.asked, kWithOcp) << no_such_page;
  }
}

TEST(Poller, ASickDriveThatIsAskedFirstIsFoundOut) {
  NvmeSubsystem subsystem;
  RefusedPages refused;
  FakeDrive good;
  good.pages["ocp_smart"] = [](Response& response) { fill_ocp(response, 1); };
  DrivePoller first(subsystem, refused);
  first.begin(DrivePoller::Extent::media);
  first.answer(good.answer(*first.next()));  // identified, so its pages are planned
  FakeDrive sick;
  sick.serial = "S2";
  DrivePoller second(subsystem, refused);
  const auto run = [](DrivePoller& poller, FakeDrive& drive) {
    while (const auto request = poller.next()) {
      poller.answer(drive.answer(*request));
    }
  };
  second.begin(DrivePoller::Extent::media);
  run(second, sick);
  run(first, good);
  FakeDrive third;
  third.serial = "S3";
  DrivePoller another(subsystem, refused);
  another.begin(DrivePoller::Extent::media);
  run(another, third);
  EXPECT_EQ(std::count(third.asked.begin(), third.asked.end(), "ocp_smart"), 1);
}

TEST(Poller, APageThatWasGoodIsKept) {
  FakeDrive drive;
  drive.pages["ocp_smart"] = [](Response& response) { fill_ocp(response, 1); };
  Poll poll(drive);
  poll.run();
  drive.pages["ocp_smart"] = [](Response& response) { response.data.fill(0x5a); };
  for (int time = 0; time < 10; ++time) {
    poll.run();
  }
  EXPECT_EQ(drive.asked, (Names{"smart", "ocp_smart", "smart"}));
}

TEST(Poller, ErrorsOfTheHostEndThePoll) {
  const std::map<int, std::string> kinds{{ENODEV, "gone"}, {EAGAIN, "not_live"},   {EINTR, "timeout"},
                                         {EIO, "io"},      {ECONNRESET, "reader"}, {EPIPE, "reader"}};
  for (const auto& [error_number, kind] : kinds) {
    FakeDrive drive;
    const int number = error_number;
    drive.pages["smart"] = [number](Response& response) {
      response.result = -number;
      response.bytes = 0;
    };
    Poll poll(drive);
    const DriveReading reading = poll.run();
    EXPECT_EQ(reading.failures, (std::map<std::string, unsigned>{{kind, 1}}));
    EXPECT_NE(reading.reason, "");
    EXPECT_EQ(drive.asked, (Names{"controller", "namespace", "smart"}));
  }
}

TEST(Poller, ARefusedHealthPageIsAFailureAndNeverForgotten) {
  FakeDrive drive;
  drive.pages["smart"] = [](Response& response) {
    response.result = kInvalidLogPage;
    response.bytes = 0;
  };
  Poll poll(drive);
  EXPECT_NE(poll.run().reason.find("smart with status 0x4109"), std::string::npos);
  poll.run();
  EXPECT_EQ(drive.asked.front(), "smart");
}

TEST(Poller, AnEmptyHealthPageIsAskedForUntilItIsFilled) {
  FakeDrive drive;
  drive.pages["smart"] = [](Response& response) { response.data.fill(0); };
  Poll poll(drive);
  for (int time = 0; time < 5; ++time) {
    EXPECT_NE(poll.run().reason, "");
    EXPECT_EQ(drive.asked.back(), "smart");
  }
  drive.pages.erase("smart");
  EXPECT_EQ(poll.run(DrivePoller::Extent::wear).reason, "");
  poll.renew();  // a second drive of that kind
  EXPECT_TRUE(poll.run().smart_again);
}

TEST(Poller, NoPollHangs) {
  NvmeSubsystem subsystem;
  RefusedPages refused;
  DrivePoller poller(subsystem, refused);
  FakeDrive drive;
  poller.begin(DrivePoller::Extent::wear);
  while (const auto request = poller.next()) {
    poller.answer(drive.answer(*request));
  }
  EXPECT_FALSE(poller.busy());
}

TEST(Poller, OptionalIdentifiesMayBeRefused) {
  FakeDrive drive;
  drive.attributes = kGroups | 1U << 9;
  drive.refused_identifies = {RequestKind::uuid_list, RequestKind::endurance_group_list,
                              RequestKind::identify_namespace};
  Poll poll(drive);
  const DriveReading reading = poll.run();
  EXPECT_EQ(reading.reason, "");
  EXPECT_EQ(reading.failures.at("refused"), 4U) << "three, and the OCP page";
  ASSERT_NE(reading.smart(), nullptr);
  EXPECT_EQ(reading.smart()->content.writes.host->count, 1000U);
}

TEST(Poller, WhatIsSwitchedOffInOneGroupIsOnInOthers) {
  FakeDrive drive;
  drive.attributes = kGroups | kFdp;
  drive.groups = {1, 2};
  drive.statuses_of_groups[2] = 0x4029;
  for (const char* page : {"fdp_statistics", "fdp_configurations", "fdp_handle_usage", "fdp_events"}) {
    drive.pages[page] = [](Response& response) { fill_fdp(response, 100, 400); };
  }
  Poll poll(drive);
  EXPECT_EQ(choose_source(poll.run()).source, "");
  const SourceChoice choice = choose_source(poll.run());
  EXPECT_EQ(std::count(drive.asked.begin(), drive.asked.end(), "fdp_statistics"), 1) << "of group 1 alone";
  EXPECT_EQ(choice.source, "fdp");
  EXPECT_EQ(choice.media->count, 400U);
  EXPECT_EQ(choice.reason, "fdp: of 1 of 2 endurance groups");
  drive.serial = "S2";  // another drive of that kind
  drive.statuses_of_groups.clear();
  poll.renew();
  EXPECT_EQ(choose_source(poll.run()).media->count, 800U);
}

TEST(Choice, SumsOverSomeGroupsAreIgnored) {
  FakeDrive drive;
  drive.attributes = kGroups | kFdp;
  drive.groups = {1, 2};
  drive.pages["fdp_statistics"] = [](Response& response) { fill_fdp(response, 100, 400); };
  Poll poll(drive);
  EXPECT_EQ(choose_source(poll.run()).media->count, 800U);
  drive.statuses_of_groups[2] = 0x0006;  // only once
  const SourceChoice choice = choose_source(poll.run());
  EXPECT_EQ(choice.source, "");
  EXPECT_NE(choice.reason.find("fdp: not read of all endurance groups"), std::string::npos) << choice.reason;
}

TEST(Choice, TheSourceIsReadWhereItsPageWas) {
  FakeDrive drive;
  drive.pages["ocp_smart"] = [](Response& response) {
    fill_ocp(response, 1);
    response.ended_ns = 777'777;
  };
  Poll poll(drive);
  EXPECT_EQ(choose_source(poll.run()).at.count(), 777'777);
}

TEST(Choice, GroupBytesHaveTheirOwnUnit) {
  using F = model::NvmeField;
  FakeDrive drive;
  drive.attributes = kGroups;
  drive.data_units = 5'000'000;
  std::uint64_t host = 0;
  drive.pages["endurance_group"] = [&host](Response& response) {
    put(response.data.data() + 32, 9'000'000, 8);
    put(response.data.data() + 64, host, 8);
    put(response.data.data() + 80, 3 * host, 8);
    put(response.data.data() + 112, 12, 8);
  };
  const auto told = [&](F field) -> std::optional<double> {
    Poll poll(drive);
    const DriveReading reading = poll.run();
    const SourceChoice choice = choose_source(reading);
    for (const PageReading& entry : reading.pages) {
      for (const model::NvmeValue& value : settled_values(entry, choice.units)) {
        if (value.field == field) {
          return value.value;
        }
      }
    }
    return std::nullopt;
  };
  host = 5'000'000;  // in data units
  EXPECT_EQ(told(F::endurance_group_written_bytes), 5e6 * 512'000);
  EXPECT_EQ(told(F::endurance_group_media_written_bytes), 15e6 * 512'000);
  EXPECT_EQ(told(F::endurance_group_endurance_estimate_bytes), 9e6 * 512'000);
  host = 2560;  // in billions
  EXPECT_EQ(told(F::endurance_group_written_bytes), 2560e9);
  host = 1;  // stuck
  EXPECT_EQ(told(F::endurance_group_written_bytes), std::nullopt);
  EXPECT_EQ(told(F::endurance_group_endurance_estimate_bytes), std::nullopt);
  EXPECT_EQ(told(F::endurance_group_host_commands), 0) << "what is no bytes is told";
  host = 5'000'000;
  Poll poll(drive);
  EXPECT_EQ(choose_source(poll.run()).endurance_estimate->unit_bytes, 512'000U);
}

TEST(Choice, AGroupCounterThatContradictsTheHealthPageIsIgnored) {
  FakeDrive drive;
  drive.attributes = kGroups;
  drive.data_units = 2'100'000'000'000 / 512'000;
  drive.pages["endurance_group"] = [](Response& response) {
    put(response.data.data() + 64, 1, 8);  // stuck
    put(response.data.data() + 80, 1, 8);
  };
  Poll poll(drive);
  const SourceChoice stuck = choose_source(poll.run());
  EXPECT_EQ(stuck.source, "");
  EXPECT_NE(stuck.reason.find("endurance_group: its host counter contradicts SMART"), std::string::npos)
      << stuck.reason;
  drive.pages["endurance_group"] = [](Response& response) {
    put(response.data.data() + 64, 2100, 8);
    put(response.data.data() + 80, 6300, 8);
  };
  const SourceChoice good = choose_source(poll.run());
  EXPECT_EQ(good.source, "endurance_group");
  EXPECT_EQ(good.media->unit_bytes, 1'000'000'000U);
}

TEST(Choice, ASumOfRoundedCountersIsAsDoubtfulAsItsParts) {
  constexpr std::uint64_t kUnit = 1'000'000'000;
  FakeDrive drive;
  drive.attributes = kGroups;
  drive.groups = {1, 2, 3};
  drive.data_units = 3 * 2'100'000'000'000 / 512'000;
  for (std::uint64_t sum = 18'900; sum < 18'910; ++sum) {
    std::uint64_t group = 0;
    drive.pages["endurance_group"] = [&group, sum](Response& response) {
      put(response.data.data() + 64, 2100, 8);
      put(response.data.data() + 80, (sum + group++) / 3, 8);
    };
    Poll poll(drive);
    const SourceChoice choice = choose_source(poll.run());
    ASSERT_TRUE(choice.media && choice.host_before) << choice.reason;
    ASSERT_EQ(group, 3U);
    EXPECT_EQ(choice.host_before->unit_bytes, choice.media->unit_bytes);
    EXPECT_EQ(choice.units.at("endurance_group"), kUnit) << "of one group";
    // Each group has written at most as many units as it reports, and less than one unit fewer.
    const model::Uint128 most = model::Uint128{sum} * kUnit;
    const model::Uint128 least = most - 3 * kUnit + 3;
    const model::Uint128 have = choice.media->count * choice.media->unit_bytes;
    EXPECT_LT(most, have + choice.media->unit_bytes) << sum;
    EXPECT_GT(least + choice.media->unit_bytes, have) << sum;
  }
}

TEST(Choice, ASettledUnitStays) {
  FakeDrive drive;
  drive.attributes = kGroups;
  drive.data_units = 2'100'000'000'000 / 512'000;
  drive.pages["endurance_group"] = [](Response& response) {
    put(response.data.data() + 64, 1, 8);
    put(response.data.data() + 80, 6300, 8);
  };
  Poll poll(drive);
  EXPECT_EQ(choose_source(poll.run(), {{"endurance_group", 1'000'000'000}}).media->unit_bytes, 1'000'000'000U);
  EXPECT_EQ(choose_source(poll.run(), {{"ocp", 1}}).source, "") << "what another source counts in says nothing";
}

TEST(Poller, AnyAnswersEndThePoll) {
  EXPECT_TRUE(rc::check([] {
    FakeDrive drive;
    drive.attributes = *rc::gen::arbitrary<std::uint32_t>();
    drive.vendor = *rc::gen::element<std::uint16_t>(0x1b36, 0x8086, 0x144d, 0x1344, 0x1b96, 0x1bb1, 0x1d0f, 0xabcd);
    NvmeSubsystem subsystem;
    subsystem.namespaces = {{"nvme3n1", 1, 0}, {"nvme3n2", 2, 0}};
    RefusedPages refused;
    DrivePoller poller(subsystem, refused);
    for (int poll = 0; poll < 3; ++poll) {
      poller.begin(*rc::gen::element(DrivePoller::Extent::wear, DrivePoller::Extent::media, DrivePoller::Extent::all));
      int commands = 0;
      while (const auto request = poller.next()) {
        RC_ASSERT(++commands < 400);
        Response response = drive.answer(*request);
        if (*rc::gen::weightedElement<bool>({{1, true}, {3, false}})) {
          response.result = *rc::gen::element(-ENODEV, -EIO, 0x4109, 0x0006, 0x4002);
          response.bytes = 0;
        } else if (*rc::gen::weightedElement<bool>({{1, true}, {3, false}})) {
          response.result = 0;
          response.bytes = *rc::gen::inRange<std::uint32_t>(0, 4097);
          response.data.fill(*rc::gen::arbitrary<std::uint8_t>());
        }
        poller.answer(response);
      }
      RC_ASSERT(!poller.busy());
      const auto reading = poller.take();
      RC_ASSERT(reading.has_value());
      choose_source(*reading);
    }
  }));
}

}  // namespace
}  // namespace ssdpulse::nvme
