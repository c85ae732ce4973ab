#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which libraries go with a binary to hosts of other distributions? private_libraries.sh DIRECTORY BINARY HOST_LIBRARY...
# puts into DIRECTORY what the binary loads, and libcurl, which commands load at run time, except what every host has.
# They are Debian's own files, except the two that need a newer glibc than the others: these are relinked from Debian's
# archives of their objects, together with what they lack (arc4random.c).
set -euo pipefail
shopt -s inherit_errexit
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

directory=$1 binary=$2 of_host=("${@:3}")
multiarch=$(gcc -print-multiarch)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
mkdir -p "$directory"

# link_anew SONAME ARCHIVE VERSIONS OPTION...: with all the objects of the archive; VERSIONS is a linker's version script.
link_anew() {
  g++ -shared -nodefaultlibs "-Wl,-soname,$1" -Wl,-z,defs,-z,relro,-z,now,-O1 "-Wl,--version-script=$3" -o "$directory/$1" \
    -Wl,--whole-archive "$2" -Wl,--no-whole-archive "$work/arc4random.o" "${@:4}"
  strip --strip-unneeded "$directory/$1"
}

# versions LIBRARY PREFIX: a version script with the library's symbols whose version names begin with PREFIX.
versions() {
  objdump -T "$1" | awk -v prefix="$2" '
    NF > 6 && !/\*UND\*|\*ABS\*/ && index($(NF - 1), prefix) == 1 { names[$(NF - 1)] = names[$(NF - 1)] " " $NF ";" }
    END { for (version in names) print version " { global:" names[version] (done++ ? "" : " local: *;") " };" }'
}

{ ldd "$binary"; echo "libcurl.so.4 => /usr/lib/$multiarch/libcurl.so.4 "; ldd "/usr/lib/$multiarch/libcurl.so.4"; } |
  sed -nE 's|^\s*(\S+) => (/\S+) .*|\1 \2|p' | LC_ALL=C sort -u | while read -r name file; do
  [[ " ${of_host[*]} " == *" $name "* ]] || install -m 644 "$file" "$directory/$name"
done

gcc -O2 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -c "$here/arc4random.c" -o "$work/arc4random.o"
versions "$directory/libcrypt.so.1" XCRYPT_ >"$work/libcrypt.map"
link_anew libcrypt.so.1 "/usr/lib/$multiarch/libcrypt.a" "$work/libcrypt.map" -lc
# Some objects serve only programs from older compilers and are not in this archive; the static one has the few that
# others refer to.
pic=$(g++ -print-file-name=libstdc++_pic.a)
link_anew libstdc++.so.6 "$pic" "${pic%.a}.map" "$(g++ -print-file-name=libstdc++.a)" -lm -lc -lgcc_s -lgcc
