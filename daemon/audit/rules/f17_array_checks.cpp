// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr std::uint64_t kModestSpeed = 50'000;  // KiB/s

Finding array_checks(const Facts& facts, const DiskSettings& array) {
  const util::OutsideText action = array.files.text("md/sync_action");
  if (action.empty()) {
    return not_applicable("it is not an md array with redundancy");
  }
  if (action == "idle") {
    return ok("no check or rebuild is running");
  }
  Finding bad =
      info("a " + util::for_json(action) + " runs", "it reads all members at once, on top of everything else");
  const std::string speed = array.files.text("md/sync_speed_max").raw();
  const auto path = word_or_why(sysfs_path(array, "md/sync_speed_max"), bad);
  const auto before =
      util::for_shell(speed.find("local") == std::string::npos ? "system" : speed.substr(0, speed.find(' ')));
  if (path && before) {
    bad.change = fmt::format("echo {} > {}", kModestSpeed, *path);
    bad.undo = fmt::format("echo {} > {}", *before, *path);
  }
  bad.risk =
      action == "recover" || action == "resync" ? "for longer, a second failure would lose data" : "it takes longer";
  const auto most = model::Attributes(array.files).number("md/sync_speed_max");
  if (action == "recover" || action == "resync" || action == "frozen" || (most && *most <= kModestSpeed) ||
      speed.rfind(std::to_string(kModestSpeed) + " ", 0) == 0) {
    bad.change.clear();
    bad.undo.clear();
    bad.risk.clear();
    bad.why += action == "check" ? "; it is already slowed down" : "; redundancy comes first";
    return bad;
  }
  std::optional<double> excess;
  for (const std::string& disk : array.disks) {
    const auto one = excess_per_day(facts, disk, {SpikeCause::queue, SpikeCause::saturation});
    excess = one ? std::optional(excess.value_or(0) + *one) : excess;
  }
  return weigh(facts, std::move(bad), {{"excess_seconds_per_day", excess, kExcessLimit}});
}

}  // namespace

const Rule kF17{.id = "F17",
                .title = "Checks of md arrays",
                .limit = "while one runs, queueing or saturation causes 60 s of waiting a day on the members",
                .source = "md(4), SYNC_ACTION",
                .by_history = true,
                .of_array = array_checks};

}  // namespace ssdpulse::audit
