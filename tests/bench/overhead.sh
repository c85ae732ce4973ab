#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What does watching cost, relative to its peer and to two empty hooks? See overhead.py --help; needs root and a build.
set -euo pipefail
directory=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec python3 "$directory/overhead.py" "$@"
