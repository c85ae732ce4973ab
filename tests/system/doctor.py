# SPDX-License-Identifier: Apache-2.0
"""`ssdpulse doctor` with JSON output."""
import json
import subprocess
import time

from lib import rig

SEVERAL = ("sources", "device-places")


def doctor(*arguments, prefix=()):
    """(exit status, {(id, device): finding that is not ok}). `prefix`: the command that runs it. There may be several
    findings of the kinds SEVERAL for one device or for the host: so their keys include what was found."""
    done = subprocess.run([*prefix, rig.BINARY, "doctor", "--json", *map(str, arguments)], text=True,
                          capture_output=True, timeout=20, check=False)
    found = {}
    for one in json.loads(done.stdout)["findings"]:
        key = (one["id"], one["device"])
        if one["verdict"] != "ok":
            found[(*key, one["found"]) if one["id"] in SEVERAL else key] = one
    return done.returncode, found


def until(wanted, *arguments, seconds=40):
    """Repeats until `wanted` holds for the answer, or time is up; returns the last answer."""
    deadline = time.monotonic() + seconds
    while True:
        code, found = doctor(*arguments)
        if wanted(found) or time.monotonic() > deadline:
            return code, found
        time.sleep(0.5)
