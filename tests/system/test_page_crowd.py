#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# alone: it measures how late ticks are
# tier: long
# timeout-long: 1200
"""Do a thousand pages, and ten people who look at 90 days again and again, delay the sampling or the scrapes?

Each page requests all drives and one of them once a second, as a browser does. Each of the ten requests 90 days in 2000
points once a second. Ticks must be kept; a scrape may take at most FACTOR times as long as without them.
"""
import resource
import time

import host
import web
from crowd import Scrapes, crowd
from lib import rig
from past import DAY, HOUR, MINUTE, READ, READ_DEVICE_NONE, READ_TOTAL, Past, load, word

PAGES, LOOKERS = 1000, 10
SECONDS = 60
FACTOR, SLACK = 4, 0.05  # of a scrape's time, and seconds
ADDRESSES = 32  # of clients: a single address gets at most 64 answers at once


def ninety_days(state, disks):
    now = int(time.time()) // HOUR * HOUR
    blob = load(60000, {READ: (600, 600 * 4096)}, {latency: {word(0.001) + i: 10 for i in range(40)}
                                                   for latency in (READ_TOTAL, READ_DEVICE_NONE)})
    for disk in disks:
        with Past(state / "history/ssdpulse.db", disk.name) as past:
            for at in range(now - 90 * DAY, now, HOUR):
                past.hour(at, blob)
            for at in range(now - 14 * DAY, now, MINUTE):
                past.minute(at, blob)
            past.reaches(now - 14 * DAY, now)


def judged(check, what, quiet, busy, statuses, took):
    took.sort()
    check.figure(f"{what}: {dict(statuses)}; answers {took[len(took) // 2] * 1000:.0f} ms in the middle, {took[-1 - len(took) // 100] * 1000:.0f} ms "
                 f"at the 99th percentile; scrapes {quiet.median * 1000:.1f} ms without, {busy.median * 1000:.1f} ms with them")
    busy.ticks_are_kept(check)
    check.that(busy.median <= FACTOR * quiet.median + SLACK, f"{what}: a scrape takes at most {FACTOR} times as long and {SLACK * 1000:.0f} ms")


def test(check, state):
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    with rig.ram_disks(state, 4, "16M") as disks:
        names = [disk.name for disk in disks]
        with rig.daemon(state, disks) as daemon:
            for disk in disks:
                rig.fio(disk, 1, rw="randread", bs="4k", size="1M", number_ios=10)
            daemon.after_ticks(2)
        ninety_days(state, disks)
        with rig.daemon(state, disks) as daemon:
            fios = [rig.Load(rig.fio_command(disk, 1, [{}], rw="randrw", bs="4k", ioengine="psync", size="16M", time_based=None,
                                             runtime=4 * SECONDS, rate_iops="200,100"), may_fail=True) for disk in disks]
            try:
                with Scrapes(daemon.port) as quiet:
                    time.sleep(SECONDS / 2)
                memory = host.rss_anon(daemon.process.pid)
                with Scrapes(daemon.port) as busy:
                    statuses, took = crowd(daemon.port, PAGES, 1, SECONDS, lambda client, question: "/api/v1/devices" if question % 2 == 0
                                           else f"/api/v1/devices/{names[client % 4]}/live?since=0", ADDRESSES)
                judged(check, f"{PAGES} pages", quiet, busy, statuses, took)
                check.that(set(statuses) <= {200, 503} and statuses[200] > 10 * SECONDS, "each was answered, or told to come again")
                with Scrapes(daemon.port) as busy:
                    now = int(time.time())
                    statuses, took = crowd(daemon.port, LOOKERS, 1, SECONDS, lambda client, _: f"/api/v1/history/{names[client % 4]}?points=2000"
                                           f"&heat=read&from={now - 90 * DAY}&to={now}")
                judged(check, f"{LOOKERS} who look at 90 days", quiet, busy, statuses, took)
                check.that(set(statuses) <= {200, 503} and statuses[200] > SECONDS / 4, "each was answered, or told to come again")
                check.figure(f"RssAnon: {memory >> 10} KiB before, {host.rss_anon(daemon.process.pid) >> 10} KiB after")
            finally:
                for one in fios:
                    one._process.terminate()
                    one._process.communicate()


web.in_own_network()
rig.main(test)
