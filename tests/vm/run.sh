#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does the daemon work on other kernels, with NVMe drives? Boots Debian's kernels in QEMU and runs scenarios in them.
set -euo pipefail
shopt -s inherit_errexit
vm_directory=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$vm_directory/../.."

usage() {
  cat <<'TEXT'
Usage: tests/vm/run.sh [OPTION...] [KERNEL...] [SCENARIO...]     all of those not named
  --list       what there is
  --long       the long form of the scenarios
  --part NAME  of the long form, the scenarios that say PART = NAME (else those that say none)
  --list-long  the runs that the long form is divided into: NAME ARGUMENTS
  --jobs N     guests at a time (4: they mostly wait, but boot on CPUs that are emulated)
  --keep       keep what a guest left behind also where its scenario passed
Kernels are listed in tests/vm/kernels; a scenario is a file in tests/vm/scenarios. The daemon is SSDPULSE_BINARY
(build/ssdpulse). Kernels and an emulator are downloaded by apt into SSDPULSE_TEST_CACHE (build-tests/cache), 200 MB the
first time; nothing is installed. What the guests leave is in SSDPULSE_VM_RESULTS (build-tests/vm).
SSDPULSE_VM_ACCELERATOR=kvm asks for KVM; the default is QEMU's own emulation, which is the same everywhere.
TEXT
}

options=() kernels=() scenarios=() list='' part=''
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage; exit ;;
    --list) list=1 ;;
    --list-long) list=long ;;
    --long | --keep) options+=("$1") ;;
    --part) part=$2; options+=(--part "$2"); shift ;;
    --jobs) options+=(--jobs "$2"); shift ;;
    -*) usage >&2; exit 2 ;;
    *)
      if grep -q "^$1 " "$vm_directory/kernels"; then
        kernels+=("$1")
      elif [[ -e $vm_directory/scenarios/$1.py ]]; then
        scenarios+=("$1")
      else
        echo "no kernel and no scenario: $1" >&2
        exit 2
      fi ;;
  esac
  shift
done
if [[ ${#kernels[@]} -gt 0 || ${#scenarios[@]} -gt 0 || -n $part ]]; then options+=(--whole); fi
if [[ ${#scenarios[@]} -gt 0 ]]; then options+=(--named); fi
if [[ ${#kernels[@]} -eq 0 ]]; then mapfile -t kernels < <(sed -nE 's/^([^# ]+) .*/\1/p' "$vm_directory/kernels"); fi
if [[ ${#scenarios[@]} -eq 0 ]]; then
  for file in "$vm_directory"/scenarios/*.py; do scenarios+=("$(basename "$file" .py)"); done
fi
if [[ $list == long ]]; then
  printf '%s\n' "${kernels[@]}" | sed 's/.*/& &/'
  sed -nE 's/^PART = "([^"]+)".*/\1 --part \1/p' "$vm_directory"/scenarios/*.py | sort -u
  exit
fi
if [[ -n $list ]]; then
  echo "kernels:"
  grep -v '^#' "$vm_directory/kernels" | column -t | sed 's/^/  /'
  echo "scenarios:"
  for name in "${scenarios[@]}"; do
    sed -nE "2s/^\"\"\"(.*[^\"]).*/  $(printf '%-12s' "$name") \1/p" "$vm_directory/scenarios/$name.py"
  done
  exit
fi

work=$PWD/build-tests
export SSDPULSE_TEST_CACHE=${SSDPULSE_TEST_CACHE:-$work/cache}
export SSDPULSE_BINARY=${SSDPULSE_BINARY:-build/ssdpulse}
[[ -x $SSDPULSE_BINARY ]] || { echo "no daemon: $SSDPULSE_BINARY (set SSDPULSE_BINARY)" >&2; exit 1; }

# shellcheck source=tests/lib/debian_suite.sh
source tests/lib/debian_suite.sh
# shellcheck source=tests/vm/lib/fetch.sh
source "$vm_directory/lib/fetch.sh"
# shellcheck source=tests/vm/lib/root.sh
source "$vm_directory/lib/root.sh"

results=${SSDPULSE_VM_RESULTS:-$work/vm}
images=$SSDPULSE_TEST_CACHE/vm
mkdir -p "$results" "$images"
exec 8>"$results/lock"
flock --nonblock 8 || { echo "another run of the virtual machines is under way in $results" >&2; exit 1; }

# again COMMAND...: retries, as archives are occasionally unreachable or in the middle of an update.
again() {
  local pause
  for pause in 5 20 60; do
    if "$@"; then return; fi
    echo "again in $pause s: $*" >&2
    sleep "$pause"
  done
  "$@"
}

export PYTHONDONTWRITEBYTECODE=1
matrix=(python3 "$vm_directory/lib/matrix.py" "${options[@]}" --results "$results" --scenarios "${scenarios[@]}")
# Nothing is fetched and packed for a kernel that no scenario of this form is for. If there is none, the matrix says so.
mapfile -t needed < <("${matrix[@]}" --kernels "${kernels[@]}" --needed)
[[ ${#needed[@]} -eq 0 ]] || kernels=("${needed[@]}")

[[ -e $images/qemu/complete ]] || echo "fetching into $SSDPULSE_TEST_CACHE: an emulator (if need be), then the kernels"
again find_qemu
"${QEMU[@]}" --version | head -n 1
pack_tools "$SSDPULSE_BINARY" "$results/tools.cpio"
for kernel in "${kernels[@]}"; do
  again fetch_kernel "$kernel"
  cat "$results/tools.cpio" "$images/$KERNEL_VERSION.cpio" >"$results/$kernel.initrd.new"
  mv "$results/$kernel.initrd.new" "$results/$kernel.initrd"
  ln -sfn "$KERNEL_IMAGE" "$results/$kernel.kernel"
done
QEMU_COMMAND="${QEMU[*]}" exec "${matrix[@]}" --kernels "${kernels[@]}" 8>&-
