#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
"""Do the quantiles that a real Prometheus computes agree with the latencies that fio saw?

The device is a loop device over FUSE whose reads take 1 ms and writes 2 ms or more: queueing there makes the tail. The
Prometheus of every Debian suite scrapes the same daemon at once, one of them also without native histograms.
"""
import math
import time

import prometheus
from lib import rig

RUN_SECONDS = 120 if rig.LONG else 25
QUANTILES = ("50", "90", "99", "99.9")
NATIVE = "ssdpulse_io_latency_seconds{{device=\"{0}\"}}"
CLASSIC = "ssdpulse_io_latency_seconds_bucket{{device=\"{0}\"}}"


def load(disk, seed, **options):
    # Ahead of all others in the scheduler: fio's waiting for a CPU is not latency of the device.
    command = rig.fio_command(disk, seed, [{}], group_reporting=None, rw="randrw", bs="4k", size="256M",
                              ioengine="libaio", iodepth=4, **options)
    return rig.Load(["chrt", "--fifo", "50", *command]).jobs()[0]


def compare(check, server, disk, fio, begin, end, native):
    """Quantiles over exactly the run: the device was at rest at both ends of the window."""
    window = math.ceil(end - begin)
    selector = (NATIVE if native else CLASSIC).format(disk.name)
    by = "operation" if native else "operation, le"
    for percent in QUANTILES:
        expression = f"histogram_quantile({float(percent) / 100:g}, sum by ({by}) (increase({selector}[{window}s])))"
        have = {dict(labels)["operation"]: value for labels, value in server.query(expression, end).items()}
        for operation in ("read", "write"):
            percentiles = {float(p): ns / 1e9 for p, ns in fio[operation]["lat_ns"]["percentile"].items()}
            felt = percentiles[float(percent)]
            ratio = have.get(operation, math.nan) / felt
            low, high = (0.9, 1.1) if native else (0.5, 2)
            check.that(low <= ratio <= high, f"{server.name} {operation} p{percent}: "
                       f"{have.get(operation, math.nan) * 1e3:.3f} ms, fio {felt * 1e3:.3f} ms, ratio {ratio:.3f}")


def test(check, state):
    seed = rig.fresh_seed()
    binaries = {suite: prometheus.fetch(state, suite,
                                        "prometheus") / "usr/bin/prometheus" for suite in prometheus.SUITES}
    wanted = [(f"{suite} native", binary, "native") for suite, binary in binaries.items()]
    wanted.append(("trixie classic", binaries["trixie"], "classic"))
    with rig.fuse_disk(state, "256M", ["delay"], "delay-read=1ms", "delay-write=2ms") as disk, \
            rig.daemon(state, [disk]) as daemon:
        # A histogram appears with its first sample: this makes them exist before the window begins.
        load(disk, seed, number_ios=200)
        with prometheus.servers(state, wanted, daemon.port) as servers:
            time.sleep(rig.SETTLE_SECONDS + 1)
            begin = time.time()
            time.sleep(1)
            fio = load(disk, seed + 1, time_based=None, runtime=RUN_SECONDS)
            time.sleep(rig.SETTLE_SECONDS + 1)
            end = time.time()
            for operation in ("read", "write"):
                report = fio[operation]
                mean = report["lat_ns"]["mean"] / 1e6
                check.figure(f"fio {operation}: {report['total_ios']} I/Os, mean {mean:.3f} ms")
                check.that(report["lat_ns"]["percentile"]["50.000000"] >= 1e6, f"{operation} takes 1 ms or more")
            for server in servers:
                version = server.ask("status/buildinfo")["version"]
                check.figure(f"{server.name} is Prometheus {version}")
                compare(check, server, disk, fio, begin, end, "native" in server.name)
                scraped(check, server, begin, end)


def scraped(check, server, begin, end):
    target = server.target()
    check.equal((target["health"], target["lastError"]), ("up", ""), f"{server.name} target")
    window = int(end - begin)
    low, count = (list(server.query(f"{f}_over_time(up[{window}s])", end).values()) for f in ("min", "count"))
    check.that(low == [1] and count and count[0] >= window - 3,
               f"{server.name}: up {low} in {count} scrapes of {window} s")
    check.equal(server.complaints(), [], f"{server.name} complaints")


rig.main(test)
