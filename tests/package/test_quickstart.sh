#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does the quick start end in words that say where the page is: at the address of the README and of the configuration's defaults?
# What it installs, builds and runs are stand-ins.
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=tests/lib/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/check.sh"
require_root

tree=$SSDPULSE_TEST_STATE/tree
mkdir -p "$tree/deploy" "$tree/build" "$tree/bin"
cp "$SSDPULSE_SOURCE/deploy/quickstart.sh" "$tree/deploy"
for program in deploy/install-packages.sh build/ssdpulse bin/cmake; do
  cat >"$tree/$program" <<'SCRIPT'
#!/bin/sh
echo "${0##*/} $*"
SCRIPT
  chmod +x "$tree/$program"
done

address=$(sed -nE 's/^  listen_address: //p' "$SSDPULSE_SOURCE/deploy/config/ssdpulse.yaml")
expect_equal "the built-in address" "  listen_address: [\"$address\"]" \
  "$("$SSDPULSE_BINARY" print-config --config "" | grep '^  listen_address:')"
expected="look at  http://$address/  or, in another terminal, at  build/ssdpulse top  (Ctrl-C ends the daemon)
from another host:  ssh -L ${address##*:}:$address $(hostname)  and the same address there
ssdpulse run"
expect_equal "last lines of the quick start" "$expected" "$(PATH=$tree/bin:$PATH "$tree/deploy/quickstart.sh" | tail -n 3)"
grep -q "^ *deploy/quickstart\.sh .*look at http://$address/$" "$SSDPULSE_SOURCE/README.md" ||
  fail "the README's first command does not say http://$address/"
expect_equal "without a start" "" "$(PATH=$tree/bin:$PATH "$tree/deploy/quickstart.sh" --no-run | grep -v ' done in ' || true)"
