#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Are the Debian packages of these sections of deploy/packages installed? Installs what is missing and nothing else;
# when nothing is missing, apt is not even called.
set -euo pipefail
shopt -s inherit_errexit

usage() {
  cat <<'TEXT'
Usage: deploy/install-packages.sh [--list] SECTION...
  Installs what is missing of the given sections of deploy/packages (build, release, database, test).
  --list   only print the needs of the sections, one a line
TEXT
}

# needs SECTION...: the lines of these sections.
needs() {
  awk -v wanted=" $* " '
    /^[[:space:]]*(#|$)/ { next }
    /^\[.*\]$/ { section = substr($0, 2, length($0) - 2); seen[section] = 1; next }
    index(wanted, " " section " ") { print }
    END {
      count = split(wanted, names, " ")
      for (i = 1; i <= count; i++)
        if (!(names[i] in seen)) { print "no section [" names[i] "] in deploy/packages" > "/dev/stderr"; exit 2 }
    }' "$(dirname "${BASH_SOURCE[0]}")/packages"
}

# alternatives NEED: one name per line.
alternatives() { tr '|' '\n' <<<"$1" | tr -d ' '; }

# missing SECTION...: the needs for which no alternative is installed.
missing() {
  local need name installed lines
  lines=$(needs "$@")
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p')
  while read -r need; do
    for name in $(alternatives "$need"); do
      grep -qxF "$name" <<<"$installed" && continue 2
    done
    echo "$need"
  done <<<"$lines"
}

# first_offered NEED: the first alternative that the machine's apt sources offer.
first_offered() {
  local name
  for name in $(alternatives "$1"); do
    if [[ $(apt-cache policy "$name") =~ Candidate:\ [^\(] ]]; then
      echo "$name"
      return
    fi
  done
  echo "none of these is in the apt sources of this machine: $1" >&2
  return 1
}

main() {
  case ${1:-} in
    '' | -h | --help) usage; return ;;
    --list) shift; needs "$@"; return ;;
  esac
  local need lines names=()
  lines=$(missing "$@")
  [[ -n $lines ]] || return 0
  if [[ $EUID -ne 0 ]]; then
    echo "missing packages, and only root can install them: ${lines//$'\n'/, }" >&2
    return 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q update
  while read -r need; do names+=("$(first_offered "$need")"); done <<<"$lines"
  echo "installing: ${names[*]}"
  apt-get -q install --yes --no-install-recommends -o DPkg::Lock::Timeout=300 "${names[@]}"
}

main "$@"
