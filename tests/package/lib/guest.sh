#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is a Debian guest made of? A root directory of the suite with systemd and what the package needs, the suite's own
# kernel, and the agent that obeys the host. Sourced.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
vm_directory=$here/vm
# shellcheck source=tests/lib/debian_root.sh
source "$here/lib/debian_root.sh"
# shellcheck source=tests/vm/lib/fetch.sh
source "$vm_directory/lib/fetch.sh"
# shellcheck source=tests/vm/lib/root.sh
source "$vm_directory/lib/root.sh"

# install_guest ROOT NEEDS: all that a guest needs from the archive, except the kernel; NEEDS as in a Depends field.
install_guest() {
  local root=$1 needs=$2
  in_root "$root" apt-get -q -y install systemd systemd-sysv udev python3-minimal curl nvme-cli bpftool e2fsprogs crun || return 1
  printf 'Package: needs\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: none\nDepends: %s\n' "$needs" \
    >"$root/control"
  mkdir -p "$root/needs/DEBIAN" && mv "$root/control" "$root/needs/DEBIAN/"
  in_root "$root" dpkg-deb -b /needs /needs.deb && in_root "$root" apt-get -q -y install /needs.deb &&
    in_root "$root" dpkg --force-depends --purge needs
  rm -r "$root/needs" "$root/needs.deb"
}

# make_guest SUITE KERNEL DIRECTORY PACKAGE...: makes DIRECTORY/root.img, with the packages in its /packages and the
# partition name that machine.py expects, and DIRECTORY/kernel; KERNEL as in tests/vm/kernels.
make_guest() {
  local suite=$1 kernel=$2 directory=$3 packages=("${@:4}") root=$3/root
  fetch_kernel "$kernel" || return 1
  debian_root "$suite" guest "$root" install_guest "$(dpkg-deb -f "${packages[0]}" Depends | sed 's/ ([^)]*)//g')" >"$directory/root.log" 2>&1 || {
    tail "$directory/root.log" >&2
    return 1
  }
  cp -a "${KERNEL_IMAGE%/boot/*}/lib/modules" "$root/usr/lib/" 2>/dev/null ||
    cp -a "${KERNEL_IMAGE%/boot/*}/usr/lib/modules" "$root/usr/lib/"
  install -D "$vm_directory/lib/obey" "$root/usr/local/lib/agent/obey"
  cc -O1 -Wall -Wextra -Werror -static "$here/package/lib/try_sandbox.c" -o "$root/usr/lib/try_sandbox"
  install -D -m 644 -t "$root/packages" "${packages[@]}"
  cat >"$root/etc/systemd/system/agent.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=idle
ExecStart=/usr/local/lib/agent/obey
Environment=HOME=/tmp DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
OOMScoreAdjust=-900
UNIT
  mkdir -p "$root/etc/systemd/system/default.target.wants"
  ln -s /etc/systemd/system/agent.service "$root/etc/systemd/system/default.target.wants/"
  # Of no use here, and slow.
  ln -s /dev/null "$root/etc/systemd/system/nvmf-autoconnect.service"
  echo guest >"$root/etc/hostname"
  : >"$root/etc/machine-id"
  truncate --size 2G "$directory/root.img"
  printf 'label-id: 0x73736470\nstart=2048\n' | sfdisk --quiet --label dos "$directory/root.img"
  mke2fs -q -t ext4 -d "$root" -E offset=$((2048 * 512)) "$directory/root.img" 2000M
  rm -rf --one-file-system "$root"
  cp "$KERNEL_IMAGE" "$directory/kernel"
}
