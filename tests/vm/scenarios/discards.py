# SPDX-License-Identifier: Apache-2.0
"""Each burst of discards has the trigger that sent it and the bytes that the drive saw; so do those of an array."""
import re
import time

import machine
from devices import Backend, Logged, Nvme
from lib import metrics

MACHINE = {"append": "nvme_core.multipath=N"}
SHARES_GUEST = True
KERNELS_IN_CI = ("5.10",)  # kernel.test_discard_bursts judges bursts of one drive on a newer one; those of an array are in the long form
MEMBERS = ("wheel0", "wheel1", "wheel2", "wheel3")
TRIGGERS = ("fstrim", "online", "blkdiscard", "mkfs", "other")
BYTES, BURSTS, ACTIVE = (f"ssdpulse_discard_{what}" for what in ("burst_bytes_total", "bursts_total", "burst_active"))
ARRAY_ACTIVE, ON_FILE_SYSTEM = "ssdpulse_array_discard_burst_active", "ssdpulse_filesystem_discard_bytes_total"
MIB = 1 << 20
REST = 2.6  # seconds in which a burst ends and the daemon has reported it, if it is not kept waiting
PATIENCE = 20
LONG = 180  # a large module, or a file system, in a slow guest


def devices():
    return [Nvme("grass", Logged("512M")), Nvme("meadow", Logged("512M")),
            *(Nvme(name, Backend("160M", data=True)) for name in MEMBERS)]


class Accounts:
    """What the daemon and the kernel count for these disks, from one call of since() to the next."""

    def __init__(self, vm, daemon, disks):
        self._vm, self._daemon, self._disks = vm, daemon, disks
        self._sent, self._scrape = self._read(), daemon.at_rest(REST)

    def _read(self):
        lines = self._vm.sh("cat " + " ".join(f"/sys/block/{disk}/stat" for disk in self._disks)).splitlines()
        return {disk: int(line.split()[13]) * 512 for disk, line in zip(self._disks, lines)}

    def since(self):
        """{disk: {trigger: bytes}} without the zeros, {disk: bytes} by diskstats, the difference of two scrapes."""
        sent = self._read()
        done = {disk: sent[disk] - self._sent[disk] for disk in self._disks}
        deadline = time.monotonic() + PATIENCE
        while True:
            scrape = self._daemon.at_rest(REST / 4)
            difference = metrics.Difference(self._scrape, scrape)
            have = {disk: {name: int(size) for name in TRIGGERS
                           if (size := difference.value(BYTES, device=disk, trigger=name))} for disk in self._disks}
            told = all(sum(have[disk].values()) == done[disk] for disk in self._disks)
            if (told and not any(scrape.series(ACTIVE).values())) or time.monotonic() > deadline:
                break
        self._sent, self._scrape = sent, scrape
        return have, done, difference


def configure(vm, daemon, burst_gap):
    vm.sh(f"printf 'nvme: {{ poll_interval: 1h }}\\nhistory: {{ directory: \"\" }}\\n"
          f"discard: {{ burst_gap: {burst_gap} }}\\n' >/tmp/discards.yaml")
    if daemon is not None:
        vm.sh(f"kill -HUP {daemon.pid}")


def expect(vm, check, accounts, disk, trigger, what, script, least=MIB):
    """Only this trigger had bursts, on this disk, of all bytes that the kernel counts. Returns the script's output."""
    words = vm.sh(script, LONG)
    have, done, difference = accounts.since()
    check.equal(have, {other: {trigger: done[disk]} if other == disk else {} for other in done}, f"{what}: by trigger")
    check.that(done[disk] >= least, f"{what}: {done[disk]} bytes, by diskstats")
    bursts = difference.value(BURSTS, device=disk, trigger=trigger)
    still = difference.after.value(ACTIVE, device=disk)
    check.that(bursts >= 1 and still == 0, f"{what}: {bursts:.0f} bursts, {still:.0f} under way after it")
    return words


def remove_files(mountpoint, disks):
    """Files are created and deleted; their blocks are discarded once the deletion is committed."""
    stats = " ".join(f"/sys/block/{disk}/stat" for disk in disks)
    return (f"for i in $(seq 8); do dd if=/dev/zero of={mountpoint}/$i bs=1M count=2; done 2>/dev/null; sync; "
            f"discards() {{ awk '{{ n += $12 }} END {{ print n }}' {stats}; }}; before=$(discards); "
            f"rm {mountpoint}/[1-8]; n=0; until [ $(discards) != $before ]; do sync; sleep 0.2; n=$((n + 1)); "
            "[ $n -lt 60 ] || exit 1; done; sync; sleep 1; sync; sleep 0.5")


def file_system(vm, check, daemon, accounts, disk, fstype, make):
    mountpoint = f"/mnt/{fstype}"
    node = f"/dev/{disk}"
    expect(vm, check, accounts, disk, "mkfs", f"mkfs of {fstype}", f"{make} {node}", 100 * MIB)
    vm.sh(f"mkdir -p {mountpoint}; modprobe -q {fstype}; mount -t {fstype} {node} {mountpoint}; sync", LONG)
    expect(vm, check, accounts, disk, "fstrim", f"fstrim of {fstype}", f"fstrim {mountpoint}", 100 * MIB)
    # xfs accepts the option only when it is mounted.
    vm.sh(f"umount {mountpoint} && mount -t {fstype} -o discard {node} {mountpoint}")
    daemon.wait_for(lambda scrape: scrape.series("ssdpulse_filesystem_info", device=disk, discard="true"),
                    "the mount option is seen")
    expect(vm, check, accounts, disk, "online", f"{fstype} mounted with discard", remove_files(mountpoint, [disk]),
           8 * MIB)
    vm.sh(f"umount {mountpoint}")


def lines_of(daemon, disk, trigger):
    """[(file systems, arrays)] of the bursts in the log, and whether their ranges are reported."""
    return re.findall(rf"discard burst device={disk} trigger={trigger} begin=\S+ end=\S+ seconds=\S+ bytes=\d+ "
                      r"requests=\d+( ranges=\d+)? comm=\"[^\"]*\" filesystem=\"([^\"]*)\" array=\"([^\"]*)\"",
                      daemon.words())


def neighbours(vm, check, daemon, accounts, disk):
    """Two partitions: deletions are discarded on one, the other is trimmed. Neither has both."""
    vm.sh(f"printf 'size=70M\\nsize=70M\\n' | sfdisk -q /dev/{disk} 2>&1; modprobe -q ext4; sleep 1")
    online, quiet = (f"{disk}p{number}" for number in (1, 2))
    for volume, mountpoint, option in ((online, "/mnt/online", "discard"), (quiet, "/mnt/quiet", "nodiscard")):
        vm.sh(f"mke2fs -q -F -t ext4 -E nodiscard /dev/{volume} && mkdir -p {mountpoint} && "
              f"mount -t ext4 -o {option} /dev/{volume} {mountpoint}; sync", LONG)
        daemon.wait_for(lambda scrape, volume=volume: scrape.series(ON_FILE_SYSTEM, volume=volume), f"{volume} is known")
    expect(vm, check, accounts, disk, "fstrim", "fstrim beside a file system with discard", "fstrim /mnt/quiet", 40 * MIB)
    expect(vm, check, accounts, disk, "online", "discard beside a file system that is trimmed",
           remove_files("/mnt/online", [disk]), 8 * MIB)
    have = {tuple(dict(labels)[name] for name in ("volume", "mountpoint", "discard", "trigger"))
            for labels, value in daemon.scrape().series(ON_FILE_SYSTEM).items() if value}
    check.equal(have, {(online, "/mnt/online", "true", "online"), (quiet, "/mnt/quiet", "false", "fstrim")},
                "neighbours: who discarded on which file system")
    check.equal([[where for _, where, _ in lines_of(daemon, disk, trigger)] for trigger in ("fstrim", "online")],
                [["/mnt/quiet"], ["/mnt/online"]], "neighbours: file systems in the log")
    check.equal("use one of the two" in daemon.words(), False, "neighbours: a warning of both")
    vm.sh(f"umount /mnt/online /mnt/quiet; sfdisk -q --delete /dev/{disk} 2>&1; sleep 1")


def bursts_seen(daemon, array_name):
    """Triggers under way on the array, from now until there are none left."""
    seen, deadline = set(), time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        active = {dict(labels)["trigger"] for labels, value
                  in daemon.scrape().series(ARRAY_ACTIVE, array=array_name).items() if value}
        if seen and not active:
            break
        seen |= active
    return seen


def array(vm, check, daemon, accounts, members):
    """As in the field: xfs on RAID-0, mounted with discard, and trimmed every week as well."""
    vm.sh("modprobe -a raid0 xfs; mdadm --create /dev/md0 --run --level=0 --raid-devices=4 --chunk=64 "
          + " ".join(f"/dev/{member}" for member in members) + " 2>&1", LONG)
    daemon.wait_for(lambda scrape: scrape.series(ARRAY_ACTIVE, array="md0"), "the array is known")
    vm.sh("mkfs.xfs -q -f /dev/md0 && mkdir -p /mnt/wheels && mount -t xfs -o discard /dev/md0 /mnt/wheels", LONG)
    have, done, _ = accounts.since()
    check.that(all(have[member] == {"mkfs": done[member]} and done[member] > 100 * MIB for member in members),
               f"mkfs of the array: on its members {[have[member] for member in members]}")
    daemon.wait_for(lambda scrape: scrape.series("ssdpulse_filesystem_info", device=members[0], discard="true"),
                    "the file system on the array is seen")
    configure(vm, daemon, burst_gap="6s")  # so that even a slow reader sees the bursts under way
    vm.sh(remove_files("/mnt/wheels", members), LONG)
    vm.sh("fstrim /mnt/wheels")
    seen = bursts_seen(daemon, "md0")
    check.equal(seen, {"fstrim", "online"}, "bursts under way on the array")
    have, done, difference = accounts.since()
    check.equal({member: sum(have[member].values()) for member in members}, {m: done[m] for m in members},
                "both on the array: bytes of the members, by diskstats")
    check.that(all(set(have[member]) <= {"fstrim", "online"} and have[member]["fstrim"] > 100 * MIB
                   for member in members) and any("online" in have[member] for member in members),
               f"both on the array: on its members {[have[member] for member in members]}")
    check.equal(difference.after.value(ARRAY_ACTIVE, array="md0"), 0, "bursts under way on the array at rest")
    check.equal(len(re.findall("warning.* volume=md0 .*/mnt/wheels.* use one of the two", daemon.words())), 1,
                "the array: warnings of discard and fstrim together")
    check.equal({line[1:] for line in lines_of(daemon, f"(?:{'|'.join(members)})", "fstrim")},
                {("/mnt/quiet", ""), ("/mnt/wheels", "md0")}, "the array and the neighbour in the log")
    vm.sh("umount /mnt/wheels; mdadm --stop /dev/md0 2>&1")


def volume(vm, check, daemon, accounts, disk):
    """dm passes on clones of bios: what its member did is known from what was submitted to dm."""
    vm.sh(f"modprobe dm_mod; dmsetup create slice --table '0 {64 << 11} linear /dev/{disk} 2048'; "
          f"dmsetup create crumb --table '0 {16 << 11} linear /dev/{disk} {80 << 11}'; dmsetup mknodes")
    daemon.wait_for(lambda scrape: scrape.series(ARRAY_ACTIVE, array="dm-1"), "the volumes are known")
    vm.sh("blkdiscard --force /dev/mapper/slice 2>&1")
    active = bursts_seen(daemon, "dm-0")
    have, done, _ = accounts.since()
    check.equal(have[disk], {"blkdiscard": 64 * MIB}, "a volume of dm: on its member")
    check.equal(done[disk], 64 * MIB, "a volume of dm: bytes, by diskstats")
    check.equal(active, {"blkdiscard"}, "bursts under way on the volume")
    check.equal(lines_of(daemon, disk, "blkdiscard"), [("", "", "dm-0")], "the volume in the log, and no ranges")
    vm.sh("dmsetup remove slice crumb")


def thin(vm, check, daemon, accounts, disk, other_disk):
    """dm-thin passes on what was mapped, on its own threads: the trigger is whatever discarded on the thin volume."""
    vm.sh(f"modprobe dm_thin_pool; dmsetup create data --table '0 {128 << 11} linear /dev/{disk} 2048'; "
          f"dmsetup create meta --table '0 {16 << 11} linear /dev/{other_disk} 2048'; dmsetup mknodes; "
          "dd if=/dev/zero of=/dev/mapper/meta bs=4k count=1 2>/dev/null; "
          f"dmsetup create pool --table '0 {128 << 11} thin-pool /dev/mapper/meta /dev/mapper/data 128 0'; "
          "dmsetup mknodes; dmsetup message pool 0 'create_thin 0'; "
          f"dmsetup create thin --table '0 {512 << 11} thin /dev/mapper/pool 0'; dmsetup mknodes", LONG)
    configure(vm, daemon, burst_gap="1s")
    name = "dm-" + vm.sh("dmsetup info -c --noheadings -o minor thin").strip()
    daemon.wait_for(lambda scrape: scrape.series(ARRAY_ACTIVE, array=name), "the thin volume is known")
    vm.sh("mke2fs -q -F -t ext4 -E nodiscard /dev/mapper/thin && mkdir -p /mnt/thin && "
          "mount -t ext4 /dev/mapper/thin /mnt/thin; for i in $(seq 8); do "
          "dd if=/dev/zero of=/mnt/thin/$i bs=1M count=5; done 2>/dev/null; sync; rm /mnt/thin/[1-8]; sync", LONG)
    daemon.wait_for(lambda scrape: scrape.series(ON_FILE_SYSTEM, volume=name), "its file system is known")
    accounts.since()
    expect(vm, check, accounts, disk, "fstrim", "fstrim of a thin volume", "fstrim /mnt/thin", 30 * MIB)
    check.equal(lines_of(daemon, disk, "fstrim")[-1:], [("", "/mnt/thin", name)], "the thin volume in the log")
    vm.sh("mount -o remount,discard /mnt/thin")
    daemon.wait_for(lambda scrape: scrape.series(ON_FILE_SYSTEM, volume=name, discard="true"), "the option is seen")
    expect(vm, check, accounts, disk, "online", "a thin volume mounted with discard",
           remove_files("/mnt/thin", [disk]), 8 * MIB)
    vm.sh("dd if=/dev/zero of=/mnt/thin/big bs=1M count=60 2>/dev/null; umount /mnt/thin")
    daemon.at_rest(REST)  # what the umount discarded but was never mapped does not count in what follows
    expect(vm, check, accounts, disk, "blkdiscard", "blkdiscard of a thin volume",
           "blkdiscard --force /dev/mapper/thin 2>&1", 60 * MIB)
    vm.sh("dmsetup remove thin pool data meta")


def run(vm, check):
    grass, meadow, *members = disks = [vm.disk(name) for name in ("grass", "meadow", *MEMBERS)]
    configure(vm, None, burst_gap="1s")
    daemon = machine.Daemon(vm, "--config", "/tmp/discards.yaml")
    [decision] = [dict(labels)["decision"] for labels in daemon.scrape().series(
        "ssdpulse_kernel_feature_info", feature="discard_submitters")]
    print(f"TABLE discard submitters: {decision}")
    series = [labels for labels in daemon.scrape().series(BYTES) if dict(labels)["device"] in disks]
    check.equal(len(series), len(TRIGGERS) * len(disks), "every trigger of every disk is there")
    trimmed = {disk: vm.devices[serial].backend.trimmed() for disk, serial in ((grass, "grass"), (meadow, "meadow"))}
    accounts = Accounts(vm, daemon, disks)
    file_system(vm, check, daemon, accounts, grass, "ext4", "mke2fs -q -F -t ext4")
    file_system(vm, check, daemon, accounts, meadow, "xfs", "mkfs.xfs -q -f")
    expect(vm, check, accounts, grass, "blkdiscard", "blkdiscard", f"blkdiscard --force /dev/{grass} 2>&1", 512 * MIB)
    expect(vm, check, accounts, meadow, "other", "another program",
           f"cp /usr/sbin/blkdiscard /tmp/eraser; /tmp/eraser --force --step 1M /dev/{meadow} 2>&1", 512 * MIB)
    scrape = daemon.scrape()
    for disk, serial in ((grass, "grass"), (meadow, "meadow")):
        told = sum(value for labels, value in scrape.series(BYTES, device=disk).items())
        check.equal(told, vm.devices[serial].backend.trimmed() - trimmed[disk], f"{disk}: bytes, as the backend saw them")
    neighbours(vm, check, daemon, accounts, members[3])
    array(vm, check, daemon, accounts, members)
    volume(vm, check, daemon, accounts, members[0])
    thin(vm, check, daemon, accounts, members[1], members[2])
    daemon.stop()
