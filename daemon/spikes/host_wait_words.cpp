// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/host_wait_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/base/figure_text.h"
#include "daemon/model/device_title.h"
#include "daemon/model/layers.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::spikes {
namespace {

using model::HostWait;
using model::HostWaitCause;

/// "/srv/pgwal (vg0-wal, dm-3)"
std::string volume_title(const util::OutsideText& volume, const model::Snapshot& now) {
  const auto named = std::find_if(now.memberships.begin(), now.memberships.end(), [&](const model::Membership& one) {
    return volume == one.array && !one.name.empty();
  });
  const std::string both = named == now.memberships.end()
                               ? util::for_json(volume)
                               : fmt::format("{}, {}", util::for_json(named->name), util::for_json(volume));
  const auto mounted = std::find_if(now.filesystems.begin(), now.filesystems.end(), [&](const model::Filesystem& one) {
    return std::any_of(one.volumes.begin(), one.volumes.end(), [&](const std::string& each) { return volume == each; });
  });
  return mounted == now.filesystems.end() ? both : fmt::format("{} ({})", util::for_json(mounted->mountpoint), both);
}

/// Of a disk or a volume.
std::string target_title(const std::string& device, const model::Snapshot& now) {
  const bool is_volume = std::any_of(now.memberships.begin(), now.memberships.end(),
                                     [&](const model::Membership& one) { return one.array == device; });
  return is_volume ? volume_title(device, now) : model::device_title(now, device).full;
}

/// "40 writes a second", "10 MB a second of reads"
std::string limit_words(const HostWait& wait) {
  const double limit = evidence_amount(wait, "limit_per_second");
  switch (static_cast<model::IoLimitKind>(static_cast<int>(evidence_amount(wait, "limit_kind")))) {
    case model::IoLimitKind::rbps:
      return fmt::format("{} of reads a second", util::format_size(limit));
    case model::IoLimitKind::wbps:
      return fmt::format("{} of writes a second", util::format_size(limit));
    case model::IoLimitKind::riops:
      return util::format_count(static_cast<std::uint64_t>(limit), "read", "reads") + " a second";
    case model::IoLimitKind::wiops:
      return util::format_count(static_cast<std::uint64_t>(limit), "write", "writes") + " a second";
  }
  return "";
}

std::string waits_words(const HostWait& wait, std::string_view who, Tense tense) {
  const double ratio = evidence_amount(wait, "pressure_ratio");
  return ratio <= 0 ? ""
                    : fmt::format("; {} {} for I/O {:.0f} % of the time", who,
                                  tense == Tense::present ? "waits" : "waited", 100 * ratio);
}

/// "of 2.4 ms that writes on /srv/pg (vg0-data, dm-3) take, 2.1 ms are spent in crypt itself, not in what is below
/// (usually 0.1 ms)"
std::string layer_words(const HostWait& wait, const model::Snapshot& now, Tense tense) {
  const bool now_so = tense == Tense::present;
  // The kernel's name may be another volume's since a reboot.
  const bool is_named = std::any_of(now.layers.begin(), now.layers.end(), [&](const model::Layer& one) {
    return one.name == wait.device && (one.title.empty() ? wait.subject == one.name : wait.subject == one.title);
  });
  const auto found = wait.evidence.find("layer_kind");
  const double kind = found == wait.evidence.end() ? -1 : found->second;
  const bool is_known = kind >= 0 && kind < static_cast<double>(model::kLayerKindNames.size());
  return fmt::format(
      "of {} that {} on {} {}, {}{} {} spent in the {}layer itself, not in what is below (usually {})",
      util::format_latency(evidence_amount(wait, "mean_seconds")),
      evidence_amount(wait, "operation") == static_cast<double>(index(model::Operation::read)) ? "reads" : "writes",
      is_named ? volume_title(wait.device, now) : util::for_json(wait.subject), now_so ? "take" : "took",
      evidence_amount(wait, "own_is_exact") > 0 ? "" : "at least ",
      util::format_latency(evidence_amount(wait, "own_seconds")), now_so ? "are" : "were",
      is_known ? fmt::format("{} ", model::kLayerKindNames[static_cast<std::size_t>(kind)]) : "",
      util::format_latency(evidence_amount(wait, "baseline_own_seconds")));
}

std::string what_of(const HostWait& wait, const model::Snapshot& now, Tense tense) {
  const bool now_so = tense == Tense::present;
  const std::string_view is = now_so ? "is" : "was";
  const std::string_view are = now_so ? "are" : "were";
  switch (wait.cause) {
    case HostWaitCause::suspended:
      return fmt::format("{} {} suspended, and all I/O to it {}", volume_title(wait.subject, now), is,
                         now_so ? "waits" : "waited");
    case HostWaitCause::frozen:
      return fmt::format("{} {} frozen{}, and {}", util::for_json(wait.subject), is,
                         wait.command.empty() ? "" : " by " + util::for_json(wait.command),
                         now_so ? "whoever writes to it waits" : "whoever wrote to it waited");
    case HostWaitCause::full:
      return evidence_amount(wait, "inodes_full") > 0
                 ? fmt::format("{} {} full: no inode {} left for another file", util::for_json(wait.subject), is, is)
                 : fmt::format("{} {} full: {} {} left, and larger writes {}", util::for_json(wait.subject), is,
                               util::format_size(evidence_amount(wait, "available_bytes")), are,
                               now_so ? "fail" : "failed");
    case HostWaitCause::cgroup_limit: {
      const std::string where =
          wait.subject == wait.tenant
              ? wait.file
              : fmt::format("{} of {}", wait.file, model::tenant_title(util::for_json(wait.subject)));
      return fmt::format("{} {} held at its limit of {} on {} ({}){}", model::tenant_title(wait.tenant), is,
                         limit_words(wait), target_title(wait.device, now), where, waits_words(wait, "it", tense));
    }
    case HostWaitCause::layer:
      return layer_words(wait, now, tense);
    case HostWaitCause::dirty_throttling:
      return fmt::format(
          "the kernel {} up whoever writes to files, until the drives have caught up: {} {} dirty or being written "
          "back, of {} allowed",
          now_so ? "holds" : "held", util::format_size(evidence_amount(wait, "dirty_bytes")), are,
          util::format_size(evidence_amount(wait, "dirty_threshold_bytes")));
    case HostWaitCause::pressure:
      return fmt::format("tasks {} for I/O {:.0f} % of the time, and no disk of this host explains it",
                         now_so ? "wait" : "waited", 100 * evidence_amount(wait, "pressure_ratio"));
  }
  return "";
}

}  // namespace

double evidence_amount(const HostWait& wait, const char* key) {
  const auto found = wait.evidence.find(key);
  return found == wait.evidence.end() ? 0 : found->second;
}

bool concerns(const HostWait& wait, const std::string& disk, const model::Snapshot& now) {
  const auto is_below = [&](const util::OutsideText& volume) {
    return volume == disk ||
           std::any_of(now.memberships.begin(), now.memberships.end(),
                       [&](const model::Membership& one) { return volume == one.array && one.device == disk; });
  };
  switch (wait.cause) {
    case HostWaitCause::suspended:
      return is_below(wait.subject);
    case HostWaitCause::frozen:
    case HostWaitCause::full:
      return std::any_of(now.filesystems.begin(), now.filesystems.end(), [&](const model::Filesystem& one) {
        return one.mountpoint == wait.subject && one.device == disk;
      });
    case HostWaitCause::cgroup_limit:
    case HostWaitCause::layer:
      return is_below(wait.device);
    case HostWaitCause::dirty_throttling:
    case HostWaitCause::pressure:
      return true;
  }
  return true;
}

HostWaitWords host_wait_words(const HostWait& wait, const model::Snapshot& now, Tense tense) {
  return {what_of(wait, now, tense), model::info(wait.cause).next};
}

}  // namespace ssdpulse::spikes
