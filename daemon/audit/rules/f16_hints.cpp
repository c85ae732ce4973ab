// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding hints(const Facts& facts, const DiskSettings& disk) {
  const std::string& name = disk.device.name;
  double sent = 0;
  for (const char* hint : {"short", "medium", "long", "extreme"}) {
    sent += facts.measured.sum("ssdpulse_write_hint_bytes_total", {{"device", name}, {"hint", hint}}).value_or(0);
  }
  if (facts.measured.empty()) {
    return unknown("whether programs send lifetime hints", "no daemon answers");
  }
  const Measurements::Labels of_disk{{"device", name}};
  const std::string kernel = facts.measured.label("ssdpulse_write_hint_path_info", "kernel", of_disk);
  const std::string drive = facts.measured.label("ssdpulse_write_hint_path_info", "drive", of_disk);
  if (sent == 0) {
    return kernel == "dropped"
               ? unknown("whether programs send lifetime hints", "this kernel drops them before they are seen")
               : not_applicable("no program sends lifetime hints");
  }
  Finding finding = ok("lifetime hints reach a drive that may use them");
  finding.evidence = {{"hinted_bytes", sent}};
  if (kernel != "drive" || drive == "none") {
    finding.verdict = Verdict::info;
    finding.found = fmt::format("programs send lifetime hints, which end at: kernel {}, drive {}", kernel, drive);
    finding.why = "the drive cannot separate data of different lifetimes";
  }
  return finding;
}

}  // namespace

const Rule kF16{.id = "F16",
                .title = "Where lifetime hints end",
                .limit = "never: what they would have saved is not known",
                .source = "fcntl(2), F_SET_RW_HINT; NVM Express Base, directives and flexible data placement",
                .of_disk = hints};

}  // namespace ssdpulse::audit
