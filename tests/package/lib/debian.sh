#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debian.sh SUITE KERNEL [BINARY]: builds that suite's package twice, once as a previous version, makes a guest, and
# lets debian_guest.py judge what happens in it. With a binary of this host, one package is made from that, and the
# guest runs the short form.
set -euo pipefail
shopt -s inherit_errexit
suite=$1 kernel=$2 binary=${3:-}
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# shellcheck source=tests/lib/check.sh
source "$source_root/tests/lib/check.sh"
# shellcheck source=tests/package/lib/guest.sh
source "$source_root/tests/package/lib/guest.sh"
require_root

# build VERSION OPTION...: thanks to ccache, every build after the first is quick.
build() {
  local began=$SECONDS output=$SSDPULSE_TEST_STATE/packages-$1 log=$SSDPULSE_TEST_STATE/build-$1.log
  "$source_root/deploy/debian/build.sh" "${@:2}" --version "$1" --no-debug "$output" \
    >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    fail "the package of $suite is not built"
  }
  if grep ' warning: ' "$log" >&2; then fail "the compiler of $suite warns"; fi
  echo "$1 built in $((SECONDS - began)) s${binary:+ of $binary}" >&2
  find "$output" -name 'ssdpulse_*.deb'
}

version=$(sed -nE 's/^project\(ssdpulse VERSION ([0-9.]+).*/\1/p' "$source_root/CMakeLists.txt")
if [[ -n $binary ]]; then
  packages=("$(build "$version" --binary "$binary")")
else
  packages=("$(build 0.0.9 --suite "$suite")" "$(build "$version" --suite "$suite")")
fi
mkdir "$SSDPULSE_TEST_STATE/guest"
find_qemu || fail "no emulator"
began=$SECONDS
make_guest "$suite" "$kernel" "$SSDPULSE_TEST_STATE/guest" "${packages[@]}" || fail "no guest of $suite"
echo "guest made in $((SECONDS - began)) s"
PYTHONDONTWRITEBYTECODE=1 QEMU_COMMAND=${QEMU[*]} exec python3 "$source_root/tests/package/lib/debian_guest.py" \
  "$SSDPULSE_TEST_STATE/guest" "${packages[@]}"
