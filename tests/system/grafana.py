# SPDX-License-Identifier: Apache-2.0
"""A real Grafana with the project's own provisioning files. Set SSDPULSE_GRAFANA to its home directory if you have one:
no Debian suite has Grafana. Only two addresses in the shipped files are changed: Prometheus' and the dashboards'
directory.
"""
import json
import os
import shutil
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from alerts.stack import free_port, started

SOURCE = Path(__file__).resolve().parents[2]
SHIPPED = SOURCE / "deploy/grafana"


def home():
    """None if there is no Grafana."""
    given = os.environ.get("SSDPULSE_GRAFANA")
    return Path(given) if given else None


class Server:
    def __init__(self, port, log):
        self.url, self.log = f"http://127.0.0.1:{port}", log

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def complaints(self):
        """Errors about the shipped files: Grafana also looks for kinds of files that we do not ship."""
        return [line for line in self.log.read_text().splitlines()
                if "level=error" in line and ("provisioning.d" in line or "ssdpulse.yaml" in line)]


@contextmanager
def server(state, prometheus_port):
    """Anonymous users have full access, and no outside service is contacted."""
    provisioning, data = state / "provisioning", state / "grafana"
    shutil.copytree(SHIPPED / "provisioning", provisioning)
    for file, old, new in (("datasources", "http://localhost:9090", f"http://127.0.0.1:{prometheus_port}"),
                           ("dashboards", "/var/lib/grafana/dashboards/ssdpulse", str(SHIPPED / "dashboards"))):
        path = provisioning / file / "ssdpulse.yaml"
        text = path.read_text()
        assert old in text, f"{path} does not name {old}"
        path.write_text(text.replace(old, new))
    port = free_port()
    settings = {
        "PATHS_DATA": data, "PATHS_LOGS": data, "PATHS_PLUGINS": data / "plugins", "PATHS_PROVISIONING": provisioning,
        "SERVER_HTTP_ADDR": "127.0.0.1", "SERVER_HTTP_PORT": port, "AUTH_ANONYMOUS_ENABLED": "true",
        "AUTH_ANONYMOUS_ORG_ROLE": "Admin", "ANALYTICS_REPORTING_ENABLED": "false", "ANALYTICS_CHECK_FOR_UPDATES": "false",
        "ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false", "SECURITY_ANGULAR_SUPPORT_ENABLED": "false",
        "NEWS_NEWS_FEED_ENABLED": "false", "LOG_LEVEL": "warn",
    }
    environment = [f"GF_{name}={value}" for name, value in settings.items()]
    [program] = [path for name in ("bin/grafana", "grafana") if (path := home() / name).exists()][:1]
    with started(["env", *environment, program, "server", f"--homepath={home()}"], state / "grafana.log",
                 f"http://127.0.0.1:{port}/api/health", 180):
        yield Server(port, state / "grafana.log")
