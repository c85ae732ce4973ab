#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does shellcheck find anything in our shell scripts? Scripts are recognised by their first line.
set -euo pipefail
shopt -s inherit_errexit
cd "$SSDPULSE_SOURCE"

mapfile -t scripts < <(tests/lib/sources.sh | while read -r file; do
  head -c 64 "$file" | head -n 1 | tr -d '\0' | grep -qE '^#!.*\b(ba)?sh\b' && echo "$file"
done)
echo "${#scripts[@]} scripts"
[[ ${#scripts[@]} -gt 0 ]]
shellcheck --external-sources "${scripts[@]}" || { echo "FAIL: shellcheck"; exit 1; }
