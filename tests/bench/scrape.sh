#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What do a sampling tick and a scrape cost at 1, 16 and 64 busy devices and 64 CPUs, and what does all that the daemon
# does in a second cost with 24 drives and 384 CPUs? Median CPU time, on made-up tables (daemon_costs.cpp). Exits with 1
# if the large host exceeds a limit, which the table shows.
set -euo pipefail
binary=${SSDPULSE_BUILD:-build}/ssdpulse_daemon_costs
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  echo "Usage: tests/bench/scrape.sh [--json | --large]"
  echo "--json: lines of JSON; --large: only the host with 24 drives and 384 CPUs"
  echo "Limits there: a tick 20 ms, a scrape 100 ms of CPU time. Exits with 1 if one is exceeded."
  echo "Environment: SSDPULSE_BUILD: the directory of a build with -DSSDPULSE_TESTS=ON; default: build"
  exit
fi
if [[ $# -gt 1 || ( $# -eq 1 && $1 != --json && $1 != --large ) ]]; then
  echo "unknown arguments: $*; see tests/bench/scrape.sh --help" >&2
  exit 2
fi
[[ -x $binary ]] || { echo "no $binary: build the target ssdpulse_daemon_costs with -DSSDPULSE_TESTS=ON, or set SSDPULSE_BUILD" >&2; exit 2; }
if [[ ${1:-} == --json ]]; then exec "$binary"; fi
"$binary" "$@" | jq -rs '
  def cell(width): tostring | " " * (width - length) + .;
  def ms: if . then .ms * 100 | round / 100 else "-" end;
  (.[] |
    if .what == "tick" then
      "tick    \(.devices) devices x \(.cpus) CPUs: \(.busy_ms) ms all busy, \(.idle_ms) ms all idle"
    elif .what == "scrape" then
      "scrape  \(.devices) devices: text \(.text_ms) ms, \(.text_bytes) bytes (gzip \(.text_gzip_bytes)); " +
      "protobuf \(.protobuf_ms) ms + gzip \(.gzip_ms) ms, \(.protobuf_bytes) bytes (gzip \(.protobuf_gzip_bytes)); " +
      "protobuf with only native histograms \(.native_ms) ms + gzip \(.native_gzip_ms) ms, \(.native_bytes) bytes (gzip \(.native_gzip_bytes))"
    elif .what == "host" then
      "\n\(.drives) drives x \(.cpus) CPUs, 64 tenants, tables of \(.table_bytes) bytes; CPUs that share a cell: hints and streams " +
      "\(.cpus / .tagged_cells), commits \(.cpus / .commit_cells | ceil), I/O without a cell of its own \(.cpus / .unattributed_cells)"
    else empty end),
  "ms of CPU time\(" " * 41)  all busy  a fifth busy      idle  limit     bytes",
  (reduce (.[] | select(.what == "second")) as $one ({}; .[$one.step][$one.activity] = $one) | to_entries[] |
    .key as $step | .value["all busy"] as $busy |
    $step + " " * (55 - ($step | length)) + ($busy | ms | cell(10)) + (.value["a fifth busy"] | ms | cell(14)) +
    (.value.idle | ms | cell(10)) + ($busy.limit_ms // "" | cell(7)) + ($busy.bytes // "" | cell(10))),
  (.[] | select(.what == "memory") | "own memory \(.own_bytes) bytes")'
