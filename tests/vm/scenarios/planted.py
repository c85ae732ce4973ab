# SPDX-License-Identifier: Apache-2.0
"""Faults planted in one guest: audit finds each, in the order of their known costs; the change that it advises ends
the finding, and the undo brings it back."""
import json
import time

import decisions
from devices import Backend, Nvme, NvmeSubsystem, Slow

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "decisions"
MACHINE = {"append": "nvme_core.multipath=N", "memory": "2G", "nice": -10}
SECONDS = 2700
HEALTHY, SICK, SEEN = 50, 180, 20  # seconds: until what is usual is known; of the faults; until a spike's end is written
DAY = 86400  # seconds
UNIT = 64 << 20  # reclaim unit of an FDP drive: when its handle is updated, the drive counts it as written whole
FDP = f"fdp.runs={UNIT >> 20}M,fdp.nrg=1,fdp.nruh=4"
QUEUE_DEPTH, DRIVE_DEPTH = 16, 7  # of the load, and of the drive: the other I/Os wait, with any scheduler
APART = 1.3  # costs closer than this may come in any order
HEAT = 0.8  # extra seconds that reads of the hot drive take
SCSI = "/sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block"
PASS, KEY = "/tmp/pass", "planted-key-that-nobody-may-see!"  # for the encrypted volumes: 32 bytes
REFRESH = ("cryptsetup refresh", f"export DM_DISABLE_UDEV=1; cryptsetup refresh --key-file {PASS}")  # a person would type the key
FIO = "fio --name={name} --filename={path} --direct=1 --thread --time_based --runtime=3600 --bs=4k --output=/dev/null "
READS = "--rw=randread --ioengine=psync --numjobs=2 --thinktime=30ms"


def devices():
    return [Nvme("barriers", Backend("64M", data=True)),
            Nvme("queue", Slow("64M", read=0.02), mqes=DRIVE_DEPTH),
            # A trim takes so long that waiting for it exceeds the variations of an emulated guest.
            Nvme("trims", Slow("192M", data=True, read=0.002, write=0.001, flush=0.001, trim=0.3, reads_wait_for_trim=True)),
            Nvme("hot", Slow("64M", read=0.005)),
            *(Nvme(name, Slow("512M", data=True, read=0.002, write=0.001)) for name in ("left", "right")),
            NvmeSubsystem("full", Backend("512M"), fdp=FDP),
            NvmeSubsystem("kept", Backend("512M", data=True), fdp=FDP),
            NvmeSubsystem("secret", Backend("512M", data=True), fdp=FDP),
            Nvme("plain", Backend("64M")),
            Nvme("hinted", Backend("16G"))]  # so large that random reads rarely follow one that is remembered


class Fault:
    """Planted before the load. `then`: its verdict after the change, and words that its reason must have. `change`,
    `undo`: what a person would do where the finding gives prose; else the finding's own command is run, with the first
    of `instead` replaced by the second. `says`: what is in the finding's change. `first`: what is done before."""

    def __init__(self, rule, device, verdict="advise", then=("ok", ""), change="", undo="", comes_back=True, instead=("", ""), says="",
                 first="true"):
        self.rule, self.device, self.verdict, self.then = rule, device, verdict, then
        self.change, self.undo, self.comes_back, self.instead, self.says = change, undo, comes_back, instead, says
        self.first = first

    def try_advice(self, vm, host, check):
        vm.sh(self.first)
        before = host.finding(self.rule, self.device)
        name = f"{self.rule} of {self.device}"
        show(name, before)
        check.equal(before["verdict"], self.verdict, f"{name}: {before['found']}: {before['why']} {before['evidence']}")
        check.that(self.says in before["change"], f"{name}: the change has {self.says!r}: {before['change']}")
        change, undo = (own or before[which].replace(*self.instead) for own, which in ((self.change, "change"), (self.undo, "undo")))
        if not change:
            return
        vm.sh(change)
        after = host.finding(self.rule, self.device)
        show(f"{name} after {change}", after)
        verdict, words = self.then
        check.that(after["verdict"] == verdict and words in after["why"],
                   f"{name}: gone after {change}: {after['verdict']}: {after['found']}: {after['why']}")
        if self.comes_back:
            vm.sh(undo)
            again = host.finding(self.rule, self.device)
            show(f"{name} after {undo}", again)
            check.equal(again["verdict"], self.verdict, f"{name}: back after {undo}: {again['found']}: {again['why']}")


def show(what, finding):
    print(f"{time.strftime('%H:%M:%S')} {what}: {finding['verdict']}: {finding['found']}: {finding['why']}", flush=True)


def mount_barriers(disks, options):
    return f"mount -t ext4 -o nobarrier{options} /dev/{disks['barriers']} /mnt/barriers"


def mount_barriers_again(disks, options):
    """Between two rounds of the load."""
    return ("n=0; until umount /mnt/barriers; do n=$((n + 1)); [ $n -lt 200 ] || exit 1; sleep 0.05; done; "
            + mount_barriers(disks, options))


def plant(vm, disks):
    ext4 = "mke2fs -q -t ext4 -F -E nodiscard"
    steps = {
        "none": "modprobe -q -a ext4 mq-deadline raid1 dm-crypt xts algif_skcipher; mkdir -p /etc/systemd/system /usr/lib/systemd/system; "
                "printf '[Timer]\\nOnCalendar=weekly\\n' >/usr/lib/systemd/system/fstrim.timer",
        "barriers": f"{ext4} /dev/{disks['barriers']} && mkdir /mnt/barriers && {mount_barriers(disks, ',data=journal')}",
        "queue": f"cd /sys/block/{disks['queue']}/queue && echo mq-deadline >scheduler && echo 256 >nr_requests",
        "hot": f"echo 4294967295 >/sys/block/{disks['hot']}/queue/io_timeout",
        "trims": f"{ext4} /dev/{disks['trims']} && mkdir /mnt/trims && mount -t ext4 -o discard /dev/{disks['trims']} /mnt/trims && "
                 "dd if=/dev/zero of=/mnt/trims/data bs=1M count=64 conv=fsync 2>&1",
        "check": f"mdadm --create /dev/md1 --run --level=1 --raid-devices=2 --assume-clean --bitmap=none /dev/{disks['left']} "
                 f"/dev/{disks['right']} 2>&1",
        "crooked": f"echo 'write through' >/sys/block/{disks['crooked']}/queue/write_cache; mdadm --create /dev/md2 --run --level=1 "
                   f"--raid-devices=2 --assume-clean --bitmap=none --data-offset=2049s /dev/{disks['crooked']} missing 2>&1",
        "kept": f"{ext4} -O ^has_journal /dev/{disks['kept']} && mkdir /mnt/kept && "
                f"mount -t ext4 /dev/{disks['kept']} /mnt/kept && fallocate -l {UNIT} /mnt/kept/data",
        "secret": f"printf '{KEY}' >{PASS}; export DM_DISABLE_UDEV=1; cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 "
                  f"--pbkdf-force-iterations 1000 --key-file {PASS} /dev/{disks['secret']} && "
                  f"cryptsetup open --key-file {PASS} /dev/{disks['secret']} secret && dmsetup mknodes",
        "plain": "export DM_DISABLE_UDEV=1; cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 256 --allow-discards "
                 f"--key-file {PASS} /dev/{disks['plain']} plain && dmsetup mknodes",
    }
    for name, step in steps.items():
        print(f"{time.strftime('%H:%M:%S')} planting {name}: {step}", flush=True)
        vm.sh(step, 180)


class Loads:
    def __init__(self, vm, disks):
        self._vm, self._disks, self._pids = vm, disks, []

    def add(self, name, script):
        self._vm.sh(f"cat >/tmp/{name}.sh <<'END'\n{script}\nEND")
        self._pids.append(self._vm.sh(f"setsid dash /tmp/{name}.sh >/tmp/{name}.log 2>&1 & echo $!"))

    def rounds(self, name, command, pause):
        """The number of rounds done is in /tmp/NAME.rounds."""
        self.add(name, f"n=0; while :; do {{ {command}; }} || break; n=$((n + 1)); echo $n >/tmp/{name}.rounds; sleep {pause}; done")

    def usual(self):
        for name in ("trims", "hot"):
            self.add(name, FIO.format(name=name, path=self._path(name)) + READS)
        self.add("check", FIO.format(name="check", path="/dev/md1") + READS)

    def _path(self, name):
        return "/mnt/trims/data" if name == "trims" else f"/dev/{self._disks[name]}"

    def sick(self):
        disks = self._disks
        update = "nvme fdp update /dev/{} --pids=0 >/dev/null"
        self.add("queue", "chrt -o 0 taskset 1 " + FIO.format(name="queue", path=f"/dev/{disks['queue']}")
                 + f"--rw=randread --ioengine=libaio --iodepth={QUEUE_DEPTH}")
        self.rounds("files", "dd if=/dev/zero of=/mnt/trims/segment bs=1M count=2 conv=fsync; rm /mnt/trims/segment; sync", 0.5)
        self.rounds("full", f"dd if=/dev/zero of=/dev/{disks['full']} bs=2M count=8 oflag=direct && {update.format(disks['full'])}", 1)
        self.rounds("kept", "dd if=/dev/zero of=/mnt/kept/data bs=2M count=20 oflag=direct conv=notrunc && "
                    f"{update.format(disks['kept'])}", 1.5)
        self.rounds("secret", "dd if=/dev/zero of=/dev/mapper/secret bs=1M count=8 oflag=direct && "
                    f"{update.format(disks['secret'])}", 5)
        self.rounds("crooked", "dd if=/dev/zero of=/dev/md2 bs=1M count=16 oflag=direct", 0.8)
        self.rounds("logged", "dd if=/dev/zero of=/mnt/barriers/file bs=64k count=16 conv=notrunc,fsync", 1)
        self.add("random", FIO.format(name="random", path=f"/dev/{disks['hinted']}")
                 + "--rw=randread --bs=128k --thinktime=50ms")  # as large as what is read ahead
        self.add("hinted", f"tagged_write /dev/{disks['hinted']} {1 << 20} block={64 << 10} hint=2 direct")

    def done(self, name):
        return int(self._vm.sh(f"cat /tmp/{name}.rounds"))

    def show(self):
        """How far each got, and the last words of each that printed any."""
        print(self._vm.sh("cd /tmp; for f in *.rounds; do echo $f $(cat $f); done; for f in *.log; do case $f in daemon*) ;; *) "
                          "echo $f: $(tail -n 2 $f) ;; esac; done"), flush=True)

    def stop(self):
        self._vm.sh("for p in " + " ".join(self._pids) + "; do kill -9 -$p; done 2>/dev/null; sleep 1; true")


def make_hot(vm, hot):
    vm.devices["hot"].backend.set(added=[{"kind": "read", "seconds": HEAT}] if hot else [])
    vm.qmp("qom-set", path="/machine/peripheral/hot", property="smart_critical_warning", value=2 if hot else 0)


def held_up(vm, name):
    return sum(seconds for _, kind, seconds, _ in vm.devices[name].backend.added() if kind == "read")


def known_costs(vm, disks, loads, began):
    """{(rule, device): per day} of what was planted, from what caused it: seconds of waiting, then bytes of wear."""
    seconds = time.monotonic() - began
    excess = {("Q1", disks["queue"]): (QUEUE_DEPTH - DRIVE_DEPTH) * (SICK + SEEN), ("F2", "/mnt/trims"): held_up(vm, "trims"),
              ("N9", disks["hot"]): held_up(vm, "hot")}
    wear = {("N4", disks["full"]): loads.done("full") * (UNIT - (16 << 20)),
            ("F4", "/mnt/kept"): loads.done("kept") * (UNIT - (40 << 20)),
            ("N3", "md2"): loads.done("crooked") * (16 << 20)}
    return [{rule: one / seconds * DAY for rule, one in costs.items()} for costs in (excess, wear)]


def ranked(check, findings, excess, wear):
    order = [(one["id"], one["device"]) for one in findings if one["verdict"] in ("danger", "advise")]
    known = [("F7", "/mnt/barriers"), *excess, *wear]
    check.equal(sorted(set(known) & set(order)), sorted(known), f"found, of {order}")
    ranks = [*(one for one in order if one in known), *(one for one in known if one not in order)]
    check.equal(ranks[:1 + len(excess)], [known[0], *sorted(excess, key=ranks.index)], f"danger, then waiting, then wear: {ranks}")
    for costs in (excess, wear):
        for one in costs:
            for other in costs:
                if costs[one] > APART * costs[other]:
                    check.that(ranks.index(one) < ranks.index(other), f"{one} is dearer than {other}")
    evidence = {(one["id"], one["device"]): one["evidence"] for one in findings if one["verdict"] == "advise"}
    for costs, name, least, most in ((excess, "excess_seconds_per_day", 0.7, 2.5), (wear, "wear_bytes_per_day", 0.85, 1.15)):
        for (rule, device), cost in costs.items():
            told = evidence.get((rule, device), {}).get(name, 0)
            print(f"TABLE planted: {rule} of {device} costs {cost:.4g} a day, audit says {told:.4g}: {told / cost:.2f}")
            check.that(least * cost <= told <= most * cost, f"{rule} of {device}: {told:.4g} of {cost:.4g} a day")


def run(vm, check):
    disks = {name: vm.disk(name) for name in ("barriers", "queue", "trims", "hot", "left", "right", "full", "kept", "secret",
                                              "plain", "hinted")}
    # Pages of 4 KiB, which the emulator's NVMe does not report.
    vm.sh("modprobe sd_mod; modprobe scsi_debug dev_size_mb=256 physblk_exp=3 delay=0 max_luns=1")
    vm.wait_for(f"ls {SCSI}/*")
    disks["crooked"] = vm.sh(f"ls {SCSI}").split()[-1]
    plant(vm, disks)
    loads, host = Loads(vm, disks), decisions.Host(vm, reads_drives=True)
    began = time.monotonic()
    loads.usual()
    time.sleep(HEALTHY)
    loads.sick()
    make_hot(vm, True)
    for name in ("left", "right"):
        vm.devices[name].backend.set(bytes_per_second=1_200_000)
    vm.sh("echo check >/sys/block/md1/md/sync_action")
    time.sleep(SICK)
    make_hot(vm, False)
    time.sleep(SEEN)
    loads.show()
    excess, wear = known_costs(vm, disks, loads, began)
    findings = host.findings()
    decisions.show("audit -v", host.audit("-v"))
    ranked(check, findings, excess, wear)
    for fault in (
            Fault("F17", "md1", then=("info", "it is already slowed down")),  # the check ends by itself
            Fault("F2", "/mnt/trims", then=("not applicable", "it is not trimmed: see F4")),
            Fault("F7", "/mnt/barriers", verdict="danger"),
            Fault("Q8", disks["crooked"], verdict="danger"),
            Fault("F8", "/mnt/barriers", change=mount_barriers_again(disks, ""), undo=mount_barriers_again(disks, ",data=journal")),
            Fault("Q1", disks["queue"]),
            Fault("Q5", disks["hinted"]),
            Fault("Q11", disks["hot"], verdict="info"),
            Fault("N4", disks["full"], then=("info", "anything beyond that is due to the load"),
                  change=f"addpart /dev/{disks['full']} 1 2048 {(400 << 20) // 512}",
                  undo=f"blockdev --rereadpt /dev/{disks['full']}"),
            Fault("F5", "dm-0", instead=REFRESH, says="--allow-discards"),
            # It has its own command once F5 has none.
            Fault("F6", "dm-0", verdict="info", first=REFRESH[1] + " --allow-discards secret", instead=REFRESH,
                  says="--perf-no_read_workqueue --perf-no_write_workqueue"),
            Fault("F4", "/mnt/kept", change="fstrim -v /mnt/kept; sleep 5", comes_back=False)):  # deleted for good
        fault.try_advice(vm, host, check)
    hot = host.finding("N9", disks["hot"])
    check.equal((hot["verdict"], "throttled to cool down" in hot["why"]), ("advise", True), f"N9: {hot['found']}: {hot['why']}")
    hints = [one["found"] for one in json.loads(host.ask("doctor", "--json"))["findings"]
             if (one["id"], one["device"]) == ("write-hints", disks["hinted"])]
    check.that(hints and "write lifetime hints" in hints[0], f"doctor's write-hints: {hints}")
    trims = host.finding("F2", "/mnt/trims")
    show("F2 of /mnt/trims, at last", trims)
    check.equal(trims["verdict"], "advise", f"F2: found still, as it was undone: {trims['why']} {trims['evidence']}")
    loads.stop()
    key_is_kept(vm, host, check)
    rebuild(vm, host, check, disks["crooked"])
    host.daemon.stop()


def key_is_kept(vm, host, check):
    """The tables of dm-crypt, which are read for F6, contain the key in hexadecimal digits."""
    digits = KEY.encode().hex()
    vm.sh(f"dmsetup table --showkeys plain | grep -qi {digits}")  # otherwise there would be nothing to find
    places = {"audit -v --all": host.audit("-v", "--all"), "audit --json": host.audit("--json", "--all"), "metrics": host.daemon.text(),
              "log": host.daemon.words(), "doctor": host.ask("doctor")}
    for place, words in places.items():
        check.that(KEY not in words and digits not in words.lower(), f"no key in {place}")
    found = vm.run(f"grep -rilE '{KEY}|{digits}' {decisions.HISTORY} /run /var")[1].decode()
    check.equal(found.strip(), "", "no key in a file of the daemon's")


def rebuild(vm, host, check, disk):
    """What N3 advises: the array is recreated."""
    one = host.finding("N3", "md2")
    check.equal(one["verdict"], "advise", f"N3: {one['found']}: {one['why']} {one['evidence']}")
    vm.sh(f"mdadm --stop /dev/md2 2>&1 && mdadm --zero-superblock /dev/{disk} && mdadm --create /dev/md2 --run --level=1 "
          f"--raid-devices=2 --assume-clean --bitmap=none --data-offset=1M /dev/{disk} missing 2>&1", 60)
    check.equal(host.finding("N3", "md2")["verdict"], "ok", "N3: gone once the array was made again")
