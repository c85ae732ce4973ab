# SPDX-License-Identifier: Apache-2.0
"""LVM's volumes, thin pools, snapshots and caches, dm-crypt and md: is each shown as what it is, and a lost member as lost?"""
import json

import machine
from devices import Backend, Nvme

KERNELS_IN_CI = ("newest",)  # the long form has all
SHARES_GUEST = True
NAMES = ("one", "two")
# Only lvm itself makes the nodes: the guest has no udev, and none of LVM's own checkers.
LVM = ('activation { udev_sync=0 udev_rules=0 monitoring=0 } backup { backup=0 archive=0 } '
       'devices { obtain_device_list_from_udev=0 use_devicesfile=0 } '
       'global { thin_check_executable="" cache_check_executable="" }')
LAYERS = {  # by title or name: kind, and what it lies on
    "md0": ("raid1", ["one", "two"]),
    "secret": ("crypt", ["md0"]),
    "vg-data": ("lvm", ["vg-data-real"]),
    "vg-data-real": ("lvm", ["secret"]),
    "vg-before": ("snapshot", ["vg-before-cow", "vg-data-real"]),
    "vg-before-cow": ("lvm", ["secret"]),
    "vg-pool-tpool": ("thin_pool", ["vg-pool_tdata", "vg-pool_tmeta"]),
    "vg-pool_tdata": ("lvm", ["secret"]),
    "vg-pool_tmeta": ("lvm", ["secret"]),
    "vg-thin": ("thin", ["vg-pool-tpool"]),
    "vg-fast": ("cache", ["vg-fast_corig", "vg-quick_cpool_cdata", "vg-quick_cpool_cmeta"]),
    "vg-fast_corig": ("lvm", ["secret"]),
    "vg-quick_cpool_cdata": ("lvm", ["secret"]),
    "vg-quick_cpool_cmeta": ("lvm", ["secret"]),
}


def devices():
    return [Nvme(name, Backend("256M", data=True)) for name in NAMES]


def lvm(vm, command):
    return vm.sh(f"LVM_SYSTEM_DIR=/tmp/lvm lvm {command} --yes 2>&1")


def build(vm, one, two):
    vm.sh(f"mkdir -p /tmp/lvm /mnt/layers; echo '{LVM}' >/tmp/lvm/lvm.conf; "
          "modprobe -a dm_mod raid1 dm-crypt xts dm-thin-pool dm-snapshot dm-cache dm-cache-smq ext4; "
          f"mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --assume-clean --bitmap=internal /dev/{one} /dev/{two} 2>&1; "
          "export DM_DISABLE_UDEV=1; echo key | cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 256 "
          "--hash sha256 /dev/md0 secret && dmsetup mknodes")
    for command in ("vgcreate -q vg /dev/mapper/secret", "lvcreate -W n -L 32M -n data vg", "lvcreate -L 12M -s -n before vg/data",
                    "lvcreate -L 40M -T vg/pool", "lvcreate -W n -V 60M -T vg/pool -n thin", "lvcreate -W n -L 24M -n fast vg",
                    "lvcreate -L 16M --type cache-pool -n quick vg", "lvconvert --type cache --cachepool vg/quick vg/fast"):
        lvm(vm, command)
    vm.sh("mke2fs -q -F -t ext4 /dev/mapper/vg-data && mount /dev/mapper/vg-data /mnt/layers")


def listed(vm, disks):
    """What `ssdpulse devices` says: {title: layer} with the members' titles, and the text."""
    answer = json.loads(vm.sh("ssdpulse devices --config '' --json"))
    titles = {layer["name"]: layer["title"] or layer["name"] for layer in answer["layers"]} | dict(zip(disks, NAMES))
    layers = {titles[layer["name"]]: layer | {"members": sorted(titles.get(one, one) for one in layer["members"])}
              for layer in answer["layers"]}
    return answer, layers, titles


def run(vm, check):
    disks = [vm.disk(name) for name in NAMES]
    build(vm, *disks)
    daemon = machine.Daemon(vm)
    answer, layers, titles = listed(vm, disks)
    known = {title: (layer["kind"], layer["members"]) for title, layer in layers.items() if title in LAYERS}
    check.equal(known, LAYERS, "kinds, and what each lies on")
    stack = next(one for one in answer["stacks"] if one["mountpoint"] == "/mnt/layers")
    check.equal([(place["floor"], titles[place["name"]]) for place in stack["places"]],
                [(0, "vg-data"), (1, "vg-data-real"), (2, "secret"), (3, "md0"), (4, "one"), (4, "two")], "the tree below the mount")
    check.equal((layers["md0"]["health"], layers["md0"]["consistency_policy"]), ("", "bitmap"), "the array is well")
    vm.sh(f"mdadm /dev/md0 --fail /dev/{disks[1]} 2>&1; dmsetup suspend vg-thin")
    _, layers, _ = listed(vm, disks)
    check.equal((layers["md0"]["health"], layers["vg-thin"]["health"]), ("1 member is missing", "suspended"), "what is wrong")
    scrape = daemon.at_rest(8)
    check.equal(scrape.value("ssdpulse_volume_degraded_members", volume="md0"), 1, "so do the metrics")
    kinds = {dict(labels)["name"]: dict(labels)["kind"] for labels in scrape.series("ssdpulse_volume_info")
             if "name" in dict(labels)}
    check.equal({name: kinds.get(name) for name in LAYERS if name != "md0"},
                {name: kind for name, (kind, _) in LAYERS.items() if name != "md0"}, "kinds in the metrics")
    print(vm.sh("ssdpulse devices --config ''"))
    daemon.stop()
    vm.sh("dmsetup resume vg-thin; umount /mnt/layers")
    lvm(vm, "vgchange -an -qq vg")
    vm.sh("export DM_DISABLE_UDEV=1; cryptsetup close secret; mdadm --stop /dev/md0 2>&1")
