# SPDX-License-Identifier: Apache-2.0
"""The flash model of a running daemon, compared with `simulate --full` of the backend's own log."""
import json
import os
import subprocess

SPARE = 0.085  # assumed for the small drives of guests
SETTINGS = ("flash_model:\\n  virtual_disks: true\\n  sample: 1/2\\nnvme: { poll_interval: 1h }\\n"
            "history: { directory: /tmp/history }\\n")
OFF = 0.05  # at most


def estimate(scrape, controller):
    """{bound: ratio or None} of the policy that is assumed for a drive without a fit."""
    return {bound: scrape.value(f"ssdpulse_modelled_write_amplification_{bound}", controller=controller,
                                policy="greedy_gc_frontier", overprovisioning=f"{SPARE:.3g}", discards="honoured",
                                placement="none", window="24h") for bound in ("lower_ratio", "ratio", "upper_ratio")}


def in_full(commands, size, file):
    """The result of `simulate --full` for these commands of a drive of `size` bytes."""
    file.write_text("".join(f"{'W' if kind == 'write' else 'D'},{offset},{count}\n" for kind, offset, count in commands))
    out = subprocess.run([os.environ["SSDPULSE_BINARY"], "simulate", "--input", file, "--size", str(size), "--op",
                          str(100 * SPARE), "--policy", "greedy_gc_frontier", "--full", "--window", "0-100", "--json"],
                         capture_output=True, text=True, check=True).stdout
    return json.loads(out)["results"][0]["write_amplification"]


def judge(check, what, live, full):
    """The live estimate is close to the log's result, and its bounds enclose that."""
    check.that(None not in live.values(), f"{what}: there is an estimate: {live}")
    if None not in live.values():
        off = live["ratio"] / full - 1
        print(f"TABLE flash {what}: live {live['ratio']:.3f} ({live['lower_ratio']:.3f} to {live['upper_ratio']:.3f}), "
              f"in full {full:.3f}, {100 * off:+.1f} %")
        check.that(abs(off) < OFF, f"{what}: off by {100 * off:+.1f} %: {live}, in full {full}")
        check.that(live["lower_ratio"] <= full <= live["upper_ratio"], f"{what}: within its bounds")
