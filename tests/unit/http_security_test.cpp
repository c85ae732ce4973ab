// SPDX-License-Identifier: Apache-2.0
// Does nobody read a page without permission, and do attempts to do so cost the other clients nothing?
#include "exporters/http/http_security.h"

#include <crypt.h>
#include <gnutls/gnutls.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <future>
#include <limits>
#include <thread>

#include "exporters/http/http_page.h"
#include "exporters/http/http_server.h"
#include "exporters/http/http_tls.h"
#include "tests/unit/http_client.h"

namespace ssdpulse::http {
namespace {

using test::Client;
using test::Clock;
using test::soon;
using namespace std::chrono_literals;

// From the exporters' own tests: github.com/prometheus/exporter-toolkit, web/testdata/web_config_users.good.yml.
const std::string kAlice = "$2y$12$1DpfPeqF9HzHJt.EWswy1exHluGfbhnn3yXhR7Xes6m3WJqFg0Wby";
const std::string kAlicesPassword = "alice123";

std::string bcrypt(const std::string& password, int cost) {
  crypt_data data{};
  const std::string two_digits = std::to_string(100 + cost).substr(1);
  return ::crypt_r(password.c_str(), ("$2y$" + two_digits + "$abcdefghijklmnopqrstuu").c_str(), &data);
}

std::string base64(const std::string& text) {
  const gnutls_datum_t plain{reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
                             static_cast<unsigned>(text.size())};
  gnutls_datum_t encoded{};
  gnutls_base64_encode2(&plain, &encoded);
  const std::string result(reinterpret_cast<char*>(encoded.data), encoded.size);
  gnutls_free(encoded.data);
  return result;
}

std::string authorization(const std::string& user, const std::string& password) {
  return "Authorization: Basic " + base64(user + ":" + password) + "\r\n";
}

Credentials of(const std::string& user, const std::string& password) {
  Credentials credentials;
  credentials.user = user;
  credentials.password = password;
  return credentials;
}

std::shared_ptr<const Protection> protect(const Security& security, const Protection* previous = nullptr) {
  auto protection = make_protection(security, previous);
  EXPECT_TRUE(protection) << protection.error().message;
  return *protection;
}

Security users(const std::vector<std::pair<std::string, std::string>>& names_and_hashes) {
  Security security;
  security.users = names_and_hashes;
  return security;
}

struct Running {
  std::unique_ptr<Server> server;
  std::uint16_t port = 0;

  /// The status of one answer, over a separate connection.
  [[nodiscard]] int status(const std::string& path, const std::string& headers = {}) const {
    Client client(port);
    client.get(path, headers);
    return Client::status(client.answer());
  }
};

Response page(const Request&) {
  Response response;
  response.body = std::make_shared<const std::string>("metric 1\n");
  return response;
}

Running run(std::shared_ptr<const Protection> protection, Limits limits = {}, const Handler& metrics = page) {
  auto listeners = test::local_listener();
  const auto port = test::port_of(listeners.at(0).address);
  auto routes = daemon_pages(metrics, [] { return Readiness{true, {}}; });
  auto server = Server::start(std::move(listeners), std::move(routes), limits, std::move(protection));
  EXPECT_TRUE(server);
  return {std::move(*server), port};
}

TEST(Basic, IsParsedStrictly) {
  const auto alice = parse_basic("Basic " + base64("alice:p:w"));
  ASSERT_TRUE(alice);
  EXPECT_EQ(alice->user, "alice");
  EXPECT_EQ(alice->password, "p:w");
  EXPECT_TRUE(parse_basic("bASIC " + base64("a:")));
  for (const std::string header :
       {"", "Basic", "Basic ", "Bearer YTpi", "Basic !!!", "Basic YQ==", "BasicYTpi", "Digest username=\"a\""}) {
    EXPECT_FALSE(parse_basic(header)) << header;
  }
  EXPECT_FALSE(parse_basic("Basic " + base64(std::string("a:right\0wrong", 13))));
}

// Short strings are stored in the object itself, and are copied when it is moved.
TEST(Credentials, LeaveNoPasswordBehind) {
  for (const std::string password : {"short-secret", "a-secret-that-is-longer-than-an-object"}) {
    alignas(Credentials) std::array<char, sizeof(Credentials)> bytes{};
    auto* from = new (bytes.data()) Credentials(of("alice", password));
    Credentials to(std::move(*from));
    Credentials again;
    again = std::move(to);
    from->~Credentials();
    EXPECT_EQ(again.password, password);
    EXPECT_EQ(std::string(bytes.data(), bytes.size()).find(password.substr(1, 8)), std::string::npos) << password;
  }
}

RC_GTEST_PROP(Basic, TakesAnyBytes, (const std::string& noise)) {
  (void)parse_basic(noise);
  (void)parse_basic("Basic " + noise);
}

Peer peer(const char* text) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    return peer_of(reinterpret_cast<const sockaddr*>(&v4));
  }
  EXPECT_EQ(::inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
  return peer_of(reinterpret_cast<const sockaddr*>(&v6));
}

TEST(PeerQuota, AreSharedAmongAddresses) {
  EXPECT_EQ(peer("192.0.2.1"), peer("::ffff:192.0.2.1"));
  EXPECT_EQ(peer("::ffff:127.200.1.2"), peer("::ffff:127.0.0.1"));  // both of the same host
  EXPECT_EQ(peer("127.1.2.3"), peer("::ffff:127.0.0.1"));
  EXPECT_NE(peer("126.0.0.1"), peer("127.0.0.1"));
  EXPECT_NE(peer("::ffff:192.0.2.2"), peer("::ffff:192.0.2.1"));
  EXPECT_EQ(peer("2001:db8::1"), peer("2001:db8::2:3"));  // in the same network
  EXPECT_NE(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
  EXPECT_EQ(peer_of(nullptr), Peer{});
  PeerQuota quota(3, 2);
  EXPECT_TRUE(quota.take("a"));
  EXPECT_TRUE(quota.take("a"));
  EXPECT_FALSE(quota.take("a"));
  EXPECT_TRUE(quota.take("b"));
  EXPECT_FALSE(quota.take("c"));
  quota.leave("a");
  EXPECT_TRUE(quota.take("c"));
}

TEST(Users, KnowWhoTheExportersKnow) {
  const Users known({{"alice", kAlice}}, nullptr);
  EXPECT_FALSE(known.remembers(of("alice", kAlicesPassword)));
  EXPECT_TRUE(known.verify(of("alice", kAlicesPassword)));
  EXPECT_TRUE(known.remembers(of("alice", kAlicesPassword)));
  for (const auto& [user, password] :
       {std::pair("alice", "alice124"), {"alice", ""}, {"Alice", "alice123"}, {"", "alice123"}, {"bob", "alice123"}}) {
    EXPECT_FALSE(known.remembers(of(user, password))) << user << ":" << password;
    EXPECT_FALSE(known.verify(of(user, password))) << user << ":" << password;
    EXPECT_FALSE(known.remembers(of(user, password))) << user << ":" << password;
  }
}

// An unknown user is compared with an existing one: never believed, even with the right password of that one.
TEST(Users, AnUnknownUserIsRefused) {
  const Users known({{"a", bcrypt("pw", 4)}, {"b", bcrypt("pw", 4)}}, nullptr);
  EXPECT_TRUE(known.verify(of("a", "pw")));
  EXPECT_TRUE(known.verify(of("b", "pw")));
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(known.remembers(of("user" + std::to_string(i), "pw")));
    EXPECT_FALSE(known.verify(of("user" + std::to_string(i), "pw")));
  }
}

TEST(Users, AnUnknownUserCostsAsMuchAsAKnownOne) {
  const Users known({{"a", bcrypt("pw", 8)}}, nullptr);
  const auto fastest = [&](const std::string& user) {
    auto least = std::numeric_limits<std::clock_t>::max();
    for (int i = 0; i < 5; ++i) {
      const std::clock_t begin = std::clock();  // CPU time: the host may be busy
      EXPECT_FALSE(known.verify(of(user, "wrong")));
      least = std::min(least, std::clock() - begin);
    }
    return least;
  };
  const auto of_known = fastest("a");
  const auto of_unknown = fastest("nobody");
  EXPECT_LT(of_known, 2 * of_unknown);
  EXPECT_LT(of_unknown, 2 * of_known);
}

TEST(Users, WhatWasRightIsRightOnlyForTheSameHash) {
  const Users before({{"a", bcrypt("old", 4)}, {"b", bcrypt("same", 4)}}, nullptr);
  EXPECT_TRUE(before.verify(of("a", "old")));
  EXPECT_TRUE(before.verify(of("b", "same")));
  const Users after({{"a", bcrypt("new", 4)}, {"b", bcrypt("same", 4)}}, &before);
  EXPECT_FALSE(after.remembers(of("a", "old")));
  EXPECT_FALSE(after.verify(of("a", "old")));
  EXPECT_TRUE(after.remembers(of("b", "same")));
  const Users without({{"b", bcrypt("same", 4)}}, &before);
  EXPECT_FALSE(without.remembers(of("a", "old")));
}

TEST(Priorities, AreThoseOfTheSettings) {
  const std::pair<std::function<void(TlsSettings&)>, std::string> cases[] = {
      {[](TlsSettings&) {}, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"},
      {[](TlsSettings& tls) {
         tls.min_version = "TLS13";
         tls.prefer_server_cipher_suites = false;
         tls.curve_preferences = {"X25519", "CurveP256"};
       },
       "NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1"},
      {[](TlsSettings& tls) {
         tls.max_version = "TLS12";
         tls.cipher_suites = {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"};
       },
       "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-RSA:-CIPHER-ALL:+AES-256-GCM:+AES-128-GCM:-MAC-ALL:+AEAD:"
       "%SERVER_PRECEDENCE"}};
  for (const auto& [set, expected] : cases) {
    TlsSettings tls;
    set(tls);
    const auto priorities = priorities_of(tls);
    ASSERT_TRUE(priorities) << priorities.error().message;
    EXPECT_EQ(*priorities, expected);
    gnutls_priority_t parsed = nullptr;
    EXPECT_EQ(gnutls_priority_init(&parsed, priorities->c_str(), nullptr), 0);
    gnutls_priority_deinit(parsed);
  }
}

TEST(Priorities, RefuseWhatTheyCannotSay) {
  TlsSettings tls;
  tls.curve_preferences = {"X448"};
  EXPECT_EQ(priorities_of(tls).error().message,
            "curve_preferences: unknown 'X448'; expected one of CurveP256, CurveP384, CurveP521, X25519");
  tls.curve_preferences.clear();
  tls.cipher_suites = {"TLS_NULL"};
  EXPECT_EQ(priorities_of(tls).error().message,
            "cipher_suites: unknown 'TLS_NULL'; expected a name such as TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256");
  // Two suites whose halves combine to two more.
  tls.cipher_suites = {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"};
  EXPECT_EQ(priorities_of(tls).error().message,
            "cipher_suites: with those listed, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 would be offered too, as key "
            "exchange and cipher are chosen apart; expected it in the list");
}

TEST(Protection, SaysWhichFileIsWrong) {
  Security security;
  security.tls.emplace();
  security.tls->certificate = security.tls->key = "no PEM";
  const auto protection = make_protection(security);
  ASSERT_FALSE(protection);
  EXPECT_EQ(protection.error().message.rfind("cert_file and key_file hold no certificate with its key", 0), 0U);
}

TEST(SecuredServer, AnswersUsersAlone) {
  auto security = users({{"alice", bcrypt("right", 4)}});
  security.headers = {{"X-Frame-Options", "deny"}};
  const auto running = run(protect(security));
  for (const char* path : {"/", "/metrics", "/-/healthy", "/-/ready", "/nowhere"}) {
    EXPECT_EQ(running.status(path), 401) << path;
    EXPECT_EQ(running.status(path, authorization("alice", "wrong")), 401) << path;
    EXPECT_EQ(running.status(path, authorization("bob", "right")), 401) << path;
    EXPECT_EQ(running.status(path, "Authorization: Bearer right\r\n"), 401) << path;
    const int right = std::string(path) == "/nowhere" ? 404 : 200;
    EXPECT_EQ(running.status(path, authorization("alice", "right")), right) << path;
    EXPECT_EQ(running.status(path, authorization("alice", "right")), right) << path << ", remembered";
  }
  Client client(running.port);  // one connection for all of it
  client.get("/metrics");
  auto answer = client.answer();
  EXPECT_EQ(Client::status(answer), 401);
  EXPECT_EQ(Client::header(answer, "WWW-Authenticate"), "Basic realm=\"ssdpulse\", charset=\"UTF-8\"");
  EXPECT_EQ(Client::header(answer, "X-Frame-Options"), "deny");
  client.get("/metrics", authorization("alice", "right"));
  answer = client.answer();
  EXPECT_EQ(Client::body(answer), "metric 1\n");
  EXPECT_EQ(Client::header(answer, "X-Frame-Options"), "deny");
  client.get("/metrics", authorization("alice", "wrong"));
  EXPECT_EQ(Client::status(client.answer()), 401);
  EXPECT_EQ(running.server->counters().unauthorized, 22U);
}

TEST(SecuredServer, TakesNewUsersAtOnce) {
  const auto before = protect(users({{"a", bcrypt("old", 4)}}));
  const auto running = run(before);
  EXPECT_EQ(running.status("/metrics", authorization("a", "old")), 200);
  EXPECT_TRUE(running.server->protect(protect(users({{"a", bcrypt("new", 4)}}), before.get())));
  EXPECT_EQ(running.status("/metrics", authorization("a", "old")), 401);
  EXPECT_EQ(running.status("/metrics", authorization("a", "new")), 200);
}

/// A hash whose comparison takes `time`: a measure of what waits for it, however slow the host is.
struct Slow {
  explicit Slow(int cost) : hash(bcrypt("right", cost)) {}
  Clock::time_point begin = Clock::now();
  std::string hash;
  Clock::duration time = Clock::now() - begin;
};

// A client guesses passwords as fast as possible: known clients wait for nothing, and guessing costs part of one CPU.
TEST(SecuredServer, GuessingBlocksNobody) {
  const Slow slow(10);
  Limits limits;
  limits.answer_time = 2 * test::kTimeout;
  const auto running = run(protect(users({{"a", slow.hash}})), limits);
  EXPECT_EQ(running.status("/metrics", authorization("a", "right")), 200);
  std::vector<Client> guessing;
  for (int i = 0; i < 60; ++i) {
    guessing.emplace_back(running.port);
    guessing.back().get("/metrics", authorization("a", "guess" + std::to_string(i)));
  }
  const auto begin = Clock::now();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(running.status("/metrics", authorization("a", "right")), 200);
  }
  EXPECT_LT(Clock::now() - begin, 20 * slow.time);
  std::size_t refused = 0;
  for (auto& client : guessing) {
    const int status = Client::status(client.answer());
    EXPECT_TRUE(status == 401 || status == 503) << status;
    refused += status == 503 ? 1 : 0;
  }
  EXPECT_GE(refused, 30U);
  EXPECT_EQ(running.server->counters().refused_logins, refused);
}

// The guesser and the client that logs in for the first time have different addresses: the latter waits, but gets in.
TEST(SecuredServer, GuessingKeepsNobodyFromLoggingIn) {
  Limits limits;
  limits.peer_of = test::each_address;
  const auto running = run(protect(users({{"a", bcrypt("right", 8)}})), limits);
  std::vector<Client> guessing;
  for (int i = 0; i < 60; ++i) {
    guessing.emplace_back(running.port);
    guessing.back().get("/metrics", authorization("a", "guess" + std::to_string(i)));
  }
  std::this_thread::sleep_for(20ms);
  Client other(running.port, 0, "127.0.0.2");
  other.get("/metrics", authorization("a", "right"));
  EXPECT_EQ(Client::status(other.answer()), 200);
}

TEST(SecuredServer, StopsPromptlyWhilePasswordsWait) {
  const Slow slow(11);
  Limits limits;
  limits.peer_of = test::each_address;
  auto running = run(protect(users({{"a", slow.hash}})), limits);
  std::vector<Client> guessing;
  for (unsigned i = 0; i < Limits{}.logins; ++i) {
    const auto address = "127.0.0." + std::to_string(1 + i);
    guessing.emplace_back(running.port, 0, address.c_str());
    guessing.back().get("/metrics", authorization("a", "guess"));
  }
  std::this_thread::sleep_for(20ms);
  const auto begin = Clock::now();
  running.server->stop();
  EXPECT_LT(Clock::now() - begin, (Limits{}.logins - 1) * slow.time) << "not just for the one that is being hashed";
}

TEST(SecuredServer, TlsIsNotTurnedOnWhileItRuns) {
  const auto running = run(nullptr);
  auto with_tls = std::make_shared<Protection>();
  // Its value does not matter here: nothing may touch it.
  with_tls->tls = std::shared_ptr<const Tls>(std::shared_ptr<void>(), reinterpret_cast<const Tls*>(&running));
  EXPECT_FALSE(running.server->protect(with_tls));
  EXPECT_EQ(running.status("/metrics"), 200);
}

/// A server whose pages are held back until `release`, and the clients that wait for them.
struct HeldPages {
  explicit HeldPages(const Limits& limits)
      : running(run(nullptr, limits, [released = release.get_future().share()](const Request& request) {
          released.wait();
          return page(request);
        })) {}

  void ask(const char* address = "127.0.0.1") {
    waiting.emplace_back(running.port, 0, address);
    waiting.back().get("/metrics");
  }
  /// Whether this many are turned away while nobody has got a page yet.
  [[nodiscard]] bool are_refused(std::uint64_t count) const {
    return soon([&] { return running.server->counters().refused == count; });
  }
  void expect_pages(unsigned count) {
    release.set_value();
    for (auto& client : waiting) {
      count -= Client::status(client.answer()) == 200 ? 1 : 0;
    }
    EXPECT_EQ(count, 0U);
  }

  std::promise<void> release;
  Running running;
  std::vector<Client> waiting;
};

// One address asks for as many pages as can be made at once: another address still gets its page.
TEST(BusyServer, ReservesConnectionsForOtherAddresses) {
  Limits limits;
  limits.lanes[0] = {2, 4, 3};
  limits.peer_of = test::each_address;
  HeldPages pages(limits);
  for (unsigned i = 0; i < 4; ++i) {
    pages.ask();
  }
  EXPECT_TRUE(pages.are_refused(1));
  pages.ask("127.0.0.2");  // gets the last place
  pages.ask("127.0.0.3");  // or this one does
  EXPECT_TRUE(pages.are_refused(2));
  pages.expect_pages(4);
}

TEST(BusyServer, StillSaysThatItIsHealthy) {
  Limits limits;
  limits.lanes[0] = {2, 2, 2};
  HeldPages pages(limits);
  for (unsigned i = 0; i < 3; ++i) {
    pages.ask();
  }
  EXPECT_TRUE(pages.are_refused(1));
  EXPECT_EQ(pages.running.status("/-/healthy"), 200);
  EXPECT_EQ(pages.running.status("/-/ready"), 200);
  pages.expect_pages(2);
}

// Every place of a lane is taken, and its threads wait: the other lanes answer.
TEST(BusyServer, NoLaneWaitsForAnother) {
  std::promise<void> release;
  const auto held = [released = release.get_future().share()](const Request& request) {
    released.wait();
    return page(request);
  };
  auto listeners = test::local_listener();
  const auto port = test::port_of(listeners.at(0).address);
  Routes routes{
      {"/metrics", {page, Lane::scrape}},
      {"/api/v1/devices", {page, Lane::page}},
      {"/api/v1/why",
       {[held](const Request& request) { return request.parameter("at").empty() ? page(request) : held(request); },
        Lane::page, [](const Request& request) { return !request.parameter("at").empty(); }}},
      {"/api/v1/day", {held, Lane::slow}}};
  const auto server = Server::start(std::move(listeners), std::move(routes));
  ASSERT_TRUE(server);
  std::vector<Client> slow;
  for (int i = 0; i < 96; ++i) {
    slow.emplace_back(port);
    slow.back().get(i % 2 == 0 ? "/api/v1/why?at=1" : "/api/v1/day");
  }
  EXPECT_TRUE(soon([&] { return (*server)->counters().refused == 96 - Limits{}.lanes[2].requests_of_one; }));
  for (int i = 0; i < 20; ++i) {
    for (const char* path : {"/metrics", "/api/v1/devices", "/api/v1/why"}) {
      Client client(port);
      client.get(path);
      EXPECT_EQ(Client::status(client.answer()), 200) << path;
    }
  }
  release.set_value();
}

// All slots are taken by clients that send nothing: they lose them as soon as somebody else waits.
TEST(BusyServer, TheSilentMakeRoom) {
  Limits limits;
  limits.connections = 8;
  limits.pressed_time = 200ms;
  limits.request_time = 2 * test::kTimeout;
  const auto running = run(nullptr, limits);
  std::vector<Client> silent;
  for (unsigned i = 0; i < limits.connections; ++i) {
    silent.emplace_back(running.port);
    silent.back().send("GET / HT");
  }
  EXPECT_EQ(running.status("/metrics"), 200);
}

}  // namespace
}  // namespace ssdpulse::http
