# SPDX-License-Identifier: Apache-2.0
"""Dashboard PostgreSQL: the waits of postgres_exporter beside those of the drives, volumes and tenants of its host."""
from databases import beside, growth, newest, theirs
from house import lines
from queries import RANGE

OWN = ',datname!~"template.*|"'
RUNNING = ',state=~"active|idle in transaction"'
EXCLUSIVE = ',mode=~"(access)?exclusivelock"'
CHECKPOINTS = (("pg_stat_checkpointer_write_time_total", "pg_stat_bgwriter_checkpoint_write_time_total", "writing"),
               ("pg_stat_checkpointer_sync_time_total", "pg_stat_bgwriter_checkpoint_sync_time_total", "waiting for fsync"))
BEGUN = (("pg_stat_checkpointer_num_timed_total", "pg_stat_bgwriter_checkpoints_timed_total", "by time"),
         ("pg_stat_checkpointer_num_requested_total", "pg_stat_bgwriter_checkpoints_req_total", "by the size of the WAL, or requested"))

TRANSACTIONS = [
    lines("Transactions", "How many were committed and rolled back. Fewer while commits (right) take longer: see the WAL's drive.", "ops",
          [(growth("pg_stat_database_xact_commit", OWN, "datname"), "{{datname}}"),
           (growth("pg_stat_database_xact_rollback", OWN, "datname"), "{{datname}} rolled back")], span=6),
    lines("Sessions, and what they wait for", "Sessions that run a query, or hold a transaction open without one. WALSync and WALWrite wait "
          "for the WAL, DataFileRead for data. Older exporters do not know it.", "short",
          (f"sum by (state, wait_event_type, wait_event) ({theirs('pg_stat_activity_count', RUNNING)}) > 0",
           "{{state}} {{wait_event_type}} {{wait_event}}"), stack="normal", span=6),
]
BLOCKS = [
    lines("Waiting for blocks", "How long all sessions together wait to read and write, in seconds per second. 0 throughout: "
          "track_io_timing is off.", "none",
          [(f"{growth(f'pg_stat_database_blk_{what}_time', OWN, 'datname')} / 1000", f"{{{{datname}}}} {what}")
           for what in ("read", "write")], span=12),
]
FLUSHING = [
    lines("Checkpoints", "How long checkpoints write and wait for fsync, in seconds per second, and how many began. From PostgreSQL 17 on "
          "with --collector.stat_checkpointer.", "none",
          [*((f"{newest(growth, *names)} / 1000", text) for *names, text in CHECKPOINTS),
           *((newest(lambda name: f"sum(increase({theirs(name)}[{RANGE}]))", *names), f"{text}: times") for *names, text in BEGUN)],
          span=12, nothing="no checkpointer is exported"),
]
NO_IO = [
    lines("Locks", "Locks that keep others out. Who waits for one waits for another session, not for a drive.", "short",
          (f"sum by (datname, mode) ({theirs('pg_locks_count', EXCLUSIVE)})", "{{datname}} {{mode}}"), span=12),
    lines("Longest transaction", "How long the oldest transaction has been open.", "s",
          (f"max by (datname) ({theirs('pg_stat_activity_max_tx_duration')})", "{{datname}}"), span=12),
]


def build():
    return beside("ssdpulse: PostgreSQL", "ssdpulse-postgresql", "PostgreSQL", "pg_up", (TRANSACTIONS, BLOCKS, FLUSHING, NO_IO))
