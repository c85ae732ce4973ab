#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does `cmake --install` put everything in its place, under any prefix, and leave a changed configuration alone?
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=tests/lib/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/check.sh"

build=$SSDPULSE_TEST_STATE/build
log=$SSDPULSE_TEST_STATE/log

# install_to PREFIX DESTDIR: configuring writes paths into files, so each prefix is configured by itself; the binary
# is the one already built.
install_to() {
  [[ -e $build/$1 ]] || cmake -G Ninja -S "$SSDPULSE_SOURCE" -B "$build/$1" "-DCMAKE_INSTALL_PREFIX=$1" \
    -DCMAKE_INSTALL_SYSCONFDIR=/etc >>"$log" 2>&1 || { tail "$log"; fail "configure for $1"; }
  cp "$SSDPULSE_BINARY" "$build/$1/ssdpulse"
  DESTDIR=$2 cmake --install "$build/$1" >>"$log" 2>&1 || { tail "$log"; fail "install to $1"; }
}

version=$(sed -nE 's/^project\(ssdpulse VERSION ([0-9.]+).*/\1/p' "$SSDPULSE_SOURCE/CMakeLists.txt")
expect_equal "version of the binary" "$version" "$("$SSDPULSE_BINARY" --version | cut -d ' ' -f 2)"
expect_equal "version of the package" "$version" "$(sed -nE '1s/.*\((.*)\).*/\1/p' "$SSDPULSE_SOURCE/deploy/debian/changelog")"
grep -q "^## ${version//./\\.} " "$SSDPULSE_SOURCE/CHANGELOG.md" || fail "CHANGELOG.md has no version $version"

expected="bin/ssdpulse
lib/systemd/system/ssdpulse-nvme.service
lib/systemd/system/ssdpulse-nvme.socket
lib/systemd/system/ssdpulse.service
lib/systemd/system/ssdpulse.socket
lib/sysusers.d/ssdpulse.conf
share/bash-completion/completions/ssdpulse
share/doc/ssdpulse/CHANGELOG.md
share/doc/ssdpulse/README.md
$(cd "$SSDPULSE_SOURCE/deploy/docs" && printf 'share/doc/ssdpulse/%s\n' *.md pictures/* | LC_ALL=C sort)
share/fish/vendor_completions.d/ssdpulse.fish
share/man/man1/ssdpulse.1
share/man/man5/ssdpulse-history.5
share/man/man5/ssdpulse-web.5
share/man/man5/ssdpulse.yaml.5
share/man/man7/ssdpulse-metrics.7
share/ssdpulse/config/schema.json
share/ssdpulse/config/ssdpulse.yaml
share/ssdpulse/config/web.yaml
share/ssdpulse/history/views.sql
share/zsh/site-functions/_ssdpulse"

for prefix in /usr /usr/local /opt/ssdpulse; do
  root=$SSDPULSE_TEST_STATE/root${prefix//\//-}
  install_to "$prefix" "$root"
  below=$root$prefix
  found=$(cd "$below" && find . -type f ! -path './share/ssdpulse/prometheus/*' ! -path './share/ssdpulse/grafana/*' \
    ! -path './share/ssdpulse/runbooks/*' ! -path '*/ssdpulse.service.d/*' -printf '%P\n' | LC_ALL=C sort)
  expect_equal "files below $prefix" "$expected" "$found"
  for directory in prometheus grafana/dashboards grafana/provisioning runbooks; do
    expect_equal "files of $directory below $prefix" "$(find "$SSDPULSE_SOURCE/deploy/$directory" -type f | wc -l)" \
      "$(find "$below/share/ssdpulse/$directory" -type f | wc -l)"
  done
  expect_equal "what is not below $prefix" "etc/ssdpulse/ssdpulse.yaml" \
    "$(cd "$root" && find . -type f ! -path ".$prefix/*" -printf '%P\n')"
  cmp <("$SSDPULSE_BINARY" metrics --man) "$below/share/man/man7/ssdpulse-metrics.7" ||
    fail "ssdpulse-metrics(7) below $prefix is not what the binary says"
  grep -q "^ExecStart=$prefix/bin/ssdpulse run --config /etc/ssdpulse/ssdpulse.yaml" "$below/lib/systemd/system/ssdpulse.service" ||
    fail "the unit below $prefix starts something else"
  grep -q "^BindReadOnlyPaths=$prefix/bin/ssdpulse .*-$prefix/lib/ssdpulse " "$below/lib/systemd/system/ssdpulse-nvme.service" ||
    fail "the log reader below $prefix does not see the libraries of its own"
  grep -q "schema=$prefix/share/ssdpulse/config/schema.json" "$root/etc/ssdpulse/ssdpulse.yaml" ||
    fail "the configuration of $prefix names no schema"
  expect_equal "the configuration is right" "$root/etc/ssdpulse/ssdpulse.yaml: ok" \
    "$("$below/bin/ssdpulse" check-config "$root/etc/ssdpulse/ssdpulse.yaml")"
  echo "nvme: { poll_interval: 1m }" >"$root/etc/ssdpulse/ssdpulse.yaml"
  # CMake never replaces a file whose time is within a second of the new one's.
  touch -d '1 hour ago' "$root/etc/ssdpulse/ssdpulse.yaml"
  install_to "$prefix" "$root"
  expect_equal "the changed configuration, installed again" "nvme: { poll_interval: 1m }" \
    "$(cat "$root/etc/ssdpulse/ssdpulse.yaml")"
  if [[ $prefix == /usr ]]; then
    systemd-sysusers --root="$root"
    grep -q '^ssdpulse:' "$root/etc/passwd" || fail "no user is made"
  fi
  echo "ok $prefix"
done
