# SPDX-License-Identifier: Apache-2.0
"""A database on LVM on LUKS on four striped drives: the drive that is slow is named, or the layer, or what is suspended, or nobody.

The oracle is what was done: a drive of our own answers later, a delay appears between LUKS and the array, busy loops take
the CPU of LUKS, a volume is suspended. How much later follows from what was usual just before: on a starved host, reads
that take 5 ms take 40. Each story must be named in time, gone after its end, and nobody else accused meanwhile, nor while all
is well.
"""
import json
import os
import time

import figures
import machine
from devices import Nvme, Slow
from lib import buckets, metrics

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "volumes"
MACHINE = {"append": "nvme_core.multipath=N", "nice": -10}
SECONDS = 700
ROUNDS = 10  # of the long form
MEMBERS = ("m0", "m1", "m2", "m3")
READ, WRITE, FLUSH = 0.005, 0.005, 0.01  # seconds, while all is well: a starved host adds several milliseconds, which must be few beside them
TIMES_SLOWER = 4  # than all but one in a hundred were
READ_SLOWLY, DELAY = 0.02, 0.04  # seconds, at least
HEALTHY = 75  # seconds, in the first round: what is usual of a layer is known after 60 of them
NAMED = {"drive": 12, "layer": 20, "cpu": 20, "suspended": 8}  # two whole intervals of 5 s for a layer, and the answer
GONE, QUIET = 20, 45  # three minutes of each round in which nobody may be accused
LVM = "activation { udev_sync=0 udev_rules=0 monitoring=0 } backup { backup=0 archive=0 } devices { obtain_device_list_from_udev=0 use_devicesfile=0 }"
MOUNT = "/srv/db"
LOAD = ("fio --direct=1 --ioengine=psync --bs=4k --size=48M --norandommap --time_based --runtime=36000 --thread --directory={mount} "
        "--name=reads --rw=randread --numjobs=6 --rate_iops=30 --name=log --rw=write --fsync=1 --numjobs=1 --rate_iops=10")


def devices():
    return [Nvme(serial, Slow("128M", data=True, read=READ, write=WRITE, flush=FLUSH)) for serial in MEMBERS]


def build(vm, disks):
    vm.sh(f"mkdir -p /tmp/lvm {MOUNT}; echo '{LVM}' >/tmp/lvm/lvm.conf; "
          "modprobe -a dm_mod raid0 dm-crypt dm-delay xts ext4; export DM_DISABLE_UDEV=1 LVM_SYSTEM_DIR=/tmp/lvm; "
          f"mdadm --create /dev/md0 --run --level=0 --chunk=16 --raid-devices={len(disks)} {' '.join(f'/dev/{disk}' for disk in disks)} 2>&1 && "
          "dmsetup create below --table \"0 $(blockdev --getsz /dev/md0) delay /dev/md0 0 0\" && dmsetup mknodes && "
          "echo key | cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 256 --hash sha256 /dev/mapper/below secret && "
          "dmsetup mknodes && lvm vgcreate -q vg /dev/mapper/secret 2>&1 && lvm lvcreate -W n -y -l 100%FREE -n db vg 2>&1 && "
          f"mke2fs -q -F -t ext4 /dev/mapper/vg-db && mount /dev/mapper/vg-db {MOUNT}", 120)


def delay_below(vm, milliseconds):
    vm.sh(f"dmsetup load --noudevsync below --table \"0 $(blockdev --getsz /dev/md0) delay /dev/md0 0 {milliseconds}\" && "
          "dmsetup resume --noudevsync below")


def set_host_priority(vm, nice):
    """Of the guest's second CPU, a thread of the emulator."""
    thread = next(cpu["thread-id"] for cpu in vm.qmp("query-cpus-fast") if cpu["cpu-index"] == 1)
    os.setpriority(os.PRIO_PROCESS, thread, nice)


def take_cpu(vm):
    """From LUKS, whose work is bound to one CPU for that; all else can use the other one. On the host, that CPU comes last:
    where there are few, it would make the drives wait, which are programs there."""
    set_host_priority(vm, 19)
    vm.sh("for queue in /sys/devices/virtual/workqueue/kcryptd-*; do echo 2 >$queue/cpumask || exit 1; done; "
          "for n in 1 2; do taskset 2 sh -c 'while :; do :; done' & renice -n -20 -p $! && echo $!; done >/tmp/loops")


def give_back(vm):
    vm.sh("kill $(cat /tmp/loops) && for queue in /sys/devices/virtual/workqueue/kcryptd-*; do echo 3 >$queue/cpumask; done")
    set_host_priority(vm, os.getpriority(os.PRIO_PROCESS, 0))


class Stories:
    def __init__(self, vm, check, disks, daemon):
        self.vm, self.check, self.disks, self.daemon = vm, check, disks, daemon
        self.usual = None

    def slower(self, least, family, **labels):
        """Seconds that no mood of the host takes for usual, by what these took in the last `healthy`."""
        native = self.usual.histogram(family, operation="read", **labels).native
        p99 = figures.quantile(native, 0.99)
        seconds = 0 if p99 in (None, buckets.ZERO) else buckets.upper_bound(p99) / 1e9
        print(f"     {sum(native.values())} reads of {labels}, usual p99 {seconds * 1000:.1f} ms")
        return max(least, TIMES_SLOWER * seconds)

    def why(self):
        """None: no answer in time."""
        code, words = self.vm.run(f"curl -sf -m 5 http://127.0.0.1:{machine.Daemon.PORT}/api/v1/why", 30)
        return json.loads(words)["why"] if code == 0 else None

    def answers(self, seconds):
        """[(second, answer)], one a second, each by the time at which it was there."""
        began, found = self.vm.clock(), []
        while not found or found[-1][0] < seconds:
            answer = self.why()
            found.append((self.vm.clock() - began, answer))
            time.sleep(1)
        return found

    @staticmethod
    def accusations(answers):
        """What is said to hold up or slow down I/O now: (second, cause, sentence)."""
        return [(at, answer["cause"] if answer["wait"] else "drive", answer["sentence"]) for at, answer in answers
                if answer and answer["when"] == "now" and (answer["wait"] or answer["incident"])]

    def healthy(self, seconds, what):
        before = self.daemon.scrape()
        answers = self.answers(seconds)
        self.usual = metrics.Difference(before, self.daemon.scrape())
        self.check.equal(self.accusations(answers), [], f"{what}: nobody is accused")
        self.check.equal(answers[-1][1] and answers[-1][1]["verdict"], "ok", f"{what}: it is known that all is well")
        self.vm.sh("kill -0 $(cat /tmp/fio.pid)")

    def story(self, what, begin, end, is_right, also_true=()):
        """`is_right`: (cause, sentence) -> whether that is who did it. `also_true`: causes that accuse nobody. Returns the
        last sentence that was right."""
        begin()
        try:
            during = self.accusations(self.answers(NAMED[what] + 10))
        finally:
            end()
        after = self.accusations(self.answers(GONE + 5))
        right = [(at, sentence) for at, cause, sentence in during if is_right(cause, sentence)]
        wrong = [one for one in during + after if not is_right(one[1], one[2]) and one[1] not in also_true]
        self.check.that(right and right[0][0] <= NAMED[what], f"{what}: named after {right[0][0] if right else None} s")
        self.check.that(right and right[-1][0] >= NAMED[what] + 7, f"{what}: named to its end")
        self.check.equal(wrong, [], f"{what}: nobody else is accused")
        last = max((at for at, _, _ in after), default=0)
        self.check.that(last <= GONE, f"{what}: gone {last:.1f} s after its end")
        said = right[-1][1] if right else "nothing is said"
        print(f"TABLE {what}: {right[0][0] if right else float('nan'):.1f} s, gone after {last:.1f} s: {said}")
        return said


def once(vm, check, stories, number):
    slow = MEMBERS[number % len(MEMBERS)]
    disk, others = vm.disk(slow), [one for one in stories.disks if one != vm.disk(slow)]
    backend = vm.devices[slow].backend

    def names_the_drive(cause, sentence):
        return cause == "drive" and disk in sentence and not any(one in sentence for one in others)
    slowly = stories.slower(READ_SLOWLY, figures.TOTAL, device=disk)
    stories.story("drive", lambda: backend.set(read=slowly), lambda: backend.set(read=READ), names_the_drive)
    stories.healthy(QUIET, "after the drive")
    volume = "dm-" + vm.sh("dmsetup info -c --noheadings -o minor vg-db")
    delay = stories.slower(DELAY, "ssdpulse_volume_latency_seconds", volume=volume)
    stories.story("layer", lambda: delay_below(vm, round(delay * 1000)), lambda: delay_below(vm, 0),
                  lambda cause, sentence: cause == "layer" and "below" in sentence and "dm layer itself" in sentence,
                  also_true=("pressure",))  # tasks wait, and no disk explains it: until the layer is proved
    stories.healthy(QUIET, "after the layer")
    if vm.long:
        said = stories.story("cpu", lambda: take_cpu(vm), lambda: give_back(vm),
                             lambda cause, sentence: cause == "layer" and "secret" in sentence and "crypt layer itself" in sentence,
                             also_true=("pressure",))
        check.that("Tasks wait for a CPU" in said, "cpu: and that CPUs are what it lacks")
        stories.healthy(QUIET, "after the CPU")
    stories.story("suspended", lambda: vm.sh("dmsetup suspend --noudevsync vg-db"), lambda: vm.sh("dmsetup resume --noudevsync vg-db"),
                  lambda cause, sentence: cause == "suspended" and MOUNT in sentence)


def run(vm, check):
    disks = [vm.disk(serial) for serial in MEMBERS]
    build(vm, disks)
    daemon = machine.Daemon(vm)
    vm.sh(f"{LOAD.format(mount=MOUNT)} >/tmp/fio.words 2>&1 & echo $! >/tmp/fio.pid; n=0; "
          f"until [ $(ls {MOUNT} | grep -c reads) = 6 ]; do sleep 0.5; n=$((n + 1)); [ $n -lt 120 ] || exit 1; done", 100)
    stories = Stories(vm, check, disks, daemon)
    stories.answers(15)  # fio writes its files first
    for number in range(ROUNDS if vm.long else 1):
        stories.healthy(QUIET if number > 0 else HEALTHY, f"round {number}, all is well")
        once(vm, check, stories, number)
        print(f"     round {number}: {check.failures} failures so far")
    vm.sh("kill $(cat /tmp/fio.pid)")
    daemon.stop()
