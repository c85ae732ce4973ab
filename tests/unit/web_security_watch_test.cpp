// SPDX-License-Identifier: Apache-2.0
// Is a change of the web configuration noticed, whenever it happens?
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "daemon/web/security.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::web {
namespace {

using namespace std::chrono_literals;

const std::string kUser = ": $2y$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze\n";

TEST(WebSecurityWatch, SeesWhatChangedBeforeItLooked) {
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

}  // namespace
}  // namespace ssdpulse::web
