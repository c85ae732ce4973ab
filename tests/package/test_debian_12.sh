#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian 12: is the package built in a chroot of its own, clean for lintian, and right as a service on its own kernel?
# timeout: 1500
# timeout-long: 5400
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/debian.sh" bookworm 6.1
