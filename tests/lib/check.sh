#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What every shell test needs: failing with a reason, waiting with a limit, cleaning up after itself.
# Sourced. What a test leaves below $SSDPULSE_TEST_STATE (mounts, loop devices, files) and every process it started is
# removed by the runner; on_cleanup is for the rest.

: "${SSDPULSE_TEST_STATE:?run the test by tests/run.sh LEVEL.NAME}"

# fail REASON: ends the test. The line "FAIL: ..." is what reports show.
fail() {
  echo "FAIL: $*" >&2
  # Works in a command substitution, too, where exit would end only the subshell.
  kill -TERM $$
  exit 1
}
trap 'exit 1' TERM

# skip REASON: only for what tests/skips.txt allows.
skip() {
  echo "SKIP: $*"
  exit 77
}

require_root() { [[ $EUID -eq 0 ]] || fail "must run as root"; }

# on_cleanup COMMAND LINE: run by the runner when the test has ended, last one first, even if the test was killed.
on_cleanup() { echo "$*" >>"$SSDPULSE_TEST_STATE/cleanup"; }

# wait_until SECONDS COMMAND...: true as soon as the command is, false when the time is up.
wait_until() {
  local deadline=$((SECONDS + $1 + 1))
  shift
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $deadline ]] || return 1
    sleep 0.05
  done
}

# expect_equal WHAT EXPECTED ACTUAL
expect_equal() { [[ $2 == "$3" ]] || fail "$1: expected $2, got $3"; }

# free_port: a TCP port of the loopback address that nothing listens on.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
