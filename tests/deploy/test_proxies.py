"""Four replicas and a proxy, by the files of deploy/proxies: shares, and no lost request when replicas go.

Requests are asked once, by clients that check every answer. The proxies' own retries count, and nginx's callers
over gRPC repeat by the service config that ships.
"""

import signal

import pytest
import requests

from testing import models
from testing.daemon import Daemon
from testing.metrics import Scrape
from testing.patience import wait_until
from testing.replicas import load as loads
from testing.replicas import proxies
from testing.repository import Repository

REPLICAS = 4
FACES = [(kind, face) for kind in proxies.ALL for face in ("grpc", "http") if face == "grpc" or kind.speaks_http]
EVERY = pytest.mark.parametrize("kind,face", FACES, ids=lambda value: getattr(value, "__name__", value))
# How long a request may take whose replica was stopped under it.
STOPPED_S = 1.2


@pytest.fixture
def replicas(tmp_path):
    repository = Repository(tmp_path / "models")
    repository.add("m", models.elementwise())
    running = [Daemon(repository, "--drain-grace-secs", "2", "--model-control-mode", "explicit", "--load-model", "*",
                      "--grpc-http2-min-recv-ping-interval-without-data", "100") for _ in range(REPLICAS)]
    for daemon in running:
        daemon.start()
    try:
        for daemon in running:
            daemon.wait_ready()
        yield running
    finally:
        for daemon in running:
            daemon.kill()


def served(daemon):
    return Scrape(daemon.metrics_url).total("nv_inference_request_success", model="m")


def all_serve(seen, replicas):
    """Until each has answered a request: connections and checks of health are there."""
    before = [served(daemon) for daemon in replicas]
    wait_until(lambda: all(served(daemon) > was for daemon, was in zip(replicas, before)),
               explain=lambda: str(seen.errors[:5]))


def assert_no_error(seen, proxy, within_s=None):
    assert seen.errors == [], proxy.log()[-2000:]
    if within_s is not None:
        assert max(seen.seconds) < within_s, sorted(seen.seconds)[-5:]


@EVERY
def test_each_replica_gets_its_share(kind, face, replicas, tmp_path):
    with kind(replicas, tmp_path) as proxy, loads.load(face, proxy, rate=600) as seen:
        all_serve(seen, replicas)
        before = [served(daemon) for daemon in replicas]
        seen.wait_for(2000)
        shares = [served(daemon) - was for daemon, was in zip(replicas, before)]
    assert_no_error(seen, proxy)
    assert all(0.22 <= share / sum(shares) <= 0.28 for share in shares), shares


@EVERY
def test_replica_that_is_told_to_end_loses_no_request(kind, face, replicas, tmp_path):
    with kind(replicas, tmp_path) as proxy, loads.load(face, proxy) as seen:
        all_serve(seen, replicas)
        replicas[1].process.send_signal(signal.SIGTERM)
        assert replicas[1].process.wait(60) == 0
        seen.wait_for(120)
    assert_no_error(seen, proxy)


@EVERY
def test_reload_of_a_model_on_one_replica_after_the_other_loses_no_request(kind, face, replicas, tmp_path):
    with kind(replicas, tmp_path) as proxy, loads.load(face, proxy) as seen:
        all_serve(seen, replicas)
        Repository(tmp_path / "models").add("m", models.elementwise(), version=2)
        for daemon in replicas:
            reply = requests.post(f"{daemon.http_url}/v2/repository/models/m/load", json={}, timeout=60)
            assert reply.status_code == 200, reply.text
            seen.wait_for(30)
    assert_no_error(seen, proxy)
    for daemon in replicas:
        assert Scrape(daemon.metrics_url).total("reprise_model_ready", model="m", version="2") == 1


@EVERY
def test_replica_that_dies_loses_no_request(kind, face, replicas, tmp_path):
    with kind(replicas, tmp_path) as proxy, loads.load(face, proxy) as seen:
        all_serve(seen, replicas)
        replicas[2].process.send_signal(signal.SIGKILL)
        replicas[2].process.wait()
        seen.wait_for(200)
    assert_no_error(seen, proxy)


@EVERY
def test_replica_that_stops_delays_requests_a_little(kind, face, replicas, tmp_path):
    with kind(replicas, tmp_path) as proxy, loads.load(face, proxy) as seen:
        all_serve(seen, replicas)
        replicas[3].process.send_signal(signal.SIGSTOP)
        seen.wait_for(300)
    assert_no_error(seen, proxy, within_s=STOPPED_S)
    assert max(seen.seconds) > 0.2, "no request was under way on the replica that stopped"


@EVERY
def test_requests_of_a_session_go_to_one_replica(kind, face, replicas, tmp_path):
    if not kind.speaks_http:
        pytest.skip("gRPC's own policies know no sessions")
    with kind(replicas, tmp_path) as proxy:
        ask, close = loads.CALLS[face](proxy)
        used = set()
        for session in range(24):
            before = [served(daemon) for daemon in replicas]
            for _ in range(5):
                ask([("x-session-id", f"session-{session}")])
            more = [served(daemon) - was for daemon, was in zip(replicas, before)]
            assert sorted(more) == [0, 0, 0, 5], more
            used.add(more.index(5))
        close()
    assert used == set(range(REPLICAS))
