# SPDX-License-Identifier: Apache-2.0
"""What does the daemon itself cost a host? CPU time and memory, on an idle host and on a busy one.

Both include a scrape every five seconds, as a server would send. Busy: as many 4-KiB I/Os a second as requested, spread
over all disks, or as many as this machine can do; the rate reached is printed next to the figures. Anonymous memory is
the daemon's own; what is resident in addition is its program and libraries, which are read from files.
"""
import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "kernel"))
from lib import rig  # noqa: E402  (the disks, the load and the daemon of the kernel tests)

SCRAPE_SECONDS = 5
SIZE = "256M"
MOST = {"idle_cpu": 0.001, "busy_cpu": 0.005, "anonymous_mb": 12}


def cpu_seconds(pid):
    """In nanosecond steps; the daemon's threads live as long as it does."""
    return sum(int(task.joinpath("schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def memory_bytes(pid, field):
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024


def anonymous_bytes(pid):
    return memory_bytes(pid, "RssAnon")


class Scrapes:
    def __init__(self, daemon):
        self._daemon, self._end = daemon, threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self):
        while not self._end.wait(SCRAPE_SECONDS):
            self._daemon.scrape()

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def share_of_a_core(pid, work):
    began, before = time.monotonic(), cpu_seconds(pid)
    result = work()
    return (cpu_seconds(pid) - before) / (time.monotonic() - began), result


def load(disks, arguments):
    """Keeps all disks busy; returns the I/Os a second that they did."""
    each = arguments.iops // 2 // len(disks)
    running = [rig.Load(rig.fio_command(disk, seed, [{}], rw="randrw", ioengine="io_uring", iodepth=32, bs="4k",
                                        size=SIZE, time_based=None, runtime=arguments.seconds,
                                        rate_iops=f"{each},{each}"))
               for seed, disk in enumerate(disks, 1)]
    return sum((job["read"]["total_ios"] + job["write"]["total_ios"]) / job["job_runtime"] * 1000
               for one in running for job in one.jobs())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of each phase (60)")
    parser.add_argument("--iops", type=int, default=250_000, help="of the busy phase (250,000)")
    parser.add_argument("--disks", type=int, default=1, help="that are measured and, in the busy phase, busy (1)")
    parser.add_argument("--settings", default="", help="more of the daemon's configuration, as YAML")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root")
    with rig.state_directory() as state, rig.ram_disks(state, arguments.disks, size=SIZE) as disks, \
            rig.daemon(state, disks, settings=arguments.settings) as daemon:
        pid = daemon.process.pid
        time.sleep(3)  # leaves out the cost of starting
        with Scrapes(daemon):
            idle, _ = share_of_a_core(pid, lambda: time.sleep(arguments.seconds))
            busy, iops = share_of_a_core(pid, lambda: load(disks, arguments))
        memory, resident = anonymous_bytes(pid), memory_bytes(pid, "VmRSS")
    figures = {"idle_cpu": idle, "busy_cpu": busy, "busy_iops": iops, "anonymous_mb": memory / 1e6}
    print(f"idle: {idle:.3%} of a core; at {iops:.0f} I/Os a second: {busy:.3%} of a core; "
          f"anonymous memory: {memory / 1e6:.1f} MB; resident: {resident / 1e6:.1f} MB")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures))
    over = [name for name, most in MOST.items() if figures[name] > most]
    for name in over:
        print(f"over the budget: {name} {figures[name]:.4f}, at most {MOST[name]}")
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
