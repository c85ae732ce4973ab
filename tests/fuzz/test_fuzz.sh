#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does fuzzing find anything in the page decoders, the configuration parser, or the decoder of the history's loads?
# Ten seconds each, twenty minutes in the long tier, all at once. Interesting inputs of earlier runs are kept in the
# cache and used as a starting point.
# timeout: 1500
# timeout-long: 3600
set -euo pipefail
shopt -s inherit_errexit nullglob
cd "$SSDPULSE_SOURCE"

build="build-tests/address"
seconds=$((${SSDPULSE_TEST_LONG:-0} ? 1200 : 10))

ninja -C "$build" pages_fuzzer config_fuzzer load_fuzzer
seeds=$SSDPULSE_TEST_STATE/seeds
PYTHONDONTWRITEBYTECODE=1 tests/fixtures/nvme/make_pages.py --corpus "$seeds/pages"
mkdir -p "$seeds/config" "$seeds/load"
printf '\x01\xe0\xd4\x03\x01\x07\x80\x20\x00\x00\x00\x00\x01\x02\x09\x28\x03\x01\x04' >"$seeds/load/one"  # a minute with seven reads
cp deploy/config/*.yaml tests/fixtures/config/*.yaml "$seeds/config"

# fuzz NAME MAX_LEN: fails if there is a finding, and prints the input that reproduces it.
fuzz() {
  local name=$1 corpus=$SSDPULSE_TEST_CACHE/fuzz/$1 findings=$SSDPULSE_TEST_STATE/findings/$1 finding
  mkdir -p "$corpus" "$findings"
  if "$build/tests/${name}_fuzzer" -seed="${SSDPULSE_TEST_SEED:-0}" -max_total_time="$seconds" -max_len="$2" \
    -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 -artifact_prefix="$findings/" \
    "$corpus" "$seeds/$name" >"$findings.log" 2>&1; then
    grep -E '^stat::(number_of_executed_units|new_units_added)' "$findings.log" | sed "s/^stat::/$name: /"
    return 0
  fi
  tail -n 40 "$findings.log"
  for finding in "$findings"/*; do
    echo "$name: ${finding##*/}, in base64:"
    base64 "$finding"
  done
  echo "FAIL: the $name fuzzer found something"
  return 1
}

fuzz pages 5000 &
pages=$!
fuzz load 3000 &
loads=$!
failed=0
fuzz config 2000 || failed=1
wait "$pages" || failed=1
wait "$loads" || failed=1
exit "$failed"
