"""Each critical alert is provoked once at one of two instances, by a real Prometheus; the other is quiet.

Minutes of the shipped rules are fractions of a second here: the tests show that a real fault moves
a real metric that an alert looks at, whatever the scrape job is called.
"""

import re

import numpy as np
import pytest
import yaml
from tritonclient.utils import InferenceServerException

from testing import models
from testing.clients import meanwhile
from testing.daemon import Daemon
from testing.inference import infer
from testing.patience import wait_until
from testing.prometheus import RULES, Prometheus
from testing.repository import Repository

X = {"x": np.ones((4, 5), np.float32)}
# One request waits at most, and only where it is small.
NARROW = 'parameters { key: "reprise.max_queue_tokens" value { string_value: "1" } }'
# A kernel with a fault is none of these troubles: tests/deploy/rules_test.yml has it.
TOLD = {rule["alert"] for group in yaml.safe_load(RULES[1].read_text())["groups"]
        for rule in group["rules"] if rule["labels"]["severity"] == "critical"} - {"RepriseAuditQuarantined"}


def fast_rules(folder):
    """Makes the rules with each minute as 60 ms, but for windows, which hold a few scrapes at least."""
    paths = []
    for path in RULES:
        text = re.sub(r"for: (\d+)m", lambda m: f"for: {int(m[1]) * 60}ms", path.read_text())
        text = text.replace("[5m]", "[5s]").replace("[30m]", "[2m]")
        paths.append(folder / path.name)
        paths[-1].write_text(text)
    return paths


@pytest.fixture
def good(tmp_path):
    """Starts an instance that has the models it was asked for, in explicit mode."""
    repository = Repository(tmp_path / "good")
    repository.add("m", models.elementwise())
    repository.add("unwanted", b"nonsense")
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "m") as daemon:
        yield daemon


def test_each_critical_alert_fires_at_the_instance_that_has_the_fault(repository, good, tmp_path):
    repository.add("m", models.elementwise(), config=NARROW)
    repository.add("bad", b"nonsense")
    seen = set()
    faulty = Daemon(repository)
    at = f"127.0.0.1:{faulty.metrics_port}"
    quiet = f"127.0.0.1:{good.metrics_port}"
    prometheus = Prometheus(tmp_path, {"inference of the team": [at, quiet]}, fast_rules(tmp_path))

    def wait_for(*names):
        def fires():
            seen.update(prometheus.alerts())
            return {(name, at) for name in names} <= seen
        wait_until(fires)

    def flood(daemon):
        client = daemon.client()
        while not stop:
            try:
                infer(client, "m", X)
            except InferenceServerException as error:
                assert "RESOURCE_EXHAUSTED" in str(error.status()), error

    try:
        with faulty:
            prometheus.wait_for("count(up == 1)", lambda value: value == 2)
            infer(good.client(), "m", X)
            wait_for("RepriseNotReady", "RepriseModelNotReady")
            stop = False
            with meanwhile(flood, [faulty] * 12):
                try:
                    wait_for("RepriseQueueRejects", "RepriseErrors")
                finally:
                    stop = True
        for _ in range(3):
            with faulty:
                prometheus.wait_for(f'up{{instance="{at}"}}', lambda value: value == 1)
            prometheus.wait_for(f'up{{instance="{at}"}}', lambda value: value == 0)
        wait_for("RepriseDown", "RepriseRestarts")
        infer(good.client(), "m", X)
        assert TOLD <= {name for name, instance in seen if instance == at}
        assert {name for name, instance in seen if instance == quiet} <= {"RepriseColdStart"}
    finally:
        prometheus.stop()
