#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does clang-tidy find anything on .clang-tidy's list in the daemon and the exporters? A file that was clean is checked
# again when it, any header or the list has changed.
# tier: long
# timeout: 3400
set -euo pipefail
shopt -s inherit_errexit
cd "$SSDPULSE_SOURCE"

for version in -14 -16 -19 ''; do command -v "clang-tidy$version" >/dev/null && break; done
tests/lib/build.sh tidy generated >/dev/null
mkdir -p "$SSDPULSE_TEST_CACHE/tidy"
common=$({ echo "$version"; tests/lib/sources.sh .clang-tidy '*.h' | xargs cat; } | sha256sum)

check() {
  local stamp
  stamp=$SSDPULSE_TEST_CACHE/tidy/$({ echo "$1 $common"; cat "$1"; } | sha256sum | cut -c1-40)
  [[ ! -e $stamp ]] || return 0
  echo "$1"
  "clang-tidy$version" --quiet -p build-tests/tidy "$1" 2> >(grep -vE 'warnings (generated|treated)' >&2) ||
    { echo "FAIL: clang-tidy on $1"; return 1; }
  touch "$stamp"
}
export version common
export -f check
# Only files compiled by themselves have a command to check them with: files compiled together share one.
jq -r '.[].file' build-tests/tidy/compile_commands.json | sed "s|^$PWD/||" | grep -E '^(daemon|exporters)/' | sort -u |
  xargs -r -P "$(nproc)" -I '{}' bash -c 'check "$@"' check '{}'
