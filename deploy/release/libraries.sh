#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whose code is in a binary, or loaded with it? libraries.sh BINARY [BUILD] prints one tab-separated line for each
# library and Debian package: how, package, version, source package, its version, file. How is `shared` (needed by the
# binary, or by libcurl, which is loaded when a command queries a daemon) or `headers` (compiled in: BUILD is the build
# directory, whose ninja knows every header).
set -euo pipefail
shopt -s inherit_errexit

# loaded FILE...: the files that the loader loads along with these.
loaded() { ldd "$@" | sed -nE 's|^.* => (/\S+) .*|\1|p' | LC_ALL=C sort -u; }

# owners: reads files and prints package, tab, file. Debian's database lists many in /lib that are really in /usr/lib.
owners() {
  local files
  files=$(cat)
  { sed 'p; s|^/usr/lib|/lib|; t; d' <<<"$files"; } | LC_ALL=C sort -u |
    xargs dpkg-query --search 2>/dev/null | sed -nE 's/^([^:, ]+)[^ ]*: (.*)/\1\t\2/p' || true
}

# described HOW: reads package, tab, file.
described() {
  local package file
  while IFS=$'\t' read -r package file; do
    # shellcheck disable=SC2016  # dpkg's fields
    dpkg-query -W -f "$1\\t\${Package}\\t\${Version}\\t\${source:Package}\\t\${source:Version}\\t$file\\n" "$package" | head -n 1
  done
}

binary=$1 build=${2:-}
curl=/usr/lib/$(gcc -print-multiarch)/libcurl.so.4
{ loaded "$binary" "$curl"; echo "$curl"; } | xargs realpath | owners | described shared
if [[ -n $build ]]; then
  ninja -C "$build" -t deps 2>/dev/null | sed -nE 's|^ +(/usr/\S+)$|\1|p' | LC_ALL=C sort -u | owners | LC_ALL=C sort -u -t $'\t' -k 1,1 |
    cut -f 1 | sed 's/$/\t-/' | described headers
fi
