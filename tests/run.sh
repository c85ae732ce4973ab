#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The one test command: installs what the tests need, builds, runs the levels in order, cleans up, reports the result.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The runner is written in Python, which a fresh Debian may lack. It installs the rest itself.
command -v python3 >/dev/null || deploy/install-packages.sh test
export PYTHONDONTWRITEBYTECODE=1
exec python3 tests/runner/main.py "$@"
