// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kThrottled = 60;  // seconds a day

Finding heat(const Facts& facts, const DiskSettings& disk) {
  const std::string controller = drive_of(facts, disk);
  if (controller.empty()) {
    return not_applicable("temperatures are read only from NVMe drives");
  }
  const MeasuredDrive& drive = facts.measured.drive(controller);
  const auto degrees = drive.composite_celsius;
  if (!degrees) {
    return unknown("its temperature", "no daemon has read it");
  }
  const auto throttled = std::max(drive.thermal_throttle_seconds, drive.thermal_management_seconds);
  const auto share = ratio(throttled, drive.power_on_seconds);
  const double per_day = share.value_or(0) * kSecondsPerDay;
  const auto excess = excess_per_day(facts, disk.device.name, {SpikeCause::thermal});
  const std::string found = fmt::format("the drive is at {:.0f} degrees Celsius", *degrees);
  if (per_day < kThrottled && excess.value_or(0) < kExcessLimit) {
    Finding finding = ok(found);
    finding.evidence = {{"temperature_celsius", *degrees}};
    return finding;
  }
  Finding bad = info(found, "it has throttled to cool down, or I/Os waited because of heat");
  bad.change = "improve its cooling: a free slot next to it, faster fans, a heat sink";
  bad.risk = "noise and power";
  if (share) {
    bad.evidence["throttled_seconds_per_day_of_its_life"] = per_day;
  }
  return weigh(facts, std::move(bad), {{"excess_seconds_per_day", excess, kExcessLimit}});
}

}  // namespace

const Rule kN9{.id = "N9",
               .title = "Heat",
               .limit = "heat causes 60 s of waiting a day",
               .source = "NVM Express Base, Host Controlled Thermal Management",
               .by_history = true,
               .of_disk = heat};

}  // namespace ssdpulse::audit
