#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian package from this source tree: in a chroot of a suite, or on this machine for its own suite.
set -euo pipefail
shopt -s inherit_errexit
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

usage() {
  cat <<'TEXT'
Usage: deploy/debian/build.sh [--suite SUITE | --binary FILE] [--version VERSION] [--no-debug] OUTPUT
  Builds the package and puts it into the directory OUTPUT. Its version is that of CMakeLists.txt with the release of
  Debian (0.1.0+deb12), so that an upgrade of Debian upgrades it, too.
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

# prepare_source DIRECTORY: the tree as dpkg wants it.
prepare_source() {
  local directory=$1 cmake_version needs
  mkdir -p "$directory"
  (cd "$source_root" && tests/lib/sources.sh | grep -v '^tests/' | tar -cf - -T -) | tar -xf - -C "$directory"
  mv "$directory/deploy/debian" "$directory/debian"
  cmake_version=$(sed -nE 's/^project\(ssdpulse VERSION ([0-9.]+).*/\1/p' "$directory/CMakeLists.txt")
  if [[ $(sed -nE '1s/.*\((.*)\).*/\1/p' "$directory/debian/changelog") != "$cmake_version" ]]; then
    fail "deploy/debian/changelog does not begin with version $cmake_version of CMakeLists.txt"
  fi
  if [[ -n $version ]]; then
    sed -Ei "s/^(project\(ssdpulse VERSION )[0-9.]+/\1$version/" "$directory/CMakeLists.txt"
  fi
  # git is only needed for the revision, which is passed here.
  needs=$("$source_root/deploy/install-packages.sh" --list build | grep -vx git | paste -sd ,)
  sed -i "s/@BUILD_NEEDS@/${needs//,/, }/" "$directory/debian/control"
  git -c "safe.directory=$source_root" -C "$source_root" rev-parse --short=12 HEAD >"$directory/debian/revision" \
    2>/dev/null || echo unknown >"$directory/debian/revision"
}

# What is done where it is built: $1 is the source, $2 another version or nothing.
# shellcheck disable=SC2016  # for the shell there
build_script='set -e
. /etc/os-release
cd "$1"
sed -Ei "1s/\(([^)]*)\) [^;]*/(${2:-\1}+deb$VERSION_ID) $VERSION_CODENAME/" debian/changelog
PATH=/usr/lib/ccache:$PATH dpkg-buildpackage --build=binary --unsigned-changes'

# install_needs ROOT NEEDS
install_needs() {
  mkdir -p "$1/needs/debian"
  printf 'Source: needs\nBuild-Depends: %s\n\nPackage: needs\nArchitecture: any\n' "$2" >"$1/needs/debian/control"
  in_root "$1" apt-get -q -y install build-essential ccache lintian &&
    in_root "$1" apt-get -q -y build-dep /needs
  rm -r "$1/needs"
}

build_here() {
  prepare_source "$place/source"
  SSDPULSE_BINARY=$binary bash -c "$build_script" build "$place/source" "$version"
  mv "$place"/ssdpulse*.* "$output/"
}

build_in_chroot() {
  # shellcheck source=tests/lib/debian_root.sh
  source "$source_root/tests/lib/debian_root.sh"
  local ccache=$SSDPULSE_TEST_CACHE/ccache needs
  prepare_source "$place/source"
  needs=$(sed -n 's/^Build-Depends: //p' "$place/source/debian/control")
  debian_root "$suite" build "$place/root" install_needs "$needs" || fail "no chroot of $suite"
  mkdir -p "$place/root/build" "$ccache"
  mv "$place/source" "$place/root/build/source"
  IN_ROOT_BIND=$ccache in_root "$place/root" env CCACHE_DIR=/bound "DEB_BUILD_OPTIONS=$DEB_BUILD_OPTIONS" \
    bash -c "$build_script" build /build/source "$version"
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
