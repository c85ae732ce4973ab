# SPDX-License-Identifier: Apache-2.0
"""Reads that wait for a trim are slow under during=discard, and no others are; a drive that stalls is seen to stall."""
import re

import figures
import machine
from devices import Nvme, Slow
from lib import metrics

KERNELS_IN_CI = ("5.10",)  # the long form has all
MACHINE = {"append": "nvme_core.multipath=N"}
SHARES_GUEST = True
READ, TRIM, STALL = 0.002, 0.05, 0.3  # seconds
SLOW = 0.03  # a read that takes this long has waited for a trim, or for the host, which occasionally stops a guest
TRIMS, TRIM_SIZE, DEPTH = 30, 1 << 20, 4


def devices():
    return [Nvme("ours", Slow("256M"))]


def slower(native, seconds):
    return sum(native.values()) - figures.earlier_than(native, seconds)


def typical(native):
    """The upper bound of the median's bucket, in seconds."""
    return 2 ** (figures.quantile(native, 0.5) / 8) if native else 0


def shown(native):
    return " ".join(f"{2 ** (bucket / 8) * 1000:.3g}ms:{count}" for bucket, count in sorted(native.items()))


def trace(vm, disk):
    """Call the result for the kernel's own account of the reads from now on: [(seconds, of which during a trim)].

    Of two at once on one sector it knows only one: it is used to judge shares.
    """
    stop = vm.trace(disk, ["block_rq_issue", "block_rq_complete"])

    def end():
        stop()
        began, done = {}, {"R": [], "D": []}
        for when, event, kind, sector in re.findall(r" ([\d.]+): block_rq_(\w+): \S+ ([RD])\S* .*\) (\d+) \+",
                                                    vm.sh("cat /sys/kernel/tracing/trace")):
            if event == "issue":
                began[kind, sector] = float(when)
            elif (kind, sector) in began:
                done[kind].append((began.pop((kind, sector)), float(when)))
        return [(end - start, sum(max(0, min(end, trim[1]) - max(start, trim[0])) for trim in done["D"]))
                for start, end in done["R"]]
    return end


def trims(vm, check, daemon, disk):
    """Trims one after the other, in the middle of random reads."""
    before = daemon.at_rest(1.2)
    end_trace = trace(vm, disk)
    end = vm.background_fio(disk, rw="randread", bs="4k", iodepth=DEPTH, number_ios=10**6, time_based=None, runtime=5)
    vm.sh(f"sleep 1; blkdiscard --force --step {TRIM_SIZE} --length {TRIMS * TRIM_SIZE} /dev/{disk}")
    job = end()
    traced = end_trace()
    difference = metrics.Difference(before, daemon.at_rest(2.2))
    discards = figures.device_time(difference, disk, "discard")
    check.equal((sum(discards.values()), figures.size(difference, disk, "discard")), (TRIMS, TRIMS * TRIM_SIZE),
                "trims and their bytes")
    check.equal(figures.earlier_than(discards, TRIM), 0, f"trims that took less than the drive does: {shown(discards)}")
    reads = {during: difference.histogram(figures.DEVICE_TIME, device=disk, operation="read", during=during).native
             for during in figures.DURINGS}
    for during, native in reads.items():
        print(f"     reads with during={during}: {shown(native)}")
    total = sum(sum(native.values()) for native in reads.values())
    check.equal(total, job["read"]["total_ios"], "reads")
    check.that(len(traced) >= 0.99 * total, f"{len(traced)} reads are in the trace")
    check.equal(sum(reads["flush"].values()) + sum(reads["both"].values()), 0, "reads beside a flush")
    waited, others = reads["discard"], reads["none"]
    check.that(sum(waited.values()) >= TRIMS and typical(waited) >= SLOW > 2 * typical(others),
               f"half the reads beside a trim take {typical(waited):.3f} s or more, of others {typical(others):.3f} s")
    busy = sum(seconds >= 0.9 * SLOW and beside < 0.5 * seconds for seconds, beside in traced)
    # The host may stop the guest between the trace's reading of the clock and ours.
    check.that(slower(others, SLOW) <= busy + total // 500,
               f"{slower(others, SLOW)} of {total} others are slow: in the kernel's trace {busy} are, that waited for no trim")


def stall(vm, check, daemon, disk):
    """Nothing ends for a moment: what is then in flight takes that long, and is not lost."""
    before = daemon.at_rest(1.2)
    end_trace = trace(vm, disk)
    end = vm.background_fio(disk, rw="randread", bs="4k", iodepth=DEPTH, number_ios=10**6, time_based=None, runtime=3)
    vm.sh("sleep 1")
    vm.devices["ours"].backend.stall(STALL)
    job = end()
    traced = end_trace()
    difference = metrics.Difference(before, daemon.at_rest(6))
    reads = figures.device_time(difference, disk, "read")
    print(f"     reads: {shown(reads)}")
    check.equal(sum(reads.values()), job["read"]["total_ios"], "stall: reads")
    near = slower(reads, 0.8 * STALL) - slower(reads, 1.5 * STALL)
    slow, busy = slower(reads, 0.5 * STALL), sum(seconds >= 0.45 * STALL for seconds, _ in traced)
    check.that(DEPTH <= near <= slow <= busy,
               f"stall: {near} reads took about {STALL} s, of {DEPTH} in flight; {slow} are slow, {busy} in the trace")
    figures.at_rest(check, difference.after, disk)


def run(vm, check):
    disk, backend = vm.disk("ours"), vm.devices["ours"].backend
    backend.set(read=READ, write=READ, trim=TRIM, reads_wait_for_trim=True)
    daemon = machine.Daemon(vm)
    trims(vm, check, daemon, disk)
    stall(vm, check, daemon, disk)
    daemon.stop()
    backend.set(trim=0, reads_wait_for_trim=False)
