#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How is one test run, counted, reported and cleaned up after? Sourced by tests/run.sh.
# A test is a command: exit code 0 passes, 77 skips (a failure unless tests/skips.txt names the test), others fail. It
# has a state directory of its own, SSDPULSE_TEST_STATE, and everything that hangs on that directory is taken away when
# the test has ended, however it ended: processes that carry it in their environment, mounts and loop devices below it.

: "${root:?the project}" "${work:?the directory of builds and states}" "${logs:?the directory of outputs}"
passed=0
failed=()
again=()
running_pid=
running_state=
# How many failing tests may be tried once more in this run, and which (levels or names). The caller says so.
second_tries=0
tried_twice=

# clean_state DIR: removes a test's leftovers.
clean_state() {
  local state=$1 line
  [[ -d $state ]] || return 0
  signal_marked TERM "$state"
  if [[ -e $state/cleanup ]]; then
    while read -r line; do bash -c "$line" || true; done < <(tac "$state/cleanup")
  fi
  for _ in {1..30}; do
    [[ -n $(marked "$state") ]] || break
    sleep 0.1
  done
  signal_marked KILL "$state"
  detach_loops "$state"
  { findmnt -rno TARGET | grep -F "$state/" | tac || true; } | while read -r line; do
    umount "$line" 2>/dev/null || umount -l "$line"
  done
  detach_loops "$state"
  rm -rf --one-file-system "$state"
}

# marked DIR: the processes whose environment says that they belong to the test with this state directory.
marked() {
  { grep -lzxF "SSDPULSE_TEST_STATE=$1" /proc/[0-9]*/environ 2>/dev/null || true; } | cut -d/ -f3
}

signal_marked() {
  local pid
  for pid in $(marked "$2"); do kill "-$1" "$pid" 2>/dev/null || true; done
}

detach_loops() {
  local backing device
  for backing in /sys/block/loop*/loop/backing_file; do
    if [[ -e $backing && $(cat "$backing" 2>/dev/null) == "$1"/* ]]; then
      device=${backing#/sys/block/}
      losetup -d "/dev/${device%%/*}" || true
    fi
  done
}

# clean_running: ends and cleans up the test that runs now, if one does; for the traps of the caller.
clean_running() {
  [[ -n $running_pid ]] && kill "$running_pid" 2>/dev/null
  [[ -n $running_state ]] && clean_state "$running_state"
  running_pid='' running_state=''
}

# allowed_skip NAME: the reason that tests/skips.txt gives.
allowed_skip() {
  awk -v name="$1" '$1 == name { $1 = ""; print substr($0, 2); found = 1 } END { exit !found }' "$root/tests/skips.txt"
}

# report VERDICT NAME SECONDS [REMARK]
report() { printf '%-5s %-52s %8s s  %s\n' "$1" "$2" "$3" "${4:-}"; }

# run_test NAME TIMEOUT COMMAND...: returns 0 unless the test failed.
run_test() {
  local name=$1 log=$logs/$1.log verdict seconds reason
  try "$@"
  if [[ $verdict == FAIL && $second_tries -gt 0 && ( " $tried_twice " == *" ${name%%.*} "* || " $tried_twice " == *" $name "* ) ]]; then
    second_tries=$((second_tries - 1))
    again+=("$name")
    report AGAIN "$name" "$seconds" "$reason"
    show_failure "$log" | sed 's/^/      | /'
    mv "$log" "${log%.log}.first.log"
    try "$@"
  fi
  report "$verdict" "$name" "$seconds" "$reason"
  case $verdict in
    pass) passed=$((passed + 1)) ;;
    FAIL)
      failed+=("$name")
      show_failure "$log" | sed 's/^/      | /'
      echo "      the whole output: $log"
      return 1 ;;
  esac
}

# try NAME TIMEOUT COMMAND...: runs it once; sets run_test's verdict (pass, skip, FAIL), seconds and reason.
try() {
  local limit=$2 start=${EPOCHREALTIME/[.,]/} code=0
  running_state=$work/state/$name
  shift 2
  mkdir -p "$running_state"
  # In the background and waited for, so that a signal to the runner is answered at once; without the runner's lock.
  SSDPULSE_TEST_STATE=$running_state setsid timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 </dev/null 9>&- &
  running_pid=$!
  { wait "$running_pid" || code=$?; } 2>/dev/null
  running_pid=
  clean_state "$running_state" >>"$log" 2>&1
  running_state=
  seconds=$(((${EPOCHREALTIME/[.,]/} - start) / 100000))
  seconds=$((seconds / 10)).$((seconds % 10))

  verdict=FAIL
  case $code in
    0) verdict=pass reason= ;;
    77) if reason=$(allowed_skip "$name"); then verdict=skip; else reason="skipped, and not in tests/skips.txt"; fi ;;
    *) if [[ ${seconds%.*} -ge $limit ]]; then reason="no end after $limit s"; else reason="exit code $code"; fi ;;
  esac
}

# show_failure LOG: what is most telling comes first, for those who see only the beginning of it.
show_failure() {
  local telling
  telling=$(grep -aE -A 2 '^ *(FAIL|AGAIN)\b|: Failure$|\berror: |^[A-Za-z_.]*Error\b' "$1" | head -n 16 || true)
  [[ -z $telling ]] || printf '%s\n...\n' "$telling"
  tail -n 20 "$1"
}

# closing_line: the last line of a run, and its exit code.
closing_line() {
  echo "$passed passed, ${#failed[@]} failed${failed[*]:+: ${failed[*]}}${again[*]:+; tried twice: ${again[*]}}"
  [[ ${#failed[@]} -eq 0 ]]
}
