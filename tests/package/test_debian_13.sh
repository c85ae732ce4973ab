#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian 13: the same, with its own compiler, libraries, kernel and systemd. Only in the long tier: a second build.
# timeout-long: 5400
set -euo pipefail
[[ -n ${SSDPULSE_TEST_LONG:-} ]] || { echo "SKIP: in the long tier"; exit 77; }
exec "$(dirname "${BASH_SOURCE[0]}")/lib/debian.sh" trixie 6.12
