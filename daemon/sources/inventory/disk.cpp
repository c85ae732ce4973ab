// SPDX-License-Identifier: Apache-2.0
// Where each subsystem keeps its identity, and what a queue reports in sysfs (Documentation/ABI/stable/sysfs-block).
#include "daemon/sources/inventory/disk.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "daemon/sources/sysfs.h"

namespace ssdpulse::inventory {

namespace sysfs = sources::sysfs;

namespace {

using sysfs::read_number;
using sysfs::read_text;

constexpr std::uint64_t kSectorBytes = 512;  // the unit of `size`, whatever the logical block is
constexpr std::uint64_t kMaxHardwareQueues = 65536;

std::uint32_t clamp_to_u32(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

/// "[none] mq-deadline" -> "none"; a disk without a choice just shows "none".
std::string active_scheduler(const std::string& line) {
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) {
    return line.substr(0, line.find(' '));
  }
  return line.substr(open + 1, close - open - 1);
}

/// SCSI disks of every kind look alike; their transport shows in their place in the device tree.
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

}  // namespace

bool keeps_iostats(const std::string& directory) { return read_number(directory + "/queue/iostats").value_or(1) != 0; }

model::Path read_path(const std::string& directory, const std::string& disk_name) {
  model::Path path;
  path.disk_name = sysfs::to_kernel_name(disk_name);
  path.diskseq = read_number(directory + "/diskseq").value_or(0);
  // Queues that no CPU is mapped to have no directory: the highest number counts, since requests name their queue by
  // it.
  std::uint64_t queues = 0;
  std::uint64_t tags = 0;
  for (const std::string& queue : sysfs::list_directory(directory + "/mq").value_or(std::vector<std::string>{})) {
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

}  // namespace ssdpulse::inventory
