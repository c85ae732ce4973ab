# SPDX-License-Identifier: Apache-2.0
"""`ssdpulse doctor`, asked for JSON."""
import json
import subprocess
import time

from lib import rig

SEVERAL = ("sources", "device-places")


def doctor(*arguments, prefix=()):
    """(exit status, {(id, device): finding that is not well}). `prefix`: the command that runs it. SEVERAL may be said of
    one device, or of the host: what was found is part of their keys."""
    done = subprocess.run([*prefix, rig.BINARY, "doctor", "--json", *map(str, arguments)], text=True,
                          capture_output=True, timeout=20, check=False)
    found = {}
    for one in json.loads(done.stdout)["findings"]:
        key = (one["id"], one["device"])
        if one["verdict"] != "ok":
            found[(*key, one["found"]) if one["id"] in SEVERAL else key] = one
    return done.returncode, found


def until(wanted, *arguments, seconds=40):
    """The last answer, as soon as `wanted` holds of it."""
    deadline = time.monotonic() + seconds
    while True:
        code, found = doctor(*arguments)
        if wanted(found) or time.monotonic() > deadline:
            return code, found
        time.sleep(0.5)
