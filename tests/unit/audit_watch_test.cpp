// SPDX-License-Identifier: Apache-2.0
// Does the daemon's own audit begin with what was measured, check again soon, and delay nothing when a file system
// hangs?
#include "daemon/runtime/audit_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <string>
#include <vector>

namespace ssdpulse::runtime {
namespace {

using namespace std::chrono_literals;

AuditWatch::Outcome one(std::string id) {
  AuditWatch::Outcome seen{AuditWatch::Findings(1), {"", {{"fstrim.timer", "disabled"}}}};
  seen.findings[0].id = std::move(id);
  return seen;
}

/// What the watch shares with its thread, which may outlive the test.
struct Host {
  std::promise<bool> had_snapshot;
  std::promise<void> answers;
  std::shared_future<void> answered = answers.get_future().share();
};

template <typename True>
bool soon(True is_true) {
  for (int i = 0; i < 500 && !is_true(); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  return is_true();
}

TEST(AuditWatch, ChecksOnRequest) {
  serve::CurrentSnapshot current;
  auto host = std::make_shared<Host>();
  AuditWatch watch(current, [host](const auto&, const auto& snapshot) {
    host->had_snapshot.set_value(snapshot != nullptr);
    return one("N10");
  });
  EXPECT_EQ(watch.outcome(), nullptr);
  current.publish(std::make_shared<model::Snapshot>());
  watch.observe(std::make_shared<model::Inventory>());
  EXPECT_TRUE(host->had_snapshot.get_future().get());
  ASSERT_TRUE(soon([&] { return watch.outcome() != nullptr; }));
  EXPECT_EQ(watch.outcome()->findings.at(0).id, "N10");
  EXPECT_EQ(watch.outcome()->settings.values.at("fstrim.timer"), "disabled");
  EXPECT_TRUE(watch.status().up);
  EXPECT_TRUE(watch.status(AuditWatch::Clock::now() + AuditWatch::kStuckAfter).up) << "no check is under way";
}

TEST(AuditWatch, RechecksOnRequestAlsoDuringACheck) {
  struct Checks {
    std::atomic<int> begun{0};
    std::promise<void> second_may_end;
    std::shared_future<void> ends = second_may_end.get_future().share();
  };
  serve::CurrentSnapshot current;
  auto checks = std::make_shared<Checks>();
  const auto check = [checks](const auto&, const auto&) {
    const int number = ++checks->begun;
    if (number == 2) {
      checks->ends.wait();
    }
    return one(std::to_string(number));
  };
  AuditWatch watch(current, check, 0s);
  watch.recheck();
  EXPECT_EQ(watch.outcome(), nullptr) << "of no inventory";
  watch.observe(std::make_shared<model::Inventory>());
  ASSERT_TRUE(soon([&] { return watch.outcome() != nullptr; }));
  watch.recheck();
  ASSERT_TRUE(soon([&] { return checks->begun == 2; })) << "long before the next check is due";
  watch.recheck();
  checks->second_may_end.set_value();
  ASSERT_TRUE(soon([&] { return watch.outcome()->findings.at(0).id == "3"; })) << "it had read the settings already";
}

TEST(AuditWatch, RequestedChecksAreSpacedOut) {
  constexpr auto kMinRecheckInterval = 200ms;
  struct Checks {
    std::mutex mutex;
    std::vector<AuditWatch::Clock::time_point> at;
    std::size_t count() {
      const std::lock_guard lock(mutex);
      return at.size();
    }
  };
  serve::CurrentSnapshot current;
  auto checks = std::make_shared<Checks>();
  const auto check = [checks](const auto&, const auto&) {
    const std::lock_guard lock(checks->mutex);
    checks->at.push_back(AuditWatch::Clock::now());
    return one(std::to_string(checks->at.size()));
  };
  AuditWatch watch(current, check, kMinRecheckInterval);
  watch.observe(std::make_shared<model::Inventory>());
  for (std::size_t looked = 1; looked < 4; ++looked) {
    ASSERT_TRUE(soon([&] { return watch.outcome() != nullptr && checks->count() == looked; }))
        << "one that waits is done";
    watch.recheck();
  }
  ASSERT_TRUE(soon([&] { return checks->count() == 4; }));
  EXPECT_GE(checks->at[2] - checks->at[1], kMinRecheckInterval);
  EXPECT_GE(checks->at[3] - checks->at[2], kMinRecheckInterval);
}

TEST(AuditWatch, AFileSystemThatHangsIsSaidAndHoldsNothingUp) {
  auto host = std::make_shared<Host>();
  const auto began = AuditWatch::Clock::now();
  {
    serve::CurrentSnapshot current;
    AuditWatch watch(current, [host](const auto&, const auto& snapshot) {
      host->had_snapshot.set_value(snapshot != nullptr);
      host->answered.wait();
      return one("F7");
    });
    watch.observe(std::make_shared<model::Inventory>());
    EXPECT_FALSE(host->had_snapshot.get_future().get());
    EXPECT_EQ(watch.outcome(), nullptr);
    EXPECT_TRUE(watch.status().up);
    const auto late = watch.status(AuditWatch::Clock::now() + AuditWatch::kStuckAfter);
    EXPECT_FALSE(late.up);
    EXPECT_EQ(late.name, "audit");
    EXPECT_NE(late.reason.find("unresponsive file system"), std::string::npos);
  }
  const auto took = AuditWatch::Clock::now() - began;
  EXPECT_GE(took, AuditWatch::kShutdownTimeout);
  EXPECT_LT(took, AuditWatch::kShutdownTimeout + 10s);
  host->answers.set_value();  // the abandoned thread ends, with data that is still its own
  std::this_thread::sleep_for(100ms);
}

}  // namespace
}  // namespace ssdpulse::runtime
