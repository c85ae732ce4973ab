# SPDX-License-Identifier: Apache-2.0
"""Writes are counted by class, exact to the byte; misaligned, small and sequential bytes are right."""
import figures
import machine
from devices import Backend, Nvme
from lib import metrics

KERNELS_IN_CI = ("5.10",)  # kernel.test_write_classes judges a newer one; the long form has all
SHARES_GUEST = True
CLASSES = ("journal", "metadata", "writeback", "direct", "swap", "other")
SIZE, BLOCK = 1 << 20, 64 << 10
LARGEST = 512 << 10  # bytes of a request: QEMU's drive takes no more
SCSI = "/sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block"
MAKE = {"ext4": "mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0", "xfs": "mkfs.xfs -q -f -K"}
STREAMS, PER_STREAM = 32, 256


def devices():
    return [Nvme("classed", Backend("512M", data=True))]


class Watch:
    def __init__(self, daemon, disk):
        self.daemon, self.disk, self.scrape = daemon, disk, daemon.at_rest(2.2)
        self.skipped = {}  # {program: runs that the kernel skipped, by its own count, in the last difference}
        self.unseen = 0  # bytes at most that have no class in the last difference, as the kernel skipped runs

    def since(self):
        now = self.daemon.at_rest(2.2)
        difference, self.scrape = metrics.Difference(self.scrape, now), now
        before, after = (figures.skipped_runs(scrape) for scrape in (difference.before, now))
        self.skipped = {program: runs - before.get(program, 0) for program, runs in after.items()}
        return difference

    def classes(self, check, what):
        """{class: bytes} of those that have any. Together they are all that was written, except writes whose issue the
        kernel skipped, by its own count: they end as strays, which have bytes but no class."""
        difference = self.since()
        have = {name: int(difference.value("ssdpulse_write_class_bytes_total", device=self.disk, **{"class": name}))
                for name in CLASSES}
        total = int(difference.value("ssdpulse_io_bytes_total", device=self.disk, operation="write"))
        lost = {cause: difference.value("ssdpulse_lost_events_total", device=self.disk, cause=cause)
                for cause in ("stray", "completion_missed")}
        strays = min(lost["stray"], self.skipped["on_issue"])
        missed = min(lost["completion_missed"], self.skipped["on_complete"])
        without_class = total - sum(have.values())
        check.that(0 <= without_class <= strays * LARGEST,
                   f"{what}: bytes of all classes {have}, all bytes {total}, strays {strays:.0f}")
        self.unseen = min(without_class, strays * LARGEST) + missed * LARGEST
        have = {name: size for name, size in have.items() if size}
        print(f"TABLE {what}: {have}")
        return have


def all_of(check, watch, have, name, size, what):
    """All bytes are of this class, except what the kernel did not show."""
    have = {kind: bytes_of_it for kind, bytes_of_it in have.items() if bytes_of_it}
    check.that(list(have) == [name] and size - watch.unseen <= have[name] <= size,
               f"{what}: {have} of {size}, {watch.unseen:.0f} bytes not seen")


def device(vm, check, watch, node, what):
    for options, name in (("direct", "direct"), ("", "writeback")):
        vm.sh(f"tagged_write {node} {SIZE} block={BLOCK} {options}")
        have = watch.classes(check, f"{what} {name}")
        if name == "writeback" and vm.name == "newest":
            # A device's page cache has larger pages there, and from 7.0 on their heads cannot be found.
            have[name] = have.get(name, 0) + have.pop("other", 0)
        all_of(check, watch, have, name, SIZE, f"{what} {name}: all of its class")


def file_system(vm, check, watch, node, fstype, what):
    """Data to the byte; what the file system adds is its journal and metadata, or of unknown class."""
    vm.sh(f"{MAKE[fstype]} {node} && mkdir -p /mnt/c && mount {node} /mnt/c && sync")
    watch.since()
    seen = {}
    for options, name in (("direct", "direct"), ("", "writeback")):
        vm.sh(f"tagged_write /mnt/c/{name} {SIZE} block={BLOCK} {options}")
        have = watch.classes(check, f"{what} {name}")
        data = {kind: have.get(kind, 0) for kind in ("direct", "writeback", "swap")}
        all_of(check, watch, data, name, SIZE, f"{what} {name}: data")
        seen.update(have)
    # Many small changes of names, written to their final place at the end.
    vm.sh("for i in $(seq 300); do : >/mnt/c/f$i; done; sync; umount /mnt/c")
    seen.update(watch.classes(check, f"{what} names"))
    told = {"metadata"} if vm.name == "5.10" and fstype == "ext4" else {"metadata", "journal"}
    check.that(told <= set(seen), f"{what}: {sorted(told)} are among {sorted(seen)}")
    if fstype == "xfs":
        check.that("other" not in seen, f"{what}: nothing is left untold: {sorted(seen)}")


def swap(vm, check, watch, node):
    vm.sh(f"mkswap {node} && swapon {node}")
    watch.since()
    before = int(vm.sh("sed -n 's/^pswpout //p' /proc/vmstat"))
    vm.sh(f"tagged_write swap {SIZE}")
    swapped = (int(vm.sh("sed -n 's/^pswpout //p' /proc/vmstat")) - before) * 4096
    all_of(check, watch, watch.classes(check, "swap"), "swap", swapped, "swap: as vmstat says")
    check.that(swapped >= SIZE // 2, f"swap: {swapped} bytes went out")
    vm.sh(f"swapoff {node}")


def alignment(vm, check, daemon):
    """A disk with 512-byte sectors on blocks of 4096 bytes."""
    vm.sh("modprobe sd_mod; modprobe scsi_debug dev_size_mb=64 delay=0 physblk_exp=3 max_luns=1")
    vm.wait_for(f"ls {SCSI}/*")
    disk = vm.sh(f"ls {SCSI}")
    vm.sh(f"echo 2 >/sys/block/{disk}/queue/nomerges")
    daemon.wait_for(lambda scrape: scrape.series("ssdpulse_device_info", device=disk), f"{disk} is seen")
    watch = Watch(daemon, disk)
    # Any subset of these can be recognised by its sum.
    aligned = "tagged_write {0} 65536 block=4096 direct; tagged_write {0} 65536 block=8192 offset=4096 direct; "
    off = "tagged_write {0} 65536 block=4096 offset=512 direct; tagged_write {0} 36864 block=12288 offset=1024 direct; "
    small = "tagged_write {0} 4096 block=512 direct; tagged_write {0} 8192 block=2048 offset=2048 direct"
    vm.sh((aligned + off + small).format(f"/dev/{disk}"))
    difference = watch.since()
    have = [int(difference.value(f"ssdpulse_write_{kind}_bytes_total", device=disk)) for kind in ("misaligned", "small")]
    # Of the pieces that are not whole blocks, none begins and ends at a block's bounds.
    check.equal(have, [65536 + 36864 + 4096 + 8192, 4096 + 8192], "misaligned and small bytes, of 245760")
    print(f"TABLE misaligned, small: {have} of 245760 bytes")
    vm.sh("modprobe -r scsi_debug")


def sequential(vm, check, watch):
    job = vm.fio(watch.disk, rw="write", bs="4k", iodepth=1, number_ios=PER_STREAM, numjobs=STREAMS,
                 group_reporting=None, offset_increment="8M", size="8M")
    difference = watch.since()
    have = int(difference.value("ssdpulse_io_sequential_bytes_total", device=watch.disk, operation="write"))
    want = (job["write"]["total_ios"] - STREAMS) * 4096
    # An I/O whose issue the kernel skipped, by its own count, is not known to be sequential, nor is the one after it.
    skipped = 2 * watch.skipped["on_issue"] * 4096
    check.that(0.95 * want - skipped <= have <= want,
               f"{STREAMS} streams: {have} bytes are sequential, of {want}, and {skipped:.0f} skipped at most")
    print(f"TABLE sequential, {STREAMS} streams: {have} of {want} bytes")


def run(vm, check):
    disk = vm.disk("classed")
    node = f"/dev/{disk}"
    vm.sh("for module in ext4 xfs dm_mod; do modprobe -q $module; done; true")  # some kernels have some built in
    daemon = machine.Daemon(vm)
    watch = Watch(daemon, disk)
    device(vm, check, watch, node, "device")
    sequential(vm, check, watch)
    for fstype in MAKE:
        file_system(vm, check, watch, node, fstype, fstype)
    swap(vm, check, watch, node)
    vm.sh(f"echo 0 $(blockdev --getsz {node}) linear {node} 0 | dmsetup create --noudevsync over")
    over = "/dev/" + vm.sh("basename $(grep -l over /sys/block/dm-*/dm/name | cut -d/ -f-4)")
    watch.since()
    device(vm, check, watch, over, "dm")
    file_system(vm, check, watch, over, "ext4", "ext4 on dm")
    vm.sh("dmsetup remove --noudevsync over")
    alignment(vm, check, daemon)
    daemon.stop()
