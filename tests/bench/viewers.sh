#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What do people viewing the page cost the daemon? See viewers.py --help; needs root and a build.
set -euo pipefail
directory=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec python3 "$directory/viewers.py" "$@"
