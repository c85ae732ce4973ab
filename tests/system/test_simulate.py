#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does `ssdpulse simulate` agree with theory about a recorded load, and does it report what is wrong with its input?

Uniform writes have a theory: a block collected by FIFO holds a share p of valid pages, p = exp(-alpha (1 - p)).
"""
import json
import math
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

BINARY = os.environ["SSDPULSE_BINARY"]
STATE = Path(os.environ["SSDPULSE_TEST_STATE"])
SIZE = 1 << 30
PAGES = SIZE // 4096
failures = []


def expect(true, what):
    print(("ok   " if true else "FAIL: ") + what)
    if not true:
        failures.append(what)


def simulate(*options, **settings):
    return subprocess.run([BINARY, "simulate", *map(str, options)], capture_output=True, text=True, check=False, **settings)


def results(*options, **settings):
    run = simulate(*options, "--json", **settings)
    expect(run.returncode == 0, f"simulate {' '.join(map(str, options))} ends well: {run.stderr.strip()[-200:]}")
    return json.loads(run.stdout)["results"] if run.returncode == 0 else []


def theory(alpha):
    valid = 0.5
    for _ in range(10_000):
        valid = math.exp(-alpha * (1 - valid))
    return 1 / (1 - valid)


def uniform_load():
    file = STATE / "uniform.csv"
    dice = random.Random(18)
    with file.open("w", encoding="ascii") as out:
        out.write("# uniform\n")
        for _ in range(3 * PAGES):
            out.write(f"W,{dice.randrange(PAGES) * 4096},4096\n")
    return file


def what_theory_says(load):
    found = results("--input", load, "--size", "1GiB", "--op", "12,28", "--policy", "greedy,fifo")
    expect([(row["op"], row["policy"]) for row in found] ==
           [(12, "greedy"), (12, "fifo"), (28, "greedy"), (28, "fifo")], "all combinations come in their order")
    for row in found:
        ratio = row["write_amplification"] / theory(1 + row["op"] / 100)
        expect(abs(ratio - 1) < 0.03, f"{row['op']} % {row['policy']}: {row['write_amplification']}, {ratio:.4f} of theory")
        expect(row["lower"] <= theory(1 + row["op"] / 100) <= row["upper"], "its bounds hold theory")
    full = results("--input", load, "--size", SIZE, "--op", 12, "--policy", "greedy", "--full")[0]
    sampled = found[0]
    expect(sampled["lower"] <= full["write_amplification"] <= sampled["upper"], f"--full is within the bounds: {full}")
    with load.open(encoding="ascii") as lines:
        piped = results("--input", "-", "--size", "1GiB", "--op", "12,28", "--policy", "greedy,fifo", stdin=lines)
    expect(piped == found, "standard input gives the same")
    empty = results("--input", load, "--size", "1GiB", "--op", 12, "--policy", "greedy", "--start", "empty", "--window", "0-30")[0]
    expect(empty["write_amplification"] == 1, "a drive that starts empty relocates nothing at first")
    table = simulate("--input", load, "--size", "1GiB", "--op", "12.5", "--policy", "fifo")
    expect(table.stdout.splitlines()[1].split()[:4] == ["12.5", "fifo", "none", "honoured"], f"a table: {table.stdout}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    expect(used < 200, f"memory is bounded: {used:.0f} MB")


def problems():
    for text, message in (("W,0,4096\nW,zero,4096\n", "standard input:2: the offset 'zero' is not a number of bytes"),
                          ("R,0,4096\n", "standard input:1: expected W,OFFSET,BYTES[,HINT] or D,OFFSET,BYTES, found 'R,0,4096'"),
                          (f"W,{SIZE},1\n", f"standard input:1: 1 bytes at {SIZE} are beyond the {SIZE} bytes of the drive"),
                          ("", "standard input: no writes")):
        run = simulate("--input", "-", "--size", SIZE, input=text)
        expect(run.returncode == 2 and run.stderr.strip() == message and not run.stdout, f"{message}: {run.stderr.strip()}")
    for options, message in ((("--size", "1GiB"), "--input is required"), (("--input", "-"), "--size is required"),
                             (("--input", "-", "--size", "1GiB", "--op", "0"), "--op: expected percent from 1 to 400"),
                             (("--input", "-", "--size", "1GiB", "--full", "--sample", "20000"), "excludes"),
                             (("--input", "-", "--size", "100TB", "--full"), "more than 4 GiB of memory"),
                             (("--input", "-", "--size", "-5"), "such as 1.92TB or 894GiB, found '-5'"),
                             (("--input", "-", "--size", "5xB"), "such as 1.92TB or 894GiB, found '5xB'"),
                             (("--input", "-", "--size", "20EB"), "such as 1.92TB or 894GiB, found '20EB'"),
                             (("--input", STATE / "none", "--size", "1GiB"), "cannot be opened: No such file or directory"),
                             (("--input", STATE, "--size", "1GiB"), "cannot be opened: Is a directory")):
        run = simulate(*options, input="")
        expect(run.returncode == 2 and message in run.stderr + run.stdout, f"{message}: {run.stderr.strip()[:200]}")


def sizes():
    """The drive's end is exact to the byte."""
    for text, size in (("1GiB", 1 << 30), ("1.5gb", 1_500_000_000), ("1.92TB", 1_920_000_000_000), ("894G", 894_000_000_000),
                       ("4194304", 4194304)):
        last, beyond = (simulate("--input", "-", "--size", text, "--op", 12, "--policy", "fifo", "--window", "0-100",
                                 input=f"W,0,4096\nW,{size - 512},{more}\n") for more in (512, 513))
        expect(last.returncode in (0, 6), f"{text}: {last.stderr.strip()}")
        expect(beyond.returncode == 2 and f"beyond the {size} bytes" in beyond.stderr, f"{text}: {beyond.stderr.strip()}")


def too_little():
    """A single write: the window of the second half holds none."""
    run = simulate("--input", "-", "--size", "1GiB", "--op", 12, "--policy", "fifo", "--json", input="W,0,4096\n")
    expect(run.returncode == 6 and "too little is written in the window of 50-100 %" in run.stderr, f"no estimate: {run}")
    expect(json.loads(run.stdout)["results"][0]["write_amplification"] is None, "and null in JSON")


def progress():
    with subprocess.Popen([BINARY, "simulate", "--input", "-", "--size", str(SIZE)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        for _ in range(2):
            run.stdin.write("W,0,4096\n" * 40_000)
            run.stdin.flush()
            time.sleep(2.2)
        run.stdin.write("W,0,4096\n" * 40_000)
        _, errors = run.communicate(timeout=60)
    expect("simulate: " in errors and " lines, " in errors, f"what takes long says how far it is: {errors.strip()[:120]}")


def recipe():
    """The manual page's recipe, on a made-up trace."""
    if not shutil.which("blkparse"):
        print("blkparse is not installed")
        return
    def event(number, sector, size, category):
        return struct.pack("<IIQQIIIIIHH", 0x65617407, number, number, sector, size, 8 | (category | 0x80) << 16, 1, 259 << 20, 0, 0, 0)
    events = (event(1, 16, 65536, 0x2), event(2, 128, 4096, 0x1), event(3, 2048, 1 << 20, 0x2002), event(4, 8_000_000_000, 4096, 0x800A),
              event(5, 0, 0, 0x6))
    (STATE / "trace.blktrace.0").write_bytes(b"".join(events))
    page = (Path(os.environ["SSDPULSE_SOURCE"]) / "deploy/man/ssdpulse.1").read_text(encoding="utf-8")
    command = page.split("# blkparse")[1].split("> load.csv")[0].replace("\\en", "\\n")
    out = subprocess.run(["bash", "-c", "blkparse" + command], cwd=STATE, capture_output=True, text=True, check=True).stdout
    expect([line for line in out.splitlines() if line[:2] in ("W,", "D,")] ==
           ["W,8192,65536", "D,1048576,1048576", "W,4096000000000,4096"], f"the recipe for blkparse: {out!r}")


def main():
    load = uniform_load()
    what_theory_says(load)
    problems()
    sizes()
    too_little()
    progress()
    recipe()
    if failures:
        sys.exit(f"FAIL: {len(failures)} of these do not hold; the first: {failures[0]}")


main()
