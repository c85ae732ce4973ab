// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme/nvme_identity.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/sysfs.h"
#include "daemon/nvme_pages/page_fields.h"

namespace ssdpulse::nvme {

namespace {

constexpr std::size_t kMaxAttributeBytes = 4096;
constexpr std::string_view kDiscoveryNqn = "nqn.2014-08.org.nvmexpress.discovery";
constexpr std::uint32_t kBroadcastNsid = 0xffffffff;

/// Takes a number, as the kernel prints it, from the front of `text`.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || (digits > 1 && text.front() == '0')) {
    return std::nullopt;
  }
  text.remove_prefix(digits);
  return number;
}

bool skip(std::string_view& text, std::string_view prefix) {
  const bool there = text.substr(0, prefix.size()) == prefix;
  text.remove_prefix(there ? prefix.size() : 0);
  return there;
}

std::optional<std::uint32_t> controller_number(std::string_view name) {
  const auto number = skip(name, "nvme") ? take_number(name) : std::nullopt;
  return name.empty() ? number : std::nullopt;
}

/// Hidden paths (nvme0c1n1) do not count. A block device's first number is not always its controller's.
bool is_block_device(std::string_view name) {
  return skip(name, "nvme") && take_number(name) && skip(name, "n") && take_number(name) && name.empty();
}

std::string attribute(const std::string& path) {
  const auto text = util::read_file(path, kMaxAttributeBytes);
  return text ? std::string(util::without_padding(*text)) : std::string();
}

NvmeSubsystem read_controller(const std::string& directory, std::uint32_t number) {
  NvmeSubsystem drive;
  drive.controller = number;
  const auto state = util::read_file(directory + "/state", kMaxAttributeBytes);
  drive.state = state ? util::for_log(*state) : state.error().message;
  drive.nqn = attribute(directory + "/subsysnqn");
  drive.transport = util::for_log(attribute(directory + "/transport"));
  drive.address = util::for_log(attribute(directory + "/address"));
  drive.model = attribute(directory + "/model");
  drive.serial = attribute(directory + "/serial");
  drive.firmware = attribute(directory + "/firmware_rev");
  return drive;
}

bool is_discovery(const NvmeSubsystem& drive, const std::string& directory) {
  return drive.nqn == kDiscoveryNqn || attribute(directory + "/cntrltype") == "discovery";
}

/// Controller -> directory of its subsystem. A kernel without the class has subsystems of one controller each.
std::map<std::uint32_t, std::string> find_subsystems(const std::string& sys_root) {
  std::map<std::uint32_t, std::string> subsystem_of;
  const std::string subsystems = sys_root + "/class/nvme-subsystem";
  for (const std::string& subsystem : sysfs::list_directory(subsystems).value_or(std::vector<std::string>{})) {
    const std::string directory = subsystems + "/" + subsystem;
    for (const std::string& name : sysfs::list_directory(directory).value_or(std::vector<std::string>{})) {
      if (const auto number = controller_number(name)) {
        subsystem_of.emplace(*number, directory);
      }
    }
  }
  return subsystem_of;
}

/// sysfs has a multipath head below its subsystem, any other block device below its controller.
void add_namespaces(const std::string& directory, NvmeSubsystem& drive, std::vector<std::string>& warnings) {
  const auto names = sysfs::list_directory(directory);
  if (!names) {
    warnings.push_back("namespaces are missing: " + names.error().message);
    return;
  }
  for (const std::string& name : *names) {
    if (!is_block_device(name)) {
      continue;
    }
    const std::string text = attribute(directory + "/" + name + "/nsid");
    std::string_view rest = text;
    const auto nsid = take_number(rest);
    if (!nsid || !rest.empty() || *nsid == 0 || *nsid == kBroadcastNsid) {
      warnings.push_back(name + " is left out: '" + text + "' is not a namespace identifier");
      continue;
    }
    drive.namespaces.push_back({name, *nsid, 0});
  }
}

}  // namespace

util::OutsideText controller_serial(std::uint32_t controller, const std::string& sys_root) {
  return attribute(sys_root + "/class/nvme/nvme" + std::to_string(controller) + "/serial");
}

util::Result<NvmeHost> read_nvme_host(const std::string& sys_root) {
  NvmeHost host;
  const std::string controllers = sys_root + "/class/nvme";
  const auto names = sysfs::list_directory(controllers);
  if (!names) {
    const bool no_nvme = names.error().error_number == ENOENT;
    return no_nvme ? util::Result<NvmeHost>(host) : tl::make_unexpected(names.error());
  }
  const auto subsystem_of = find_subsystems(sys_root);
  struct Found {
    NvmeSubsystem drive;
    std::vector<std::string> directories;  // those that may hold namespaces
  };
  std::map<std::string, Found> found;
  for (const std::string& name : *names) {
    const auto number = controller_number(name);
    const std::string directory = controllers + "/" + name;
    if (!number) {
      continue;
    }
    NvmeSubsystem drive = read_controller(directory, *number);
    if (is_discovery(drive, directory)) {
      continue;
    }
    const auto subsystem = subsystem_of.find(*number);
    const bool alone = subsystem == subsystem_of.end();
    auto [entry, first] = found.try_emplace(alone ? directory : subsystem->second);
    Found& subsystem_found = entry->second;
    if (first && !alone) {
      subsystem_found.directories.push_back(subsystem->second);
    }
    subsystem_found.directories.push_back(directory);
    const auto rank = [](const NvmeSubsystem& candidate) {
      return std::tuple(!candidate.live(), candidate.controller);
    };
    if (first || rank(drive) < rank(subsystem_found.drive)) {
      subsystem_found.drive = std::move(drive);
    }
  }
  for (auto& [key, entry] : found) {
    for (const std::string& directory : entry.directories) {
      add_namespaces(directory, entry.drive, host.warnings);
    }
    std::sort(entry.drive.namespaces.begin(), entry.drive.namespaces.end(),
              [](const auto& a, const auto& b) { return std::tie(a.nsid, a.device) < std::tie(b.nsid, b.device); });
    host.subsystems.push_back(std::move(entry.drive));
  }
  std::sort(host.subsystems.begin(), host.subsystems.end(),
            [](const NvmeSubsystem& a, const NvmeSubsystem& b) { return a.controller < b.controller; });
  return host;
}

namespace {

constexpr std::uint32_t kAttributeUuidList = 1U << 9U;
constexpr std::uint8_t kOptimalPerformance = 3U << 4U;  // one bit until NVMe 2.0
constexpr std::uint64_t kHostMemoryUnit = 4096;
constexpr std::size_t kUuidEntryBytes = 32;
constexpr std::size_t kMaxEnduranceGroups = 2047;

std::uint16_t little16(Bytes bytes, std::size_t at) { return static_cast<std::uint16_t>(read_number(bytes, at, 2)); }
std::uint32_t little32(Bytes bytes, std::size_t at) { return static_cast<std::uint32_t>(read_number(bytes, at, 4)); }

util::OutsideText text(Bytes bytes, std::size_t at, std::size_t length) {
  return util::without_padding({reinterpret_cast<const char*>(bytes.data()) + at, length});
}

util::Result<void> check_size(Bytes bytes, const std::string& what) {
  if (bytes.size() == kIdentifyBytes) {
    return {};
  }
  return util::fail(what + " has " + std::to_string(bytes.size()) + " bytes instead of 4096");
}

/// One LBA format: metadata, shift of the block size, and rank.
struct LbaFormat {
  std::uint16_t metadata_bytes;
  std::uint8_t shift;
  std::uint8_t rank;
};

LbaFormat format_at(Bytes bytes, std::size_t index) {
  constexpr std::size_t kFormats = 128;
  const std::size_t at = kFormats + 4 * index;
  return {little16(bytes, at), bytes[at + 2], static_cast<std::uint8_t>(bytes[at + 3] & 3U)};
}

std::map<std::uint32_t, std::uint8_t> block_sizes(Bytes bytes) {
  constexpr std::size_t kMaxFormats = 64;
  constexpr std::uint8_t kSmallest = 9;
  constexpr std::uint8_t kLargest = 16;
  const std::size_t count = std::min<std::size_t>(bytes[25] + std::size_t{1}, kMaxFormats);
  const std::size_t in_use = (bytes[26] & 0xfU) | (count > 16 ? (bytes[26] >> 5U & 3U) << 4U : 0U);
  std::map<std::uint32_t, std::uint8_t> sizes;
  if (in_use >= count || format_at(bytes, in_use).metadata_bytes != 0) {
    return sizes;
  }
  for (std::size_t index = 0; index < count; ++index) {
    const LbaFormat format = format_at(bytes, index);
    if (format.metadata_bytes == 0 && format.shift >= kSmallest && format.shift <= kLargest) {
      const auto [known, is_new] = sizes.try_emplace(1U << format.shift, format.rank);
      known->second = index == in_use ? format.rank : known->second;
    }
  }
  return sizes;
}

}  // namespace

util::Result<model::NvmeIdentity> parse_identify_controller(Bytes bytes) {
  if (auto size = check_size(bytes, "Identify Controller"); !size) {
    return tl::make_unexpected(size.error());
  }
  model::NvmeIdentity identity;
  identity.vendor_id = little16(bytes, 0);
  identity.subsystem_vendor_id = little16(bytes, 2);
  identity.serial = text(bytes, 4, 20);
  identity.model = text(bytes, 24, 40);
  identity.firmware = text(bytes, 64, 8);
  identity.version = little32(bytes, 80);
  identity.controller_attributes = little32(bytes, 96);
  identity.admin_commands = little16(bytes, 256);
  identity.endurance_group_max = little16(bytes, 340);
  identity.host_memory_preferred_bytes = little32(bytes, 272) * kHostMemoryUnit;
  identity.host_memory_minimum_bytes = little32(bytes, 276) * kHostMemoryUnit;
  std::copy_n(bytes.begin() + 3072, identity.vendor_specific.size(), identity.vendor_specific.begin());
  // A vendor identifier of 0 is not an error: the kernel's own target has it.
  if (identity.vendor_id == 0xffff || (identity.serial.empty() && identity.model.empty())) {
    return util::fail("Identify Controller names no drive");
  }
  return identity;
}

util::Result<void> parse_identify_namespace(Bytes bytes, model::NvmeNamespace& name_space) {
  if (auto size = check_size(bytes, "Identify Namespace"); !size) {
    return size;
  }
  name_space.endurance_group = little16(bytes, 102);
  // NSFEAT.OPTPERF vouches for the preferred sizes; both count from 0.
  const bool reported = (bytes[24] & kOptimalPerformance) != 0;
  name_space.write_granularity_blocks = reported ? little16(bytes, 64) + 1U : 0;
  name_space.write_alignment_blocks = reported ? little16(bytes, 66) + 1U : 0;
  const std::uint64_t size = read_number(bytes, 0, 8);
  const std::uint64_t used = read_number(bytes, 16, 8);
  name_space.used_share =
      size > 0 && used <= size ? std::optional(static_cast<double>(used) / static_cast<double>(size)) : std::nullopt;
  name_space.block_sizes = block_sizes(bytes);
  return {};
}

util::Result<std::vector<Uuid>> parse_uuid_list(Bytes bytes) {
  if (auto size = check_size(bytes, "the UUID list"); !size) {
    return tl::make_unexpected(size.error());
  }
  std::vector<Uuid> uuids;
  // The first entry is reserved; the others are a header of 16 bytes and the UUID.
  for (std::size_t entry = kUuidEntryBytes; entry < kIdentifyBytes; entry += kUuidEntryBytes) {
    Uuid uuid{};
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(entry + 16), uuid.size(), uuid.begin());
    if (uuid == Uuid{}) {
      break;
    }
    uuids.push_back(uuid);
  }
  return uuids;
}

util::Result<std::vector<std::uint16_t>> parse_endurance_group_list(Bytes bytes) {
  if (auto size = check_size(bytes, "the endurance group list"); !size) {
    return tl::make_unexpected(size.error());
  }
  const std::size_t count = little16(bytes, 0);
  if (count > kMaxEnduranceGroups) {
    return util::fail("the endurance group list claims " + std::to_string(count) + " entries");
  }
  std::vector<std::uint16_t> groups;
  for (std::size_t entry = 1; entry <= count; ++entry) {
    const std::uint16_t group = little16(bytes, 2 * entry);
    if (group <= (groups.empty() ? 0 : groups.back())) {
      return util::fail("the endurance group list is not in ascending order");
    }
    groups.push_back(group);
  }
  return groups;
}

bool has_uuid_list(const model::NvmeIdentity& identity) { return has_attribute<kAttributeUuidList>(identity); }

bool has_endurance_group_list(const model::NvmeIdentity& identity) {
  return has_attribute<kHasEnduranceGroups>(identity);
}

std::shared_ptr<const model::NvmeIdentity> identity_from_sysfs(const NvmeSubsystem& subsystem) {
  model::NvmeIdentity identity;
  identity.controller = "nvme" + std::to_string(subsystem.controller);
  identity.subsystem_nqn = subsystem.nqn;
  identity.transport = subsystem.transport;
  identity.serial = subsystem.serial;
  identity.model = subsystem.model;
  identity.firmware = subsystem.firmware;
  identity.namespaces = subsystem.namespaces;
  return std::make_shared<const model::NvmeIdentity>(std::move(identity));
}

std::shared_ptr<const model::NvmeIdentity> with_namespaces(std::shared_ptr<const model::NvmeIdentity> identity,
                                                           const NvmeSubsystem& subsystem) {
  const auto same = [](const model::NvmeNamespace& a, const model::NvmeNamespace& b) {
    return a.device == b.device && a.nsid == b.nsid;
  };
  const auto& known = identity->namespaces;
  const auto& now = subsystem.namespaces;
  if (std::equal(known.begin(), known.end(), now.begin(), now.end(), same)) {
    return identity;
  }
  auto changed = std::make_shared<model::NvmeIdentity>(*identity);
  changed->namespaces = now;
  for (model::NvmeNamespace& entry : changed->namespaces) {
    for (const model::NvmeNamespace& old : known) {
      if (same(entry, old)) {
        entry = old;
      }
    }
  }
  return changed;
}

}  // namespace ssdpulse::nvme
