#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How does a test get the databases and exporters of a Debian suite? In a root of their own, which is kept: this machine
# gets no server that starts by itself. Sourced; needs root.

# shellcheck source=tests/lib/debian_root.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian_root.sh"

# install_databases ROOT: no package may start its server.
install_databases() {
  printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
  chmod +x "$1/usr/sbin/policy-rc.d"
  in_root "$1" apt-get -q install --yes postgresql mariadb-server prometheus-postgres-exporter prometheus-mysqld-exporter
}

# databases_root SUITE DIRECTORY: fills the directory.
databases_root() { debian_root "$1" databases "$2" install_databases; }
