#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debian.sh SUITE KERNEL: builds the package of that suite twice, as a previous version too, makes a guest, and lets
# debian_guest.py judge what happens in it.
set -euo pipefail
shopt -s inherit_errexit
suite=$1 kernel=$2
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# shellcheck source=tests/lib/check.sh
source "$source_root/tests/lib/check.sh"
# shellcheck source=tests/package/lib/guest.sh
source "$source_root/tests/package/lib/guest.sh"
require_root

# build VERSION: the rest of it is quick after the first, by ccache.
build() {
  local began=$SECONDS output=$SSDPULSE_TEST_STATE/packages-$1
  "$source_root/deploy/debian/build.sh" --suite "$suite" --version "$1" --no-debug "$output" \
    >"$SSDPULSE_TEST_STATE/build.log" 2>&1 || {
    tail -n 40 "$SSDPULSE_TEST_STATE/build.log"
    fail "the package of $suite is not built"
  }
  echo "$1 built in $((SECONDS - began)) s" >&2
  find "$output" -name 'ssdpulse_*.deb'
}

version=$(sed -nE 's/^project\(ssdpulse VERSION ([0-9.]+).*/\1/p' "$source_root/CMakeLists.txt")
new=$(build "$version")
old=$(build 0.0.9)
mkdir "$SSDPULSE_TEST_STATE/guest"
find_qemu || fail "no emulator"
began=$SECONDS
make_guest "$suite" "$kernel" "$SSDPULSE_TEST_STATE/guest" "$old" "$new" || fail "no guest of $suite"
echo "guest made in $((SECONDS - began)) s"
PYTHONDONTWRITEBYTECODE=1 QEMU_COMMAND=${QEMU[*]} exec python3 "$source_root/tests/package/lib/debian_guest.py" \
  "$SSDPULSE_TEST_STATE/guest" "$old" "$new"
