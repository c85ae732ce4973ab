# SPDX-License-Identifier: Apache-2.0
"""Each burst of discards has the trigger that sent it, and the bytes that the drive saw; so have those of an array."""
import re
import time

import machine
from devices import Backend, Logged, Nvme
from lib import metrics

MACHINE = {"append": "nvme_core.multipath=N"}
SHARES_GUEST = True
MEMBERS = ("wheel0", "wheel1", "wheel2", "wheel3")
TRIGGERS = ("fstrim", "online", "blkdiscard", "mkfs", "other")
BYTES, BURSTS, ACTIVE = (f"ssdpulse_discard_{what}" for what in ("burst_bytes_total", "bursts_total", "burst_active"))
ARRAY_ACTIVE = "ssdpulse_array_discard_burst_active"
MIB = 1 << 20
REST = 2.6  # seconds in which a burst ends, and the daemon has said so, if it is not kept waiting
PATIENCE = 20
LONG = 180  # a large module, or a file system, in a slow guest


def devices():
    return [Nvme("grass", Logged("512M")), Nvme("meadow", Logged("512M")),
            *(Nvme(name, Backend("160M", data=True)) for name in MEMBERS)]


class Accounts:
    """What the daemon and the kernel say of these disks, from one call of since() to the next."""

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
    """Only this trigger had bursts, on this disk, of all bytes that the kernel counts; what the script printed."""
    words = vm.sh(script, LONG)
    have, done, difference = accounts.since()
    check.equal(have, {other: {trigger: done[disk]} if other == disk else {} for other in done}, f"{what}: by trigger")
    check.that(done[disk] >= least, f"{what}: {done[disk]} bytes, by diskstats")
    bursts = difference.value(BURSTS, device=disk, trigger=trigger)
    still = difference.after.value(ACTIVE, device=disk)
    check.that(bursts >= 1 and still == 0, f"{what}: {bursts:.0f} bursts, {still:.0f} under way after it")
    return words


def remove_files(mountpoint, disks):
    """Files come and go; what they held is discarded once that is committed."""
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
    # xfs takes the option at no other time.
    vm.sh(f"umount {mountpoint} && mount -t {fstype} -o discard {node} {mountpoint}")
    daemon.wait_for(lambda scrape: scrape.series("ssdpulse_filesystem_info", device=disk, discard="true"),
                    "the mount option is seen")
    expect(vm, check, accounts, disk, "online", f"{fstype} mounted with discard", remove_files(mountpoint, [disk]),
           8 * MIB)
    vm.sh(f"umount {mountpoint}")


def bursts_seen(daemon, array_name):
    """Triggers under way on the array, from now until there are none any more."""
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
    words = daemon.words()
    for member in members:
        check.equal(len(re.findall(f"warning.*device={member} .*/mnt/wheels.* use one of the two", words)), 1,
                    f"{member}: warnings of discard and fstrim together")
    check.that(re.search(r"discard burst device=\S+ trigger=fstrim begin=\S+ end=\S+ .* comm=\"fstrim\" "
                         r"filesystem=\"/mnt/wheels\" array=\"md0\"", words) is not None, "the array is in the log")
    vm.sh("umount /mnt/wheels; mdadm --stop /dev/md0 2>&1")


def volume(vm, check, daemon, accounts, disk):
    """dm hands clones of bios down: what its member did is known from what was submitted to dm."""
    vm.sh(f"modprobe dm_mod; dmsetup create slice --table '0 {64 << 11} linear /dev/{disk} 2048'; dmsetup mknodes")
    daemon.wait_for(lambda scrape: scrape.series(ARRAY_ACTIVE, array="dm-0"), "the volume is known")
    vm.sh("blkdiscard --force /dev/mapper/slice 2>&1")
    active = bursts_seen(daemon, "dm-0")
    have, done, _ = accounts.since()
    check.equal(have[disk], {"blkdiscard": 64 * MIB}, "a volume of dm: on its member")
    check.equal(done[disk], 64 * MIB, "a volume of dm: bytes, by diskstats")
    check.equal(active, {"blkdiscard"}, "bursts under way on the volume")
    vm.sh("dmsetup remove slice")


def run(vm, check):
    grass, meadow, *members = disks = [vm.disk(name) for name in ("grass", "meadow", *MEMBERS)]
    configure(vm, None, burst_gap="1s")
    daemon = machine.Daemon(vm, "--config", "/tmp/discards.yaml")
    print("TABLE discard submitters: " + re.search('feature=discard_submitters decision="([^"]*)"', daemon.words())[1])
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
    array(vm, check, daemon, accounts, members)
    volume(vm, check, daemon, accounts, members[0])
    daemon.stop()
