#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How do the tests build the project? tests/lib/build.sh KIND [TARGET...] configures build-tests/KIND once and builds it:
#   gcc               everything; what measures costs only in the long tier
#   clang             everything, with the other compiler
#   address           with clang, under AddressSanitizer with UBSan: the fuzzers, and the unit tests with this label
#   thread            under ThreadSanitizer: the unit tests with this label
#   tidy              with clang, each file by itself and without precompiled headers: what clang-tidy reads
# In the long tier the sanitizer builds contain all unit tests, and `address` the daemon, too.
# In each of them every warning is an error.
# TARGET `generated` stands for all generated headers. SSDPULSE_EXTRA_FLAGS is added to each compiler call.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

kind=$1
targets=("${@:2}")
build=build-tests/$kind
options=(-DSSDPULSE_TESTS=ON -DSSDPULSE_WERROR=ON)
case $kind in
  gcc | thread) options+=(-DCMAKE_CXX_COMPILER=g++) ;;
  clang | address | tidy)
    for version in -14 -16 -19 ''; do command -v "clang++$version" >/dev/null && break; done
    options+=("-DCMAKE_CXX_COMPILER=clang++$version" "-DCMAKE_C_COMPILER=clang$version") ;;
  *) echo "unknown kind of build: $kind" >&2; exit 2 ;;
esac
case $kind in
  address) options+=(-DSSDPULSE_FUZZ=ON '-DSSDPULSE_SANITIZE=fuzzer-no-link,address,undefined') ;;
  thread) options+=(-DSSDPULSE_SANITIZE=thread) ;;
  tidy) options+=(-DSSDPULSE_PRECOMPILE=OFF) ;;
esac
# With only the debug symbols for backtraces, and sanitizers less optimised, they compile in two thirds of the time.
case $kind in
  address | thread) options+=('-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG') ;;
  *) options+=('-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG') ;;
esac
# g++ spends up to a fifth of its time on collecting garbage, which a host of today has room for.
case $kind in
  gcc | thread) options+=('-DCMAKE_CXX_FLAGS=--param ggc-min-heapsize=1000000 --param ggc-min-expand=400') ;;
esac
options+=("-DCMAKE_CXX_COMPILER_LAUNCHER=$PWD/tests/lib/compile.sh")
# Another checkout of the same files can reuse what was compiled here.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros

# Written last: without it an earlier configuration did not finish.
if [[ $(cat "$build/configured-with" 2>/dev/null) != "${options[*]}" ]]; then
  cmake --fresh -G Ninja -S . -B "$build" "${options[@]}" 2>&1
  echo "${options[*]}" >"$build/configured-with"
fi

if [[ ${targets[*]} == generated ]]; then
  mapfile -t targets < <(ninja -C "$build" -t targets all | sed -n 's/^\(.*\.h\): CUSTOM_COMMAND.*/\1/p' | grep -v "^$PWD")
  [[ ${#targets[@]} -gt 0 ]] || exit 0
elif [[ ${#targets[@]} -eq 0 && $kind == @(address|thread) ]]; then
  # By convention the test unit.NAME is the target NAME.
  label=()
  [[ -n ${SSDPULSE_TEST_LONG:-} ]] || label=(-L "$kind")
  mapfile -t targets < <(ctest --test-dir "$build" -N "${label[@]}" | sed -n 's/^ *Test *#[0-9]*: unit\.//p')
  [[ ${#targets[@]} -gt 0 ]] || exit 0
  [[ $kind != address ]] || targets+=(pages_fuzzer config_fuzzer load_fuzzer)
  [[ $kind != address || -z ${SSDPULSE_TEST_LONG:-} ]] || targets+=(ssdpulse)
elif [[ ${#targets[@]} -eq 0 && ($kind == clang || -n ${SSDPULSE_TEST_LONG:-}) ]]; then
  targets=(all tests/bench/all)
fi
exec ninja -C "$build" "${targets[@]}"
