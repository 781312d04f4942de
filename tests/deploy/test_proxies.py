"""Four replicas and a proxy, by the files of deploy/proxies: shares, and no lost request when replicas go.

Requests are asked once, by clients that check every answer. The proxies' own retries count, and nginx's callers
over gRPC repeat by the service config that ships.
"""

import contextlib
import itertools
import os
import pathlib
import signal
import time

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


@contextlib.contextmanager
def running(repository, *flags):
    """Four daemons that are ready."""
    daemons = [Daemon(repository, *flags, "--drain-grace-secs", "2", "--model-control-mode", "explicit", "--load-model", "*",
                      "--grpc-http2-min-recv-ping-interval-without-data", "100") for _ in range(REPLICAS)]
    for daemon in daemons:
        daemon.start()
    try:
        for daemon in daemons:
            daemon.wait_ready()
        yield daemons
    finally:
        for daemon in daemons:
            daemon.kill()


@pytest.fixture
def replicas(tmp_path):
    repository = Repository(tmp_path / "models")
    repository.add("m", models.elementwise())
    with running(repository) as daemons:
        yield daemons


def served(daemon, model="m"):
    return Scrape(daemon.metrics_url).total("nv_inference_request_success", model=model)


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
        others = itertools.count()

        def all_are_known():
            """Checks of health have found each."""
            ask([("x-session-id", f"other-{next(others)}")])
            return all(served(daemon) > 0 for daemon in replicas)

        wait_until(all_are_known)
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


@contextlib.contextmanager
def throttled(process, cpus):
    """Gives the process that many CPUs while the block runs, by a control group."""
    version2 = not pathlib.Path("/sys/fs/cgroup/cpu").is_dir()
    group = pathlib.Path("/sys/fs/cgroup" if version2 else "/sys/fs/cgroup/cpu") / f"reprise-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as why:
        pytest.skip(f"no control group can be made here: {why}")
    try:
        period, quota = 100_000, max(1000, round(cpus * 100_000))
        if version2:
            (group / "cpu.max").write_text(f"{quota} {period}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(period))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        (group / "cgroup.procs").write_text(str(process.pid))
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(process.pid))
        group.rmdir()


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_load_reports_take_requests_from_a_replica_that_is_throttled(tmp_path):
    repository = Repository(tmp_path / "models")
    repository.add("bert", models.bert(hidden=96, layers=3))
    with running(repository, "--load-reports", "always") as replicas, \
            proxies.WeightedRoundRobin(replicas, tmp_path) as proxy:
        def count(seconds):
            """Returns the share of each in that time."""
            before = [served(daemon, "bert") for daemon in replicas]
            time.sleep(seconds)  # the time that the shares are of
            more = [served(daemon, "bert") - was for daemon, was in zip(replicas, before)]
            return [one / sum(more) for one in more]

        with loads.asking(*loads.bert_call(proxy), 6, 100) as seen:
            seen.wait_for(300)  # until reports have come, and weights are in force
            before = cpu_seconds(replicas[0].process)
            assert all(0.15 <= share <= 0.35 for share in count(4))
            wanted = (cpu_seconds(replicas[0].process) - before) / 4
            with throttled(replicas[0].process, wanted / 3):
                time.sleep(5)  # the time in which it has to be noticed
                shares = count(4)
    assert shares[0] <= 0.20, shares
    assert min(shares[1:]) >= 0.22, shares
