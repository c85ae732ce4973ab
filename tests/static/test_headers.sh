#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does every header compile alone? For a header that its source file includes first, the build shows it, and clang-tidy
# in the long tier shows what precompiled headers hide there. Those under bpf/kernel and *.bpf.h are only for the BPF
# compiler; those of tests matter to tests alone, and only the long tier checks them.
# timeout: 1800
set -euo pipefail
shopt -s inherit_errexit
cd "$SSDPULSE_SOURCE"

tests/lib/build.sh gcc generated >/dev/null
# Every include path that any of our targets has, and what all unit tests define: this test checks the headers, the build checks the targets.
mapfile -t paths < <(grep -ohE -- '-(I|isystem )[^ "]+' build-tests/gcc/compile_commands.json | sort -u |
  grep -vx -- '-isystem /usr/include' | tr ' ' '\n') # assembly has it; before g++'s own it hides stdlib.h

check() {
  local before=()
  if grep -sm 1 '^#include' "${1%.h}.cpp" | grep -qF "\"$1\""; then return; fi
  # The ABI headers let each side bring its own fixed-width types.
  [[ $1 != bpf/abi/* ]] || before=(-include linux/types.h)
  echo "#include \"$1\"" | g++ -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Werror -x c++ \
    '-DSSDPULSE_SOURCE_DIR="."' '-DSSDPULSE_DEFAULT_CONFIG_FILE="."' "${before[@]}" "${@:2}" -I. - || { echo "FAIL: $1 does not compile alone"; return 1; }
}
export -f check
others='^bpf/kernel/|\.bpf\.h$'
[[ -n ${SSDPULSE_TEST_LONG:-} ]] || others+='|^tests/'
tests/lib/sources.sh '*.h' | grep -vE "$others" |
  xargs -r -P "$(nproc)" -I '{}' bash -c 'check "$@"' check '{}' "${paths[@]}"
