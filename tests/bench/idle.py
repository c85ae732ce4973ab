# SPDX-License-Identifier: Apache-2.0
"""What does the daemon itself cost a host? CPU time and anonymous memory, on an idle host and on a busy one.

Both include a scrape every five seconds, as a server would send. Busy: as many 4-KiB I/Os a second as requested, or as
this machine can do; the rate reached is printed next to the figures.
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
MOST = {"idle_cpu": 0.001, "busy_cpu": 0.005, "anonymous_mb": 30}


def cpu_seconds(pid):
    """In nanosecond steps; the daemon's threads live as long as it does."""
    return sum(int(task.joinpath("schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def anonymous_bytes(pid):
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) * 1024


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of each phase (60)")
    parser.add_argument("--iops", type=int, default=250_000, help="of the busy phase (250,000)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root")
    with rig.state_directory() as state, rig.ram_disks(state, size="512M") as [disk], rig.daemon(state, [disk]) as daemon:
        pid = daemon.process.pid
        time.sleep(3)  # leaves out the cost of starting
        with Scrapes(daemon):
            idle, _ = share_of_a_core(pid, lambda: time.sleep(arguments.seconds))
            busy, job = share_of_a_core(pid, lambda: rig.fio(
                disk, 1, rw="randrw", ioengine="io_uring", iodepth=32, bs="4k", size="512M", time_based=None,
                runtime=arguments.seconds, rate_iops=f"{arguments.iops // 2},{arguments.iops // 2}"))
        memory = anonymous_bytes(pid)
    iops = (job["read"]["total_ios"] + job["write"]["total_ios"]) / job["job_runtime"] * 1000
    figures = {"idle_cpu": idle, "busy_cpu": busy, "busy_iops": iops, "anonymous_mb": memory / 1e6}
    print(f"idle: {idle:.3%} of a core; at {iops:.0f} I/Os a second: {busy:.3%} of a core; "
          f"anonymous memory: {memory / 1e6:.1f} MB")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures))
    over = [name for name, most in MOST.items() if figures[name] > most]
    for name in over:
        print(f"over the budget: {name} {figures[name]:.4f}, at most {MOST[name]}")
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
