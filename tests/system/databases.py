# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL and MariaDB of a Debian suite, each with its Prometheus exporter, on a disk of the test and under a light load.

Servers, clients and exporters are Debian's own, in a root of the suite (tests/lib/databases.sh), and end with the block.
"""
import os
import re
import signal
import subprocess
import time
import urllib.request
from contextlib import contextmanager

import prometheus
from alerts.stack import free_port
from lib import rig

PLACE = "srv/disk"  # in the root; the disk is mounted there
# Twenty transactions a second each, a checkpoint and reads every two seconds, and what the dashboards need turned on.
SCRIPT = """
set -eu
as() { user=$1; shift; setpriv --reuid="$user" --regid="$user" --init-groups "$@"; }
wait_for() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.2; done; echo "no answer: $*" >&2; exit 1; }
export PATH=$PATH:$(echo /usr/lib/postgresql/*/bin) PGHOST=127.0.0.1 PGPORT=$1 PGUSER=postgres
cd /srv/disk
install -d -o postgres -g postgres pg && install -d -o mysql -g mysql mysql
as postgres initdb --auth=trust --locale=C.UTF-8 --no-sync -D pg >/dev/null
as postgres postgres -D pg -c unix_socket_directories= -c track_io_timing=on -c dynamic_shared_memory_type=mmap &
mariadb-install-db --no-defaults --user=mysql --datadir="$PWD/mysql" --auth-root-authentication-method=normal >/dev/null
as mysql mariadbd --no-defaults --datadir="$PWD/mysql" --socket="$PWD/mysql/socket" --skip-networking --performance-schema \\
  --innodb-buffer-pool-size=32M --innodb-log-file-size=16M &
printf '[client]\\nuser=root\\npassword=secret\\nsocket=%s\\n' "$PWD/mysql/socket" >my.cnf
wait_for pg_isready
wait_for mariadb-admin --no-defaults --user=root --socket="$PWD/mysql/socket" ping
mariadb --no-defaults --user=root --socket="$PWD/mysql/socket" -e "alter user root@localhost identified by 'secret'"
as postgres pgbench -i -q -s 2
mariadb --defaults-file=my.cnf -e 'create database if not exists test; create table test.t (id int auto_increment primary key, w text)'
export DATA_SOURCE_NAME="postgresql://postgres@127.0.0.1:$1/postgres?sslmode=disable"
more=$(prometheus-postgres-exporter --help 2>&1 | grep -o -- '--collector.stat_checkpointer' || true)  # from PostgreSQL 17 on
prometheus-postgres-exporter $more --web.listen-address="127.0.0.1:$2" &
unset DATA_SOURCE_NAME
prometheus-mysqld-exporter --web.listen-address="127.0.0.1:$3" --config.my-cnf=my.cnf --collect.perf_schema.file_events \\
  --collect.info_schema.innodb_metrics &
pgbench -n -c 2 -R 20 -T 3600 >/dev/null 2>&1 &
while sleep 0.05; do
  echo "begin; insert into t (w) values (repeat('x', 500)); commit; select count(*) from t where id > 10;"
done | mariadb --defaults-file=my.cnf test >/dev/null &
while sleep 2; do
  psql -q -c CHECKPOINT
  dd if=mysql/ibdata1 of=/dev/null bs=64k count=16 iflag=direct 2>/dev/null  # what the load reads is cached
done
"""


class Exporter:
    def __init__(self, name, root, port):
        self.port = port
        package = f"prometheus-{name.replace('_', '-')}"
        version = rig.run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Version}", package)
        self.name = f"{name} {version.split('-')[0].split('+')[0]}"

    def names(self):
        """Of all its series."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            page = answer.read().decode()
        return {re.split(r"[{ ]", line)[0] for line in page.splitlines() if line and not line.startswith("#")}


def server_versions(root):
    """As in "PostgreSQL 15, MariaDB 10.11"."""
    [postgresql] = [path.name for path in (root / "usr/lib/postgresql").iterdir()]
    mariadb = rig.run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Version}", "mariadb-server")
    return f"PostgreSQL {postgresql}, MariaDB {re.search(r'(?:^|:)([0-9]+[.][0-9]+)', mariadb)[1]}"


def make_root(state, suite):
    root = state / f"{suite}-root"
    process = prometheus.shell(state, 'source ./databases.sh; databases_root "$@" >"$2.log" 2>&1', suite, root)
    process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"no root of {suite}: {root.with_suffix('.log').read_text()[-2000:]}")
    (root / PLACE).mkdir()
    return root


@contextmanager
def running(state, root, cgroup):
    """The two exporters, once both have scraped their servers."""
    postgres = free_port()
    exporters = [Exporter(name, root, free_port()) for name in ("postgres_exporter", "mysqld_exporter")]
    script = 'source ./debian_root.sh; in_root "$@"'
    with (state / f"{root.name}.databases.log").open("w") as log:
        process = subprocess.Popen(cgroup.command(["bash", "-c", f'set -eu; cd {prometheus.SHELL}; {script}', "-", root, "sh", "-c",
                                                   SCRIPT, "-", postgres, *(one.port for one in exporters)]), stdout=log, stderr=log,
                                   start_new_session=True)
    try:
        deadline = time.monotonic() + 180
        while True:
            try:
                if {"pg_up", "mysql_up"} <= set().union(*(one.names() for one in exporters)):
                    break
            except OSError:
                pass
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("no databases: " + (state / f"{root.name}.databases.log").read_text()[-3000:])
            time.sleep(0.5)
        yield exporters
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # and with it the namespace of processes
        process.wait()
