// SPDX-License-Identifier: Apache-2.0
// Does one reading of sysfs describe every kind of disk correctly? First on made-up hosts, then on this one.
#include "daemon/host/inventory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/base/sysfs.h"
#include "tests/fixtures/sysfs_host.h"

namespace ssdpulse::host {
namespace {

using model::Coverage;
using model::Device;
using model::Inventory;
using tests::add_nvme;
using tests::add_scsi;
using tests::device_of;
using tests::inventory_of;
using tests::kDefaultFilter;
using tests::kNvme0;
using tests::names_of;
using tests::SysfsHost;

using Strings = std::vector<std::string>;

TEST(Inventory, PlainNvme) {
  const SysfsHost host;
  add_nvme(host, 0, "0", R"(wwid = eui.0025385b71b12345
    diskseq = 9
    size = 4000797360
    mq/0/nr_tags = 1023
    mq/1/nr_tags = 1023
    mq/3/nr_tags = 1023
    queue/nr_requests = 255
    queue/scheduler = mq-deadline [none] kyber
    queue/logical_block_size = 4096
    queue/physical_block_size = 16384
    queue/rotational = 0
    queue/write_cache = write back
    queue/discard_max_bytes = 2199023255040
    queue/iostats = 1)");
  host.partition(std::string(kNvme0), "nvme0n1", "nvme0n1p1", "259:1");
  const Inventory inventory = inventory_of(host);
  ASSERT_EQ(names_of(inventory.devices), (Strings{"nvme0n1"}));
  const Device& nvme = inventory.devices.front();
  EXPECT_EQ(nvme.major, 259U);
  EXPECT_EQ(nvme.minor, 0U);
  EXPECT_EQ(nvme.coverage, Coverage::measured);
  EXPECT_EQ(nvme.model, "Big SSD 2000");
  EXPECT_EQ(nvme.serial, "S0");
  EXPECT_EQ(nvme.firmware, "FW1.2");
  EXPECT_EQ(nvme.wwid, "eui.0025385b71b12345");
  EXPECT_EQ(nvme.transport, "nvme");
  EXPECT_EQ(nvme.scheduler, "none");
  EXPECT_EQ(nvme.size_bytes, 2048408248320U);
  EXPECT_EQ(nvme.logical_block_bytes, 4096U);
  EXPECT_EQ(nvme.physical_block_bytes, 16384U);
  EXPECT_FALSE(nvme.rotational);
  EXPECT_TRUE(nvme.write_back_cache);
  EXPECT_TRUE(nvme.discard);
  EXPECT_TRUE(nvme.iostats);
  ASSERT_EQ(nvme.paths.size(), 1U);
  EXPECT_EQ(nvme.paths[0].disk_name, "nvme0n1");
  EXPECT_EQ(nvme.paths[0].hardware_queues, 4U);  // queue 2 has no CPU and no directory, queue 3 is named in requests
  EXPECT_EQ(nvme.paths[0].queue_depth, 1023U);
  EXPECT_EQ(nvme.paths[0].diskseq, 9U);
}

/// Subsystem 3 with controllers 5 and 7: the numbers in nvme3c5n1 are not those of one controller.
void add_multipath(const SysfsHost& host, bool listed_in_block) {
  host.tree().add("sys/devices/virtual/nvme-subsystem/nvme-subsys3",
                  "model = Twin\nserial = T1\nfirmware_rev = 7\nsubsystem -> ../../../../class/nvme-subsystem");
  host.disk("virtual/nvme-subsystem/nvme-subsys3", "nvme3n1", "259:4",
            "device -> ../../nvme-subsys3\nwwid = uuid.1\nqueue/iostats = 1\nmultipath/nvme3c5n1 -> nowhere");
  for (const std::string controller : {"5", "7"}) {
    const std::string place = "pci0000:00/0000:0" + controller + ":00.0/nvme/nvme" + controller;
    const std::string name = "nvme3c" + controller + "n1";
    host.tree().link("sys/class/nvme/nvme" + controller, "../../devices/" + place);
    host.disk(place, name, "",
              "hidden = 1\ndiskseq = 1" + controller + "\nqueue/nr_requests = 1" + controller +
                  "\nqueue/iostats = " + (controller == "7" ? "0" : "1") + "\nmq/0/nr_tags = 31\nmq/1/nr_tags = 31\n" +
                  "stat = " + controller + " 0 0 0 0 0 0 0 0 0 0");
    if (!listed_in_block) {
      host.tree().remove("sys/block/" + name);
    }
  }
}

TEST(Inventory, KnowsWhetherTheHostIsAVirtualMachine) {
  const auto is_one = [](const tests::SysfsHost& host) {
    return tests::inventory_of(host).devices.at(0).of_virtual_machine;
  };
  const std::vector<std::pair<const char*, const char*>> files{
      {"proc/cpuinfo", "flags\t\t: fpu vme de hypervisor lahf_lm\n"},
      {"sys/hypervisor/type", "xen\n"},
      {"proc/device-tree/hypervisor/compatible", "linux,kvm"}};
  for (const auto& [file, text] : files) {
    const tests::SysfsHost host;
    tests::add_nvme(host, 0, "0", "");
    host.tree().file("proc/cpuinfo", "flags\t\t: fpu vme de lahf_lm\n");
    EXPECT_FALSE(is_one(host));
    host.tree().file(file, text);
    EXPECT_TRUE(is_one(host)) << file;
  }
}

TEST(Inventory, MultipathHeadOwnsItsHiddenPaths) {
  for (const bool listed_in_block : {true, false}) {
    const SysfsHost host;
    add_multipath(host, listed_in_block);
    add_nvme(host, 2, "9");
    const Inventory inventory = inventory_of(host);
    ASSERT_EQ(names_of(inventory.devices), (Strings{"nvme2n1", "nvme3n1"}));
    const Device& head = inventory.devices[1];
    EXPECT_EQ(head.model, "Twin");
    EXPECT_EQ(head.wwid, "uuid.1");
    EXPECT_EQ(head.transport, "nvme");
    EXPECT_FALSE(head.iostats);  // one path keeps none, so there is no sum to compare with
    ASSERT_EQ(head.paths.size(), 2U);
    EXPECT_EQ(head.paths[0].disk_name, "nvme3c5n1");
    EXPECT_EQ(head.paths[0].diskseq, 15U);
    EXPECT_EQ(head.paths[0].hardware_queues, 2U);
    EXPECT_EQ(head.paths[0].queue_depth, 31U);
    EXPECT_EQ(head.paths[1].disk_name, "nvme3c7n1");
    EXPECT_EQ(inventory.devices[0].paths.at(0).disk_name, "nvme2n1");
  }
}

TEST(Filter, ANameWinsOverAPatternAndExcludeOverInclude) {
  const DeviceFilter by_default = kDefaultFilter;
  EXPECT_TRUE(by_default.takes("sda"));
  EXPECT_FALSE(by_default.takes("loop0"));
  const DeviceFilter named{{"loop0", "vda"}, by_default.exclude};
  EXPECT_TRUE(named.takes("loop0")) << "whoever names a disk means it";
  EXPECT_TRUE(named.takes("vda"));
  EXPECT_FALSE(named.takes("loop1"));
  EXPECT_FALSE(named.takes("sda"));
  EXPECT_FALSE((DeviceFilter{{"loop[0-9]"}, by_default.exclude}.takes("loop0"))) << "a pattern names none";
  EXPECT_FALSE((DeviceFilter{{"loop0"}, {"loop0"}}.takes("loop0")));
  EXPECT_FALSE((DeviceFilter{{"*"}, {"sda"}}.takes("sda")));
  EXPECT_TRUE((DeviceFilter{{"*"}, {"sda"}}.takes("sdb")));
  EXPECT_TRUE((DeviceFilter{{"sda"}, {"sd*"}}.takes("sda")));
}

TEST(Inventory, FilterIsAppliedToTheHead) {
  const SysfsHost host;
  add_multipath(host, true);
  add_nvme(host, 0, "0");
  Inventory inventory = inventory_of(host, {{"nvme*"}, {"nvme3c*"}});
  EXPECT_EQ(device_of(inventory, "nvme3n1").coverage, Coverage::measured);
  inventory = inventory_of(host, {{"nvme*"}, {"nvme3*"}});
  EXPECT_EQ(device_of(inventory, "nvme3n1").coverage, Coverage::excluded);
  EXPECT_EQ(device_of(inventory, "nvme3n1").paths.size(), 2U);  // the kernel side must know what to omit
  EXPECT_EQ(device_of(inventory, "nvme0n1").coverage, Coverage::measured);
  EXPECT_EQ(device_of(inventory_of(host, {{"sd*"}, {}}), "nvme0n1").coverage, Coverage::excluded);
}

TEST(Inventory, ScsiIdentityAndTransport) {
  const SysfsHost host;
  const std::string sata = "pci0000:00/ata3/host2/target2:0:0/2:0:0:0";
  add_scsi(host, "sda", sata, "0",
           "vendor = ATA     \nmodel = Samsung SSD 860 \nrev = 2B6Q\nwwid = naa.5002538e40000000");
  host.tree().file("sys/devices/" + sata + "/vpd_pg80", std::string("\0\x80\0\x0c  S3Z8 NB0K  trailing", 26));
  const std::string usb = "pci0000:00/usb2/2-1/host4/target4:0:0/4:0:0:0";
  add_scsi(host, "sdb", usb, "16", "model = \x01Odd\xff\xfe");
  const std::string sas = "pci0000:00/host1/port-1:0/end_device-1:0/target1:0:0/1:0:0:0";
  add_scsi(host, "sdc", sas, "32", "vendor = V\nwwid = t10.ATA     Model X      SERIAL9   ");
  add_scsi(host, "sdd", "pci0000:00/0000:00:05.0/virtio3/host6/target6:0:0/6:0:0:0", "48", "vendor = QEMU");
  add_scsi(host, "sde", "pseudo_0/adapter0/host7/target7:0:0/7:0:0:0", "64", "wwid = t10.Linux   scsi_debug 2000");
  const Inventory inventory = inventory_of(host);
  const Device& sda = device_of(inventory, "sda");
  EXPECT_EQ(sda.model, "ATA Samsung SSD 860");
  EXPECT_EQ(sda.firmware, "2B6Q");
  EXPECT_EQ(sda.serial, "S3Z8 NB0K");
  EXPECT_EQ(sda.wwid, "naa.5002538e40000000");
  EXPECT_EQ(sda.transport, "sata");
  EXPECT_EQ(device_of(inventory, "sdb").model, "\x01Odd\xff\xfe");
  EXPECT_EQ(device_of(inventory, "sdb").transport, "usb");
  EXPECT_EQ(device_of(inventory, "sdc").transport, "sas");
  EXPECT_EQ(device_of(inventory, "sdc").model, "V");
  EXPECT_EQ(device_of(inventory, "sdc").serial, "SERIAL9");
  EXPECT_EQ(device_of(inventory, "sdd").transport, "virtio");
  EXPECT_EQ(device_of(inventory, "sde").transport, "scsi");
  EXPECT_EQ(device_of(inventory, "sde").serial, "");
}

TEST(Inventory, VirtualDisks) {
  const SysfsHost host;
  host.disk("virtual/block", "loop0", "7:0", "size = 0");
  host.disk("virtual/block", "loop1", "7:1", "queue/scheduler = none");
  host.disk("virtual/block", "zram0", "253:0");
  host.tree().add("sys/devices/pci0/virtio1", "subsystem -> ../../../bus/virtio");
  host.disk("pci0/virtio1/block", "vda", "254:0", "device -> ../../../virtio1\nserial = root-disk\nqueue/iostats = 0");
  host.disk("virtual/block", "cciss!c0d0", "104:0");
  host.disk("virtual/block", "bcache0", "250:0");
  Inventory inventory = inventory_of(host);
  EXPECT_EQ(device_of(inventory, "loop0").coverage, Coverage::excluded);
  EXPECT_EQ(device_of(inventory, "zram0").coverage, Coverage::excluded);
  EXPECT_EQ(device_of(inventory, "bcache0").coverage, Coverage::stacked);
  EXPECT_EQ(device_of(inventory, "cciss!c0d0").paths.at(0).disk_name, "cciss/c0d0");
  EXPECT_EQ(device_of(inventory, "vda").serial, "root-disk");
  EXPECT_EQ(device_of(inventory, "vda").transport, "virtio");
  EXPECT_FALSE(device_of(inventory, "vda").iostats);
  inventory = inventory_of(host, {});
  EXPECT_EQ(device_of(inventory, "loop0").coverage, Coverage::empty);
  EXPECT_EQ(device_of(inventory, "loop1").coverage, Coverage::measured);
  EXPECT_EQ(device_of(inventory, "loop1").transport, "loop");
  EXPECT_EQ(device_of(inventory, "loop1").scheduler, "none");
  EXPECT_EQ(device_of(inventory, "loop1").paths.at(0).queue_depth, 64U);
  EXPECT_EQ(device_of(inventory, "loop1").paths.at(0).hardware_queues, 1U);
}

TEST(Inventory, AsksAVirtioDiskForItsSerialOnceForEachIncarnation) {
  const SysfsHost host;
  const std::string disk = "sys/devices/pci0/virtio1/block/vda/";
  host.tree().add("sys/devices/pci0/virtio1", "subsystem -> ../../../bus/virtio");
  host.disk("pci0/virtio1/block", "vda", "254:0", "device -> ../../../virtio1\nserial = first\ndiskseq = 4");
  const Inventory before = inventory_of(host);
  host.tree().file(disk + "serial", "second\n");
  EXPECT_EQ(device_of(inventory_of(host, kDefaultFilter, &before), "vda").serial, "first");
  EXPECT_EQ(device_of(inventory_of(host), "vda").serial, "second");
  host.tree().file(disk + "diskseq", "5\n");
  EXPECT_EQ(device_of(inventory_of(host, kDefaultFilter, &before), "vda").serial, "second");
}

TEST(Inventory, WhatVanishesIsLeftOutAndWhatIsMissingHasDefaults) {
  const SysfsHost host;
  add_nvme(host, 0, "0");
  host.tree().link("sys/block/sdz", "../devices/gone/sdz");  // unplugged between listing and reading
  host.tree().add("sys/devices/half", "sdy/size = 100");     // no longer a number
  host.tree().link("sys/block/sdy", "../devices/half/sdy");
  host.tree().add("sys/devices/bare", "sdx/dev = 8:1\nsdw/dev = nonsense");
  host.tree().link("sys/block/sdx", "../devices/bare/sdx");
  host.tree().link("sys/block/sdw", "../devices/bare/sdw");
  host.array("md1", "9:1", {"gone/sdz"});
  host.tree().remove("proc/self/mountinfo");
  const Inventory inventory = inventory_of(host);
  EXPECT_EQ(names_of(inventory.devices), (Strings{"md1", "nvme0n1", "sdx"}));
  const Device& bare = device_of(inventory, "sdx");
  EXPECT_EQ(bare.coverage, Coverage::empty);
  EXPECT_EQ(bare.logical_block_bytes, 512U);
  EXPECT_TRUE(bare.iostats);
  EXPECT_EQ(bare.paths.at(0).hardware_queues, 1U);
  ASSERT_EQ(inventory.warnings.size(), 1U);
  EXPECT_NE(inventory.warnings[0].find("mountinfo"), std::string::npos);

  host.tree().remove("sys/block");
  const auto none = read_inventory(host.roots(), {});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("sysfs"), std::string::npos);
}

TEST(Inventory, LongAttributesAreCut) {
  const SysfsHost host;
  add_nvme(host, 0, "0");
  host.tree().file(std::string("sys/devices/") + kNvme0 + "/model", std::string(3000, 'm'));
  host.tree().file(std::string("sys/devices/") + kNvme0 + "/serial", std::string(9000, 's'));
  const Inventory inventory = inventory_of(host);
  EXPECT_EQ(inventory.devices.at(0).model, std::string(256, 'm'));
  EXPECT_EQ(inventory.devices.at(0).serial, "");
}

TEST(Names, HeadOfAHiddenPath) {
  EXPECT_EQ(sysfs::head_of_hidden_path("nvme0c1n2"), "nvme0n2");
  EXPECT_EQ(sysfs::head_of_hidden_path("nvme12c345n67"), "nvme12n67");
  for (const std::string other : {"nvme0n1", "nvme0", "nvmec1n1", "nvme0cn1", "nvme0c1n", "nvme0c1n1p1", "sda", ""}) {
    EXPECT_FALSE(sysfs::head_of_hidden_path(other)) << other;
  }
}

TEST(Inventory, SixtyFourDisksTakeTensOfMilliseconds) {
  const SysfsHost host;
  for (int disk = 0; disk < 64; ++disk) {
    std::string attributes = "wwid = eui.1\nqueue/scheduler = [none]\nqueue/write_cache = write back";
    for (int queue = 0; queue < 16; ++queue) {
      attributes += "\nmq/" + std::to_string(queue) + "/nr_tags = 1023";
    }
    add_nvme(host, disk, std::to_string(disk), attributes);
  }
  const std::clock_t start = std::clock();  // CPU time: the host may be busy
  EXPECT_EQ(inventory_of(host).devices.size(), 64U);
  const double took = 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  RecordProperty("milliseconds", std::to_string(took));
  std::printf("64 disks: %.1f ms\n", took);
  EXPECT_LT(took, 2000) << "far beyond any slowness of an instrumented test host";
}

/// /proc/partitions lists every disk and partition that is not hidden and not empty.
std::string read_partitions() {
  std::ifstream file("/proc/partitions");
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_agreement(const Inventory& inventory, const std::string& partitions) {
  std::map<std::string, const Device*> disks;
  for (const Device& device : inventory.devices) {
    disks[device.name] = &device;
  }
  std::set<std::string> seen;
  std::istringstream lines(partitions);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::uint32_t major = 0;
    std::uint32_t minor = 0;
    std::uint64_t kibibytes = 0;
    std::string name;
    if (!(fields >> major >> minor >> kibibytes >> name)) {
      continue;  // the heading
    }
    std::replace(name.begin(), name.end(), '/', '!');
    if (const auto disk = disks.find(name); disk != disks.end()) {
      seen.insert(name);
      EXPECT_EQ(disk->second->major, major) << name;
      EXPECT_EQ(disk->second->minor, minor) << name;
      EXPECT_EQ(disk->second->size_bytes / 1024, kibibytes) << name;
    } else {
      EXPECT_TRUE(std::ifstream("/sys/class/block/" + name + "/partition").good()) << name << " is missing";
    }
  }
  for (const Device& device : inventory.devices) {
    const bool removable = sysfs::read_number("/sys/block/" + device.name + "/removable").value_or(0) != 0;
    if (device.size_bytes > 0 && !removable) {
      EXPECT_EQ(seen.count(device.name), 1U) << device.name;
    }
    if (device.coverage == Coverage::measured && std::ifstream("/sys/block/" + device.name + "/mq/0/nr_tags").good()) {
      EXPECT_GT(device.paths.at(0).queue_depth, 0U) << device.name;
    }
  }
}

TEST(ThisHost, AgreesWithProcPartitions) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string before = read_partitions();
    const auto inventory = read_inventory({}, {});
    ASSERT_TRUE(inventory) << inventory.error().message;
    if (read_partitions() == before) {  // otherwise disks appeared or disappeared meanwhile: read again
      expect_agreement(*inventory, before);
      return;
    }
  }
  FAIL() << "the disks of this host never stood still";
}

}  // namespace
}  // namespace ssdpulse::host
