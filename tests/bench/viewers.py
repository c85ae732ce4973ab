# SPDX-License-Identifier: Apache-2.0
"""What do people viewing the page cost the daemon? CPU time, memory and bytes, for several viewers of many busy drives.
Exits with 1 if one of them exceeds its limit.

Each viewer does what the page does on a drive's view with its stack open: once a second the list of drives, the stacks and the
newest second of its own drive; the other answers as often as the page asks for them (exporters/page/assets).
"""
import argparse
import http.client
import json
import os
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "kernel"))
from idle import anonymous_bytes, share_of_a_core  # noqa: E402
from lib import rig  # noqa: E402  (the disks, the load and the daemon of the kernel tests)

INTERVALS = {"devices/{}/tenants": 5, "status": 30, "day": 60}  # path: seconds
MOST = {"viewers_cpu": 0.02, "viewers_bytes": 12_000_000, "first_bytes": 60_000, "next_bytes": 2048, "missed_ticks": 0}


class Viewer:
    """Polls until it is stopped, over one connection, as a browser does."""

    def __init__(self, port, device, begin=0):
        self.first = self.next = self.list = self.stacks = 0
        self._port, self._device, self._begin, self._end = port, device, begin, threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _get(self, connection, path):
        connection.request("GET", "/api/v1/" + path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return len(body), body

    def _work(self):
        import gzip  # pylint: disable=import-outside-toplevel
        connection, since, second = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10), 0, self._begin
        while not self._end.wait(1):
            for path, interval in INTERVALS.items():
                if second % interval == 0:
                    self._get(connection, path.format(self._device))
            second += 1
            self.list, _ = self._get(connection, "devices")
            self.stacks, _ = self._get(connection, "stacks")
            size, body = self._get(connection, f"devices/{self._device}/live?since={since}&heat=read")
            if since:
                self.next = max(self.next, size)
            else:
                self.first = size
            since = json.loads(gzip.decompress(body))["to"]

    def start(self):
        self._thread.start()

    def stop(self):
        self._end.set()
        self._thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of each phase (60)")
    parser.add_argument("--fill", type=int, default=900, help="seconds of load before anybody looks (900: all of memory)")
    parser.add_argument("--drives", type=int, default=16)
    parser.add_argument("--viewers", type=int, default=5)
    parser.add_argument("--iops", type=int, default=500, help="of each drive (500)")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root")
    with rig.state_directory() as state, rig.ram_disks(state, arguments.drives, "32M") as disks, \
            rig.daemon(state, disks) as daemon:
        pid = daemon.process.pid
        jobs = [{"filename": disk.path, "name": disk.name} for disk in disks]
        load = rig.Load(rig.fio_command(disks[0], 1, jobs, rw="randrw", ioengine="psync", bs="4k", fsync=64, thread=None,
                                        time_based=None, runtime=arguments.fill + 3 * arguments.seconds + 20,
                                        rate_iops=f"{arguments.iops // 2},{arguments.iops // 2}"), may_fail=True)
        time.sleep(max(3, arguments.fill))
        alone, _ = share_of_a_core(pid, lambda: time.sleep(arguments.seconds))
        memory = anonymous_bytes(pid)
        # They came at different times.
        viewers = [Viewer(daemon.port, disk.name, number * 7) for number, disk in enumerate(disks[:arguments.viewers])]
        for viewer in viewers:
            viewer.start()
        time.sleep(5)  # leaves out the first answers
        watched, _ = share_of_a_core(pid, lambda: time.sleep(arguments.seconds))
        with_viewers = anonymous_bytes(pid)
        for viewer in viewers:
            viewer.stop()
        missed = daemon.scrape().value("ssdpulse_missed_ticks_total")
        load._process.terminate()
        load._process.communicate()
    figures = {"viewers_cpu": watched - alone, "viewers_bytes": with_viewers - memory,
               "first_bytes": max(one.first for one in viewers), "next_bytes": max(one.next for one in viewers),
               "missed_ticks": missed}
    print(f"{arguments.drives} drives at {arguments.iops} I/Os a second: {alone:.2%} of a core alone, {watched:.2%} with "
          f"{arguments.viewers} viewers; anonymous memory {memory / 1e6:.1f} MB alone, {with_viewers / 1e6:.1f} MB with them")
    print(f"the first answer of a drive {figures['first_bytes']} bytes, the next at most {figures['next_bytes']}, the list "
          f"{viewers[0].list}, the stacks {viewers[0].stacks}; {missed:.0f} ticks missed")
    over = [name for name, most in MOST.items() if figures[name] > most]
    for name in over:
        print(f"over the budget: {name} {figures[name]:.4f}, at most {MOST[name]}")
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
