// SPDX-License-Identifier: Apache-2.0
// What is accepted from outside, and how much of it?
#include "daemon/serve/history_routes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/store.h"
#include "daemon/serve/page_routes.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::serve {
namespace {

using namespace std::chrono_literals;

TEST(OwnHosts, MetricsTakeAnyNameOnlyWhereNoBrowserOfThisHostCanAsk) {
  const auto status = [](bool loopback, const std::vector<std::string>& hosts, const char* host) {
    http::Request request;
    request.loopback = loopback;
    request.host = host;
    return for_own_hosts(
               hosts, [](const http::Request&) { return http::Response{}; }, GuardedListeners::loopback)(request)
        .status;
  };
  EXPECT_EQ(status(true, {}, "evil.example"), 421U);
  EXPECT_EQ(status(true, {}, "localhost:1"), 200U);
  EXPECT_EQ(status(false, {}, "db1.example.org"), 200U) << "Prometheus asks by the host's name";
  EXPECT_EQ(status(false, {"db1.example.org"}, "db1.example.org"), 200U);
  EXPECT_EQ(status(false, {"db1.example.org"}, "evil.example"), 421U);
}

std::future<util::Result<model::WallTime>> answered(util::Result<model::WallTime> at) {
  std::promise<util::Result<model::WallTime>> answer;
  answer.set_value(std::move(at));
  return answer.get_future();
}

TEST(HistoryRoutes, ConfirmAMarkOnlyOnceItIsOnTheDisk) {
  const auto reader = history::Reader::open("/nowhere/ssdpulse.db");
  std::promise<util::Result<model::WallTime>> never;
  std::vector<model::Mark> sent;
  const auto keep = [&](model::Mark mark) {
    sent.push_back(std::move(mark));
    return sent.size() == 1   ? answered(model::WallTime(1500ms))
           : sent.size() == 2 ? answered(util::fail("the disk is full"))
                              : never.get_future();
  };
  http::Routes routes;
  add_history(routes, **reader, keep, {});
  http::Request request;
  request.host = "localhost";
  request.own = "1";
  request.local = true;
  request.query = {{"text", "deployed"}, {"id", "4f-2A"}};
  const auto send = [&] { return routes["/api/v1/marks"].handler(request); };

  const http::Response kept = send();
  EXPECT_EQ(kept.status, 200U);
  EXPECT_NE(kept.body->find("\"at\":1.5"), std::string::npos) << *kept.body;
  EXPECT_EQ(sent.front().id, "4f-2A");

  const http::Response refused = send();
  EXPECT_EQ(refused.status, 503U);
  EXPECT_EQ(*refused.body, "the mark is not kept: the disk is full\n");

  const http::Response late = send();
  EXPECT_EQ(late.status, 503U);
  EXPECT_NE(late.body->find("has not confirmed the mark within 5 s"), std::string::npos) << *late.body;

  request.query = {{"text", "deployed"}, {"id", "no id"}};
  EXPECT_EQ(send().status, 400U);
  EXPECT_EQ(sent.size(), 3U);
}

TEST(HistoryRoutes, TakeSixtyMarksAMinute) {
  const auto reader = history::Reader::open("/nowhere/ssdpulse.db");
  http::Routes routes;
  int kept = 0;
  const auto keep = [&](const model::Mark& mark) {
    ++kept;
    return answered(mark.at);
  };
  add_history(routes, **reader, keep, {});
  http::Request request;
  request.host = "localhost";
  request.own = "1";
  request.local = true;
  request.query.emplace("text", "flood");
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(routes["/api/v1/marks"].handler(request).status, 200U) << i;
  }
  const http::Response refused = routes["/api/v1/marks"].handler(request);
  EXPECT_EQ(refused.status, 503U);
  EXPECT_NE(refused.body->find("60 marks within a minute"), std::string::npos);
  EXPECT_EQ(kept, 60);
  // Whoever floods the port keeps nobody from marking over the socket, or with a password.
  request.unix_user = 1000;
  EXPECT_EQ(routes["/api/v1/marks"].handler(request).status, 200U);
  request.unix_user = 0;
  EXPECT_EQ(routes["/api/v1/marks"].handler(request).status, 200U);
  request.unix_user.reset();
  request.logged_in = true;
  request.user = "operator";
  EXPECT_EQ(routes["/api/v1/marks"].handler(request).status, 200U);
  EXPECT_EQ(kept, 63);
}

TEST(MarkRate, IsBoundedAndHasABudgetForEachSender) {
  MarkRate rate;
  const std::chrono::steady_clock::time_point now{};
  int taken = 0;
  for (int sender = 0; sender < 1000; ++sender) {
    for (int i = 0; i < 70; ++i) {
      taken += rate.take("uid " + std::to_string(sender), now) ? 1 : 0;
    }
  }
  EXPECT_EQ(taken, 65 * 60) << "of 64 senders, and of all others together";
  EXPECT_TRUE(rate.take("uid 0", now + 61s));
}

using Minutes = std::vector<std::chrono::minutes>;

/// A history of sda: minutes with one I/O each, so long ago.
std::string written_history(const tests::TemporaryTree& tree, const Minutes& ago) {
  const std::string file = tree.path("ssdpulse.db");
  std::optional<history::FileIdentity> checked;
  const std::atomic<bool> stop = false;
  auto store = history::Store::open(file, {}, checked, stop);
  const auto now = std::chrono::floor<std::chrono::minutes>(std::chrono::system_clock::now());
  model::Batch batch;
  for (const auto minutes : ago) {
    model::DeviceInterval load;
    load.operations[0].ios = 1;
    load.latency(model::Latency::read_total).words = {{100, 1}};
    batch.device_minutes.push_back({{"w", "sda", "m", "s"}, now - minutes, load});
  }
  EXPECT_TRUE(store->write(batch, {now, 60s}).has_value());
  return file;
}

/// The history of sda, requested through the routes.
struct WrittenHistory {
  explicit WrittenHistory(Minutes minutes = {30min, 29min}) : ago(std::move(minutes)) {
    add_history(
        routes, **reader, [](const model::Mark& mark) { return answered(mark.at); }, {}, "db7");
    request.host = "localhost";
    request.path = "/api/v1/history/sda";
  }
  http::Response answer() { return routes["/api/v1/history/*"].handler(request); }

  const Minutes ago;
  const tests::TemporaryTree tree;
  const util::Result<std::unique_ptr<history::Reader>> reader = history::Reader::open(written_history(tree, ago));
  http::Routes routes;
  http::Request request;
};

TEST(HistoryRoutes, MinutesAreThoseOfSixHoursAtMost) {
  WrittenHistory history;
  http::Request& request = history.request;
  request.query = {{"minutes", "1"}};
  const http::Response answer = history.answer();
  ASSERT_EQ(answer.status, 200U) << *answer.body;
  const auto json = nlohmann::json::parse(*answer.body);
  ASSERT_EQ(json.at("minutes").size(), 2U);
  EXPECT_EQ(json.at("minutes").at(1).at("seconds"), 60);
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  request.query.emplace("from", std::to_string((now - 6h).count()));
  request.query.emplace("to", std::to_string(now.count()));
  EXPECT_EQ(history.answer().status, 200U);
  request.query.erase("from");
  request.query.emplace("from", std::to_string((now - 7h).count()));
  const http::Response refused = history.answer();
  EXPECT_EQ(refused.status, 400U);
  EXPECT_NE(refused.body->find("six hours at most"), std::string::npos);
  request.path = "/api/v1/history/sdb";
  request.query.erase("from");
  request.query.erase("to");
  EXPECT_EQ(history.answer().status, 404U) << "and then another may ask";
}

TEST(HistoryRoutes, AReportIsOnePageThatMayRunNothing) {
  WrittenHistory history({22min, 21min, 19min, 18min});
  const auto asked = [&](const std::string& device, std::chrono::minutes ago) {
    const auto at = std::chrono::floor<std::chrono::minutes>(std::chrono::system_clock::now()) - ago;
    history.request.query = {
        {"device", device},
        {"at", std::to_string(std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count())}};
    return history.routes["/report"].handler(history.request);
  };
  const http::Response answer = asked("sda", 20min);
  ASSERT_EQ(answer.status, 200U) << *answer.body;
  EXPECT_EQ(answer.content_type, "text/html; charset=utf-8");
  EXPECT_NE(answer.body->find("on sda"), std::string::npos) << *answer.body;
  EXPECT_EQ(answer.headers.front().first, "Content-Security-Policy");
  EXPECT_EQ(answer.headers.front().second.find("script"), std::string::npos);
  EXPECT_NE(answer.headers.front().second.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(answer.body->find("ssdpulse report: db7, made"), std::string::npos) << *answer.body;
  EXPECT_EQ(answer.body->find("localhost"), std::string::npos) << "what a client calls it is not its name";
  EXPECT_EQ(asked("sdb", 20min).status, 404U);
  EXPECT_EQ(asked("sda", 10min).status, 404U) << "nothing was measured since";
  EXPECT_EQ(asked("sda", 0min).status, 400U) << "nothing has passed since";
  EXPECT_EQ(asked("", 20min).status, 400U);
  history.request.query = {{"device", "sda"}, {"at", "soon"}};
  EXPECT_EQ(history.routes["/report"].handler(history.request).status, 400U);
}

TEST(HistoryRoutes, CompareATimeWithAsMuchBeforeItOrTheSameOfYesterday) {
  WrittenHistory history;
  http::Request& request = history.request;
  request.path = "/api/v1/compare/sda";
  const auto answer = [&](std::chrono::minutes from, std::chrono::minutes to, const std::string& against) {
    const auto now = std::chrono::floor<std::chrono::minutes>(std::chrono::system_clock::now());
    const auto seconds = [&](std::chrono::minutes ago) {
      return std::to_string(std::chrono::duration_cast<std::chrono::seconds>((now - ago).time_since_epoch()).count());
    };
    request.query = {{"from", seconds(from)}, {"to", seconds(to)}, {"against", against}};
    return history.routes["/api/v1/compare/*"].handler(request);
  };
  const http::Response compared = answer(29min, 28min, "before");
  ASSERT_EQ(compared.status, 200U) << *compared.body;
  const auto device = nlohmann::json::parse(*compared.body).at("devices").at(0);
  EXPECT_EQ(device.at("device"), "sda");
  EXPECT_EQ(device.at("before").at("to"), device.at("after").at("from"));
  EXPECT_EQ(device.at("before").at("from"), device.at("after").at("from").get<int>() - 60);
  EXPECT_EQ(device.at("rows").at(0).at("verdict"), "too few");
  EXPECT_EQ(answer(30min, 29min, "before").status, 404U) << "nothing was measured before";
  EXPECT_EQ(answer(29min, 28min, "yesterday").status, 404U);
  EXPECT_EQ(answer(29min, 28min, "tomorrow").status, 400U);
  EXPECT_EQ(answer(28min, 29min, "before").status, 400U);
  EXPECT_EQ(answer(std::chrono::hours(7), 0min, "before").status, 400U);
  request.path = "/api/v1/compare/sdb";
  EXPECT_EQ(answer(29min, 28min, "before").status, 404U);
  request.path = "/api/v1/compare/";
  EXPECT_EQ(answer(29min, 28min, "before").status, 400U) << "all drives at once would take too much memory";
}

TEST(HistoryRoutes, AColumnOfTheHeatmapIsTheSumOfItsMinutes) {
  WrittenHistory history;
  http::Request& request = history.request;
  request.query = {{"heat", "read"}, {"points", "2"}, {"tenants", "total"}};
  const http::Response answer = history.answer();
  ASSERT_EQ(answer.status, 200U) << *answer.body;
  const auto json = nlohmann::json::parse(*answer.body);
  std::size_t ios = 0;
  for (const auto& level : json.at("heat").at("levels")) {
    ASSERT_TRUE(level == "100:1" || level == "100:2") << level;  // one I/O, or two
    ios += level == "100:1" ? 1 : 2;
  }
  EXPECT_EQ(ios, 2U);
  EXPECT_EQ(json.at("heat").at("levels").size(), json.at("points").at("start").size());
  EXPECT_EQ(json.at("bounds_seconds").size(), 211U);
  request.query.erase("heat");
  EXPECT_FALSE(nlohmann::json::parse(*history.answer().body).contains("heat"));
  request.query.emplace("heat", "zone");
  EXPECT_EQ(history.answer().status, 400U);
}

TEST(MarkRate, BeginsAnotherMinute) {
  MarkRate rate;
  const std::chrono::steady_clock::time_point begin{1h};
  for (int i = 0; i < MarkRate::kMaxMarksPerMinute; ++i) {
    ASSERT_TRUE(rate.take("tcp", begin + 1s));
  }
  EXPECT_FALSE(rate.take("tcp", begin + 60s));
  EXPECT_TRUE(rate.take("tcp", begin + 61s));
}

}  // namespace
}  // namespace ssdpulse::serve
