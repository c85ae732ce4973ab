// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr double kMostShare = 1.0 / 16;  // of the host's memory, for one drive

std::optional<double> wanted(const Facts& facts, const DiskSettings& disk, std::string_view amount) {
  return facts.measured.largest("ssdpulse_nvme_host_memory_buffer_bytes",
                                {{"controller", drive_of(facts, disk)}, {"amount", amount}});
}

void raise_limit(const Facts& facts, double bytes, Finding& finding) {
  const auto& memory = facts.settings.memory_bytes;
  if (!memory || bytes > kMostShare * static_cast<double>(*memory)) {
    finding.why += "; no higher limit is given: that is more than a sixteenth of the host's memory, or it is not known";
    return;
  }
  const double mebibytes = std::ceil(bytes / kMebibyte);
  finding.change =
      fmt::format("nvme.max_host_mem_size_mb={:.0f} on the kernel's command line, then restart the host", mebibytes);
  finding.undo = "remove it again, then restart the host";
  finding.risk = fmt::format("each drive that asks for it takes up to {:.0f} MiB of memory", mebibytes);
}

Finding host_memory(const Facts& facts, const DiskSettings& disk) {
  if (disk.controller_name.empty()) {
    return not_applicable("it is not an NVMe drive");
  }
  const auto preferred = wanted(facts, disk, "preferred");
  const auto minimum = wanted(facts, disk, "minimum");
  if (!preferred || !minimum) {
    return unknown("whether it wants host memory",
                   facts.measured.empty() ? "no daemon answers" : "the drive was not read yet");
  }
  if (*preferred <= 0) {
    return not_applicable("it requests no host memory");
  }
  const auto limit = facts.settings.files.number("sys/module/nvme/parameters/max_host_mem_size_mb");
  if (!limit) {
    return unknown("the memory that it gets", "max_host_mem_size_mb of the module nvme is not readable");
  }
  const double most = static_cast<double>(*limit) * kMebibyte;
  const std::string asks =
      fmt::format("it asks for {:.0f} MiB of the host's memory, for its own use", *preferred / kMebibyte);
  const char* why =
      "drives without memory of their own mostly keep tables there: without it, random reads may wait for the flash "
      "twice";
  if (*minimum > most) {
    Finding finding = info(
        fmt::format("{}, needs {:.0f} MiB and gets none, as the limit is {} MiB", asks, *minimum / kMebibyte, *limit),
        why);
    raise_limit(facts, std::max(*preferred, *minimum), finding);
    return finding;
  }
  if (disk.controller.text("hmb") == "0") {
    return info(asks + ", and has none", "the kernel found no room for it, or it was turned off");
  }
  if (*preferred > most) {
    Finding finding = info(fmt::format("{}, and gets {} MiB", asks, *limit), why);
    raise_limit(facts, std::max(*preferred, *minimum), finding);
    return finding;
  }
  return ok(asks + ", and may have it");
}

}  // namespace

const Rule kN12{.id = "N12",
                .title = "Host memory for drives without their own",
                .limit = "never: which reads it would help is not measured",
                .source = "drivers/nvme/host/pci.c, nvme_setup_host_mem; NVM Express Base, Host Memory Buffer",
                .of_disk = host_memory};

}  // namespace ssdpulse::audit
