#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How does a test get a program as another Debian suite ships it? Packages are downloaded and unpacked, never installed,
# through an apt root of their own; the archive's address and its keys are those of this machine's own apt sources.

# debian_archive: "URI|KEYRING" of the main archive in this machine's apt sources (KEYRING may be empty).
# apt itself reads its sources, so both file formats are understood; only Signed-By has to be looked up in the file.
debian_archive() {
  local codename uri entry file number keyring
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
  IFS='|' read -r uri entry < <(
    # shellcheck disable=SC2016  # the fields are apt's, not the shell's
    apt-get indextargets --format '$(RELEASE)|$(REPO_URI)|$(SOURCESENTRY)' 'Identifier: Packages' 'Component: main' |
      sed -nE "s/^($codename|stable|oldstable|testing|unstable|sid)\|//p"
  ) || {
    echo "the apt sources of this machine name no Debian archive with suite $codename" >&2
    return 1
  }
  file=${entry%:*} number=${entry##*:}
  case $file in
    *.sources)
      keyring=$(sed '/^#/d' "$file" | awk -v RS= -v number="$number" 'NR == number' |
        sed -nE 's/^signed-by:[[:space:]]*(\/[^[:space:]]+).*/\1/Ip')
      ;;
    *) keyring=$(sed -n "${number}p" "$file" | sed -nE 's/.*signed-by=(\/[^] ]+).*/\1/p') ;;
  esac
  echo "$uri|${keyring:-}"
}

# suite_apt SUITE ARG...: apt-get on this suite's private root, once any other has finished: it does not wait by itself.
suite_apt() {
  local root=$SUITE_CACHE/$1
  shift
  flock "$root/apt.lock" apt-get -q -o "Dir::Etc::SourceList=$root/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::Etc::PreferencesParts=/dev/null -o "Dir::State=$root/state" -o "Dir::State::Lists=$root/lists" \
    -o "Dir::State::status=$root/status" -o "Dir::Cache=$root/cache" -o APT::Sandbox::User="$(id -un)" \
    -o Acquire::Retries=3 "$@"
}

# open_suite SUITE: makes the private root, and refreshes its lists when they are older than a day.
open_suite() {
  local suite=$1 root=$SUITE_CACHE/$1 archive uri keyring
  mkdir -p "$root"/{state,lists/partial,cache/archives/partial,debs}
  : >>"$root/status"
  if [[ -n $(find "$root/updated" -mtime -1 2>/dev/null) ]]; then return; fi
  archive=$(debian_archive) || return 1
  IFS='|' read -r uri keyring <<<"$archive"
  echo "deb ${keyring:+[signed-by=$keyring] }$uri $suite main" >"$root/sources.list"
  if suite_apt "$suite" update -o APT::Update::Error-Mode=any >"$root/update.log" 2>&1; then
    touch "$root/updated"
  elif [[ ! -e $root/updated ]]; then
    tail -n 5 "$root/update.log" >&2
    return 1
  fi
}

# fetch_from_suite SUITE PACKAGE... DESTDIR: unpacks the packages (not what they depend on) under DESTDIR and prints
# "package version suite" for each. Downloads are kept; a package that is already unpacked there is left alone.
fetch_from_suite() {
  local suite=$1 destination=${!#} packages=("${@:2:$#-2}") answer uri file size hash deb name version lock
  : "${SUITE_CACHE:=${SSDPULSE_TEST_CACHE:-$HOME/.cache/ssdpulse}/suites}"
  # Tests that run side by side share the cache: one at a time downloads and unpacks.
  mkdir -p "$SUITE_CACHE/$suite"
  exec {lock}>"$SUITE_CACHE/$suite/fetch.lock"
  flock "$lock"
  open_suite "$suite" || return 1
  mkdir -p "$destination"
  # To find packages, apt reads the whole list of the suite: once for each list.
  answer=$SUITE_CACHE/$suite/uris/$(IFS=,; echo "${packages[*]}")
  if [[ ! $answer -nt $SUITE_CACHE/$suite/updated ]]; then
    mkdir -p "${answer%/*}"
    suite_apt "$suite" download --print-uris "${packages[@]}" >"$answer.new" && mv "$answer.new" "$answer" || return 1
  fi
  while read -r uri file size hash; do
    deb=$SUITE_CACHE/$suite/debs/$file
    if [[ $(stat -c %s "$deb" 2>/dev/null) != "$size" ]]; then
      name=${file%%_*}
      (cd "${deb%/*}" && suite_apt "$suite" download "$name") >"$SUITE_CACHE/$suite/download.log" 2>&1 || {
        echo "cannot download $name ($uri, $hash)" >&2
        tail -n 3 "$SUITE_CACHE/$suite/download.log" >&2
        return 1
      }
    fi
    if [[ ! -e $destination/.unpacked-$file ]]; then
      dpkg -x "$deb" "$destination" || return 1
      touch "$destination/.unpacked-$file"
    fi
    name=$(dpkg-deb -f "$deb" Package) version=$(dpkg-deb -f "$deb" Version)
    echo "$name $version $suite"
  done <"$answer"
  exec {lock}>&-
}
