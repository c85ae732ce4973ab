#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What do a sampling tick and a scrape cost at 1, 16 and 64 busy devices and 64 CPUs? CPU time, on made-up tables.
set -euo pipefail
binary=${SSDPULSE_BUILD:-build}/ssdpulse_daemon_costs
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  echo "Usage: tests/bench/scrape.sh [--json]     SSDPULSE_BUILD: a build with -DSSDPULSE_TESTS=ON (build)"
  exit
fi
[[ -x $binary ]] || { echo "no $binary: build with -DSSDPULSE_TESTS=ON, or set SSDPULSE_BUILD" >&2; exit 2; }
if [[ ${1:-} == --json ]]; then exec "$binary"; fi
"$binary" | jq -r '
  if .what == "tick" then
    "tick    \(.devices) devices x \(.cpus) CPUs: \(.busy_ms) ms all active, \(.idle_ms) ms at rest"
  else
    "scrape  \(.devices) devices: text \(.text_ms) ms, \(.text_bytes) bytes (gzip \(.text_gzip_bytes)); " +
    "protobuf \(.protobuf_ms) ms + gzip \(.gzip_ms) ms, \(.protobuf_bytes) bytes (gzip \(.protobuf_gzip_bytes)); " +
    "native alone \(.native_ms) ms + gzip \(.native_gzip_ms) ms, \(.native_bytes) bytes (gzip \(.native_gzip_bytes))"
  end'
