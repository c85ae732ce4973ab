#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What does the daemon itself cost a host, idle and busy? See idle.py --help; needs root and a build.
set -euo pipefail
directory=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec python3 "$directory/idle.py" "$@"
