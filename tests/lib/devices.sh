#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which block devices do the tests measure? Devices of their own, below the state directory, never the host's disks.
# Sourced; the runner detaches them.

# shellcheck source=tests/lib/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

# settle: waits until udev, where it runs, has done its own reads of new devices.
settle() { if command -v udevadm >/dev/null; then udevadm settle --timeout=20; fi; }

# prepare_queue DEVICE: one request stays one request. A detached device keeps what somebody once set: set, not assumed.
prepare_queue() {
  local queue=/sys/block/${1#/dev/}/queue
  settle
  echo 2 >"$queue/nomerges"
  echo none >"$queue/scheduler"
  echo 1 >"$queue/iostats"
}

# make_loop FILE [LOSETUP OPTION...]: attaches a loop device to the file and prints /dev/loopN.
make_loop() {
  local file=$1 device
  shift
  device=$(losetup --find --show "$@" "$file") || fail "losetup on $file"
  prepare_queue "$device"
  echo "$device"
}

# make_loop_on_tmpfs SIZE [LOSETUP OPTION...]: a loop device on memory, e.g. 256M; prints /dev/loopN.
make_loop_on_tmpfs() {
  local size=$1 directory
  shift
  directory=$(mktemp -d "$SSDPULSE_TEST_STATE/tmpfs.XXXXXX")
  mount -t tmpfs ssdpulse-test "$directory" || fail "mount of a tmpfs"
  truncate --size "$size" "$directory/disk"
  make_loop "$directory/disk" "$@"
}
