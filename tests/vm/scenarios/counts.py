# SPDX-License-Identifier: Apache-2.0
"""Reads, writes, flushes, commits, discards, zeroes and passthrough are counted exactly on every kind of disk."""
import re

import figures
import machine
from devices import Backend, Nvme, VirtioBlk
from lib import metrics

MACHINE = {"append": "nvme_core.multipath=N"}  # the namespace's own disk; paths have a scenario of their own
SHARES_GUEST = True
SCSI = "/sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block"
MKE2FS = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
WRITES, FLUSHES, TRIMS, ZEROES, COMMANDS = 1500, 60, 40, 4 << 20, 7


def devices():
    return [Nvme("plain", Backend("512M", data=True)), VirtioBlk("virtio")]


class Account:
    """What a disk has been asked for so far, according to the programs that asked."""

    def __init__(self, vm, disk):
        self.vm, self.disk, self.ios, self.bytes, self.commits = vm, disk, {}, {}, 0
        self.stat = self._stat()

    def _stat(self):
        numbers = [int(n) for n in self.vm.sh(f"cat /sys/block/{self.disk}/stat").split()]
        return {"read": numbers[0], "write": numbers[4], "discard": numbers[11], "flush": numbers[15]}

    def add(self, operation, ios, size):
        self.ios[operation] = self.ios.get(operation, 0) + ios
        self.bytes[operation] = self.bytes.get(operation, 0) + size

    def fio(self, **options):
        """One fio. With fsync and dsync, `flushes` says how many flushes the kernel makes from them."""
        flushes = options.pop("flushes", 0)
        job = self.vm.fio(self.disk, norandommap=None, **options)
        for operation, name in (("read", "read"), ("write", "write"), ("discard", "trim")):
            if job[name]["total_ios"]:
                self.add(operation, job[name]["total_ios"], job[name]["io_bytes"])
        if flushes:
            self.add("flush", flushes, 0)
        return job

    def settle(self, check, difference):
        """Compares this with what the daemon counted, and that with the kernel's own statistics."""
        have = {operation: figures.ios(difference, self.disk, operation) for operation in self.ios}
        check.equal(have, self.ios, f"{self.disk}: I/Os")
        commits = difference.histogram(figures.TOTAL, device=self.disk, operation="commit")
        check.equal(commits.count, self.commits, f"{self.disk}: commits")
        have = {operation: int(difference.value("ssdpulse_io_bytes_total", device=self.disk, operation=operation))
                for operation in self.bytes}
        check.equal(have, self.bytes, f"{self.disk}: bytes")
        now = self._stat()
        own = {operation: now[operation] - self.stat[operation] for operation in now}
        print(f"     {self.disk}: diskstats {own}")
        figures.at_rest(check, difference.after, self.disk)


def reads_and_writes(account):
    account.fio(rw="randrw", bssplit="4k/60:8k/20:64k/20", iodepth=8, number_ios=WRITES)
    account.fio(rw="randread", bs="512", iodepth=4, number_ios=200)


def flushes(account, cache):
    """fsync after each write, and writes that must be durable by themselves. `cache`: none, flush, or fua.

    A program that waits for a flush, or for a durable write, waits for a commit, whatever the kernel turns it into."""
    name = f"/sys/block/{account.disk}/queue/write_cache"
    shown = account.vm.sh(f"cat {name}; cat /sys/block/{account.disk}/queue/fua").split("\n")
    print(f"     {account.disk}: write cache {shown}")
    job = account.fio(rw="write", bs="4k", ioengine="psync", number_ios=FLUSHES, fsync=1)
    synced = job["sync"]["total_ios"]
    if cache != "none":
        account.add("flush", synced, 0)
        account.commits += synced + 2 * FLUSHES
    # A durable write ends in a flush of the file besides what the write itself needs: FUA, or a flush after it.
    account.fio(rw="write", bs="4k", ioengine="psync", number_ios=FLUSHES, sync="dsync",
                flushes={"none": 0, "fua": 1, "flush": 2}[cache] * FLUSHES)


def discards(account):
    account.fio(rw="randtrim", bs="64k", ioengine="psync", number_ios=TRIMS)


def zeroes(account, size_of_one):
    """The kernel splits them at the disk's limit."""
    account.vm.sh(f"blkdiscard --force --zeroout --offset 0 --length {ZEROES} /dev/{account.disk}")
    account.add("write_zeroes", -(-ZEROES // size_of_one), ZEROES)


def limit(vm, disk, name):
    return int(vm.sh(f"cat /sys/block/{disk}/queue/{name}"))


def journal(vm, check, daemon, disk):
    """A journal's commits are a flush and a durable write in one, and on a drive that supports the latter three
    requests for us. One caller at a time: as many commits as flushes, since the mount's superblock, durable without a
    flush, was counted before."""
    vm.sh(f"modprobe -q ext4; mkdir -p /mnt/t; mke2fs -q -F -t ext4 -E {MKE2FS} /dev/{disk} && mount /dev/{disk} /mnt/t")
    before = daemon.at_rest(1.2)
    vm.sh(f"for i in $(seq {FLUSHES}); do dd if=/dev/zero of=/mnt/t/$i bs=4k count=1 conv=fsync 2>/dev/null; done")
    difference = metrics.Difference(before, daemon.at_rest(2.5))
    vm.sh("umount /mnt/t")
    commits = difference.histogram(figures.TOTAL, device=disk, operation="commit").count
    flushes = figures.ios(difference, disk, "flush")
    check.that(commits == flushes >= FLUSHES, f"{disk}: {commits} commits of a journal, {flushes} flushes")


def many_ranges(vm, check, daemon, disk):
    """A file system frees scattered extents: one request may carry many of them."""
    vm.sh(f"mke2fs -q -F -t ext4 -E {MKE2FS} /dev/{disk} && "
          f"mount /dev/{disk} /mnt/t && for i in $(seq 160); do "
          "dd if=/dev/zero of=/mnt/t/$i bs=64k count=4 2>/dev/null; done; sync; "
          "for i in $(seq 1 2 160); do rm /mnt/t/$i; done; sync; sleep 1")
    before = daemon.at_rest(1.2)
    text = vm.sh("fstrim -v /mnt/t")
    trimmed = int(re.search(r"\((\d+) bytes", text)[1])
    difference = metrics.Difference(before, daemon.at_rest(2.5))
    size = difference.value("ssdpulse_io_bytes_total", device=disk, operation="discard")
    count = figures.ios(difference, disk, "discard")
    check.that(count > 0 and size == trimmed,
               f"{disk}: fstrim says {trimmed} bytes, counted {size:.0f} in {count} I/Os")
    vm.sh("umount /mnt/t")


def passthrough(vm, check, daemon, disk):
    controller = re.sub(r"n\d+$", "", disk)
    before = daemon.at_rest(1.2)
    for _ in range(COMMANDS):
        vm.sh(f"nvme io-passthru /dev/{disk} --opcode=2 --namespace-id=1 --data-len=4096 --read --cdw12=7 >/dev/null")
    middle = daemon.at_rest(2.2)
    for _ in range(COMMANDS):
        vm.sh(f"nvme admin-passthru /dev/{controller} --opcode=6 --data-len=4096 --read --cdw10=1 >/dev/null")
    after = daemon.at_rest(2.2)
    through = metrics.Difference(before, middle)
    check.equal(figures.ios(through, disk, "passthrough"), COMMANDS, f"{disk}: passthrough I/Os")
    check.equal(through.value("ssdpulse_io_bytes_total", device=disk, operation="passthrough"), COMMANDS * 4096,
                f"{disk}: bytes of passthrough")
    check.equal(figures.ios(through, disk, "read"), 0, f"{disk}: passthrough is no read")
    admin = metrics.Difference(middle, after)
    check.equal(admin.value("ssdpulse_io_diskless_requests_total"), COMMANDS, "admin commands on no disk")
    check.equal(figures.ios(admin, disk, "passthrough"), 0, f"{disk}: admin commands are not its own")


def run(vm, check):
    vm.sh("modprobe sd_mod; modprobe scsi_debug dev_size_mb=64 delay=0 lbpu=1 lbpws=1 lbprz=1 max_luns=1; "
          "modprobe null_blk nr_devices=1 gb=1 queue_mode=2")
    vm.wait_for(f"test -e /sys/block/nullb0 && ls {SCSI}/*")
    sd = vm.sh(f"ls {SCSI}")
    nvme, virtio = vm.disk("plain"), vm.disk("virtio")
    for disk in (nvme, virtio, sd, "nullb0"):
        vm.sh(f"echo 2 >/sys/block/{disk}/queue/nomerges")
    daemon = machine.Daemon(vm)
    before = daemon.at_rest(2)
    accounts = [Account(vm, disk) for disk in (nvme, virtio, sd, "nullb0")]
    for account, cache in zip(accounts, ("fua", "flush", "fua", "none")):
        reads_and_writes(account)
        flushes(account, cache)
    for account in accounts[:3]:
        discards(account)
        zeroes(account, limit(vm, account.disk, "write_zeroes_max_bytes"))
    difference = metrics.Difference(before, daemon.at_rest(6))
    for account in accounts:
        account.settle(check, difference)
    journal(vm, check, daemon, nvme)
    many_ranges(vm, check, daemon, nvme)
    passthrough(vm, check, daemon, nvme)
    daemon.stop()
    vm.sh("modprobe -r scsi_debug; modprobe -r null_blk")
