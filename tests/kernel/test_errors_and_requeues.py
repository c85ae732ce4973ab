#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Are failed I/Os counted as fio counts them, and partial completions and requeues as the trace does?

Errors: nbdkit fails a tenth of the reads and a twentieth of the writes. Requeues: the file under a direct loop device
is cut short, so that a read across its new end completes in part, is requeued, issued again for the rest, and fails.
"""
from lib import compare, rig
from lib.observe import observe

IOS = 20_000 if rig.LONG else 5_000


def failing(check, state, seed):
    with rig.fuse_disk(state, "128M", ["error"], "error-pread-rate=10%", "error-pwrite-rate=5%") as disk:
        seen = observe(check, state, [disk], lambda: rig.fio(
            disk, seed, may_fail=True, rw="randrw", bs="4k", size="128M", io_size="16T", ioengine="libaio",
            iodepth=8, number_ios=IOS, continue_on_error="all"))
        job, difference = seen.result, seen.difference
        check.that(job["total_err"] > IOS // 50, f"fio saw {job['total_err']} errors, first {job['first_error']}")
        errors(check, seen, disk)
        have = difference.value("ssdpulse_io_errors_total", device=disk.name, error="io")
        check.equal(have, difference.value("ssdpulse_io_errors_total", device=disk.name), "all are of kind io")
        compare.everything(check, seen, disk)


def errors(check, seen, disk):
    """As fio counts them, except for those whose end nobody saw; with the trace they are compared one for one."""
    have, unseen = seen.difference.value("ssdpulse_io_errors_total", device=disk.name), \
        sum(seen.unseen(disk, group) for group in ("read", "write"))
    check.that(seen.result["total_err"] - unseen <= have <= seen.result["total_err"],
               f"{have:.0f} errors, {seen.result['total_err']} by fio, at most {unseen} not seen")


def cut_short(check, state, seed):
    with rig.tmpfs(state, "128M") as memory:
        file = memory / "disk"
        rig.run("fallocate", "-l", "64M", file)
        with rig.loop_disk(file, direct=True) as disk:
            rig.run("truncate", "-s", 32 * 2**20 + 4096, file)
            seen = observe(check, state, [disk], lambda: rig.fio(
                disk, seed, may_fail=True, rw="randread", bs="16k", offset="31M", size="2M", io_size="16T",
                ioengine="libaio", iodepth=8, number_ios=5_000 if rig.LONG else 2_000, continue_on_error="all"))
            difference, traced = seen.difference, seen.trace(disk)
            check.that(traced.requeues["read"] > 10 and traced.partials["read"] > 10,
                       f"the trace: {traced.requeues['read']} requeues, {traced.partials['read']} partial completions")
            check.that(abs(traced.requeues["read"] - traced.requeues_seen) <= seen.unseen(disk, "read"),
                       f"the trace: the requeue itself was seen {traced.requeues_seen} times")
            have = difference.value("ssdpulse_io_requeues_total", device=disk.name, operation="read", reason="driver")
            check.equal(int(have), traced.requeues["read"], "requeues by the driver")
            have = difference.value("ssdpulse_io_requeues_total", device=disk.name, reason="failover")
            check.equal(int(have), 0, "failovers")
            errors(check, seen, disk)
            compare.everything(check, seen, disk)


def test(check, state):
    seed = rig.fresh_seed()
    failing(check, state, seed)
    cut_short(check, state, seed)


rig.main(test)
