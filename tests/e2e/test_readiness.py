"""Readiness: over HTTP, over gRPC's health service, and in metrics, for each case of the table."""

import shutil

import pytest
import requests
import tritonclient.grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
import grpc
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon, run_reprised
from testing.metrics import Scrape
from testing.patience import wait_until

EXPLICIT = ("--model-control-mode", "explicit")


@pytest.fixture
def mixed(repository):
    """Makes one model that is served, and one that is no model."""
    repository.add("good", models.elementwise())
    repository.add("bad", b"nonsense")
    return repository


def health(daemon):
    with grpc.insecure_channel(daemon.grpc_address) as channel:
        reply = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service=""), timeout=10)
    return reply.status == health_pb2.HealthCheckResponse.SERVING


def assert_ready(daemon, ready):
    """Checks that all faces say the same."""
    assert daemon.http_status("/v2/health/ready") == (200 if ready else 503), daemon.readiness()
    assert daemon.readiness()["ready"] == ready
    assert daemon.client().is_server_ready() == ready
    assert health(daemon) == ready
    assert Scrape(daemon.metrics_url).total("reprise_server_ready") == ready
    # Whether requests should be sent here, and whether it lives, are two questions.
    assert requests.get(f"{daemon.http_url}/v2/health/live", timeout=10).json() == {"live": True}


@pytest.mark.parametrize("flags, ready", [
    ((), False), (("--strict-readiness", "false"), True),
    ((*EXPLICIT, "--load-model", "good"), True), ((*EXPLICIT, "--load-model", "bad"), False)])
def test_a_model_that_cannot_be_loaded_counts_where_it_was_asked_for(mixed, flags, ready):
    with Daemon(mixed, *flags) as daemon:
        assert_ready(daemon, ready)
        body = daemon.readiness()
        if not ready:
            assert body["reason"].startswith('model "bad" version 1 was not loaded: ')
            assert body["not_ready"] == [body["reason"].removeprefix("model ")]
        if "good" in flags:
            assert "not_ready" not in body


@pytest.mark.parametrize("flags, ready", [
    ((), False), (("--model-control-mode", "poll"), False), (("--allow-empty",), True),
    (EXPLICIT, True)])
def test_an_empty_repository_is_ready_where_that_is_meant(repository, flags, ready):
    with Daemon(repository, *flags) as daemon:
        assert_ready(daemon, ready)
        assert list(daemon.client().get_model_repository_index().models) == []


def test_models_that_come_and_go_by_request_count_while_they_are_asked_for(mixed):
    with Daemon(mixed, *EXPLICIT) as daemon:
        client = daemon.client()
        client.load_model("good")
        assert_ready(daemon, True)
        with pytest.raises(InferenceServerException):
            client.load_model("bad")
        assert_ready(daemon, False)
        client.unload_model("good")
        # Taken back: it is not asked for any more.
        client.unload_model("bad")
        assert_ready(daemon, True)


def test_a_successor_that_cannot_be_loaded_changes_nothing_but_a_metric(repository):
    repository.add("m", models.elementwise())
    with Daemon(repository, "--model-control-mode", "poll", "--repository-poll-secs",
                "1") as daemon:
        repository.add("m", b"nonsense", version=2)
        wait_until(lambda: Scrape(daemon.metrics_url).total("reprise_model_load_failed") == 1)
        assert_ready(daemon, True)
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_model_load_failed", model="m", version="2") == 1
        assert scrape.total("reprise_model_ready", model="m", version="1") == 1
        shutil.rmtree(repository.path("m", 2).parent)
        wait_until(lambda: Scrape(daemon.metrics_url).total("reprise_model_load_failed") == 0)
        assert Scrape(daemon.metrics_url).total("reprise_model_asked_for", version="2") == 0
        assert_ready(daemon, True)


def test_models_that_nobody_asked_for_have_no_series(mixed):
    with Daemon(mixed, *EXPLICIT) as daemon:
        daemon.reprise("stats")
        requests.get(daemon.http_url, timeout=10)
        assert 'model="good"' not in Scrape(daemon.metrics_url).text
        daemon.client().load_model("good")
        text = Scrape(daemon.metrics_url).text
        assert 'reprise_model_ready{model="good",version="1"} 1' in text
        assert 'model="bad"' not in text


def test_kserve_bodies(repository):
    repository.add("good", models.elementwise())
    with Daemon(repository) as daemon:
        ready = requests.get(f"{daemon.http_url}/v2/models/good/ready", timeout=10)
        assert (ready.status_code, ready.json()) == (200, {"name": "good", "ready": True})
        missing = requests.get(f"{daemon.http_url}/v2/models/gone/ready", timeout=10)
        assert missing.status_code == 404
        assert missing.json() == {"name": "gone", "ready": False,
                                  "error": 'there is no model "gone"'}


def test_exit_on_error_names_each_model_and_ends_with_1(mixed):
    mixed.add("worse", b"")
    ports = ("--grpc-port", "0", "--http-port", "0", "--metrics-port", "0")
    done = run_reprised("--model-repository", mixed, *ports, "--exit-on-error", "true")
    assert done.returncode == 1, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "--exit-on-error" in line]
    assert ' error ' in line and 'model "bad": ' in line and 'model "worse": ' in line
    assert '"good"' not in line
