#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How does a test run the daemon and read what it says? One daemon a test. Sourced; the runner ends a daemon that is
# still there.

# shellcheck source=tests/lib/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

# start_daemon [ARGUMENT...]: `ssdpulse run` on a free loopback port; returns when it is ready.
# Sets DAEMON_PID, DAEMON_PORT, DAEMON_LOG and DAEMON_EXIT_CODE.
start_daemon() {
  DAEMON_PORT=$(free_port)
  DAEMON_LOG=$SSDPULSE_TEST_STATE/daemon.log
  DAEMON_EXIT_CODE=
  "$SSDPULSE_BINARY" run --web.listen-address "127.0.0.1:$DAEMON_PORT" "$@" >>"$DAEMON_LOG" 2>&1 &
  DAEMON_PID=$!
  if ! wait_until 20 daemon_ready_or_gone || ! daemon_ready; then
    cat "$DAEMON_LOG"
    fail "the daemon did not become ready"
  fi
}

daemon_ready() { curl --silent --fail --max-time 5 --output /dev/null "http://127.0.0.1:$DAEMON_PORT/-/ready"; }
daemon_ready_or_gone() { daemon_ready || ! kill -0 "$DAEMON_PID"; }

# stop_daemon [SIGNAL] [SECONDS]: sends the signal (TERM) and fails unless the daemon ends within the seconds (5).
stop_daemon() {
  local signal=${1:-TERM} limit=${2:-5} watchdog
  kill "-$signal" "$DAEMON_PID" || fail "the daemon was gone before it was stopped"
  (sleep "$limit" && touch "$SSDPULSE_TEST_STATE/daemon.late" && kill -KILL "$DAEMON_PID") &
  watchdog=$!
  DAEMON_EXIT_CODE=0
  # shellcheck disable=SC2034  # read by the tests
  wait "$DAEMON_PID" || DAEMON_EXIT_CODE=$?
  kill "$watchdog" 2>/dev/null || true
  wait "$watchdog" 2>/dev/null || true
  [[ ! -e $SSDPULSE_TEST_STATE/daemon.late ]] || fail "the daemon did not end within $limit s of SIG$signal"
}

# scrape FILE [CURL OPTION...]: saves the body of /metrics (text, unless an Accept header asks for more).
scrape() {
  local file=$1
  shift
  curl --silent --show-error --fail --max-time 10 "$@" --output "$file" "http://127.0.0.1:$DAEMON_PORT/metrics" ||
    fail "scraping the daemon"
}

# metric_values FILE NAME [LABEL="VALUE"...]: the value of every sample of this name that has these labels.
metric_values() {
  local file=$1 name=$2
  shift 2
  python3 - "$file" "$name" "$@" <<'PYTHON'
import re, sys
path, name, *wanted = sys.argv[1:]
sample = re.compile(re.escape(name) + r'(?:\{(.*)\})? (\S+)(?: -?\d+)?$')
label = re.compile(r'(\w+="(?:[^"\\]|\\.)*")')
for line in open(path):
    match = sample.match(line)
    if match and set(wanted) <= set(label.findall(match[1] or "")):
        print(match[2])
PYTHON
}

# metric_value FILE NAME [LABEL="VALUE"...]: the value of the only such sample.
metric_value() {
  local values
  mapfile -t values < <(metric_values "$@")
  [[ ${#values[@]} -eq 1 ]] || fail "${#values[@]} samples, not one: ${*:2}"
  echo "${values[0]}"
}

# metric_sum FILE NAME [LABEL="VALUE"...]: the sum over all such samples, 0 if there is none; exact for whole numbers.
metric_sum() {
  metric_values "$@" | python3 -c 'import sys; from fractions import Fraction
total = sum((Fraction(line.strip()) for line in sys.stdin), Fraction(0))
print(total if total.denominator == 1 else float(total))'
}
