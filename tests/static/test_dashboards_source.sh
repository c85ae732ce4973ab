#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Is the dashboards' committed JSON what their source generates? pip fetches the SDK, exactly the file that
# deploy/grafana/requirements.txt names, and it is kept between runs; nothing is installed into the system.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/lib/check.sh
source tests/lib/check.sh

requirements=deploy/grafana/requirements.txt
sdk=$SSDPULSE_TEST_CACHE/grafana-sdk/$(sha256sum "$requirements" | cut -c 1-16)
if [[ ! -e $sdk/complete ]]; then
  rm -rf "$sdk"
  python3 -m pip install --quiet --root-user-action ignore --no-deps --require-hashes \
    --target "$sdk" --requirement "$requirements" ||
    skip "pip cannot install the SDK of the dashboards: no package index can be reached"
  touch "$sdk/complete"
fi
made=$(mktemp -d "$SSDPULSE_TEST_STATE/dashboards.XXXXXX")
PYTHONPATH=$sdk deploy/grafana/generate.py "$made"
if ! diff --recursive --unified=1 deploy/grafana/dashboards "$made" | head -n 40; then
  fail "deploy/grafana/dashboards is not what deploy/grafana/generate.py writes: run it and commit the result"
fi
echo "$(find "$made" -name '*.json' | wc -l) dashboards are what their source makes"
