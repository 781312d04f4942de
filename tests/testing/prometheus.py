"""Runs Debian's Prometheus over the shipped rules.

    prometheus = Prometheus(folder, {"any job": ["127.0.0.1:8002"]})
    prometheus.wait_for("up", lambda value: value == 1)
    prometheus.stop()
"""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from testing.daemon import SOURCE, free_ports
from testing.patience import PATIENCE_S

RULES = [SOURCE / "deploy/prometheus" / name for name in ("recording.yml", "alerts.yml")]


class Prometheus:
    """Scrapes targets, by job, five times a second; `rules` are files."""

    def __init__(self, folder, jobs, rules=None):
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({  # which is YAML
            "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms",
                       "evaluation_interval": "200ms"},
            "rule_files": [str(path) for path in rules or RULES],
            "scrape_configs": [{"job_name": job, "static_configs": [{"targets": targets}]}
                               for job, targets in jobs.items()]}))
        self._log = open(folder / "prometheus.log", "w+")
        self._process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)

    def stop(self):
        self._process.terminate()
        self._process.wait(30)
        self._log.close()

    def get(self, path, **query):
        url = f"{self.url}{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def alerts(self, state="firing"):
        """Names and instances of alerts in that state."""
        return {(alert["labels"]["alertname"], alert["labels"].get("instance"))
                for alert in self.get("/api/v1/alerts")["data"]["alerts"]
                if alert["state"] == state}

    def wait_for(self, expression, accept):
        """Polls until the first value of `expression` is accepted."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                result = self.get("/api/v1/query", query=expression)["data"]["result"]
                if result and accept(float(result[0]["value"][1])):
                    return
            except (OSError, ValueError):
                pass  # it is starting: refuses, or answers in plain text
            time.sleep(0.1)  # the interval of polling
        self._log.flush()
        self._log.seek(0)
        raise AssertionError(f"'{expression}' was never accepted\n{self._log.read()[-4000:]}")
