#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do all artefacts, made twice, have the same bytes? Does the RPM find its own libraries on a host that has only glibc
# and libgcc, and measure there? The second time everything is compiled from scratch. test_debian_12 and test_debian_13
# try the Debian packages in guests.
# tier: long
# timeout-long: 14400
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=tests/lib/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/check.sh"
require_root
"$SSDPULSE_SOURCE/deploy/install-packages.sh" release
cd "$SSDPULSE_TEST_STATE"
version=$(sed -nE 's/^project\(ssdpulse VERSION ([0-9.]+).*/\1/p' "$SSDPULSE_SOURCE/CMakeLists.txt")
machine=$(uname -m)

"$SSDPULSE_SOURCE/deploy/release.sh" "$version" --dirty --output first
CCACHE_RECACHE=1 "$SSDPULSE_SOURCE/deploy/release.sh" "$version" --dirty --output second
diff first/SHA256SUMS second/SHA256SUMS || fail "other bytes the second time"
echo "ok the same bytes twice"
(cd first && sha256sum --quiet --check SHA256SUMS && [[ $(wc -l <SHA256SUMS) -eq $(find . -type f ! -name SHA256SUMS | wc -l) ]]) ||
  fail "SHA256SUMS is not of these files"
expect_equal "artefacts" "SHA256SUMS
ssdpulse-$version-1.$machine.rpm
ssdpulse-$version-linux-$machine-debug.tar.gz
ssdpulse-$version-linux-$machine.spdx.json
ssdpulse-$version-linux-$machine.tar.gz
ssdpulse-dbgsym_$version+deb12_$(dpkg --print-architecture).deb
ssdpulse-dbgsym_$version+deb13_$(dpkg --print-architecture).deb
ssdpulse-debuginfo-$version-1.$machine.rpm
ssdpulse_$version+deb12_$(dpkg --print-architecture).deb
ssdpulse_$version+deb13_$(dpkg --print-architecture).deb" "$(LC_ALL=C ls first)"

# A host with a loader, glibc and libgcc, and nothing else.
host=$PWD/host
mkdir -p "$host"/{proc,sys,dev,tmp,var/lib,lib64,usr/local}
for name in libc.so.6 libm.so.6 libresolv.so.2 libgcc_s.so.1; do
  install -D -t "$host/usr/lib/$(gcc -print-multiarch)" "$(gcc -print-file-name=$name)"
done
loader=$(LC_ALL=C readelf -l "$SSDPULSE_BINARY" | sed -nE 's/.*interpreter: (\/\S+)\]/\1/p')
install -D "$loader" "$host$loader"
# on_host COMMAND...
on_host() {
  # shellcheck disable=SC2016  # for the inner shell
  unshare --mount --pid --fork --kill-child sh -c '
    mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' "$host" "$@"
}

rpm --install --root "$host" --nodeps --noscripts "first/ssdpulse-$version-1.$machine.rpm" 2>&1 | sed 's/^/  /'
tar -xf "first/ssdpulse-$version-linux-$machine.tar.gz" -C "$host/usr/local" --strip-components=1
(cd "$host/usr/local" && sha256sum --quiet --check share/doc/ssdpulse/SHA256SUMS) || fail "the tarball's own SHA256SUMS"
cmp "$host/usr/local/share/doc/ssdpulse/sbom.spdx.json" "first/ssdpulse-$version-linux-$machine.spdx.json"
for prefix in /usr /usr/local; do
  expect_equal "version below $prefix" "ssdpulse $version" "$(on_host "$prefix/bin/ssdpulse" --version | sed 's/ (.*//')"
  grep -q "^ExecStart=$prefix/bin/ssdpulse nvme-reader" "$host$prefix/lib/systemd/system/ssdpulse-nvme.service" ||
    fail "the unit below $prefix starts something else"
  # Asks the loader, binding every symbol, about the binary and the library that it loads at run time.
  for file in bin/ssdpulse lib/ssdpulse/libcurl.so.4; do
    places=()
    [[ $file == bin/* ]] || places=(--library-path "$prefix/lib/ssdpulse")
    on_host "$loader" "${places[@]}" --list "$prefix/$file" >loaded
    sed -nE 's|.*=> (/\S+) .*|\1|p' loaded | grep -vE "^$prefix/(bin/\.\./)?lib/ssdpulse/" | sed 's|.*/||' | sort >from_host
    diff <(sort <<<$'libc.so.6\nlibgcc_s.so.1\nlibm.so.6\nlibresolv.so.2') from_host | grep '^>' && fail "$file below $prefix takes this from the host"
    ! grep "not found" loaded || fail "$file below $prefix does not find all"
  done
  newest=$(find "$host$prefix/bin/ssdpulse" "$host$prefix/lib/ssdpulse" -type f -exec readelf -W --version-info {} + |
    grep -oE 'Name: GLIBC_[0-9.]+' | sort -V | tail -n 1)
  expect_equal "newest glibc below $prefix" "Name: GLIBC_2.34" "$newest"
done
echo "ok everything but glibc and libgcc is in the RPM and the tarball"

id=$(file -b "$host/usr/bin/ssdpulse" | sed -nE 's/.*BuildID\[sha1\]=([0-9a-f]+),.* stripped$/\1/p')
[[ -n $id ]] || fail "the binary is not stripped"
debug=.build-id/${id:0:2}/${id:2}.debug
rpm -qpl "first/ssdpulse-debuginfo-$version-1.$machine.rpm" | grep -qx "/usr/lib/debug/$debug" || fail "no symbols in the RPM"
tar -xOf "first/ssdpulse-$version-linux-$machine-debug.tar.gz" "ssdpulse-$version-linux-$machine-debug/lib/debug/$debug" >symbols
grep -q debug_info <(readelf -SW symbols) || fail "no symbols for the tarball"

# It measures this host's kernel.
truncate -s 64M disk
device=$(losetup --find --show disk)
port=$(free_port)
on_host /usr/bin/ssdpulse run --config '' --web.listen-address "127.0.0.1:$port" --devices.include "${device##*/}" --history.directory '' >daemon.log 2>&1 &
written() { curl -sf "http://127.0.0.1:$port/metrics" | sed -nE "s/^ssdpulse_io_bytes_total\{device=\"${device##*/}\",operation=\"write\"\} //p"; }
wait_until 120 written || { cat daemon.log; fail "the daemon of the RPM does not answer"; }
dd if=/dev/zero "of=$device" bs=4k count=500 oflag=direct status=none
has_all() { [[ $(written) == 2048000 ]]; }
wait_until 20 has_all || fail "written 2048000 bytes, measured $(written)"
words=$(on_host /usr/bin/ssdpulse why --address "127.0.0.1:$port" || true)
[[ $words == "Measuring began"* || $words == *"${device##*/}"* ]] || fail "ssdpulse why, by the libcurl of the RPM, says: $words"
echo "ok the RPM measures on this kernel: 2048000 bytes written; why says: $words"
