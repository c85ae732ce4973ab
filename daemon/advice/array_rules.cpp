// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "daemon/advice/rule.h"
#include "daemon/base/number_text.h"

namespace ssdpulse::advice {
namespace {

constexpr std::uint64_t kFlashPage = 4096;  // no flash has smaller ones
constexpr double kMisalignedShare = 0.05;   // of the bytes written

/// Bytes of writes that begin or end inside a unit of the disk, since the daemon's start. Nothing if the disk's write
/// granularity is below `unit` bytes: writes that begin inside a larger one are not counted.
std::optional<double> misaligned_bytes_of(const Facts& facts, const model::Device& disk, std::uint64_t unit) {
  return disk.write_granularity_bytes >= unit ? facts.measured.device(disk.name).misaligned_bytes : std::nullopt;
}

Finding alignment(const Facts& facts, const DiskSettings& disk) {
  // NVMe's preferred write granularity appears as minimum_io_size; its alignment appears at most as the physical block.
  const std::uint64_t preferred = std::max<std::uint64_t>(kFlashPage, disk.device.write_granularity_bytes);
  if (disk.partitions.empty()) {
    return ok("it has no partitions");
  }
  std::string misaligned;
  for (const model::PartitionSettings& partition : disk.partitions) {
    if (partition.start_bytes % preferred != 0) {
      misaligned += (misaligned.empty() ? "" : " ") + partition.name;
    }
  }
  if (misaligned.empty()) {
    return ok(fmt::format("all partitions begin at multiples of {} KiB", preferred / 1024));
  }
  Finding bad = info(fmt::format("partitions that do not begin at a multiple of {} KiB", preferred / 1024),
                     misaligned + ": each write touches a page more than it needs");
  bad.change = fmt::format("repartition: sgdisk --set-alignment={} aligns new partitions; move the data",
                           std::max<std::uint64_t>(2048, preferred / 512));
  bad.undo = "the former partition table and data, from a backup";
  bad.risk = "the partitions are recreated: everything on them is lost";
  const auto bytes = misaligned_bytes_of(facts, disk.device, preferred);
  const auto written = facts.measured.device(disk.device.name).operation(Operation::write).bytes;
  return weigh(facts, std::move(bad),
               {{"misaligned_share", ratio(bytes, written), kMisalignedShare},
                {"wear_bytes_per_day", facts.measured.per_day(bytes), kWearLimit}});
}

/// Members of an array that are this disk or partitions of it, and whose data does not begin at a multiple of `unit`.
std::string misaligned_members(const DiskSettings& array, const DiskSettings& disk, std::uint64_t unit) {
  std::string misaligned;
  for (const std::string& member : model::names_of_volumes(disk)) {
    const auto sectors = array.files.number("md/dev-" + member + "/offset");
    if (sectors && (*sectors * 512) % unit != 0) {
      misaligned += (misaligned.empty() ? "" : " ") + member;
    }
  }
  return misaligned;
}

struct Members {
  std::uint64_t largest_unit = kFlashPage;  // of all
  std::uint64_t misaligned_unit = 0;        // the largest of the misaligned ones
  std::string misaligned;                   // their names
  std::optional<double> wear = 0;           // their bytes a day; nothing if one of them is not counted
};

Members members_of(const Facts& facts, const DiskSettings& array) {
  Members all;
  for (const DiskSettings* disk : disks_named(facts, array.disks)) {
    const std::uint64_t unit = std::max<std::uint64_t>(kFlashPage, disk->device.write_granularity_bytes);
    all.largest_unit = std::max(all.largest_unit, unit);
    const std::string misaligned = misaligned_members(array, *disk, unit);
    if (misaligned.empty()) {
      continue;
    }
    all.misaligned += (all.misaligned.empty() ? "" : " ") + misaligned;
    all.misaligned_unit = std::max(all.misaligned_unit, unit);
    const auto bytes = facts.measured.per_day(misaligned_bytes_of(facts, disk->device, unit));
    all.wear = all.wear && bytes ? std::optional(*all.wear + *bytes) : std::nullopt;
  }
  return all;
}

Finding member_offsets(const Facts& facts, const DiskSettings& array) {
  const auto chunk = array.files.number("md/chunk_size");
  if (!array.files.has("md/level")) {
    return not_applicable("it is not an md array");
  }
  const Members members = members_of(facts, array);
  if (!members.misaligned.empty()) {
    Finding bad = info(fmt::format("data that does not begin at a multiple of {} KiB", members.misaligned_unit / 1024),
                       members.misaligned + ": each write to the array touches a page more than it needs");
    bad.change = "build the array again, with mdadm --data-offset=1M";
    bad.undo = "the former array, from a backup";
    bad.risk = "everything on it is lost";
    return weigh(facts, std::move(bad), {{"wear_bytes_per_day", members.wear, kWearLimit}});
  }
  if (chunk && *chunk != 0 && *chunk < members.largest_unit) {
    return info(fmt::format("chunks of {} KiB are smaller than what the drives prefer", *chunk / 1024),
                "full stripes are parts of pages");
  }
  return ok("chunks and offsets fit the drives");
}

constexpr double kSlower = 1.5;        // mean time of a slow path, relative to the fastest
constexpr double kMinPathIos = 10000;  // of one kind, on each path
constexpr double kAlikePaths = 1.25;   // I/Os of compared paths differ at most by this factor in size, or number

/// What a disk has done of one kind of I/O since it appeared.
struct Load {
  double ios = 0;
  double sectors = 0;
  double seconds = 0;
};
using Loads = std::array<Load, 2>;  // reads, writes

/// Documentation/block/stat.rst; nothing if the file has another format.
std::optional<Loads> parse_stat(const util::OutsideText& stat) {
  std::istringstream text(stat.raw());
  std::array<double, 8> fields{};
  for (double& field : fields) {
    if (!(text >> field)) {
      return std::nullopt;
    }
  }
  return Loads{{{fields[0], fields[2], fields[3] / 1000}, {fields[4], fields[6], fields[7] / 1000}}};
}

util::OutsideText path_file(const DiskSettings& disk, const model::Path& path, const char* file) {
  return disk.files.text(fmt::format("paths/{}/{}", path.disk_name, file));
}

bool is_live(const DiskSettings& disk, const model::Path& path) {
  const util::OutsideText state = path_file(disk, path, "state");
  return state.empty() || state == "live";
}

/// A drive without ANA has no such file, and its paths are all equal. The kernel uses other paths only if no optimized
/// one is left, whatever the policy: they may be slower, and are not compared.
bool is_optimized(const DiskSettings& disk, const model::Path& path) {
  const util::OutsideText state = path_file(disk, path, "ana_state");
  return state.empty() || state == "optimized";
}

/// How much slower some paths are than the fastest.
struct Gap {
  double ratio = 1;
  double excess_seconds = 0;  // of all their I/Os together
};

/// Larger I/Os take longer. Paths used in turn get equally many: one with fewer was not there all the time.
bool have_similar_loads(const std::vector<Load>& paths, bool take_turns) {
  const auto is_alike = [&](double (*value)(const Load&)) {
    const auto [lowest, highest] = std::minmax_element(
        paths.begin(), paths.end(), [&](const Load& a, const Load& b) { return value(a) < value(b); });
    return value(*highest) <= kAlikePaths * value(*lowest);
  };
  return is_alike([](const Load& path) { return path.sectors / path.ios; }) &&
         (!take_turns || is_alike([](const Load& path) { return path.ios; }));
}

Gap gap_between(const std::vector<Loads>& paths, bool take_turns) {
  Gap gap;
  for (std::size_t kind = 0; kind < 2; ++kind) {
    std::vector<Load> compared;
    for (const Loads& path : paths) {
      if (path[kind].ios >= kMinPathIos && path[kind].seconds > 0) {
        compared.push_back(path[kind]);
      }
    }
    if (compared.empty() || !have_similar_loads(compared, take_turns)) {
      continue;
    }
    double fastest = compared[0].seconds / compared[0].ios;
    for (const Load& path : compared) {
      fastest = std::min(fastest, path.seconds / path.ios);
    }
    for (const Load& path : compared) {
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
  bad.risk = "all namespaces of the subsystem have one policy; each I/O compares the depths of all paths";
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
  std::vector<Loads> alike;
  std::size_t optimized = 0;
  for (const model::Path& path : paths) {
    if (!is_live(disk, path)) {
      lost += fmt::format("; {} is {}", path.disk_name, util::for_json(path_file(disk, path, "state")));
    } else if (is_optimized(disk, path)) {
      ++optimized;
      if (const auto loads = parse_stat(path_file(disk, path, "stat"))) {
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

/// dm-crypt volumes whose flags cryptsetup can change by name alone while they are open. A LUKS2 header also keeps
/// them. A plain volume is `none`: everything it was opened with would have to be given again.
enum class CryptKind : std::uint8_t { none, luks1, luks2 };

std::string refresh_command(const std::set<std::string>& flags, bool for_good, const std::string& name) {
  std::string text = "cryptsetup refresh ";
  for (const std::string& flag : flags) {
    text += flag == "allow_discards" ? "--allow-discards " : "--perf-" + flag + " ";
  }
  return text + (for_good ? "--persistent " : "") + name;
}

CryptKind kind_of_crypt(const DiskSettings& array) {
  const util::OutsideText uuid = array.files.text("dm/uuid");
  if (uuid.starts_with("CRYPT-LUKS2-")) {
    return CryptKind::luks2;
  }
  return uuid.starts_with("CRYPT-LUKS1-") ? CryptKind::luks1 : CryptKind::none;
}

/// Adds to a finding the change of a volume's flags to these, for now, permanently, and the undo: cryptsetup sets all
/// flags at once. If the current ones are unknown, it adds no command, and a note that explains it. `option`: what
/// crypttab calls the new ones.
void refresh_crypt(Finding& finding, const DiskSettings& array, const std::set<std::string>& flags,
                   const std::string& option) {
  if (!array.crypt_flags) {
    finding.why += "; its table, which has the flags to keep, was not read";
    finding.change = "run ssdpulse audit as root: the command must name all flags to keep";
    return;
  }
  const auto name = word_or_why(array.files.text("dm/name"), finding);
  if (!name) {
    return;
  }
  finding.change = refresh_command(flags, false, *name);
  const std::string before = refresh_command(array.crypt_flags.value(), false, *name);
  if (kind_of_crypt(array) == CryptKind::luks2) {
    finding.persistent = refresh_command(flags, true, *name);
    finding.undo = before + "  # --persistent if it was made for good";
  } else {  // only LUKS2 keeps flags in its header
    finding.persistent = fmt::format("add {} to the options of {} in /etc/crypttab", option, *name);
    finding.undo = fmt::format("{}  # and the former options in /etc/crypttab", before);
  }
}

Finding discards_stop(const Facts& facts, const DiskSettings& array) {
  const auto max_bytes = array.files.number("queue/discard_max_bytes");
  if (!max_bytes) {
    return unknown("whether discards pass", "queue/discard_max_bytes is not readable");
  }
  if (!any_accepts_discards(facts, array.disks)) {
    return not_applicable("no disk below accepts discards");
  }
  if (*max_bytes > 0) {
    return ok("discards pass");
  }
  Finding bad =
      info("discards stop here, although the disks below accept them", "the drives treat deleted data as live");
  const util::OutsideText level = array.files.text("md/level");
  if (array.crypt_flags && array.crypt_flags->count("allow_discards") > 0) {
    bad.why += "; dm-crypt lets them pass, what lies below it does not";
  } else if (kind_of_crypt(array) != CryptKind::none) {
    std::set<std::string> flags = array.crypt_flags.value_or(std::set<std::string>{});
    flags.insert("allow_discards");
    refresh_crypt(bad, array, flags, "discard");
    bad.risk = "anyone who reads the bare disk sees which parts are free";
  } else if (level == "raid4" || level == "raid5" || level == "raid6") {
    bad.change = "raid456.devices_handle_discard_safely=1 on the kernel's command line, if all drives return zeroes";
    bad.undo = "remove it again";
    bad.risk = "parity is wrong where a drive does not return zeroes, and trimming is slow";
  }
  if (bad.change.empty()) {
    return bad;
  }
  constexpr double kCostly = 1.5;
  return weigh(facts, std::move(bad),
               {{"write_amplification_lower_ratio", write_amplification_at_least(facts, array.disks), kCostly}});
}

constexpr double kMinVolumeIos = 10'000;
constexpr double kAlikeVolumes = 1.1;  // I/Os of the volume and of the disk below it differ at most by this factor

/// Seconds a day that I/Os take longer at the volume than below it: waiting for threads, and encryption. Nothing if the
/// two did not do the same I/Os: below, some are merged, or belong to others.
std::optional<double> excess_above(const Facts& facts, const DiskSettings& array) {
  const auto total_of = [&](const char* stat) {
    const Loads loads = parse_stat(array.files.text(stat)).value_or(Loads{});
    return Load{.ios = loads[0].ios + loads[1].ios, .seconds = loads[0].seconds + loads[1].seconds};
  };
  const Load above = total_of("stat");
  const Load below = total_of("slave/stat");
  const auto& uptime = facts.settings.uptime_seconds;
  if (!uptime || *uptime <= 0 || above.ios < kMinVolumeIos || below.ios > kAlikeVolumes * above.ios ||
      above.ios > kAlikeVolumes * below.ios) {
    return std::nullopt;
  }
  return std::max(0.0, above.seconds - below.seconds) * kSecondsPerDay / *uptime;
}

Finding crypt_queues(const Facts& facts, const DiskSettings& array) {
  const CryptKind kind = kind_of_crypt(array);
  if (kind == CryptKind::none) {
    return not_applicable("it is not a dm-crypt volume whose flags cryptsetup can change");
  }
  const auto below = disks_named(facts, array.disks);
  if (std::all_of(below.begin(), below.end(), [](const DiskSettings* disk) { return disk->device.rotational; })) {
    return not_applicable("there is no SSD below it");
  }
  if (!array.crypt_flags) {
    return unknown("whether dm-crypt hands each I/O to a thread",
                   "its table was not read: only root may, and the daemon never does; run ssdpulse audit as root");
  }
  std::set<std::string> flags = *array.crypt_flags;
  const bool reads = flags.insert("no_read_workqueue").second;
  const bool writes = flags.insert("no_write_workqueue").second;
  if (!reads && !writes) {
    return ok("dm-crypt encrypts and decrypts without handing I/Os to a thread");
  }
  Finding finding = info(fmt::format("dm-crypt hands each {} to a thread", !writes  ? "read"
                                                                           : !reads ? "write"
                                                                                    : "read and write"),
                         "an I/O that an SSD does in microseconds also waits for that thread");
  // If somebody refreshes the volume twice, it keeps only the flags of the second time.
  if (array.files.number("queue/discard_max_bytes") == std::uint64_t{0} && flags.count("allow_discards") == 0 &&
      any_accepts_discards(facts, array.disks)) {
    finding.why += "; no command is given as long as F5 has one, which also sets all flags";
    return finding;
  }
  refresh_crypt(finding, array, flags, "no-read-workqueue,no-write-workqueue");
  finding.risk = "encryption takes the CPU of whoever reads or writes; the flags need cryptsetup 2.3.4";
  if (finding.change.empty()) {
    return finding;
  }
  finding.observed_seconds = facts.settings.uptime_seconds;
  finding.observer = model::Observer::kernel;
  return weigh(facts, std::move(finding), {{"excess_seconds_per_day", excess_above(facts, array), kExcessLimit}});
}

constexpr std::uint64_t kModestSpeed = 50'000;  // KiB/s

Finding array_checks(const Facts& facts, const DiskSettings& array) {
  const util::OutsideText action = array.files.text("md/sync_action");
  if (action.empty()) {
    return not_applicable("it is not an md array with redundancy");
  }
  if (action == "idle") {
    return ok("no check or rebuild is running");
  }
  if (action == "frozen") {
    Finding bad = info("sync_action is frozen", "no check or rebuild runs, so a failed member stays missing");
    if (const auto control = word_or_why(sysfs_path(array, "md/sync_action"), bad)) {
      bad.change = fmt::format("echo idle > {}  # unless mdadm is reshaping it", *control);
      bad.undo = fmt::format("echo frozen > {}", *control);
    }
    bad.risk = "mdadm freezes an array while it reshapes it";
    return bad;
  }
  Finding bad =
      info("sync_action is " + util::for_json(action), "it reads all members at once, on top of everything else");
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
  const auto max_speed = array.files.number("md/sync_speed_max");
  if (action == "recover" || action == "resync" || (max_speed && *max_speed <= kModestSpeed) ||
      speed.rfind(std::to_string(kModestSpeed) + " ", 0) == 0) {
    bad.change.clear();
    bad.undo.clear();
    bad.risk.clear();
    bad.why += action == "recover" || action == "resync" ? "; redundancy comes first" : "; it is already slowed down";
    return bad;
  }
  std::optional<double> excess;
  for (const std::string& disk : array.disks) {
    add_figure(excess, excess_per_day(facts, disk, {SpikeCause::queue, SpikeCause::saturation}));
  }
  return weigh(facts, std::move(bad), {{"excess_seconds_per_day", excess, kExcessLimit}});
}

constexpr Rule kArrayRules[] = {
    {.id = "N2",
     .title = "Alignment of partitions",
     .limit = "5 % of the bytes written, and 10 GB a day, are misaligned",
     .source = "NVM Express, Improving performance through I/O size and alignment; Ceph hardware recommendations",
     .of_disk = alignment},
    {.id = "N3",
     .title = "Offsets and chunks of md arrays",
     .limit = "10 GB a day are misaligned on the members",
     .source = "Documentation/ABI/stable/sysfs-block, minimum_io_size; md(4)",
     .of_array = member_offsets},
    {.id = "N14",
     .title = "Paths of NVMe multipath",
     .limit = "of paths used in turn, one takes 1.5 times as long as another, 60 s a day in total",
     .source = "Documentation/admin-guide/nvme-multipath.rst; Linux commit f227345f0a70",
     .of_disk = multipath},
    {.id = "F5",
     .title = "Arrays and volumes that keep discards from the drives",
     .limit = "the lower bound of write amplification of a drive below is at least 1.5",
     .source = "drivers/md/raid5.c; cryptsetup(8), --allow-discards",
     .of_array = discards_stop},
    {.id = "F6",
     .title = "Work queues of dm-crypt",
     .limit = "reads and writes take 60 s a day longer at the volume than at the disk below it",
     .source = "Linux commit 39d42fa96ba1; Documentation/block/stat.rst",
     .of_array = crypt_queues},
    {.id = "F17",
     .title = "Checks of md arrays",
     .limit = "while one runs, queueing or saturation causes 60 s of waiting a day on the members",
     .source = "md(4), SYNC_ACTION",
     .by_history = true,
     .of_array = array_checks},
};

}  // namespace

std::span<const Rule> array_rules() { return kArrayRules; }

}  // namespace ssdpulse::advice
