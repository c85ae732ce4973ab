#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# tier: long
# timeout-long: 3000
"""Does any query string, however wrong, cause anything other than an answer or a refusal?

A million in the long tier, pipelined over a few connections: existing parameters with invalid values, wrongly encoded,
doubled, endless. The daemon must survive, answer only with documented statuses, keep its ticks, and not grow.
"""
import random
import re
import socket
import threading
import time
from collections import Counter

import host
from lib import rig

QUESTIONS = 1_000_000 if rig.LONG else 20_000
AT_ONCE = 40  # in one pipeline
CONNECTIONS = 4
STATUSES = {200, 304, 400, 404, 414, 421, 431, 503}
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
PARAMETERS = ("at", "since", "heat", "snapshot", "op", "window", "from", "to", "points", "minutes", "seconds", "tenants", "collect[]", "text", "")
VALUES = ("", "0", "1", "-1", "2000", "2001", "read", "commit", "total", "18446744073709551615", "18446744073709551616", "4000000000",
          "1e9", "0x10", "NaN", "7,12,28", ",,,,", "24h", "%00", "%", "%zz", "%ff%fe", "%2e%2e%2f", "%0d%0aX:%20y", "+", "é".encode().decode("latin-1"))


def path_of(chance, disk):
    base = chance.choice((f"/api/v1/devices/{disk}/live", f"/api/v1/devices/{disk}/column", f"/api/v1/devices/{disk}/what-if",
                          f"/api/v1/devices/{disk}/tenants", "/api/v1/devices", "/api/v1/why", "/api/v1/status", "/api/v1/nothing",
                          "/api/v1/devices//live", "/api/v1/devices/%2e%2e/live", "/", "/api/v1/history/none")
                         if chance.random() > 0.03 else (f"/api/v1/history/{disk}", "/api/v1/history", "/api/v1/day", "/metrics"))

    def value():
        kind = chance.random()
        if kind < 0.6:
            return chance.choice(VALUES)
        if kind < 0.9:
            return "".join(f"%{chance.randrange(256):02x}" if chance.random() < 0.3 else chance.choice("0123456789abcxyz.,:-_~")
                           for _ in range(chance.randrange(24)))
        return str(chance.randrange(10 ** chance.randrange(1, 25)))

    query = "&".join(f"{chance.choice(PARAMETERS)}{chance.choice(('=', '', '=='))}{value()}" for _ in range(chance.randrange(6)))
    if chance.random() < 0.001:
        query += "&at=" + "9" * chance.randrange(3000)
    return f"{base}?{query}"


def read_answers(connection, wanted):
    """The statuses of `wanted` answers; fewer if the server closed the connection."""
    data, found = bytearray(), []
    while len(found) < wanted:
        head = data.find(b"\r\n\r\n")
        if head >= 0:
            text = bytes(data[:head]).lower()
            length = next((int(line.split(b":")[1]) for line in text.split(b"\r\n") if line.startswith(b"content-length:")), 0)
            if len(data) >= head + 4 + length:
                found.append(int(STATUS.match(data)[1]))
                del data[:head + 4 + length]
                continue
        more = connection.recv(1 << 18)
        if not more:
            break
        data += more
    return found


def ask_for_ever(port, disk, seed, questions, statuses, trouble):
    chance = random.Random(seed)
    connection, asked = None, 0
    while asked < questions:
        paths = [path_of(chance, disk) for _ in range(min(AT_ONCE, questions - asked))]
        try:
            connection = connection or socket.create_connection(("127.0.0.1", port), timeout=60)
            connection.sendall(b"".join(b"GET " + path.encode("latin-1") + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" for path in paths))
            found = read_answers(connection, len(paths))
        except OSError as error:
            trouble.append(f"seed {seed}, question {asked}: {error}")
            connection, found = None, []
        statuses.update(found)
        if len(found) < len(paths):  # one was wrong enough to close the connection; the others are lost with it
            statuses["closed"] += 1
            if connection:
                connection.close()
            connection = None
        asked += max(1, len(found))


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state, 1, "16M") as (disk,), rig.daemon(state, [disk]) as daemon:
        rig.fio(disk, 1, rw="randread", bs="4k", size="1M", number_ios=100)
        daemon.after_ticks(2)
        statuses, trouble, before = Counter(), [], None
        begin = time.monotonic()
        for share in (0.1, 0.9):  # growth is measured after a warm-up
            threads = [threading.Thread(target=ask_for_ever, args=(daemon.port, disk.name, f"{seed} {share} {i}",
                                                                   int(share * QUESTIONS / CONNECTIONS), statuses, trouble))
                       for i in range(CONNECTIONS)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            before = before or host.rss_anon(daemon.process.pid)
        after = host.rss_anon(daemon.process.pid)
        check.figure(f"{sum(n for status, n in statuses.items() if status != 'closed')} answers in {time.monotonic() - begin:.0f} s: {dict(statuses)}; "
                     f"RssAnon {before >> 10} to {after >> 10} KiB")
        check.equal(trouble[:3], [], "connections that broke")
        check.equal(set(statuses) - STATUSES - {"closed"}, set(), "statuses that are not documented")
        check.that(statuses[200] > 0 and statuses[400] > 0 and statuses[404] > 0, "some were answered, some refused")
        check.that(daemon.process.poll() is None, "the daemon lives")
        check.that(after - before < 4 << 20, "and has not grown")
        check.that(daemon.after_ticks(2).value("ssdpulse_snapshot_timestamp_seconds") > time.time() - 30, "and goes on")


rig.main(test)
