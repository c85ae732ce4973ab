#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 480
"""An fstrim stalls reads: does a real Prometheus fire within two minutes, does a real Alertmanager suppress the general
alert, do both end, and is everything silent before? And what do they report about a daemon that sees nothing more?

The page is made up (alerts/replay.py); all else is real: the shipped configuration and rules, with only the waiting
times shortened, with native histograms on the newest server and classic ones on the oldest.
"""
import importlib
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from alerts.replay import Replay, serving
from alerts.stack import INSTANCE, stack
from lib import rig

DEFINITION = Path(__file__).resolve().parents[1] / "fixtures/prometheus/metrics.proto"
STACKS = (("sid", "native"), ("bookworm", "classic"))
DRIVE = (("device", "nvme0n1"), ("operation", "read"))
QUICK, STALLED = -13, -4  # exponents of two: 0.12 ms and 62 ms
CAUSE, GENERAL = ("SsdpulseTailLiftedByDiscard", "nvme0n1"), ("SsdpulseTailLatencyHigh", "nvme0n1")

# Alerts about a daemon that no longer sees anything: severity, and what happens to them.
STALE = {"SsdpulseStale": ("warning", "active"), "SsdpulseCriticalWarning": ("critical", "active"),
         "SsdpulseWriteAmplificationHigh": ("warning", "suppressed")}


def reads(alone, stalled):
    """I/Os per second, alone and during a discard."""
    device, whole = "ssdpulse_io_device_latency_seconds", "ssdpulse_io_latency_seconds"
    rates = {(device, (*DRIVE, ("during", "none"))): {QUICK: alone},
             (device, (*DRIVE, ("during", "discard"))): {STALLED: stalled},
             (whole, DRIVE): {QUICK: alone, STALLED: stalled}}
    gauges = {("ssdpulse_discard_burst_active", (("device", "nvme0n1"), ("trigger", "fstrim"))): float(stalled > 0),
              ("ssdpulse_source_up", (("source", "block"),)): 1.0}
    return rates, gauges


def wait(seconds, good):
    """How long it took until good(), or None."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if good():
            return time.monotonic() - began
        time.sleep(0.5)
    return None


def took(seconds):
    return "never" if seconds is None else f"after {seconds:.0f} s"


def test(check, state):
    rig.run("protoc", f"--proto_path={DEFINITION.parent}", f"--python_out={state}", DEFINITION)
    sys.path.insert(0, str(state))
    replay = Replay(importlib.import_module("metrics_pb2"))
    replay.set(*reads(2000, 0))
    with serving(replay) as port, ExitStack() as running:
        stacks = {f"{suite}, {form}": running.enter_context(stack(state, suite, form, port)) for suite, form in STACKS}
        time.sleep(40)
        for name, one in stacks.items():
            check.equal((one.server.target()["health"], one.server.target()["lastError"]), ("up", ""), f"{name}: target")
            check.equal((one.firing(), one.notified()), ({}, {}), f"{name}: nothing fires in health")

        replay.set(*reads(10, 40))
        for name, one in stacks.items():
            seconds = wait(120, lambda one=one: CAUSE in one.firing())
            check.that(seconds is not None, f"{name}: {CAUSE[0]} fires {took(seconds)}")
            description = one.firing().get(CAUSE, {}).get("annotations", {}).get("description", "")
            check.that(all(part in description for part in ("reads on nvme0n1", "0.06", "0.00012 s is usual", "fstrim")),
                       f"{name}: {description}")
            seconds = wait(60, lambda one=one: one.notified() == {CAUSE: "active", GENERAL: "suppressed"})
            check.that(seconds is not None, f"{name}: Alertmanager keeps the general alert back {took(seconds)}: "
                                            f"{one.notified()}")

        replay.set(*reads(2000, 0))
        for name, one in stacks.items():
            seconds = wait(120, lambda one=one: CAUSE not in one.firing() and CAUSE not in one.notified())
            check.that(seconds is not None, f"{name}: it resolves {took(seconds)}")
            check.equal(one.server.complaints(), [], f"{name}: complaints")

        for name, one in stacks.items():
            for alert, (severity, _) in STALE.items():
                one.notify({"alertname": alert, "severity": severity, "job": "ssdpulse", "instance": INSTANCE})
            want = {(alert, None): state for alert, (_, state) in STALE.items()}
            seconds = wait(30, lambda one=one, want=want: want.items() <= one.notified().items())
            check.that(seconds is not None, f"{name}: of a stale daemon what is critical stays told: {one.notified()}")


rig.main(test)
