#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What deploy/release.sh does without building anything: what it refuses, the list of what is in a binary, and the check of
# what binaries need from a host. test_release makes all artefacts, in the long tier.
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=tests/lib/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/check.sh"
require_root
cd "$SSDPULSE_TEST_STATE"
version=$(sed -nE 's/^project\(ssdpulse VERSION ([0-9.]+).*/\1/p' "$SSDPULSE_SOURCE/CMakeLists.txt")
parts=$SSDPULSE_SOURCE/deploy/release

# A repository of the same files, to be damaged.
(cd "$SSDPULSE_SOURCE" && tests/lib/sources.sh | tar -cf - -T -) | { mkdir tree && tar -xf - -C tree; }
# Nothing is built in it, whatever release.sh accepts.
# shellcheck disable=SC2016  # the words of that file
sed -i 's/debian_root "\$suite"/false "$suite"/' tree/deploy/debian/suite_root.sh
git init -q tree
commit() { git -C tree add -A && git -C tree -c user.name=test -c user.email=test@invalid commit -q -m test; }
commit

# refused STATUS WORDS ARGUMENT...: release.sh exits with the status, prints the words, and has made nothing.
refused() {
  local status=0 words
  words=$(tree/deploy/release.sh "${@:3}" 2>&1) || status=$?
  [[ $words == *"$2"* ]] || fail "release.sh ${*:3}: does not say '$2' but: $words"
  expect_equal "status of release.sh ${*:3}" "$1" "$status"
  [[ -z $(find . -maxdepth 1 -name 'out*') ]] || fail "release.sh ${*:3} leaves something behind"
}
words=$(tree/deploy/release.sh --help)
[[ $words == "Usage: deploy/release.sh VERSION"* ]] || fail "--help says: $words"
refused 2 "which version?"
refused 2 "one version, not 1 and 2" 1 2
refused 2 "unknown option --dri" "$version" --dri
refused 2 "--only takes" "$version" --only deb
refused 2 "--output takes" "$version" --output
refused 1 "not version 99.0.0: CMakeLists.txt has $version" 99.0.0 --output out
: >"tree/new"
refused 1 "?? new" "$version" --output out
rm tree/new
mkdir there
refused 1 "$PWD/there is there already" "$version" --output there
sed -i "1s/($version)/(0.0.1)/" tree/deploy/debian/changelog && commit
refused 1 "deploy/debian/changelog begins with 0.0.1" "$version" --output out
sed -i "1s/(0.0.1)/($version)/" tree/deploy/debian/changelog
sed -i "s/^## $version (.*/## Unreleased ($version)/" tree/CHANGELOG.md && commit
refused 1 "CHANGELOG.md must begin with an entry '## $version (YYYY-MM-DD)'" "$version" --output out
rm -rf tree/.git  # whatever repository this is in
sed -i "s/^## Unreleased .*/## $version (2026-01-01)/" tree/CHANGELOG.md
refused 1 "not a git repository" "$version" --output out
# A step that fails, here for lack of a chroot, leaves its log and nothing else.
if tree/deploy/release.sh "$version" --dirty --only tarball --output out >words 2>&1; then fail "a chroot that is not made is no failure"; fi
grep -qF "'for other hosts: tarball' failed; the whole log is $PWD/out.log" words || fail "a step fails, and it says: $(cat words)"
expect_equal "what a failed step leaves" out.log "$(find . -maxdepth 1 -name 'out*' -printf '%P')"
echo "ok what is refused, and what a failure leaves"

# The list. The loader reports what is loaded, and each package's own list of files which package that is from.
"$parts/libraries.sh" "$SSDPULSE_BINARY" "$SSDPULSE_BUILD" >libraries
"$parts/sbom.py" "$version" abc 86400 libc6 <libraries >sbom.json
listed=$(jq -r '.packages[].name' sbom.json)
[[ $(LD_TRACE_LOADED_OBJECTS=1 "$SSDPULSE_BINARY") =~ libstdc ]] || fail "the loader says nothing"
# shellcheck disable=SC2086  # several names
{ dpkg -L $listed 2>&1 || true; } | sort -u >files
while read -r file; do
  grep -qxF -e "$file" -e "/usr$file" files || fail "the list has no package with $file"
done < <(LD_TRACE_LOADED_OBJECTS=1 "$SSDPULSE_BINARY" | sed -nE 's|.*=> (/\S+) .*|\1|p')
for name in libcurl4 nlohmann-json3-dev libexpected-dev; do
  grep -qx "$name" <<<"$listed" || fail "the list does not have $name"
done
relation() { jq -r --arg name "SPDXRef-$1" '.relationships[] | select(.relatedSpdxElement == $name) | .relationshipType' sbom.json; }
expect_equal "relation to header libraries" STATIC_LINK "$(relation nlohmann-json3-dev)"
expect_equal "relation to libsqlite3-0" DYNAMIC_LINK "$(relation libsqlite3-0)"
expect_equal "relation to libc6" DEPENDS_ON "$(relation libc6)"
jq -e --arg version "$version" '
  .spdxVersion == "SPDX-2.3" and .creationInfo.created == "1970-01-02T00:00:00Z" and
  (.packages[0] | .name == "ssdpulse" and .versionInfo == $version) and
  ([.packages[].SPDXID] | length > 50 and length == (unique | length)) and
  ([.packages[].SPDXID, "SPDXRef-DOCUMENT"] as $known | .relationships | all(
     (.spdxElementId | IN($known[])) and (.relatedSpdxElement | IN($known[])))) and
  (.packages[1:] | all(.externalRefs[0].referenceLocator | test("^pkg:deb/debian/[a-z0-9.%B+-]+@[^@/]+$")))' sbom.json >/dev/null ||
  fail "the list is not as SPDX wants it"
if "$parts/sbom.py" 1 abc 0 </dev/null >/dev/null 2>&1; then fail "an empty list is taken"; fi
echo "ok $(wc -l <<<"$listed") packages in the list"

# The check of what is needed from a host. Both symbols are from glibc 2.36.
mkdir host
echo 'int arc4random(void); int pull(void) { return arc4random(); }' | cc -shared -fPIC -Wl,-soname,libpull.so -x c - -o host/libpull.so
echo 'int pull(void); int main(void) { return pull(); }' | cc -x c - -o host/pull -Lhost -lpull
accepts() { "$parts/check_elf.py" host "$1" libc.so.6 >table 2>flaws; }
accepts 2.36 || fail "what is complete is not accepted: $(cat flaws)"
expect_equal "table" $'libpull.so\tGLIBC_2.36\tlibc.so.6' "$(grep ^libpull table)"
accepts 2.35 && fail "a newer glibc is accepted"
grep -q 'host/libpull.so: asks for GLIBC_2.36, newer than 2.35' flaws || fail "the check says: $(cat flaws)"
rm host/libpull.so
accepts 2.36 && fail "a library that is not there is accepted"
grep -q 'needs libpull.so, which is not in the package' flaws || fail "the check says: $(cat flaws)"
echo "ok what is taken from a host"

cat >random.c <<'C'
#include <stddef.h>
#include <stdint.h>
#include <string.h>
void arc4random_buf(void *, size_t);
uint32_t arc4random(void);
int main(void) {
  static unsigned char buffer[1002], zero[1002];  /* a byte around what is filled, of more than one getentropy */
  arc4random_buf(buffer + 1, 1000);
  for (int at = 1; at < 985; at += 16) if (!memcmp(buffer + at, zero, 16)) return 1;
  return buffer[0] || buffer[1001] || arc4random() == arc4random();
}
C
cc random.c "$parts/arc4random.c" -o random
./random || fail "arc4random.c does not give random bytes, and those alone"
