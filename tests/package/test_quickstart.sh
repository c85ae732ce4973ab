#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does the quick start print where the page is, at the address of the README and of the configuration's defaults? Does
# the daemon's age exclude its build; does the daemon end with the script, however that is ended? What is installed,
# built and run are stand-ins.
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=tests/lib/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/check.sh"
require_root

tree=$SSDPULSE_TEST_STATE/tree
mkdir -p "$tree/deploy" "$tree/build" "$tree/bin"
cp "$SSDPULSE_SOURCE/deploy/quickstart.sh" "$tree/deploy"
for program in deploy/install-packages.sh build/ssdpulse bin/cmake; do
  cat >"$tree/$program" <<'SCRIPT'
#!/bin/sh
echo "${0##*/} $*"
SCRIPT
  chmod +x "$tree/$program"
done

address=$(sed -nE 's/^  listen_address: //p' "$SSDPULSE_SOURCE/deploy/config/ssdpulse.yaml")
expect_equal "the built-in address" "  listen_address: [\"$address\"]" \
  "$("$SSDPULSE_BINARY" print-config --config "" | grep '^  listen_address:')"
expected="look at  http://$address/  or, in another terminal, at  build/ssdpulse top  (Ctrl-C ends the daemon)
from another host:  ssh -L ${address##*:}:$address $(hostname)  and the same address there
ssdpulse run"
expect_equal "last lines of the quick start" "$expected" "$(PATH=$tree/bin:$PATH "$tree/deploy/quickstart.sh" | tail -n 3)"
grep -q "^ *deploy/quickstart\.sh .*look at http://$address/$" "$SSDPULSE_SOURCE/README.md" ||
  fail "the README's first command does not say http://$address/"
expect_equal "without a start" "" "$(PATH=$tree/bin:$PATH "$tree/deploy/quickstart.sh" --no-run | grep -v ' done in ' || true)"

# When a process began, in ticks of 10 ms: process_start_time_seconds is computed from it. The build takes ten of them.
cat >"$tree/bin/cmake" <<'SCRIPT'
#!/bin/sh
cut -d ' ' -f 22 "/proc/$$/stat" >build/cmake.began
sleep 0.1
SCRIPT
# Ends only on SIGTERM, with a code that identifies it.
cat >"$tree/build/ssdpulse" <<'SCRIPT'
#!/bin/bash
trap 'exit 7' TERM
cut -d ' ' -f 22 "/proc/$$/stat" >build/daemon.began
echo "$$" >build/daemon.pid.new
mv build/daemon.pid.new build/daemon.pid
while :; do sleep 0.05; done
SCRIPT

# A session of its own, as in a terminal, in which Ctrl-C and Ctrl-\ are not ignored.
start() {
  rm -f "$tree"/build/daemon.pid
  PATH=$tree/bin:$PATH setsid env --default-signal=INT,QUIT "$tree/deploy/quickstart.sh" >"$tree/words" 2>&1 &
  script=$!
  wait_until 60 test -e "$tree/build/daemon.pid" || fail "nothing was started: $(cat "$tree/words")"
  daemon=$(cat "$tree/build/daemon.pid")
}

# ended WHAT CODE: the script ends with this code, and no process of its session is left.
ended() {
  local code=0
  wait_until 60 gone "$script" || fail "$1: the script does not end"
  wait "$script" || code=$?
  expect_equal "$1: exit code" "$2" "$code"
  wait_until 60 gone "$daemon" || fail "$1: the daemon is left behind"
}
gone() { ! grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }

start
[[ $(cat "$tree/build/daemon.began") -gt $(cat "$tree/build/cmake.began") ]] || fail "the daemon is as old as its build"
for signal in TERM INT QUIT HUP; do
  kill "-$signal" "$script"
  ended "SIG$signal" 7
  start
done
kill -INT -- "-$script"
ended "Ctrl-C" 7
start
kill -QUIT -- "-$script"
ended "Ctrl-\\" 7
start
kill -KILL "$script"
ended "a script that was killed" 137
start
kill -KILL "$daemon"
ended "a daemon that was killed" 137
