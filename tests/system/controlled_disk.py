# SPDX-License-Identifier: Apache-2.0
"""A disk that is as slow as a test tells it to be, and changes when told otherwise (tests/vm/lib/slow_disk.py)."""
import json
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from lib import rig

PLUGIN = Path(__file__).resolve().parents[1] / "vm/lib/slow_disk.py"


@contextmanager
def controlled_disk(state, settings, size=256 << 20, *options):
    """(disk, tell): `tell(settings)` sets how slow it is from now on. `options` are the plugin's."""
    control, mount = state / "control", state / "slow"
    mount.mkdir()

    def tell(settings):
        new = control.with_suffix(".new")
        new.write_text(json.dumps(settings))
        new.rename(control)

    tell(settings)
    # Relative paths, as that of a socket must be short. One connection would carry few commands at a time.
    server = subprocess.Popen(["nbdkit", "--foreground", "--exit-with-parent", "--unix=socket", "--threads=16", "python",
                               PLUGIN, f"control={control}", f"size={size}", *options], cwd=state)
    process = None
    try:
        wait_for(state / "socket")
        process = subprocess.Popen(["nbdfuse", "--connections=16", mount / "disk", "nbd+unix:///?socket=socket"], cwd=state)
        wait_for(mount / "disk")
        with rig.loop_disk(mount / "disk", direct=True) as disk:
            yield disk, tell
    finally:
        rig.run("umount", "-l", mount, check=False)
        for one in filter(None, (process, server)):
            one.terminate()
            one.wait()


def wait_for(path):
    for _ in range(200):
        if path.exists():
            return
        time.sleep(0.05)
    raise RuntimeError(f"there is no {path}")
