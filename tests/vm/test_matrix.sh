#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the scenarios of the VM matrix pass, in the long tier each of them on every kernel? What is wrong stands in
# build-tests/vm.
# timeout: 3000
# timeout-long: 14400
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec ./run.sh ${SSDPULSE_TEST_LONG:+--long}
