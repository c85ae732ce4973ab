#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where do the kernels and the emulator come from? From Debian suites by apt, unpacked in the cache, never installed.
# Sourced.
# shellcheck disable=SC2034  # what is set here is read by run.sh

: "${vm_directory:?tests/vm}"

readonly QEMU_AT_LEAST=10.0 # its NVMe has FDP and the OCP log

# fetch_kernel NAME: sets KERNEL_IMAGE and KERNEL_VERSION, packs the kernel's modules, prints which kernel it is.
fetch_kernel() {
  local name=$1 suite meta packages tree image archive stamp
  read -r _ suite meta < <(grep "^$name " "$vm_directory/kernels")
  : "${SUITE_CACHE:=$SSDPULSE_TEST_CACHE/suites}"
  open_suite "$suite" || return 1
  # The meta package depends on the current kernel, in one package or split into several.
  mapfile -t packages < <(suite_apt "$suite" install --print-uris -y --no-install-recommends "$meta" |
    sed -nE "s/^'[^']*' (linux-(image|binary|modules)-[0-9][^_]*)_.*/\1/p")
  [[ ${#packages[@]} -gt 0 ]] || { echo "suite $suite has no $meta" >&2; return 1; }
  tree=$SSDPULSE_TEST_CACHE/vm/${packages[0]#linux-*-}
  fetch_from_suite "$suite" "${packages[@]}" "$tree" | sed -n "1s/^/$name: /p"
  image=$(find "$tree" -type f -name 'vmlinuz*' | head -n 1)
  KERNEL_VERSION=$(find "$tree/lib/modules" "$tree/usr/lib/modules" -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null |
    head -n 1) || true
  [[ -n $image && -n $KERNEL_VERSION ]] || { echo "no kernel in ${packages[*]}" >&2; return 1; }
  KERNEL_IMAGE=$image
  archive=$SSDPULSE_TEST_CACHE/vm/$KERNEL_VERSION.cpio
  stamp=$(modules_stamp)
  if [[ ! -e $archive || $(cat "$archive.stamp" 2>/dev/null) != "$stamp" ]]; then
    pack_modules "$tree" "$KERNEL_VERSION" "$archive" || return 1
    echo "$stamp" >"$archive.stamp"
  fi
}

# find_qemu: sets QEMU to a command: the host's own if it is new enough, else the one of Debian's backports with the
# libraries that the host lacks.
find_qemu() {
  local root=$SSDPULSE_TEST_CACHE/vm/qemu version codename archive uri keyring packages
  version=$(qemu-system-x86_64 --version 2>/dev/null | sed -nE '1s/.*version ([0-9]+\.[0-9]+).*/\1/p') || true
  if [[ -n $version ]] && printf '%s\n' "$QEMU_AT_LEAST" "$version" | sort --version-sort --check=quiet; then
    QEMU=(qemu-system-x86_64)
    return
  fi
  if [[ ! -e $root/complete ]]; then
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    archive=$(debian_archive) || return 1
    IFS='|' read -r uri keyring <<<"$archive"
    rm -rf "$root"
    mkdir -p "$root"/{state,lists/partial,cache/archives/partial}
    printf "deb ${keyring:+[signed-by=$keyring] }$uri %s main\n" "$codename" "$codename-backports" >"$root/sources.list"
    backports_apt "$root" update -o APT::Update::Error-Mode=any >"$root/log" 2>&1 || { tail "$root/log" >&2; return 1; }
    backports_apt "$root" install --download-only -y --no-install-recommends -t "$codename-backports" qemu-system-x86 \
      >>"$root/log" 2>&1 || { tail "$root/log" >&2; return 1; }
    packages=("$root"/cache/archives/*.deb)
    for package in "${packages[@]}"; do dpkg -x "$package" "$root/unpacked" || return 1; done
    rm -r "$root/cache" "$root/lists"
    touch "$root/complete"
  fi
  QEMU=(env "LD_LIBRARY_PATH=$root/unpacked/usr/lib/x86_64-linux-gnu" "$root/unpacked/usr/bin/qemu-system-x86_64"
    -L "$root/unpacked/usr/share/qemu" -L "$root/unpacked/usr/share/seabios")
}

# backports_apt ROOT ARG...: with the host's own list of installed packages, so that only what is missing is fetched.
backports_apt() {
  local root=$1
  shift
  apt-get -q -o "Dir::Etc::SourceList=$root/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::Etc::PreferencesParts=/dev/null -o "Dir::State::Lists=$root/lists" -o "Dir::Cache=$root/cache" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 "$@"
}
