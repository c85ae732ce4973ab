# SPDX-License-Identifier: Apache-2.0
"""The program's own list of metrics: `ssdpulse metrics --json`."""
import functools
import json
import os
import subprocess


@functools.cache
def metrics():
    done = subprocess.run([os.environ["SSDPULSE_BINARY"], "metrics", "--json"], check=True, capture_output=True)
    return json.loads(done.stdout)["metrics"]
