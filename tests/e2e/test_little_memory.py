"""A request for more memory than there is fails by itself; the daemon goes on serving."""

import os
import pathlib
import re
import resource
import signal
import time

import numpy as np
import pytest
import requests
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

from testing import decoders, models
from testing.clients import together
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.patience import wait_until
from testing.repository import MINILM

ADDRESSES = 3 << 30
# Below the limit of one value, above the memory that there is.
MANY = 1 << 28


def int64s(name, *values, shape=None):
    shape = [len(values)] if shape is None else shape
    return helper.make_tensor(name, TensorProto.INT64, shape, values)


def model(nodes, constants, shape=("batch", 3), out=TensorProto.FLOAT):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info("y", out, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def summed(*made, constants, shape=("batch", 3)):
    """Makes y = the sum of the results of the last of `made`."""
    return model([*made, helper.make_node("ReduceSum", [made[-1].output[0]], ["y"])], constants,
                 shape)


def growing():
    """Makes a loop whose iterations double x, as often as it says."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["goes"]),
         helper.make_node("Concat", ["part", "part"], ["twice"], axis=0)], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("part", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
         helper.make_tensor_value_info("twice", TensorProto.FLOAT, None)])
    return model([helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)],
                 [int64s("trips", 1 << 62, shape=[])])


GREEDY = {
    "expand": lambda: summed(helper.make_node("Expand", ["x", "s"], ["z"]),
                             constants=[int64s("s", MANY, 1, 3)]),
    "tile": lambda: summed(helper.make_node("Tile", ["x", "s"], ["z"]),
                           constants=[int64s("s", MANY, 1)]),
    "pad": lambda: summed(helper.make_node("Pad", ["x", "p"], ["z"]),
                          constants=[int64s("p", 0, 0, MANY, 0)]),
    "resize": lambda: summed(helper.make_node("Resize", ["x", "", "", "s"], ["z"], mode="nearest"),
                             constants=[int64s("s", 1, 1, 4, MANY)], shape=(1, 1, 4, 4)),
    "random": lambda: summed(helper.make_node("RandomNormal", [], ["r"], shape=[MANY, 1]),
                             helper.make_node("Mul", ["r", "x"], ["z"]), constants=[],
                             shape=(1, 3)),
    "loop": growing,
}


@pytest.fixture(scope="module")
def daemon(module_repository):
    module_repository.add("elementwise", models.elementwise())
    for name, make in GREEDY.items():
        module_repository.add(name, make())
    # Arenas reserve addresses, as many as they can have.
    with Daemon(module_repository, "--arena-memory-mb", "512",
                address_bytes=ADDRESSES) as daemon:
        yield daemon


@pytest.mark.parametrize("name", GREEDY)
def test_greedy_model_is_refused_or_its_requests_are(daemon, name):
    client = daemon.client()
    shape = (1, 1, 4, 4) if name == "resize" else (1, 3)
    x = np.ones(shape, np.float32)
    with pytest.raises(InferenceServerException) as error:
        infer(client, name, {"x": x})
    # Nothing that comes later makes room for the first of these.
    assert error.value.status() in ("StatusCode.INVALID_ARGUMENT", "StatusCode.RESOURCE_EXHAUSTED",
                                    "StatusCode.UNAVAILABLE")
    if error.value.status() == "StatusCode.UNAVAILABLE":
        assert "was not loaded" in error.value.message()
    assert "bytes" in error.value.message() or "memory" in error.value.message()
    ones = np.ones((2, 5), np.float32)
    assert (infer(client, "elementwise", {"x": ones}).outputs["y"] == 3).all()


@pytest.mark.parametrize("addresses_mb", [768, 1024, 1536])
def test_few_addresses_are_enough_to_serve(repository, addresses_mb):
    repository.add("elementwise", models.elementwise())
    with Daemon(repository, address_bytes=addresses_mb << 20) as daemon:
        ones = np.ones((2, 5), np.float32)
        assert (infer(daemon.client(), "elementwise", {"x": ones}).outputs["y"] == 3).all()


@pytest.mark.parametrize("addresses_mb", [80, 160, 240])
def test_too_few_addresses_to_start_are_one_line_and_exit_1(repository, addresses_mb):
    repository.add("elementwise", models.elementwise())
    daemon = Daemon(repository, address_bytes=addresses_mb << 20)
    daemon.start()
    assert daemon.process.wait(30) == 1
    last = daemon.log().splitlines()[-1]
    assert "error" in last and ("ulimit -v" in last or "memory" in last), last


def doubles():
    """Makes a product in float64: OpenBLAS has the kernels for it."""
    weights = np.arange(300 * 200, dtype=np.float64).reshape(300, 200) / 1e4
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["batch", 300])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)],
        [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8), weights


@pytest.mark.parametrize("addresses_mb", [500, 700, 1000, 2000])
def test_products_without_addresses_for_openblas_are_made_by_other_kernels(repository,
                                                                           addresses_mb):
    made, weights = doubles()
    repository.add("doubles", made)
    with Daemon(repository, ready_within_s=20, address_bytes=addresses_mb << 20) as daemon:
        client = daemon.client()
        for rows in (1, 40, 300):
            x = np.linspace(0, 1, rows * 300).reshape(rows, 300)
            answer = infer(client, "doubles", {"x": x})
            np.testing.assert_allclose(answer.outputs["y"], x @ weights, rtol=1e-12)
            launches = re.search(r"foreign launches\s+(\d+)",
                                 daemon.reprise("dump", "--recipe", answer.recipe)).group(1)
            assert (launches == "1") == (addresses_mb == 2000)
        client.close()
        assert ("OpenBLAS is left out: " in daemon.log()) == (
            addresses_mb != 2000)
        wait_until(lambda: rests(daemon))  # once work that goes on without requests is done
        begin = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(20) == 0, daemon.log()
        assert time.monotonic() - begin < 5


@pytest.mark.parametrize("addresses_mb", [500, 700, 1000])
def test_openblas_by_name_without_addresses_is_refused_at_start(repository, addresses_mb):
    repository.add("minilm", MINILM)
    daemon = Daemon(repository, "--gemm-provider", "openblas", address_bytes=addresses_mb << 20)
    daemon.start()
    try:
        assert daemon.process.wait(20) == 1
    finally:
        daemon.kill()
    last = daemon.log().splitlines()[-1]
    assert "--gemm-provider openblas: OpenBLAS is left out: " in last, last
    assert "ulimit -v" in last and len(re.findall(r"\d{7,}", last)) == 2, last


def rests(daemon):
    """Returns whether it does little for a second."""
    before = busy_seconds(daemon)
    time.sleep(1)  # nothing must happen meanwhile
    return busy_seconds(daemon) - before < 0.5


def busy_seconds(daemon):
    fields = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("flags", [[], ["--streams", "16"]], ids=["default", "16_streams"])
@pytest.mark.parametrize("addresses_mb", [256, 300, 400, 500, 600])
def test_little_memory_serves_or_is_refused_at_start(repository, addresses_mb, flags):
    repository.add("minilm", MINILM)
    repository.add("elementwise", models.elementwise())
    daemon = Daemon(repository, *flags, address_bytes=addresses_mb << 20)
    daemon.start()
    try:
        while daemon.process.poll() is None and daemon.http_status("/v2/health/ready") != 200:
            time.sleep(0.05)  # the interval of polling
        if daemon.process.poll() is not None:
            assert daemon.process.returncode == 1, daemon.log()
            last = daemon.log().splitlines()[-1]
            # One line with both numbers: the memory there is, and the memory it takes.
            assert "error" in last and len(re.findall(r"\d{7,}", last)) == 2, last
            assert "ulimit -v" in last
            return
        client = daemon.client()
        ones = np.ones((2, 5), np.float32)
        for length in (8, 200):
            inputs = text_inputs(["input_ids", "attention_mask", "token_type_ids"], 4, length,
                                 np.random.default_rng(1))
            try:
                assert np.isfinite(infer(client, "minilm", inputs).outputs["last_hidden_state"]).all()
            except InferenceServerException as error:
                assert error.status() in ("StatusCode.RESOURCE_EXHAUSTED", "StatusCode.UNAVAILABLE")
                assert "stopping" not in error.message()
            assert (infer(client, "elementwise", {"x": ones}).outputs["y"] == 3).all()
        client.close()
        wait_until(lambda: rests(daemon))  # once work that goes on without requests is done
        assert "stopping" not in daemon.log()
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(60) == 0, daemon.log()
    finally:
        daemon.kill()


def set_addresses(daemon, left_mb):
    """Lets the running daemon take this much more; None: as much as it wants."""
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    size = int(re.search(r"VmSize:\s+(\d+) kB", status).group(1)) << 10
    limit = resource.RLIM_INFINITY if left_mb is None else size + (left_mb << 20)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


@pytest.mark.parametrize("left_mb", [0, 1, 2])
def test_limit_set_while_it_runs_ends_requests_and_not_the_daemon(repository, left_mb):
    repository.add("elementwise", models.elementwise())
    # A row of its scores is larger than the reserve that is kept for a block.
    repository.add("decoder", decoders.make("gqa", context=128, vocabulary=20000),
                   config='parameters { key: "reprise.context" value { string_value: "128" } }')
    with Daemon(repository) as daemon:
        ones = np.ones((2, 5), np.float32)

        def ask(i):
            if i % 2 == 0:
                body = {"input_ids": [1 + i % 90] * 100,
                        "parameters": {"max_tokens": 20, "temperature": 0.5, "n": 2}}
                try:
                    return requests.post(f"{daemon.http_url}/v2/models/decoder/generate", json=body,
                                         timeout=10).status_code
                except requests.RequestException:
                    return None  # its connection found no memory
            client = daemon.client()
            try:
                return infer(client, "elementwise", {"x": ones}).outputs["y"].tolist()
            except InferenceServerException as error:
                return error.status()
            finally:
                client.close()

        set_addresses(daemon, left_mb)
        answers = together(ask, range(60), clients=12)
        assert daemon.process.poll() is None, daemon.log()
        for answer in answers:
            assert answer in (None, 200, 429, 503, [[3.0] * 5] * 2, "StatusCode.RESOURCE_EXHAUSTED",
                              "StatusCode.UNAVAILABLE"), answer
        set_addresses(daemon, None)
        for i in (0, 1):
            assert ask(i) in (200, [[3.0] * 5] * 2), daemon.log()
