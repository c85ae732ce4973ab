# SPDX-License-Identifier: Apache-2.0
"""I/O on partitions, LVM, md and dm-multipath counts once, under the disks that do it; the layers shown are right."""
import time

import figures
import machine
from devices import Backend, Nvme
from lib import metrics

KERNELS_IN_CI = ("newest",)  # the long form has all
MACHINE = {"append": "nvme_core.multipath=N"}
SHARES_GUEST = True
NAMES = ("left", "right", "third", "fourth")
IOS, HALF = 400, 64 << 10  # a stripe's part on one disk
SECTOR = 512
# Only lvm itself makes the nodes: the guest has no udev.
LVM = ("activation { udev_sync=0 udev_rules=0 } backup { backup=0 archive=0 } "
       "devices { obtain_device_list_from_udev=0 use_devicesfile=0 }")


def devices():
    return [Nvme(name, Backend("256M", data=True)) for name in NAMES]


class Accounts:
    """The daemon's counts and the kernel's own, from one call of since() to the next."""

    # Fields of the kernel's statistics: I/Os, sectors; and the daemon's operations that correspond to them.
    KINDS = {"read": (0, 2, ["read"]), "write": (4, 6, ["write", "write_zeroes"]), "discard": (11, 13, ["discard"])}

    def __init__(self, vm, daemon, disks):
        self._vm, self._daemon, self._disks = vm, daemon, disks
        self._stat, self._scrape = self._settle()

    def _read(self):
        lines = self._vm.sh("cat " + " ".join(f"/sys/block/{disk}/stat" for disk in self._disks)).splitlines()
        return {disk: [int(number) for number in line.split()] for disk, line in zip(self._disks, lines)}

    def _settle(self):
        """Both, read while there was no I/O: a file system reads its bitmaps ahead at any time."""
        for _ in range(5):
            stat, scrape = self._read(), self._daemon.at_rest(2.2)
            if stat == self._read():
                return stat, scrape
        raise machine.GuestError("the disks do not come to rest")

    def since(self):
        """Two of {disk: {kind: (I/Os, bytes)}}: as counted by the daemon, and by the kernel."""
        stat, scrape = self._settle()
        difference = metrics.Difference(self._scrape, scrape)
        have, want = {}, {}
        for disk in self._disks:
            done = [now - before for now, before in zip(stat[disk], self._stat[disk])]
            want[disk] = {kind: (done[ios], done[sectors] * SECTOR) for kind, (ios, sectors, _) in self.KINDS.items()}
            have[disk] = {kind: (sum(figures.ios(difference, disk, operation) for operation in operations),
                                 sum(figures.size(difference, disk, operation) for operation in operations))
                          for kind, (_, _, operations) in self.KINDS.items()}
        self._stat, self._scrape = stat, scrape
        return have, want


def build(vm, left, right, third, fourth):
    """Two partitions on left and on right; md0 mirrors the second ones; a volume striped over third and fourth."""
    for disk in (left, right):
        vm.sh(f"printf 'label: gpt\\nsize=64M\\nsize=64M\\n' | sfdisk --quiet /dev/{disk}")
    # The array must not note on its members that it is idle: they should write only what is written to it.
    vm.sh(f"mkdir -p /tmp/lvm; echo '{LVM}' >/tmp/lvm/lvm.conf; modprobe -a dm_mod raid1; "
          f"mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --assume-clean --bitmap=none "
          f"/dev/{left}p2 /dev/{right}p2 && "
          "echo 0 >/sys/block/md0/md/safe_mode_delay && dd if=/dev/zero of=/dev/md0 bs=4k count=1 conv=fsync")
    lvm(vm, "vgcreate -q wide", f"/dev/{third} /dev/{fourth}")
    lvm(vm, f"lvcreate --stripes 2 --stripesize {HALF >> 10}k --extents 100%FREE --name striped", "wide")
    vm.sh("".join(f"echo 2 >/sys/block/{disk}/queue/nomerges; " for disk in (left, right, third, fourth)))


def lvm(vm, command, on):
    return vm.sh(f"LVM_SYSTEM_DIR=/tmp/lvm lvm {command} --yes {on} 2>&1")


def load(vm, check, accounts, node, block_size):
    """fio on the node: {kind: (I/Os, bytes)} by fio, {disk: the same, as counted}."""
    job = vm.fio(node, rw="randrw", bs=block_size, iodepth=8, number_ios=IOS)
    have, want = accounts.since()
    check.equal(have, want, f"{node}: as the kernel says")
    return {kind: (job[name]["total_ios"], job[name]["io_bytes"])
            for kind, name in (("read", "read"), ("write", "write"), ("discard", "trim"))}, have


def partition(vm, check, accounts, disks):
    job, have = load(vm, check, accounts, f"{disks[0]}p1", "4k")
    nothing = dict.fromkeys(job, (0, 0))
    check.equal([have[disk] for disk in disks], [job, nothing, nothing, nothing], "partition: its own disk alone")


def striped(vm, check, accounts, disks):
    job, have = load(vm, check, accounts, "mapper/wide-striped", 2 * HALF)
    half = {kind: (ios, size // 2) for kind, (ios, size) in job.items()}
    check.equal([have[disk] for disk in disks[2:]], [half, half], "striped volume: half of each I/O on each disk")


def mirror(vm, check, accounts, disks):
    job, have = load(vm, check, accounts, "md0", "16k")
    left, right = have[disks[0]], have[disks[1]]
    check.equal([left["write"], right["write"]], [job["write"]] * 2, "mirror: each write on both disks")
    check.equal(tuple(map(sum, zip(left["read"], right["read"]))), job["read"], "mirror: each read on one of them")


INFOS = {"ssdpulse_device_member_info": ("array", "device", "kind", "name"),
         "ssdpulse_filesystem_info": ("device", "discard", "fstype", "mountpoint")}


def wait_for_infos(check, daemon, what, members, filesystems, seconds=15):
    """Tuples in the order of INFOS."""
    want = dict(zip(INFOS, (members, filesystems)))
    deadline = time.monotonic() + seconds
    while True:
        scrape = daemon.scrape()
        have = {name: {tuple(dict(series).get(label, "") for label in labels) for series in scrape.series(name)}
                for name, labels in INFOS.items()}
        if have == want or time.monotonic() > deadline:
            check.equal(have, want, f"{what}: what lies on what")
            return
        time.sleep(0.3)


def file_systems(vm, check, daemon, accounts, disks, members):
    """One on a partition, one on a volume on the mirror of partitions."""
    left, right = disks[:2]
    lvm(vm, "vgcreate -q narrow", "/dev/md0")
    lvm(vm, "lvcreate --extents 100%FREE --name deep", "narrow")
    vm.sh("modprobe -q ext4; mkdir -p /mnt/plain /mnt/deep; "
          f"for d in {left}p1 mapper/narrow-deep; do mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=0,"
          f"lazy_journal_init=0 /dev/$d || exit; done; mount /dev/{left}p1 /mnt/plain && "
          "mount -o discard /dev/mapper/narrow-deep /mnt/deep")
    wait_for_infos(check, daemon, "mounted", members | {("dm-1", disk, "dm", "narrow-deep") for disk in (left, right)},
                   {(left, "false", "ext4", "/mnt/plain")} | {(d, "true", "ext4", "/mnt/deep") for d in (left, right)})
    vm.sh("for d in plain deep; do for i in $(seq 20); do dd if=/dev/zero of=/mnt/$d/$i bs=64k count=4 conv=fsync; "
          "done 2>/dev/null; rm /mnt/$d/1*; sync; fstrim /mnt/$d; done; echo 3 >/proc/sys/vm/drop_caches; "
          "cat /mnt/*/2* >/dev/null; sync")
    # The number of I/Os, including those with a flush before or after them, is checked by the drift in the end.
    have, want = ({disk: {kind: size for kind, (_, size) in kinds.items()} for disk, kinds in account.items()}
                  for account in accounts.since())
    check.equal(have, want, "file systems: bytes, as the kernel says")
    check.that(all(have[left].values()) and have[right]["write"] >= 5 << 20 and have[right]["discard"],
               "file systems: they did write, read and discard")


def multipath(vm, check, daemon):
    """Flush sequences are run by the multipath device, so that its path sees a flush without a parent. Its fsyncs are
    still commits, and the kernel counts their flushes as reads."""
    scsi = "/sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block"
    vm.sh("modprobe sd_mod; modprobe scsi_debug dev_size_mb=64 delay=0 max_luns=1; modprobe -a dm-multipath dm-round-robin")
    vm.wait_for(f"ls {scsi}/*")
    path = vm.sh(f"ls {scsi}")
    vm.sh(f"dmsetup create paths --table '0 131072 multipath 0 0 1 1 round-robin 0 1 1 /dev/{path} 1'")
    [array] = vm.sh(f"ls /sys/block/{path}/holders").split()
    before = daemon.at_rest(6)
    job = vm.fio(array, rw="randrw", bs="4k", ioengine="psync", number_ios=60, fsync=1)
    difference = metrics.Difference(before, daemon.at_rest(6))
    fsyncs = job["sync"]["total_ios"]
    check.equal(difference.histogram(figures.TOTAL, device=path, operation="commit").count, fsyncs, "multipath: commits")
    check.equal({operation: figures.ios(difference, path, operation) for operation in ("read", "write", "flush")},
                {"read": job["read"]["total_ios"], "write": job["write"]["total_ios"], "flush": fsyncs},
                "multipath: I/Os of its path")
    figures.at_rest(check, difference.after, path, ("device_pending",))  # read before it was known
    vm.sh("dmsetup remove paths; modprobe -r scsi_debug")


def run(vm, check):
    disks = [vm.disk(name) for name in NAMES]
    left, right, third, fourth = disks
    build(vm, *disks)
    daemon = machine.Daemon(vm)
    members = ({("md0", disk, "md", "") for disk in (left, right)} |
               {("dm-0", disk, "dm", "wide-striped") for disk in (third, fourth)})
    wait_for_infos(check, daemon, "built", members, set())
    accounts = Accounts(vm, daemon, disks)
    for step in (partition, striped, mirror):
        step(vm, check, accounts, disks)
    file_systems(vm, check, daemon, accounts, disks, members)
    scrape = daemon.scrape()
    # The write ladder names what a file system is on, which may be a volume.
    named = {dict(labels)["device"] for name, labels in [*scrape.values, *scrape.histograms]
             if "device" in dict(labels) and not name.startswith("ssdpulse_write_ladder")}
    # All disks of the guest, including other scenarios' disks and their further namespaces, and nothing on top of them.
    real = vm.sh("for d in /sys/block/*; do case $(readlink -f $d) in */virtual/*) ;; *) echo ${d##*/};; esac; done").split()
    check.equal(sorted(named), sorted(real), "devices that any series names")
    vm.sh("umount /mnt/plain /mnt/deep")
    lvm(vm, "vgchange -an -qq", "narrow wide")
    vm.sh("mdadm --stop /dev/md0 2>&1")
    wait_for_infos(check, daemon, "taken down", set(), set())
    scrape = daemon.at_rest(4)
    for disk in disks:
        figures.at_rest(check, scrape, disk)
    multipath(vm, check, daemon)
    daemon.stop()
