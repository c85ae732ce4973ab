// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "daemon/audit/rules/rules.h"
#include "daemon/util/number_text.h"

namespace ssdpulse::audit {
namespace {

constexpr double kSlower = 1.5;        // mean time of a slow path, relative to the fastest
constexpr double kMinPathIos = 10000;  // of one kind, on each path
constexpr double kAlike = 1.25;        // I/Os of compared paths differ at most by this factor in size, or number

/// What a path has done of one kind of I/O since it appeared.
struct PathLoad {
  double ios = 0;
  double sectors = 0;
  double seconds = 0;
};
using PathLoads = std::array<PathLoad, 2>;  // reads, writes

util::OutsideText of_path(const DiskSettings& disk, const model::Path& path, const char* file) {
  return disk.files.text(fmt::format("paths/{}/{}", path.disk_name, file));
}

/// Documentation/block/stat.rst; nothing if the file has another format.
std::optional<PathLoads> loads_of(const DiskSettings& disk, const model::Path& path) {
  std::istringstream text(of_path(disk, path, "stat").raw());
  std::array<double, 8> fields{};
  for (double& field : fields) {
    if (!(text >> field)) {
      return std::nullopt;
    }
  }
  return PathLoads{{{fields[0], fields[2], fields[3] / 1000}, {fields[4], fields[6], fields[7] / 1000}}};
}

bool is_live(const DiskSettings& disk, const model::Path& path) {
  const util::OutsideText state = of_path(disk, path, "state");
  return state.empty() || state == "live";
}

/// A drive without ANA has no such file, and its paths are all equal. The kernel uses other paths only if no optimized
/// one is left, whatever the policy: they may be slower, and are not compared.
bool is_optimized(const DiskSettings& disk, const model::Path& path) {
  const util::OutsideText state = of_path(disk, path, "ana_state");
  return state.empty() || state == "optimized";
}

/// How much slower some paths are than the fastest.
struct Gap {
  double ratio = 1;
  double excess_seconds = 0;  // of all their I/Os together
};

/// Larger I/Os take longer. Paths used in turn get equally many: one with fewer was not there all the time.
bool have_one_load(const std::vector<PathLoad>& paths, bool take_turns) {
  const auto is_alike = [&](double (*value)(const PathLoad&)) {
    const auto [least, most] = std::minmax_element(paths.begin(), paths.end(),
                                                   [&](const auto& a, const auto& b) { return value(a) < value(b); });
    return value(*most) <= kAlike * value(*least);
  };
  return is_alike([](const PathLoad& one) { return one.sectors / one.ios; }) &&
         (!take_turns || is_alike([](const PathLoad& one) { return one.ios; }));
}

Gap gap_between(const std::vector<PathLoads>& paths, bool take_turns) {
  Gap gap;
  for (std::size_t kind = 0; kind < 2; ++kind) {
    std::vector<PathLoad> compared;
    for (const PathLoads& path : paths) {
      if (path[kind].ios >= kMinPathIos && path[kind].seconds > 0) {
        compared.push_back(path[kind]);
      }
    }
    if (compared.empty() || !have_one_load(compared, take_turns)) {
      continue;
    }
    double fastest = compared[0].seconds / compared[0].ios;
    for (const PathLoad& path : compared) {
      fastest = std::min(fastest, path.seconds / path.ios);
    }
    for (const PathLoad& path : compared) {
      gap.ratio = std::max(gap.ratio, path.seconds / path.ios / fastest);
      gap.excess_seconds += path.seconds - path.ios * fastest;
    }
  }
  return gap;
}

bool has_queue_depth_policy(const std::string& release) {
  unsigned major = 0;
  unsigned minor = 0;
  return std::sscanf(release.c_str(), "%u.%u", &major, &minor) == 2 && (major > 6 || (major == 6 && minor >= 11));
}

Finding slow_paths(const Facts& facts, const DiskSettings& disk, const std::string& found, const Gap& gap,
                   bool take_turns) {
  const auto& uptime = facts.settings.uptime_seconds;
  Finding bad = info(found, "on average a slow one takes much longer than the fastest");
  const std::vector<Evidence> evidence{
      {"path_latency_ratio", gap.ratio, kSlower},
      {"excess_seconds_per_day",
       uptime && *uptime > 0 ? std::optional(gap.excess_seconds * kSecondsPerDay / *uptime) : std::nullopt,
       kExcessLimit}};
  bad.observed_seconds = uptime;
  bad.observer = model::Observer::kernel;
  if (!take_turns) {
    bad.evidence["path_latency_ratio"] = gap.ratio;
    bad.why += ", but each serves CPUs of its own, whose loads may differ";
    return bad;
  }
  if (!has_queue_depth_policy(facts.settings.files.text("proc/sys/kernel/osrelease").raw())) {
    bad.evidence["path_latency_ratio"] = gap.ratio;
    bad.why += "; the policy queue-depth, which sends more to the faster ones, needs Linux 6.11";
    return bad;
  }
  change_file(bad, disk, "device/iopolicy", "queue-depth");
  bad.risk = "all namespaces of the subsystem have one policy; each I/O looks at the depth of every path";
  return weigh(facts, std::move(bad), evidence);
}

Finding multipath(const Facts& facts, const DiskSettings& disk) {
  const auto& paths = disk.device.paths;
  if (disk.controller_name.empty() || paths.size() < 2) {
    return not_applicable("it has one path");
  }
  const auto failovers = facts.measured.per_day(facts.measured.device(disk.device.name).failovers);
  if (!failovers) {
    return unknown("its paths", "no daemon answers");
  }
  std::string lost;
  std::vector<PathLoads> alike;
  std::size_t optimized = 0;
  for (const model::Path& path : paths) {
    if (!is_live(disk, path)) {
      lost += fmt::format("; {} is {}", path.disk_name, util::for_json(of_path(disk, path, "state")));
    } else if (is_optimized(disk, path)) {
      ++optimized;
      if (const auto loads = loads_of(disk, path)) {
        alike.push_back(*loads);
      }
    }
  }
  const util::OutsideText policy = disk.files.text("device/iopolicy");
  const std::string found = fmt::format("{}, {} of them live and optimized{}", util::count_text(paths.size(), "path"),
                                        optimized, policy.empty() ? "" : ", chosen by " + util::for_json(policy));
  const std::string failed =
      *failovers > 0 ? "; a path failed with I/Os in flight, and each was sent again over another" : "";
  const bool take_turns = policy == "round-robin";
  const Gap gap = gap_between(alike, take_turns);
  if (!policy.empty() && policy != "queue-depth" && gap.ratio >= kSlower) {
    Finding finding = slow_paths(facts, disk, found, gap, take_turns);
    finding.why += failed + lost;
    return finding;
  }
  if (failed.empty() && lost.empty()) {
    return ok(found + ", and none failed");
  }
  Finding finding = info(found, (failed + lost).substr(2));
  finding.evidence = {{"failovers_per_day", *failovers}};
  return finding;
}

}  // namespace

const Rule kN14{.id = "N14",
                .title = "Paths of NVMe multipath",
                .limit = "of paths used in turn, one takes 1.5 times as long as another, 60 s a day in total",
                .source = "Documentation/admin-guide/nvme-multipath.rst; Linux commit f227345f0a70",
                .of_disk = multipath};

}  // namespace ssdpulse::audit
