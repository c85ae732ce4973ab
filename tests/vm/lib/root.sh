#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is the guest's root made of? Two archives that the kernel unpacks over one another: the daemon and the tools of
# this host with their libraries (the same for every kernel), and one kernel's modules. Sourced.

: "${vm_directory:?tests/vm}"

# Guests get these when their kernel has them as modules; "late" ones only when a scenario asks.
readonly MODULES_EARLY=(nvme virtio_blk)
readonly MODULES_LATE=(null_blk brd nd_e820 nd_pmem scsi_debug virtio_scsi sd_mod loop xfs ext4 crc32c_generic crc32c_intel virtio_net nvme-tcp dm_mod
  dm-delay dm-multipath dm-round-robin dm-thin-pool dm-snapshot dm-cache dm-cache-smq dm-crypt dm-flakey crypto_null ecb xts algif_skcipher raid0
  raid1 raid10 raid456 bcache nbd mq-deadline btrfs overlay dm-integrity)
readonly GUEST_TOOLS=(dash curl fio nvme xfs_io mkfs.xfs mkfs.btrfs mke2fs fsfreeze fstrim blkdiscard blockdev losetup kmod
  bpftool dmsetup cryptsetup sfdisk addpart mdadm lvm chrt taskset setpriv)

# pack DIRECTORY ARCHIVE: uncompressed, because the guest unpacks it at an emulator's speed.
pack() {
  (cd "$1" && find . -mindepth 1 | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) >"$2.new.$$"
  mv "$2.new.$$" "$2"
}

# with_libraries PROGRAM: the program and every file that the dynamic linker opens for it.
with_libraries() {
  echo "$1"
  { ldd "$1" 2>/dev/null || true; } | sed -nE 's/.*(=> |^[[:space:]]+)(\/[^ ]+) \(0x.*/\2/p'
}

# pack_tools BINARY ARCHIVE: the daemon, the library that makes libbpf report the verifier's figures, the tools.
pack_tools() {
  local binary=$1 archive=$2 root tool path file
  root=$(mktemp -d "$archive.XXXXXX")
  mkdir -p "$root"/{bin,sbin,lib64,usr/{bin,sbin,lib}}
  cp "$(command -v busybox)" "$root/bin/busybox"
  install "$vm_directory/lib/init" "$vm_directory/lib/obey" "$root/"
  install -s "$binary" "$root/usr/bin/ssdpulse"
  cc -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -shared -fPIC "$vm_directory/lib/verifier_stats.c" -lbpf \
    -o "$root/usr/lib/libverifier_stats.so"
  cc -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -shared -fPIC "$vm_directory/lib/fast_clock.c" -o "$root/usr/lib/libfast_clock.so"
  for tool in tagged_write reader_fuzz; do
    cc -O1 -Wall -Wextra -Werror "$vm_directory/lib/$tool.c" -o "$root/usr/sbin/$tool"
  done
  for tool in "${GUEST_TOOLS[@]}"; do
    path=$(PATH=$PATH:/usr/sbin:/sbin command -v "$tool") || {
      echo "no $tool on this host (deploy/packages)" >&2
      return 1
    }
    cp -L "$path" "$root/usr/sbin/$tool"
  done
  # Built with the tests, and so located next to the daemon.
  cp "$(dirname "$binary")"/ssdpulse_{history_writer,samples_probe} "$root/usr/sbin/"
  for tool in attribution_probe tick_recorder; do install -s "$(dirname "$binary")/ssdpulse_$tool" "$root/usr/sbin/"; done
  ln -s kmod "$root/usr/sbin/modprobe"
  for file in "$root"/usr/{bin,sbin,lib}/*; do with_libraries "$file"; done | grep "^/" | grep -v "^$root" | sort -u |
    while read -r file; do install -D "$(readlink -f "$file")" "$root$file"; done
  pack "$root" "$archive"
  rm -r "$root"
}

# modules_stamp: changes when pack_modules would make a different archive of the same kernel.
modules_stamp() {
  { declare -p MODULES_EARLY MODULES_LATE && declare -f pack pack_modules; } | sha256sum
}

# pack_modules UNPACKED_PACKAGES VERSION ARCHIVE
pack_modules() {
  local tree=$1 version=$2 archive=$3 root name file target
  root=$(mktemp -d "$archive.XXXXXX")
  if [[ ! -e $tree/lib/modules ]]; then ln -s usr/lib "$tree/lib"; fi
  depmod -b "$tree" "$version" 2>/dev/null
  for name in "${MODULES_EARLY[@]}" "${MODULES_LATE[@]}" virtio_pci virtio_console; do
    # What is built in or was never built has no file; a scenario that needs it fails by itself.
    { modprobe -d "$tree" -S "$version" --show-depends "$name" 2>/dev/null || true; } |
      sed -nE 's/^insmod ([^ ]+).*/\1/p'
  done | sort -u | while read -r file; do
    target=$root/lib/modules/$version/${file##*/}
    mkdir -p "${target%/*}"
    case $file in
      *.xz) xz -dc "$file" >"${target%.xz}" ;;
      *.zst) zstd -qdc "$file" >"${target%.zst}" ;;
      *) cp "$file" "$target" ;;
    esac
  done
  mkdir -p "$root/lib/modules/$version"
  for file in modules.builtin modules.builtin.modinfo modules.order; do
    [[ ! -e $tree/lib/modules/$version/$file ]] || cp "$tree/lib/modules/$version/$file" "$root/lib/modules/$version/"
  done
  depmod -b "$root" "$version" 2>/dev/null
  echo "${MODULES_EARLY[*]}" >"$root/modules"
  pack "$root" "$archive"
  rm -r "$root"
}
