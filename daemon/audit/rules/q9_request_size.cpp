// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr std::uint64_t kTooSmall = 128;     // KiB
constexpr std::uint64_t kOldDefault = 1280;  // KiB, which every drive is known to accept

Finding request_size(const Facts& facts, const DiskSettings& disk) {
  const auto most = disk.files.number("queue/max_sectors_kb");
  const auto hardware = disk.files.number("queue/max_hw_sectors_kb");
  if (!most || !hardware) {
    return unknown("the largest request", "queue/max_sectors_kb is not readable");
  }
  const std::string found = fmt::format("requests are at most {} KiB", *most);
  const MeasuredDevice& device = facts.measured.device(disk.device.name);
  const auto timeouts = device.timeouts;
  if (*most > kOldDefault && timeouts.value_or(0) > 0) {
    Finding bad = info(found, "some drives time out on requests above 1280 KiB, the default until Linux 6.16");
    change_file(bad, disk, "queue/max_sectors_kb", std::to_string(kOldDefault));
    bad.risk = "large transfers take more commands";
    return weigh(facts, std::move(bad), {{"timeouts", timeouts, 1}});
  }
  if (*most<kTooSmall&& * hardware> * most) {
    Finding bad = info(found, "larger ones are split, although the drive takes more");
    change_file(bad, disk, "queue/max_sectors_kb", std::to_string(std::min(*hardware, kOldDefault)));
    bad.risk = "large writes delay small reads";
    const auto size = mean(device.operation(Operation::write).size_bytes);
    return weigh(facts, std::move(bad),
                 {{"mean_write_to_limit_ratio", ratio(size, static_cast<double>(*most) * 1024), 0.75}});
  }
  return ok(found);
}

}  // namespace

const Rule kQ9{.id = "Q9",
               .title = "Largest request",
               .limit = "a request timed out; or the mean write is 75 % of a limit below 128 KiB",
               .source = "Debian bug 1120831; Linux commit 9b8b84879d4a",
               .of_disk = request_size};

}  // namespace ssdpulse::audit
