#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 or 13 to metrics of this host's own disks: installs what is missing, builds into build/, and
# runs the daemon in the foreground with its built-in defaults. Quick when nothing is left to do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
Usage: deploy/quickstart.sh [--no-run]
  Installs the missing Debian packages, builds build/ssdpulse and runs it in the foreground (Ctrl-C ends it).
  --no-run   stop after the build
TEXT
}

fail() {
  echo "quickstart: $*" >&2
  exit 1
}

# step TITLE COMMAND...: one line of progress; the output of the command goes to the log and is shown if it fails.
step() {
  local title=$1 start=$SECONDS
  shift
  printf '%-44s ' "$title ..."
  if ! "$@" >>"$log" 2>&1 </dev/null; then
    echo "failed"
    tail -n 25 "$log" >&2
    fail "'$title' failed; the whole log is $log"
  fi
  echo "done in $((SECONDS - start)) s"
}

run=yes
case ${1:-} in
  '') ;;
  --no-run) run=no ;;
  -h | --help) usage; exit ;;
  *) usage >&2; exit 2 ;;
esac

[[ $EUID -eq 0 ]] || fail "must run as root: it installs packages and loads BPF programs (try: sudo $0)"
command -v apt-get >/dev/null || fail "needs a Debian-like system with apt (made for Debian 12 and 13)"

mkdir -p build
log=$PWD/build/quickstart.log
: >"$log"
generator=()
[[ -e build/CMakeCache.txt ]] || generator=(-G Ninja)
step "packages (list: deploy/packages)" deploy/install-packages.sh build
step "configure" cmake "${generator[@]}" -S . -B build
step "build (some minutes the first time)" cmake --build build --parallel
[[ $run == yes ]] || exit 0

echo "look at  http://127.0.0.1:10936/  or, in another terminal, at  build/ssdpulse top  (Ctrl-C ends the daemon)"
echo "from another host:  ssh -L 10936:127.0.0.1:10936 $(hostname)  and the same address there"
# Not with exec: a process that used to be this shell is as old as the build, and its rates since the start are too low.
# Whatever ends the script ends the daemon with SIGTERM, because a script's background processes start with SIGINT and
# SIGQUIT ignored. If the script is killed, the kernel sends the SIGTERM.
trap 'kill -TERM "$!" 2>/dev/null || true' INT QUIT TERM HUP
with_us=()
if setpriv --pdeathsig TERM true 2>/dev/null; then with_us=(setpriv --pdeathsig TERM); fi
"${with_us[@]}" build/ssdpulse run &
daemon=$!
# A signal ends the wait, but not the daemon.
while kill -0 "$daemon" 2>/dev/null; do wait "$daemon" || true; done
wait "$daemon"
