#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian 12: is the package built in a chroot of its own, clean for lintian, and right as a service on its own kernel?
# In the long tier alone: the project is built once more, and an emulated guest boots systemd several times.
# timeout-long: 5400
set -euo pipefail
[[ -n ${SSDPULSE_TEST_LONG:-} ]] || { echo "SKIP: in the long tier"; exit 77; }
exec "$(dirname "${BASH_SOURCE[0]}")/lib/debian.sh" bookworm 6.1
