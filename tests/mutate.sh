#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Would the tests notice? Applies the sabotages of tests/mutations one at a time to a copy of the tree, rebuilds, and
# runs the test that must fail. A sabotage is a file NAME.mutation of "key: value" lines:
#   what: what is broken                 tier: ci | long              file: the file that is edited
#   edit: a sed command (basic expressions) that changes exactly one line (may be repeated)
#   kill: the test that must notice, as tests/run.sh names it (unit.NAME, kernel.NAME, system.NAME), or one scenario of
#         the matrix of virtual machines: vm SCENARIO KERNEL
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'TEXT'
Usage: tests/mutate.sh [--ci | --all] [--control | --no-control | --list] [NAME]...
  --ci           the sabotages of the CI tier (default)
  --all          all of them
  --control      only show that the tests pass without sabotage
  --no-control   skip that (who runs sabotages one by one has shown it before)
  --list         print the names
Exit code: 0 all killed, 1 some survived, did not apply or did not build.
TEXT
}

tier=ci
mode=both
names=()
for argument in "$@"; do
  case $argument in
    --ci) tier=ci ;;
    --all) tier=all ;;
    --control | --no-control | --list) mode=${argument#--} ;;
    -h | --help) usage; exit ;;
    -*) usage >&2; exit 2 ;;
    *) names+=("$argument") ;;
  esac
done

copy=$PWD/build-tests/mutants
log=$PWD/build-tests/logs/mutant

# value NAME KEY: the values of a key, one a line.
value() { sed -n "s/^$2: *//p" "tests/mutations/$1.mutation"; }

if [[ ${#names[@]} -eq 0 ]]; then
  for file in tests/mutations/*.mutation; do
    name=$(basename "$file" .mutation)
    if [[ $tier == all || $(value "$name" tier) == "$tier" ]]; then names+=("$name"); fi
  done
fi
if [[ $mode == list ]]; then
  printf '%s\n' "${names[@]}"
  exit
fi
for name in "${names[@]}"; do
  [[ -n $(value "$name" what) && -n $(value "$name" file) && -n $(value "$name" edit) && -n $(value "$name" kill) ]] || {
    echo "not a complete sabotage: tests/mutations/$name.mutation" >&2
    exit 2
  }
done

# refresh_copy: brings the copy up to date with the tree. Its build stays; what changes gets a new time, so that the
# build sees it, whatever an interrupted run has left there.
refresh_copy() {
  local file
  mkdir -p "$copy"
  tests/lib/sources.sh >"$copy/.sources.new"
  while read -r file; do
    if ! cmp -s "$file" "$copy/$file"; then
      mkdir -p "$copy/$(dirname "$file")"
      cp "$file" "$copy/$file"
    fi
    if [[ -x $file ]]; then chmod +x "$copy/$file"; fi
  done <"$copy/.sources.new"
  # Links are no sources, but tests are found by them.
  git ls-files --stage | sed -n 's/^120000 [^\t]*\t//p' | while read -r file; do
    mkdir -p "$copy/$(dirname "$file")"
    ln -sfn "$(readlink "$file")" "$copy/$file"
  done
  if [[ -e $copy/.sources ]]; then
    comm -23 "$copy/.sources" "$copy/.sources.new" | (cd "$copy" && xargs -r -d '\n' rm -f)
  fi
  mv "$copy/.sources.new" "$copy/.sources"
}

# build TEST: what this test needs, in the copy. A unit test is a target of its own; the others need all but those.
build() {
  local target
  case $1 in
    unit.*) target=("${1#unit.}") ;;
    vm\ *) target=(ssdpulse) ;;
    *) target=(daemon/all deploy/all tests/kernel/all tests/system/all tests/bench/all) ;;
  esac
  SSDPULSE_WERROR=OFF "$copy/tests/lib/build.sh" gcc "${target[@]}"
}

run_killer() {
  if [[ $1 != vm\ * ]]; then
    "$copy/tests/run.sh" --no-build "$1"
    return
  fi
  local scenario kernel
  read -r _ scenario kernel <<<"$1"
  SSDPULSE_BINARY=build-tests/gcc/ssdpulse SSDPULSE_TEST_CACHE=${SSDPULSE_TEST_CACHE:-$PWD/build-tests/cache} \
    SSDPULSE_VM_RESULTS='' "$copy/tests/vm/run.sh" "$kernel" "$scenario" | tee "$copy/build-tests/logs/$1.log"
}

# verdict WORD NAME TEXT
verdict() { printf '%-9s %-44s %s\n' "$@"; }

control() {
  local name test bad=0
  for name in "${names[@]}"; do value "$name" kill; done | sort -u >"$copy/.killers"
  while read -r -u 3 test; do
    if build "$test" >"$log" 2>&1 && run_killer "$test" >>"$log" 2>&1; then
      verdict passes "$test" "without sabotage"
    else
      tail -n 30 "$log"
      verdict FAILS "$test" "without sabotage: it cannot prove anything"
      bad=1
    fi
  done 3<"$copy/.killers"
  return "$bad"
}

# sabotage NAME: true if the tests killed it.
sabotage() {
  local name=$1 file test edit code=0
  file=$(value "$name" file)
  test=$(value "$name" kill)
  while read -r edit; do
    sed "$edit" "$copy/$file" >"$copy/.edited"
    # A changed line is one on either side of the comparison, a deleted line one on the left.
    if [[ $(diff "$copy/$file" "$copy/.edited" | grep -c '^<') -ne 1 ]]; then
      verdict ERROR "$name" "does not change exactly one line of $file: $edit"
      return 1
    fi
    diff "$copy/$file" "$copy/.edited" | grep '^[<>]' || true
    cat "$copy/.edited" >"$copy/$file"
  done < <(value "$name" edit)
  if ! build "$test" >"$log" 2>&1; then
    tail -n 30 "$log"
    verdict ERROR "$name" "does not build"
    return 1
  fi
  run_killer "$test" >"$log" 2>&1 || code=$?
  case $code in
    0) verdict SURVIVED "$name" "$(value "$name" what)"; return 1 ;;
    1) verdict killed "$name" "$test: $(reason "$test")" ;;
    *) tail -n 30 "$log"; verdict ERROR "$name" "$test could not run"; return 1 ;;
  esac
}

# reason TEST: the first line in which a test says what is wrong.
reason() {
  grep -m 1 -hoE 'FAIL: .*|^ +FAIL .*|\[  FAILED  \] [^ ]+|[A-Za-z]*Error: .*|SIG[A-Z]+' \
    "$copy/build-tests/logs/$1.log" || echo "(see its output)"
}

survivors=0
mkdir -p "${log%/*}" "$copy/build-tests/logs"
trap refresh_copy EXIT
refresh_copy
if [[ $mode != no-control ]]; then
  control
fi
if [[ $mode != control ]]; then
  for name in "${names[@]}"; do
    sabotage "$name" || survivors=$((survivors + 1))
    refresh_copy
  done
  echo "$((${#names[@]} - survivors)) killed, $survivors not"
fi
[[ $survivors -eq 0 ]]
