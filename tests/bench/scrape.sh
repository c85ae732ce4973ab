#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What do a sampling tick and a scrape cost at 1, 16 and 64 busy devices and 64 CPUs? Median CPU time, on made-up tables
# (daemon_costs.cpp).
set -euo pipefail
binary=${SSDPULSE_BUILD:-build}/ssdpulse_daemon_costs
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  echo "Usage: tests/bench/scrape.sh [--json]"
  echo "Environment: SSDPULSE_BUILD: the directory of a build with -DSSDPULSE_TESTS=ON; default: build"
  exit
fi
if [[ $# -gt 1 || ( $# -eq 1 && $1 != --json ) ]]; then
  echo "unknown arguments: $*; see tests/bench/scrape.sh --help" >&2
  exit 2
fi
[[ -x $binary ]] || { echo "no $binary: build with -DSSDPULSE_TESTS=ON, or set SSDPULSE_BUILD" >&2; exit 2; }
if [[ ${1:-} == --json ]]; then exec "$binary"; fi
"$binary" | jq -r '
  if .what == "tick" then
    "tick    \(.devices) devices x \(.cpus) CPUs: \(.busy_ms) ms all busy, \(.idle_ms) ms all idle"
  else
    "scrape  \(.devices) devices: text \(.text_ms) ms, \(.text_bytes) bytes (gzip \(.text_gzip_bytes)); " +
    "protobuf \(.protobuf_ms) ms + gzip \(.gzip_ms) ms, \(.protobuf_bytes) bytes (gzip \(.protobuf_gzip_bytes)); " +
    "protobuf with only native histograms \(.native_ms) ms + gzip \(.native_gzip_ms) ms, \(.native_bytes) bytes (gzip \(.native_gzip_bytes))"
  end'
