#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds for hosts of other distributions, in the Debian 12 chroot that deploy/release.sh makes: portable.sh OUTPUT
# KIND... turns the source tree it is in into a tarball (for any prefix) or an RPM, each with its debug symbols
# alongside. Both contain the same binary, the libraries that it loads except glibc and libgcc, and a list of all that.
set -euo pipefail
shopt -s inherit_errexit
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_root=${here%/deploy/release}

output=$1 kinds=("${@:2}")
newest_glibc=2.34  # what RHEL 9 has
loader=$(find /lib/ /lib64/ -maxdepth 1 -name 'ld-linux-*' -printf '%f\n' -quit)
of_host=(libc.so.6 libm.so.6 libresolv.so.2 libgcc_s.so.1 "$loader")
machine=$(uname -m)
version=$(sed -nE 's/^project\(ssdpulse VERSION ([0-9.]+).*/\1/p' "$source_root/CMakeLists.txt")
revision=$(cat "$source_root/debian/revision")
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l "$source_root/debian/changelog" -S Timestamp)
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC PATH=/usr/lib/ccache:$PATH
umask 022

# flags NAME: the Debian package's flags. With these and its locale, ccache finds what was compiled for that package.
flags() { (cd "$source_root" && DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get "$1"); }

# configure PREFIX DIRECTORY OPTION...: the Debian package's place, compiler and flags, so that ccache hits.
configure() {
  cmake -G Ninja -S "$source_root" -B "$2" "-DCMAKE_INSTALL_PREFIX=$1" -DCMAKE_BUILD_TYPE=None -DCMAKE_INSTALL_SYSCONFDIR=/etc \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON "-DSSDPULSE_REVISION=$revision" \
    "-DCMAKE_CXX_FLAGS=$(flags CXXFLAGS) $(flags CPPFLAGS)" "-DCMAKE_C_FLAGS=$(flags CFLAGS) $(flags CPPFLAGS)" "${@:3}"
}

# build: the binary, in $build. The binary and its libraries all look for libraries relative to the binary, which RPATH
# provides and RUNPATH does not.
build() {
  build=$source_root/obj-$(gcc -print-multiarch)
  configure /usr "$build" "-DCMAKE_INSTALL_RPATH=\$ORIGIN/../lib/ssdpulse" -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
    "-DCMAKE_EXE_LINKER_FLAGS=$(flags LDFLAGS) -Wl,--disable-new-dtags"
  ninja -C "$build" -j "$(sed -nE 's/.*parallel=([0-9]+).*/\1/p' <<<"$DEB_BUILD_OPTIONS")" ssdpulse
  "$here/private_libraries.sh" "$work/libraries" "$build/ssdpulse" "${of_host[@]}"
  "$here/libraries.sh" "$build/ssdpulse" "$build" >"$work/packages"
  python3 "$here/sbom.py" "$version" "$revision" "$SOURCE_DATE_EPOCH" libc6 libgcc-s1 <"$work/packages" >"$work/sbom.json"
  objcopy --only-keep-debug --compress-debug-sections "$build/ssdpulse" "$work/debug"
}

# lay_out PREFIX ROOT: everything installed below the prefix; the binary is the one already built.
lay_out() {
  local binary=$2$1/bin/ssdpulse documents=$2$1/share/doc/ssdpulse package
  [[ $1 == /usr ]] || { configure "$1" "$work/configured" && cp "$build/ssdpulse" "$work/configured/"; }
  DESTDIR=$2 cmake --install "$([[ $1 == /usr ]] && echo "$build" || echo "$work/configured")"
  strip --strip-unneeded --remove-section=.comment --remove-section=.note "$binary"
  mkdir -p "$2$1/lib/ssdpulse" "$documents/licences"
  cp "$work"/libraries/* "$2$1/lib/ssdpulse/"
  cp "$work/sbom.json" "$documents/sbom.spdx.json"
  cp "$source_root/LICENSE" "$documents/"
  cut -f 2 "$work/packages" | sort -u | while read -r package; do
    cp "/usr/share/doc/$package/copyright" "$documents/licences/$package"
  done
  python3 "$here/check_elf.py" "$2$1" "$newest_glibc" "${of_host[@]}" >"$documents/libraries.txt"
}

# lay_out_debug DIRECTORY: the symbols, where debuggers look for them by build ID.
lay_out_debug() {
  local id
  id=$(file -b "$build/ssdpulse" | sed -nE 's/.*BuildID\[sha1\]=([0-9a-f]+).*/\1/p')
  install -D -m 644 "$work/debug" "$1/.build-id/${id:0:2}/${id:2}.debug"
}

# pack DIRECTORY NAME: everything below the directory, as NAME/...
pack() {
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu --transform="s|^\.|$2|" \
    -C "$1" -cf - . | gzip -9n >"$output/$2.tar.gz"
}

make_tarball() {
  local name=ssdpulse-$version-linux-$machine top=$work/tarball/usr/local
  lay_out /usr/local "$work/tarball"
  # The configuration is in share/ssdpulse/config as well, because /etc belongs to the host.
  (cd "$top" && find . -type f ! -name SHA256SUMS -printf '%P\0' | sort -z | xargs -0 sha256sum) >"$work/sums"
  cp "$work/sums" "$top/share/doc/ssdpulse/SHA256SUMS"
  pack "$top" "$name"
  lay_out_debug "$work/tarball-debug/lib/debug"
  pack "$work/tarball-debug" "$name-debug"
  cp "$work/sbom.json" "$output/ssdpulse-$version-linux-$machine.spdx.json"
}

make_rpm() {
  lay_out /usr "$work/rpm"
  lay_out_debug "$work/rpm/usr/lib/debug"
  find "$work/rpm" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  rpmbuild -bb --quiet --target "$machine" --define "_topdir $work/rpmbuild" --define "release_version $version" \
    --define "stage $work/rpm" --define "newest_glibc $newest_glibc" --define "_buildhost localhost" \
    --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
    --define "_binary_payload w9.gzdio" "$here/ssdpulse.spec"
  mv "$work/rpmbuild/RPMS/$machine"/*.rpm "$output/"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$output"
build
for kind in "${kinds[@]}"; do "make_$kind"; done
