#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does shellcheck find anything in our shell scripts? Scripts are recognised by their first line.
set -euo pipefail
shopt -s inherit_errexit
cd "$SSDPULSE_SOURCE"

mapfile -t scripts < <(tests/lib/sources.sh | xargs -r -d '\n' awk '
  FNR == 1 && /^#!.*[^[:alnum:]_](ba)?sh([^[:alnum:]_]|$)/ { print FILENAME }
  { nextfile }')
echo "${#scripts[@]} scripts"
[[ ${#scripts[@]} -gt 0 ]]
shellcheck --external-sources "${scripts[@]}" || { echo "FAIL: shellcheck"; exit 1; }
