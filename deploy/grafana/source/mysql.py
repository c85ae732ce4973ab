# SPDX-License-Identifier: Apache-2.0
"""Dashboard MySQL: the waits of mysqld_exporter, of MySQL or MariaDB, beside those of the drives, volumes and tenants."""
from databases import beside, growth, named, theirs
from house import lines
from queries import RANGE

INNODB, POOL = "mysql_global_status_innodb", "mysql_global_status_buffer_pool"
OF_POOL = ',state=~"data|free"'
TRANSACTIONS = [
    lines("Transactions, and what they wait for", "Commits and rollbacks, fsyncs, and waits for room in the log buffer. MariaDB 10.11 "
          "does not count fsyncs of its redo log.", "ops",
          [(growth("mysql_global_status_handlers_total", ',handler=~"commit|rollback"', "handler"), "{{handler}}"),
           (named(growth, (f"{INNODB}_os_log_fsyncs", "redo log"), (f"{INNODB}_data_fsyncs", "all files")), "fsyncs of {{of}}"),
           (growth(f"{INNODB}_log_waits"), "waits for the log buffer")], span=12),
]
BLOCKS = [
    lines("Pending in InnoDB", "Reads, writes and fsyncs that wait for a drive now, and waits for a clean page in a second.", "short",
          [(named(lambda name: f"sum({theirs(name)})", (f"{INNODB}_os_log_pending_fsyncs", "fsyncs of the redo log"),
                  *((f"{INNODB}_data_pending_{what}", what) for what in ("reads", "writes", "fsyncs"))), "{{of}}"),
           (growth(f"{INNODB}_buffer_pool_wait_free"), "waits for a clean page")], span=6),
    lines("Waiting for files", "How long all threads together wait for files, by kind, in seconds per second. Needs the performance schema "
          "and --collect.perf_schema.file_events.", "none",
          (f'topk(6, {growth("mysql_perf_schema_file_events_seconds_total", by="event_name, mode")})', "{{event_name}} {{mode}}"), span=6,
          nothing="the collector is off"),
]
FLUSHING = [
    lines("Flushing", "Share of the redo log, and of the buffer pool, that is not on the drive yet. Near 100 % all writes wait for "
          "flushing. MySQL does not export the former.", "percentunit",
          [(named(lambda name: f"sum({theirs(name)}) / sum({theirs(f'{INNODB}_checkpoint_max_age')})",
                  (f"{INNODB}_checkpoint_age", "redo log")), "{{of}}"),
           (f"sum({theirs(f'{POOL}_dirty_pages')}) / sum({theirs(f'{POOL}_pages', OF_POOL)})", "buffer pool")], maximum=1, span=12),
]
NO_IO = [
    lines("Threads and row locks", "Threads that run a query, and transactions that wait for a row now: for another one, not for a drive.",
          "short", [(f"sum({theirs('mysql_global_status_threads_running')})", "running"),
                    (f"sum({theirs(f'{INNODB}_row_lock_current_waits')})", "waiting for a row")], span=12),
    lines("Waiting for rows", "How long all transactions together waited for rows, counted when they got them, in seconds per second.",
          "none", (f"{growth(f'{INNODB}_row_lock_time')} / 1000", "waiting"), span=12),
]


def build():
    return beside("ssdpulse: MySQL and MariaDB", "ssdpulse-mysql", "MySQL", "mysql_up", (TRANSACTIONS, BLOCKS, FLUSHING, NO_IO))
