#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How far off is a sample of 65,536 pages from a drive that is simulated in full? Thirty loads and policies, ten samples
# each. The figures are those in deploy/docs/flash-model.md. SSDPULSE_FLASH_TABLE_GIB=2 makes the drives smaller than 8
# GiB, for a slow host.
# tier: long
# timeout: 14400
set -euo pipefail
exec "$SSDPULSE_BUILD/tests/flash_estimate_test" --gtest_also_run_disabled_tests --gtest_filter='*DISABLED_TableOfErrors'
