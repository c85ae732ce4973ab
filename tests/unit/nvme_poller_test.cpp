// SPDX-License-Identifier: Apache-2.0
// Is a drive asked for what it may have, in the right order, and is each answer taken for what it is?
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "daemon/sources/nvme/drive_poller.h"
#include "daemon/sources/nvme/source_choice.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint32_t kGroups = 1U << 4;
constexpr std::uint32_t kFdp = 1U << 19;
constexpr std::int32_t kInvalidLogPage = 0x4109;

void put(std::uint8_t* at, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    at[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// Answers as a drive of our making would.
struct FakeDrive {
  std::uint16_t vendor = 0x1e0f;
  std::string model = "KCD81RUG3T84";
  std::uint32_t attributes = 0;
  std::uint64_t data_units = 1000;
  std::map<std::string, std::function<void(Response&)>> pages;  // by name; others are refused
  std::vector<std::string> asked;

  Response answer(const Request& request) {
    Response response;
    response.id = 1;
    response.began_ns = 1000 * (asked.size() + 1);
    response.ended_ns = response.began_ns + 10;
    response.bytes = 4096;
    std::uint8_t* data = response.data.data();
    switch (request.kind) {
      case RequestKind::identify_controller:
        asked.emplace_back("controller");
        put(data, vendor, 2);
        std::memset(data + 4, ' ', 68);
        std::memcpy(data + 4, "S1", 2);
        std::memcpy(data + 24, model.data(), model.size());
        std::memcpy(data + 64, "F1", 2);
        put(data + 96, attributes, 4);
        put(data + 340, 1, 2);
        break;
      case RequestKind::identify_namespace:
        asked.emplace_back("namespace");
        put(data + 102, 1, 2);
        break;
      case RequestKind::uuid_list:
        asked.emplace_back("uuids");
        break;
      case RequestKind::endurance_group_list:
        asked.emplace_back("groups");
        put(data, 1, 2);
        put(data + 2, 1, 2);
        break;
      case RequestKind::log_page: {
        const LogPage& page = log_pages()[request.page];
        asked.emplace_back(page.name);
        response.bytes = page.bytes;
        if (page.lid == kSmartLid && pages.count("smart") == 0) {
          put(data + 48, data_units, 8);
        } else if (const auto made = pages.find(std::string(page.name)); made != pages.end()) {
          made->second(response);
        } else {
          response.result = kInvalidLogPage;
          response.bytes = 0;
        }
        break;
      }
    }
    return response;
  }
};

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

 private:
  FakeDrive& drive_;
  NvmeSubsystem subsystem_;
  RefusedPages refused_;
  std::optional<DrivePoller> poller_;
};

using Names = std::vector<std::string>;

void fill_fdp(Response& response, std::uint64_t host, std::uint64_t media) {
  put(response.data.data(), host, 8);
  put(response.data.data() + 16, media, 8);
}

void fill_ocp(Response& response, std::uint64_t media) {
  constexpr std::uint8_t kGuid[] = {0xC5, 0xAF, 0x10, 0x28, 0xEA, 0xBF, 0xF2, 0xA4,
                                    0x9C, 0x4F, 0x6F, 0x7C, 0xC9, 0x14, 0xD5, 0xAF};
  put(response.data.data(), media, 8);
  put(response.data.data() + 494, 3, 2);
  std::memcpy(response.data.data() + 496, kGuid, sizeof kGuid);
}

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
  EXPECT_EQ(first.refused_pages, std::vector<std::string_view>{"ocp_smart"});
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
    response.result = 0x0006;  // internal error, and it may be tried again
    response.bytes = 0;
  };
  Poll poll(drive);
  poll.run();
  poll.run();
  EXPECT_EQ(drive.asked, (Names{"smart", "ocp_smart", "smart"}));
}

TEST(Poller, WhatIsNoSuchPageIsGivenUp) {
  FakeDrive drive;
  drive.pages["ocp_smart"] = [](Response& response) { response.data.fill(0x5a); };
  Poll poll(drive);
  for (int time = 0; time < 3; ++time) {
    const DriveReading reading = poll.run();
    EXPECT_EQ(reading.failures, (std::map<std::string, unsigned>{{"garbage", 1}}));
    EXPECT_EQ(reading.reason, "") << "the drive is well all the same";
  }
  poll.run();
  EXPECT_EQ(drive.asked, (Names{"smart", "smart"}));
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

TEST(Choice, AGroupCounterThatContradictsTheHealthPageIsNone) {
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

TEST(Choice, ASettledUnitStays) {
  FakeDrive drive;
  drive.attributes = kGroups;
  drive.data_units = 2'100'000'000'000 / 512'000;
  drive.pages["endurance_group"] = [](Response& response) {
    put(response.data.data() + 64, 1, 8);
    put(response.data.data() + 80, 6300, 8);
  };
  Poll poll(drive);
  EXPECT_EQ(choose_source(poll.run(), {"endurance_group", 1'000'000'000}).media->unit_bytes, 1'000'000'000U);
  EXPECT_EQ(choose_source(poll.run(), {"ocp", 1}).source, "") << "what another source counts in says nothing";
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
