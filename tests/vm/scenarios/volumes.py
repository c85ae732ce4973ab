# SPDX-License-Identifier: Apache-2.0
"""Volumes (device-mapper, md, bcache) are counted as their users sent the I/O, whatever the kernel makes of it below.

Two oracles that know nothing of each other: fio, and the kernel's own statistics of the volume. Where those differ
from fio, a table here says so."""
from collections import Counter

import figures
import machine
from devices import Backend, Nvme
from lib import buckets, metrics
from volume_stacks import SIZE, SLOW_SECONDS, Fio, Stacks, diskstats, memory_disks

MACHINE = {"append": "nvme_core.multipath=N", "nice": -10}
OPERATIONS = ("read", "write", "flush", "discard")
COUNTED = ("read", "write", "discard")  # by the kernel
FIO = {"read": "read", "write": "write", "flush": "sync", "discard": "trim"}
FIRST = {"rw": "randread", "bs": "4k", "iodepth": 1, "number_ios": 4}
SMALL = {"alone": {"rw": "randrw", "bs": "4k", "iodepth": 1, "number_ios": 60},
         "deep": {"rw": "randrw", "bs": "4k", "iodepth": 16, "number_ios": 200},
         "flushes": {"rw": "write", "bs": "4k", "ioengine": "psync", "number_ios": 20, "fsync": 1},
         "durable": {"rw": "write", "bs": "4k", "ioengine": "psync", "number_ios": 20, "sync": "dsync"},
         "discards": {"rw": "randtrim", "bs": "64k", "ioengine": "psync", "number_ios": 20}}
LARGE = {"large": {"rw": "randrw", "bs": "1m", "iodepth": 4, "number_ios": 20}}
# What is done to a volume in use should find I/O of it in flight.
DISTURBED = {"rw": "randrw", "bs": "4k", "iodepth": 4, "io_size": "1M", "rate_iops": "25,25", "continue_on_error": "all"}
DISTURBED_IOS = (1 << 20) // 4096  # a number_ios would not count those that fail
AFTERWARDS = {"rw": "randrw", "bs": "4k", "iodepth": 4, "number_ios": 50}
OLD, NEW = ("5.10", "6.1"), ("6.12", "6.12-modular", "newest")
MD = {"raid0", "raid1", "raid5", "raid10"}
# Who splits 1 MiB: the kernel counts the pieces.
SPLIT = {kernel: {"stripe", "thin", "snapshot", "origin", *MD, *(["crypt", "crypt on linear"] if kernel in NEW else [])}
         for kernel in OLD + NEW}
# Whose flushes the kernel counts as writes.
FLUSHES_ARE_WRITES = {kernel: MD if kernel == "5.10" else set() for kernel in OLD + NEW}
# Where the kernel's own statistics are wrong. 5.10 counts what is left of a bio again with each piece of it; since
# 6.12 bcache counts what is left of a write at its end, which is nothing where it was cut into pieces; md does not
# count the discards that it hands to its members itself.
WRONG_BYTES = {"5.10": {("raid5", "read"), ("raid10", "read"), ("raid10", "write")},
               "6.1": set(), **{kernel: {("bcache", "write"), ("bcache", "discard")} for kernel in NEW}}
UNCOUNTED = {"5.10": set(), **{kernel: {("raid0", "discard"), ("raid5", "discard")} for kernel in ("6.1", *NEW)}}
# The same small bios pass from these to those.
BELOW = {"linear, below": "crypt on linear", "raid1, below": "linear on crypt on raid1",
         "crypt, below": "linear on crypt on raid1", **{f"floor {floor}, below": "floor 8" for floor in range(1, 8)}}
DELAY_NS = 15_000_000  # of the volume `delay`: 20 ms, but for a jiffy
WAY_TO_FIO_NS = 300_000  # from the bio's end to fio's look at the clock, on an emulated processor
TRIES = 4


def devices():
    return [Nvme("left", Backend("1G", data=True)), Nvme("right", Backend("1G", data=True))]


class Volumes:
    def __init__(self, vm, check):
        self.vm, self.check = vm, check
        self.stacks = Stacks(vm, [vm.disk("left"), vm.disk("right"), *memory_disks(vm, 2)])
        self.names = self.stacks.names
        queues = {what: vm.sh(f"cd /sys/block/{name}/queue && cat write_cache discard_max_bytes iostats").split("\n")
                  for what, name in self.names.items()}
        self.cached = {what for what, (cache, _, _) in queues.items() if cache == "write back"}
        # raid5 refuses them unless a parameter of its module says otherwise, and no caller is told.
        self.discards = {what for what, (_, most, _) in queues.items() if int(most) and what != "raid5"}
        self.accounted = {what for what, (_, _, iostats) in queues.items() if iostats == "1"}
        self.loaded = [what for what in self.names if not what.endswith(", below") and
                       what not in ("removed", "renamed", "reloaded", "grown", "slow", "broken", "half")]
        self.daemon = self.scrape = self.stats = None

    def start(self):
        """The first I/Os are sent as soon as the daemon says that it is ready."""
        self.stats = diskstats(self.vm)
        self.daemon = machine.Daemon(self.vm)
        jobs = [self.job(what, "first", FIRST) for what in self.loaded]
        sent = self.sent(Fio(self.vm, jobs).jobs())
        self.scrape = self.daemon.at_rest()
        self.judge(sent, metrics.Difference(metrics.Scrape(), self.scrape), "first: ours and fio", self.loaded)

    def difference(self):
        """Since the last call."""
        before, self.scrape = self.scrape, self.daemon.at_rest()
        return metrics.Difference(before, self.scrape)

    def job(self, what, shape, options):
        return f"{what} / {shape}", {"filename": f"/dev/{self.names[what]}", **options}

    def sent(self, jobs):
        """Counter of (what, operation, "ios" or "bytes"), as fio says."""
        counted = Counter()
        for name, job in jobs:
            what, shape = name.rsplit(" / ", 1)
            for operation, field in FIO.items():
                ios = job[field]["total_ios"]
                if operation == "flush":
                    # A durable write ends in a flush. The kernel sends none to a volume without a write cache.
                    ios = (ios + (job["write"]["total_ios"] if shape == "durable" else 0)) * (what in self.cached)
                counted[what, operation, "ios"] += ios
                counted[what, operation, "bytes"] += job[field].get("io_bytes", 0)
        return counted

    def load(self, shapes):
        """(by fio, by the kernel)"""
        jobs = []
        for shape, options in shapes.items():
            able = [what for what in self.loaded if options["rw"] != "randtrim" or what in self.discards]
            jobs += [self.job(what, shape, {**options, **({"stonewall": None} if what == able[0] else {})}) for what in able]
        before = diskstats(self.vm)
        done = Fio(self.vm, jobs).jobs()
        self.check.equal([name for name, job in done if job["error"]], [], f"{'+'.join(shapes)}: errors of fio")
        return self.sent(done), self.kernel(before)

    def kernel(self, before):
        """Counter like sent(), since `before`."""
        after = diskstats(self.vm)
        return Counter({(what, operation, kind): after[name, operation, kind] - before[name, operation, kind]
                        for what, name in self.names.items() for operation in COUNTED for kind in ("ios", "bytes")})

    def same(self, have, want, words):
        differ = {key: (have[key], want[key]) for key in want if have[key] != want[key]}
        self.check.that(not differ, f"{words}: {len(want)} figures; (have, want) of those that differ: {differ}")

    def compare_oracles(self, sent, kernel, shapes):
        kernel_name, have, want = self.vm.name, {}, {}
        for what in self.loaded:
            for operation in COUNTED:
                ios, size = sent[what, operation, "ios"], sent[what, operation, "bytes"]
                if operation == "write" and (what not in MD or what in FLUSHES_ARE_WRITES[kernel_name]):
                    ios += sent[what, "flush", "ios"]
                if (what, operation) in UNCOUNTED[kernel_name]:
                    ios = size = 0
                counted = kernel[what, operation, "ios"]
                have[what, operation], want[what, operation] = counted, ios
                if shapes is LARGE and what in SPLIT[kernel_name]:
                    want[what, operation] = max(ios, counted)
                if (what, operation) not in WRONG_BYTES[kernel_name]:
                    have[what, operation, "bytes"], want[what, operation, "bytes"] = kernel[what, operation, "bytes"], size
        self.same(have, want, f"{'+'.join(shapes)}: the kernel and fio")

    def judge(self, sent, difference, words, volumes):
        """Everything that was sent is counted, timed and ended, and nothing else: but for the runs that the kernel skips, and
        what ends in pieces."""
        wrong, unseen, untimed = {}, 0, 0
        for what in volumes:
            for operation in OPERATIONS:
                labels = {"volume": self.names[what], "operation": operation}
                ios, size = sent[what, operation, "ios"], sent[what, operation, "bytes"]
                have = (int(difference.value("ssdpulse_volume_ios_total", **labels)),
                        int(difference.value("ssdpulse_volume_bytes_total", **labels)),
                        difference.histogram("ssdpulse_volume_latency_seconds", **labels).count)
                if self.vm.name == "5.10" and what == "raid0":
                    # It passes bios on as they are, and splits large ones: those end in pieces, on its members.
                    have = (*have[:2], have[2] + int(difference.value("ssdpulse_volume_losses_total", cause="untimed", **labels)))
                unseen, untimed = unseen + ios - have[0], untimed + ios - have[2]
                each = size // ios if ios else 0
                possible = have[0] <= ios and have[2] <= have[0] and ("+" in words or size - have[1] == (ios - have[0]) * each)
                if not possible or (have != (ios, size, ios) and not any(skips(difference))):
                    wrong[what, operation] = (have, (ios, size, ios))
        submits, ends = skips(difference)
        self.check.that(not wrong and unseen <= submits and untimed <= submits + ends,
                        f"{words}: {unseen} not counted, {untimed} not timed; skipped {submits} and {ends} runs; "
                        f"(I/Os, bytes, timed) and those by fio where they are wrong: {wrong}")

    def at_rest(self, scrape, words, failed=Counter()):
        """`failed`: by the kernel's name."""
        errors, ends = Counter(), skips(metrics.Difference(metrics.Scrape(), scrape))[1]
        for series, value in scrape.series("ssdpulse_volume_errors_total").items():
            errors[dict(series)["volume"]] += int(value)
        for name in ("ssdpulse_volume_in_flight", "ssdpulse_volume_losses_total"):
            found = {series: value for series, value in scrape.series(name).items()
                     if value and not (self.vm.name == "5.10" and ("cause", "untimed") in series)}
            self.check.that(sum(found.values()) <= ends, f"{words}: {name}: {found}, of {ends} ends that were not seen")
        short = sum((failed - errors).values())
        self.check.that(not errors - failed and short <= ends, f"{words}: errors {dict(+errors)} of {dict(+failed)}")

    def drift(self, words):
        """What both counted since the start tells it, too."""
        scrape, stats = self.scrape, diskstats(self.vm)
        for _ in range(TRIES):
            have, want = {}, {}
            for what in self.loaded:
                if scrape.value("ssdpulse_volume_in_flight", volume=self.names[what]):
                    continue  # an end that was not seen: then it is never at rest
                for operation in COUNTED:
                    labels = {"volume": self.names[what], "operation": operation}
                    have[what, operation] = scrape.value("ssdpulse_volume_accounting_drift_bytes", **labels)
                    ours = scrape.value("ssdpulse_volume_bytes_total", **labels) or 0
                    key = (self.names[what], operation, "bytes")
                    want[what, operation] = ours - (stats[key] - self.stats[key]) if what in self.accounted else None
            if have == want:
                break
            scrape = self.daemon.at_rest()
        self.same(have, want, f"{words}: drift")
        print(f"     {words}: drift {({key: int(value) for key, value in have.items() if value})}")


def skips(difference):
    """Runs that the kernel skipped, as it does where one that is under way has been preempted: of what sees bios
    submitted, and of what sees them end."""
    return [sum(int(difference.value("ssdpulse_lost_events_total", cause="recursion", program=program)) for program in programs)
            for programs in (("on_volume_submit",), ("on_volume_end", "on_volume_request_end"))]


def passed_on(sent):
    """What the floors below others were sent."""
    return Counter({(below, operation, kind): sent[above, operation, kind] for below, above in BELOW.items()
                    for operation in OPERATIONS for kind in ("ios", "bytes")})


def loads(volumes):
    for shapes in (SMALL, LARGE):
        words = "+".join(shapes)
        sent, kernel = volumes.load(shapes)
        volumes.compare_oracles(sent, kernel, shapes)
        difference = volumes.difference()
        volumes.judge(sent, difference, f"{words}: ours and fio", volumes.loaded)
        if shapes is SMALL:
            volumes.judge(passed_on(sent), difference, f"{words}: lower floors", BELOW)
        of_file_systems = {what: difference.value("ssdpulse_write_ladder_bytes_total", rung="file_system", device=name)
                           for what, name in volumes.names.items()}
        volumes.same(of_file_systems, {what: difference.value("ssdpulse_volume_bytes_total", volume=name, operation="write")
                                       * (not what.endswith(", below")) for what, name in volumes.names.items()},
                     f"{words}: the ladder and the volumes that carry no other")
        volumes.at_rest(difference.after, words)
        volumes.drift(words)


def chains(vm, check, volumes):
    """Zeroes are a chain of bios. Linux 5.10 reports only the end of the last: the others have no latency, but have ended."""
    name, whole = volumes.names["linear"], 8 << 20
    before = diskstats(vm)
    vm.sh(f"blkdiscard --force --zeroout --length {whole} /dev/{name}")
    kernel, difference = volumes.kernel(before), volumes.difference()
    zeroes = [{"volume": name, "operation": operation} for operation in ("write", "write_zeroes")]

    def ours(family, **labels):
        return sum(int(difference.value(f"ssdpulse_volume_{family}", **one, **labels)) for one in zeroes)

    ios = kernel["linear", "write", "ios"]
    check.that(ios > 2, f"chains: {ios} bios")
    check.equal([ours("ios_total"), ours("bytes_total")], [ios, whole], "chains: ours and the kernel")
    timed = sum(difference.histogram("ssdpulse_volume_latency_seconds", **one).count for one in zeroes)
    untimed = ours("losses_total", cause="untimed")
    flying = sum(difference.after.series("ssdpulse_volume_in_flight", volume=name).values())
    ends = skips(metrics.Difference(metrics.Scrape(), difference.after))[1]
    check.that(flying <= ends, f"chains: {flying} in flight at rest")
    check.that(timed + untimed + ends >= ios and (untimed == 0 or vm.name == "5.10"), f"chains: {timed} timed, {untimed} not")


def held(vm, check, volumes):
    """A volume that takes seconds, and one that is suspended. The kernel itself shows neither's as in flight: the former's not
    since 5.18, where dm counts what a target holds back only when it is passed on."""
    deep = {"rw": "randread", "bs": "4k", "iodepth": 8, "number_ios": 8}
    vm.sh("dmsetup suspend linear")
    fio = Fio(vm, [volumes.job("slow", "held", deep), volumes.job("linear", "held", {**deep, "rw": "randwrite"})])

    def flying(scrape):
        return [scrape.value("ssdpulse_volume_in_flight", volume=volumes.names[what], operation=operation)
                for what, operation in (("slow", "read"), ("linear", "write"))]

    before = flying(volumes.scrape)
    scrape = volumes.daemon.wait_for(
        lambda scrape: flying(scrape) == [number + 8 for number in before] or any(skips(metrics.Difference(volumes.scrape, scrape))),
        "in flight what is held")
    check.that(True, f"held: in flight {flying(scrape)}, before {before}; "
                     f"skipped {skips(metrics.Difference(volumes.scrape, scrape))}")
    vm.sh("dmsetup resume linear")
    sent, difference = volumes.sent(fio.jobs(SLOW_SECONDS * 3)), volumes.difference()
    volumes.judge(sent, difference, "held: ours and fio", ("slow", "linear"))
    volumes.at_rest(difference.after, "held")
    native = difference.histogram("ssdpulse_volume_latency_seconds", volume=volumes.names["slow"], operation="read").native
    least = buckets.latency_bucket(SLOW_SECONDS * 10**9)
    check.that(native and min(native) >= least, f"held: in buckets {dict(native)}, none below {least}")


def latency(vm, check, volumes):
    """As fio felt it, within a bucket; where the host starved fio, again. Whatever its mood, no less than the delay, and
    no more than fio felt: only that is judged outside of the long form."""
    least = buckets.latency_bucket(DELAY_NS) - 1
    for number in range(TRIES):
        [(_, job)] = Fio(vm, [volumes.job("delay", "felt", {"rw": "randrw", "bs": "4k", "iodepth": 4, "number_ios": 100})]).jobs()
        difference, wrong, impossible = volumes.difference(), [], []
        for operation in ("read", "write"):
            native = difference.histogram("ssdpulse_volume_latency_seconds", volume=volumes.names["delay"],
                                          operation=operation).native
            for name, share in (("50.000000", 0.5), ("99.000000", 0.99)):
                felt = job[operation]["clat_ns"]["percentile"][name]
                have = figures.quantile(native, share)
                if not buckets.latency_bucket(felt - WAY_TO_FIO_NS) - 1 <= have <= buckets.latency_bucket(felt) + 1:
                    wrong.append((operation, share, have, buckets.latency_bucket(felt), felt))
                if not least <= have <= buckets.latency_bucket(felt) + 1:
                    impossible.append((operation, share, have, buckets.latency_bucket(felt), felt))
        if impossible or not wrong:
            break
        print(f"AGAIN {vm.name} volumes: (operation, share, bucket, fio's bucket, fio's ns) {wrong}")
    check.that(not impossible, f"latency: quantiles within what is possible: {impossible}")
    print(f"TABLE quantiles as fio felt them: {'no' if wrong else 'yes'}, at try {number + 1}")
    if vm.long:
        check.that(not wrong, f"latency: quantiles as fio felt them: {wrong}")


def disturbances(vm, check, volumes):
    """Volumes that fail, or to which something is done while they are in use."""
    names, members = volumes.names, volumes.stacks.members
    disturbed = ("broken", "half", "removed", "renamed", "reloaded", "grown", "raid1", "raid10")
    before = diskstats(vm)
    fio = Fio(vm, [volumes.job(what, "disturbed", {**DISTURBED, **({"size": f"{SIZE // 2}K"} if what == "half" else {})})
                   for what in disturbed])
    vm.wait_for(f"[ $(awk '{{print $1 + $5}}' /sys/block/{names['grown']}/stat) -gt 20 ]")
    [path], [larger] = members["reloaded"], members["grown"]
    half = SIZE // 2
    vm.sh("dmsetup remove --force removed && exit 1; "  # it is open: only its table is replaced, by one that fails
          "dmsetup rename renamed 'other name'; "
          f"printf '0 {half} linear {path} {half}\\n{half} {half} linear {path} 0\\n' >/tmp/table && "
          "dmsetup suspend reloaded && dmsetup load reloaded /tmp/table && dmsetup resume reloaded && "
          "dmsetup suspend grown && "
          f"dmsetup load grown --table '0 {SIZE + half} linear {larger} 0' && dmsetup resume grown && "
          f"mdadm --quiet /dev/md1 --fail {members['raid1'][0]} && mdadm --quiet /dev/md10 --fail {members['raid10'][1]}")
    done = fio.jobs()
    kernel, sent, difference = volumes.kernel(before), volumes.sent(done), volumes.difference()
    failed = {name.split(" / ")[0]: job["total_err"] for name, job in done}
    print(f"     disturbed: fio's errors {failed}")
    sound = [what for what in disturbed if not failed[what]]
    check.equal(sound, ["renamed", "reloaded", "grown", "raid1", "raid10"], "disturbed: felt no error")
    volumes.judge(sent, difference, "disturbed: ours and fio", sound)
    want = {what: DISTURBED_IOS for what in disturbed}
    have = {what: difference.value("ssdpulse_volume_ios_total", volume=names[what]) for what in disturbed}
    short = sum(want[what] - have[what] for what in disturbed)
    check.that(0 <= short <= skips(difference)[0], f"disturbed: {short} of {want} not counted: {have}")
    volumes.same({what: sum(kernel[what, kind, "ios"] for kind in COUNTED) for what in sound},
                 {what: want[what] for what in sound}, "disturbed: the kernel and fio")
    volumes.at_rest(difference.after, "disturbed", Counter({names[what]: count for what, count in failed.items()}))
    jobs = [volumes.job(what, "afterwards", AFTERWARDS) for what in sound if what != "grown"]
    jobs.append(volumes.job("grown", "afterwards", {**AFTERWARDS, "offset": f"{SIZE // 2}K", "size": f"{half // 2}K"}))
    volumes.judge(volumes.sent(Fio(vm, jobs).jobs()), volumes.difference(), "afterwards: ours and fio", sound)


def gone(vm, check, volumes):
    """Volumes disappear, and others take their numbers."""
    names, members = volumes.names, volumes.stacks.members
    vm.sh("dmsetup remove removed && dmsetup remove broken && mdadm --quiet --stop /dev/md0 && mdadm --quiet --stop /dev/md10")
    left = {names[what] for what in ("removed", "broken", "raid0", "raid10")}

    def present(scrape):
        return {dict(series)["volume"] for series in scrape.series("ssdpulse_volume_ios_total")}

    before = volumes.daemon.wait_for(lambda scrape: not present(scrape) & left, "volumes are gone")
    [path] = members["removed"]
    vm.sh(f"dmsetup create again --table '0 {SIZE} linear {path} 0'")
    name = "dm-" + vm.sh("dmsetup info -c --noheadings -o minor again")
    check.that(name in left, f"gone: {name} is one of {sorted(left)} again")
    volumes.names["again"] = name
    volumes.scrape = volumes.daemon.wait_for(lambda scrape: name in present(scrape), "the volume is there again")
    sent = volumes.sent(Fio(vm, [volumes.job("again", "reborn", AFTERWARDS)]).jobs())
    difference = volumes.difference()
    volumes.judge(sent, difference, "gone: ours and fio, of a volume with the number of another", ["again"])
    check.equal(difference.after.value("ssdpulse_volumes_left_out"), 0, "gone: volumes left out")
    others = present(before)
    check.that(others <= present(difference.after), "gone: the others are still there")


def run(vm, check):
    volumes = Volumes(vm, check)
    volumes.start()
    print(f"TABLE daemon with {len(volumes.names)} volumes: ready after {volumes.daemon.start_seconds:.1f} s")
    loads(volumes)
    chains(vm, check, volumes)
    held(vm, check, volumes)
    latency(vm, check, volumes)
    disturbances(vm, check, volumes)
    gone(vm, check, volumes)
    volumes.daemon.stop()
