# SPDX-License-Identifier: Apache-2.0
"""File systems over several disks are found on all of them, whatever their source is called; so is swap, wherever it is."""
import json

import machine
from devices import Backend, Nvme

KERNELS_IN_CI = ("newest",)  # the long form has all
MACHINE = {"append": "nvme_core.multipath=N"}
SHARES_GUEST = True
POOL, XFS = ("pool0", "pool1"), ("records", "log", "realtime")
SWAP = ("slice", "mirror0", "mirror1", "files")
LONG = 180  # large modules, in a slow guest


def devices():
    return [Nvme(name, Backend("512M" if name in XFS else "256M", data=True)) for name in (*POOL, *XFS, *SWAP)]


def mounted(scrape):
    """{mountpoint: its disks}"""
    found = {}
    for labels in scrape.series("ssdpulse_filesystem_info"):
        found.setdefault(dict(labels)["mountpoint"], set()).add(dict(labels)["device"])
    return found


def file_systems(vm, check, disks):
    """btrfs from a link that is gone afterwards, as from an initramfs, and xfs with its log and realtime elsewhere."""
    vm.sh(f"modprobe -a btrfs xfs ext4; mkfs.btrfs -q -f -K {' '.join(f'/dev/{disks[name]}' for name in POOL)}; "
          f"mkdir -p /dev/early /mnt/pool /mnt/xfs; ln -s ../{disks['pool1']} /dev/early/link; "
          "mount -t btrfs /dev/early/link /mnt/pool; rm -r /dev/early", LONG)
    data, log, realtime = (f"/dev/{disks[name]}" for name in XFS)
    vm.sh(f"mkfs.xfs -q -f -m reflink=0 -l logdev={log} -r rtdev={realtime} {data} && "
          f"mount -t xfs -o logdev={log},rtdev={realtime} {data} /mnt/xfs", LONG)
    daemon = machine.Daemon(vm)
    want = {"/mnt/pool": {disks[name] for name in POOL}, "/mnt/xfs": {disks[name] for name in XFS}}
    check.equal({place: names for place, names in mounted(daemon.scrape()).items() if place in want}, want,
                "file systems over several disks")
    daemon.stop()


def swap(vm, check, disks):
    """On a volume of dm, on an array of md, and in a file of ext4."""
    mirrors = " ".join(f"/dev/{disks[name]}" for name in SWAP[1:3])
    vm.sh("modprobe -a dm_mod raid1; "
          f"dmsetup create swapped --table '0 {128 << 11} linear /dev/{disks['slice']} 2048'; dmsetup mknodes; "
          f"mdadm --create /dev/md1 --run --level=1 --metadata=1.2 --assume-clean --raid-devices=2 {mirrors} 2>&1; "
          f"mke2fs -q -F -t ext4 /dev/{disks['files']}; mkdir -p /mnt/files; mount -t ext4 /dev/{disks['files']} /mnt/files; "
          "dd if=/dev/zero of=/mnt/files/swap bs=1M count=32 2>/dev/null; chmod 600 /mnt/files/swap", LONG)
    for place in ("/dev/mapper/swapped", "/dev/md1", "/mnt/files/swap"):
        vm.sh(f"mkswap {place} && swapon {place}", LONG)
    print("     " + vm.sh("cat /proc/swaps").replace("\n", "\n     "))
    code, words = vm.run("ssdpulse audit -c /tmp/daemon.yaml --all --json 2>/dev/null", LONG)
    check.that(code in (0, 1), f"audit ends with {code}")
    found = {one["device"]: one["verdict"] for one in json.loads(words)["findings"] if one["id"] == "F14"}
    check.equal({name: found.get(disk) for name, disk in disks.items()},
                {name: "info" if name in SWAP else "not applicable" for name in disks}, "used for swap")


def run(vm, check):
    disks = {name: vm.disk(name) for name in (*POOL, *XFS, *SWAP)}
    try:
        file_systems(vm, check, disks)
        swap(vm, check, disks)
    finally:
        vm.run("swapoff /dev/mapper/swapped /dev/md1 /mnt/files/swap; umount /mnt/pool /mnt/xfs /mnt/files; "
               "mdadm --stop /dev/md1; dmsetup remove swapped", LONG)
