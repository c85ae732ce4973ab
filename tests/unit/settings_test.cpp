// SPDX-License-Identifier: Apache-2.0
// Is what is read from a host what its files say, and are the settings recorded that people change? On made-up trees.
#include <gtest/gtest.h>
#include <linux/dm-ioctl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "daemon/host/crypt_table.h"
#include "daemon/host/settings_reader.h"
#include "daemon/host/settings_record.h"
#include "tests/fixtures/sysfs_host.h"

namespace ssdpulse::host {
namespace {

TEST(settings, of_a_host) {
  const tests::SysfsHost host;
  tests::add_nvme(host, 0, "0", R"(queue/scheduler = [none] mq-deadline
    queue/nomerges = 2
    mq/0/nr_tags = 1023)");
  tests::add_nvme(host, 1, "5");
  host.partition(tests::kNvme0, "nvme0n1", "nvme0n1p1", "259:1");
  host.tree().add("sys/devices/" + std::string(tests::kNvme0), R"(nvme0n1/nvme0n1p1/start = 2048
    queue_count = 5
    nvme0n1/nvme0n1p1/stat = 1 2 3
    device/current_link_width = 4)");
  host.array("dm-0", "252:0", {std::string(tests::kNvme0) + "/nvme0n1/nvme0n1p1"}, "dm/name = data\ndm/uuid = CRYPT-x");
  host.mounts(
      "31 1 259:1 / /my\\040data rw,noatime shared:1 - xfs /dev/nvme0n1p1 rw,sunit=128\n"
      "32 1 0:9 / /run rw - tmpfs tmpfs rw\n");
  host.tree().add(".", R"(proc/meminfo = MemTotal:  1024 kB
    proc/7/comm = kvm
    proc/8/comm = qemu-ga
    proc/9/comm = qemu-system-x86
    proc/9/cmdline = qemu -hda /a
    proc/sys/vm/swappiness = 10
    sys/devices/system/cpu/cpu0/
    sys/devices/system/cpu/cpu1/
    sys/devices/system/cpu/cpufreq/
    sys/fs/cgroup/system.slice/db.service/io.max = 259:0 rbps=1
    usr/lib/systemd/system/fstrim.timer = OnCalendar=weekly
    usr/lib/systemd/system/fstrim.timer.d/a.conf = RandomizedDelaySec=1h
    usr/local/lib/systemd/system/fstrim.timer.d/b.conf = OnCalendar=Sun 04:00
    etc/systemd/system/fstrim.timer.d/a.conf = OnCalendar=Mon 05:00
    etc/systemd/system/fstrim.timer.d/c.conf.dpkg-old = OnCalendar=Tue 06:00
    etc/systemd/system/timers.target.wants/fstrim.timer = x)");
  host.tree().file("proc/swaps", "Filename Type\n/dev/nvme0n1p1 partition 1 0 -2\n");
  const auto all = read({host.tree().path()}, tests::inventory_of(host));
  ASSERT_EQ(all.disks.size(), 2U);
  const auto& disk = all.disks[0];
  EXPECT_EQ(disk.files.text("queue/scheduler"), "[none] mq-deadline");
  EXPECT_EQ(disk.files.number("queue/nomerges"), 2U);
  EXPECT_FALSE(disk.files.number("queue/rq_affinity"));
  EXPECT_EQ(disk.controller_name, "nvme0");
  EXPECT_EQ(disk.controller.number("device/current_link_width"), 4U);
  ASSERT_EQ(disk.partitions.size(), 1U);
  EXPECT_EQ(disk.partitions[0].start_bytes, 1U << 20U);
  ASSERT_EQ(all.arrays.size(), 1U);
  EXPECT_EQ(all.arrays[0].files.text("dm/name"), "data");
  EXPECT_EQ(all.arrays[0].files.text("slave/stat"), "1 2 3");
  EXPECT_EQ(all.virtual_machines, (std::vector<util::OutsideText>{"", "qemu -hda /a\n"})) << "one is not readable";
  EXPECT_EQ(all.arrays[0].disks, std::vector<std::string>{"nvme0n1"});
  ASSERT_EQ(all.mounts.size(), 1U);
  EXPECT_EQ(all.mounts[0].mountpoint, "/my data");
  EXPECT_EQ(all.mounts[0].options, (std::set<util::OutsideText>{"rw", "noatime", "sunit=128"}));
  EXPECT_EQ(all.memory_bytes, 1U << 20U);
  EXPECT_EQ(all.cpus, 2U);
  ASSERT_EQ(all.swaps.size(), 1U);
  EXPECT_EQ(all.swaps[0].disks, std::set<std::string>{"nvme0n1"});
  EXPECT_EQ(all.cgroup_limits.size(), 1U);
  EXPECT_EQ(all.fstrim.enabled, true);
  EXPECT_EQ(all.fstrim.calendar, "Sun 04:00") << "of the last .conf by name, wherever it is";
  EXPECT_EQ(all.fstrim.delay, "") << "a file hides those of its name";
  host.tree().link("etc/systemd/system/fstrim.timer", "/dev/null");
  EXPECT_EQ(read({host.tree().path()}, tests::inventory_of(host)).fstrim.enabled, false) << "masked";
  host.tree().remove("etc/systemd/system/fstrim.timer");
  host.tree().remove("etc/systemd/system/timers.target.wants");
  EXPECT_EQ(read({host.tree().path()}, tests::inventory_of(host)).fstrim.enabled, false);
  host.tree().remove("etc");
  EXPECT_FALSE(read({host.tree().path()}, tests::inventory_of(host)).fstrim.enabled);
}

TEST(settings, of_the_paths_of_a_head) {
  const tests::SysfsHost host;
  host.tree().add("sys/devices/virtual/nvme-subsystem/nvme-subsys3",
                  "iopolicy = numa\nsubsystem -> ../../../../class/nvme-subsystem");
  host.disk("virtual/nvme-subsystem/nvme-subsys3", "nvme3n1", "259:4", "device -> ../../nvme-subsys3");
  for (const std::string controller : {"3", "7"}) {
    const std::string place = "pci0000:00/0000:0" + controller + ":00.0/nvme/nvme" + controller;
    host.tree().add("sys/devices/" + place, controller == "3" ? "state = live" : "state = connecting");
    host.tree().link("sys/class/nvme/nvme" + controller, "../../devices/" + place);
    host.disk(place, "nvme3c" + controller + "n1", "", "ana_state = optimized\nstat = 1 2 3 " + controller);
  }
  host.tree().add(".", "proc/uptime = 3600.25 7000.00");
  const auto all = read({host.tree().path()}, tests::inventory_of(host));
  ASSERT_EQ(all.disks.size(), 1U);
  const auto& files = all.disks[0].files;
  EXPECT_EQ(files.text("device/iopolicy"), "numa");
  EXPECT_EQ(files.text("paths/nvme3c3n1/state"), "live");
  EXPECT_EQ(files.text("paths/nvme3c7n1/state"), "connecting");
  EXPECT_EQ(files.text("paths/nvme3c7n1/ana_state"), "optimized");
  EXPECT_EQ(files.text("paths/nvme3c7n1/stat"), "1 2 3 7");
  EXPECT_EQ(all.uptime_seconds, 3600.25);
  EXPECT_EQ(recorded(all.disks[0]).values.at("iopolicy"), "numa");
}

/// A head, nvme3n1, and the controllers of its subsystem by their numbers and states.
std::string controller_of_head(const std::map<std::string, std::string>& controllers) {
  const tests::SysfsHost host;
  const std::string subsystem = "virtual/nvme-subsystem/nvme-subsys3";
  host.tree().add("sys/devices/" + subsystem, "subsystem -> ../../../../class/nvme-subsystem");
  host.disk(subsystem, "nvme3n1", "259:4", "device -> ../../nvme-subsys3");
  for (const auto& [number, state] : controllers) {
    const std::string place = "pci0000:00/0000:00:" + number + ".0/nvme/nvme" + number;
    host.tree().add("sys/devices/" + place, "state = " + state + "\nqueue_count = " + number);
    host.tree().link("sys/class/nvme/nvme" + number, "../../devices/" + place);
    host.tree().link("sys/devices/" + subsystem + "/nvme" + number, "../../../" + place);
  }
  // Of another subsystem, whose controller has the number that the head's name shows.
  host.tree().add("sys/class/nvme/nvme3", "state = live\nqueue_count = 3");
  const auto all = read({host.tree().path()}, tests::inventory_of(host));
  EXPECT_EQ(all.disks.size(), 1U);
  const model::DiskSettings& disk = all.disks.at(0);
  EXPECT_EQ("nvme" + disk.controller.text("queue_count").raw(),
            disk.controller_name.empty() ? "nvme" : disk.controller_name);
  return disk.controller_name;
}

TEST(settings, the_controller_of_a_disk_is_the_one_that_the_kernel_links) {
  EXPECT_EQ(controller_of_head({{"0", "live"}, {"1", "live"}}), "nvme0");
  EXPECT_EQ(controller_of_head({{"0", "connecting"}, {"1", "live"}}), "nvme1");
  EXPECT_EQ(controller_of_head({{"7", "live"}}), "nvme7") << "the other one was removed";
  EXPECT_EQ(controller_of_head({{"10", "live"}, {"2", "live"}}), "nvme2");
  EXPECT_EQ(controller_of_head({{"4", "dead"}, {"5", "resetting"}}), "nvme4");
  EXPECT_EQ(controller_of_head({}), "") << "all paths are gone";
  const tests::SysfsHost host;  // without multipath: the disk's number need not be its controller's either
  host.tree().add("sys/devices/pci0000:00/0000:00:05.0/nvme/nvme5", "subsystem -> ../../../../../class/nvme");
  host.disk("pci0000:00/0000:00:05.0/nvme/nvme5", "nvme0n1", "259:0", "device -> ../../nvme5");
  EXPECT_EQ(read({host.tree().path()}, tests::inventory_of(host)).disks.at(0).controller_name, "nvme5");
}

/// A kernel with one volume, number 253:300, which has one target with its table.
struct DeviceMapper {
  std::string target = "crypt";
  std::string table;
  std::uint32_t flags = 0;
  std::uint32_t targets = 1;
  std::uint32_t start = sizeof(dm_ioctl);
  bool refuses = false;

  [[nodiscard]] std::optional<std::set<std::string>> asked(std::size_t room = 4096) const {
    std::vector<char> buffer(room, 'x');
    const auto flags_of_it = crypt_flags(253, 300, buffer, [this](std::span<char> asked_for) {
      dm_ioctl header{};
      std::memcpy(&header, asked_for.data(), sizeof header);
      EXPECT_EQ(header.version[0], 4U);
      EXPECT_EQ(header.dev, 0x10fd2cU) << "the minor number is in two parts";
      EXPECT_EQ(header.data_size, asked_for.size());
      EXPECT_EQ(header.flags & (DM_STATUS_TABLE_FLAG | DM_SECURE_DATA_FLAG),
                DM_STATUS_TABLE_FLAG | DM_SECURE_DATA_FLAG);
      header.flags = flags;
      header.target_count = targets;
      header.data_start = start;
      std::memcpy(asked_for.data(), &header, sizeof header);
      dm_target_spec spec{};
      std::memcpy(spec.target_type, target.data(), std::min(target.size(), sizeof spec.target_type));
      if (asked_for.size() > sizeof header + sizeof spec) {
        const std::size_t at = sizeof header + sizeof spec;
        std::memcpy(asked_for.data() + sizeof header, &spec, sizeof spec);
        std::memcpy(asked_for.data() + at, table.data(), std::min(table.size(), asked_for.size() - at));
      }
      return !refuses;
    });
    EXPECT_TRUE(std::all_of(buffer.begin(), buffer.end(), [](char one) { return one == 0; })) << "the key is there";
    return flags_of_it;
  }
};

TEST(crypt_table, its_flags_are_read_and_its_key_is_wiped) {
  using Flags = std::set<std::string>;
  DeviceMapper kernel;
  kernel.table = "aes-xts-plain64 0123456789abcdef0123456789abcdef 0 259:1 32768 3 allow_discards no_read_workqueue x";
  EXPECT_EQ(kernel.asked(), (Flags{"allow_discards", "no_read_workqueue"}));
  kernel.table = "aes-xts-plain64 :64:logon:cryptsetup:u-d0 0 259:1 32768 2 no_write_workqueue sector_size:4096";
  EXPECT_EQ(kernel.asked(), Flags{"no_write_workqueue"});
  kernel.table = "aes-xts-plain64 no_read_workqueue 0 259:1 32768";  // a key with that name
  EXPECT_EQ(kernel.asked(), Flags{});
}

TEST(crypt_table, anything_else_is_not_known) {
  DeviceMapper kernel;
  kernel.table = "aes 00 0 259:1 0 1 allow_discards";
  ASSERT_TRUE(kernel.asked());
  for (const std::size_t room : {std::size_t{0}, sizeof(dm_ioctl), sizeof(dm_ioctl) + sizeof(dm_target_spec)}) {
    EXPECT_FALSE(kernel.asked(room)) << room;
  }
  EXPECT_TRUE(kernel.asked(sizeof(dm_ioctl) + sizeof(dm_target_spec) + 1)) << "and no text without an end is left";
  const auto with = [&](auto change) {
    DeviceMapper other = kernel;
    change(other);
    return other.asked();
  };
  EXPECT_FALSE(with([](auto& k) { k.refuses = true; }));
  EXPECT_FALSE(with([](auto& k) { k.target = "verity"; }));
  EXPECT_FALSE(with([](auto& k) { k.target = "crypt but sixteen"; }));
  EXPECT_FALSE(with([](auto& k) { k.targets = 0; }));
  EXPECT_FALSE(with([](auto& k) { k.targets = 2; }));
  EXPECT_FALSE(with([](auto& k) { k.flags = DM_BUFFER_FULL_FLAG; }));
  for (const std::uint32_t start : {0U, 1U, 4095U, 4096U, 4097U, 0xffffffffU}) {
    EXPECT_FALSE(with([&](auto& k) { k.start = start; })) << start;
  }
}

model::RecordedSettings recorded_of(const tests::SysfsHost& host, const std::string& device) {
  return recorded(read_disk_settings({host.tree().path()}, tests::device_of(tests::inventory_of(host), device)));
}

TEST(recorded, the_cache_and_the_latency_tolerance_lie_elsewhere_by_kind_of_disk) {
  const tests::SysfsHost host;
  tests::add_nvme(host, 0, "0", "queue/scheduler = mq-deadline [none]\nqueue/nomerges = 2");
  // Under multipath the disk's own `device` is the subsystem, which has no such file.
  host.tree().add("sys/devices/" + std::string(tests::kNvme0), "power/pm_qos_latency_tolerance_us = 100000");
  tests::add_scsi(host, "sda", "pci/ata1/host0/target0:0:0/0:0:0:0", "0", "");
  host.tree().add("sys/devices/pci/ata1/host0/target0:0:0/0:0:0:0", R"(scsi_disk/0:0:0:0/cache_type = write back
    queue_depth = 32
    timeout = 30)");
  host.disk("pci/virtio0", "vda", "254:0", "cache_type = write through");
  const auto nvme = recorded_of(host, "nvme0n1").values;
  EXPECT_EQ(nvme.at("power/pm_qos_latency_tolerance_us"), "100000");
  EXPECT_EQ(nvme.at("scheduler"), "none") << "the one that is used";
  EXPECT_EQ(nvme.at("nomerges"), "2");
  EXPECT_EQ(nvme.at("firmware"), "FW1.2");
  EXPECT_EQ(nvme.count("cache_type"), 0U) << "what cannot be read is not there";
  const auto sata = recorded_of(host, "sda").values;
  EXPECT_EQ(sata.at("cache_type"), "write back");
  EXPECT_EQ(sata.at("queue_depth"), "32");
  EXPECT_EQ(sata.at("timeout"), "30");
  EXPECT_EQ(recorded_of(host, "vda").values.at("cache_type"), "write through");
}

TEST(recorded, what_is_set_up_on_a_disk) {
  model::DiskSettings disk;
  disk.device.name = "sda";
  disk.partitions = {{"sda1", 1 << 20, 1000}};
  model::DiskSettings array;
  array.device.name = "md0";
  array.files.set("md/sync_speed_max", "50000 (local)");
  array.files.set("md/sync_action", "check");
  array.files.set("md/dev-sda1/offset", "2048");
  array.files.set("md/dev-sdb1/offset", "4096");
  model::DiskSettings crypt;
  crypt.device.name = "dm-0";
  crypt.files.set("dm/name", "secret");
  crypt.files.set("queue/discard_max_bytes", "0");
  auto values = recorded(disk, {array, crypt}).values;
  EXPECT_EQ(values.at("partition sda1"), "1000 bytes at 1048576");
  EXPECT_EQ(values.at("volume md0 sync_speed_max"), "50000 (local)");
  EXPECT_EQ(values.at("volume md0 offset of sda1"), "2048");
  EXPECT_EQ(values.at("volume secret discard_max_bytes"), "0");
  EXPECT_EQ(values.size(), 6U) << "and its size, and that of its blocks";
}

TEST(recorded, a_timer_is_enabled_at_a_time_or_not) {
  EXPECT_EQ(recorded("fstrim.timer", {true, "weekly", ""}).values.at("fstrim.timer"), "enabled OnCalendar=weekly");
  EXPECT_EQ(recorded("fstrim.timer", {true, "weekly", "100min"}).values.at("fstrim.timer"),
            "enabled OnCalendar=weekly RandomizedDelaySec=100min");
  EXPECT_EQ(recorded("fstrim.timer", {false, "weekly", ""}).values.at("fstrim.timer"), "disabled");
  EXPECT_TRUE(recorded("fstrim.timer", {}).values.empty());
}

TEST(recorded, a_value_that_changes_by_itself_is_not_a_setting) {
  model::DiskSettings disk;
  disk.device.name = "nvme0n1";
  for (const char* file : {"md/sync_action", "mq/0/nr_tags", "queue/physical_block_size"}) {
    disk.files.set(file, "1");
  }
  for (const char* file : {"state", "device/current_link_speed", "queue_count"}) {
    disk.controller.set(file, "1");
  }
  EXPECT_EQ(recorded(disk).device, "nvme0n1");
  EXPECT_EQ(recorded(disk).values.size(), 2U) << "its size, and that of its blocks";
}

TEST(recorded, the_host_has_names_that_the_history_knows) {
  const tests::SysfsHost host;
  host.tree().add(".", R"(proc/sys/kernel/osrelease = 6.1.0
    proc/sys/vm/dirty_ratio = 20
    proc/sys/vm/dirty_expire_centisecs = 3000
    sys/module/pcie_aspm/parameters/policy = default [performance]
    sys/module/nvme_core/parameters/multipath = Y
    sys/fs/cgroup/io.cost.qos = 8:0 enable=1)");
  const auto all = recorded(read_host_files({host.tree().path()}));
  EXPECT_EQ(all.device, "");
  EXPECT_EQ(all.values, (std::map<util::OutsideText, util::OutsideText>{{"kernel", "6.1.0"},
                                                                        {"vm.dirty_ratio", "20"},
                                                                        {"vm.dirty_expire_centisecs", "3000"},
                                                                        {"pcie_aspm/parameters/policy", "performance"},
                                                                        {"nvme_core/parameters/multipath", "Y"}}));
}

}  // namespace
}  // namespace ssdpulse::host
