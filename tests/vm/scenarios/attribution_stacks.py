# SPDX-License-Identifier: Apache-2.0
"""I/O through LVM, md, dm-crypt, multipath, btrfs, overlayfs or to swap is reported below under its sender's cgroup."""
from dataclasses import dataclass

import guest
import owners
from devices import Backend, Nvme, NvmeSubsystem
from lib.attribution import BYTES
from owners import GROUPS, Probe

PART = "stacks"
KERNELS = ("5.10", "newest")
MIB = 1 << 20
EACH = 2  # MiB
LAYOUT, MEMBERS = guest.load("attribution"), guest.load("members")
# cgroup: fio's options
ENGINES = {"sync": "--ioengine=psync", "uring": "--ioengine=io_uring --iodepth=4"}
PAGES = "--ioengine=psync --direct=0 --end_fsync=1"
WANTED, ALLOWED = 30, 12  # MiB of memory
NOT_OURS = 256 << 10  # superblocks, bitmaps and trees that a layer writes or reads for itself


def devices():
    return [Nvme("lower", Backend("256M", data=True)), Nvme("mirror", Backend("256M", data=True)),
            NvmeSubsystem("twoway", Backend("256M", data=True), controllers=2)]


@dataclass
class Layer:
    name: str
    disks: list  # below it
    node: str    # the one that it makes, or the directory where it is mounted
    set_up: str
    tear_down: str
    paths: dict  # {who: {operation: "path access"}}: how it is reported below
    copies: int = 1  # of what is written
    writes_have_owners: bool = True  # false: a thread of the kernel writes for everybody, and the kernel charges the root
    files: bool = False

    def place(self, group, number):
        return f"{self.node}/{group}" if self.files else f"{self.node} --offset={number * EACH}M"


def sums(looks, group):
    """[bytes read, bytes written] of a cgroup on all disks."""
    return [sum(look.owners.get(group, {}).get(operation, [0, 0, 0])[BYTES] for look in looks.values())
            for operation in ("read", "write")]


def by_path(looks):
    told = {}
    for look in looks.values():
        for path, totals in look.paths.items():
            for operation in ("read", "write"):
                if totals[operation][BYTES]:
                    key = f"{path} {operation}"
                    told[key] = told.get(key, 0) + totals[operation][BYTES]
    return told


def judge(check, layer, looks, done, ids):
    check.equal([look.disagreement() for look in looks.values()], [[]] * len(looks), f"{layer.name}: the sums agree")
    wanted, of_root = {}, 0
    for group, (read, written) in done.items():
        size, have = [read, written * layer.copies], sums(looks, ids[group])
        owned = [read, size[1] if layer.writes_have_owners else 0]
        of_root += size[1] - owned[1]
        # A file system reads its own trees on behalf of the process that waits for them.
        more = NOT_OURS if layer.files else 0
        check.that(all(0 <= got - want <= more for got, want in zip(have, owned)),
                   f"{layer.name}: bytes read and written by {group}: {have}, by fio {size}")
        for operation, bytes_done in zip(("read", "write"), size):
            key = f"{layer.paths[group][operation]} {operation}"
            wanted[key] = wanted.get(key, 0) + bytes_done
    check.that(sums(looks, ids["/"])[1] >= of_root, f"{layer.name}: bytes written by the root: {sums(looks, ids['/'])[1]}")
    have = by_path(looks)
    print(f"TABLE {layer.name}: {have}")
    check.that(all(0 <= have.get(key, 0) - size <= NOT_OURS for key, size in wanted.items() if size),
               f"{layer.name}: bytes by path {have}, wanted {wanted}")


def try_layer(vm, check, layer, ids):
    vm.sh(layer.set_up, 100)
    groups = {**ENGINES, **({"pages": PAGES} if layer.files else {})}
    if layer.files:
        vm.sh(";".join(f"dd if=/dev/zero of={layer.node}/{group} bs=1M count={EACH} conv=fsync" for group in groups)
              + "; sync; echo 3 >/proc/sys/vm/drop_caches")
    probe = Probe(vm, layer.disks)
    done = {group: owners.fio(vm, group, options, layer.place(group, number), "randrw", EACH)
            for number, (group, options) in enumerate(groups.items())}
    vm.sh("sync")
    looks = probe.looks()
    judge(check, layer, looks, done, ids)
    probe.end()
    vm.sh(layer.tear_down, 100)


def swap(vm, check, disk, ids):
    """A cgroup that needs more memory than it may have, and not for zeroes, which have not been written since 6.11."""
    vm.sh(f"mkswap /dev/{disk} && swapon /dev/{disk} && echo {ALLOWED}M >{GROUPS}/swap/memory.max")
    probe = Probe(vm, [disk])
    vm.sh(f"sh -c 'echo $$ >{GROUPS}/swap/cgroup.procs; exec dd if=/dev/urandom of=/dev/null bs={WANTED}M count=1 iflag=fullblock'", 200)
    look = probe.looks()[disk]
    check.equal(look.disagreement(), [], "swap: the sums agree")
    told, owned = by_path({disk: look}), sums({disk: look}, ids["swap"])
    print(f"TABLE swap: {told}, of the cgroup {owned}")
    written = told.get("swap file write", 0)
    check.that(written >= (WANTED - ALLOWED) * MIB // 2 and owned[1] == written, f"swap: {written} bytes written out, of its cgroup {owned[1]}")
    probe.end()
    vm.sh(f"swapoff /dev/{disk}", 100)


def same(path):
    """The same path for each engine and each operation."""
    return {group: {"read": path, "write": path} for group in (*ENGINES, "pages")}


def layers(vm, lower, mirror, twoway):
    """What each kernel can report about them."""
    old = vm.name in LAYOUT.ENGINE_UNKNOWN
    raw = {"sync": "sync raw", "uring": "direct raw" if old else "io_uring raw"}
    # For a file on overlayfs the kiocb is overlayfs's own.
    above = {"sync": "direct file" if old else "sync file", "uring": "direct file"}
    upper = {group: dict.fromkeys(("read", "write"), path) for group, path in above.items()}
    upper["pages"] = {"read": "buffered_read file", "write": "writeback file"}
    sectors = 100 << 11
    return [
        Layer("LVM", [lower], "/dev/mapper/wide-linear",
              f"mkdir -p /tmp/lvm; echo '{MEMBERS.LVM}' >/tmp/lvm/lvm.conf; modprobe dm_mod; export LVM_SYSTEM_DIR=/tmp/lvm; "
              f"lvm vgcreate -q wide --yes /dev/{lower} && lvm lvcreate --extents 100%FREE --name linear --yes wide",
              f"export LVM_SYSTEM_DIR=/tmp/lvm; lvm vgremove -q --yes --force wide && lvm pvremove -q --yes /dev/{lower}",
              same("stacked file")),
        Layer("md RAID-1", [lower, mirror], "/dev/md0",
              "modprobe raid1; mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --assume-clean --bitmap=none "
              f"/dev/{lower} /dev/{mirror} && echo 0 >/sys/block/md0/md/safe_mode_delay && "
              "dd if=/dev/zero of=/dev/md0 bs=4k count=1 conv=fsync",
              f"mdadm --stop /dev/md0; mdadm --zero-superblock /dev/{lower} /dev/{mirror}", same("stacked file"), copies=2),
        Layer("dm-crypt", [lower], "/dev/mapper/secret",
              "modprobe -q crypto_null; modprobe -q ecb; modprobe dm-crypt; "
              f"dmsetup create secret --table '0 {sectors} crypt cipher_null-ecb - 0 /dev/{lower} 0' && "
              "dmsetup mknodes",
              "dmsetup remove secret; dmsetup mknodes", same("stacked file"), writes_have_owners=vm.name != "5.10"),
        Layer("NVMe multipath", [twoway], f"/dev/{twoway}", "true", "true",
              {group: dict.fromkeys(("read", "write"), path) for group, path in raw.items()}),
        Layer("btrfs", [lower], "/mnt/b",
              f"modprobe btrfs; mkfs.btrfs -q -f -K /dev/{lower} && mkdir -p /mnt/b && mount /dev/{lower} /mnt/b",
              "umount /mnt/b", same("other file"), files=True),
        Layer("overlayfs", [lower], "/mnt/o",
              f"modprobe -q ext4; modprobe overlay; {LAYOUT.MAKE['ext4']} /dev/{lower} && mkdir -p /mnt/a /mnt/o && "
              f"mount /dev/{lower} /mnt/a && mkdir /mnt/a/upper /mnt/a/work /mnt/a/low && "
              "mount -t overlay -o lowerdir=/mnt/a/low,upperdir=/mnt/a/upper,workdir=/mnt/a/work overlay /mnt/o",
              "umount /mnt/o; umount /mnt/a", upper, files=True),
    ]


def run(vm, check):
    lower, mirror, twoway = (vm.disk(name) for name in ("lower", "mirror", "twoway"))
    ids = owners.make_groups(vm, [*ENGINES, "pages", "swap"])
    vm.sh("; ".join(f"echo 2 >/sys/block/{disk}/queue/nomerges; echo 0 >/sys/block/{disk}/queue/read_ahead_kb"
                    for disk in (lower, mirror, twoway)))
    ids["/"] = int(vm.sh(f"stat -c %i {GROUPS}"))
    for layer in layers(vm, lower, mirror, twoway):
        try_layer(vm, check, layer, ids)
    swap(vm, check, lower, ids)
    owners.remove_groups(vm)
