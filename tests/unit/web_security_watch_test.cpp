// SPDX-License-Identifier: Apache-2.0
// Is a change of the web configuration noticed, whenever it happens?
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "daemon/serve/web_security.h"
#include "daemon/serve/web_server.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::serve {
namespace {

using namespace std::chrono_literals;

const std::string kUser = ": $2y$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze\n";

TEST(WebSecurityWatch, SeesWhatChangedBeforeTheFirstCheck) {
  const tests::TemporaryTree tree;
  tree.file("web.yaml", "basic_auth_users:\n  alice" + kUser);
  auto loaded = load_web_security(tree.path("web.yaml"));
  ASSERT_TRUE(loaded.outcome);
  tree.file("web.yaml", "basic_auth_users:\n  berta" + kUser);
  std::atomic<int> used = 0;
  const WebSecurityWatch watch(tree.path("web.yaml"), std::move(loaded), [&](const auto&) { return ++used > 0; });
  for (const auto begin = std::chrono::steady_clock::now();
       used == 0 && std::chrono::steady_clock::now() - begin < 20s;) {
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(used, 1);
  EXPECT_TRUE(watch.good());
}

TEST(WebSecurityWatch, AReloadNeverLoosens) {
  const tests::TemporaryTree tree;
  tree.file("web.yaml", "basic_auth_users:\n  alice" + kUser);
  auto loaded = load_web_security(tree.path("web.yaml"));
  ASSERT_TRUE(loaded.outcome);
  std::atomic<int> used = 0;
  WebSecurityWatch watch(tree.path("web.yaml"), std::move(loaded), [&](const auto&) { return ++used > 0; });
  std::uint64_t failures = 0;
  for (const char* cut : {"", "http_server_config: {}\n", "basic_auth_users: {}\n", "basic_auth_users:\n"}) {
    tree.file("web.yaml", cut);
    watch.reload();
    for (int i = 0; i < 400 && watch.failures() == failures; ++i) {
      std::this_thread::sleep_for(50ms);
    }
    EXPECT_EQ(watch.failures(), ++failures) << cut;
    failures = watch.failures();
    EXPECT_FALSE(watch.good());
  }
  EXPECT_EQ(used, 0) << "alice is still needed";
}

TEST(WebSecurity, WhatEverybodyMayWriteIsRefused) {
  const tests::TemporaryTree tree;
  tree.file("web.yaml", "basic_auth_users:\n  alice" + kUser);
  EXPECT_TRUE(load_web_security(tree.path("web.yaml")).outcome);
  std::filesystem::permissions(tree.path("web.yaml"), std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  const auto refused = load_web_security(tree.path("web.yaml"));
  ASSERT_FALSE(refused.outcome);
  EXPECT_NE(refused.outcome.error().at(0).find("everybody may write it"), std::string::npos);
}

TEST(WebSecurity, WhatOthersMayReplaceIsRefused) {
  const tests::TemporaryTree tree;
  tree.file("web.yaml", "basic_auth_users:\n  alice" + kUser);
  const auto problem = [&] {
    const auto loaded = load_web_security(tree.path("web.yaml"));
    return loaded.outcome ? std::string() : loaded.outcome.error().at(0);
  };
  EXPECT_EQ(problem(), "");
  std::filesystem::permissions(tree.path(""), std::filesystem::perms::others_write, std::filesystem::perm_options::add);
  EXPECT_NE(problem().find("everybody may replace what is in it"), std::string::npos) << problem();
  std::filesystem::permissions(tree.path(""), std::filesystem::perms::sticky_bit, std::filesystem::perm_options::add);
  EXPECT_EQ(problem(), "");
  constexpr uid_t kSomebody = 65534;
  if (::geteuid() == 0) {  // else no file can be given away
    ASSERT_EQ(::chown(tree.path("web.yaml").c_str(), kSomebody, 0), 0);
    EXPECT_NE(problem().find("belongs to user 65534"), std::string::npos) << problem();
    const FileOwner service{kSomebody, kSomebody};
    EXPECT_TRUE(load_web_security(tree.path("web.yaml"), nullptr, service).outcome) << "root asks for the service";
    EXPECT_FALSE(load_web_security(tree.path("web.yaml"), nullptr, FileOwner{kSomebody - 1, kSomebody}).outcome);
    ASSERT_EQ(::chown(tree.path("web.yaml").c_str(), 0, kSomebody), 0);
    ASSERT_EQ(::chmod(tree.path("web.yaml").c_str(), 0660), 0);
    EXPECT_NE(problem().find("group 65534 may write it"), std::string::npos) << problem();
  }
}

TEST(Listeners, AnAddressThatIsListedTwiceIsNoOtherDaemon) {
  const std::uint16_t port = http::port_of(http::listen_on({{"127.0.0.1", 0}}).value().front());
  const std::string one = "127.0.0.1:" + std::to_string(port);
  config::Web web;
  for (const std::string& other : {one, "0.0.0.0:" + std::to_string(port)}) {
    web.listen_address = {other, one};
    const auto listeners = open_web_listeners(web, "");
    ASSERT_FALSE(listeners.has_value());
    EXPECT_NE(listeners.error().message.find("web.listen_address has it twice"), std::string::npos)
        << listeners.error().message;
    EXPECT_EQ(listeners.error().message.find("another ssdpulse"), std::string::npos) << listeners.error().message;
  }
}

TEST(KeptProtection, IsWhatTheNextStartIsComparedWith) {
  using Kind = ProtectionKind;
  const tests::TemporaryTree tree;
  const std::string directory = tree.path("");
  EXPECT_EQ(kept_protection(directory).value(), ProtectionKinds{}) << "the first start";
  for (const ProtectionKinds& kinds :
       {ProtectionKinds{Kind::users}, {Kind::tls, Kind::users, Kind::client_certificates}, {}, {Kind::tls}}) {
    ASSERT_TRUE(keep_protection(directory, kinds));
    EXPECT_EQ(kept_protection(directory).value(), kinds);
  }
  tree.file(kProtectionFileName, "tls\n\x1b[31m users of_a_later_version\n");
  EXPECT_EQ(kept_protection(directory).value(), (ProtectionKinds{Kind::tls, Kind::users}));
  EXPECT_EQ(lost_protection({Kind::tls, Kind::users}, {Kind::tls}), "users");
  EXPECT_EQ(lost_protection({Kind::tls, Kind::users, Kind::client_certificates}, {}),
            "TLS and users and client certificates");
  EXPECT_EQ(lost_protection({Kind::users}, {Kind::users, Kind::tls}), "");
  const auto [tls, users, certificates] = fields_of({Kind::users});
  EXPECT_EQ(fmt::format("{} {} {}", tls, users, certificates), "tls=no users=listed client_certificates=not_required");
}

}  // namespace
}  // namespace ssdpulse::serve
