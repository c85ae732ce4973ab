// SPDX-License-Identifier: Apache-2.0
// Does the server answer what it should, and can no client harm the others, by number or by slowness?
#include "exporters/http/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "exporters/http/http_page.h"
#include "tests/unit/http_client.h"

namespace ssdpulse::http {
namespace {

using test::Client;
using test::Clock;
using test::kTimeout;
using test::soon;
using namespace std::chrono_literals;

std::shared_ptr<const std::string> bytes(std::string content) {
  return std::make_shared<const std::string>(std::move(content));
}

Response ok(std::shared_ptr<const std::string> body) {
  Response response;
  response.body = std::move(body);
  return response;
}

struct Running {
  std::unique_ptr<Server> server;
  std::uint16_t port = 0;
};

Running run(Routes routes, Limits limits = {}) {
  auto listeners = test::local_listener();
  const auto port = test::port_of(listeners.at(0).address);
  auto server = Server::start(std::move(listeners), std::move(routes), limits);
  EXPECT_TRUE(server);
  return {std::move(*server), port};
}

TEST(Server, ServesTheDaemonsPages) {
  std::atomic<bool> ready{false};
  const auto page = bytes("metric 1\n");
  const auto running = run(daemon_pages(
      [&](const Request& request) {
        auto response = ok(page);
        response.content_type = "kind/" + request.accept;
        response.content_encoding = request.accept_encoding + request.parameter("histograms");
        return response;
      },
      [&] {
        return Readiness{ready.load(), {}};
      }));
  Client client(running.port);  // one connection for all of it: keep-alive
  client.get("/metrics?x=1&histograms=%20native", "Accept: of-bread\r\nAccept-Encoding: gzip\r\n");
  auto answer = client.answer();
  EXPECT_EQ(Client::status(answer), 200);
  EXPECT_EQ(Client::header(answer, "Content-Type"), "kind/of-bread");
  EXPECT_EQ(Client::header(answer, "Content-Encoding"), "gzip native");
  EXPECT_EQ(Client::body(answer), "metric 1\n");
  client.get("/");
  answer = client.answer();
  EXPECT_EQ(Client::status(answer), 200);
  EXPECT_EQ(Client::header(answer, "Content-Encoding"), "");
  EXPECT_NE(Client::body(answer).find("href=\"/metrics\""), std::string::npos);
  const std::tuple<const char*, bool, int> cases[] = {
      {"/-/healthy", false, 200}, {"/-/ready", false, 503},     {"/-/ready", true, 200}, {"/nowhere", true, 404},
      {"/metrics/", true, 404},   {"/-/healthy/..", true, 404}, {"//", true, 404}};
  for (const auto& [path, is_ready, status] : cases) {
    ready = is_ready;
    client.get(path);
    EXPECT_EQ(Client::status(client.answer()), status) << path;
  }
  EXPECT_TRUE(soon([&] { return running.server->counters().answered == 9; }));
  EXPECT_EQ(running.server->counters().refused, 0U);
}

TEST(Server, HeadHasHeadersOnly) {
  const auto running = run({{"/", [](const Request&) { return ok(bytes("12345")); }}});
  Client client(running.port);
  client.send("HEAD / HTTP/1.1\r\nHost: here\r\n\r\n");
  const auto answer = client.answer(false);
  EXPECT_EQ(Client::status(answer), 200);
  EXPECT_EQ(Client::header(answer, "Content-Length"), "5");
  // The next answer follows at once: there was no body in between.
  client.get("/");
  EXPECT_EQ(Client::body(client.answer()), "12345");
}

TEST(Server, OtherMethodsAndBodiesAreRefused) {
  const auto running = run({{"/", [](const Request&) { return ok(bytes("x")); }}});
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "BREW"}) {
    Client client(running.port);
    client.send(std::string(method) + " / HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n");
    const auto answer = client.answer();
    EXPECT_EQ(Client::status(answer), 405) << method;
    EXPECT_EQ(Client::header(answer, "Allow"), "GET, HEAD") << method;
  }
  Client post(running.port);
  post.send("POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\nbegin");
  EXPECT_EQ(Client::status(post.answer()), 405);
  EXPECT_TRUE(post.is_closed());
  for (const char* body :
       {"Content-Length: 5\r\n\r\n12345", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n"}) {
    Client client(running.port);
    client.send(std::string("GET / HTTP/1.1\r\nHost: here\r\n") + body);
    EXPECT_EQ(Client::status(client.answer()), 413) << body;
    EXPECT_TRUE(client.is_closed());
  }
}

TEST(Server, APostRouteIsReachedByNoOtherMethod) {
  std::atomic<int> made{0};
  const auto post = [&](const Request& request) {
    ++made;
    return ok(bytes(request.path));
  };
  const auto running = run({{"/marks", {post, Lane::page, nullptr, Method::post}}});
  Client client(running.port);
  client.send("POST /marks?text=x HTTP/1.1\r\nHost: here\r\n\r\n");
  EXPECT_EQ(Client::body(client.answer()), "/marks");
  for (const char* method : {"GET", "PUT", "DELETE"}) {
    Client other(running.port);
    other.send(std::string(method) + " /marks?text=x HTTP/1.1\r\nHost: here\r\n\r\n");
    const auto answer = other.answer();
    EXPECT_EQ(Client::status(answer), 405) << method;
    EXPECT_EQ(Client::header(answer, "Allow"), "POST") << method;
  }
  // The library decodes the target, and takes one without a slash.
  for (const char* target : {"POST%20/marks?text=x", "marks", "http://here/marks"}) {
    Client other(running.port);
    other.send(std::string("GET ") + target + " HTTP/1.1\r\nHost: here\r\n\r\n");
    EXPECT_EQ(Client::status(other.answer()), 400) << target;
  }
  EXPECT_EQ(made, 1);
}

// A proxy in front of the server may read each of these otherwise than the server does.
TEST(Server, AmbiguousRequestsAreRefused) {
  const auto running = run({{"/metrics", [](const Request&) { return ok(bytes("x")); }}});
  const std::pair<std::string, const char*> cases[] = {
      {"GET /metrics%00/x HTTP/1.1\r\nHost: a\r\n\r\n", "NUL"},
      {"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", "NUL alone"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "two hosts"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nhOST: a\r\n\r\n", "the same host twice"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n", "two lengths"},
      {"GET /metrics HTTP/1.1\r\nHost : a\r\n\r\n", "a blank before the colon"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nX-A : b\r\n\r\n", "a blank before the colon of another field"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YTph\r\nAuthorization: Basic YTpi\r\n\r\n",
       "two users"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nX-A: b\rHost: c\r\n\r\n", "a line break that is none to all"},
      {"GET /metrics HTTP/1.2\r\nHost: a\r\n\r\n", "a version that is none"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nX-A: b\r\n  c: d\r\n\r\n", "a folded field with a name of its own"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c\r\n\r\n", "a folded field"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\n\tb\r\n\r\n", "a folded host"},
      {"GET /metrics HTTP/1.1\r\nHos: a\r\n t\r\n\r\n", "a folded name that becomes another"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nX-A:\r\n b\r\n\r\n", "a folded field that begins empty"},
      {"GET /metrics HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c\r\n d\r\n\r\n", "a field of three lines"},
      {"GET /metrics HTTP/1.1\r\n b\r\nHost: a\r\n\r\n", "a continuation of nothing"},
      {"GET /metrics HTTP/1.1\r\n\r\n", "no host"},
      {"GET /metrics HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n", "a blank in the target"},
  };
  for (const auto& [request, what] : cases) {
    Client client(running.port);
    client.send(request);
    const auto answer = client.answer();
    EXPECT_TRUE(answer.empty() || Client::status(answer) == 400) << what << ": " << answer;
  }
  // The library's own answers have no headers of ours.
  for (const char* request : {"GET /metrics HTTP/1.1\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost : a\r\n\r\n",
                              "GET /metrics x HTTP/1.1\r\nHost: a\r\n\r\n"}) {
    Client ours(running.port);
    ours.send(request);
    EXPECT_EQ(Client::body(ours.answer()), "ambiguous request: a proxy may read it differently\n") << request;
  }
  Client client(running.port);
  client.get("/metrics?a=%00");  // an argument may hold anything
  EXPECT_EQ(Client::status(client.answer()), 200);
  client.get("/metrics", "X-A:b\r\nX-B: \t b  c\r\nX-C:\r\nX-D:   \r\nCookie: a=b; c=d\r\n");
  EXPECT_EQ(Client::status(client.answer()), 200) << "blanks around a value";
}

TEST(Server, EveryAnswerSaysThatItIsNotForOtherSites) {
  const auto running = run({{"/metrics", [](const Request&) { return ok(bytes("x")); }}});
  for (const char* path : {"/metrics", "/nowhere", "/metrics%00"}) {
    Client client(running.port);
    client.get(path);
    const auto answer = client.answer();
    EXPECT_EQ(Client::header(answer, "X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(Client::header(answer, "Cross-Origin-Resource-Policy"), "same-origin") << path;
  }
}

TEST(Server, APageMaySayThatItIsForOtherSites) {
  const auto running = run({{"/", [](const Request&) {
                               auto response = ok(bytes("x"));
                               response.headers = {{"cross-origin-resource-policy", "cross-origin"}};
                               return response;
                             }}});
  Client client(running.port);
  client.get("/");
  const auto answer = client.answer();
  EXPECT_EQ(Client::header(answer, "cross-origin-resource-policy"), "cross-origin");
  EXPECT_EQ(answer.find("same-origin"), std::string::npos) << answer;
  EXPECT_EQ(Client::header(answer, "X-Content-Type-Options"), "nosniff");
}

TEST(Server, AnExceptionIsA500AndAnEmptyBodyIsFine) {
  const auto running = run({{"/throws", [](const Request&) -> Response { throw std::runtime_error("secret"); }},
                            {"/empty", [](const Request&) { return ok(nullptr); }}});
  Client client(running.port);
  client.get("/throws");
  const auto answer = client.answer();
  EXPECT_EQ(Client::status(answer), 500);
  EXPECT_EQ(answer.find("secret"), std::string::npos);
  client.get("/empty");
  const auto empty = client.answer();
  EXPECT_EQ(Client::status(empty), 200);
  EXPECT_EQ(Client::header(empty, "Content-Length"), "0");
}

TEST(Server, HeadersAreBounded) {
  const auto running = run({{"/", [](const Request&) { return ok(bytes("x")); }}});
  Client ordinary(running.port);
  ordinary.get("/", "Cookie: " + std::string(7000, 'c') + "\r\n");
  EXPECT_EQ(Client::status(ordinary.answer()), 200);
  Client wide(running.port);
  wide.get("/", "Cookie: " + std::string(100'000, 'c') + "\r\n");
  EXPECT_EQ(Client::status(wide.answer()), 431);
  Client lengthy(running.port);
  lengthy.get("/" + std::string(100'000, 'p'));
  EXPECT_EQ(Client::status(lengthy.answer()), 414);
}

TEST(Server, AClientThatSendsSlowlyIsCut) {
  Limits limits;
  limits.request_time = 300ms;
  const auto running = run({{"/", [](const Request&) { return ok(bytes("x")); }}}, limits);
  Client silent(running.port);
  const auto begin = Clock::now();
  Client trickling(running.port);
  trickling.send("GET / HTTP/1.1\r\nHost: here\r\nX: ");
  while (trickling.send("x") && Clock::now() - begin < kTimeout) {
    std::this_thread::sleep_for(20ms);
  }
  const auto lived = Clock::now() - begin;
  EXPECT_GE(lived, limits.request_time);
  EXPECT_LT(lived, kTimeout);
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(soon([&] { return running.server->counters().connections == 0; }));
  EXPECT_EQ(running.server->counters().cut, 2U);
}

TEST(Server, AnIdleConnectionIsCut) {
  Limits limits;
  limits.idle_time = 200ms;
  const auto running = run({{"/", [](const Request&) { return ok(bytes("x")); }}}, limits);
  Client client(running.port);
  const auto begin = Clock::now();
  auto last = begin;
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(100ms);
    client.get("/");
    const bool answered = Client::status(client.answer()) == 200;
    const auto now = Clock::now();
    EXPECT_TRUE(answered || now - std::exchange(last, now) >= limits.idle_time) << "though it was not idle so long";
  }
  EXPECT_TRUE(client.is_closed());
}

TEST(Server, AClientThatHangsUpIsNotKeptAsIdle) {
  Limits limits;
  limits.answer_time = 300ms;
  const auto slow = [](const Request&) {
    std::this_thread::sleep_for(5ms);
    return ok(bytes("x"));
  };
  const auto running = run({{"/", slow}}, limits);
  const std::string request = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < 200; ++i) {
    // The client closes with an unfinished request as its last, while the first waits for its page.
    clients.push_back(std::make_unique<Client>(running.port));
    clients.back()->send(request + request + request.substr(0, i % request.size()));
    ::shutdown(clients.back()->fd(), SHUT_WR);
  }
  EXPECT_TRUE(soon([&] { return running.server->counters().answered > 0; }));
  EXPECT_TRUE(soon([&] { return running.server->counters().connections == 0; }))
      << running.server->counters().connections << " are kept";
}

TEST(Server, AClientThatReadsSlowlyIsCutAndItsBodyFreed) {
  Limits limits;
  limits.answer_time = 400ms;
  auto body = bytes(std::string(16 << 20, 'b'));
  const std::weak_ptr<const std::string> watched = body;
  const auto running = run({{"/", [&](const Request&) { return ok(std::exchange(body, nullptr)); }}}, limits);
  Client client(running.port, 4096);
  client.get("/");
  const auto begin = Clock::now();
  // A few bytes now and then: never silent, but not done for minutes.
  while (client.receive(1024, 100ms) && Clock::now() - begin < kTimeout) {
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_TRUE(soon([&] { return watched.expired(); }));
  EXPECT_LT(Clock::now() - begin, kTimeout);
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(running.server->counters().cut, 1U);
}

// While nobody has got a page yet, one more request is refused, in whatever order they come.
TEST(Server, BeyondTheBoundA503ComesAtOnce) {
  Limits limits;
  limits.lanes[1] = {2, 4, 4};
  std::promise<void> release;
  const auto released = release.get_future().share();
  const auto running = run({{"/",
                             [&](const Request&) {
                               released.wait();
                               return ok(bytes("x"));
                             }}},
                           limits);
  std::vector<Client> clients;
  for (unsigned i = 0; i < 5; ++i) {
    clients.emplace_back(running.port);
    clients.back().get("/");
  }
  EXPECT_TRUE(soon([&] { return running.server->counters().refused == 1; }));
  EXPECT_EQ(running.server->counters().answered, 1U);
  release.set_value();
  Client* refused = nullptr;
  for (auto& client : clients) {
    const auto answer = client.answer();
    if (Client::status(answer) != 200) {
      EXPECT_EQ(Client::status(answer), 503);
      EXPECT_EQ(Client::header(answer, "Retry-After"), "1");
      EXPECT_EQ(std::exchange(refused, &client), nullptr);
    }
  }
  ASSERT_NE(refused, nullptr);
  // The slot is free again.
  EXPECT_TRUE(soon([&] {
    refused->get("/");
    return Client::status(refused->answer()) == 200;
  }));
}

// They request page after page and read none: a page that was handed over no longer counts as being made.
TEST(Server, ClientsThatDoNotReadKeepNobodyFromBeingAnswered) {
  Limits limits;
  limits.lanes[1] = {2, 4, 4};
  const auto body = bytes(std::string(4 << 20, 'b'));
  const auto running = run(
      {{"/", [](const Request&) { return ok(bytes("x")); }}, {"/metrics", [&](const Request&) { return ok(body); }}},
      limits);
  std::vector<Client> stalled;
  for (int i = 0; i < 20; ++i) {
    stalled.emplace_back(running.port, 4096);
    for (int j = 0; j < 10; ++j) {
      stalled.back().get("/metrics");
    }
    EXPECT_TRUE(soon([&] { return static_cast<std::size_t>(body.use_count()) > 2 * stalled.size(); }));
  }
  for (int i = 0; i < 20; ++i) {
    Client client(running.port);
    client.get("/");
    EXPECT_EQ(Client::status(client.answer()), 200);
  }
  EXPECT_EQ(running.server->counters().refused, 0U);
}

struct Stalled {
  explicit Stalled(Limits limits) {
    running = run({{"/own",
                    [this](const Request&) {
                      auto body = bytes(std::string(3 << 20, 'b'));
                      made.push_back(body);
                      return ok(std::move(body));
                    }},
                   {"/shared", [body = bytes(std::string(6 << 20, 's'))](const Request&) { return ok(body); }}},
                  limits);
  }
  /// A client that asks and reads nothing; returns once its answer waits.
  void add(const char* path) {
    clients.emplace_back(running.port, 4096);
    clients.back().get(path);
    EXPECT_TRUE(clients.back().receive(1, kTimeout));
  }

  std::vector<std::weak_ptr<const std::string>> made;
  Running running;
  std::vector<Client> clients;
};

Limits of_one_worker() {
  Limits limits;
  limits.lanes[1] = {1, 96, 96};
  limits.unread_bytes = 7 << 20;
  limits.answer_time = 2 * kTimeout;
  return limits;
}

TEST(Server, UnreadAnswersAreBoundedInBytes) {
  Limits limits = of_one_worker();
  limits.unread_time = kTimeout;
  Stalled stalled(limits);
  stalled.add("/own");
  stalled.add("/own");
  Client third(stalled.running.port);
  third.get("/own");
  const auto answer = third.answer();
  EXPECT_EQ(Client::status(answer), 503);
  EXPECT_EQ(Client::header(answer, "Retry-After"), "1");
  EXPECT_EQ(stalled.running.server->counters().refused_unread, 1U);
  EXPECT_EQ(stalled.running.server->counters().cut, 0U);
  stalled.clients.pop_back();  // there is room again
  EXPECT_TRUE(soon([&] {
    third.get("/own");
    return Client::status(third.answer()) == 200;
  }));
}

TEST(Server, AnAnswerThatManyWaitForCountsOnce) {
  Stalled stalled(of_one_worker());
  for (int i = 0; i < 10; ++i) {
    stalled.add("/shared");
  }
  EXPECT_EQ(stalled.running.server->counters().refused_unread, 0U);
  EXPECT_EQ(stalled.running.server->counters().cut, 0U);
}

TEST(Server, WhoHasNotReadForLongIsCutForTheNext) {
  Limits limits = of_one_worker();
  limits.unread_time = 1ms;
  Stalled stalled(limits);
  stalled.add("/own");
  std::this_thread::sleep_for(50ms);
  stalled.add("/own");
  std::this_thread::sleep_for(50ms);
  Client third(stalled.running.port);
  third.get("/own");
  EXPECT_EQ(Client::status(third.answer()), 200);
  EXPECT_EQ(stalled.running.server->counters().cut, 1U);
  EXPECT_TRUE(soon([&] { return stalled.made.front().expired(); })) << "the one that waited the longest";
  EXPECT_FALSE(stalled.made.at(1).expired());
  EXPECT_EQ(stalled.running.server->counters().refused_unread, 0U);
}

// All slots are taken by clients that do not read their page: they lose them as soon as somebody else waits, not
// before.
TEST(Server, TheSlowAreCutWhileOthersWait) {
  Limits limits;
  limits.connections = 8;
  limits.pressed_time = 200ms;
  limits.answer_time = 2 * kTimeout;
  const auto body = bytes(std::string(16 << 20, 'b'));
  const auto running = run(
      {{"/", [](const Request&) { return ok(bytes("x")); }}, {"/metrics", [&](const Request&) { return ok(body); }}},
      limits);
  std::vector<Client> slow;
  while (slow.size() + 1 < limits.connections) {
    slow.emplace_back(running.port, 4096);
    slow.back().get("/metrics");
  }
  std::this_thread::sleep_for(3 * limits.pressed_time);
  EXPECT_EQ(running.server->counters().cut, 0U);
  slow.emplace_back(running.port, 4096);
  slow.back().get("/metrics");
  Client client(running.port);
  client.get("/");
  EXPECT_EQ(Client::status(client.answer()), 200);
}

TEST(Server, BeyondItsConnectionsClientsWaitAndAreNotLost) {
  Limits limits;
  limits.connections = 8;
  limits.idle_time = 100ms;
  const auto running = run({{"/", [](const Request&) { return ok(bytes("x")); }}}, limits);
  std::vector<Client> clients;
  for (int i = 0; i < 40; ++i) {
    clients.emplace_back(running.port);
    clients.back().get("/");
  }
  std::this_thread::sleep_for(50ms);
  EXPECT_LE(running.server->counters().connections, 8U);
  for (auto& client : clients) {
    EXPECT_EQ(Client::status(client.answer()), 200);
  }
}

// A thousand clients at once; pages are slow to make and too large for the sockets, and half of the clients stop
// reading. Everyone gets 200 or 503 soon, and the body exists only once.
TEST(Server, AThousandClientsAtOnce) {
  test::allow_many_fds();
  constexpr std::size_t kClients = 1000;
  const auto body = bytes(std::string(8 << 20, 'b'));
  const auto running = run({{"/metrics", [&](const Request&) {
                               std::this_thread::sleep_for(20ms);
                               return ok(body);
                             }}});
  const auto before = test::anonymous_kib();
  std::vector<Client> clients;
  clients.reserve(kClients);
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.emplace_back(running.port, 4096);
    ASSERT_TRUE(clients.back().connected());
  }
  const auto begin = Clock::now();
  for (auto& client : clients) {
    ASSERT_TRUE(client.get("/metrics"));
  }
  std::size_t answered = 0;
  std::size_t refused = 0;
  for (auto& client : clients) {
    client.receive(64, kTimeout);
    const auto head = client.answer(false);
    answered += Client::status(head) == 200 ? 1 : 0;
    refused += Client::status(head) == 503 ? 1 : 0;
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  const auto grown = test::anonymous_kib() - before;
  std::cout << answered << " x 200, " << refused << " x 503 in " << took.count() << " ms; anonymous memory +" << grown
            << " KiB, clients included\n";
  EXPECT_EQ(answered + refused, kClients);
  EXPECT_GE(answered, Limits{}.lanes[1].requests_of_one);
  EXPECT_LT(took, 5s);
  EXPECT_LT(grown, 200U * 1024);  // half of that under sanitizers; 64 copies of the body would be 512 MiB
  EXPECT_LE(running.server->counters().connections, kClients);

  // And the server works normally afterwards.
  clients.clear();
  EXPECT_TRUE(soon([&] { return running.server->counters().connections == 0; }));
  Client next(running.port);
  next.get("/metrics");
  EXPECT_EQ(Client::body(next.answer()), *body);
}

TEST(Server, ListensOnSeveralSockets) {
  auto listeners = test::local_listener();
  listeners.push_back(std::move(test::local_listener().at(0)));
  const auto first = test::port_of(listeners[0].address);
  const auto second = test::port_of(listeners[1].address);
  const auto server = Server::start(std::move(listeners), {{"/", [](const Request&) { return ok(bytes("x")); }}});
  ASSERT_TRUE(server);
  for (const auto port : {first, second}) {
    Client client(port);
    client.get("/");
    EXPECT_EQ(Client::status(client.answer()), 200);
  }
}

TEST(Server, StopIsPromptWhateverClientsDo) {
  const auto body = bytes(std::string(16 << 20, 'b'));
  auto running = run({{"/", [&](const Request&) {
                         std::this_thread::sleep_for(50ms);
                         return ok(body);
                       }}});
  std::vector<Client> clients;
  for (int i = 0; i < 60; ++i) {
    clients.emplace_back(running.port, 4096);  // some idle, some in the middle of a header, some not reading
    if (i % 3 == 1) {
      clients.back().send("GET / HT");
    } else if (i % 3 == 2) {
      clients.back().get("/");
    }
  }
  std::this_thread::sleep_for(60ms);  // some pages are ready, some are being made, some are waiting
  const auto begin = Clock::now();
  running.server->stop();
  EXPECT_LT(Clock::now() - begin, 5s);  // no client deadline is shorter than 10 s
  EXPECT_EQ(body.use_count(), 1);
  running.server->stop();
  EXPECT_FALSE(Client(running.port).connected());
}

TEST(Server, StartsAndStopsWithoutALeak) {
  std::size_t fds = 0;
  for (int i = 0; i < 50; ++i) {
    auto running = run({{"/", [](const Request&) { return ok(bytes("x")); }}});
    Client client(running.port);
    client.get("/");
    EXPECT_EQ(Client::status(client.answer()), 200);
    Client idle(running.port);
    running.server.reset();
    const auto now = test::open_fds();
    fds = i == 0 ? now : fds;
    EXPECT_EQ(now, fds);
  }
}

}  // namespace
}  // namespace ssdpulse::http
