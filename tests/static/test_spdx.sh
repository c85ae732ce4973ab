#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does every file say its licence in its first line (after a #! or #compdef line in its second), and bpf/ the one that the kernel's
# verifier is told? Exempt: data that cannot hold a comment, and documents.
set -euo pipefail
shopt -s inherit_errexit
cd "$SSDPULSE_SOURCE"

bad=0
while read -r file; do
  case $file in
    *.md | *.json | *.png | LICENSE* | *.bin | *.golden | *.txt.gz | tests/fixtures/* | .gitignore | deploy/debian/*) continue ;;
    bpf/*.h | bpf/*.c) licence='BSD-2-Clause OR GPL-2.0-only' ;;
    bpf/*.py | tests/*.bpf.[ch] | tests/kernel/trace/*.h) licence='(Apache-2.0|BSD-2-Clause OR GPL-2.0-only)' ;;
    *) licence=Apache-2.0 ;;
  esac
  if [[ ! -s $file ]]; then
    [[ $file == *.py ]] || { echo "$file: empty"; bad=1; }
    continue
  fi
  line=$(head -c 1000 "$file" | tr -d '\0' | sed -n '/^#!/d; /^#compdef /d; p; q')
  [[ -n $line ]] || line=$(sed -n 2p "$file")
  if ! grep -qE "SPDX-License-Identifier: $licence( \*/| -->)?$" <<<"$line"; then
    echo "$file: expected SPDX-License-Identifier: $licence, found: $line"
    bad=1
  fi
done < <(tests/lib/sources.sh)
[[ $bad -eq 0 ]] || { echo "FAIL: licence lines"; exit 1; }
