// SPDX-License-Identifier: Apache-2.0
// What becomes of signals that come while `ssdpulse report -- COMMAND` measures?
#include "daemon/cli/observed_command.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

namespace ssdpulse::cli {
namespace {

TEST(ObservedCommandDeathTest, a_signal_that_comes_after_the_command_does_not_take_the_place_of_its_status) {
  const auto report = [](int late) {
    int status = 0;
    {
      ObservedCommand observed;
      status = observed.run({"/bin/sh", "-c", "exit 3"}, false)->status;
      ::kill(::getpid(), late);
    }
    std::_Exit(status);
  };
  for (const int late : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EXIT(report(late), testing::ExitedWithCode(3), "") << late;
  }
}

TEST(ObservedCommandDeathTest, afterwards_signals_do_what_they_did_before) {
  EXPECT_EXIT(
      {
        { const ObservedCommand observed; }
        ::kill(::getpid(), SIGTERM);
        std::_Exit(0);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace ssdpulse::cli
