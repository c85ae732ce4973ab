#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How does one get the root directory of a Debian suite, to build or to boot in? With debootstrap, from the archive of
# this machine's own apt sources; the results are kept as archives in the cache. Sourced; needs root.

# shellcheck source=tests/lib/debian_suite.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian_suite.sh"

: "${SSDPULSE_TEST_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/ssdpulse}"

# in_root ROOT COMMAND...: runs in its own mount and process namespaces, so that nothing is left when it has ended.
# IN_ROOT_BIND=DIRECTORY makes a directory of this machine visible as /bound.
in_root() {
  # shellcheck disable=SC2016  # for the inner shell
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    "BIND=${IN_ROOT_BIND:-}" unshare --mount --pid --fork --kill-child sh -c '
      mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/run" || exit
      if [ -n "$BIND" ]; then mkdir -p "$0/bound" && mount --bind "$BIND" "$0/bound" || exit; fi
      exec chroot "$0" "$@"' "$@"
}

# debian_root SUITE KIND DIRECTORY MAKE...: fills the directory. The function MAKE (arguments: the directory, then what
# follows) changes a fresh suite once, and the result is kept as KIND, for a week because of security updates.
debian_root() {
  local suite=$1 kind=$2 directory=$3 archive
  shift 3
  archive=$SSDPULSE_TEST_CACHE/roots/$suite-$kind-$(printf '%s\n' "$(declare -f "$1")" "$@" | sha256sum | cut -c 1-12).tar
  mkdir -p "${archive%/*}" "$directory"
  if [[ -z $(find "$archive" -mtime -7 2>/dev/null) ]]; then
    rm -f "${archive%-*}"-*.tar
    debootstrap_into "$suite" "$directory" || return 1
    in_root "$directory" apt-get -q update || return 1
    "$1" "$directory" "${@:2}" || return 1
    in_root "$directory" apt-get clean
    tar --one-file-system -cf "$archive.new" -C "$directory" . && mv "$archive.new" "$archive"
  else
    tar -xf "$archive" -C "$directory"
  fi
}

# debootstrap_into SUITE DIRECTORY
debootstrap_into() {
  local archive uri keyring
  archive=$(debian_archive) || return 1
  IFS='|' read -r uri keyring <<<"$archive"
  debootstrap --variant=minbase ${keyring:+"--keyring=$keyring"} "$1" "$2" "$uri" || {
    tail -n 5 "$2/debootstrap/debootstrap.log" >&2
    return 1
  }
  cp /etc/resolv.conf /etc/hosts "$2/etc/"
  cat >"$2/etc/dpkg/dpkg.cfg.d/small" <<'TEXT'
path-exclude=/usr/share/locale/*
force-unsafe-io
TEXT
  echo 'APT::Install-Recommends "false"; Acquire::Languages "none"; Acquire::Retries "3";' >"$2/etc/apt/apt.conf.d/small"
}
