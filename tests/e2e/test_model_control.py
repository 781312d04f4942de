"""Models are loaded and unloaded while the daemon runs: by request, or as their folders change."""

import os
import shutil
import threading
import time

import numpy as np
import pytest
import requests
import tritonclient.grpc
import tritonclient.http
from onnx import TensorProto
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon, run_reprised
from testing.inference import infer
from testing.metrics import Scrape
from testing.models import Graph
from testing.patience import wait_until

X = {"x": np.ones((1, 16), np.float32)}


def times(factor):
    """y = factor x, by weights: the answer says which file it came from, the graph is one."""
    g = Graph(13)
    g.rename(g.node("MatMul", "x", g.const(factor * np.eye(16), hint="weight")), "y")
    return g.model([("x", TensorProto.FLOAT, ["batch", 16])],
                   [("y", TensorProto.FLOAT, ["batch", 16])])


def answer(client, model="m", version=""):
    return float(infer(client, model, X, version=version).outputs["y"][0, 0])


def states(client):
    return {(model.name, model.version): (model.state, model.reason)
            for model in client.get_model_repository_index().models}


@pytest.fixture
def explicit(repository):
    """Starts a daemon that has loaded nothing yet."""
    repository.add("m", times(2))
    repository.add("other", times(3))
    with Daemon(repository, "--model-control-mode", "explicit") as daemon:
        yield daemon


@pytest.fixture(params=["grpc", "http"])
def control(request, explicit):
    """Returns the published client of either face."""
    if request.param == "grpc":
        return explicit.client()
    return tritonclient.http.InferenceServerClient(explicit.http_url.removeprefix("http://"))


def test_models_are_served_once_they_are_asked_for(explicit, control):
    client = explicit.client()
    assert client.is_server_ready()
    assert states(client) == {("m", "1"): ("UNAVAILABLE", "unloaded"),
                              ("other", "1"): ("UNAVAILABLE", "unloaded")}
    with pytest.raises(InferenceServerException, match='"m" version 1 is not loaded'):
        answer(client)
    control.load_model("m")
    assert answer(client) == 2
    assert control.is_model_ready("m") and not control.is_model_ready("other")
    control.unload_model("m")
    assert not control.is_model_ready("m")
    with pytest.raises(InferenceServerException, match="is not loaded"):
        answer(client)
    assert Scrape(explicit.metrics_url).total("reprise_model_ready", model="m", version="1") == 0
    control.load_model("m")
    assert answer(client) == 2
    # Counters go on.
    assert Scrape(explicit.metrics_url).total(
        "reprise_requests_total", model="m", version="1", code="OK") == 2


def test_models_of_the_start_are_loaded_at_the_start(repository):
    for name in ("a", "b", "c"):
        repository.add(name, times(1))
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "a",
                "--load-model", "c") as daemon:
        assert [daemon.client().is_model_ready(m) for m in ("a", "b", "c")] == [True, False, True]
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
        assert all(daemon.client().is_model_ready(m) for m in ("a", "b", "c"))


def test_wrong_flags_end_in_one_line(repository):
    repository.add("a", times(1))
    path = str(repository)
    for flags, word in (
            (("--model-control-mode", "sometimes"), "sometimes"),
            (("--load-model", "a"), "--load-model a needs"),
            (("--repository-poll-secs", "0"), "--repository-poll-secs")):
        done = run_reprised("--model-repository", path, *flags)
        assert done.returncode == 2 and word in done.stderr and done.stderr.count("\n") == 1
    done = run_reprised("--model-repository", path, "--grpc-port", "0", "--http-port", "0",
                        "--metrics-port", "0", "--model-control-mode", "explicit",
                        "--load-model", "nothing")
    assert done.returncode != 0 and "--load-model nothing" in done.stderr


@pytest.mark.parametrize("mode", ["none", "poll"])
def test_other_modes_refuse_by_name(repository, mode):
    repository.add("m", times(2))
    with Daemon(repository, "--model-control-mode", mode) as daemon:
        client = daemon.client()
        for call in (client.load_model, client.unload_model):
            with pytest.raises(InferenceServerException, match=f"is {mode}, explicit would"):
                call("m")
        reply = requests.post(f"{daemon.http_url}/v2/repository/models/m/load", timeout=60)
        assert reply.status_code == 400 and mode in reply.json()["error"]
        assert answer(client) == 2


def test_new_files_and_configs_are_taken_and_bad_ones_change_nothing(explicit, control, repository):
    client = explicit.client()
    control.load_model("m")
    repository.add("m", times(5), version=2)
    control.load_model("m")
    assert answer(client) == 5
    # The latest one alone, as the policy says.
    assert ("m", "1") not in states(client)
    repository.add("m", b"nonsense", version=3)
    with pytest.raises(InferenceServerException, match='"m" version 3'):
        control.load_model("m")
    assert answer(client) == 5
    assert states(client)[("m", "2")] == ("READY", "")
    shutil.rmtree(repository.path("m", 3).parent)
    repository.path("m", 2).unlink()  # A new file: the one that is served stays as it is.
    repository.add("m", b"nonsense", version=2)
    with pytest.raises(InferenceServerException, match='"m" version 2'):
        control.load_model("m")
    # The server keeps the version it had; a later look finds that the files are gone.
    assert answer(client) == 5
    state, reason = states(client)[("m", "2")]
    assert state == "READY" and "the former version still serves" in reason
    repository.path("m", 2).unlink()
    repository.add("m", times(5), version=2)
    control.load_model("m")
    assert states(client)[("m", "2")] == ("READY", "")
    config = repository.root / "m" / "config.pbtxt"
    config.write_text("nonsense_field: 1")
    with pytest.raises(InferenceServerException, match="nonsense_field"):
        control.load_model("m")
    assert answer(client) == 5
    config.write_text("version_policy { all {} }")
    control.load_model("m")
    assert (answer(client, version="1"), answer(client, version="2")) == (2, 5)
    config.unlink()
    control.load_model("m", config='{"max_batch_size": 3}')
    assert client.get_model_config("m").config.max_batch_size == 3
    with pytest.raises(InferenceServerException, match="nonsense_field"):
        control.load_model("m", config='{"nonsense_field": 3}')
    with pytest.raises(InferenceServerException, match="file:1/model.onnx"):
        control.load_model("m", config="{}", files={"file:1/model.onnx": b"bytes"})
    for call in (control.load_model, control.unload_model):
        with pytest.raises(InferenceServerException, match="nothing"):
            call("nothing")
    assert answer(client) == 5


def test_traffic_goes_on_while_its_model_is_loaded_anew(explicit, repository):
    client = explicit.client()
    client.load_model("m")
    seen, errors, stop = [], [], threading.Event()

    def ask():
        with tritonclient.grpc.InferenceServerClient(explicit.grpc_address) as own:
            while not stop.is_set():
                try:
                    seen.append(answer(own))
                except InferenceServerException as error:
                    errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for factor in range(3, 23):
        path = repository.path("m")
        fresh = path.with_suffix(".fresh")
        fresh.write_bytes(times(factor).SerializeToString())
        os.replace(fresh, path)
        client.load_model("m")
        assert answer(client) == factor
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    # Other weights, the same graph: their recipes come from the first file.
    compiles = Scrape(explicit.metrics_url).total("reprise_compiles_total", model="m")
    assert compiles <= 3  # rows 1, 2 and 4
    assert len(set(seen)) > 1 and set(seen) <= set(range(2, 23))


def test_requests_that_were_accepted_are_answered_when_their_model_is_unloaded(repository):
    # Eight requests wait for more rows, which never come.
    repository.add("m", times(2), config='dynamic_batching { max_queue_delay_microseconds: 1500000 }'
                   '\nmax_batch_size: 32')
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "m") as daemon:
        answers = []

        def ask():
            with tritonclient.grpc.InferenceServerClient(daemon.grpc_address) as own:
                answers.append(answer(own))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        wait_until(lambda: Scrape(daemon.metrics_url).total(
            "reprise_queue_depth", model="m", version="1") == 8)
        daemon.client().unload_model("m")
        for thread in threads:
            thread.join()
        assert answers == [2] * 8


def test_loading_and_unloading_again_and_again_takes_no_more_memory(repository):
    repository.add("bert", models.bert(hidden=64, layers=4, vocabulary=20000))
    inputs = {"input_ids": np.ones((1, 9), np.int64), "attention_mask": np.ones((1, 9), np.int64)}
    with Daemon(repository, "--model-control-mode", "explicit") as daemon:
        client = daemon.client()

        def cycle():
            client.load_model("bert")
            infer(client, "bert", inputs)
            client.unload_model("bert")

        for _ in range(10):
            cycle()
        before = daemon.rss_bytes()
        for _ in range(60):
            cycle()
        # A model that stayed would be 5 MB each time.
        assert daemon.rss_bytes() - before < 30e6
        # The stream that ran the last request lets go of its plan a moment later.
        wait_until(lambda: Scrape(daemon.metrics_url).total("reprise_cache_recipes") == 0)


@pytest.fixture
def polled(repository):
    repository.add("m", times(2))
    with Daemon(repository, "--model-control-mode", "poll", "--repository-poll-secs",
                "1") as daemon:
        yield daemon


def ready(daemon):
    return {name for (name, _), (state, _) in states(daemon.client()).items() if state == "READY"}


def test_folders_are_followed(polled, repository):
    client = polled.client()
    assert answer(client) == 2
    repository.add("new", times(3))
    wait_until(lambda: ready(polled) == {"m", "new"})
    assert answer(client, "new") == 3
    repository.add("m", times(4), version=2)
    wait_until(lambda: answer(client) == 4)
    shutil.rmtree(repository.path("m", 2).parent)
    wait_until(lambda: answer(client) == 2)
    (repository.root / "m" / "config.pbtxt").write_text("max_batch_size: 3")
    wait_until(lambda: client.get_model_config("m").config.max_batch_size == 3)
    repository.remove("new")
    wait_until(lambda: ("new", "1") not in states(client))
    with pytest.raises(InferenceServerException, match='no model "new"'):
        answer(client, "new")


def test_half_a_copy_disturbs_nobody_and_is_told_once(polled, repository):
    client = polled.client()
    whole = models.bert().SerializeToString()
    repository.add("m", whole[:len(whole) // 2], version=2)
    wait_until(lambda: polled.log().count('"m" version 2 was not loaded') == 1)
    time.sleep(2.5)  # two more looks
    assert polled.log().count('"m" version 2 was not loaded') == 1
    assert answer(client) == 2
    repository.add("m", times(7), version=2)
    wait_until(lambda: answer(client) == 7)
