// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/disks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "daemon/base/sysfs.h"

namespace ssdpulse::host {
namespace {

using sysfs::is_dm;
using sysfs::is_md;
using sysfs::read_number;
using sysfs::read_text;

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kMaxAttachmentBytes = 256;  // of an attachment
constexpr std::uint64_t kSectorBytes = 512;       // the unit of `size`, whatever the logical block is
constexpr std::uint64_t kMaxHardwareQueues = 65536;

/// The number in "host3"; nothing if the name has another form.
std::optional<std::uint64_t> number_after(std::string_view prefix, std::string_view name) {
  return name.starts_with(prefix) ? sysfs::parse_number(name.substr(prefix.size())) : std::nullopt;
}

/// "0000:00:1f.2"; the domain may be longer.
bool is_pci_function(std::string_view name) {
  const std::size_t colon = name.find(':');
  return colon != std::string_view::npos && colon >= 4 && name.size() == colon + 8 && name[colon + 3] == ':' &&
         name[colon + 6] == '.' && name.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
}

/// "2:0:1:0" -> "scsi-0:1:0": without the host. Of a target that has a name of its own, only the logical unit counts.
std::optional<std::string> scsi_address(std::string_view name, bool named_target) {
  const std::size_t colon = named_target ? name.rfind(':') : name.find(':');
  const bool is_address =
      std::count(name.begin(), name.end(), ':') == 3 && name.find_first_not_of("0123456789:") == std::string_view::npos;
  return is_address ? std::optional("scsi-" + std::string(name.substr(colon + 1))) : std::nullopt;
}

/// "1-4.2:1.0" -> "4.2:1.0": the ports from the root hub on, without the bus, and the interface.
std::optional<std::string> usb_port(std::string_view name) {
  const std::size_t dash = name.find('-');
  const bool is_port = dash != std::string_view::npos && dash > 0 &&
                       name.substr(0, dash).find_first_not_of(kDigits) == std::string_view::npos &&
                       name.find_first_not_of("0123456789.:", dash + 1) == std::string_view::npos;
  return is_port ? std::optional("usb-" + std::string(name.substr(dash + 1))) : std::nullopt;
}

/// An adapter may have several SCSI hosts: the first, the second, ... of those that it has.
std::string host_among(const std::string& parent, std::uint64_t host) {
  std::uint64_t lower = 0;
  for (const std::string& name : sysfs::names_in(parent)) {
    const auto number = number_after("host", name);
    lower += number && *number < host ? 1 : 0;
  }
  return lower == 0 ? std::string() : "host-" + std::to_string(lower);
}

/// What stands for a name whose number depends on the order of probing.
struct Numbered {
  std::string_view prefix;
  std::string_view word;
  std::string_view directory;  // <sys>/class/..., then the name
  std::string_view attribute;
};
constexpr auto kNumbered = std::to_array<Numbered>({
    {"ata", "ata-", "ata_port/", "/port_no"},
    {"end_device-", "sas-", "sas_device/", "/sas_address"},
    {"rport-", "fc-", "fc_remote_ports/", "/port_name"},
    {"session", "iscsi-", "iscsi_session/", "/targetname"},
});
/// Nothing stands for these.
constexpr auto kLeftOut =
    std::to_array<std::string_view>({"expander-", "port-", "target", "virtio", "usb", "pci", "connection", "mmc",
                                     "link", "dev", "vport-", "nvme-subsys"});

bool is_numbered(std::string_view name, std::string_view prefix) {
  return name.size() > prefix.size() && name.starts_with(prefix) && kHexDigits.find(name[prefix.size()]) < 10;
}

/// `before`: the text of what comes before it.
std::string word_of(const std::string& sys_root, const std::string& parent, const std::string& name,
                    std::string_view before) {
  const auto has = [&](std::string_view word) { return before.find(word) != std::string_view::npos; };
  if (const auto address = scsi_address(name, has("sas-") || has("fc-") || has("iscsi-"))) {
    return *address;
  }
  if (const auto host = number_after("host", name)) {
    return host_among(parent, *host);
  }
  if (number_after("nvme", name)) {
    const std::string address = read_text(sys_root + "/class/nvme/" + name + "/address");
    return is_pci_function(address) ? std::string() : address;  // of a fabric
  }
  for (const auto& [prefix, word, directory, attribute] : kNumbered) {
    if (is_numbered(name, prefix)) {
      const auto value = read_text(fmt::format("{}/class/{}{}{}", sys_root, directory, name, attribute));
      return value.empty() ? std::string() : std::string(word) + value;
    }
  }
  if (std::any_of(kLeftOut.begin(), kLeftOut.end(), [&](auto prefix) { return is_numbered(name, prefix); })) {
    return {};
  }
  if (auto port = usb_port(name)) {
    return *port;
  }
  constexpr auto kFolders =
      std::to_array<std::string_view>({"devices", "virtual", "platform", "nvme", "mmc_host", "ctl", "sys"});
  return std::find(kFolders.begin(), kFolders.end(), name) == kFolders.end() ? name : std::string();
}

std::uint32_t clamp_to_u32(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

/// "[none] mq-deadline" -> "none"; a disk without a choice just shows "none".
std::string active_scheduler(const std::string& line) {
  const std::string chosen = sysfs::chosen_in(line);
  return chosen.empty() ? line.substr(0, line.find(' ')) : chosen;
}

/// SCSI disks of every kind look alike; their transport shows in their path in the device tree.
std::string scsi_transport(std::string_view device_path) {
  constexpr auto kMarks = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"/ata", "sata"},
      {"/usb", "usb"},
      {"/end_device-", "sas"},
      {"/session", "iscsi"},
      {"/rport-", "fc"},
      {"/virtio", "virtio"},
  });
  for (const auto& [mark, transport] : kMarks) {
    if (device_path.find(mark) != std::string_view::npos) {
      return std::string(transport);
    }
  }
  return "scsi";
}

std::string read_transport(const std::string& directory, const std::string& disk_name) {
  const std::string subsystem = sysfs::link_target(directory + "/device/subsystem");
  if (subsystem.empty()) {
    // A virtual disk is named after its driver: loop0, zram1, dm-0.
    return disk_name.substr(0, disk_name.find_first_of("0123456789-"));
  }
  const std::string_view name = sysfs::base_name(subsystem);
  if (name == "nvme" || name == "nvme-subsystem") {
    return "nvme";
  }
  return name == "scsi" ? scsi_transport(sysfs::link_target(directory)) : std::string(name);
}

/// Page 80h as the drive returned it: a header of four bytes, the last two the length, then the serial number.
std::string scsi_serial(const std::string& directory) {
  constexpr std::size_t kHeader = 4;
  const auto page = sysfs::read_raw(directory + "/device/vpd_pg80");
  if (!page || page->size() <= kHeader) {
    return {};
  }
  const std::size_t length =
      (std::size_t{static_cast<unsigned char>((*page)[2])} << 8) | static_cast<unsigned char>((*page)[3]);
  return std::string(sysfs::trim(std::string_view(*page).substr(kHeader, std::min<std::size_t>(length, 256))));
}

void read_scsi_identity(const std::string& directory, model::Device& device) {
  const std::string vendor = read_text(directory + "/device/vendor");
  const std::string model = read_text(directory + "/device/model");
  device.model = vendor.empty() || model.empty() ? vendor + model : vendor + " " + model;
  device.firmware = read_text(directory + "/device/rev");
  device.wwid = read_text(directory + "/device/wwid");
  device.serial = scsi_serial(directory);
  // Without page 80h, libata's name for a drive still ends in it: "t10.ATA     MODEL     SERIAL".
  if (device.serial.empty() && device.wwid.starts_with("t10.ATA ")) {
    const std::string& wwid = device.wwid.raw();
    device.serial = wwid.substr(wwid.find_last_of(' ') + 1);
  }
}

void read_identity(const std::string& directory, const std::optional<util::OutsideText>& known_serial,
                   model::Device& device) {
  const std::string subsystem(sysfs::base_name(sysfs::link_target(directory + "/device/subsystem")));
  if (subsystem == "scsi") {
    read_scsi_identity(directory, device);
    return;
  }
  device.wwid = read_text(directory + "/wwid");
  if (subsystem == "virtio") {
    device.serial = known_serial ? *known_serial : util::OutsideText(read_text(directory + "/serial"));
    return;
  }
  if (!subsystem.empty()) {
    device.model = read_text(directory + "/device/model");
    device.serial = read_text(directory + "/device/serial");
    device.firmware = read_text(directory + "/device/firmware_rev");
  }
  if (const util::OutsideText name = read_text(directory + "/device/subsysnqn");
      device.serial.empty() || !name.contains(device.serial.raw())) {
    device.subsystem = name;
  }
}

/// Of a drive with several block devices, which one it is.
std::string part_of(const std::string& directory, const std::string& disk_name) {
  constexpr std::string_view kCard = "mmcblk";
  if (disk_name.starts_with(kCard)) {
    const std::size_t end = disk_name.find_first_not_of("0123456789", kCard.size());
    return end == std::string::npos ? std::string() : disk_name.substr(end);
  }
  return read_text(directory + "/nsid");
}

/// Always stacked, even while there is nothing below.
bool is_stacking_driver(std::string_view disk) {
  return is_dm(disk) || is_md(disk) || disk.starts_with("bcache") || disk.starts_with("drbd");
}

}  // namespace

util::OutsideText attachment_of(const std::string& sys_root, const std::string& directory) {
  const std::size_t last = directory.rfind('/');
  std::string target = sysfs::link_target(directory);
  if (target.empty() && last != std::string::npos) {
    target = sysfs::link_target(directory.substr(0, last));  // a hidden path lies below its controller
  } else {
    target.resize(target.size() - std::min(target.size(), sysfs::base_name(target).size() + 1));
  }
  std::string text;
  std::string parent = sys_root;
  std::string_view rest = target;
  while (!rest.empty() && text.size() < kMaxAttachmentBytes) {
    const std::string name(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (name == ".." || name.empty()) {
      continue;
    }
    if (name == "block") {
      break;
    }
    if (is_pci_function(name)) {
      text = "pci-" + name;
    } else if (const std::string word = word_of(sys_root, parent, name, text); !word.empty()) {
      const bool alone = text.empty() || word.starts_with("iscsi-");  // whose hosts come and go with its sessions
      text = alone ? word : text + " " + word;
    }
    parent += "/" + name;
  }
  return util::without_padding(std::string_view(text).substr(0, kMaxAttachmentBytes));
}

bool keeps_iostats(const std::string& directory) { return read_number(directory + "/queue/iostats").value_or(1) != 0; }

model::Path read_path(const std::string& directory, const std::string& disk_name) {
  model::Path path;
  path.disk_name = sysfs::to_kernel_name(disk_name);
  path.diskseq = read_number(directory + "/diskseq").value_or(0);
  // Queues that no CPU is mapped to have no directory: the highest number counts, since requests name their queue by
  // it.
  std::uint64_t queues = 0;
  std::uint64_t tags = 0;
  for (const std::string& queue : sysfs::names_in(directory + "/mq")) {
    const auto number = sysfs::parse_number(queue);
    if (!number || *number >= kMaxHardwareQueues) {
      continue;
    }
    if (queues == 0) {
      // All queues of a disk have the depth of their common tag set; reading each of hundreds would be the whole cost.
      tags = read_number(directory + "/mq/" + queue + "/nr_tags").value_or(0);
    }
    queues = std::max(queues, *number + 1);
  }
  path.hardware_queues = clamp_to_u32(std::max<std::uint64_t>(queues, 1));
  path.queue_depth = clamp_to_u32(std::max(tags, read_number(directory + "/queue/nr_requests").value_or(0)));
  return path;
}

std::optional<model::Device> read_device(const std::string& directory, const std::string& disk_name,
                                         const std::optional<util::OutsideText>& known_serial) {
  const std::string number_text = read_text(directory + "/dev");
  const auto number = sysfs::parse_device_number(number_text);
  if (!number) {
    return std::nullopt;
  }
  model::Device device;
  device.name = disk_name;
  device.major = number->first;
  device.minor = number->second;
  device.size_bytes = read_number(directory + "/size").value_or(0) * kSectorBytes;
  device.transport = read_transport(directory, disk_name);
  read_identity(directory, known_serial, device);
  device.part = part_of(directory, disk_name);

  const std::string queue = directory + "/queue/";
  device.scheduler = active_scheduler(read_text(queue + "scheduler"));
  device.logical_block_bytes = clamp_to_u32(read_number(queue + "logical_block_size").value_or(512));
  device.physical_block_bytes = clamp_to_u32(read_number(queue + "physical_block_size").value_or(512));
  if (const auto kilobytes = read_number(queue + "max_hw_sectors_kb")) {
    device.largest_request_bytes = *kilobytes * 1024;
  }
  // NVMe's preferred write granularity (NPWG) arrives as this; other drivers mean other things by it.
  const auto preferred = device.transport == "nvme" ? read_number(queue + "minimum_io_size") : std::nullopt;
  device.write_granularity_bytes = std::max({512U, device.physical_block_bytes, clamp_to_u32(preferred.value_or(0))});
  device.write_streams = clamp_to_u32(read_number(queue + "max_write_streams").value_or(0));
  device.rotational = read_number(queue + "rotational").value_or(0) != 0;
  const std::string zones = read_text(queue + "zoned");
  device.zoned = !zones.empty() && zones != "none";
  device.write_back_cache = read_text(queue + "write_cache") == "write back";
  device.discard = read_number(queue + "discard_max_bytes").value_or(0) > 0;
  device.iostats = keeps_iostats(directory);

  if (read_text(directory + "/dev") != number_text) {
    return std::nullopt;  // gone, or another disk by now: a uevent is on its way
  }
  return device;
}

Stacking::Stacking(std::string sys_root, std::vector<std::string> disks)
    : sys_root_(std::move(sys_root)), disks_(disks.begin(), disks.end()) {
  for (const std::string& disk : disks_) {
    const std::string directory = sys_root_ + "/block/" + disk;
    const auto slaves = sysfs::names_in(directory + "/slaves");
    if (slaves.empty() && !is_stacking_driver(disk)) {
      continue;
    }
    auto& lower = lower_[disk];
    carriers_.insert(slaves.begin(), slaves.end());
    for (const std::string& slave : slaves) {
      std::string below =
          disks_.count(slave) != 0 ? slave : disk_of_path(sysfs::link_target(directory + "/slaves/" + slave));
      if (!below.empty()) {
        lower.push_back(std::move(below));
      }
    }
    if (is_dm(disk)) {
      mapped_[disk] = {read_text(directory + "/dm/name"), read_text(directory + "/dm/uuid")};
    }
    std::copy_if(slaves.begin(), slaves.end(), std::back_inserter(slaves_[disk]), util::is_plain_name);
  }
}

bool Stacking::is_stacked(const std::string& disk) const { return lower_.count(disk) != 0; }

std::set<std::string> Stacking::disks_under(const std::string& disk) const {
  std::set<std::string> visited;
  std::set<std::string> found;
  add_disks_under(disk, visited, found);
  return found;
}

/// The kernel keeps the graph of slaves free of loops, but a reading while it changes may contain one.
void Stacking::add_disks_under(const std::string& disk, std::set<std::string>& visited,
                               std::set<std::string>& found) const {
  if (!visited.insert(disk).second) {
    return;
  }
  const auto stacked = lower_.find(disk);
  if (stacked == lower_.end()) {
    found.insert(disk);
    return;
  }
  for (const std::string& below : stacked->second) {
    add_disks_under(below, visited, found);
  }
}

std::vector<model::Membership> Stacking::memberships() const {
  std::vector<model::Membership> memberships;
  for (const auto& [array, lower] : lower_) {
    const Mapped* dm = mapped(array);
    for (const std::string& disk : disks_under(array)) {
      memberships.push_back({array, disk, is_md(array) ? "md" : (dm != nullptr ? "dm" : "other"),
                             dm == nullptr ? std::string() : dm->name,
                             dm != nullptr && dm->uuid.starts_with("mpath-")});
    }
  }
  return memberships;
}

const std::vector<std::string>& Stacking::directly_below(const std::string& disk) const {
  static const std::vector<std::string> kNone;
  const auto found = slaves_.find(disk);
  return found == slaves_.end() ? kNone : found->second;
}

const Stacking::Mapped* Stacking::mapped(const std::string& disk) const {
  const auto found = mapped_.find(disk);
  return found == mapped_.end() ? nullptr : &found->second;
}

std::vector<model::Volume> Stacking::volumes() const {
  std::vector<model::Volume> volumes;
  const std::string all = sys_root_ + "/dev/block";
  for (const std::string& number : sysfs::names_in(all)) {
    const std::string path = sysfs::link_target(all + "/" + number);
    const std::string name(sysfs::base_name(path));
    const auto parts = sysfs::parse_device_number(number);
    std::string disk = disk_of_path(path);
    if (parts && !disk.empty()) {
      volumes.push_back({name, parts->first, parts->second, std::move(disk), carriers_.count(name) != 0});
    }
  }
  std::sort(volumes.begin(), volumes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return volumes;
}

std::string Stacking::disk_of_path(std::string_view path) const {
  // .../nvme0n1 is a disk; .../nvme0n1/nvme0n1p2 a partition, which lies in its disk's directory.
  for (int level = 0; level < 2 && !path.empty(); ++level) {
    std::string name(sysfs::base_name(path));
    if (disks_.count(name) != 0) {
      return name;
    }
    path = path.substr(0, path.size() - std::min(path.size(), name.size() + 1));
  }
  return {};
}

std::string Stacking::disk_of_node(const std::string& node) const {
  constexpr std::string_view kMapper = "mapper/";
  if (node.starts_with(kMapper)) {
    const std::string name = node.substr(kMapper.size());
    const auto found =
        std::find_if(mapped_.begin(), mapped_.end(), [&](const auto& entry) { return entry.second.name == name; });
    return found == mapped_.end() ? std::string() : found->first;
  }
  const std::string name = sysfs::to_sysfs_name(node);
  return disks_.count(name) != 0 ? name : disk_of_path(sysfs::link_target(sys_root_ + "/class/block/" + name));
}

}  // namespace ssdpulse::host
