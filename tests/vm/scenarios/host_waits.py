# SPDX-License-Identifier: Apache-2.0
"""What holds up I/O above the drives: io.max of a slice, a suspended volume, a frozen file system, a full one; an array checked.

Each is named within NAMED seconds and gone GONE seconds after its end; nothing else is claimed meanwhile, and nothing
before. The oracles are the load's own figures, dmsetup, df and the kernel's files.
"""
import json
import time

import machine
import owners
from devices import Backend, Nvme

KERNELS = ("5.10", "6.12", "newest")  # the functions that freeze have changed in between
PART = "stacks"  # CI has system.test_host_waits
NAMED, GONE = 8, 12  # of a guest's seconds: an emulated one is slow to answer
HEALTHY, HEALTHY_LONG = 40, 1800
WRITES_PER_SECOND = 40
SERVICE = f"{owners.GROUPS}/db.slice/pg.service"


def devices():
    return [Nvme(name, Backend("256M", data=True)) for name in ("plain", "left", "right")]


def why(vm):
    return json.loads(vm.sh(f"curl -sf http://127.0.0.1:{machine.Daemon.PORT}/api/v1/why"))["why"]


class Watch:
    def __init__(self, vm, check, ask):
        self.vm, self.check, self.ask = vm, check, ask

    def seconds(self, number):
        began, answers = self.vm.clock(), []
        while (at := self.vm.clock() - began) < number:
            answers.append((at, self.ask()))
            time.sleep(1)
        return answers

    def story(self, cause, begin, end):
        begin()
        during = self.seconds(NAMED + 6)
        end()
        after = self.seconds(GONE + 3)
        claims = [(at, answer) for at, answer in during if answer["when"] == "now" and answer["wait"]]
        first = next((at for at, answer in claims if answer["cause"] == cause), None)
        self.check.that(first is not None and first <= NAMED, f"{cause}: named after {first} s")
        self.check.equal({answer["cause"] for _, answer in claims} - {cause}, set(), f"{cause}: other claims")
        last = max((at for at, answer in after if answer["when"] == "now" and answer["cause"] == cause), default=0)
        self.check.that(last <= GONE, f"{cause}: gone {last:.1f} s after its end")
        print(f"TABLE {cause}: {claims[-1][1]['sentence'] if claims else during[-1][1]['sentence']}")
        return claims[-1][1] if claims else during[-1][1]


def start_load(vm, name, group, target, options):
    vm.sh(f"sh -c 'echo $$ >{group}/cgroup.procs; exec fio --name=job --filename={target} --direct=1 --time_based --runtime=3600 "
          f"--size=32M --thread {options}' >/tmp/fio.{name} 2>&1 & echo $! >/tmp/fio.{name}.pid")


def end_load(vm, name):
    vm.sh(f"kill -INT $(cat /tmp/fio.{name}.pid); n=0; while kill -0 $(cat /tmp/fio.{name}.pid) 2>/dev/null; do sleep 0.2; "
          "n=$((n + 1)); [ $n -lt 100 ] || exit 1; done")
    return vm.sh(f"cat /tmp/fio.{name}")


def run(vm, check):
    disks = {name: vm.disk(name) for name in ("plain", "left", "right")}
    owners.make_groups(vm, ["db.slice"])
    vm.sh(f"set -ex; echo '+io +memory' >{owners.GROUPS}/db.slice/cgroup.subtree_control; mkdir {SERVICE}; modprobe -a dm_mod raid1; "
          f"dmsetup create --noudevsync vol --table '0 131072 linear /dev/{disks['plain']} 0'; dmsetup mknodes; "
          "mke2fs -q -F -t ext4 -m 0 /dev/mapper/vol; mkdir -p /tmp/vol; mount -t ext4 /dev/mapper/vol /tmp/vol; "
          f"mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --assume-clean --bitmap=none /dev/{disks['left']} "
          f"/dev/{disks['right']} 2>&1; echo 2000 >/sys/block/md0/md/sync_speed_max; echo 1000 >/sys/block/md0/md/sync_speed_min")
    vm.sh("printf 'history: { directory: \"\" }\\n' >/tmp/waits.yaml")
    daemon = machine.Daemon(vm, "--config", "/tmp/waits.yaml")
    watch = Watch(vm, check, lambda: why(vm))
    start_load(vm, "db", SERVICE, "/tmp/vol/data", "--rw=randwrite --bs=4k --ioengine=psync --numjobs=2 --rate_iops=60")
    healthy = watch.seconds(HEALTHY_LONG if vm.long else HEALTHY)
    check.equal([answer["sentence"] for _, answer in healthy if answer["wait"] and answer["when"] == "now"], [], "claims on a healthy host")

    # Linux 5.10 counts I/O (io.stat) only for the device that it is sent to, and not for the disk below that.
    number = vm.sh(f"cat /sys/block/{'dm-0' if vm.name == '5.10' else disks['plain']}/dev").strip()
    limit = f"{owners.GROUPS}/db.slice/io.max"
    answer = watch.story("cgroup_limit", lambda: vm.sh(f"echo '{number} wiops={WRITES_PER_SECOND}' >{limit}"),
                         lambda: vm.sh(f"echo '{number} wiops=max' >{limit}"))
    check.that(f"{WRITES_PER_SECOND} writes a second" in answer["sentence"] and "db.slice" in answer["sentence"], "limit and slice")
    check.equal(answer["victim"], "pg.service", "who is held up")

    answer = watch.story("suspended", lambda: vm.sh("dmsetup suspend --noudevsync vol; dmsetup info vol | grep -q SUSPENDED"),
                         lambda: vm.sh("dmsetup resume --noudevsync vol"))
    check.that("/tmp/vol" in answer["sentence"] and "vol" in answer["sentence"], "the mount point and the volume")

    answer = watch.story("frozen", lambda: vm.sh("fsfreeze --freeze /tmp/vol"), lambda: vm.sh("fsfreeze --unfreeze /tmp/vol"))
    check.that("/tmp/vol is frozen by fsfreeze" in answer["sentence"], "the mount point, and who froze it")
    watch.story("frozen", lambda: vm.sh("fsfreeze --freeze /tmp/vol"), lambda: vm.sh("echo j >/proc/sysrq-trigger"))
    print(f"     fio: {[line for line in end_load(vm, 'db').splitlines() if 'clat' in line][:2]}")

    check.equal(vm.sh("n=$(df -Pk /tmp/vol | tail -1 | awk '{print $4}'); fallocate -l $((n - 2000))k /tmp/vol/filler && echo made").strip(),
                "made", "a filler")
    answer = watch.story("full", lambda: vm.sh("dd if=/dev/zero of=/tmp/vol/rest bs=64k 2>&1 | grep -q 'No space left'"),
                         lambda: vm.sh("rm /tmp/vol/filler /tmp/vol/rest"))
    check.that("/tmp/vol" in answer["sentence"], "the mount point")

    vm.sh("echo check >/sys/block/md0/md/sync_action")
    during = watch.seconds(NAMED)
    scrape = daemon.scrape()
    vm.sh("echo idle >/sys/block/md0/md/sync_action")
    after = watch.seconds(GONE)
    named = [at for at, answer in during if "md0 is being checked" in answer["sentence"]]
    check.that(named, f"the check: named after {named[:1]} s")
    print(f"TABLE check: {during[-1][1]['sentence']}")
    last = max((at for at, answer in after if "is being checked" in answer["sentence"]), default=0)
    check.that(last < after[-1][0], f"the check: gone {last:.1f} s after its end")
    check.that(scrape.series("ssdpulse_array_resync_progress_ratio", array="md0", action="check"), "the check has its progress")
    vm.sh("umount /tmp/vol; dmsetup remove --noudevsync vol; mdadm --stop /dev/md0 2>&1")
    daemon.stop()
    vm.sh(f"rmdir {SERVICE}")
    owners.remove_groups(vm)
