#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What do the flash models cost the daemon? Builds and runs ssdpulse_flash_costs: each drive size and policy alone, and
# everything the models' thread does at 100,000 simulated writes a second, for 1 to 64 drives.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tests/lib/build.sh gcc ssdpulse_flash_costs >&2
exec build-tests/gcc/ssdpulse_flash_costs
