// SPDX-License-Identifier: Apache-2.0
// Is a drive asked when it should be, for what it should be, and are old answers discarded?
#include "daemon/nvme/nvme_identity.h"
#include "tests/unit/nvme_drive_rig.h"

namespace ssdpulse::nvme {
namespace {

using Names = std::vector<std::string>;
using F = model::NvmeField;

TEST(Drive, ThatIsNotWrittenToIsAskedForItsHealthAlone) {
  Rig rig;
  rig.fake.pages["ocp_smart"] = [](auto& response) { fill_ocp(response, 1'000'000); };
  EXPECT_EQ(rig.poll(), (Names{"controller", "namespace", "smart", "ocp_smart", "smart"}));
  EXPECT_EQ(rig.poll(), Names{"smart"}) << "measured, and no I/O yet";
  rig.write(4096);
  EXPECT_EQ(rig.poll().size(), 3U);
  EXPECT_EQ(rig.poll(), Names{"smart"});
  rig.block.operation(Operation::write_zeroes).bytes += 4096;
  EXPECT_EQ(rig.poll().size(), 3U) << "write zeroes";
  rig.block.operation(Operation::passthrough).issues += 1;
  EXPECT_EQ(rig.poll().size(), 3U) << "passthrough may write";
  EXPECT_EQ(rig.poll(), Names{"smart"});
  rig.block.operation(Operation::read).bytes += 4096;
  EXPECT_EQ(rig.poll(), Names{"smart"});
  rig.block.skipped += 1;
  EXPECT_EQ(rig.poll().size(), 3U) << "what was not counted may have been a write";
  rig.block.devices.clear();
  rig.poll();
  EXPECT_EQ(rig.poll().size(), 3U) << "not measured";
}

TEST(Drive, ThatNeverAnsweredIsMarkedAndCountedOnce) {
  Rig rig;
  rig.pass(0s);
  ASSERT_TRUE(rig.drive.next());
  rig.drive.sent(rig.now);
  rig.pass(4s);
  EXPECT_EQ(rig.told().polling.failures.count("timeout"), 0U);
  rig.pass(2s);
  rig.pass(60s);
  EXPECT_EQ(rig.told().polling.failures["timeout"], 1U);
  EXPECT_NE(rig.told().polling.reason.find("no answer"), std::string::npos);
  EXPECT_FALSE(rig.told().polling.up);
}

TEST(Drive, ThatComesAndGoesFillsNoLog) {
  Rig rig;
  testing::internal::CaptureStderr();
  ASSERT_TRUE(log::set_up("info", log::InJournal::lines));
  for (int poll = 0; poll < 40; ++poll) {  // of 20 minutes
    rig.pass(kInterval - 10s);
    const auto request = rig.drive.next();
    ASSERT_TRUE(request);
    rig.drive.sent(rig.now);
    rig.pass(10s);
    rig.drive.answer(rig.fake.answer(*request), rig.now, rig.block);
    rig.answer_all();
    rig.pass(50ms);
  }
  EXPECT_EQ(rig.told().polling.failures["timeout"], 40U);
  for (int poll = 0; poll < 40; ++poll) {
    rig.pass(kInterval);
    rig.poll();
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(times(log, "controller=nvme3 does not answer"), 2U) << log;
  EXPECT_EQ(times(log, "controller=nvme3 is read"), 2U) << log;
  EXPECT_EQ(times(log, "suppressed=0"), 3U) << log;  // the second silence reports how many there were
  EXPECT_GT(log.rfind("controller=nvme3 is read") + 1, log.rfind("controller=nvme3 does not answer")) << log;
}

TEST(Drive, EachMuteCommandCounts) {
  Rig rig;
  for (unsigned times = 1; times <= 2; ++times) {
    rig.pass(kInterval);
    const auto request = rig.drive.next();
    ASSERT_TRUE(request);
    rig.drive.sent(rig.now);
    rig.pass(10s);
    EXPECT_EQ(rig.told().polling.failures["timeout"], times);
    rig.drive.answer(rig.fake.answer(*request), rig.now, rig.block);
    rig.answer_all();
    EXPECT_TRUE(rig.told().polling.up);
    rig.pass(50ms);
  }
}

TEST(Drive, ALostAnswerIsNotWaitedForForEver) {
  Rig rig;
  rig.poll();
  rig.pass(kInterval);
  ASSERT_TRUE(rig.drive.next());
  rig.drive.sent(rig.now);
  rig.pass(5min);
  EXPECT_FALSE(rig.drive.timed_out(rig.now));
  rig.pass(6min);
  ASSERT_TRUE(rig.drive.timed_out(rig.now));
  Response none;
  none.result = -ETIMEDOUT;
  rig.drive.answer(none, rig.now, rig.block);
  EXPECT_FALSE(rig.drive.timed_out(rig.now));
  rig.pass(50ms);
  EXPECT_FALSE(rig.poll().empty());
  EXPECT_TRUE(rig.told().polling.up);
}

TEST(Drive, WithAReusedNumberIsNotAsked) {
  Rig rig;
  rig.poll();
  rig.show_serial("S2");
  EXPECT_EQ(rig.poll(), Names{});
  EXPECT_TRUE(rig.drive.replaced());
  EXPECT_FALSE(rig.told().polling.up);
  EXPECT_EQ(rig.told().polling.failures["gone"], 1U);
  rig.show_serial("S1");
  rig.drive.update(rig.subsystem());
  EXPECT_FALSE(rig.drive.replaced());
  EXPECT_EQ(rig.poll().front(), "controller") << "who it is, is asked anew";
}

TEST(Drive, PagesThatAreNotReadAnyMoreAreForgotten) {
  Rig rig;
  rig.fake.pages["ocp_smart"] = [](auto& response) {
    fill_ocp(response, 1'000'000);
    put(response.data.data() + 32, 5, 6);  // bad user blocks
  };
  rig.poll();
  const auto has_page = [&] { return rig.value(F::bad_blocks).has_value(); };
  ASSERT_TRUE(has_page());
  rig.fake.pages["ocp_smart"] = [](auto& response) {
    response.result = 0x0006;
    response.bytes = 0;
  };
  const auto began = rig.now;
  while (rig.now - began < 59min) {
    rig.write(4096);
    rig.poll();
  }
  EXPECT_TRUE(has_page()) << "an idle drive's would be as old";
  while (rig.now - began < 64min) {
    rig.write(4096);
    rig.poll();
  }
  EXPECT_FALSE(has_page());
  EXPECT_TRUE(rig.value(F::percentage_used_ratio));
}

TEST(Drive, NewFirmwareForgetsWhatTheOldOneSaid) {
  Rig rig;
  rig.fake.pages["ocp_smart"] = [](auto& response) {
    fill_ocp(response, 1'000'000);
    put(response.data.data() + 32, 5, 6);
  };
  rig.poll();
  ASSERT_TRUE(rig.value(F::bad_blocks));
  rig.fake.pages.clear();
  rig.fake.firmware = "F2";
  rig.drive.update(rig.subsystem());
  rig.pass(1h);
  rig.answer_all();
  EXPECT_FALSE(rig.value(F::bad_blocks));
  EXPECT_EQ(rig.told().identity->firmware, "F2");
}

TEST(Drive, ThatIsDeadHasNoMinutes) {
  Rig rig;
  const model::Minute number(29'000'123min);
  rig.wall = number + 7s;
  EXPECT_TRUE(rig.minute().minutes.empty()) << "not read yet";
  rig.poll();
  const model::Batch batch = rig.minute();
  ASSERT_EQ(batch.minutes.size(), 1U);
  EXPECT_EQ(batch.minutes[0].minute, number);
  rig.pass(kInterval);
  ASSERT_TRUE(rig.drive.next());
  rig.drive.sent(rig.now);
  rig.pass(10min);
  EXPECT_TRUE(rig.minute().minutes.empty());
}

TEST(Drive, AMinuteIsWhatWasDoneInIt) {
  Rig rig;
  rig.poll();
  rig.block.operation(Operation::discard).bytes = 1000;
  EXPECT_EQ(rig.minute().minutes[0].discard_bytes, 1000U);
  rig.block.operation(Operation::discard).bytes = 1500;
  EXPECT_EQ(rig.minute().minutes[0].discard_bytes, 500U);
  EXPECT_EQ(rig.minute().minutes[0].discard_bytes, 0U);
}

TEST(Drive, AMinuteIsStampedWithItsBeginning) {
  Rig rig;
  const model::Minute first(29'000'123min);
  rig.wall = first + 10s;
  rig.poll();
  EXPECT_TRUE(rig.rows().empty());
  rig.wall = first + 60s;
  rig.tick();
  ASSERT_EQ(rig.rows().minutes.size(), 1U);
  EXPECT_EQ(rig.rows().minutes[0].minute, first) << "not when it ended";
  rig.wall = first + 90s;
  rig.tick();
  EXPECT_TRUE(rig.rows().empty());
  ASSERT_EQ(rig.minute().minutes.size(), 1U);
  EXPECT_EQ(rig.rows().minutes[0].minute, first + 1min);
}

TEST(Drive, AStaleOneKeepsItsSourceAndNoFigures) {
  Rig rig;
  EXPECT_EQ(rig.told().write_amplification.reason, "") << "nothing is known yet";
  rig.fake.pages["ocp_smart"] = [](auto& response) { fill_ocp(response, 1'000'000); };
  rig.poll();
  rig.remember(model::Recalled{});
  EXPECT_EQ(rig.told().write_amplification.media_written_bytes, 1e6);
  rig.now += 1h;
  const auto told = rig.told();
  EXPECT_EQ(told.write_amplification.source, "ocp");
  EXPECT_EQ(told.write_amplification.reason, "the best it offers");
  EXPECT_FALSE(told.write_amplification.media_written_bytes);
  EXPECT_TRUE(told.values.empty());
}

TEST(Drive, ACounterThatDoesNotMoveIsNotTheBestItOffers) {
  Rig rig;
  std::uint64_t media = 1'000'000;
  rig.fake.pages["ocp_smart"] = [&](auto& response) { fill_ocp(response, media); };
  rig.poll();
  rig.remember(model::Recalled{});
  EXPECT_EQ(rig.told().write_amplification.reason, "the best it offers");
  rig.write(1 << 30);
  rig.poll();
  EXPECT_EQ(rig.told().write_amplification.reason,
            "ocp: its media counter does not move though the drive is written to");
  EXPECT_EQ(rig.told().write_amplification.source, "ocp") << "it is what there is";
  media += 1 << 30;
  rig.write(1 << 30);
  rig.poll();
  EXPECT_EQ(rig.told().write_amplification.reason, "the best it offers");
  for (int time = 0; time < 3; ++time) {  // the host's counter moved at every poll until now
    rig.block.operation(Operation::write).bytes += 1 << 30;
    rig.poll();
  }
  EXPECT_EQ(rig.told().write_amplification.reason, "ocp: its counters do not move though the drive is written to");
}

TEST(Drive, ReportsTheResolutionOfItsCounters) {
  Rig ocp;
  ocp.fake.pages["ocp_smart"] = [](auto& response) { fill_ocp(response, 1'000'000); };
  ocp.poll();
  ocp.remember(model::Recalled{});
  EXPECT_EQ(ocp.told().write_amplification.media_doubt_bytes, 0);
  EXPECT_EQ(ocp.told().write_amplification.host_doubt_bytes, 511'999) << "of SMART";

  Rig intel;  // whose page states its unit
  intel.fake.vendor = 0x8086;
  intel.fake.pages["intel_smart"] = [](auto& response) {
    put(response.data.data(), 0xab, 1);
    put(response.data.data() + 12, 0xf4, 1);
    put(response.data.data() + 12 + 5, 300, 6);
    put(response.data.data() + 24, 0xf5, 1);
    put(response.data.data() + 24 + 5, 200, 6);
  };
  intel.poll();
  intel.remember(model::Recalled{});
  const auto told = intel.told().write_amplification;
  EXPECT_EQ(told.source, "intel");
  EXPECT_EQ(told.media_doubt_bytes, 2 * ((32 << 20) - 1));
  EXPECT_EQ(told.host_doubt_bytes, 2 * ((32 << 20) - 1));
}

TEST(Drive, AnIncompleteHealthPageIsNotASample) {
  Rig rig;
  unsigned times = 0;
  rig.fake.pages["smart"] = [&](auto& response) {
    put(response.data.data() + 1, 300, 2);
    put(response.data.data() + 48, times++ % 2 == 0 ? 1000 : 0, 8);  // 0: not reported
  };
  rig.poll();
  rig.remember(model::Recalled{});
  const model::Batch batch = rig.minute();
  ASSERT_EQ(batch.minutes.size(), 1U);
  EXPECT_FALSE(batch.minutes[0].host_count_before);
  EXPECT_FALSE(batch.minutes[0].writes.host);
}

TEST(Drive, IsAskedSoonUnderAShorterInterval) {
  Rig rig;
  rig.interval = 1h;
  PolledDrive other(rig.subsystem(), rig.lessons, rig.now, 30min);
  other.advance(rig.now, rig.interval, rig.block);
  while (const auto request = other.next()) {
    other.answer(rig.fake.answer(*request), rig.now, rig.block);
  }
  rig.poll(0s);
  EXPECT_EQ(rig.poll(30min), Names{});
  rig.interval = 30s;
  EXPECT_EQ(rig.poll(0s), Names{}) << "half of an interval is left";
  const auto other_is_asked = [&] {
    other.advance(rig.now, rig.interval, rig.block);
    return other.next().has_value();
  };
  EXPECT_FALSE(other_is_asked());
  EXPECT_EQ(rig.poll(15s), Names{"smart"});
  EXPECT_FALSE(other_is_asked()) << "drives stay spread out";
  rig.pass(15s);
  EXPECT_TRUE(other_is_asked());
  EXPECT_EQ(rig.poll(15s), Names{"smart"});
}

TEST(Drive, IsKnownUnderAShorterIntervalUntilItWasAsked) {
  Rig rig;
  for (int times = 0; times < 3; ++times) {
    rig.lessons.backoff.increase(rig.fake.model, rig.now);
  }
  rig.interval = 1h;
  rig.poll(0s);
  rig.pass(7h);
  rig.interval = 30s;
  rig.pass(0s);
  EXPECT_EQ(rig.told().polling.interval_seconds, 240);
  EXPECT_TRUE(rig.value(F::percentage_used_ratio));
  EXPECT_FALSE(rig.minute().minutes.empty());
  rig.pass(30s);
  ASSERT_TRUE(rig.drive.next()) << "and gets no answer";
  EXPECT_TRUE(rig.value(F::percentage_used_ratio));
  rig.pass(20min);
  EXPECT_FALSE(rig.value(F::percentage_used_ratio));
  EXPECT_TRUE(rig.minute().minutes.empty());
}

TEST(Drive, KeepsANamespaceWhenAnotherIsAdded) {
  const auto identity = std::make_shared<model::NvmeIdentity>();
  identity->namespaces = {{"nvme3n1", 1, 1, 8, 16}};
  NvmeSubsystem subsystem;
  subsystem.namespaces = {{"nvme3n1", 1, 0}, {"nvme3n2", 2, 0}};
  const auto namespaces = with_namespaces(identity, subsystem)->namespaces;
  ASSERT_EQ(namespaces.size(), 2U);
  EXPECT_EQ(namespaces[0], identity->namespaces[0]);
  EXPECT_EQ(namespaces[1], subsystem.namespaces[1]);
}

TEST(BackOff, IsTheModelsAndEnds) {
  const SteadyTime begin = std::chrono::steady_clock::now();
  PollBackoff backoff;
  EXPECT_EQ(backoff.intervals("A"), 1U);
  for (const unsigned intervals : {2U, 4U, 8U}) {
    EXPECT_TRUE(backoff.increase("A", begin));
    EXPECT_EQ(backoff.intervals("A"), intervals);
  }
  EXPECT_FALSE(backoff.increase("A", begin)) << "no further";
  EXPECT_EQ(backoff.intervals("A"), 8U);
  EXPECT_EQ(backoff.intervals("B"), 1U);
  EXPECT_FALSE(backoff.decrease("A", begin + 23h));
  for (const unsigned intervals : {4U, 2U, 1U}) {
    EXPECT_TRUE(backoff.decrease("A", begin + 24h * (8 / intervals)));
    EXPECT_EQ(backoff.intervals("A"), intervals);
  }
  EXPECT_FALSE(backoff.decrease("A", begin + 9999h));
}

TEST(BackOff, OneDrivesPainIsTheOthersLesson) {
  Rig rig;
  PolledDrive other(rig.subsystem(), rig.lessons, rig.now, 0ns);
  rig.poll();
  other.advance(rig.now, kInterval, rig.block);
  const auto interval = [&](PolledDrive& drive) { return drive.sample(rig.now).drive->polling.interval_seconds; };
  EXPECT_EQ(interval(rig.drive), 30);
  EXPECT_EQ(interval(other), 30);
  // Close to log reads everything takes a second, otherwise a millisecond.
  auto& latency = rig.block.operation(Operation::write).device_latency[0];
  latency.words.resize(LATENCY_OVER_WORD + 1);
  const auto add = [&](std::size_t word, std::uint64_t ios) { latency.words[word] += ios; };
  for (int poll = 0; poll < 3; ++poll) {
    add(20, 5000);
    rig.fake.asked.clear();
    rig.pass(kInterval);
    rig.answer_all();
    add(120, 1000);
    rig.pass(50ms);
  }
  EXPECT_EQ(interval(rig.drive), 60);
  EXPECT_EQ(interval(other), 60);
}

TEST(BackOff, APollThatASpikeAskedForIsNotToBlame) {
  Rig rig;
  rig.interval = 10min;
  rig.poll(0s);
  auto& latency = rig.block.operation(Operation::write).device_latency[0];
  latency.words.resize(LATENCY_OVER_WORD + 1);
  const auto poll_in_a_spike = [&](std::chrono::nanoseconds time) {
    latency.words[20] += 5000;
    rig.drive.poll_soon();
    rig.fake.asked.clear();
    rig.pass(time);
    rig.answer_all();
    latency.words[120] += 1000;
    rig.pass(50ms);
    return rig.fake.asked;
  };
  for (int poll = 0; poll < 5; ++poll) {
    EXPECT_NE(poll_in_a_spike(10s), Names{});
  }
  EXPECT_EQ(rig.told().polling.read_effect_ratio, std::nullopt);
  EXPECT_EQ(rig.told().polling.interval_seconds, 600);
  for (int poll = 0; poll < 3; ++poll) {
    poll_in_a_spike(10min);
  }
  EXPECT_EQ(rig.told().polling.interval_seconds, 1200) << "those were due anyway";
}

}  // namespace
}  // namespace ssdpulse::nvme
