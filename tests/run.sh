#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The one test command: installs what the tests need, builds, runs the levels in order, cleans up, says how it went.
set -euo pipefail
shopt -s inherit_errexit nullglob
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

usage() {
  cat <<'TEXT'
Usage: tests/run.sh [--long] [--list] [--no-build] [LEVEL | TEST]...
Without a name it runs every level, in this order; with names only those levels or tests (e.g. kernel.test_counts).
  static     formatting, shellcheck, layering, headers, texts, and, in the long tier, clang-tidy
  build      g++ and, in the long tier, clang, every warning an error
  unit       what needs neither root nor a kernel
  sanitize   unit tests of what reads hostile bytes, under address,undefined; in the long tier all, and all under thread
  fuzz       hostile bytes for the page decoders and the configuration's parser
  kernel     the BPF programs on this host's kernel (root)
  system     the whole daemon on this host (root)
  package    what is installed, the Debian packages, and the service in a machine of its own (root)
  vm         other kernels, in QEMU (root)
  mutate     sabotages of the code that the tests must notice
Options
  --long      the long tier: more cases, wider sweeps, all mutations, long time limits
  --list      only print the names of the tests (those of unit tests once they are built)
  --no-build  neither install nor build: what stands in build-tests/ is tested
Output of a test: build-tests/logs/TEST.log. SSDPULSE_TEST_SEED=N repeats a run's random choices.
Exit code: 0 all passed, 1 some failed, 2 wrong usage.
TEXT
}

readonly all_levels=(static build unit sanitize fuzz kernel system package vm mutate)
names=()
long=
list=
no_build=
for argument in "$@"; do
  case $argument in
    --long) long=1 ;;
    --list) list=1 ;;
    --no-build) no_build=1 ;;
    -h | --help) usage; exit ;;
    -*) usage >&2; exit 2 ;;
    *)
      [[ " ${all_levels[*]} " == *" ${argument%%.*} "* ]] || { echo "no level ${argument%%.*}" >&2; usage >&2; exit 2; }
      names+=("$argument") ;;
  esac
done

work=$root/build-tests
logs=$work/logs
export SSDPULSE_SOURCE=$root SSDPULSE_BUILD=$work/gcc SSDPULSE_BINARY=$work/gcc/ssdpulse
export SSDPULSE_TEST_CACHE=$work/cache SSDPULSE_TEST_LONG=$long
export SSDPULSE_TEST_SEED=${SSDPULSE_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
export RC_PARAMS=${RC_PARAMS:-seed=$SSDPULSE_TEST_SEED${long:+ max_success=5000}}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
mkdir -p "$logs" "$work/state" "$SSDPULSE_TEST_CACHE"
# shellcheck source=tests/lib/runner.sh
source tests/lib/runner.sh
# These levels measure time and losses on a host that is shared with others. Where everything runs in the short form, a
# few failures are looked at a second time (AGAIN): what is broken fails twice. The long tier and named tests are strict.
if [[ -z $long && ${#names[@]} -eq 0 ]]; then second_tries=5 tried_twice="unit kernel system package mutate.control"; fi

# wants NAME: was this level or test asked for? A level also when only a test of it was.
wants() {
  local name
  [[ ${#names[@]} -gt 0 ]] || return 0
  for name in "${names[@]}"; do
    if [[ $1 == "$name" || $1 == "$name".* || $name == "$1".* ]]; then return 0; fi
  done
  return 1
}

# offer NAME TIMEOUT COMMAND...: lists or runs a test, if it was asked for.
offered=0
offer() {
  wants "$1" || return 0
  offered=$((offered + 1))
  if [[ -n $list ]]; then echo "$1"; else run_test "$@" || true; fi
}

# built KIND: builds it, once a run; the build is a test of its own. Of the sanitizers' only what is named, if that is.
declare -A builds=()
built() {
  if [[ -n $list || -n $no_build ]]; then return 0; fi
  if [[ -z ${builds[$1]:-} ]]; then
    local name named=()
    for name in "${names[@]}"; do [[ $name != sanitize."$1".* ]] || named+=("${name#sanitize."$1".}"); done
    run_test "build.$1" 3600 tests/lib/build.sh "$1" "${named[@]}" && builds[$1]=good || builds[$1]=bad
  fi
  [[ ${builds[$1]} == good ]]
}

# unit_tests LEVEL KIND: every unit test that ctest knows in this build, as LEVEL.NAME.
unit_tests() {
  local build=$work/$2 test label=()
  if [[ -z $long && $1 == sanitize.* && " ${names[*]}" != *" $1."* ]]; then label=(-L "$2"); fi
  if [[ ! -e $build/build.ninja && -n $list ]]; then return; fi
  for test in $(ctest --test-dir "$build" -N "${label[@]}" | sed -n 's/^ *Test *#[0-9]*: unit\.//p'); do
    # ThreadSanitizer of this age cannot live with the address randomisation of newer kernels.
    offer "$1.$test" "${long:+14400}${long:-600}" setarch -R ctest --test-dir "$build" -V -R "^unit\.${test//./\\.}\$"
  done
}

# directory_tests LEVEL: the executable files tests/LEVEL/test_*; "# timeout: N" in one sets its limit. One that says
# "# tier: long" runs in the long tier, and when it is named.
directory_tests() {
  local file name key limit
  for file in "tests/$1"/test_*; do
    [[ -x $file && -f $file ]] || continue
    name=${file##*/}
    if [[ -z $long && " ${names[*]} " != *" $1.${name%.*} "* ]] && grep -q '^# tier: long$' "$file"; then continue; fi
    key=timeout${long:+-long}
    limit=$(sed -n "s/^# $key: \([0-9]*\)$/\1/p" "$file")
    offer "$1.${name%.*}" "${limit:-$((300 + ${long:-0} * 14100))}" "$file"
  done
}

mutations() {
  local tier=--ci name
  [[ -z $long ]] || tier=--all
  for name in "${names[@]}"; do [[ $name != mutate.* ]] || tier=--all; done
  if [[ ${#names[@]} -eq 0 || " ${names[*]} " == *" mutate "* ]]; then
    offer mutate.control 3600 tests/mutate.sh --control "$tier"
  fi
  for name in $(tests/mutate.sh --list "$tier"); do
    offer "mutate.$name" 3600 tests/mutate.sh --no-control "$name"
  done
}

run_level() {
  case $1 in
    build)
      if wants build.gcc; then built gcc || true; fi
      # Else clang compiles what is built for sanitizers.
      if wants build.clang && [[ -n $long || " ${names[*]} " == *" build.clang "* ]]; then built clang || true; fi ;;
    unit) if built gcc; then unit_tests unit gcc; fi ;;
    sanitize)
      for kind in address thread; do
        if [[ $kind == thread && -z $long && " ${names[*]} " != *" sanitize.thread"* ]]; then continue; fi
        if wants "sanitize.$kind" && built "$kind"; then unit_tests "sanitize.$kind" "$kind"; fi
      done ;;
    fuzz) if built address; then directory_tests fuzz; fi ;;
    kernel | system | package | vm)
      if [[ -z $list && $EUID -ne 0 ]]; then
        report FAIL "$1" 0 "must run as root"
        failed+=("$1")
      elif built gcc; then
        directory_tests "$1"
      fi ;;
    static) directory_tests "$1" ;;
    mutate) mutations ;;
  esac
}

if [[ -z $list ]]; then
  exec 9>"$work/lock"
  flock --nonblock 9 || { echo "another run of the tests is under way in $work" >&2; exit 1; }
  trap clean_running EXIT
  trap 'clean_running; exit 130' INT TERM HUP
  for leftover in "$work"/state/*; do clean_state "$leftover"; done
  echo "seed: $SSDPULSE_TEST_SEED"
  if [[ -z $no_build ]] && ! deploy/install-packages.sh build test >"$logs/packages.log" 2>&1; then
    tail -n 20 "$logs/packages.log"
    report FAIL packages "$SECONDS" "the whole output: $logs/packages.log"
    failed=(packages)
    closing_line
  fi
fi
for level in "${all_levels[@]}"; do
  if wants "$level"; then run_level "$level"; fi
done
if [[ -n $list ]]; then exit; fi
if [[ $offered -eq 0 && ${#failed[@]} -eq 0 && " ${names[*]}" != *" build"* ]]; then
  echo "nothing was run: no such test" >&2
  exit 2
fi
closing_line
