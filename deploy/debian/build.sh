#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian package from this source tree: in a chroot of a suite, or on this machine for its own suite.
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=deploy/debian/suite_root.sh
source "$(dirname "${BASH_SOURCE[0]}")/suite_root.sh"

usage() {
  cat <<'TEXT'
Usage: deploy/debian/build.sh [--suite SUITE | --binary FILE] [--version VERSION] [--no-debug] OUTPUT
  Builds the package and puts it into the directory OUTPUT. Its version is that of CMakeLists.txt with the release of
  Debian (1.0.0+deb12), so that an upgrade of Debian upgrades it, too.
  --suite SUITE      in a chroot of that suite (bookworm, trixie): as root, with debootstrap. What the chroot begins with
                     is kept in SSDPULSE_TEST_CACHE (~/.cache/ssdpulse). Without it: on this machine
  --binary FILE      on this machine, of a binary that was built here, for a package that is only tried
  --version VERSION  another version than that of CMakeLists.txt
  --no-debug         no package of debug symbols
TEXT
}

fail() {
  echo "build.sh: $*" >&2
  exit 1
}

# Runs where the package is built: $1 is the source, $2 another version or nothing.
# shellcheck disable=SC2016  # for the shell there
build_script='set -e
. /etc/os-release
cd "$1"
sed -Ei "1s/\(([^)]*)\) [^;]*/(${2:-\1}+deb$VERSION_ID) $VERSION_CODENAME/" debian/changelog
PATH=/usr/lib/ccache:$PATH dpkg-buildpackage --build=binary --unsigned-changes'

build_here() {
  prepare_source "$place/source" "$version"
  SSDPULSE_BINARY=$binary bash -c "$build_script" build "$place/source" "$version"
  mv "$place"/ssdpulse*.* "$output/"
}

build_in_chroot() {
  prepare_source "$place/source" "$version"
  in_suite "$suite" build "$place" '' bash -c "$build_script" build /build/source "$version"
  in_root "$place/root" sh -c 'lintian --allow-root --fail-on error,warning --tag-display-limit 0 /build/*.changes'
  mv "$place/root"/build/ssdpulse*.* "$output/"
}

version='' suite='' binary='' options=()
while [[ ${1:-} == -* ]]; do
  case $1 in
    --suite) suite=$2; shift ;;
    --binary) binary=$(realpath "$2"); shift ;;
    --version) version=$2; shift ;;
    --no-debug) options+=(noautodbgsym) ;;
    -h | --help) usage; exit ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
[[ $# -eq 1 ]] || { usage >&2; exit 2; }
mkdir -p "$1"
output=$(cd "$1" && pwd)
DEB_BUILD_OPTIONS="${options[*]} parallel=$(nproc)"
export DEB_BUILD_OPTIONS

place=$(mktemp -d)
trap 'rm -rf --one-file-system "$place"' EXIT
if [[ -n $suite ]]; then build_in_chroot; else build_here; fi
ls -l "$output"
