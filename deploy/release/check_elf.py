#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does a directory of binaries and libraries need from the host? Prints it, and fails if it is more than promised.

Usage: check_elf.py DIRECTORY NEWEST_GLIBC HOST_LIBRARY...
For each ELF file: the newest glibc version that it requires, and the libraries that are not in the directory.
"""
import re
import subprocess
import sys
from pathlib import Path


def number(version):
    return tuple(int(part) for part in version.split("."))


def asks(file):
    """Its newest GLIBC version, the libraries it needs, and where they are searched for."""
    text = subprocess.run(["objdump", "-p", file], check=True, capture_output=True, text=True).stdout
    versions = re.findall(r"0x[0-9a-f]+ 0x[0-9a-f]{2} \d+ GLIBC_([\d.]+)$", text, re.M)
    return (max(versions, key=number, default="-"), re.findall(r"^ +NEEDED +(\S+)", text, re.M),
            re.findall(r"^ +(?:RPATH|RUNPATH) +(\S+)", text, re.M))


def main():
    directory, newest, *of_host = sys.argv[1:]
    files = [path for path in sorted(Path(directory).rglob("*")) if path.is_file() and not path.is_symlink()
             and path.suffix != ".debug" and path.open("rb").read(4) == b"\x7fELF"]
    held = {path.name for path in files}
    flaws = [] if files else ["there is no ELF file"]
    for path in files:
        version, needed, places = asks(path)
        outside = [name for name in needed if name not in held]
        print(f"{path.relative_to(directory)}\tGLIBC_{version}\t{' '.join(outside)}")
        if version != "-" and number(version) > number(newest):
            flaws.append(f"{path}: asks for GLIBC_{version}, newer than {newest}")
        flaws += [f"{path}: needs {name}, which is not in the package" for name in outside if name not in of_host]
        flaws += [f"{path}: has libraries looked for in {place}" for place in places if not place.startswith("$ORIGIN/")]
    for flaw in flaws:
        print(flaw, file=sys.stderr)
    sys.exit(bool(flaws))


main()
