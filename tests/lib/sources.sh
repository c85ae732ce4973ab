#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which files are the project's own? tests/lib/sources.sh [GLOB...] prints those whose name matches, or all: what git
# tracks or would track, and outside a git repository everything but the build directories.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ -e .git ]]; then
  git -c "safe.directory=$PWD" ls-files --cached --others --exclude-standard
else
  find . -path './build*' -prune -o -name __pycache__ -prune -o -type f -printf '%P\n'
fi | sort -u | while read -r file; do
  [[ -f $file ]] || continue
  [[ $# -gt 0 ]] || echo "$file"
  # shellcheck disable=SC2053  # the right side is a pattern
  for glob in "$@"; do
    if [[ ${file##*/} == $glob ]]; then echo "$file"; fi
  done
done
