// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

/// "16.0 GT/s PCIe" -> 16
double speed(const std::string& text) {
  double value = 0;
  return std::sscanf(text.c_str(), "%lf", &value) == 1 ? value : 0;
}

Finding link(const Facts& facts, const DiskSettings& disk) {
  const auto text = [&](const char* file) { return disk.controller.text(std::string("device/") + file); };
  if (disk.controller_name.empty() || text("max_link_speed").empty()) {
    return not_applicable("it is not a PCI Express NVMe drive");
  }
  const auto width = disk.controller.number("device/current_link_width");
  const auto most = disk.controller.number("device/max_link_width");
  const double now = speed(text("current_link_speed").raw());
  const double best = speed(text("max_link_speed").raw());
  if (!width || !most || now <= 0 || best <= 0) {
    return unknown("the link", "the kernel does not know its speed");
  }
  const std::string found =
      fmt::format("the link is x{} at {:g} GT/s, the drive could do x{} at {:g}", *width, now, *most, best);
  if (*width >= *most && now >= best) {
    return ok(found);
  }
  Finding bad = info(found, "large transfers are slower than the drive; the slot or the board may not have more");
  bad.change = "put it into another slot, or seat it again";
  bad.undo = "the former slot";
  bad.risk = "the host is down meanwhile";
  return weigh(
      facts, std::move(bad),
      {{"excess_seconds_per_day", excess_per_day(facts, disk.device.name, {SpikeCause::saturation}), kExcessLimit}});
}

}  // namespace

const Rule kN7{.id = "N7",
               .title = "PCI Express link",
               .limit = "it is narrower or slower than the drive's own, and saturation causes 60 s of waiting a day",
               .source = "Documentation/ABI/testing/sysfs-bus-pci, current_link_speed",
               .by_history = true,
               .of_disk = link};

}  // namespace ssdpulse::audit
