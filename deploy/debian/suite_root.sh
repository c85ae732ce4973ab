#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How does this source tree get into a chroot of a Debian suite that has all it takes to build it? Sourced; needs root.

source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# prepare_source DIRECTORY [VERSION]: the tree in the form dpkg expects, with VERSION instead of its own if given.
prepare_source() {
  local directory=$1 version=${2:-} cmake_version needs
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
  echo unknown >"$directory/debian/revision"
  if [[ -e $source_root/.git ]]; then
    git -c "safe.directory=$source_root" -C "$source_root" describe --always --abbrev=12 --exclude='*' --dirty >"$directory/debian/revision"
  fi
}

# install_needs ROOT NEEDS
install_needs() {
  mkdir -p "$1/needs/debian"
  printf 'Source: needs\nBuild-Depends: %s\n\nPackage: needs\nArchitecture: any\n' "$2" >"$1/needs/debian/control"
  in_root "$1" apt-get -q -y install build-essential ccache lintian &&
    in_root "$1" apt-get -q -y build-dep /needs
  rm -r "$1/needs"
}

# in_suite SUITE KIND PLACE NEEDS COMMAND...: in the chroot PLACE/root, whose /build/source is PLACE/source, with NEEDS
# (as in a Build-Depends field) in addition to those of the source. KIND names the initial chroot, which is kept.
in_suite() {
  # shellcheck source=tests/lib/debian_root.sh
  source "$source_root/tests/lib/debian_root.sh"
  local suite=$1 kind=$2 place=$3 more=$4 ccache=$SSDPULSE_TEST_CACHE/ccache needs
  needs=$(sed -n 's/^Build-Depends: //p' "$place/source/debian/control")
  debian_root "$suite" "$kind" "$place/root" install_needs "$needs${more:+, $more}" || fail "no chroot of $suite"
  mkdir -p "$place/root/build" "$ccache"
  mv "$place/source" "$place/root/build/source"
  # What ccache needs to cache code compiled with precompiled headers.
  IN_ROOT_BIND=$ccache in_root "$place/root" env CCACHE_DIR=/bound ${CCACHE_RECACHE:+CCACHE_RECACHE=1} \
    CCACHE_SLOPPINESS=pch_defines,time_macros DEB_CXXFLAGS_APPEND=-fpch-preprocess \
    "DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS:-parallel=$(nproc)}" "${@:5}"
}
