// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/host_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <sstream>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "daemon/base/complete.h"
#include "daemon/base/file_descriptor.h"
#include "daemon/base/sysfs.h"
#include "daemon/host/layer_reader.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::host {
namespace {

using model::IoLimit;
using model::IoLimitKind;

constexpr std::size_t kMaxFileBytes = 4U << 20U;          // /proc/stat has a number for each interrupt
constexpr std::size_t kMaxCgroupFileBytes = 256U << 10U;  // a line for each device

/// v1's files of a limit, what they count against it, and the word for it there.
struct LegacyLimit {
  IoLimitKind kind;
  const char* file;
  const char* counted;
  const char* word;
};
constexpr auto kLegacy = std::to_array<LegacyLimit>({
    {IoLimitKind::rbps, "blkio.throttle.read_bps_device", "blkio.throttle.io_service_bytes", "Read"},
    {IoLimitKind::wbps, "blkio.throttle.write_bps_device", "blkio.throttle.io_service_bytes", "Write"},
    {IoLimitKind::riops, "blkio.throttle.read_iops_device", "blkio.throttle.io_serviced", "Read"},
    {IoLimitKind::wiops, "blkio.throttle.write_iops_device", "blkio.throttle.io_serviced", "Write"},
});
static_assert(kLegacy.size() == model::kIoLimitKinds);
/// The same of v2's io.stat.
constexpr auto kCounted = util::names<model::IoLimitKind>({"rbytes", "wbytes", "rios", "wios"});

std::vector<std::vector<std::string>> lines_of(const std::string& text) {
  std::istringstream lines(text);
  std::vector<std::vector<std::string>> all;
  for (std::string line; std::getline(lines, line);) {
    all.push_back(sysfs::words_in(line));
  }
  return all;
}

std::string content(const std::string& path, std::size_t max_bytes) {
  return util::read_file(path, max_bytes).value_or("");
}

std::optional<std::uint64_t> value_of(const std::vector<std::string>& words, std::string_view key) {
  for (const std::string_view word : words) {
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=') {
      return sysfs::parse_number(word.substr(key.size() + 1));
    }
  }
  return std::nullopt;
}

std::string device_name(const std::string& numbers, const model::Inventory& inventory) {
  const auto parsed = sysfs::parse_device_number(numbers);
  const auto found = std::find_if(inventory.devices.begin(), inventory.devices.end(), [&](const model::Device& one) {
    return parsed && one.major == parsed->first && one.minor == parsed->second;
  });
  return found == inventory.devices.end() ? numbers : found->name;
}

std::optional<std::uint64_t> blocked_tasks(const std::string& proc) {
  const std::string text = content(proc + "/stat", kMaxFileBytes);
  const auto count = sysfs::rest_of_line(text, "procs_blocked ");
  return count ? sysfs::parse_number(*count) : std::nullopt;
}

/// The cgroup and those above it, without the root, on which no limit can be set.
void add_with_ancestors(std::string cgroup, std::set<std::string>& all) {
  while (cgroup.size() > 1 && !cgroup.starts_with(model::kUnknownParent) && all.insert(cgroup).second) {
    cgroup.resize(cgroup.rfind('/'));
  }
}

}  // namespace

struct RoomWatch::Answers {
  std::mutex mutex;
  struct Answer {
    model::FilesystemRoom room;
    model::SteadyTime at;
  };
  std::map<std::string, Answer> rooms;
  std::map<std::string, model::SteadyTime> waiting;  // asked then, and not answered yet
  std::size_t threads = 0;
};

std::optional<model::FilesystemRoom> room_of(const std::string& mountpoint) {
  struct statx status {};
  // Known without asking the file system.
  if (::statx(AT_FDCWD, mountpoint.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &status) != 0 ||
      ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
       (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)) {
    return std::nullopt;
  }
  struct statvfs space {};
  if (::statvfs(mountpoint.c_str(), &space) != 0 || space.f_blocks == 0 || (space.f_flag & ST_RDONLY) != 0) {
    return std::nullopt;
  }
  return model::FilesystemRoom{.mountpoint = mountpoint,
                               .size_bytes = space.f_blocks * space.f_frsize,
                               .available_bytes = space.f_bavail * space.f_frsize,
                               .inodes = space.f_files,
                               .available_inodes = space.f_favail,
                               .free_bytes = space.f_bfree * space.f_frsize};
}

RoomWatch::RoomWatch(Ask ask) : ask_(ask), answers_(std::make_shared<Answers>()) {}

std::vector<model::FilesystemRoom> RoomWatch::latest(const std::vector<std::string>& mountpoints,
                                                     model::SteadyTime now) {
  const std::lock_guard lock(answers_->mutex);
  std::erase_if(answers_->rooms, [&](const auto& one) {
    return std::find(mountpoints.begin(), mountpoints.end(), one.first) == mountpoints.end();
  });
  if ((!asked_at_ || now - *asked_at_ >= kInterval) && answers_->threads < kMaxThreads) {
    asked_at_ = now;
    std::vector<std::string> due;
    std::copy_if(mountpoints.begin(), mountpoints.end(), std::back_inserter(due),
                 [&](const std::string& one) { return !answers_->waiting.contains(one) && due.size() < kMaxMounts; });
    const auto begin = std::chrono::steady_clock::now();
    const auto work = [answers = answers_, ask = ask_, due = std::move(due), now, begin] {
      for (const std::string& mountpoint : due) {
        {
          const std::lock_guard own(answers->mutex);
          if (!answers->waiting.emplace(mountpoint, now + (std::chrono::steady_clock::now() - begin)).second) {
            continue;  // a later thread was quicker
          }
        }
        const auto room = ask(mountpoint);
        const std::lock_guard own(answers->mutex);
        answers->waiting.erase(mountpoint);
        if (room) {
          answers->rooms[mountpoint] = {*room, now + (std::chrono::steady_clock::now() - begin)};
        } else {
          answers->rooms.erase(mountpoint);
        }
      }
      const std::lock_guard own(answers->mutex);
      --answers->threads;
    };
    try {
      std::thread(work).detach();
      ++answers_->threads;
    } catch (const std::system_error&) {
      // No thread now: another try in kInterval.
    }
  }
  std::vector<model::FilesystemRoom> rooms;
  for (const std::string& mountpoint : mountpoints) {
    const auto found = answers_->rooms.find(mountpoint);
    const auto waiting = answers_->waiting.find(mountpoint);
    const bool stuck = waiting != answers_->waiting.end() && now - waiting->second >= kInterval;
    if (found != answers_->rooms.end() && !stuck && now - found->second.at < kLongestAge) {
      rooms.push_back(found->second.room);
    }
  }
  return rooms;
}

std::optional<model::IoPressure> parse_pressure(const std::string& text) {
  model::IoPressure pressure;
  bool found = false;
  for (const auto& words : lines_of(text)) {
    const auto total = value_of(words, "total");  // microseconds
    if (total && words[0] == "some") {
      pressure.some_seconds = static_cast<double>(*total) / 1e6;
      found = true;
    } else if (total && words[0] == "full") {
      pressure.full_seconds = static_cast<double>(*total) / 1e6;
    }
  }
  return found ? std::optional(pressure) : std::nullopt;
}

std::optional<std::uint64_t> vmstat_bytes(const std::string& text, const std::string& name, std::uint64_t page_bytes) {
  const auto rest = sysfs::rest_of_line(text, name + " ");
  const auto pages = rest ? sysfs::parse_number(*rest) : std::nullopt;
  return pages ? std::optional(*pages * page_bytes) : std::nullopt;
}

std::optional<model::DirtyPages> parse_vmstat(const std::string& text, std::uint64_t page_bytes) {
  const auto bytes = [&](const std::string& name) { return vmstat_bytes(text, name, page_bytes); };
  const auto dirty = bytes("nr_dirty");
  const auto writeback = bytes("nr_writeback");
  const auto threshold = bytes("nr_dirty_threshold");
  const auto background = bytes("nr_dirty_background_threshold");
  return dirty && writeback && threshold && background
             ? std::optional(model::DirtyPages{*dirty + *writeback, *threshold, *background})
             : std::nullopt;
}

/// Older kernels count a disk as busy only when something begins or ends: a disk that hangs is busy, too.
void HostReader::read_disks(const model::Inventory& inventory, model::HostSignals& signals) {
  const auto now = std::chrono::steady_clock::now();
  const double elapsed = std::chrono::duration<double>(now - std::exchange(disks_read_at_, now)).count();
  const AllDiskStats before =
      std::exchange(disk_stats_, parse_all_disk_stats(content(roots_.proc + "/diskstats", kMaxFileBytes)));
  const auto done = [](const model::DiskStats& disk) { return disk.reads + disk.writes + disk.discards.value_or(0); };
  for (const model::Device& device : inventory.devices) {
    const auto found = disk_stats_.find(device.name);
    if (device.coverage == model::Coverage::stacked || device.coverage == model::Coverage::empty ||
        found == disk_stats_.end()) {
      continue;
    }
    const model::DiskStats& disk = found->second;
    signals.disks_busy_ms.emplace(device.name, disk.busy_ms);
    const auto was = before.find(device.name);
    if (was != before.end() && disk.busy_ms >= was->second.busy_ms) {
      const double busy = static_cast<double>(disk.busy_ms - was->second.busy_ms) / 1e3;
      const bool hangs = disk.in_flight > 0 && was->second.in_flight > 0 && done(disk) == done(was->second);
      disks_busy_seconds_ += hangs ? std::max(busy, elapsed) : busy;
    }
  }
  signals.disks_busy_seconds = disks_busy_seconds_;
}

std::vector<IoLimit> HostReader::limits_of(const std::string& cgroup, const model::Inventory& inventory) const {
  const std::string directory = roots_.cgroups + cgroup + "/";
  std::vector<IoLimit> limits;
  if (roots_.cgroups_unified) {
    const auto set = lines_of(content(directory + "io.max", kMaxCgroupFileBytes));
    if (set.empty()) {
      return limits;
    }
    const auto text = util::read_file(directory + "io.stat", kMaxCgroupFileBytes);
    const auto counted = lines_of(text.value_or(""));
    // A device without a line has had no I/O; a file that cannot be read says nothing.
    const auto none = text ? std::optional<std::uint64_t>(0) : std::nullopt;
    const auto pressure = parse_pressure(content(directory + "io.pressure", kMaxCgroupFileBytes));
    for (const auto& words : set) {
      const auto own = std::find_if(counted.begin(), counted.end(), [&](const auto& line) {
        return !line.empty() && !words.empty() && line[0] == words[0];
      });
      for (std::size_t kind = 0; kind < model::kIoLimitKinds; ++kind) {
        if (const auto limit = value_of(words, model::kIoLimitKindNames[kind])) {  // not "max"
          limits.push_back({cgroup, "", device_name(words[0], inventory), static_cast<IoLimitKind>(kind), *limit,
                            own == counted.end() ? none : value_of(*own, kCounted[kind]), pressure, "io.max"});
        }
      }
    }
    return limits;
  }
  std::map<std::string, util::Result<std::string>> read;  // once for all limits
  for (const LegacyLimit& legacy : kLegacy) {
    const auto set = lines_of(content(directory + legacy.file, kMaxCgroupFileBytes));
    if (set.empty()) {
      continue;
    }
    const auto counted =
        read.try_emplace(legacy.counted, util::read_file(directory + legacy.counted, kMaxCgroupFileBytes));
    const auto& text = counted.first->second;
    const auto lines = lines_of(text ? *text : "");
    for (const auto& words : set) {
      const auto limit = words.size() == 2 ? sysfs::parse_number(words[1]) : std::nullopt;
      if (!limit || *limit == 0) {
        continue;
      }
      std::optional<std::uint64_t> done = text ? std::optional<std::uint64_t>(0) : std::nullopt;
      for (const auto& line : lines) {
        if (line.size() == 3 && line[0] == words[0] && line[1] == legacy.word) {
          done = sysfs::parse_number(line[2]);
        }
      }
      limits.push_back({cgroup, "", device_name(words[0], inventory), legacy.kind, *limit, done, {}, legacy.file});
    }
  }
  return limits;
}

void HostReader::read_cgroups(const model::Inventory& inventory, const std::set<std::string>& cgroups,
                              const TenantOf& tenant_of, model::HostSignals& signals) {
  std::set<std::string> all;
  std::size_t attempts = 0;
  for (const std::string& cgroup : cgroups) {
    if (all.size() < kMaxCgroups) {
      add_with_ancestors(cgroup, all);
    }
    // The root's is the whole host's, and one of unknown path has none.
    const bool has_own = cgroup.size() > 1 && !cgroup.starts_with(model::kUnknownParent);
    if (roots_.cgroups_unified && signals.pressure && has_own && attempts++ < kMaxCgroups) {
      if (const auto pressure =
              parse_pressure(content(roots_.cgroups + cgroup + "/io.pressure", kMaxCgroupFileBytes))) {
        signals.cgroups.push_back({cgroup, tenant_of(cgroup), *pressure});
      }
    }
  }
  const std::uint64_t turns = 1 + all.size() / kSearchedAtOnce;
  const std::set<std::string> before = std::exchange(limited_, {});
  std::uint64_t number = 0;
  for (const std::string& cgroup : all) {
    if (++number % turns != reads_ % turns && !before.contains(cgroup)) {
      continue;
    }
    auto limits = limits_of(cgroup, inventory);
    if (!limits.empty() && signals.limits.size() < kMaxLimits) {
      limited_.insert(cgroup);
      std::for_each(limits.begin(), limits.end(), [&](IoLimit& limit) { limit.tenant = tenant_of(cgroup); });
      std::move(limits.begin(), limits.end(), std::back_inserter(signals.limits));
    }
  }
}

namespace {

/// Neither made again nor made of something else. Before Linux 5.15 nothing numbers the incarnations.
bool is_same(const model::Layer& one, const model::Layer& other) {
  return std::tie(one.diskseq, one.kind, one.title, one.members) ==
         std::tie(other.diskseq, other.kind, other.title, other.members);
}

}  // namespace

std::vector<model::VolumeSignals> HostReader::read_volumes(const model::Inventory& inventory,
                                                           const std::set<std::string>& waiting) {
  const std::uint64_t turns = 1 + inventory.layers.size() / kVolumesAtOnce;
  std::map<std::string, KnownVolume> before = std::exchange(volumes_, {});
  std::vector<model::VolumeSignals> all;
  std::uint64_t number = 0;
  for (const model::Layer& layer : inventory.layers) {
    auto known = before.extract(layer.name);
    if (!known.empty() && !is_same(known.mapped().layer, layer)) {
      known = {};  // what is known is of another volume, which had this name
    }
    const std::uint64_t turn = reads_ + number++;
    if (!known.empty() && turn % turns != 0 && !known.mapped().signals.suspended && !known.mapped().signals.resync &&
        !waiting.contains(layer.name)) {
      all.push_back(known.mapped().signals);
      volumes_.insert(std::move(known));
      continue;
    }
    const bool due = known.empty() || turn / turns % kTurnsOfHealth == 0;
    if (auto signals = read_volume_signals(roots_.sys, layer, due ? nullptr : &known.mapped().signals)) {
      volumes_.insert_or_assign(layer.name, KnownVolume{layer, *signals});
      all.push_back(std::move(*signals));
    }
  }
  return all;
}

model::HostSignals HostReader::read(const model::Inventory& inventory, const std::set<std::string>& cgroups,
                                    const TenantOf& tenant_of, const std::set<std::string>& waiting) {
  model::HostSignals signals;
  signals.pressure = parse_pressure(content(roots_.proc + "/pressure/io", kMaxCgroupFileBytes));
  if (const auto cpu = parse_pressure(content(roots_.proc + "/pressure/cpu", kMaxCgroupFileBytes))) {
    signals.cpu_wait_seconds = cpu->some_seconds;
  }
  if (!signals.pressure) {
    signals.blocked_tasks = blocked_tasks(roots_.proc);  // the kernel sums up every interrupt for it: not where PSI is
  }
  const std::string vmstat = content(roots_.proc + "/vmstat", kMaxCgroupFileBytes);
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  signals.dirty = parse_vmstat(vmstat, page_bytes);
  // The kernel takes back a page that could not be written yet and stays dirty: for a moment it counts twice.
  if (const auto dirtied = vmstat_bytes(vmstat, "nr_dirtied", page_bytes)) {
    signals.dirtied_bytes = dirtied_bytes_ = std::max(dirtied_bytes_, *dirtied);
  }
  read_disks(inventory, signals);
  signals.volumes = read_volumes(inventory, waiting);
  if (!roots_.cgroups.empty()) {
    signals.cgroups_unified = roots_.cgroups_unified;
    read_cgroups(inventory, cgroups, tenant_of, signals);
  }
  ++reads_;
  return signals;
}

}  // namespace ssdpulse::host
