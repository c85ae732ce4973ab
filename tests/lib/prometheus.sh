#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What does a real Prometheus make of our metrics? Starts a given version on loopback with its storage in the state
# directory and queries it. Sourced; the runner ends a server that is still running.

# shellcheck source=tests/lib/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

# prometheus_version BINARY: e.g. 2.53.3
prometheus_version() { "$1" --version 2>&1 | sed -nE '1s/^prometheus, version ([0-9]+\.[0-9]+\.[0-9]+).*/\1/p'; }

# start_prometheus BINARY TARGET_PORT native|classic [KEYS [JOBS]]: scrapes the target every second as job "ssdpulse"; returns when
# it has done so once (successfully or not). KEYS: more lines of the scrape configuration, indented to match; JOBS: more of
# them. Native histograms are enabled the way this version supports: up to 3.7 by a feature flag, from 3.8 on by a configuration key
# (which older versions refuse). Sets PROMETHEUS_PID, PROMETHEUS_PORT, PROMETHEUS_LOG.
start_prometheus() {
  local binary=$1 target=$2 histograms=$3 more=${4:-} jobs=${5:-} directory version options=() keys=
  version=$(prometheus_version "$binary")
  [[ -n $version ]] || fail "no Prometheus: $binary"
  if [[ $histograms == native ]]; then
    if printf '%s\n' 3.8.0 "$version" | sort --version-sort --check=quiet; then
      keys='scrape_native_histograms: true'
    else
      options=(--enable-feature=native-histograms)
    fi
  fi
  directory=$(mktemp -d "$SSDPULSE_TEST_STATE/prometheus.XXXXXX")
  cat >"$directory/prometheus.yml" <<YAML
global: { scrape_interval: 1s, scrape_timeout: 1s }
scrape_configs:
  - job_name: ssdpulse
    $keys
    $more
    static_configs: [{ targets: ["127.0.0.1:$target"] }]
$jobs
YAML
  PROMETHEUS_PORT=$(free_port)
  PROMETHEUS_LOG=$directory/log
  "$binary" --config.file="$directory/prometheus.yml" --storage.tsdb.path="$directory/data" \
    --web.listen-address="127.0.0.1:$PROMETHEUS_PORT" "${options[@]}" >"$PROMETHEUS_LOG" 2>&1 &
  PROMETHEUS_PID=$!
  if ! wait_until 30 prometheus_scraped_or_gone || ! prometheus_scraped; then
    cat "$PROMETHEUS_LOG"
    fail "Prometheus $version did not scrape"
  fi
}

prometheus_scraped() { [[ $(prom_targets | jq --raw-output '.[0].health') == @(up|down) ]]; }
prometheus_scraped_or_gone() { prometheus_scraped || ! kill -0 "$PROMETHEUS_PID"; }
# prom_targets: what the server reports about its targets; it discovers them some seconds after its start.
prom_targets() {
  curl --silent --fail --max-time 10 "http://127.0.0.1:$PROMETHEUS_PORT/api/v1/targets" | jq .data.activeTargets
}

stop_prometheus() {
  kill "$PROMETHEUS_PID"
  wait "$PROMETHEUS_PID" || true
}

# prom_query EXPRESSION: the result of an instant query, as one line of JSON.
prom_query() {
  curl --silent --show-error --fail-with-body --max-time 30 --data-urlencode "query=$1" \
    "http://127.0.0.1:$PROMETHEUS_PORT/api/v1/query" | jq --compact-output '.data.result' || fail "query: $1"
}

# prom_value EXPRESSION: the value of the only series of the result.
prom_value() {
  local result
  result=$(prom_query "$1")
  [[ $(jq length <<<"$result") == 1 ]] || fail "not one series: $1 gives $result"
  jq --raw-output '.[0].value[1]' <<<"$result"
}

# prom_scrape_error: why the last scrape of the target failed; empty when it did not.
prom_scrape_error() { prom_targets | jq --raw-output '.[0] | if .health == "up" then "" else "\(.health) \(.lastError)" end'; }

# prom_complaints: every warning and error in the server's log.
prom_complaints() { grep -E 'level=(warn|error)' -i "$PROMETHEUS_LOG" || true; }
