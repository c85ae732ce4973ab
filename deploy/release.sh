#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes all artefacts of a version; the same commit and the same packages always give the same bytes.
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=deploy/debian/suite_root.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian/suite_root.sh"

usage() {
  cat <<'TEXT'
Usage: deploy/release.sh VERSION [--output DIRECTORY] [--only KIND]... [--dirty]
  Makes the artefacts of VERSION: packages for Debian 12 and 13, an RPM and a tarball with libraries of their own, debug
  symbols of each, a list of what they hold (SPDX) and SHA256SUMS. As root, with debootstrap; an hour the first time.
  VERSION             must be that of CMakeLists.txt, deploy/debian/changelog and CHANGELOG.md
  --output DIRECTORY  where to put them, which must not be there yet (release-VERSION). It appears when all is done
  --only KIND         debian-12, debian-13, tarball or rpm; may be repeated
  --dirty             also from a tree with changes that are not committed; the binary says so (--version)
Compilers' results are kept in SSDPULSE_TEST_CACHE (~/.cache/ssdpulse) with what the chroots begin with; CCACHE_RECACHE=1
compiles everything from scratch.
TEXT
}

fail() {
  echo "release.sh: $*" >&2
  exit 1
}

wrong_use() {
  echo "release.sh: $*" >&2
  usage >&2
  exit 2
}

# check_version: every place that states the version states the same one.
check_version() {
  local in_cmake in_debian in_changelog
  in_cmake=$(sed -nE 's/^project\(ssdpulse VERSION ([0-9.]+).*/\1/p' "$source_root/CMakeLists.txt")
  in_debian=$(sed -nE '1s/.*\((.*)\).*/\1/p' "$source_root/deploy/debian/changelog")
  in_changelog=$(grep -m 1 '^## ' "$source_root/CHANGELOG.md")
  [[ $version == "$in_cmake" ]] || fail "not version $version: CMakeLists.txt has $in_cmake"
  [[ $version == "$in_debian" ]] || fail "not version $version: deploy/debian/changelog begins with $in_debian"
  [[ $in_changelog =~ ^"## $version ("[0-9]{4}-[0-9]{2}-[0-9]{2}")"$ ]] ||
    fail "CHANGELOG.md must begin with an entry '## $version (YYYY-MM-DD)' and has '$in_changelog'"
}

check_tree() {
  local changed="not a git repository: nobody could tell what this was made of"
  if [[ -e $source_root/.git ]]; then changed=$(git -c "safe.directory=$source_root" -C "$source_root" status --porcelain); fi
  [[ -n $changed ]] || return 0
  [[ $dirty == yes ]] || fail "the tree is not that of a commit (--dirty builds it all the same):"$'\n'"$(head -n 5 <<<"$changed")"
  echo "from a tree that is not that of a commit"
}

# step TITLE COMMAND...: its output goes to the log, whose end is shown if it fails. Bash ignores -e in there.
step() {
  local title=$1 began=$SECONDS
  shift
  printf '%-40s ' "$title ..."
  ("$@") >>"$log" 2>&1 </dev/null || {
    echo "failed"
    tail -n 25 "$log" >&2
    mv "$log" "$output.log"
    fail "'$title' failed; the whole log is $output.log"
  }
  echo "done in $((SECONDS - began)) s"
}

make_debian() {
  "$source_root/deploy/debian/build.sh" --suite "$1" "$work/$1" &&
    mv "$work/$1"/*.deb "$made/"
}

make_portable() {
  local place=$work/portable needs
  needs=$("$source_root/deploy/install-packages.sh" --list release | paste -sd ,)
  prepare_source "$place/source" &&
    in_suite bookworm release "$place" "${needs//,/, }" /build/source/deploy/release/portable.sh /build/made "$@" &&
    mv "$place/root/build/made"/* "$made/"
}

version='' output='' dirty=no only=()
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage; exit ;;
    --output) [[ $# -gt 1 ]] || wrong_use "--output takes a directory"; output=$2; shift ;;
    --only)
      [[ ${2:-} == @(debian-12|debian-13|tarball|rpm) ]] || wrong_use "--only takes debian-12, debian-13, tarball or rpm"
      only+=("$2"); shift ;;
    --dirty) dirty=yes ;;
    -*) wrong_use "unknown option $1" ;;
    *) [[ -z $version ]] || wrong_use "one version, not $version and $1"; version=$1 ;;
  esac
  shift
done
[[ -n $version ]] || wrong_use "which version?"
check_version
check_tree
output=$(realpath -m "${output:-release-$version}")
[[ ! -e $output ]] || fail "$output is there already"
[[ $EUID -eq 0 ]] || fail "must run as root: it builds in chroots"
command -v debootstrap >/dev/null || fail "needs debootstrap (apt install debootstrap)"
[[ ${#only[@]} -gt 0 ]] || only=(debian-12 debian-13 tarball rpm)

mkdir -p "${output%/*}"
work=$(mktemp -d "$output.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
made=$work/made log=$work/log portable=()
mkdir "$made"
echo "the log is $log"
for kind in "${only[@]}"; do
  case $kind in
    debian-12) step "packages for Debian 12" make_debian bookworm ;;
    debian-13) step "packages for Debian 13" make_debian trixie ;;
    *) portable+=("$kind") ;;
  esac
done
[[ ${#portable[@]} -eq 0 ]] || step "for other hosts: ${portable[*]}" make_portable "${portable[@]}"
(cd "$made" && sha256sum -- * >SHA256SUMS)
chmod 755 "$made"
mv "$made" "$output"
ls -l "$output"
