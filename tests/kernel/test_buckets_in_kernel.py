#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the kernel, running the product's header, find the same bucket as exact integers? Every bound, no sampling."""
import subprocess

from lib import buckets, rig

FIRST_NATIVE_WORD = 2  # bpf/abi/latency_buckets.h, written out again here: zero, under, then one word per native index


def word(nanoseconds):
    index = buckets.latency_bucket(nanoseconds)
    return 0 if index == buckets.ZERO else index - buckets.UNDER - 1 + FIRST_NATIVE_WORD


def test(check, state):
    values = [bound + offset for bound in buckets.BOUNDS for offset in (-1, 0, 1)]
    values += [0, 1, 2, -1, -(2**63), 2**63 - 1, 10**12] + list(range(3, 2000)) + [2**e for e in range(63)]
    probe = subprocess.run([rig.BUILD / "ssdpulse_bucket_probe"], input="\n".join(map(str, values)), text=True,
                           capture_output=True, check=True)
    words = [int(line) for line in probe.stdout.split()]
    wrong = [(value, have, word(value)) for value, have in zip(values, words) if have != word(value)]
    check.equal(len(words), len(values), "values answered")
    check.that(not wrong, f"{len(values)} values at {len(buckets.BOUNDS)} bounds; wrong: {wrong[:5]}")


rig.main(test)
