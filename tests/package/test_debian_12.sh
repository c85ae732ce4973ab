#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian 12: does the package work as a service on its own kernel? The short form makes it from the binary already
# built. The long one builds it twice in a chroot of its own, where lintian must find nothing, and lets things go wrong.
# timeout: 1500
# timeout-long: 5400
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
if [[ -n ${SSDPULSE_TEST_LONG:-} ]]; then exec "$here/lib/debian.sh" bookworm 6.1; fi
if ! grep -q '^VERSION_CODENAME=bookworm$' /etc/os-release; then
  echo "SKIP: what was built on this host does not run on Debian 12"
  exit 77
fi
exec "$here/lib/debian.sh" bookworm 6.1 "$SSDPULSE_BINARY"
