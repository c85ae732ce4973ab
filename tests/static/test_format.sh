#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Is all C and C++ formatted as clang-format 14 does it? Other versions differ, so a suite without 14 uses Debian 12's.
set -euo pipefail
shopt -s inherit_errexit
cd "$SSDPULSE_SOURCE"
source tests/lib/debian_suite.sh

tool=(clang-format-14)
if ! command -v clang-format-14 >/dev/null; then
  prefix=$SSDPULSE_TEST_CACHE/clang-format-14
  fetch_from_suite bookworm clang-format-14 libclang-cpp14 libllvm14 libedit2 libbsd0 libmd0 libtinfo6 libxml2 libicu72 \
    libffi8 libz3-4 libgmp10 "$prefix"
  tool=(env "LD_LIBRARY_PATH=$(echo "$prefix"/usr/lib/*-linux-gnu):$(echo "$prefix"/lib/*-linux-gnu)" "$prefix/usr/bin/clang-format-14")
fi
"${tool[@]}" --version | grep -F 'version 14.' || { echo "FAIL: not clang-format 14"; exit 1; }
tests/lib/sources.sh '*.h' '*.c' '*.cpp' | xargs -r -d '\n' -n 20 "${tool[@]}" --dry-run --Werror ||
  { echo "FAIL: run clang-format-14 -i on these files"; exit 1; }
