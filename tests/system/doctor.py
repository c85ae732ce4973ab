# SPDX-License-Identifier: Apache-2.0
"""`ssdpulse doctor`, asked for JSON."""
import json
import subprocess
import time

from lib import rig


def doctor(*arguments, prefix=()):
    """(exit status, {(id, device): finding that is not well}). `prefix`: the command that runs it."""
    done = subprocess.run([*prefix, rig.BINARY, "doctor", "--json", *map(str, arguments)], text=True,
                          capture_output=True, timeout=20, check=False)
    findings = json.loads(done.stdout)["findings"]
    return done.returncode, {(one["id"], one["device"]): one for one in findings if one["verdict"] != "ok"}


def until(wanted, *arguments, seconds=40):
    """The last answer, as soon as `wanted` holds of it."""
    deadline = time.monotonic() + seconds
    while True:
        code, found = doctor(*arguments)
        if wanted(found) or time.monotonic() > deadline:
            return code, found
        time.sleep(0.5)
