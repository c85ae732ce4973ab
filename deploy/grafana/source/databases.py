# SPDX-License-Identifier: Apache-2.0
"""What do the dashboards of databases share? Our side: which host is the database's, and what its drives and volumes do.

The waits of each database are in postgresql.py and mysql.py, always to the left of ours, on the same time axis.
"""
from device import EPISODES, MOST, NOBODY, TOTAL_TIME, most, tenants
from house import GREEN, RED, UP, choice, lines, listing, number, page, states
from queries import DEVICE, HOST, RANGE, quantile, rate

VOLUME_IO = f'{HOST},operation=~"read|write|flush"'
SERVER = 'instance=~"$server"'
CHOOSE = "(choose)"  # sorts before any name: what is shown is never of a host that merely comes first
PLACE = "{{mountpoint}} ({{device}})"


def theirs(metric, more=""):
    return f"{metric}{{{SERVER}{more}}}"


def growth(metric, more="", by=""):
    """Per second, of their counter."""
    return f"sum by ({by}) (rate({theirs(metric, more)}[{RANGE}]))"


def newest(query, *metrics):
    """Of the first of these metrics that is exported: versions of servers and exporters have different ones."""
    return f"({' or '.join(query(metric) for metric in metrics)})"


def named(query, *metrics):
    """All of these (metric, what it is of) that are exported, in one query."""
    return "\nor\n".join(f'label_replace({query(metric)}, "of", "{of}", "", "")' for metric, of in metrics)


def at_mounts(expression):
    """A device's values, once for each of the chosen mount points on it."""
    return (f'max by (mountpoint, device) (ssdpulse_filesystem_info{{{HOST},mountpoint=~"$mountpoint"}})\n'
            f"* on (device) group_left (operation, cause) ({expression})")


def slow(value):
    """One row for each operation that is slow now, and of what cause: mount points first."""
    parts = []
    for operation in ("commit", "read", "write", "flush"):
        where = f'{DEVICE},operation="{operation}"'
        active = f"topk by (device) (1, max by (device, operation, cause) (ssdpulse_latency_spike_active{{{where}}}) > 0)"
        parts.append(at_mounts(f"({active}) * on (device, operation) group_left () ({value(where)})"))
    return "\nor\n".join(parts)


def p99_at_mounts(operation):
    return at_mounts(quantile(0.99, TOTAL_TIME, "device", f'{DEVICE},operation="{operation}"'))


def now(database, up):
    return [
        number(database, "Whether its exporter reaches the database.", "short", (f"max({theirs(up)})", "up"),
               ((None, RED), (1, GREEN)), texts=UP, nothing="no exporter", span=3),
        number("Its host", "Whether ssdpulse on the chosen host answers Prometheus.", "short", (f"max(up{{{HOST}}})", "up"),
               ((None, RED), (1, GREEN)), texts=UP, nothing="choose a host", span=3),
        listing("Slow now", "What is slow now, why, for how long in the last hour, and its p99 now. The cause may change until it "
                "is over.",
                [("Slow for", "s", slow(lambda where: f"15 * max by (device, operation) (count_over_time((sum by (device, operation) ("
                                        f"ssdpulse_latency_spike_active{{{where}}}) > 0)[1h:15s]))"), ((None, RED),)),
                 ("p99", "s", slow(lambda where: quantile(0.99, TOTAL_TIME, "device, operation", where)), None)],
                order=("mountpoint", "device", "operation", "cause"), span=18, height=4, nothing="none is known to be slow",
                rename={"operation": "Operation", "cause": "Because of"}),
    ]


SPIKES = states("Slow times of the drives, and why", "When an operation was slower than its own usual, and the cause.",
                (f"max by (cause, operation) (ssdpulse_latency_spike_active{{{DEVICE}}}) and on (cause, operation) "
                 f"(max by (cause, operation) (max_over_time(ssdpulse_latency_spike_active{{{DEVICE}}}[$__range])) > 0)",
                 "{{operation}}: {{cause}}"), span=24, height=5, nothing="none is known to have been slow")
COMMITS = lines("Commits of each mount point: p99", "What a caller of fsync waits for: 99 % take no longer. Transactions wait for the "
                "mount point of the WAL or redo log.", "s", (p99_at_mounts("commit"), PLACE), log=10, span=12, nothing="no commit was measured")
DATA = lines("Reads and writes of each mount point: p99", "99 % take no longer, queueing included.", "s",
             [(p99_at_mounts(operation), f"{PLACE} {operation}") for operation in ("read", "write")], log=10, span=12,
             nothing="no read or write was measured")
WHOSE = lines("Time in the drives, by tenant", f"Seconds per second that requests of the {MOST} busiest tenants spent in the drives. The "
              "database is one of them.", "none", (most(tenants("device_seconds")), "{{tenant}}"), stack="normal", span=12, nothing=NOBODY)
ELSE = [
    lines("Discards by trigger", "Bytes discarded in bursts, by who sent them: trim, mostly.", "Bps",
          (f'{rate("ssdpulse_discard_burst_bytes_total", "trigger")} > 0', "{{trigger}}"), "trigger", stack="normal",
          nothing="no discard was measured"),
    lines("Volumes: p99", "99 % of the I/Os of a volume (LVM, LUKS, md) take no longer. Slow above quick drives: it is the volume.", "s",
          (f'({quantile(0.99, "ssdpulse_volume_latency_seconds", "volume, operation", VOLUME_IO)})\n* on (volume) group_left (name) '
           f"max by (volume, name) (ssdpulse_volume_info{{{HOST}}})", "{{name}} ({{volume}}) {{operation}}"), log=10,
          nothing="no volume was measured"),
    lines("Above the drives", "Share of the time in which tasks waited for I/O, and in which something above the drives held it up.",
          "percentunit", [(rate("ssdpulse_host_io_pressure_seconds_total", "kind", HOST), "waiting: {{kind}}"),
                          (rate("ssdpulse_host_wait_seconds_total", "cause", HOST), "held up: {{cause}}")], maximum=1),
]


def beside(title, uid, database, up, waits):
    """waits: panels of transactions, of reads and writes, of checkpoints, and of what is no I/O."""
    transactions, blocks, flushing, no_io = waits
    known = f'ssdpulse_build_info{{job=~"$job"}}'
    # Only the part before the port can be the same in both names.
    of_host = '"host", "$1", "instance", "(.+?)(:[0-9]+)?"'
    same = (f"group by (instance, host) (label_replace({known}, {of_host})) and on (host) "
            f'label_replace({up}{{instance="$server"}}, {of_host})')
    every = f'group by (instance, host) (label_replace({known}, {of_host}))'
    nobody = f'label_replace(vector(1), "instance", "{CHOOSE}", "", "")'
    variables = [
        choice("server", "Database", f"label_values({up}, instance)", several=False),
        choice("job", "Job", "label_values(ssdpulse_build_info, job)", several=False),
        choice("instance", "Host", f"query_result({same} or ({every} or {nobody}) unless on () ({same}))", several=False,
               regex='/[{ ,]instance="([^"]+)"/'),
        choice("mountpoint", "Mount point", f"label_values(ssdpulse_filesystem_info{{{HOST}}}, mountpoint)"),
        choice("device", "Device", f'label_values(ssdpulse_filesystem_info{{{HOST},mountpoint=~"$mountpoint"}}, device)', hidden=True),
    ]
    rows = [
        ("Now", [*now(database, up), SPIKES]),
        ("Commits", [*transactions, COMMITS]),
        ("Reads and writes", [*blocks, DATA]),
        ("Checkpoints, and other tenants", [*flushing, WHOSE]),
        ("Trim, volumes, the host", ELSE),
        ("Or not the drives at all", no_io),
    ]
    return page(title, uid, f"My {database} is slow: is it the drive, the log, a checkpoint, trim, a volume, another tenant? Left: its own "
                "waits. Right: ours.", variables, rows, EPISODES, [name for name, _ in rows[1:]], time_from="now-1h")
