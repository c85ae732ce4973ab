// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr std::uint64_t kLong = 100;  // us: as long as a read of a fast drive

Finding sleep(const Facts& facts) {
  if (!facts.settings.deepest_sleep_us) {
    return not_applicable("the kernel does not put the CPUs to sleep");
  }
  const std::string found = fmt::format("CPUs may take {} us to wake up", *facts.settings.deepest_sleep_us);
  if (*facts.settings.deepest_sleep_us < kLong) {
    return ok(found);
  }
  return info(
      found,
      "at low load each completion may wait for it; tuned's force_latency keeps them awake, at the cost of power");
}

}  // namespace

const Rule kF19{.id = "F19",
                .title = "Sleep of CPUs",
                .limit = "never: what it adds cannot be told apart",
                .source = "tuned, profile latency-performance",
                .of_host = sleep};

}  // namespace ssdpulse::audit
