#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Are the systemd units valid, does each service stay within an exposure of 2.5 as systemd counts it, and does it set
# what systemd does not count: no core files, file systems below /home not hidden from the daemon, and NVMe's device
# class known before it is allowed, for reading?
set -euo pipefail
shopt -s inherit_errexit
cd "${SSDPULSE_SOURCE:-$(dirname "${BASH_SOURCE[0]}")/../..}"
# shellcheck source=tests/lib/check.sh
source tests/lib/check.sh

readonly MOST=25 # tenths
units=$SSDPULSE_TEST_STATE
cp deploy/systemd/*.service deploy/systemd/*.socket "$units"
# The daemon is not installed here. The drop-ins are for a later systemd; their keys are checked by eye.
sed -i 's,^\(ExecStart\|ExecReload\)=/usr/bin/ssdpulse,\1=/bin/true,' "$units"/*.service

# says UNIT LINE...
says() {
  local unit=$1 line
  shift
  for line; do grep -qxF "$line" "deploy/systemd/$unit" || fail "$unit: no line '$line'"; done
}
says ssdpulse.service LimitCORE=0 ProtectHome=read-only
says ssdpulse-nvme.service LimitCORE=0 'DeviceAllow=char-nvme r' 'Wants=modprobe@nvme_core.service' \
  'After=ssdpulse-nvme.socket modprobe@nvme_core.service'
words=$(systemd-analyze verify --man=no "$units"/*.service "$units"/*.socket 2>&1 | grep -F "$units" || true)
[[ -z $words ]] || fail "systemd-analyze verify: $words"
for unit in "$units"/*.service; do
  level=$(systemd-analyze security --offline=yes "$unit" |
    sed -nE 's/^.*Overall exposure level for [^:]+: ([0-9]+)\.([0-9]).*/\1\2/p')
  [[ -n $level ]] || fail "${unit##*/}: systemd-analyze tells no exposure"
  echo "${unit##*/}: exposure $((10#$level / 10)).$((10#$level % 10))"
  ((10#$level <= MOST)) || fail "${unit##*/}: exposure above $((MOST / 10)).$((MOST % 10))"
done
