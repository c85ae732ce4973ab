#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How much earlier than the issue is the kernel's io_start_time_ns, by the number of I/Os submitted at once?
Since Linux 6.10 it comes from a clock that is read once for each plug. Needs root."""
import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "kernel")]
import overhead  # noqa: E402
from lib import rig  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2, help="of load for each batch (2)")
    arguments = parser.parse_args()
    print(f"{'batch':>5} {'I/Os':>9} {'without':>9} {'mean early us':>14} {'most early us':>14} {'of device time':>15}")
    with rig.state_directory() as state, rig.ram_disks(state, size="512M") as [disk]:
        overhead.compile_bench_programs(state)
        for batch in (1, 8, 32, 128):
            with overhead.bench_programs("start_time")(state, disk):
                rig.fio(disk, 1, rw="randread", bs="4k", ioengine="libaio", iodepth=batch, iodepth_batch_submit=batch,
                        iodepth_batch_complete_min=batch, size="512M", time_based=None, runtime=f"{int(arguments.seconds * 1000)}ms")
                ios, without, early, most, device = overhead.map_words("told")  # struct differences
            print(f"{batch:>5} {ios:>9} {without:>9} {early / ios / 1000:>14.2f} {most / 1000:>14.1f} {early / device:>15.1%}")


if __name__ == "__main__":
    main()
