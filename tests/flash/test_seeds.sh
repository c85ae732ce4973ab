#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the oracles of the flash model hold with twenty seeds, and do the invariants hold for a million drives?
# tier: long
# timeout: 14400
set -euo pipefail
export SSDPULSE_FLASH_SEEDS=20
for test in miniature_drive_test flash_estimate_test; do
  "$SSDPULSE_BUILD/tests/$test"
done
